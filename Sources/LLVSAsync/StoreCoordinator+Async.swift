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
    ///   - merges: whether to save even if another version than `expected` is current: the save is then merged with it.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil if there was nothing to save.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        merges: Bool = false, timestamp: Double? = nil
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.save(changes, metadata: own, branch: branch, expected: expected, merges: merges, timestamp: timestamp)
        }
    }

    /// Saves as above, with values that are read piece by piece in addition to the changes. Each is an update.
    /// - Parameters:
    ///   - changes: what to insert, update and remove.
    ///   - own: metadata of the version, in addition to the coordinator's.
    ///   - branch: the branch to save on; nil: the current version's.
    ///   - expected: the version that must be current.
    ///   - merges: whether to save even if another version than `expected` is current.
    ///   - timestamp: as for `Store.makeVersion`.
    ///   - sources: returns the values to read. It is called on the thread that reads them.
    /// - Returns: the new version, or nil if there was nothing to save.
    /// - Throws: the errors of `sources`, of a source, and of the function without `async`.
    @discardableResult
    public func save(
        _ changes: [Value.Change] = [], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        merges: Bool = false, timestamp: Double? = nil, reading sources: @escaping @Sendable () throws -> [ValueSource]
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.save(
                changes, reading: sources(), metadata: own, branch: branch, expected: expected, merges: merges, timestamp: timestamp)
        }
    }

    /// Retrieves from, then sends to, each attached exchange in turn; the first failure is thrown after all have run.
    /// - Parameter progress: receives the counts of versions listed, received, added and sent.
    /// - Returns: the result of each exchange.
    /// - Throws: the first failure of an exchange; the errors of `exchangeReportingFailures`.
    @discardableResult
    public func exchange(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        let outcome = try await exchangeReportingFailures(progress: progress)
        return try cancelling { try outcome.get() }
    }

    /// Exchanges as `exchange` does, but failures, including a cancellation, are returned with the results.
    /// - Parameter progress: receives the counts of versions listed, received, added and sent.
    /// - Returns: the result of each exchange, and the error that ended it.
    /// - Throws: the errors of the function without `async`.
    public func exchangeReportingFailures(progress: ProgressCallback? = nil) async throws -> ExchangeOutcome {
        try await onOwnThread(progress: progress) { try self.exchangeReportingFailures(control: $0) }
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
        try await onOwnThread(progress: progress) {
            try self.merge(selection: selection, arbiter: arbiter, metadata: metadata, control: $0)
        }
    }

    /// Merges as `merge` does, but a failure is returned beside the move.
    /// - Parameters:
    ///   - selection: which heads take part.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the count of heads folded.
    /// - Returns: the move, and the failure.
    /// - Throws: the errors of the function without `async`.
    public func mergeReportingFailures(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> MergeOutcome {
        try await onOwnThread(progress: progress) {
            try self.mergeReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, control: $0)
        }
    }

    /// Syncs: exchanges, merges, and exchanges again if the merge changed something. The first failure is thrown after everything has run.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the progress of the exchanges and the merge.
    /// - Returns: the result.
    /// - Throws: the first failure; the errors of `syncReportingFailures`.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncResult {
        let outcome = try await syncReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, progress: progress)
        return try cancelling { try outcome.get() }
    }

    /// Syncs as `sync` does, but failures, including a cancellation, are returned with the results.
    /// - Parameters:
    ///   - selection: which heads take part in the merge.
    ///   - arbiter: decides conflicts, on the thread that does the work; nil: the coordinator's.
    ///   - metadata: of the new versions.
    ///   - progress: receives the progress of the exchanges and the merge.
    /// - Returns: the result, with the failures.
    /// - Throws: the errors of the function without `async`.
    public func syncReportingFailures(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> SyncResult {
        try await onOwnThread(progress: progress) {
            try self.syncReportingFailures(selection: selection, arbiter: arbiter, metadata: metadata, control: $0)
        }
    }

    /// Restores the snapshot beside an attached exchange into the store.
    /// - Parameter progress: receives the counts of chunks read, and of versions verified and added.
    /// - Returns: how the current version moved; nil if there was no snapshot.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func bootstrapFromSnapshot(progress: ProgressCallback? = nil) async throws -> Move? {
        try await onOwnThread(progress: progress) { try self.bootstrapFromSnapshot(control: $0) }
    }

    /// Delivers the current version after each move from now on, by any call. If it moves several times while no task waits, only the last
    /// is delivered.
    ///
    ///     for await version in coordinator.moves() { show(version) }
    /// - Returns: a sequence that ends when the coordinator is closed or released.
    public func moves() -> EventSequence<VersionID> {
        EventSequence(ending: ended, together: { $1 }) { put in [observe(put)] }
    }

    /// Attaches an exchange with the place of a URL.
    /// - Parameters:
    ///   - url: as for `Exchange.init(store:url:options:)`.
    ///   - options: what the URL cannot contain, and how to exchange.
    /// - Returns: the exchange, which is closed with the coordinator.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func connect(to url: String, options: Exchange.URLOptions = Exchange.URLOptions()) async throws -> Exchange {
        try await onOwnThread { _ in try self.connect(to: url, options: options) }
    }

    /// Returns a value at the current version, or at another; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func value(_ id: ValueID, at place: Place = .current) async throws -> Value? {
        try await onOwnThreadUnlessCancelled { try self.value(id, at: place) }
    }

    /// Returns what `undo` and `redo` would do; nil where there is nothing.
    /// - Parameter progress: receives the count of versions read.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func undoable(progress: ProgressCallback? = nil) async throws -> (undo: Undoable?, redo: Undoable?) {
        try await onOwnThread(progress: progress) { try self.undoable(control: $0) }
    }

    /// Undoes this device's last save, or group of saves, and keeps what others did since.
    /// - Parameters:
    ///   - metadata: metadata of the new version.
    ///   - progress: receives the count of versions read.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    @discardableResult
    public func undo(metadata: Metadata = Metadata(), progress: ProgressCallback? = nil) async throws -> Undone {
        try await onOwnThread(progress: progress) { try self.undo(metadata: metadata, control: $0) }
    }

    /// Reverts this device's last undo.
    /// - Parameters:
    ///   - metadata: metadata of the new version.
    ///   - progress: receives the count of versions read.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    @discardableResult
    public func redo(metadata: Metadata = Metadata(), progress: ProgressCallback? = nil) async throws -> Undone {
        try await onOwnThread(progress: progress) { try self.redo(metadata: metadata, control: $0) }
    }

    /// Undoes any version, and keeps what came after it.
    /// - Parameters:
    ///   - version: the version to undo.
    ///   - parent: for a merge: the side that remains.
    ///   - metadata: metadata of the new version.
    ///   - progress: receives the count of ids compared.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    @discardableResult
    public func revert(
        _ version: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(), progress: ProgressCallback? = nil
    ) async throws -> Undone {
        try await onOwnThread(progress: progress) { try self.revert(version, parent: parent, metadata: metadata, control: $0) }
    }

    /// Adds rules to those of the store.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func register(_ rules: [UInt8]) async throws -> Registered {
        try await onOwnThread { _ in try self.register(rules) }
    }

    /// Adds rules as JSON text to those of the store.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func register(_ rules: String) async throws -> Registered { try await register(Array(rules.utf8)) }

    /// Moves the current version.
    /// - Throws: the errors of the function without `async`.
    public func setCurrentVersion(_ id: VersionID) async throws { try await onOwnThread { _ in try self.setCurrentVersion(id) } }

    /// Uses a store that the caller owns.
    /// - Parameters:
    ///   - store: the store.
    ///   - options: as for the initialiser.
    /// - Throws: the errors of the initialiser.
    public static func open(store: Store, options: Options = Options()) async throws -> StoreCoordinator {
        try await onOwnThread { _ in try StoreCoordinator(store: store, options: options) }
    }

    /// Attaches an exchange. Its restoration state is read under its name.
    /// - Parameters:
    ///   - exchange: an exchange of this coordinator's store.
    ///   - name: a name that no other attached exchange has: `[a-z0-9._-]{1,40}`.
    ///   - place: the name of the place in results; nil for `name`.
    /// - Throws: the errors of the function without `async`.
    public func attach(_ exchange: Exchange, name: String, place: String? = nil) async throws {
        try await onOwnThread { _ in try self.attach(exchange, name: name, place: place) }
    }

    /// Closes the exchanges, and the store if the coordinator opened it. Cancelling the task does not stop this.
    /// - Throws: the errors of the function without `async`.
    public func close() async throws { try await onOwnThread { _ in try self.close() } }
}
