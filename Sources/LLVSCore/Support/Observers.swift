/// A running observation: of a store, a coordinator, an exchange or a transport. Retain it as long as you want callbacks, and end it with
/// `cancel`.
///
/// Observations that call back on a thread of their own (of exchanges and transports, and `Store.observeAdditions`) also end when they
/// are released. Those that call back on the thread that made a change (`Store.observeVersions`, `StoreCoordinator.observe`) continue
/// until they are cancelled, or the observed object is gone.
public protocol ExchangeObservation: AnyObject, Sendable {
    /// Ends the observation: no callback begins after this. Waits for a callback that runs on another thread. Within a callback of any
    /// observation it does not wait, since the other callback may be waiting for this one. May be called on any thread, any number of
    /// times.
    func cancel()
}

/// Observers of events. Safe from all threads. Callbacks run on the thread of the event, without a lock held. None begins after
/// cancelling, which waits for running ones, except within any such callback.
package final class Observers<Event>: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private final class Observation: HostCallMark, ExchangeObservation, @unchecked Sendable {
        // Sendable: `lock` guards all mutable state.
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

        func hostLeft() {
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
        // Mostly there are none. Then nothing is counted.
        if observations.isEmpty { return lock.unlock() }
        let current = observations
        lock.unlock()
        let event = event()
        for observation in current { observation.run(event) }
    }

    private func remove(_ observation: Observation) { lock.withLock { observations.removeAll { $0 === observation } } }
}
