/// A running observation: of a store, a coordinator, an exchange or a transport. Keep it for as long as callbacks are wanted, and end it by
/// `cancel`.
///
/// Those that call back on a thread of their own (of exchanges and transports, and `Store.observeAdditions`) also end when they are let go
/// of. Those that call back on the thread of whoever made a change (`Store.observeVersions`, `StoreCoordinator.observe`) go on until they
/// are cancelled, or what they observe is gone.
public protocol ExchangeObservation: AnyObject, Sendable {
    /// Ends it: no callback begins after this. Waits for one that runs on another thread, except from within a callback of any observation,
    /// which may be what that one waits for. Any thread, any number of times.
    func cancel()
}

/// Those who want to know of events. Safe from all threads; callbacks run on the thread that tells, without
/// a lock held. None begins after cancelling, which waits for those that run, except from within any such callback.
package final class Observers<Event>: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private final class Observation: HostCallMark, ExchangeObservation, @unchecked Sendable {
        // Sendable: `lock` guards all that changes.
        let call: @Sendable (Event) -> Void
        weak var observers: Observers?
        private let lock = Lock(.leaf)
        private let finished = Condition()
        private var running: [pthread_t] = []
        private var isCancelled = false

        init(_ call: @escaping @Sendable (Event) -> Void, _ observers: Observers) { self.call = call; self.observers = observers }

        func run(_ event: Event) {
            let me = pthread_self()
            let mayRun = lock.withLock { () -> Bool in
                if !isCancelled { running.append(me) }
                return !isCancelled
            }
            guard mayRun else { return }
            HostCalls.run(self, observes: true) { call(event) }
            hostLeft()
        }

        override func hostLeft() {
            let me = pthread_self()
            lock.withLock {
                if let i = running.lastIndex(where: { pthread_equal($0, me) != 0 }) { running.remove(at: i) }
                finished.broadcast()
            }
        }

        func cancel() {
            observers?.remove(self)
            lock.withLock {
                isCancelled = true
                while !running.isEmpty && !HostCalls.isObserving { finished.wait(lock) }
            }
        }
    }

    private let lock = Lock(.leaf)
    private var observations: [Observation] = []

    package init() {}

    package func add(_ call: @escaping @Sendable (Event) -> Void) -> any ExchangeObservation {
        let observation = Observation(call, self)
        lock.withLock { observations.append(observation) }
        return observation
    }

    package var isEmpty: Bool { lock.withLock { observations.isEmpty } }

    package func tell(_ event: @autoclosure () -> Event) {
        lock.lock()
        // Mostly there are none, and then nothing is counted.
        if observations.isEmpty { return lock.unlock() }
        let current = observations
        lock.unlock()
        let event = event()
        for observation in current { observation.run(event) }
    }

    private func remove(_ observation: Observation) { lock.withLock { observations.removeAll { $0 === observation } } }
}
