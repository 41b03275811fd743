import CLLVSShims

/// Identifies a block of a storage's bytes.
struct BlockKey: Equatable {
    /// The same as in `RecordPlace`.
    var segment: UInt32
    /// For blocks of records: the block's number within the record.
    var part: UInt32
    /// For blocks of segments, the block's number within the segment. For blocks of records, the record's `RecordPlace.offset`.
    var position: UInt64
}

/// Caches blocks of a storage's bytes in memory, within a budget.
///
/// The memory is one run, divided into *stretches*. Blocks are appended to a stretch. When all stretches are full, the one that was
/// filled longest ago is emptied, except for blocks that were read meanwhile. From then on, a block is only admitted if it was missed
/// twice recently. So bytes that are read only once neither evict others nor cost whole blocks.
///
/// The cache does not guarantee the bytes: readers compare a checksum, and read from the storage if it does not match.
///
/// Safe from all threads. `block(_:)` takes no lock and counts no reference: it is for callers that hold the store's lock for reading.
/// The other calls must not be made while holding that lock.
final class BlockCache: @unchecked Sendable {
    // Sendable: `lock` guards writing. Readers read atomically, under the lock of the history.
    /// The most bytes in a block.
    static let blockSizeMax = 64 << 10

    /// The store's lock: memory is reused only while no thread reads.
    private let readers: ReadWriteLock
    /// The run: pages that take no memory until they are written. Nil if there are none, or no budget.
    private let memory: UnsafeMutableRawPointer?
    private let stretchSize: Int

    /// Guards writing to everything below.
    private let lock = Lock(.blocks)
    /// The used bytes of each stretch, and the index of the one that is being filled.
    private var filled: [Int]
    private var filling = 0
    private var blocks = 0
    private let blocksMax: Int

    /// A hash table with open addressing. A slot is 0 or has the place of a block's header in the run, divided by 16, plus 1, below some
    /// bits of its hash. Atomic.
    private let table: UnsafeMutablePointer<UInt64>
    private let mask: Int
    private static let placeBits: UInt64 = 40
    /// Bytes of the run that are not in large pages.
    private static let smallRun = 8 << 20
    /// Hashes of recent misses, for far fewer blocks than fit: a random miss is not worth a whole block. The last element is 1 once the
    /// run was filled. Atomic.
    private let missed: UnsafeMutablePointer<UInt32>
    private let missedMask: Int
    private let secret = SystemRandomNumberGenerator.word()

