/// Reads the body of a large value in its record, piece by piece. Only one piece is in memory, besides the caller's buffer. Used by one
/// thread at a time.
struct LargeBody {
    /// The size of a piece in bytes.
    private static let pieceSize = 256 << 10

    private let records: Records
    private let place: RecordPlace
    private let id: ValueID
    private let stored: VersionID
    /// The offset of the stored bytes in the record.
    private let start: UInt64
    /// The size of the value.
    let size: Int
    /// The number of stored bytes; below `size` if they are deflated.
    let storedSize: Int
    var isDeflated: Bool { storedSize < size }
    /// Whether the body is a difference. A difference is not read in pieces, so the caller must not use the other members then.
    let isDifference: Bool
    /// The checksum of the covered bytes that precede the stored bytes.
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

    /// Returns the error to throw if the bytes differ from those that were stored.
    func damage(_ why: String = "has a damaged value") -> StoreError {
        id.bytes.withUnsafeBytes { records.damaged(place, why, version: stored, value: $0) }
    }

    /// Fills the buffer with stored bytes from `offset`. Does not check them; the caller must.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        try records.read(place, at: start + UInt64(offset), into: buffer)
    }

    /// Reads all stored bytes and calls with each piece. It compares the checksum after the last piece, and throws if it differs.
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

    /// Fills the buffer, of `size` bytes, with the value. If it throws, the contents of the buffer are undefined.
    func read(whole target: UnsafeMutableRawBufferPointer) throws {
        if isDeflated {
            let inflation = try Inflation()
            var made = 0
            // Read all pieces even if inflating fails, so that damage is reported as damage.
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
