import LLVS

/// What somebody observes, as an asynchronous sequence: `for await` waits for what comes next.
///
/// Observing begins when the sequence is made, so that nothing is missed between that and the first `next`. What comes while nobody asks
/// is kept together: one element then stands for all of it, so that whoever is slow needs no memory for each event. The sequence ends
/// when what it observes is closed or let go of, and when the task that waits is cancelled. Observing ends with the sequence and the last
/// of its iterators: break out of the loop, or let go of them.
///
/// Several tasks may iterate over one sequence; each element goes to one of them. Ask for a sequence for each instead.
public struct Observations<Element: Sendable>: AsyncSequence, Sendable {
    fileprivate let registration: Registration<Element>

    /// Starts observing.
    /// - Parameters:
    ///   - ending: told when what is observed is no more.
    ///   - together: makes one element of one that waits and one that came later.
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

    /// An iterator that takes what comes from now on, or waits already.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(registration) }

    /// Waits for one element after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let registration: Registration<Element>
        private var signals: AsyncStream<Void>.AsyncIterator

        fileprivate init(_ registration: Registration<Element>) {
            self.registration = registration
            signals = registration.inbox.signals.makeAsyncIterator()
        }

        /// What came since the last call, or comes next; nil at the end.
        public mutating func next() async -> Element? {
            while true {
                if let element = registration.inbox.take() { return element }
                guard await signals.next() != nil else { return registration.inbox.take() }
            }
        }
    }
}

/// Where callbacks leave what iterators take: one element at most, and a signal that it is there.
private final class Inbox<Element: Sendable>: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
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

/// Ends the observations when nobody holds the sequence or an iterator of it any more.
private final class Registration<Element: Sendable>: Sendable {
    let inbox: Inbox<Element>
    private let observations: [any ExchangeObservation]

    init(_ inbox: Inbox<Element>, _ observations: [any ExchangeObservation]) {
        self.inbox = inbox
        self.observations = observations
    }
    deinit {
        inbox.end()
        // Cancelling waits for a look at the disk that is going on; no task shall wait for that with a thread of the pool.
        let cancel: @Sendable () -> Void = { [observations] in for observation in observations { observation.cancel() } }
        do { try OwnThread.start("A thread that ends an observation", cancel) } catch { cancel() }
    }
}
