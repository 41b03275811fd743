/// Reads parts of records through the cached blocks.
///
/// Safe from all threads. A storage that has its bytes in memory anyway has no blocks (`BlockShape.none`).
final class StoreBlocks: @unchecked Sendable {
    // Sendable: its parts have locks, and it does not change.
    private let storage: any Storage
    private let cache: BlockCache
    private let isOn: Bool
    private let readers: ReadWriteLock
    /// The binary logarithm of the block size in bytes.
    private let shift: UInt64
    private var blockSize: Int { 1 << Int(shift) }
    /// Whether blocks span records.
    private let areOfSegments: Bool
    /// Larger parts are read from the storage directly: caching them would evict much and gain little.
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

    /// The most bytes of memory that it may use, and those that it uses now.
    var memoryLimit: Int { cache.memoryLimit }
    var memoryInUse: Int { cache.memoryInUse }

    /// Returns the block that has a byte of a record, and where in it the byte is; nil if there are no blocks.
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

    /// Returns the cached bytes of a record from `offset` to the end of their block. They may extend beyond the record. Precondition: the
    /// caller holds the store's lock for reading. The bytes are valid as long as it does.
    @inline(__always)
    func bytes(_ place: RecordPlace, from offset: UInt64) -> UnsafeRawBufferPointer? {
        guard isOn, let (key, start) = spot(place, offset), let block = cache.block(key, from: start), start < block.count else {
            return nil
        }
        return UnsafeRawBufferPointer(rebasing: block[start...])
    }

    /// Prefetches what `bytes` would return. Precondition: the caller holds the store's lock for reading.
    @inline(__always)
    func prefetch(_ place: RecordPlace, from offset: UInt64) {
        guard isOn, let (key, start) = spot(place, offset) else { return }
        cache.prefetch(key, from: start)
    }

    /// Fills the buffer with bytes of a record if all of them are cached. Precondition: the caller holds the store's lock for reading.
    func copy(_ place: RecordPlace, from offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        var done = 0
        while done < buffer.count {
            guard let bytes = bytes(place, from: offset &+ UInt64(done)) else { return false }
            // A partly cached block ends before the next one begins.
            let count = min(bytes.count, buffer.count - done)
            UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            done += count
        }
        return true
    }

    // MARK: From the storage

    /// Fills the buffer with bytes of a record: from memory, or from the storage, by whole blocks if they are worth it. The caller must
    /// check the bytes, and call `forget` if they are wrong. Precondition: the caller holds no lock.
    /// - Parameter isScattered: whether bytes nearby are unlikely to be wanted. A block is then admitted only if it was missed before.
    /// - Returns: false if the storage can no longer read the segment by blocks.
    @discardableResult
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, isScattered: Bool = false) throws -> Bool
    {
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
                switch cache.shouldAdmit(key, isScattered: isScattered) && Memory.isAmple ? try load(key, place, start, part) : .tooShort {
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

    /// The same as `read`, for bytes within one block of a segment that were just not found in memory. Returns whether the buffer was
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

    /// Reads and admits a block. Copies the wanted bytes from `start` on.
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

    /// Calls with bytes of a segment and their offset: at least those from `first` to `end`, as far as they exist. It reads whole blocks,
    /// and admits them only while there is unused room, so that a sequential read evicts nothing. The callee must check the bytes.
    /// Precondition: the caller holds no lock.
    /// - Returns: false, without a call, if the storage can no longer read the segment this way.
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

    func removeAll() { cache.removeAll() }

    /// Forgets the blocks with these bytes of a record, which are wrong.
    func forget(_ place: RecordPlace, from offset: UInt64, count: Int) {
        guard isOn else { return }
        var at = offset
        while at <= offset &+ UInt64(count), let (key, start) = spot(place, at) {
            cache.drop(key)
            at = at &+ UInt64(blockSize - start)
        }
    }
}
