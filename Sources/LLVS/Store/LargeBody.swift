import CLLVSShims

/// The body of a large value within its record, read piece by piece: no more of it than a piece is in memory, beside
/// what the caller wants of it. Used by one thread at a time.
struct LargeBody {
    /// Bytes that are read at once.
    private static let pieceSize = 256 << 10

    private let store: Store
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
    /// Of what stands before the stored bytes and is covered as well.
    private let checksumBefore: UInt32
    private let checksum: UInt32

    /// Reads the header of the body.
    init(_ store: Store, _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID) throws {
        self.store = store; self.place = place; self.stored = stored
        self.id = ValueID(unchecked: id)
        size = Int(entry.size)
        let header = UInt64(RecordTable.bodyHeaderSize)
        guard entry.bodyOffset < place.length, place.length - entry.bodyOffset >= header else {
            throw store.damaged(place, "is cut short", version: stored, value: id)
        }
        start = entry.bodyOffset + header
        let (checksum, sizeField) = try withUnsafeTemporaryAllocation(byteCount: RecordTable.bodyHeaderSize, alignment: 8) { bytes in
            try store.readBytes(place, at: entry.bodyOffset, into: bytes)
            return (UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)), UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        }
        self.checksum = checksum
        storedSize = Int(sizeField)
        checksumBefore = RecordTable.bodyChecksum(sizeField: sizeField, id: id, version: stored, stored: UnsafeRawBufferPointer(start: nil, count: 0))
        guard storedSize <= size, UInt64(storedSize) <= place.length - start else { throw damage() }
    }

    /// What to throw where the bytes are not those that were stored.
    func damage(_ why: String = "has a damaged value") -> StoreError {
        id.bytes.withUnsafeBytes { store.damaged(place, why, version: stored, value: $0) }
    }

    /// Fills the buffer with stored bytes from `offset` on, which are to be checked.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        try store.readBytes(place, at: start + UInt64(offset), into: buffer)
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

/// Raw deflate (RFC 1951) taken back, piece by piece. Used by one thread at a time.
final class Inflation {
    private let state: OpaquePointer
    private var isDone = false

    /// - Throws: `.outOfMemory`.
    init() throws {
        guard let state = llvs_shim_inflater_make() else { throw StoreError(.outOfMemory, "There is no memory to inflate a value. Free some, and try again.") }
        self.state = state
    }
    deinit { llvs_shim_inflater_free(state) }

    /// Takes of `piece`, and writes to `target`, as far as both reach. Answers how many bytes were taken and made; nil when
    /// the bytes are not what deflate makes.
    func take(_ piece: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> (taken: Int, made: Int)? {
        guard !isDone else { return (0, 0) }
        var taken = 0, done: Int32 = 0
        let made = llvs_shim_inflate_more(state, piece.baseAddress, piece.count, &taken, target.baseAddress, target.count, &done)
        isDone = done != 0
        return made < 0 ? nil : (taken, Int(made))
    }

    /// Whether the deflated bytes have come to their end, and nothing more comes of them: the last bits may still be in
    /// the state, with all bytes taken.
    func isAtEnd() -> Bool {
        let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return isDone || (take(UnsafeRawBufferPointer(none), into: none) != nil && isDone)
    }

    /// Takes all of `piece` and counts what was made of it; false when it is wrong or has no room.
    func append(_ piece: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, _ made: inout Int) -> Bool {
        var at = 0, filled = 0
        while at < piece.count {
            guard let step = take(UnsafeRawBufferPointer(rebasing: piece[at...]), into: UnsafeMutableRawBufferPointer(rebasing: target[filled...])),
                  step.taken > 0 || step.made > 0 else { return false }
            at += step.taken
            filled += step.made
            made += step.made
        }
        return true
    }
}
