/// Merges received versions into the current version, alone or in whole rounds.
extension StoreCoordinator {
    /// Folds heads into the current version and moves it to the result. If all of them have the state of the current version, no version is
    /// made, and the current version moves to the newest of them.
    /// - Returns: whether the current version changed.
    @discardableResult
    public func merge(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> Bool {
        try mergeReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, control: control).get().isMove
    }

    /// The result of a merge.
    public struct MergeOutcome: Sendable {
        /// The move of the current version. It may have moved to the first content of a new store even if the merge failed.
        public var move: Move
        /// The error that ended the merge, or the reason why heads or registered rules were left out: there are rules with an unknown
        /// number.
        public var failure: (any Error)?
        /// Returns the move if nothing failed.
        public func get() throws -> Move {
            if let failure { throw failure }
            return move
        }
    }

    /// Merges as above, but returns the failure of the merge beside the move.
    public func mergeReportingFailures(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> MergeOutcome {
        try store.reloadHistory()
        let at = currentVersion
        var outcome = MergeOutcome(move: try adoptFirstContent() ?? Move(from: at, to: at))
        // Reported after the others are merged, since any device can make versions with such rules.
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

    /// Returns whether `merge` would find heads other than the current version. It may still make no version of them.
    func hasHeadsToMerge(_ selection: HeadSelection) throws -> Bool {
        try store.reloadHistory()
        let at = currentVersion
        return try at == EmptyRoot.id ? startingVersion() != nil : store.hasOtherHeads(than: at, selection)
    }

    /// Moves the current version to content that arrived before the first save. Returns nil if the current version is no longer the empty
    /// root.
    func adoptFirstContent() throws -> Move? {
        guard currentVersion == EmptyRoot.id else { return nil }
        return try moving("Adopting the first content") {
            guard currentVersion == EmptyRoot.id, let head = try startingVersion() else { return }
            move(to: head)
        }.move
    }

    /// The result of a whole round.
    public struct SyncResult: Sendable {
        /// The results of the exchanges before the merge.
        public var before: ExchangeOutcome
        /// The results of the exchanges after the merge; nil if none were needed.
        public var after: ExchangeOutcome?
        /// The move of the current version over the whole round.
        public var move: Move
        /// Whether the merge moved the current version.
        public var hasMerged = false
        /// The error that ended the merge.
        public var mergeFailure: (any Error)?
        /// The first failure of the round.
        public var failure: (any Error)? { before.failure ?? mergeFailure ?? after?.failure }
        /// Returns the result if nothing failed.
        public func get() throws -> SyncResult {
            if let failure { throw failure }
            return self
        }
    }

    /// Runs a whole round: exchanges, merges received versions into the current version, and exchanges again if the merge changed
    /// something, so that the result does not wait for the next round. If there are several exchanges, each receives the versions from the
    /// others. A place that could not be reached is tried once.
    ///
    /// The result reports failures beside what was done. Without a connection, present versions are merged nevertheless.
    /// - Throws: `.busy` from within a callback of a running exchange or merge, `.closed`.
    public func syncReportingFailures(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> SyncResult {
        try syncReportingFailures(among: nil, selection: selection, arbiter: arbiter, metadata: metadata, control)
    }

    /// Runs a round as above, with the exchanges of some names (nil: all). It may skip sending to some.
    func syncReportingFailures(
        among names: Set<String>?, selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil,
        metadata: Metadata = Metadata(), onlyReceiving: Set<String> = [], turns: TurnRunner? = nil, _ control: OperationControl
    ) throws -> SyncResult {
        let first = try exchangeReportingFailures(among: names, onlyReceiving: onlyReceiving, turns: turns, control)
        return try finishSync(
            first, among: names, isPassedOn: first.exchanges.count > 1, selection: selection, arbiter: arbiter, metadata: metadata,
            onlyReceiving: onlyReceiving, turns: turns, control)
    }

    /// Completes a round after its first exchanges.
    /// - Parameter isPassedOn: whether received versions are sent to places other than the one that they came from.
    func finishSync(
        _ first: ExchangeOutcome, among names: Set<String>?, isPassedOn: Bool, selection: HeadSelection,
        arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), onlyReceiving: Set<String>, turns: TurnRunner?,
        _ control: OperationControl
    ) throws -> SyncResult {
        var result = SyncResult(before: first, move: first.move)
        if (first.failure as? StoreError)?.code == .cancelled { return result }
        var made = false
        do {
            let merged = try mergeReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, control: control)
            result.move = result.move.followed(by: merged.move)
            result.mergeFailure = merged.failure
            made = merged.move.isMove
            result.hasMerged = made
        } catch {
            result.mergeFailure = error
        }
        if made || (isPassedOn && first.exchanges.contains { !$0.retrieved.versions.isEmpty }) {
            let silent = Set(first.exchanges.filter(\.isUnreachable).map(\.name))
            let others = silent.isEmpty ? names : (names ?? Set(exchanges.map(\.name))).subtracting(silent)
            let second = try exchangeReportingFailures(among: others, onlyReceiving: onlyReceiving, turns: turns, control)
            result.after = second
            result.move = result.move.followed(by: second.move)
        }
        return result
    }

    /// Runs a round as `syncReportingFailures`, but throws the first failure after every step had its turn.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> SyncResult {
        try syncReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, control: control).get()
    }
}
