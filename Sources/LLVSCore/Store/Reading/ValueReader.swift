/// Reads one value in parts, so that it need not be in memory as a whole.
///
/// All returned bytes have been checked. A value in a file of its own (a blob) is read and checked by the blocks that are touched. A small
/// value is read and kept as a whole. A large value within its record, as in storages other than files, is read completely once, before the
/// first part is returned: that checks it and yields a checksum for each block. If it is deflated, reading backwards inflates it from its
/// beginning. A value that is stored as a difference is rebuilt and kept as a whole.
///
/// The value never changes, whatever is stored or compacted meanwhile. A reader holds the store, and at most 1 MiB of the value; all of it
/// if it is stored as a difference, which this library does up to 4 MiB. Safe from all threads; the calls of one reader wait for each
/// other.
public final class ValueReader: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The value's id.
    public let id: ValueID
    /// The version that stored it.
    public let storedVersion: VersionID
    /// The size of the value in bytes.
    public let size: Int

    private let store: Store
    private var place: RecordPlace
    private var entry: MapEntry
    private let lock = Lock(.unordered)
    private var contents = Contents.unread
    /// The last block of which a part was read.
    private var block: [UInt8] = []
    private var blockStart = 0

    /// The largest value that is kept as a whole, once a part of it is read.
    static let keptSize = 1 << 20
    static let blockSize = 64 << 10

    private enum Contents {
        case unread
        case whole([UInt8])
        case blob(BlobID)
        case body(LargeBodyBlocks)
    }

    package init(_ store: Store, _ located: Store.Located, id: UnsafeRawBufferPointer) throws {
        self.store = store
        self.id = ValueID(unchecked: id)
        storedVersion = located.stored
        place = located.place
        entry =
            located.entry.size == MapEntry.unknownSize
            ? try store.records.located(located.entry, located.place, id: id, stored: located.stored) : located.entry
        size = Int(entry.size)
    }

    /// Fills the buffer with the bytes of the value from `offset` on. Returns their number: fewer than the size of the buffer only at the
    /// end of the value, and 0 beyond it.
    /// - Throws: `.invalidArgument` for an offset below zero, `.closed`, `.damaged`, `.outOfMemory`, errors of the storage; the contents of
    ///   the buffer must then not be used.
    /// - Complexity: O(bytes read), and 64 KiB more at each end; see above for values within their record.
    public func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        try store.checkOpen()
        guard offset >= 0 else {
            throw StoreError(
                .invalidArgument,
                "Reading the value of \"\(id)\" from byte \(offset) on is not possible: values begin at 0. Give another offset.",
                valueID: id)
        }
        guard offset < size, buffer.count > 0 else { return 0 }
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, size - offset)])
        return try lock.withLockWhileCalling {
            func attempt() throws {
                do {
                    if case .unread = contents { contents = try open() }
                    try read(offset, wanted)
                } catch {
                    // Locate and check the bytes again.
                    contents = .unread
                    block = []
                    throw error
                }
            }
            do { try attempt() } catch let error as StoreError where error.code.isDamage {
                try store.records.again(place, after: error) {
                    if $0 != place { (place, entry.bodyOffset) = ($0, 0) }
                    try attempt()
                }
            }
            return wanted.count
        }
    }

    private func open() throws -> Contents {
        try id.bytes.withUnsafeBytes { raw in
            var entry = entry
            if entry.bodyOffset == 0 {
                guard let found = try store.records.findChange(place, raw), found.body.size == size else {
                    throw store.records.damaged(
                        place, "lacks a value that another version names", version: storedVersion, value: raw)
                }
                if found.body.isHollow { throw store.records.forgotten(raw, storedVersion) }
                if let blob = found.body.blob {
                    try store.records.check(blob, found.body, place, id: raw, stored: storedVersion)
                    return .blob(blob)
                }
                entry.bodyOffset = UInt64(found.body.bodyOffset)
            }
            if size > ValueReader.keptSize {
                let blocks = try store.records.withLargeBody(place, entry, id: raw, stored: storedVersion) {
                    try $0.isDifference ? nil : LargeBodyBlocks($0)
                }
                if let blocks { return .body(blocks) }
            }
            return .whole(
                try store.records.withBody(place, entry, id: raw, stored: storedVersion) { try Memory.copy($0, "Reading a value") })
        }
    }

    private func read(_ offset: Int, _ wanted: UnsafeMutableRawBufferPointer) throws {
        switch contents {
        case .unread: throw StoreError(.internal, "The value of \"\(id)\" was not opened.")
        case .whole(let bytes):
            guard bytes.count - offset >= wanted.count else {
                throw StoreError(.internal, "The value of \"\(id)\" has changed its size.")
            }
            bytes.withUnsafeBytes { wanted.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + wanted.count])) }
        case .blob(let blob):
            try id.bytes.withUnsafeBytes { raw in
                try readBlocks(offset, wanted) { try store.records.readBlob(blob, at: $0, into: $1, id: raw, stored: storedVersion) }
            }
        case .body(let body): try readBlocks(offset, wanted) { try body.read($0, into: $1) }
        }
    }

    /// Reads whole blocks into the buffer. If a part of a block is needed, reads the whole block and keeps it for the next call.
    /// - Parameter read: fills its buffer, of whole blocks or to the end, from a block's beginning on.
    private func readBlocks(
        _ offset: Int, _ wanted: UnsafeMutableRawBufferPointer, _ read: (Int, UnsafeMutableRawBufferPointer) throws -> Void
    ) throws {
        var done = 0
        while done < wanted.count {
            let at = offset + done, left = wanted.count - done, start = at - at % ValueReader.blockSize
            let wholeBlocks = at + left == size ? left : left - left % ValueReader.blockSize
            if at == start, wholeBlocks > 0 {
                try read(at, UnsafeMutableRawBufferPointer(rebasing: wanted[done..<done + wholeBlocks]))
                done += wholeBlocks
                continue
            }
            let length = min(ValueReader.blockSize, size - start)
            if blockStart != start || block.count != length {
                block = try [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
                    try read(start, UnsafeMutableRawBufferPointer(buffer))
                    count = length
                }
                blockStart = start
            }
            let count = min(left, start + length - at)
            block.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: wanted[done..<done + count]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[at - start..<at - start + count]))
            }
            done += count
        }
    }
}

