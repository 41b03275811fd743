/// A lock for long work that calls the host back: a thread that asks for what it holds is told so, instead of waiting for
/// itself. `Lock` is the one for all else.
final class OwnedLock: HostCallMark, @unchecked Sendable {
    private let raw: UnsafeMutablePointer<pthread_mutex_t>
    override init() {
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_mutex_t())
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
        pthread_mutex_init(raw, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }
    deinit { pthread_mutex_destroy(raw); raw.deallocate() }
    /// Waits for the lock. False when the calling thread holds it already.
    func lock() -> Bool { pthread_mutex_lock(raw) == 0 }
    /// The calling thread must hold it.
    func unlock() { pthread_mutex_unlock(raw) }
    override func hostLeft() { unlock() }
}