    /// - Parameters:
    ///   - budget: bytes for blocks and for what is needed to find them.
    ///   - blockSize: the size of most blocks in bytes.
    ///   - readers: the store's lock.
    init(budget: Int, blockSize: Int, readers: ReadWriteLock) {
        self.readers = readers
        // If there is no memory for the tables, nothing is cached.
        let budget = llvs_shim_has_memory(min(max(0, budget), 8 << 30) / 32) != 0 ? min(max(0, budget), 8 << 30) : 0
        // Blocks of small records are smaller than `blockSize`.
        var slots = 64
        while slots < budget / max(512, blockSize / 8) { slots *= 2 }
        mask = slots - 1
        blocksMax = slots / 4 * 3
        table = .allocate(capacity: slots)
        table.initialize(repeating: 0, count: slots)
        var misses = 64
        while misses < budget / max(512, blockSize) / 32 { misses *= 2 }
        missedMask = misses - 1
        missed = .allocate(capacity: misses + 1)
        missed.initialize(repeating: 0, count: misses + 1)
        let run = max(0, budget - slots * 8 - misses * 4)
        // A whole number of blocks, and at least two of the largest: half of a stretch may be retained.
        let whole = (max(16, blockSize) + 15) & ~15 + Header.size
        stretchSize = max(2 * (BlockCache.blockSizeMax + Header.size), run / 64 / whole * whole) & ~15
        let stretches = run / stretchSize
        let pages =
            stretches == 0 ? MAP_FAILED : mmap(nil, stretches * stretchSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        memory = pages == MAP_FAILED ? nil : pages
        // A store with few bytes should not use a large page.
        if let memory, stretches * stretchSize > BlockCache.smallRun {
            HugePages.advise(memory + BlockCache.smallRun, stretches * stretchSize - BlockCache.smallRun)
        }
        filled = memory == nil ? [] : Array(repeating: 0, count: stretches)
    }

    deinit {
        table.deallocate()
        missed.deallocate()
        if let memory { munmap(memory, filled.count * stretchSize) }
    }

    /// The most bytes of memory that it may use.
    var memoryLimit: Int { filled.count * stretchSize + (mask + 1) * 8 + (missedMask + 2) * 4 }
    /// The bytes of cached blocks and their headers.
    var memoryInUse: Int { lock.withLock { filled.reduce(0, +) } }

    // MARK: Reading

    /// Returns the cached bytes of a block. Precondition: the caller holds the store's lock for reading. The bytes are valid as long as
    /// it does.
    /// - Parameter offset: where the caller begins to read.
    @inline(__always)
    func block(_ key: BlockKey, from offset: Int = 0) -> UnsafeRawBufferPointer? {
        guard let header = find(key, from: offset) else { return nil }
        if llvs_shim_load_relaxed(header.used) == 0 { llvs_shim_store_relaxed(header.used, 1) }
        return UnsafeRawBufferPointer(start: header.bytes, count: Int(llvs_shim_load_acquire(header.count)))
    }

    /// Prefetches what is needed to read from an offset.
    @inline(__always)
    func prefetch(_ key: BlockKey, from offset: Int) {
        guard let memory else { return }
        let hash = hash(key), word = llvs_shim_load_word(table + Int(truncatingIfNeeded: hash) & mask)
        // Most blocks are in their first slot.
        guard word != 0, word >> BlockCache.placeBits == hash >> BlockCache.placeBits else { return }
        let header = BlockCache.header(word, in: memory)
        llvs_shim_prefetch(header.start)
        for line in 0..<3 { llvs_shim_prefetch(header.bytes + offset + line * 64) }
    }

    @inline(__always)
    private func find(_ key: BlockKey, from offset: Int = 0) -> Header? {
        guard let memory else { return nil }
        let hash = hash(key)
        var i = Int(truncatingIfNeeded: hash) & mask
        while true {
            let word = llvs_shim_load_word(table + i)
            if word == 0 { return nil }
            if word >> BlockCache.placeBits == hash >> BlockCache.placeBits {
                let header = BlockCache.header(word, in: memory)
                // Prefetch the bytes while the key is compared.
                llvs_shim_prefetch(header.bytes + offset)
                llvs_shim_prefetch(header.bytes + offset + 64)
                if header.key == key { return header }
            }
            i = (i + 1) & mask
        }
    }

    @inline(__always)
    private func hash(_ key: BlockKey) -> UInt64 {
        let product = (key.position ^ secret).multipliedFullWidth(
            by: (UInt64(key.segment) << 32 | UInt64(key.part)) ^ 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }

    @inline(__always)
    private static func header(_ word: UInt64, in memory: UnsafeMutableRawPointer) -> Header {
        Header(start: memory + Int(word & (1 << placeBits - 1) &- 1) * 16)
    }

    // MARK: Admitting

    /// Whether a block can be admitted without evicting others.
    var hasRoom: Bool { memory != nil && llvs_shim_load_relaxed(missed + missedMask + 1) == 0 }

    /// Returns whether a missed block should be admitted. Records the miss.
    /// - Parameter isScattered: whether to admit the block only if it was missed recently, also while there is unused room.
    func shouldAdmit(_ key: BlockKey, isScattered: Bool = false) -> Bool {
        guard memory != nil else { return false }
        if !isScattered, llvs_shim_load_relaxed(missed + missedMask + 1) == 0 { return true }
        let hash = hash(key)
        let at = missed + Int(truncatingIfNeeded: hash) & missedMask, mark = UInt32(truncatingIfNeeded: hash >> 32) | 1
        if llvs_shim_load_relaxed(at) == mark { return true }
        llvs_shim_store_relaxed(at, mark)
        return false
    }

    /// Admits a block's bytes from its beginning on, or extends the cached bytes.
    /// - Parameter room: the most bytes that it may grow to.
    func admit(_ key: BlockKey, _ bytes: UnsafeRawBufferPointer, room: Int) {
        guard let memory, !bytes.isEmpty, bytes.count <= room, room <= BlockCache.blockSizeMax else { return }
        lock.lock()
        defer { lock.unlock() }
        if let header = find(key) {
            let count = Int(llvs_shim_load_acquire(header.count))
            guard bytes.count > count, bytes.count <= header.room else { return }
            // No thread reads after the count.
            (header.bytes + count).copyMemory(
                from: bytes.baseAddress.map { $0 + count } ?? UnsafeRawPointer(header.bytes), byteCount: bytes.count - count)
            return llvs_shim_store_release(header.count, UInt32(truncatingIfNeeded: bytes.count))
        }
        let size = Header.size + (room + 15) & ~15
        var left = filled.count
        while filled[filling] + size > stretchSize || blocks >= blocksMax {
            guard left > 0 else { return }
            left -= 1
            filling = (filling + 1) % filled.count
            if filled[filling] > 0 { empty(filling, memory) }
        }
        let place = filling * stretchSize + filled[filling]
        filled[filling] += size
        let header = Header(start: memory + place)
        header.initialize(key, count: bytes.count, room: room)
        UnsafeMutableRawBufferPointer(start: header.bytes, count: bytes.count).copyMemory(from: bytes)
        insert(key, place)
    }

    /// Forgets all blocks, and overwrites their bytes.
    func removeAll() {
        lock.withLock {
            readers.withWrite {
                table.update(repeating: 0, count: mask + 1)
                for stretch in filled.indices {
                    if let memory { memset(memory + stretch * stretchSize, 0, filled[stretch]) }
                    filled[stretch] = 0
                }
                filling = 0
                blocks = 0
            }
        }
    }

    /// Forgets a block whose bytes are wrong.
    func drop(_ key: BlockKey) {
        lock.withLock {
            guard let header = find(key) else { return }
            readers.withWrite { llvs_shim_store_release(header.count, 0) }
        }
    }

    // MARK: Under the lock

    private func insert(_ key: BlockKey, _ place: Int) {
        let hash = hash(key)
        var i = Int(truncatingIfNeeded: hash) & mask
        while llvs_shim_load_word(table + i) != 0 { i = (i + 1) & mask }
        llvs_shim_store_word(table + i, (hash >> BlockCache.placeBits) << BlockCache.placeBits | UInt64(place / 16 + 1))
        blocks += 1
    }

    /// Frees at least half of a stretch. Of the blocks, only those that were read since the last time are retained.
    private func empty(_ stretch: Int, _ memory: UnsafeMutableRawPointer) {
        llvs_shim_store_relaxed(missed + missedMask + 1, 1)
        readers.withWrite {
            let start = stretch * stretchSize
            var at = 0, end = 0
            while at < filled[stretch] {
                let header = Header(start: memory + start + at)
                let key = header.key, size = Header.size + (header.room + 15) & ~15
                remove(key, memory)
                if llvs_shim_load_relaxed(header.used) != 0, llvs_shim_load_acquire(header.count) > 0, end + size <= stretchSize / 2 {
                    llvs_shim_store_relaxed(header.used, 0)
                    memmove(memory + start + end, header.start, size)
                    insert(key, start + end)
                    end += size
                }
                at += size
            }
            filled[stretch] = end
        }
    }

    /// Removes a block from the table, and moves up the entries after it. Precondition: no thread reads meanwhile.
    private func remove(_ key: BlockKey, _ memory: UnsafeMutableRawPointer) {
        var i = Int(truncatingIfNeeded: hash(key)) & mask
        while true {
            let word = table[i]
            if word == 0 { return }
            if BlockCache.header(word, in: memory).key == key { break }
            i = (i + 1) & mask
        }
        var gap = i
        i = (i + 1) & mask
        while table[i] != 0 {
            let home = Int(truncatingIfNeeded: hash(BlockCache.header(table[i], in: memory).key)) & mask
            if (i &- home) & mask >= (i &- gap) & mask {
                table[gap] = table[i]
                gap = i
            }
            i = (i + 1) & mask
        }
        table[gap] = 0
        blocks -= 1
    }

    /// The header before a block's bytes: its key, the number of valid bytes, its room, and whether it was read since the last check.
    private struct Header {
        static let size = 32
        let start: UnsafeMutableRawPointer
        var bytes: UnsafeMutableRawPointer { start + Header.size }
        var key: BlockKey {
            BlockKey(
                segment: start.load(as: UInt32.self), part: start.load(fromByteOffset: 4, as: UInt32.self),
                position: start.load(fromByteOffset: 8, as: UInt64.self))
        }
        /// Atomic.
        var count: UnsafeMutablePointer<UInt32> { (start + 16).assumingMemoryBound(to: UInt32.self) }
        var room: Int { Int(start.load(fromByteOffset: 20, as: UInt32.self)) }
        /// Atomic.
        var used: UnsafeMutablePointer<UInt32> { (start + 24).assumingMemoryBound(to: UInt32.self) }

        func initialize(_ key: BlockKey, count: Int, room: Int) {
            start.storeBytes(of: key.segment, as: UInt32.self)
            start.storeBytes(of: key.part, toByteOffset: 4, as: UInt32.self)
            start.storeBytes(of: key.position, toByteOffset: 8, as: UInt64.self)
            start.storeBytes(of: UInt32(truncatingIfNeeded: room), toByteOffset: 20, as: UInt32.self)
            llvs_shim_store_relaxed(used, 0)
            llvs_shim_store_release(self.count, UInt32(truncatingIfNeeded: count))
        }
    }
}
