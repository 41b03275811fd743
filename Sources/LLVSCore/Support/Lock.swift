import CLLVSShims

/// A pthread mutex with its rank in the order of locks (`LockRank`), which debug builds check. (ThreadSanitizer reports false races on
/// `Synchronization.Mutex`.)
@usableFromInline
package final class Lock: HostCallMark, @unchecked Sendable {
    // Sendable: it is a lock.
    @usableFromInline let raw: UnsafeMutablePointer<pthread_mutex_t>
    #if DEBUG
    @usableFromInline let rank: LockRank
    #endif
    /// Creates an unlocked lock.
    package init(_ rank: LockRank) {
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_mutex_t())
        pthread_mutex_init(raw, nil)
        #if DEBUG
        self.rank = rank
        #endif
    }
    /// Creates a lock that is not in the order of locks.
    package convenience init() { self.init(.unordered) }
    deinit { pthread_mutex_destroy(raw); raw.deallocate() }
    /// Waits until no thread holds it, and locks it. Not recursive.
    @inlinable @inline(__always) package func lock() {
        #if DEBUG
        HeldLocks.take(raw, rank)
        #endif
        pthread_mutex_lock(raw)
    }
    /// Unlocks it. Must be called on the thread that holds it.
    @inlinable @inline(__always) package func unlock() {
        #if DEBUG
        HeldLocks.leave(raw, rank)
        #endif
        pthread_mutex_unlock(raw)
    }
    /// Traps in debug builds if the thread does not hold the lock.
    @inline(__always) func assertHeld(_ what: StaticString) {
        #if DEBUG
        HeldLocks.check(raw, what)
        #endif
    }
    /// Runs `body` with the lock held. `body` must not call code of the host.
    @inlinable @inline(__always) package func withLock<R>(_ body: () throws -> R) rethrows -> R {
        lock(); defer { unlock() }
        return try body()
    }
    /// Runs `body` with the lock held, if `body` calls the host, which may never return.
    package func withLockWhileCalling<R>(_ body: () throws -> R) rethrows -> R {
        lock(); defer { unlock() }
        #if DEBUG
        // Locks that the host takes there, perhaps of its own stores, have an order of their own.
        let hidden = llvs_shim_locks_hide()
        defer { llvs_shim_locks_show(hidden) }
        #endif
        return try HostCalls.run(self, body)
    }
    package func hostLeft() { unlock() }
}

/// A pthread condition, always waited on with one lock.
package final class Condition: @unchecked Sendable {
    // Sendable: it is a condition.
    private let raw: UnsafeMutablePointer<pthread_cond_t>
    /// Creates a condition without waiting threads.
    package init() {
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_cond_t())
        #if canImport(Darwin)
        pthread_cond_init(raw, nil)
        #else
        // The time of day may be set back, and a short wait would take hours.
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(raw, &attributes)
        pthread_condattr_destroy(&attributes)
        #endif
    }
    deinit { pthread_cond_destroy(raw); raw.deallocate() }
    /// Waits. Precondition: the lock is held. It is held again on return.
    package func wait(_ lock: Lock) { pthread_cond_wait(raw, lock.raw) }
    /// The same as `wait`, but at most until `Clock.steady` reaches `end`: then it returns false. Wake-ups may be spurious, as with
    /// `wait`.
    package func wait(_ lock: Lock, until end: Double) -> Bool {
        let now = Clock.steady()
        guard end > now else { return false }
        // A far end is waited for in several turns.
        let isFar = end - now > 3_600, end = min(end, now + 3_600)
        #if canImport(Darwin)
        let seconds = end - now
        var time = timespec(tv_sec: time_t(seconds), tv_nsec: Int(seconds.truncatingRemainder(dividingBy: 1) * 1e9))
        return pthread_cond_timedwait_relative_np(raw, lock.raw, &time) == 0 || isFar
        #else
        var time = timespec(tv_sec: time_t(end), tv_nsec: Int(end.truncatingRemainder(dividingBy: 1) * 1e9))
        return pthread_cond_timedwait(raw, lock.raw, &time) == 0 || isFar
        #endif
    }
    /// Wakes all waiting threads.
    package func broadcast() { pthread_cond_broadcast(raw) }
}
