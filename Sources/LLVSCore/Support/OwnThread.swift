/// Starts the library's threads.
package enum OwnThread {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` on a new thread, which ends with it.
    /// - Parameters:
    ///   - what: the thread in messages, as in "A thread that watches for new versions".
    ///   - body: called once, unless this throws.
    /// - Throws: `.io` or `.outOfMemory` if no thread can be started.
    package static func start(_ what: String, _ body: @escaping @Sendable () -> Void) throws {
        let box = Unmanaged.passRetained(Work(body))
        var thread = pthread_self()
        let before = blockSignals()
        let error = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
        if var before { _ = pthread_sigmask(SIG_SETMASK, &before, nil) }
        guard error == 0 else {
            box.release()
            // The system has the same error number for a lack of memory.
            try Memory.expect(8 << 20, what)
            throw StoreError(.io, "\(what) cannot be started (error \(error)). Too many threads may be running.")
        }
        pthread_detach(thread)
    }

    /// Blocks the signals of the calling thread, and so of the threads that it creates: the host's handlers run on the host's threads.
    /// Signals for a thread's own faults stay deadly and visible. Returns the signals that were blocked before.
    private static func blockSignals() -> sigset_t? {
        var all = sigset_t(), before = sigset_t()
        sigfillset(&all)
        for signal in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT] { sigdelset(&all, signal) }
        return pthread_sigmask(SIG_SETMASK, &all, &before) == 0 ? before : nil
    }
}
