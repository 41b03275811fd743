/// Lets callbacks of one registration through until it ends; ending waits for those that run, and lets go of what they are given.
///
/// The gate alone holds that: closures of the engine may live on for a moment in a thread that is about to end.
package final class CallbackGate<Payload: AnyObject & Sendable>: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var running: [pthread_t] = []
    private var closed = false
    private var payload: Payload?

    /// - Parameter payload: what callbacks are given; let go of when the registration has ended and the last of them is over.
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
        // Kept until the callback is over, also when it ended its own registration; gone before anybody who waits goes on.
        kept = nil
        hostLeft()
    }

    override package func hostLeft() {
        let me = pthread_self()
        lock.withLock {
            if let i = running.lastIndex(where: { pthread_equal($0, me) != 0 }) { running.remove(at: i) }
            if closed { changed.broadcast() }
        }
    }

    /// None begins after. Those that run keep the payload until they are over.
    package func cancel() {
        let freed = lock.withLock { () -> Payload? in
            closed = true
            defer { payload = nil }
            return payload
        }
        // Let go of here, with no lock held.
        withExtendedLifetime(freed) {}
    }

    /// The same, and waits for those that run: but not within a callback of any registration, for which one of them may be waiting.
    package func close() {
        cancel()
        lock.withLock { while !running.isEmpty && !HostCalls.isObserving { changed.wait(lock) } }
    }
}
