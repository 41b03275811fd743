/// Parts of records by way of the blocks in memory.
///
/// Safe from all threads. What a storage keeps in one place in memory already has no blocks (`BlockShape.none`).
final class StoreBlocks: @unchecked Sendable {
    // Sendable: its parts have locks, and it does not change.
    private let storage: any Storage
    private let cache: BlockCache
    private let isOn: Bool
    private let readers: ReadWriteLock
    /// Blocks have 2 to the power of this many bytes.
    private let shift: UInt64
    private var blockSize: Int { 1 << Int(shift) }
    /// Whether blocks go across records.
    private let areOfSegments: Bool
    /// What is larger is read from the storage, once: it would push out much and gain little.
    static let largest = 64 << 10

    init(_ storage: any Storage, budget: Int, readers: ReadWriteLock) {
        self.storage = storage
        self.readers = readers
        let size: Int
        switch storage.blockShape {
        case .none: (size, areOfSegments) = (0, false)
        case .segments(let bytes): (size, areOfSegments) = (bytes, true)
        case .records(let bytes): (size, areOfSegments) = (bytes, false)
        }
        isOn = size >= 512 && size <= BlockCache.blockSizeMax && size & (size - 1) == 0
        cache = BlockCache(budget: isOn ? budget : 0, blockSize: max(1, size), readers: readers)
        shift = UInt64(max(1, size).trailingZeroBitCount)
    }

    /// Bytes of memory that it may come to use, and that it uses now.
    var memoryLimit: Int { cache.memoryLimit }
    var memoryInUse: Int { cache.memoryInUse }

    /// The block that holds a byte of a record, and where in it the byte is. Nil when there are no blocks of it.
    @inline(__always)
    private func spot(_ place: RecordPlace, _ offset: UInt64) -> (key: BlockKey, offset: Int)? {
        guard place.segment != ProvisionalRecords.segment else { return nil }
        let mask: UInt64 = 1 << shift &- 1
        if areOfSegments {
            let (position, overflow) = place.offset.addingReportingOverflow(offset)
            guard !overflow else { return nil }
            return (BlockKey(segment: place.segment, part: 0, position: position >> shift), Int(position & mask))
        }
        guard let part = UInt32(exactly: offset >> shift) else { return nil }
        return (BlockKey(segment: place.segment, part: part, position: place.offset), Int(offset & mask))
    }

    // MARK: In memory

    /// The bytes of a record from `offset` to the end of the block that they are in, as far as they are here; for one who
    /// holds the store's lock for reading, for as long as that. They may reach beyond the record.
    @inline(__always)
    func bytes(_ place: RecordPlace, from offset: UInt64) -> UnsafeRawBufferPointer? {
        guard isOn, let (key, start) = spot(place, offset), let block = cache.block(key, from: start), start < block.count else {
            return nil
        }
        return UnsafeRawBufferPointer(rebasing: block[start...])
    }

    /// Has the processor fetch what `bytes` would answer, for one who holds the store's lock for reading.
    @inline(__always)
    func prefetch(_ place: RecordPlace, from offset: UInt64) {
        guard isOn, let (key, start) = spot(place, offset) else { return }
        cache.prefetch(key, from: start)
    }

    /// Fills the buffer with bytes of a record if all of them are here, for one who holds the store's lock for reading.
    func copy(_ place: RecordPlace, from offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        var done = 0
        while done < buffer.count {
            guard let bytes = bytes(place, from: offset &+ UInt64(done)) else { return false }
            // A block that is here in part only ends before the next begins.
            let count = min(bytes.count, buffer.count - done)
            UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            done += count
        }
        return true
    }

    // MARK: From the storage

