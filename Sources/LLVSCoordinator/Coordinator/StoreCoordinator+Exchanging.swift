/// Attaches exchanges, and exchanges versions through them.
extension StoreCoordinator {
    /// Attaches an exchange. Its restoration state is stored under its name (`[a-z0-9._-]{1,40}`).
    /// - Parameters:
    ///   - exchange: an exchange of this coordinator's store.
    ///   - name: a name that no other attached exchange has.
    ///   - place: the name of the place in results; nil for `name`.
    public func attach(_ exchange: Exchange, name: String, place: String? = nil) throws {
        guard (1...40).contains(name.utf8.count), name.utf8.allSatisfy(CoordinatorName.isNameByte) else {
            throw StoreError(.invalidArgument, "\"\(name)\" cannot name an exchange: 1 to 40 of a-z, 0-9, dot, underscore and hyphen can.")
        }
        guard exchange.store === store else {
            throw StoreError(
                .invalidArgument,
                "The exchange \"\(name)\" works on another store than the coordinator. Open it with the coordinator's store.")
        }
        func checkIsNew() throws {
            guard !attached.contains(where: { $0.name == name }) else {
                throw StoreError(.invalidArgument, "An exchange named \"\(name)\" is attached already. Give another name.")
            }
        }
        try lock.withLock(checkIsNew)
        // A transport of the host may call back from here.
        if let state = try store.cacheGet(CoordinatorName.exchangeName(options.name, name)) { exchange.restorationState = state }
        try lock.withLock {
            try checkIsNew()
            attached.append((name, exchange, place ?? name))
        }
        attachments.tell(())
    }

    /// Attaches an exchange with the place of a URL. Results name the place by the URL. Its restoration state is stored under a name that
    /// is derived from the URL.
    /// - Parameters:
    ///   - url: as for `Exchange.init(store:url:options:)`.
    ///   - options: what the URL cannot contain, and how to exchange.
    /// - Returns: the exchange, which is closed with the coordinator.
    /// - Throws: errors from opening the exchange; `.invalidArgument` if an exchange with that URL is attached.
    @discardableResult
    public func connect(to url: String, options: Exchange.URLOptions = Exchange.URLOptions()) throws -> Exchange {
        let exchange = try Exchange(store: store, url: url, options: options)
        do { try attach(exchange, name: ExchangeURL.name(url), place: url) } catch {
            exchange.close()
            throw error
        }
        return exchange
    }

    /// Detaches an exchange without closing it. Returns nil if none has the name.
    public func detach(_ name: String) -> Exchange? {
        defer { attachments.tell(()) }
        lock.withLock { _ = unreachable.remove(name) }
        return lock.withLock { attached.firstIndex { $0.name == name }.map { attached.remove(at: $0).exchange } }
    }

    /// The attached exchanges, in the order of attaching.
    public var exchanges: [(name: String, exchange: Exchange)] { lock.withLock { attached.map { ($0.name, $0.exchange) } } }

    /// The attached exchanges with the names of their places.
    var attachedPlaces: [(name: String, exchange: Exchange, place: String)] { lock.withLock { attached } }

    /// Calls a closure whenever the other side of an attached exchange has gained versions, or may have. The calls come on a thread of the
    /// library, one at a time, until the observation is cancelled or released. Exchanges attached later are not observed. The closure may
    /// exchange. Returns nil if no exchange can be observed.
    public func observeExchanges(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        let teller = OneAtATime(changed)
        let observations = try exchanges.compactMap { try $0.exchange.observe { teller.tell() } }
        return observations.isEmpty ? nil : JoinedObservation(observations)
    }

    /// Makes calls one at a time, without a lock. News during a call leads to one more call, on the same thread.
    private final class OneAtATime: Sendable {
        private let call: @Sendable () -> Void
        private let state = Guarded((isCalling: false, isDue: false))
        init(_ call: @escaping @Sendable () -> Void) { self.call = call }

        func tell() {
            let isMine = state.withLock { state in
                if state.isCalling { state.isDue = true; return false }
                state.isCalling = true
                return true
            }
            guard isMine else { return }
            repeat {
                call()
            } while state.withLock { state in
                if !state.isDue { state.isCalling = false; return false }
                state.isDue = false
                return true
            }
        }
    }

    /// Several observations as one.
    private final class JoinedObservation: ExchangeObservation {
        private let observations: [any ExchangeObservation]
        init(_ observations: [any ExchangeObservation]) { self.observations = observations }
        deinit { cancel() }
        func cancel() { for observation in observations { observation.cancel() } }
    }

    /// The result of one exchange.
    public struct Exchanged: Sendable {
        /// The name under which it was attached.
        public var name: String
        /// The name of the place when it was attached.
        public var place: String
        /// The versions that were received, and the problems with other versions.
        public var retrieved = ExchangeResult()
        /// The versions that were sent, and the problems with other versions.
        public var sent = ExchangeResult()
        /// The error that ended it. Earlier results remain valid.
        public var failure: (any Error)?
        /// Whether receiving, and sending, was completed.
        var hasRetrieved = false, hasSent = false
        /// Whether the other side could not be reached.
        var isUnreachable: Bool {
            guard let error = failure as? StoreError else { return false }
            return error.code == .transport && error.httpStatus == 0
        }
    }

