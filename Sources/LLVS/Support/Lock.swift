#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A pthread mutex. (ThreadSanitizer reports false races on `Synchronization.Mutex`.)
public final class Lock: @unchecked Sendable {
    let raw: UnsafeMutablePointer<pthread_mutex_t>
    public init() {
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_mutex_t())
        pthread_mutex_init(raw, nil)
    }
    deinit { pthread_mutex_destroy(raw); raw.deallocate() }
    @inline(__always) public func lock() { pthread_mutex_lock(raw) }
    @inline(__always) public func unlock() { pthread_mutex_unlock(raw) }
    @inline(__always) public func withLock<R>(_ body: () throws -> R) rethrows -> R {
        lock(); defer { unlock() }
        return try body()
    }
}

/// A pthread condition, always waited on with one lock.
public final class Condition: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<pthread_cond_t>
    public init() {
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_cond_t())
        pthread_cond_init(raw, nil)
    }
    deinit { pthread_cond_destroy(raw); raw.deallocate() }
    /// The lock must be held; it is held again on return.
    public func wait(_ lock: Lock) { pthread_cond_wait(raw, lock.raw) }
    public func broadcast() { pthread_cond_broadcast(raw) }
}
