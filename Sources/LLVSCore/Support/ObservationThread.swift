/// A thread that calls back for one observation, and ends with it.
///
/// No callback begins after cancelling, which waits until a running one has returned, except within a callback of any observation. In a
/// forked child, where the thread does not exist, cancelling does not wait.
package final class ObservationThread: ExchangeObservation, @unchecked Sendable {
    // Sendable: `lock` of the state guards all mutable state.
    /// The state that the thread and the observation share. It may outlive the observation.
    package final class State: @unchecked Sendable {
        // Sendable: `lock` guards all mutable state.
        package let lock = Lock(.leaf)
        package let changed = Condition()
        package var isCancelled = false
        var isFinished = false
        package var isSignalled = false
        let process = getpid()
        let body: @Sendable (State) -> Void
        /// Wakes the body if it waits for something other than `changed`.
        let wake: @Sendable () -> Void

        init(body: @escaping @Sendable (State) -> Void, wake: @escaping @Sendable () -> Void) {
            self.body = body; self.wake = wake
        }
        /// Whether this is a child that a callback forked. It must not use the parent's means of watching.
        package var isInChild: Bool { getpid() != process }
        package var stops: Bool { isInChild || lock.withLock { isCancelled } }

        /// Requests one more callback. Several requests during one callback become one.
        package func signal() {
            lock.withLock {
                isSignalled = true; changed.broadcast()
            }
        }

        /// Waits for a signal. Returns false if the observation is cancelled.
        func waitForSignal() -> Bool {
            if isInChild { return false }
            return lock.withLock {
                while !isSignalled && !isCancelled { changed.wait(lock) }
                isSignalled = false
                return !isCancelled
            }
        }
    }

    package let state: State

    /// Calls `changed` once for each signal, or for several that come together.
    package convenience init(_ changed: @escaping @Sendable () -> Void) throws {
        try self.init(body: { state in while state.waitForSignal() { changed() } }, wake: {})
    }

    /// Runs `body` on a thread of its own. It must return soon after `state.stops` is true.
    package init(body: @escaping @Sendable (State) -> Void, wake: @escaping @Sendable () -> Void) throws {
        state = State(body: body, wake: wake)
        do {
            try OwnThread.start("A thread that watches for new versions") { [state] in
                HostCalls.run(PlainMark(), observes: true) { state.body(state) }
                // A child has only this thread, and ends with it.
                if !state.isInChild {
                    state.lock.withLock {
                        state.isFinished = true; state.changed.broadcast()
                    }
                }
            }
        } catch {
            state.lock.withLock { state.isFinished = true } // the throwing initializer runs `deinit`, which waits for this
            throw error
        }
    }
    deinit { cancel() }

    /// Requests one more callback. Several requests during one callback become one.
    package func signal() { state.signal() }

    package func cancel() {
        if state.isInChild { return }
        let mustWait = state.lock.withLock {
            state.isCancelled = true
            state.changed.broadcast()
            return !HostCalls.isObserving
        }
        state.wake()
        guard mustWait else { return }
        state.lock.withLock { while !state.isFinished { state.changed.wait(state.lock) } }
    }
}