    /// Fills the buffer with bytes of a record: from memory, or from the storage by whole blocks where they are worth it.
    /// The bytes are to be checked: when they do not match, see `forget`. The caller holds no lock.
    /// - Returns: false when the segment is not what the storage reads by blocks any more.
    @discardableResult
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Bool {
        guard isOn, buffer.count <= StoreBlocks.largest, offset <= place.length, UInt64(buffer.count) <= place.length - offset else {
            try storage.read(place, at: offset, into: buffer)
            return true
        }
        if readers.withRead({ copy(place, from: offset, into: buffer) }) { return true }
        var done = 0
        while done < buffer.count {
            let at = offset + UInt64(done)
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let wanted = spot(place, at).map {
                ($0.key, $0.offset, UnsafeMutableRawBufferPointer(rebasing: rest[..<min(rest.count, blockSize - $0.offset)]))
            }
            guard let (key, start, part) = wanted else { try storage.read(place, at: at, into: rest); return true }
            if !readers.withRead({ copy(place, from: at, into: part) }) {
                switch cache.shouldAdmit(key) && Memory.isAmple ? try load(key, place, start, part) : .tooShort {
                case .loaded: break
                case .tooShort:
                    try storage.read(place, at: at, into: rest)
                    return true
                case .gone:
                    try storage.read(place, at: at, into: rest)
                    return false
                }
            }
            done += part.count
        }
        return true
    }

    /// As `read`, for bytes within one block of a segment that were just found not to be in memory. True when the buffer was
    /// filled.
    func readMissed(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Bool {
        guard readsSegments, let (key, start) = spot(place, offset), start + buffer.count <= blockSize else { return false }
        if isOn, cache.shouldAdmit(key), Memory.isAmple {
            if case .loaded = try load(key, place, start, buffer) { return true }
            return false
        }
        return try storage.readSegment(place.segment, at: place.offset + offset, into: buffer) == buffer.count
    }

    private enum Loading { case loaded, tooShort, gone }

    /// Reads a block and takes it in; copies what is wanted from `start` on.
    private func load(_ key: BlockKey, _ place: RecordPlace, _ start: Int, _ wanted: UnsafeMutableRawBufferPointer) throws -> Loading {
        let first = UInt64(key.part) << shift
        let room = areOfSegments ? blockSize : Int(min(UInt64(blockSize), place.length - first))
        return try withUnsafeTemporaryAllocation(byteCount: room, alignment: 16) { block in
            let count: Int
            if areOfSegments {
                count = try storage.readSegment(key.segment, at: key.position << shift, into: block)
                guard count > 0 else { return .gone }
            } else {
                try storage.read(place, at: first, into: block)
                count = room
            }
            guard count >= start + wanted.count else { return .tooShort }
            wanted.copyMemory(from: UnsafeRawBufferPointer(rebasing: block[start..<start + wanted.count]))
            cache.admit(key, UnsafeRawBufferPointer(rebasing: block[..<count]), room: room)
            return .loaded
        }
    }

    /// Whether bytes of a segment can be read across its records.
    var readsSegments: Bool { areOfSegments }

    /// Calls with bytes of a segment, and where in it they begin: at least those from `first` to `end`, as far as they are
    /// there. Whole blocks, which are taken in, as long as there is room that nothing else was put into: what is read like
    /// this is read in passing, and pushes nothing out. The bytes are to be checked. The caller holds no lock.
    /// - Returns: false, and nothing was called, when the segment is not what the storage reads this way any more.
    func readRun(_ segment: UInt32, from first: UInt64, to end: UInt64, _ body: (UnsafeRawBufferPointer, UInt64) throws -> Void) throws
        -> Bool
    {
        guard segment != ProvisionalRecords.segment, first < end else { return false }
        let admits = isOn && cache.hasRoom && Memory.isAmple, mask: UInt64 = 1 << shift &- 1
        let start = admits ? first & ~mask : first
        guard let size = Int(exactly: (admits ? (end &+ mask) & ~mask : end) &- start) else { return false }
        return try withScratch(size) { buffer in
            let count = try storage.readSegment(segment, at: start, into: buffer)
            guard count > 0 else { return false }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if admits {
                for at in stride(from: 0, to: count, by: blockSize) {
                    let block = UnsafeRawBufferPointer(rebasing: bytes[at..<min(at + blockSize, count)])
                    cache.admit(BlockKey(segment: segment, part: 0, position: (start + UInt64(at)) >> shift), block, room: blockSize)
                }
            }
            try body(bytes, start)
            return true
        }
    }

    /// Forgets the blocks that hold these bytes of a record, which are not what they should be.
    func forget(_ place: RecordPlace, from offset: UInt64, count: Int) {
        guard isOn else { return }
        var at = offset
        while at <= offset &+ UInt64(count), let (key, start) = spot(place, at) {
            cache.drop(key)
            at = at &+ UInt64(blockSize - start)
        }
    }
}
