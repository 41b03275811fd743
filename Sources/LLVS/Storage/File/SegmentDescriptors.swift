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
    /// The files that the descriptors are of. Written while `readers` is held for writing.
    private var identities: UnsafeMutablePointer<FileIdentity?>
    /// When each was last found to be the segment's, in milliseconds. Atomic.
    private var looks: UnsafeMutablePointer<UInt64>
    /// Milliseconds between two such looks: each is a call of the system, which would double what reading costs.
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

    /// Fills the buffer from byte `position` of the segment on, as far as it reaches, and answers how many bytes that
    /// were; nil when it is not open, or not any more: the host may have closed it. If another file got its number a few milliseconds ago,
    /// the bytes may be those of that file: checksums tell.
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

    /// Whether a descriptor is of the file that was opened. `readers` is held for reading.
    /// - Parameter always: also if it was a few milliseconds ago.
    @inline(__always)
    private func isSegment(_ segment: UInt32, _ descriptor: Int32, always: Bool) -> Bool {
        let at = Int(segment), now = UInt64(max(0, Clock.coarse() * 1_000)), last = llvs_shim_load_word(looks + at)
        if !always, now >= last, now - last < SegmentDescriptors.pause { return true }
        guard identities[at]?.isOpen(descriptor) ?? true else { return false }
        llvs_shim_store_word(looks + at, now)
        return true
    }

    /// From now on this one is the segment's.
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

    /// `readers` is held for writing.
    private func store(_ segment: Int, _ word: UInt64, _ file: OpenFile) {
        llvs_shim_store_word(table + segment, word)
        identities[segment] = file.identity
        llvs_shim_store_word(looks + segment, 0)
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
