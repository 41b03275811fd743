/// One value that is read in parts, so that it need not be in memory as a whole.
///
/// Whatever is handed out has been checked. A value in a file of its own (a blob) is read and checked by the blocks that are
/// touched. Of a smaller one all is read at once, and kept. A large one within its record, as storages other than the file
/// storage have it, is read through once, before the first part is given out, which checks it and leaves a checksum of each
/// block; where it is deflated, reading backwards inflates it from its beginning. One that is stored as a difference is made as a
/// whole, and kept.
///
/// The value never changes, whatever is stored or compacted beside it. Holds the store, and at most 1 MiB of the value; all of it if it is
/// stored as a difference, which this library does up to 1 MiB. Safe
/// from all threads; the calls of one reader wait for each other.
public final class ValueReader: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The value's id.
    public let id: ValueID
    /// The version that stored it.
    public let storedVersion: VersionID
    /// Bytes of the value.
    public let size: Int

    private let store: Store
    private let place: RecordPlace
    private let entry: MapEntry
    private let lock = Lock(.unordered)
    private var contents = Contents.unread
    /// The block that was read last in part.
    private var block: [UInt8] = []
    private var blockStart = 0

    /// A value that is no larger is kept as a whole, once a part of it is asked for.
    static let keptSize = 1 << 20
    static let blockSize = 64 << 10

    private enum Contents {
        case unread
        case whole([UInt8])
        case blob(BlobID)
        case body(LargeBodyBlocks)
    }

    init(_ store: Store, _ located: Store.Located, id: UnsafeRawBufferPointer) throws {
        self.store = store
        self.id = ValueID(unchecked: id)
        storedVersion = located.stored
        place = located.place
        entry =
            located.entry.size == MapEntry.unknownSize
            ? try store.records.located(located.entry, located.place, id: id, stored: located.stored) : located.entry
        size = Int(entry.size)
    }

    /// Fills the buffer with the bytes of the value from `offset` on, as far as there are any, and answers how many: fewer
    /// than the buffer has room for only at the end, 0 from there on.
    /// - Throws: `.invalidArgument` for an offset below zero, `.closed`, `.damaged`, `.outOfMemory`, errors of the storage;
    ///   the buffer then holds nothing that may be used.
    /// - Complexity: O(bytes read), 64 KiB more at each end; see above for values that are in their record.
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
            do {
                if case .unread = contents { contents = try open() }
                try read(offset, wanted)
            } catch {
                // Whatever was believed of the bytes is found out anew.
                contents = .unread
                block = []
                throw error
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
                        place, "does not hold a value that another version says it does", version: storedVersion, value: raw)
                }
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
                throw StoreError(.internal, "The value of \"\(id)\" is not as long as it was.")
            }
            bytes.withUnsafeBytes { wanted.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + wanted.count])) }
        case .blob(let blob):
            try id.bytes.withUnsafeBytes { raw in
                try readBlocks(offset, wanted) { try store.records.readBlob(blob, at: $0, into: $1, id: raw, stored: storedVersion) }
            }
        case .body(let body): try readBlocks(offset, wanted) { try body.read($0, into: $1) }
        }
    }

    /// Whole blocks go where they are wanted; of one that is wanted in part, all is read and kept for who reads on.
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
    /// Of each block of the stored bytes, as they were when all together matched their checksum.
    private var checksums: [UInt32] = []
    /// Where the value is deflated: how far it is inflated, and the stored bytes that are next.
    private var inflation: Inflation?
    private var inflated = 0
    private var stored: [UInt8] = []
    private var storedStart = 0
    private var storedUsed = 0

    /// Reads all of it.
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
            // What is still in the state when all bytes are taken.
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

    /// Stored bytes from the beginning of a block on, checked.
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
    /// The value that prevails at a version, to be read in parts; nil when none does. Tells the size without reading the value.
    /// - Throws: `.unknownVersion`, `.damaged`.
    /// - Complexity: O(length of the id + log values).
    public func openValue(_ id: ValueID, at version: VersionID) throws -> ValueReader? {
        try id.bytes.withUnsafeBytes { raw in try locate(raw, at: version).map { try ValueReader(self, $0, id: raw) } }
    }

    /// The bytes that a version stored under an id, to be read in parts; nil when it stored none.
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
