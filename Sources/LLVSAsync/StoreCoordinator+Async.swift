import LLVS

/// Blocking calls of a coordinator, as async functions on threads of their own; cancelling the task cancels them.
extension StoreCoordinator {
    /// Opens or creates the store at `path`, and continues where the coordinator of that name was. `options.store.control` is not used.
    /// - Parameters:
    ///   - path: where the store is, as for `Store.open(path:options:progress:)`.
    ///   - options: how to open the store, and how the coordinator works.
    ///   - progress: receives the count of versions read.
    /// - Returns: the coordinator, which the caller closes.
    /// - Throws: the errors of `StoreCoordinator.init(path:options:)`; `.cancelled` leaves nothing open.
    public static func open(
        path: String, options: Options = Options(), progress: ProgressCallback? = nil
    ) async throws -> StoreCoordinator {
        try await onOwnThread(progress: progress) { control in
            var options = options
            options.store.control = control
            return try StoreCoordinator(path: path, options: options)
        }
    }

    /// Records changes on top of the current version, which moves to the new one. Waits for the disk if the durability is `full`. Cannot be
    /// cancelled, since the version may already be stored.
    /// - Parameters:
    ///   - changes: what to insert, update and remove; at most one for each id.
    ///   - own: metadata of the version, in addition to the coordinator's.
    ///   - branch: the branch to save on; nil: the current version's.
    ///   - expected: the version that must be current; if another one is, nothing is stored.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil if there was nothing to save.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        timestamp: Double? = nil
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.save(changes, metadata: own, branch: branch, expected: expected, timestamp: timestamp)
        }
    }

    /// Retrieves from, then sends to, each attached exchange in turn; the first failure is thrown after all have run.
    /// - Parameter progress: receives the counts of versions listed, received, added and sent.
    /// - Returns: the result of each exchange.
    /// - Throws: the first failure of an exchange; the errors of `exchangeAll`.
    @discardableResult
    public func exchange(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        try await exchangeAll(progress: progress).get()
    }

    /// Exchanges as `exchange` does, but failures, including a cancellation, are returned with the results.
    /// - Parameter progress: receives the counts of versions listed, received, added and sent.
    /// - Returns: the result of each exchange, and the error that ended it.
    /// - Throws: the errors of the function without `async`.
    public func exchangeAll(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        try await onOwnThread(progress: progress) { try self.exchangeAll($0) }
    }

    /// Folds heads into the current version and moves it there.
    /// - Parameters:
    ///   - selection: which heads take part.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the count of heads folded.
    /// - Returns: whether the current version moved.
    /// - Throws: the errors of the function without `async`. After a cancellation nothing is stored.
    @discardableResult
    public func merge(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Bool {
        try await onOwnThread(progress: progress) { try self.merge(selection: selection, arbiter: arbiter, metadata: metadata, $0) }
    }

    /// Syncs: exchanges, merges, and exchanges again if the merge changed something. The first failure is thrown after everything has run.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the progress of the exchanges and the merge.
    /// - Returns: the outcome.
    /// - Throws: the first failure; the errors of `syncAll`.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncOutcome {
        try await syncAll(selection: selection, arbiter: arbiter, metadata: metadata, progress: progress).get()
    }

    /// Syncs as `sync` does, but failures, including a cancellation, are returned with the results.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the progress of the exchanges and the merge.
    /// - Returns: the outcome, with the failures.
    /// - Throws: the errors of the function without `async`.
    public func syncAll(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncOutcome {
        try await onOwnThread(progress: progress) { try self.syncAll(selection: selection, arbiter: arbiter, metadata: metadata, $0) }
    }

    /// Restores the snapshot beside an attached exchange into the store.
    /// - Parameter progress: receives the counts of chunks read, and of versions verified and added.
    /// - Returns: how the current version moved; nil if there was no snapshot.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func bootstrapFromSnapshot(progress: ProgressCallback? = nil) async throws -> Move? {
        try await onOwnThread(progress: progress) { try self.bootstrapFromSnapshot($0) }
    }

    /// Delivers the current version after each move from now on, by any call. If it moves several times while no task waits, only the last
    /// is delivered.
    ///
    ///     for await version in coordinator.moves() { show(version) }
    /// - Returns: a sequence that ends when the coordinator is closed or released.
    public func moves() -> Observations<VersionID> {
        Observations(ending: ended, together: { $1 }) { put in [observe(put)] }
    }
}
