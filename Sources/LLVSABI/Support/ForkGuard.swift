import Glibc

/// Notices that this process is the child of the one in which a handle was made.
///
/// A counter that each fork() raises in the child: asking for the process id would be a system call in
/// every entry point.
enum ForkGuard {
    private nonisolated(unsafe) static let counter: UnsafeMutablePointer<UInt32> = {
        let counter = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
        counter.initialize(to: 0)
        return counter
    }()
    private static let registered: Bool = {
        _ = counter
        return pthread_atfork(nil, nil, { ForkGuard.raise() }) == 0
    }()
    private static func raise() { counter.pointee &+= 1 }

    /// How many forks lie between the first process that loaded the library and this one.
    static var generation: UInt32 {
        _ = registered
        return counter.pointee
    }
}