    /// The results of all exchanges in a call.
    public struct ExchangeOutcome: Sendable {
        /// The results of the exchanges that had a turn.
        public var exchanges: [Exchanged] = []
        /// The current version before and after the call. It only moves to the first content of a new store.
        public var move: Move
        /// The first failure.
        public var failure: (any Error)? { exchanges.lazy.compactMap(\.failure).first }
        /// Returns the outcome if nothing failed.
        public func get() throws -> ExchangeOutcome {
            if let failure { throw failure }
            return self
        }
    }

    /// Retrieves from each attached exchange and then sends to it, one exchange after the other. Exchanges whose other side could not be
    /// reached the last time come last, so that the others do not wait for them. The current version does not move, unless nothing had been
    /// saved yet: then it moves to the most recent unbranched head.
    ///
    /// The outcome reports the failure of an exchange beside the results of the others. If one was cancelled, those after it have no turn.
    /// - Throws: `.busy` from within a callback of a running exchange, `.closed`.
    public func exchangeReportingFailures(control: OperationControl = OperationControl()) throws -> ExchangeOutcome {
        try exchangeReportingFailures(among: nil, control)
    }

    /// The result of one exchange in its turn.
    struct Turn: Sendable {
        var part: Exchanged
        /// The move, if the coordinator adopted the first content of a new store.
        var move: Move?
    }
    /// Runs the turn of an exchange and returns its result. Returns nil if the turn continues beside the others, which do not wait for it.
    typealias TurnRunner = (
        _ name: String, _ exchange: Exchange, _ turn: @escaping @Sendable (OperationControl) -> Turn
    ) -> Turn?

    /// Exchanges as above, with the exchanges of some names (nil: all). It may skip retrieving, or skip sending to some.
    /// - Parameter run: runs each turn; nil: they run on this thread.
    func exchangeReportingFailures(
        among names: Set<String>?, onlySending: Bool = false, onlyReceiving: Set<String> = [], turns run: TurnRunner? = nil,
        _ control: OperationControl
    ) throws -> ExchangeOutcome {
        try exchangeGate.refuseGuest("Exchanging")
        return try exchangeGate.run("Exchanging", control) {
            let at = currentVersion
            var outcome = ExchangeOutcome(move: Move(from: at, to: at))
            let (all, late) = lock.withLock { (attached.filter { names?.contains($0.name) ?? true }, unreachable) }
            for (name, exchange, place) in all.filter({ !late.contains($0.name) }) + all.filter({ late.contains($0.name) }) {
                let sends = !onlyReceiving.contains(name)
                let found: Turn?
                if let run {
                    found = run(name, exchange) { [self] control in
                        exchangeGate.runAsGuest { turn(name, exchange, place, retrieves: !onlySending, sends: sends, control) }
                    }
                } else {
                    found = turn(name, exchange, place, retrieves: !onlySending, sends: sends, control)
                }
                guard let turn = found else { continue }
                let part = turn.part
                if let move = turn.move { outcome.move = outcome.move.followed(by: move) }
                outcome.exchanges.append(part)
                if (part.failure as? StoreError)?.code == .cancelled { break }
            }
            outcome.exchanges = all.compactMap { one in outcome.exchanges.first { $0.name == one.name } }
            return outcome
        }
    }

    private func turn(
        _ name: String, _ exchange: Exchange, _ place: String, retrieves: Bool, sends: Bool, _ control: OperationControl
    ) -> Turn {
        var turn = Turn(part: Exchanged(name: name, place: place))
        do {
            if retrieves {
                turn.part.retrieved = try exchange.retrieve(control: control)
                turn.part.hasRetrieved = true
            }
            turn.move = try adoptFirstContent()
            if sends {
                turn.part.sent = try exchange.send(control: control)
                turn.part.hasSent = true
            }
            try saveState(name, exchange)
            if sends, options.snapshotPolicy == .auto { try putSnapshotWhenDue(name, exchange, &turn.part.sent, control) }
        } catch {
            turn.part.failure = error
        }
        if (turn.part.failure as? StoreError)?.code != .cancelled {
            lock.withLock { _ = turn.part.isUnreachable ? unreachable.insert(name).inserted : unreachable.remove(name) != nil }
        }
        return turn
    }

    /// Exchanges as `exchangeReportingFailures`, but throws the first failure after all exchanges had their turn.
    @discardableResult
    public func exchange(control: OperationControl = OperationControl()) throws -> ExchangeOutcome {
        try exchangeReportingFailures(control: control).get()
    }

    func saveState(_ name: String, _ exchange: Exchange) throws {
        guard !store.isReadOnly else { return }
        let key = CoordinatorName.exchangeName(options.name, name)
        let state = exchange.restorationState
        if try store.cacheGet(key) ?? [] != state { try store.cachePut(key, state) }
    }
}