/// The blocks of a large value within its record, each checked whenever it is read.
final class LargeBodyBlocks {
    private let body: LargeBody
    /// The checksum of each block of the stored bytes, computed while all together matched their checksum.
    private var checksums: [UInt32] = []
    /// For a deflated value: how far it is inflated, and the next stored bytes.
    private var inflation: Inflation?
    private var inflated = 0
    private var stored: [UInt8] = []
    private var storedStart = 0
    private var storedUsed = 0

    /// Reads and checks all blocks.
    init(_ body: LargeBody) throws {
        self.body = body
        checksums.reserveCapacity(body.storedSize / ValueReader.blockSize + 1)
        let inflation = body.isDeflated ? try Inflation() : nil
        var made = 0, isWrong = false
        try withScratch(ValueReader.blockSize) { scratch in
            try body.check { piece in
                for start in stride(from: 0, to: piece.count, by: ValueReader.blockSize) {
                    checksums.append(
                        Bytes.crc32c(UnsafeRawBufferPointer(rebasing: piece[start..<min(piece.count, start + ValueReader.blockSize)])))
                }
                guard let inflation, !isWrong else { return }
                var at = 0
                while at < piece.count, !isWrong {
                    let step = inflation.take(UnsafeRawBufferPointer(rebasing: piece[at...]), into: scratch)
                    at += step?.taken ?? 0
                    made += step?.made ?? 0
                    isWrong = (step?.taken ?? 0) + (step?.made ?? 0) == 0 || made > body.size
                }
            }
            // Flush the output that remains after the last stored byte.
            while let inflation, !isWrong, let more = inflation.take(UnsafeRawBufferPointer(start: nil, count: 0), into: scratch)?.made,
                more > 0
            {
                made += more
                isWrong = made > body.size
            }
        }
        if let inflation, isWrong || made != body.size || !inflation.isAtEnd() { throw body.damage("has a value that does not inflate") }
    }

    /// Fills the buffer from the beginning of a block on, with whole blocks or to the end.
    func read(_ start: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard body.isDeflated else { return try readStored(start, into: buffer) }
        if inflation == nil || inflated > start { try restart() }
        if inflated < start { try withScratch(ValueReader.blockSize) { try skip(to: start, $0) } }
        try inflate(into: buffer)
    }

    /// Reads and checks stored bytes from the beginning of a block on.
    private func readStored(_ start: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
        try body.read(at: start, into: buffer)
        var at = 0, block = start / ValueReader.blockSize
        while at < buffer.count {
            let end = min(buffer.count, at + ValueReader.blockSize)
            guard block < checksums.count, Bytes.crc32c(UnsafeRawBufferPointer(rebasing: buffer[at..<end])) == checksums[block] else {
                throw body.damage()
            }
            at = end
            block += 1
        }
    }

    private func restart() throws {
        inflation = try Inflation()
        inflated = 0
        stored = []
        storedStart = 0
        storedUsed = 0
    }

    private func skip(to start: Int, _ scratch: UnsafeMutableRawBufferPointer) throws {
        while inflated < start {
            try inflate(into: UnsafeMutableRawBufferPointer(rebasing: scratch[..<min(scratch.count, start - inflated)]))
        }
    }

    private func inflate(into buffer: UnsafeMutableRawBufferPointer) throws {
        guard let inflation else { return }
        var filled = 0
        while filled < buffer.count {
            if storedUsed == stored.count, storedStart + stored.count < body.storedSize {
                let next = storedStart + stored.count, count = min(ValueReader.blockSize, body.storedSize - next)
                try Memory.expect(count, "Reading a part of a value")
                stored = try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                    try readStored(next, into: UnsafeMutableRawBufferPointer(buffer))
                    filled = count
                }
                storedStart = next
                storedUsed = 0
            }
            let step = stored.withUnsafeBytes {
                inflation.take(
                    UnsafeRawBufferPointer(rebasing: $0[storedUsed...]), into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
            }
            guard let step, step.taken > 0 || step.made > 0 else { throw body.damage("has a value that does not inflate") }
            storedUsed += step.taken
            filled += step.made
        }
        inflated += filled
    }
}

extension Store {
    /// Opens the value that prevails at a version, for reading in parts; nil if there is none. The size is known without reading the value.
    /// - Throws: `.unknownVersion`, `.damaged`.
    /// - Complexity: O(length of the id + log values).
    public func openValue(_ id: ValueID, at version: VersionID) throws -> ValueReader? {
        try id.bytes.withUnsafeBytes { raw in try locate(raw, at: version).map { try ValueReader(self, $0, id: raw) } }
    }

    /// Opens the bytes that a version stored under an id, for reading in parts; nil if it stored none.
    /// - Throws: `.unknownVersion`, `.damaged`.
    public func openValue(_ reference: Value.Reference) throws -> ValueReader? {
        let ordinal = try requireOrdinal(reference.version)
        let place = place(of: ordinal)
        return try reference.id.bytes.withUnsafeBytes { raw in
            guard let entry = try maps.stored(raw, in: ordinal) else { return nil }
            return try ValueReader(self, Located(entry: entry, stored: reference.version, place: place), id: raw)
        }
    }
}
