/// The body of a large value within its record, read piece by piece: no more of it than a piece is in memory, beside
/// what the caller wants of it. Used by one thread at a time.
struct LargeBody {
    /// Bytes that are read at once.
    private static let pieceSize = 256 << 10

    private let records: Records
    private let place: RecordPlace
    private let id: ValueID
    private let stored: VersionID
    /// Where the stored bytes begin in the record.
    private let start: UInt64
    /// Of the value.
    let size: Int
    /// In the record; fewer than `size` when they are deflated.
    let storedSize: Int
    var isDeflated: Bool { storedSize < size }
    /// It is a difference, which is not read in pieces: the rest of this is not to be used.
    let isDifference: Bool
    /// Of what stands before the stored bytes and is covered as well.
    private let checksumBefore: UInt32
    private let checksum: UInt32

    /// Reads the header of the body.
    init(_ records: Records, _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID) throws {
        self.records = records; self.place = place; self.stored = stored
        self.id = ValueID(unchecked: id)
        size = Int(entry.size)
        let header = UInt64(RecordTable.bodyHeaderSize)
        guard entry.bodyOffset < place.length, place.length - entry.bodyOffset >= header else {
            throw records.damaged(place, "is cut short", version: stored, value: id)
        }
        start = entry.bodyOffset + header
        let (checksum, sizeField) = try withUnsafeTemporaryAllocation(byteCount: RecordTable.bodyHeaderSize, alignment: 8) { bytes in
            try records.read(place, at: entry.bodyOffset, into: bytes)
            return (
                UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)),
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            )
        }
        self.checksum = checksum
        isDifference = sizeField & RecordTable.differenceBit != 0
        storedSize = Int(sizeField & ~RecordTable.differenceBit)
        checksumBefore = RecordTable.bodyChecksum(
            sizeField: sizeField, id: id, version: stored, stored: UnsafeRawBufferPointer(start: nil, count: 0))
        guard storedSize <= size, UInt64(storedSize) <= place.length - start else { throw damage() }
    }

    /// What to throw where the bytes are not those that were stored.
    func damage(_ why: String = "has a damaged value") -> StoreError {
        id.bytes.withUnsafeBytes { records.damaged(place, why, version: stored, value: $0) }
    }

    /// Fills the buffer with stored bytes from `offset` on, which are to be checked.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        try records.read(place, at: start + UInt64(offset), into: buffer)
    }

    /// Reads all stored bytes, calls with each piece before it is known whether they are whole, and throws when they are not.
    func check(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var crc = checksumBefore
        try withScratch(min(storedSize, LargeBody.pieceSize)) { scratch in
            var at = 0
            while at < storedSize {
                let piece = UnsafeMutableRawBufferPointer(rebasing: scratch[..<min(scratch.count, storedSize - at)])
                try read(at: at, into: piece)
                crc = Bytes.crc32c(UnsafeRawBufferPointer(piece), from: crc)
                try body(UnsafeRawBufferPointer(piece))
                at += piece.count
            }
        }
        guard crc == checksum else { throw damage() }
    }

    /// Fills the buffer, of `size` bytes, with the value; when it throws, with nothing that may be used.
    func read(whole target: UnsafeMutableRawBufferPointer) throws {
        if isDeflated {
            let inflation = try Inflation()
            var made = 0
            // What is damaged is told as that, not as what came of inflating it.
            var isWrong = false
            try check { piece in
                if !isWrong { isWrong = !inflation.append(piece, to: UnsafeMutableRawBufferPointer(rebasing: target[made...]), &made) }
            }
            guard !isWrong, made == size, inflation.isAtEnd() else { throw damage("has a value that does not inflate") }
            return
        }
        var crc = checksumBefore, at = 0
        while at < storedSize {
            let piece = UnsafeMutableRawBufferPointer(rebasing: target[at..<min(storedSize, at + 4 * LargeBody.pieceSize)])
            try read(at: at, into: piece)
            crc = Bytes.crc32c(UnsafeRawBufferPointer(piece), from: crc)
            at += piece.count
        }
        guard crc == checksum else { throw damage() }
    }
}
