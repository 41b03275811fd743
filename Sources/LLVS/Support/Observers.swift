#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Those who want to know of events. Safe from all threads; callbacks run on the thread that tells, without
/// a lock held. Cancelling waits for a running callback (except from within it), and none comes after.
final class Observers<Event>: @unchecked Sendable {
    private final class Observation: ExchangeObservation, @unchecked Sendable {
        let call: @Sendable (Event) -> Void
        weak var observers: Observers?
        private let lock = Lock()
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
            call(event)
            lock.withLock {
                if let i = running.lastIndex(where: { pthread_equal($0, me) != 0 }) { running.remove(at: i) }
                finished.broadcast()
            }
        }

        func cancel() {
            observers?.remove(self)
            let me = pthread_self()
            lock.withLock {
                isCancelled = true
                while running.contains(where: { pthread_equal($0, me) == 0 }) { finished.wait(lock) }
            }
        }
    }

    private let lock = Lock()
    private var observations: [Observation] = []
    /// Events of threads that hold a lock which callbacks may want.
    private var held: [(thread: pthread_t, events: [Event])] = []

    /// From now on what this thread has to tell waits for `letGo`.
    func hold() { lock.withLock { held.append((pthread_self(), [])) } }

    /// Ends the last `hold` of this thread. What is returned is to be told.
    func letGo() -> [Event] {
        lock.withLock { heldByThisThread().map { held.remove(at: $0).events } ?? [] }
    }

    private func heldByThisThread() -> Int? {
        let me = pthread_self()
        return held.lastIndex { pthread_equal($0.thread, me) != 0 }
    }

    func add(_ call: @escaping @Sendable (Event) -> Void) -> any ExchangeObservation {
        let observation = Observation(call, self)
        lock.withLock { observations.append(observation) }
        return observation
    }

    func tell(_ event: @autoclosure () -> Event) {
        let current = lock.withLock { observations }
        guard !current.isEmpty else { return }
        let event = event()
        let isHeld = lock.withLock { () -> Bool in
            guard !held.isEmpty, let i = heldByThisThread() else { return false }
            held[i].events.append(event)
            return true
        }
        if isHeld { return }
        for observation in current { observation.run(event) }
    }

    private func remove(_ observation: Observation) { lock.withLock { observations.removeAll { $0 === observation } } }
}
