/// Lets the callbacks of one registration through until it ends. Ending waits for running callbacks, and releases their payload.
///
/// Only the gate retains the payload: closures of the engine may live a little longer in a thread that is ending.
package final class CallbackGate<Payload: AnyObject & Sendable>: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var running: [pthread_t] = []
    private var closed = false
    private var payload: Payload?

    /// - Parameter payload: passed to callbacks. Released when the registration has ended and the last callback has returned.
    package init(_ payload: Payload) { self.payload = payload }

    /// Calls with the payload, unless the registration has ended.
    package func run(_ body: (Payload) -> Void) {
        let me = pthread_self()
        var kept = lock.withLock { () -> Payload? in
            if !closed { running.append(me) }
            return closed ? nil : payload
        }
        guard let given = kept.map(Unmanaged.passUnretained) else { return }
        withExtendedLifetime(kept) { HostCalls.run(self, observes: true) { given._withUnsafeGuaranteedRef(body) } }
        // Retained until the callback has returned, even if it ended its own registration. Released before any waiting thread continues.
        kept = nil
        hostLeft()
    }

    package func hostLeft() {
        let me = pthread_self()
        lock.withLock {
            if let i = running.lastIndex(where: { pthread_equal($0, me) != 0 }) { running.remove(at: i) }
            if closed { changed.broadcast() }
        }
    }

    /// Ends the registration: no callback begins after this. Running ones retain the payload until they return.
    package func cancel() {
        let freed = lock.withLock { () -> Payload? in
            closed = true
            defer { payload = nil }
            return payload
        }
        // Released here, without a lock.
        withExtendedLifetime(freed) {}
    }

    /// Ends the registration, and waits for running callbacks. Within a callback of any registration it does not wait, since the other
    /// callback may be waiting for this one.
    package func close() {
        cancel()
        lock.withLock { while !running.isEmpty && !HostCalls.isObserving { changed.wait(lock) } }
    }
}
