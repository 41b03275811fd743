#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Lets one thread at a time through. A thread that comes back from within (from an arbiter or an observer) is told so,
/// instead of being left waiting for itself.
final class CoordinatorGate: @unchecked Sendable {
    private let lock = Lock()
    private let freed = Condition()
    private var owner: pthread_t?

    /// - Throws: `.busy` when this thread is inside already.
    func run<R>(_ what: String, _ body: () throws -> R) throws -> R {
        try lock.withLock {
            while let owner {
                guard pthread_equal(owner, pthread_self()) == 0 else {
                    throw StoreError(.busy, "\(what) is not possible from within a callback of a running one of the same coordinator. Do it after that call has returned.")
                }
                freed.wait(lock)
            }
            owner = pthread_self()
        }
        defer {
            lock.withLock {
                owner = nil
                freed.broadcast()
            }
        }
        return try body()
    }
}
