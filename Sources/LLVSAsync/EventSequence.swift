import LLVS

/// Observed events as an asynchronous sequence: `for await` waits for the next one.
///
/// Observing begins when the sequence is made, so no event is missed before the first `next`. Events that arrive while no task waits are
/// combined into one element, so a slow reader needs no memory for each event. The sequence ends when the observed object is closed or
/// released, and when the task that waits is cancelled. Observing ends when the sequence and all its iterators are released: break out of
/// the loop, or release them.
///
/// Several tasks may iterate over one sequence; each element goes to one of them. To give each task all elements, make a sequence for each.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
    fileprivate let registration: Registration<Element>

    /// Starts observing.
    /// - Parameters:
    ///   - ending: reports when the observed object has ended.
    ///   - together: combines a waiting element and a later one.
    ///   - start: registers a callback, which is called with each element until the observation is cancelled.
    init(
        ending: Observers<Void>, together: @escaping @Sendable (Element, Element) -> Element,
        _ start: (@escaping @Sendable (Element) -> Void) throws -> [any ExchangeObservation]
    ) rethrows {
        let inbox = Inbox(together)
        let end = ending.add { inbox.end() }
        do { registration = Registration(inbox, try [end] + start { inbox.put($0) }) } catch {
            end.cancel()
            throw error
        }
    }

    /// Returns an iterator over waiting and later elements.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(registration) }

    /// Waits for one element after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let registration: Registration<Element>
        private var signals: AsyncStream<Void>.AsyncIterator

        fileprivate init(_ registration: Registration<Element>) {
            self.registration = registration
            signals = registration.inbox.signals.makeAsyncIterator()
        }

        /// Returns the events since the last call, or waits for the next one; nil at the end.
        public mutating func next() async -> Element? {
            while true {
                if let element = registration.inbox.take() { return element }
                guard await signals.next() != nil else { return registration.inbox.take() }
            }
        }
    }
}

/// Passes elements from callbacks to iterators: holds at most one element, and signals that it is present.
private final class Inbox<Element: Sendable>: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let together: @Sendable (Element, Element) -> Element
    private let lock = Lock()
    /// Guarded by `lock`.
    private var waiting: Element?

    init(_ together: @escaping @Sendable (Element, Element) -> Element) {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.together = together
    }
    func put(_ element: Element) {
        lock.withLock { waiting = waiting.map { together($0, element) } ?? element }
        signal.yield()
    }
    func take() -> Element? {
        lock.withLock {
            defer { waiting = nil }; return waiting
        }
    }
    func end() { signal.finish() }
}

/// Ends the observations when the sequence and all its iterators are released.
private final class Registration<Element: Sendable>: Sendable {
    let inbox: Inbox<Element>
    private let observations: [any ExchangeObservation]

    init(_ inbox: Inbox<Element>, _ observations: [any ExchangeObservation]) {
        self.inbox = inbox
        self.observations = observations
    }
    deinit {
        inbox.end()
        // Cancelling waits for a running poll of the disk; no task may block a thread of the pool for that.
        let cancel: @Sendable () -> Void = { [observations] in for observation in observations { observation.cancel() } }
        do { try OwnThread.start("A thread that ends an observation", cancel) } catch { cancel() }
    }
}
