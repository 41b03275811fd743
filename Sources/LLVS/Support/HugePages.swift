/// Memory that is read here and there, all over: in large pages, where the system has them, finding a place costs less.
enum HugePages {
    private static let size = 2 << 20

    /// Advises the system; no more than a hint. Of the large pages that are wholly within.
    static func advise(_ start: UnsafeMutableRawPointer, _ count: Int) {
        #if os(Linux)
        let first = (Int(bitPattern: start) + size - 1) & ~(size - 1), end = (Int(bitPattern: start) + max(0, count)) & ~(size - 1)
        if first < end, let at = UnsafeMutableRawPointer(bitPattern: first) { madvise(at, end - first, MADV_HUGEPAGE) }
        #endif
    }

    /// Gives back the pages that are wholly within: of a mapped file they come again when they are looked at, of other memory as zeros.
    static func release(_ start: UnsafeMutableRawPointer, _ range: Range<Int>) {
        let page = Int(getpagesize()), base = Int(bitPattern: start)
        let first = (base + range.lowerBound + page - 1) & ~(page - 1), end = (base + range.upperBound) & ~(page - 1)
        if first < end, let at = UnsafeMutableRawPointer(bitPattern: first) { madvise(at, end - first, MADV_DONTNEED) }
    }

    /// Not initialised; to be deallocated as any other.
    static func allocate<T: BitwiseCopyable>(_ type: T.Type, capacity: Int) -> UnsafeMutablePointer<T> {
        let memory = UnsafeMutablePointer<T>.allocate(capacity: capacity)
        advise(memory, capacity * MemoryLayout<T>.stride)
        return memory
    }
}
