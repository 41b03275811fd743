/// Admits one thread at a time to long work that may call the host. A thread that enters again from a callback gets an error; with a mutex
/// it would deadlock. Use `Lock` for all other purposes.
///
/// A gate is no lock in the order of locks: it is entered before any of them is taken. It may be closed for good.
package final class Gate: HostCallMark, @unchecked Sendable {
    // Sendable: it is a lock; `state` guards the rest.
    private let raw: UnsafeMutablePointer<pthread_mutex_t>
    private let state = Guarded((isClosed: false, mustClose: false))
    /// Threads that work for a call within the gate, or for one that has left it.
    private let guests = Guarded<[pthread_t]>([])
    /// The owner of the gate, for messages: "coordinator".
    private let whose: StaticString
    private let whenClosed: @Sendable () -> Void

    /// - Parameter whenClosed: called once, by the thread that closes the gate, or by the last thread within it.
    package init(_ whose: StaticString, whenClosed: @escaping @Sendable () -> Void = {}) {
        self.whose = whose
        self.whenClosed = whenClosed
        raw = .allocate(capacity: 1)
        raw.initialize(to: pthread_mutex_t())
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        // The mutex checks which thread holds it.
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
        pthread_mutex_init(raw, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }
    deinit { pthread_mutex_destroy(raw); raw.deallocate() }

    // MARK: One at a time

    /// - Parameter what: the activity for the message: "Saving".
    package func run<R>(_ what: @autoclosure () -> String, _ body: () throws -> R) throws -> R { try run(what(), nil, body) }

    /// - Parameter control: polled while another call is running, without reporting progress.
    package func run<R>(_ what: @autoclosure () -> String, _ control: OperationControl?, _ body: () throws -> R) throws -> R {
        try take(what, control?.token)
        defer { leave() }
        return try HostCalls.run(self, body)
    }

    /// Runs `body`; returns nil if another call is running.
    package func runUnlessBusy<R>(_ what: @autoclosure () -> String, _ body: () throws -> R) throws -> R? {
        guard pthread_mutex_trylock(raw) == 0 else {
            try checkOpen(what())
            return nil
        }
        defer { leave() }
        try checkOpen(what())
        return try HostCalls.run(self, body)
    }

    /// Runs `body`; returns nil if this thread is already within the gate.
    func runUnlessWithin<R>(_ body: () throws -> R) throws -> R? {
        guard wait() else { return nil }
        defer { leave() }
        return try HostCalls.run(self, body)
    }

    /// Runs `body` on a thread that works for a call within the gate, perhaps beyond its end. Calls from that thread to enter the gate are
    /// refused, as from a callback.
    package func runAsGuest<R>(_ body: () throws -> R) rethrows -> R {
        let me = pthread_self()
        guests.withLock { $0.append(me) }
        defer { guests.withLock { all in if let i = all.firstIndex(where: { pthread_equal($0, me) != 0 }) { all.remove(at: i) } } }
        return try body()
    }
    /// - Throws: `.busy` on such a thread.
    package func refuseGuest(_ what: @autoclosure () -> String) throws {
        let me = pthread_self()
        if guests.withLock({ $0.contains { pthread_equal($0, me) != 0 } }) { throw isWithin(what()) }
    }

    /// Runs `body` once no other thread is within the gate. If this thread is already within, runs it at once. `body` must not call the
    /// host.
    package func runAlone(_ body: () -> Void) {
        let isOutside = wait()
        body()
        if isOutside { leave() }
    }

    /// Enters the gate as `run` does, without a closure. Pass the result to `leave`. The conditions of `HostCalls.enter` apply.
    @inline(__always)
    package func enter(_ what: @autoclosure () -> String) throws -> HostCalls.Entered {
        try take(what)
        return HostCalls.enter(self)
    }
    @inline(__always)
    package func leave(_ entered: HostCalls.Entered) {
        HostCalls.leave(entered)
        leave()
    }

    private func take(_ what: () -> String, _ token: CancelToken? = nil) throws {
        guard try token.map({ try wait($0, what) }) ?? wait() else { throw isWithin(what()) }
        guard state.withLock({ $0.isClosed }) else { return }
        leave()
        try checkOpen(what())
    }

    private func isWithin(_ what: String) -> StoreError {
        StoreError(
            .busy, "\(what) is not possible from within a callback of a running call of the same \(whose). Do it after that has returned.")
    }

    /// Waits until the gate is free, and enters it. Returns false if this thread is already within.
    private func wait() -> Bool { pthread_mutex_lock(raw) == 0 }

    /// Waits as above, until the token is cancelled.
    private func wait(_ token: CancelToken, _ what: () -> String) throws -> Bool {
        #if canImport(Darwin)
        return wait()
        #else
        while true {
            var turn = timespec()
            clock_gettime(CLOCK_REALTIME, &turn)
            turn.tv_nsec += 20_000_000
            if turn.tv_nsec >= 1_000_000_000 { turn.tv_nsec -= 1_000_000_000; turn.tv_sec += 1 }
            let result = pthread_mutex_timedlock(raw, &turn)
            if result != ETIMEDOUT { return result == 0 }
            if token.isCancelled { throw OperationControl.ended(what()) }
        }
        #endif
    }

    private func leave() {
        let closes = state.withLock { state in
            defer { state.mustClose = false }
            return state.mustClose
        }
        pthread_mutex_unlock(raw)
        if closes { whenClosed() }
    }
    package func hostLeft() { leave() }

    // MARK: Closing

    package func checkOpen(_ what: @autoclosure () -> String) throws {
        guard state.withLock({ $0.isClosed }) else { return }
        throw StoreError(.closed, "\(what()) is not possible: the \(whose) is closed. Open another one to continue.")
    }

    /// Closes the gate after the running call. If this thread runs that call, the gate closes at its end.
    package func close() {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        guard isFirst else { return }
        guard wait() else { return state.withLock { $0.mustClose = true } }
        pthread_mutex_unlock(raw)
        whenClosed()
    }
}
