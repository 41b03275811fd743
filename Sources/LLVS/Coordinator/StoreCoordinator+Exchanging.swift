/// The exchanges that are attached, and what goes through them.
extension StoreCoordinator {
    /// Attaches an exchange. What it wants to remember is kept under its name (`[a-z0-9._-]{1,40}`).
    /// - Parameters:
    ///   - exchange: one of this coordinator's store.
    ///   - name: unlike that of any other that is attached.
    ///   - place: what results call it; nil: its name.
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

    /// Attaches an exchange with the place of a URL. Results call it by the URL; what it wants to remember is kept under a name that is
    /// made of the URL.
    /// - Parameters:
    ///   - url: as for `Exchange.init(store:url:place:options:)`.
    ///   - place: what the URL cannot say.
    ///   - options: how the exchange goes about it.
    /// - Returns: the exchange, which is closed with the coordinator.
    /// - Throws: what opening the exchange throws; `.invalidArgument` when one of that URL is attached.
    @discardableResult
    public func attach(
        url: String, place: Exchange.URLOptions = Exchange.URLOptions(), options: Exchange.Options = Exchange.Options()
    ) throws -> Exchange {
        let exchange = try Exchange(store: store, url: url, place: place, options: options)
        do { try attach(exchange, name: ExchangeURL.name(url), place: url) } catch {
            exchange.close()
            throw error
        }
        return exchange
    }

    /// Lets go of an exchange, without closing it; nil when none has the name.
    public func detach(_ name: String) -> Exchange? {
        defer { attachments.tell(()) }
        lock.withLock { _ = unreachable.remove(name) }
        return lock.withLock { attached.firstIndex { $0.name == name }.map { attached.remove(at: $0).exchange } }
    }

    /// Those attached, in the order of attaching.
    public var exchanges: [(name: String, exchange: Exchange)] { lock.withLock { attached.map { ($0.name, $0.exchange) } } }

    /// The same with what results call them.
    var attachedPlaces: [(name: String, exchange: Exchange, place: String)] { lock.withLock { attached } }

    /// Calls back, on a thread of the library and one call at a time, whenever the other side of an exchange that is attached now has
    /// gained versions, or may have, until the observation is cancelled or let go; nil when no exchange can tell. The callback may
    /// exchange.
    public func observeExchanges(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        let teller = OneAtATime(changed)
        let observations = try exchanges.compactMap { try $0.exchange.observe { teller.tell() } }
        return observations.isEmpty ? nil : JoinedObservation(observations)
    }

    /// Calls one at a time, with no lock held: what comes meanwhile is told by one more call, on the thread of the running one.
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

    /// What became of one exchange.
    public struct Exchanged: Sendable {
        /// Under which it was attached.
        public var name: String
        /// What it was called as it was attached.
        public var place: String
        /// What came from the other side, and what could not be taken.
        public var retrieved = ExchangeResult()
        /// What went to the other side, and what could not be sent.
        public var sent = ExchangeResult()
        /// What ended it; what was done before stands.
        public var failure: (any Error)?
        /// Whether retrieving, and sending, came to its end.
        var hasRetrieved = false, hasSent = false
        /// Whether nobody answered at the other side.
        var isUnreachable: Bool {
            guard let error = failure as? StoreError else { return false }
            return error.code == .transport && error.httpStatus == 0
        }
    }

    /// What a call did with all exchanges.
    public struct ExchangeOutcome: Sendable {
        /// One for each exchange that had its turn.
        public var exchanges: [Exchanged] = []
        /// Where the current version was and is: another only where the first content of a new store was taken up.
        public var move: Move
        /// The first failure.
        public var failure: (any Error)? { exchanges.lazy.compactMap(\.failure).first }
        /// As it is when nothing failed.
        public func get() throws -> ExchangeOutcome {
            if let failure { throw failure }
            return self
        }
    }

    /// Retrieves from, then sends to, each attached exchange in turn. Those whose other side could not be reached the last time come last,
    /// so that the others do not wait for them. The current version stays where it is, unless nothing had been saved yet: then it moves to
    /// the most recent unbranched head.
    ///
    /// The failure of one exchange is told beside what others did; when it was cancelled, those behind it have no turn.
    /// - Throws: `.busy` from within a callback of a running exchange, `.closed`.
    public func exchangeAll(_ control: OperationControl = OperationControl()) throws -> ExchangeOutcome {
        try exchangeAll(among: nil, control)
    }

    /// What became of one exchange in its turn.
    struct Turn: Sendable {
        var part: Exchanged
        /// If the first content of a new store was taken up.
        var move: Move?
    }
    /// Runs the turn of an exchange, and answers what came of it; nil: it goes on beside the others, which do not wait for it.
    typealias TurnRunner = (
        _ name: String, _ exchange: Exchange, _ turn: @escaping @Sendable (OperationControl) -> Turn
    ) -> Turn?

    /// The same with those of the names (nil: all), and, if asked for, without retrieving, or without sending to some.
    /// - Parameter run: runs each turn; nil: they run here.
    func exchangeAll(
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
                turn.part.retrieved = try exchange.retrieve(control)
                turn.part.hasRetrieved = true
            }
            turn.move = try adoptFirstContent()
            if sends {
                turn.part.sent = try exchange.send(control)
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

    /// As `exchangeAll`, but the first failure is thrown after all exchanges had their turn.
    @discardableResult
    public func exchange(_ control: OperationControl = OperationControl()) throws -> ExchangeOutcome { try exchangeAll(control).get() }

    func saveState(_ name: String, _ exchange: Exchange) throws {
        guard !store.isReadOnly else { return }
        let key = CoordinatorName.exchangeName(options.name, name)
        let state = exchange.restorationState
        if try store.cacheGet(key) ?? [] != state { try store.cachePut(key, state) }
    }
}
