import CLLVSShims

/// The descriptors of the segments that are open for reading, by the number of the segment. Readers find them without
/// waiting for anybody and without counting references, and none is closed while somebody reads from it.
///
/// `read` is safe from any thread at any time. The others are called by one thread at a time: under the storage's `state`.
final class SegmentDescriptors: @unchecked Sendable {
    // Sendable: the table is read and written atomically, and replaced while `readers` is held for writing.
    private let readers = ReadWriteLock(.descriptors)
    /// For each segment 0, or its descriptor plus 1, and `wasUsed` when it was read from lately. Atomic.
    private var table: UnsafeMutablePointer<UInt64>
    private var capacity = 64
    private static let wasUsed: UInt64 = 1 << 32

    init() {
        table = .allocate(capacity: capacity)
        table.initialize(repeating: 0, count: capacity)
    }
    deinit { table.deallocate() }

    /// Fills the buffer from byte `position` of the segment on, as far as it reaches, and answers how many bytes that
    /// were; nil when it is not open.
    @inline(__always)
    func read(_ segment: UInt32, _ buffer: UnsafeMutableRawBufferPointer, at position: UInt64) throws(Errno) -> Int? {
        var failure: Errno?
        let count = readers.withRead { () -> Int? in
            guard segment < capacity else { return nil }
            let word = llvs_shim_load_word(table + Int(segment))
            guard word != 0 else { return nil }
            if word & SegmentDescriptors.wasUsed == 0 { llvs_shim_store_word(table + Int(segment), word | SegmentDescriptors.wasUsed) }
            let descriptor = Int32(truncatingIfNeeded: word & (SegmentDescriptors.wasUsed - 1)) - 1
            do throws(Errno) { return try System.pread(descriptor, buffer, at: position) } catch { failure = error; return nil }
        }
        if let failure { throw failure }
        return count
    }

    /// From now on this one is the segment's.
    func set(_ segment: UInt32, _ descriptor: Int32) {
        let word = UInt64(UInt32(truncatingIfNeeded: descriptor + 1))
        if segment < capacity {
            if llvs_shim_load_word(table + Int(segment)) | SegmentDescriptors.wasUsed == word | SegmentDescriptors.wasUsed { return }
            return readers.withWrite { llvs_shim_store_word(table + Int(segment), word) }
        }
        var size = capacity
        while size <= segment { size *= 2 }
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: size)
        larger.initialize(repeating: 0, count: size)
        readers.withWrite {
            larger.update(from: table, count: capacity)
            swap(&capacity, &size)
            let old = table
            table = larger
            old.deallocate()
            llvs_shim_store_word(table + Int(segment), word)
        }
    }

    /// Nobody reads from it when this returns: it may be closed.
    func remove(_ segment: UInt32) {
        guard segment < capacity, llvs_shim_load_word(table + Int(segment)) != 0 else { return }
        readers.withWrite { llvs_shim_store_word(table + Int(segment), 0) }
    }

    func removeAll() { readers.withWrite { table.update(repeating: 0, count: capacity) } }

    /// Whether it was read from since this was last called.
    func takeUse(_ segment: UInt32) -> Bool {
        guard segment < capacity else { return false }
        let word = llvs_shim_load_word(table + Int(segment))
        guard word & SegmentDescriptors.wasUsed != 0 else { return false }
        llvs_shim_store_word(table + Int(segment), word & ~SegmentDescriptors.wasUsed)
        return true
    }
}
