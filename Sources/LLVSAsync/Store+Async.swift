import LLVS

/// Blocking calls of a store, as async functions. Each runs on a thread of its own (`onOwnThread`) and does the same as the function of
/// that name in `LLVS`; cancelling the task cancels it.
extension Store {
    /// Opens the store at `path`, or creates it, as `Store.init(path:options:)` does. `options.control` is not used.
    /// - Parameters:
    ///   - path: the directory (file), the database file (sqlite), or ignored (memory, custom).
    ///   - options: how to open it.
    ///   - progress: receives the count of versions read.
    /// - Returns: the open store, which the caller closes.
    /// - Throws: the errors of `Store.init(path:options:)`; `.cancelled` leaves nothing open.
    public static func open(path: String, options: Options = Options(), progress: ProgressCallback? = nil) async throws -> Store {
        try await onOwnThread(progress: progress) { control in
            var options = options
            options.control = control
            return try Store(path: path, options: options)
        }
    }

    /// Records one version. Waits for the disk if the durability is `full`. Cannot be cancelled, since the version may already be stored.
    /// - Parameters:
    ///   - predecessor: the version that it is made on; nil: none.
    ///   - changes: what to insert, update and remove; at most one for each id.
    ///   - metadata: metadata of the version.
    ///   - id: its id; nil: the content id, which is computed from its contents.
    ///   - timestamp: seconds since 2001-01-01 UTC, later than the predecessor's; nil: now.
    /// - Returns: the version.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func makeVersion(
        basedOn predecessor: VersionID?, changes: [Value.Change], metadata: Metadata = Metadata(), id: VersionID? = nil,
        timestamp: Double? = nil
    ) async throws -> Version {
        try await onOwnThread { _ in
            try self.makeVersion(basedOn: predecessor, changes: changes, metadata: metadata, id: id, timestamp: timestamp)
        }
    }

    /// Makes a version, with values that are read piece by piece in addition to the changes. Each is an update.
    /// - Parameters:
    ///   - predecessor: the version that it is based on; nil: none.
    ///   - changes: what to insert, update and remove.
    ///   - metadata: metadata of the version.
    ///   - id: the id; nil: one that is derived from the content.
    ///   - timestamp: seconds since 2001-01-01 UTC; nil: the current time.
    ///   - sources: returns the values to read. It is called on the thread that reads them.
    /// - Throws: the errors of `sources`, of a source, and of the function without `async`.
    @discardableResult
    public func makeVersion(
        basedOn predecessor: VersionID?, changes: [Value.Change] = [], metadata: Metadata = Metadata(), id: VersionID? = nil,
        timestamp: Double? = nil, reading sources: @escaping @Sendable () throws -> [ValueSource]
    ) async throws -> Version {
        try await onOwnThread { _ in
            try self.makeVersion(
                basedOn: predecessor, changes: changes, reading: sources(), metadata: metadata, id: id, timestamp: timestamp)
        }
    }

    /// Merges two versions. The arbiter is called on the thread that does the work.
    /// - Parameters:
    ///   - a: one version; "ours" for arbiters that distinguish the sides.
    ///   - b: the other.
    ///   - arbiter: decides the values that both sides changed.
    ///   - metadata: of the new version.
    ///   - relation: how to merge versions without a common ancestor.
    ///   - progress: receives the count of ids compared.
    /// - Returns: the merge version; or, if one is an ancestor of the other, the descendant.
    /// - Throws: the errors of the function without `async`. After a cancellation nothing is stored.
    @discardableResult
    public func merge(
        _ a: VersionID, with b: VersionID, arbiter: any MergeArbiter, metadata: Metadata = Metadata(), relation: MergeRelation = .any,
        progress: ProgressCallback? = nil
    ) async throws -> Version {
        try await onOwnThread(progress: progress) { control in
            try self.merge(a, with: b, arbiter: arbiter, metadata: metadata, relation: relation, control: control)
        }
    }

    /// Folds heads into one.
    /// - Parameters:
    ///   - into: the version that the result descends from.
    ///   - arbiter: decides the values that both sides of a step changed.
    ///   - selection: which heads take part.
    ///   - metadata: of the new versions.
    ///   - progress: receives the count of heads folded.
    /// - Returns: the resulting version, or nil when it is `into` itself.
    /// - Throws: the errors of the function without `async`. After a cancellation nothing is stored.
    @discardableResult
    public func mergeHeads(
        into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection = .unbranched, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Version? {
        try await onOwnThread(progress: progress) { control in
            try self.mergeHeads(into: into, arbiter: arbiter, selection: selection, metadata: metadata, control: control)
        }
    }

    /// Reads every record and every value, and reports damage.
    /// - Parameter progress: receives the count of versions read.
    /// - Returns: the report; damage is in it, not thrown.
    /// - Throws: the errors of the function without `async`.
    public func verify(progress: ProgressCallback? = nil) async throws -> VerifyReport {
        try await onOwnThread(progress: progress) { try self.verify(control: $0) }
    }

    /// Counts the bytes on the medium by kind, by prefix of ids, by month and by version, and what only the past holds.
    /// - Parameters:
    ///   - query: what to count, and how to group it.
    ///   - progress: receives the count of versions read.
    /// - Returns: the report.
    /// - Throws: the errors of the function without `async`.
    public func size(_ query: SizeQuery = SizeQuery(), progress: ProgressCallback? = nil) async throws -> SizeReport {
        try await onOwnThread(progress: progress) { try self.size(query, control: $0) }
    }

    /// Erases values on this device: afterwards no file of the store, and no cache in it, has their bytes.
    /// - Parameters:
    ///   - query: which values.
    ///   - progress: receives the count of versions read.
    /// - Returns: the report.
    /// - Throws: the errors of the function without `async`. After a cancellation nothing was ordered.
    @discardableResult
    public func erase(_ query: ErasureQuery, progress: ProgressCallback? = nil) async throws -> ErasureReport {
        try await onOwnThread(progress: progress) { try self.erase(query, control: $0) }
    }

    /// Forgets the values that the policy of this device does not keep.
    /// - Returns: the report.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func forget(_ query: ForgetQuery = ForgetQuery(), progress: ProgressCallback? = nil) async throws -> ForgetReport {
        try await onOwnThread(progress: progress) { try self.forget(query, control: $0) }
    }

    /// Sets whose orders to erase count on this device, and what it keeps, from now on and at later openings.
    /// - Parameters:
    ///   - policy: JSON: `{"erase":{"mode":"members"}}`.
    ///   - secrets: for "members": what all devices share.
    /// - Throws: the errors of the function without `async`.
    public func setForgetting(_ policy: [UInt8], secrets: [[UInt8]] = []) async throws {
        try await onOwnThread(progress: nil) { _ in try self.setForgetting(policy, secrets: secrets) }
    }

    /// Returns the policy of this device as JSON, without its secrets.
    /// - Throws: the errors of the function without `async`.
    public func forgetting() async throws -> [UInt8] { try await onOwnThreadUnlessCancelled { try self.forgetting() } }

    /// Follows or keeps what an order of another device names.
    /// - Throws: the errors of the function without `async`.
    public func decideErasure(_ id: ValueID, to decision: ErasureDecision) async throws {
        try await onOwnThread(progress: nil) { _ in try self.decideErasure(id, to: decision) }
    }

    /// Signs an order to erase, or one that replaces the stewards, as a further steward.
    /// - Returns: the id of the order with the signature.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func signErasure(_ id: ValueID, signer: [UInt8]) async throws -> ValueID {
        try await onOwnThread(progress: nil) { _ in try self.signErasure(id, signer: signer) }
    }

    /// Compacts small files of the store into large ones.
    /// - Parameter progress: receives the count of bytes written.
    /// - Returns: the report.
    /// - Throws: the errors of the function without `async`. After a cancellation nothing is lost.
    @discardableResult
    public func compact(progress: ProgressCallback? = nil) async throws -> CompactionReport {
        try await onOwnThread(progress: progress) { try self.compact(control: $0) }
    }

    /// Adds versions as one batch, predecessors first, whatever their order.
    /// - Parameters:
    ///   - received: the versions with their changes.
    ///   - isVerifying: whether to read all present versions for damage.
    ///   - progress: receives the count of versions added.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    public func add(
        _ received: [ReceivedVersion], isVerifying: Bool = false, progress: ProgressCallback? = nil
    ) async throws -> [Addition] {
        try await onOwnThread(progress: progress) { try self.add(received, isVerifying: isVerifying, control: $0) }
    }

    /// Delivers the versions that enter the history from now on, whether this handle, another handle or another process added them.
    /// Versions that arrive while no task waits are one element.
    ///
    ///     for await added in try store.newVersions() { show(added) }
    ///
    /// The first element may contain versions that were added earlier elsewhere, and that this handle had not read yet.
    /// - Returns: a sequence that ends when the store is closed or released. It does not keep the store open.
    /// - Throws: `.closed`, `.busy` and `.io`, as `Store.observeAdditions`.
    public func newVersions() throws -> EventSequence<[VersionID]> {
        try EventSequence(ending: ended, together: { $0 + $1 }) { put in
            let ids = observeVersions(put)
            // `observeAdditions` finds versions of other handles and processes; `observeVersions` reports them.
            do { return [ids, try observeAdditions {}] } catch {
                ids.cancel()
                throw error
            }
        }
    }
}
