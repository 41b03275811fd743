import Glibc

/// Detects that this process is a child of the one in which a handle was created.
///
/// Uses a counter that each fork() increments in the child, since reading the process id would take a system call in every entry point. A
/// page that the system clears in each child detects children created by _Fork or clone, which skip fork's handlers, if the system supports
/// it (Linux from 4.14).
enum ForkGuard {
    private nonisolated(unsafe) static let counter: UnsafeMutablePointer<UInt32> = {
        let counter = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
        counter.initialize(to: 0)
        return counter
    }()
    /// Nonzero in the process that wrote it.
    private nonisolated(unsafe) static let mark: UnsafeMutablePointer<UInt32>? = {
        let size = sysconf(Int32(_SC_PAGESIZE)), wipeOnFork: Int32 = 18
        guard size > 0, let page = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page != MAP_FAILED else {
            return nil
        }
        guard madvise(page, size, wipeOnFork) == 0 else { munmap(page, size); return nil }
        let mark = page.assumingMemoryBound(to: UInt32.self)
        mark.pointee = 1
        return mark
    }()
    private static let registered: Bool = {
        (_, _) = (counter, mark)
        return pthread_atfork(nil, nil, { ForkGuard.raise() }) == 0
    }()
    private static func raise() {
        counter.pointee &+= 1
        mark?.pointee = 1
    }

    /// The number of forks between the first process that loaded the library and this one.
    static var generation: UInt32 {
        _ = registered
        if let mark, mark.pointee == 0 { raise() }
        return counter.pointee
    }
}
