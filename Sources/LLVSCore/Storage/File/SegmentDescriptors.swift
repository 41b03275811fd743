import CLLVSShims

/// The descriptors of the segments that are open for reading, by segment number. Readers find them without waiting and without reference
/// counting. None is closed while a thread reads from it.
///
/// `read` may be called from any thread at any time. The others are called by one thread at a time, with the storage's `state` held.
final class SegmentDescriptors: @unchecked Sendable {
    // Sendable: the table is read and written atomically, and replaced while `readers` is held for writing.
    private let readers = ReadWriteLock(.descriptors)
    /// For each segment 0, or its descriptor plus 1, with `wasUsed` if it was read since `takeUse`. Atomic.
    private var table: UnsafeMutablePointer<UInt64>
    private var capacity = 64
    private static let wasUsed: UInt64 = 1 << 32
    /// The files of the descriptors. Written while `readers` is held for writing.
    private var identities: UnsafeMutablePointer<FileIdentity?>
    /// When each descriptor was last found to be the segment's, in milliseconds. Atomic.
    private var looks: UnsafeMutablePointer<UInt64>
    /// Milliseconds between two such checks: each is a system call, which would double the cost of reading.
    private static let pause: UInt64 = 20

    init() {
        table = .allocate(capacity: capacity)
        table.initialize(repeating: 0, count: capacity)
        identities = .allocate(capacity: capacity)
        identities.initialize(repeating: nil, count: capacity)
        looks = .allocate(capacity: capacity)
        looks.initialize(repeating: 0, count: capacity)
    }
    deinit {
        table.deallocate()
        identities.deallocate()
        looks.deallocate()
    }

    /// Fills the buffer from byte `position` of the segment on, as far as the segment reaches. Returns the number of bytes; nil if the
    /// segment is not open, or the host has closed it. If another file got its descriptor a few milliseconds ago, the bytes may be of
    /// that file: checksums detect this.
    @inline(__always)
    func read(_ segment: UInt32, _ buffer: UnsafeMutableRawBufferPointer, at position: UInt64) throws(Errno) -> Int? {
        var failure: Errno?
        let count = readers.withRead { () -> Int? in
            guard segment < capacity else { return nil }
            let word = llvs_shim_load_word(table + Int(segment))
            guard word != 0 else { return nil }
            if word & SegmentDescriptors.wasUsed == 0 { llvs_shim_store_word(table + Int(segment), word | SegmentDescriptors.wasUsed) }
            let descriptor = Int32(truncatingIfNeeded: word & (SegmentDescriptors.wasUsed - 1)) - 1
            do throws(Errno) {
                let count = try System.pread(descriptor, buffer, at: position)
                return isSegment(segment, descriptor, always: count == 0) ? count : nil
            } catch {
                if isSegment(segment, descriptor, always: true) { failure = error }
                return nil
            }
        }
        if let failure { throw failure }
        return count
    }

    /// Returns whether a descriptor is still the file that was opened. Precondition: `readers` is held for reading.
    /// - Parameter always: whether to check even if it was checked a few milliseconds ago.
    @inline(__always)
    private func isSegment(_ segment: UInt32, _ descriptor: Int32, always: Bool) -> Bool {
        let at = Int(segment), now = UInt64(max(0, Clock.coarse() * 1_000)), last = llvs_shim_load_word(looks + at)
        if !always, now >= last, now - last < SegmentDescriptors.pause { return true }
        guard identities[at]?.isOpen(descriptor) ?? true else { return false }
        llvs_shim_store_word(looks + at, now)
        return true
    }

    /// Sets the file of a segment.
    func set(_ segment: UInt32, _ file: OpenFile) {
        let word = UInt64(UInt32(truncatingIfNeeded: file.descriptor + 1)), at = Int(segment)
        if segment < capacity {
            let isSame = llvs_shim_load_word(table + at) | SegmentDescriptors.wasUsed == word | SegmentDescriptors.wasUsed
            if isSame, identities[at] == file.identity { return }
            return readers.withWrite { store(at, word, file) }
        }
        var size = capacity
        while size <= segment { size *= 2 }
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: size)
        larger.initialize(repeating: 0, count: size)
        let files = UnsafeMutablePointer<FileIdentity?>.allocate(capacity: size)
        files.initialize(repeating: nil, count: size)
        let times = UnsafeMutablePointer<UInt64>.allocate(capacity: size)
        times.initialize(repeating: 0, count: size)
        readers.withWrite {
            larger.update(from: table, count: capacity)
            files.update(from: identities, count: capacity)
            swap(&capacity, &size)
            table.deallocate()
            identities.deallocate()
            looks.deallocate()
            (table, identities, looks) = (larger, files, times)
            store(at, word, file)
        }
    }

    /// Precondition: `readers` is held for writing.
    private func store(_ segment: Int, _ word: UInt64, _ file: OpenFile) {
        llvs_shim_store_word(table + segment, word)
        identities[segment] = file.identity
        llvs_shim_store_word(looks + segment, 0)
    }

    /// Removes the file of a segment. When this returns, no thread reads from it, so it may be closed.
    func remove(_ segment: UInt32) {
        guard segment < capacity, llvs_shim_load_word(table + Int(segment)) != 0 else { return }
        readers.withWrite { llvs_shim_store_word(table + Int(segment), 0) }
    }

    func removeAll() { readers.withWrite { table.update(repeating: 0, count: capacity) } }

    /// Returns whether it was read from since the last call.
    func takeUse(_ segment: UInt32) -> Bool {
        guard segment < capacity else { return false }
        let word = llvs_shim_load_word(table + Int(segment))
        guard word & SegmentDescriptors.wasUsed != 0 else { return false }
        llvs_shim_store_word(table + Int(segment), word & ~SegmentDescriptors.wasUsed)
        return true
    }
}
