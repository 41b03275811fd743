/// Advises large pages for memory that is read at random: if the system has them, finding an address costs less.
enum HugePages {
    private static let size = 2 << 20

    /// Gives the system a hint about the large pages that are completely within the range.
    static func advise(_ start: UnsafeMutableRawPointer, _ count: Int) {
        #if os(Linux)
        let first = (Int(bitPattern: start) + size - 1) & ~(size - 1), end = (Int(bitPattern: start) + max(0, count)) & ~(size - 1)
        if first < end, let at = UnsafeMutableRawPointer(bitPattern: first) { madvise(at, end - first, MADV_HUGEPAGE) }
        #endif
    }

    /// Releases the pages that are completely within the range. Pages of a mapped file are loaded again on access; pages of other memory
    /// become zeros.
    static func release(_ start: UnsafeMutableRawPointer, _ range: Range<Int>) {
        let page = Int(getpagesize()), base = Int(bitPattern: start)
        let first = (base + range.lowerBound + page - 1) & ~(page - 1), end = (base + range.upperBound) & ~(page - 1)
        if first < end, let at = UnsafeMutableRawPointer(bitPattern: first) { madvise(at, end - first, MADV_DONTNEED) }
    }

    /// Allocates memory that is not initialised. Deallocate it like any other.
    static func allocate<T: BitwiseCopyable>(_ type: T.Type, capacity: Int) -> UnsafeMutablePointer<T> {
        let memory = UnsafeMutablePointer<T>.allocate(capacity: capacity)
        advise(memory, capacity * MemoryLayout<T>.stride)
        return memory
    }
}
