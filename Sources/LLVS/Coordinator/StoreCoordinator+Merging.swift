/// Taking what came into the current version: merges, and whole rounds of exchanges and merges.
extension StoreCoordinator {
    /// Folds heads into the current version and moves it there. When all of them have the state of the current version, nothing is
    /// made, and the newest of them is the one to be at.
    /// - Returns: whether the current version changed.
    @discardableResult
    public func merge(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        _ control: OperationControl = OperationControl()
    ) throws -> Bool {
        try mergeAll(selection: selection, arbiter: arbiter, metadata: metadata, control).get().isMove
    }

    /// What a merge did.
    public struct MergeOutcome: Sendable {
        /// Where it moved the current version: also before it failed, to the first content of a new store.
        public var move: Move
        /// What ended it, or why heads were left out, or rules that were registered: the others are of a number that is not known here.
        public var failure: (any Error)?
        /// The move, when nothing failed.
        public func get() throws -> Move {
            if let failure { throw failure }
            return move
        }
    }

    /// As above, but the failure of the merge is told beside the move.
    public func mergeAll(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        _ control: OperationControl = OperationControl()
    ) throws -> MergeOutcome {
        try store.reloadHistory()
        let at = currentVersion
        var outcome = MergeOutcome(move: try adoptFirstContent() ?? Move(from: at, to: at))
        // Told when the others are merged: anybody can make versions with such rules.
        var leftOut: StoreError?
        do {
            let merged = try moving("Merging", control) {
                let arbiter = arbiter ?? options.arbiter
                if currentVersion != EmptyRoot.id { leftOut = try writeRegistered() }
                let merged = try store.mergeHeads(
                    into: currentVersion, arbiter: arbiter, selection: selection, metadata: metadata, control
                ) { leftOut = $0 }
                if let merged { move(to: merged.id) }
            }
            outcome.move = outcome.move.followed(by: merged.move)
            outcome.failure = leftOut
        } catch { outcome.failure = error }
        return outcome
    }

    /// Whether there are other heads for `merge` than the current version. It may make nothing of them all the same.
    func hasHeadsToMerge(_ selection: HeadSelection) throws -> Bool {
        try store.reloadHistory()
        let at = currentVersion
        return try at == EmptyRoot.id ? startingVersion() != nil : store.hasOtherHeads(than: at, selection)
    }

    /// Before the first save, content that arrived becomes the current version; nil when it is something else already.
    func adoptFirstContent() throws -> Move? {
        guard currentVersion == EmptyRoot.id else { return nil }
        return try moving("Taking up the first content") {
            guard currentVersion == EmptyRoot.id, let head = try startingVersion() else { return }
            move(to: head)
        }.move
    }

    /// What a whole round did.
    public struct SyncOutcome: Sendable {
        /// What was exchanged before the merge.
        public var before: ExchangeOutcome
        /// What was exchanged after it; nil when there was no need to.
        public var after: ExchangeOutcome?
        /// Where all of it together moved the current version.
        public var move: Move
        /// Whether the merge moved the current version.
        public var hasMerged = false
        /// What ended the merge.
        public var mergeFailure: (any Error)?
        /// The first failure of all.
        public var failure: (any Error)? { before.failure ?? mergeFailure ?? after?.failure }
        /// As it is when nothing failed.
        public func get() throws -> SyncOutcome {
            if let failure { throw failure }
            return self
        }
    }

    /// A whole round: exchanges, merges what came into the current version, and exchanges again when that changed something, so that
    /// what was merged does not wait for the next round. Of several exchanges each gets what came from the others. A place that could not
    /// be reached is tried once.
    ///
    /// What fails is told beside what was done: without a connection, what is here already is merged all the same.
    /// - Throws: `.busy` from within a callback of a running exchange or merge, `.closed`.
    public func syncAll(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        _ control: OperationControl = OperationControl()
    ) throws -> SyncOutcome {
        try syncAll(among: nil, selection: selection, arbiter: arbiter, metadata: metadata, control)
    }

    /// The same with those exchanges that have the names (nil: all), and without sending to some.
    func syncAll(
        among names: Set<String>?, selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil,
        metadata: Metadata = Metadata(), onlyReceiving: Set<String> = [], turns: TurnRunner? = nil, _ control: OperationControl
    ) throws -> SyncOutcome {
        let first = try exchangeAll(among: names, onlyReceiving: onlyReceiving, turns: turns, control)
        return try finishSync(
            first, among: names, isPassedOn: first.exchanges.count > 1, selection: selection, arbiter: arbiter, metadata: metadata,
            onlyReceiving: onlyReceiving, turns: turns, control)
    }

    /// What follows in a round when the first exchanges are done.
    /// - Parameter isPassedOn: whether what came goes to others than those that it came from.
    func finishSync(
        _ first: ExchangeOutcome, among names: Set<String>?, isPassedOn: Bool, selection: HeadSelection,
        arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), onlyReceiving: Set<String>, turns: TurnRunner?,
        _ control: OperationControl
    ) throws -> SyncOutcome {
        var outcome = SyncOutcome(before: first, move: first.move)
        if (first.failure as? StoreError)?.code == .cancelled { return outcome }
        var made = false
        do {
            let merged = try mergeAll(selection: selection, arbiter: arbiter, metadata: metadata, control)
            outcome.move = outcome.move.followed(by: merged.move)
            outcome.mergeFailure = merged.failure
            made = merged.move.isMove
            outcome.hasMerged = made
        } catch {
            outcome.mergeFailure = error
        }
        if made || (isPassedOn && first.exchanges.contains { !$0.retrieved.versions.isEmpty }) {
            let silent = Set(first.exchanges.filter(\.isUnreachable).map(\.name))
            let others = silent.isEmpty ? names : (names ?? Set(exchanges.map(\.name))).subtracting(silent)
            let second = try exchangeAll(among: others, onlyReceiving: onlyReceiving, turns: turns, control)
            outcome.after = second
            outcome.move = outcome.move.followed(by: second.move)
        }
        return outcome
    }

    /// As `syncAll`, but the first failure is thrown after everything had its turn.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        _ control: OperationControl = OperationControl()
    ) throws -> SyncOutcome { try syncAll(selection: selection, arbiter: arbiter, metadata: metadata, control).get() }
}
