import LLVS

/// Calls of a coordinator that wait, as async functions on threads of their own; cancelling the task cancels them.
extension StoreCoordinator {
    /// Opens or makes the store at `path`, and takes up where the coordinator of that name left off. `options.store.control` is not used.
    /// - Parameters:
    ///   - path: where the store is, as for `Store.open(path:options:progress:)`.
    ///   - options: how it is opened, and how the coordinator works.
    ///   - progress: told of the versions read.
    /// - Returns: the coordinator, which is the caller's to close.
    /// - Throws: what `StoreCoordinator.init(path:options:)` throws; `.cancelled` leaves nothing open.
    public static func open(
        path: String, options: Options = Options(), progress: ProgressCallback? = nil
    ) async throws -> StoreCoordinator {
        try await onOwnThread(progress: progress) { control in
            var options = options
            options.store.control = control
            return try StoreCoordinator(path: path, options: options)
        }
    }

    /// Records changes on top of the current version and moves it. Waits for the disk where the durability is `full`; not cancelled, since
    /// it may be stored by then.
    /// - Parameters:
    ///   - changes: what to insert, update and remove; at most one for each id.
    ///   - own: metadata of the version, besides the coordinator's.
    ///   - branch: the branch to save on; nil: the current version's.
    ///   - expected: the version that the save is to stand on; when another is there by now, nothing is stored.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil when there was nothing to save.
    /// - Throws: what the function without `async` throws.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        timestamp: Double? = nil
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.save(changes, metadata: own, branch: branch, expected: expected, timestamp: timestamp)
        }
    }

    /// Retrieves from, then sends to, each attached exchange in turn; the first failure is thrown after all had their turn.
    /// - Parameter progress: told of the versions listed, received, added and sent.
    /// - Returns: what was done with each.
    /// - Throws: the first failure of an exchange; what `exchangeAll` throws.
    @discardableResult
    public func exchange(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        try await exchangeAll(progress: progress).get()
    }

    /// The same, but failures, a cancellation among them, are told beside what was done.
    /// - Parameter progress: told of the versions listed, received, added and sent.
    /// - Returns: what was done with each exchange, and what ended it.
    /// - Throws: what the function without `async` throws.
    public func exchangeAll(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        try await onOwnThread(progress: progress) { try self.exchangeAll($0) }
    }

    /// Folds heads into the current version and moves it there.
    /// - Parameters:
    ///   - selection: which heads take part.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the versions that are made.
    ///   - progress: told of the heads folded in.
    /// - Returns: whether the current version changed.
    /// - Throws: what the function without `async` throws. Cancelled, nothing is stored.
    @discardableResult
    public func merge(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Bool {
        try await onOwnThread(progress: progress) { try self.merge(selection: selection, arbiter: arbiter, metadata: metadata, $0) }
    }

    /// A whole round: exchanges, merges, and exchanges again when that changed something. The first failure is thrown after everything had
    /// its turn.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the versions that are made.
    ///   - progress: told of what the exchanges and the merge do.
    /// - Returns: what was done.
    /// - Throws: the first failure; what `syncAll` throws.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncOutcome {
        try await syncAll(selection: selection, arbiter: arbiter, metadata: metadata, progress: progress).get()
    }

    /// The same, but failures, a cancellation among them, are told beside what was done.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the versions that are made.
    ///   - progress: told of what the exchanges and the merge do.
    /// - Returns: what was done, and what failed.
    /// - Throws: what the function without `async` throws.
    public func syncAll(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncOutcome {
        try await onOwnThread(progress: progress) { try self.syncAll(selection: selection, arbiter: arbiter, metadata: metadata, $0) }
    }

    /// Restores the snapshot beside an attached exchange into the store.
    /// - Parameter progress: told of the chunks read, and of the versions verified and added.
    /// - Returns: where the current version was, and is; nil when there was no snapshot.
    /// - Throws: what the function without `async` throws.
    @discardableResult
    public func bootstrapFromSnapshot(progress: ProgressCallback? = nil) async throws -> Move? {
        try await onOwnThread(progress: progress) { try self.bootstrapFromSnapshot($0) }
    }

    /// The current version after each move of it from now on, by whichever call; of several moves that nobody asked for in between, the
    /// last.
    ///
    ///     for await version in coordinator.moves() { show(version) }
    /// - Returns: a sequence that ends when the coordinator is closed or let go of.
    public func moves() -> Observations<VersionID> {
        Observations(ending: ended, together: { $1 }) { put in [observe(put)] }
    }
}
