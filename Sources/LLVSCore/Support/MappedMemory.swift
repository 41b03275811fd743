/// Zeroed memory mapped directly from the system. It uses no memory of the process until it is written, is released completely when it is
/// no longer used, and leaves no hole between other allocations.
final class MappedMemory: @unchecked Sendable {
    // Sendable: its address never changes. The owner guards the content.
    let base: UnsafeMutableRawPointer
    let count: Int

    /// Nil if the system has none.
    init?(count: Int) {
        guard count > 0, let base = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), base != MAP_FAILED
        else { return nil }
        self.base = base
        self.count = count
    }
    deinit { munmap(base, count) }
}
