/// Zeroed memory straight from the system: it takes none of the process's until it is written, all of it goes when nobody uses it any more,
/// and it leaves no hole between what is allocated meanwhile.
final class MappedMemory: @unchecked Sendable {
    // Sendable: where it is never changes; whoever has it guards what is in it.
    let base: UnsafeMutableRawPointer
    let count: Int

    /// Nil when the system has none.
    init?(count: Int) {
        guard count > 0, let base = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), base != MAP_FAILED
        else { return nil }
        self.base = base
        self.count = count
    }
    deinit { munmap(base, count) }
}
