import LLVS

/// Calls of a store that wait, as async functions. Each runs on a thread made for it (`onOwnThread`) and does what the one of that name
/// in `LLVS` does; cancelling the task cancels it.
extension Store {
    /// Opens the store at `path`, or makes it, as `Store.init(path:options:)` does. `options.control` is not used.
    /// - Parameters:
    ///   - path: the directory (file), the database file (sqlite), or nothing of interest (memory, custom).
    ///   - options: what to open, and how.
    ///   - progress: told of the versions read.
    /// - Returns: the open store, which is the caller's to close.
    /// - Throws: what `Store.init(path:options:)` throws; `.cancelled` leaves nothing open.
    public static func open(path: String, options: Options = Options(), progress: ProgressCallback? = nil) async throws -> Store {
        try await onOwnThread(progress: progress) { control in
            var options = options
            options.control = control
            return try Store(path: path, options: options)
        }
    }

    /// Records one version. Waits for the disk where the durability is `full`; not cancelled, since it may be stored by then.
    /// - Parameters:
    ///   - predecessor: what it is built on; nil: nothing.
    ///   - changes: what to insert, update and remove; at most one for each id.
    ///   - metadata: what it carries beside its changes.
    ///   - id: its name; nil: it follows from what it holds.
    ///   - timestamp: seconds since 2001-01-01 UTC, later than the predecessor's; nil: now.
    /// - Returns: the version.
    /// - Throws: what the function without `async` throws.
    @discardableResult
    public func makeVersion(
        basedOn predecessor: VersionID?, changes: [Value.Change], metadata: Metadata = Metadata(), id: VersionID? = nil,
        timestamp: Double? = nil
    ) async throws -> Version {
        try await onOwnThread { _ in
            try self.makeVersion(basedOn: predecessor, changes: changes, metadata: metadata, id: id, timestamp: timestamp)
        }
    }

    /// Merges two versions. The arbiter is asked on the thread that does the work.
    /// - Parameters:
    ///   - a: one version; "ours" to the arbiters that tell the sides apart.
    ///   - b: the other.
    ///   - arbiter: decides what stands under ids that both sides changed.
    ///   - metadata: of the new version.
    ///   - relation: what to do about versions without a common ancestor.
    ///   - progress: told of the ids compared.
    /// - Returns: the merge version, or the newer of the two where one is an ancestor of the other.
    /// - Throws: what the function without `async` throws. Cancelled, nothing is stored.
    @discardableResult
    public func merge(
        _ a: VersionID, with b: VersionID, arbiter: any MergeArbiter, metadata: Metadata = Metadata(), relation: MergeRelation = .any,
        progress: ProgressCallback? = nil
    ) async throws -> Version {
        try await onOwnThread(progress: progress) { control in
            try self.merge(a, with: b, arbiter: arbiter, metadata: metadata, relation: relation, control)
        }
    }

    /// Folds heads into one.
    /// - Parameters:
    ///   - into: the version that the result descends from.
    ///   - arbiter: decides what stands under ids that both sides of a step changed.
    ///   - selection: which heads take part.
    ///   - metadata: of the versions that are made.
    ///   - progress: told of the heads folded in.
    /// - Returns: the resulting version, or nil when it is `into` itself.
    /// - Throws: what the function without `async` throws. Cancelled, nothing is stored.
    @discardableResult
    public func mergeHeads(
        into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection = .unbranched, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Version? {
        try await onOwnThread(progress: progress) { control in
            try self.mergeHeads(into: into, arbiter: arbiter, selection: selection, metadata: metadata, control)
        }
    }

    /// Reads every record and every value, and reports what is damaged.
    /// - Parameter progress: told of the versions read.
    /// - Returns: what was read and found; what is damaged is in it, not thrown.
    /// - Throws: what the function without `async` throws.
    public func verify(progress: ProgressCallback? = nil) async throws -> VerifyReport {
        try await onOwnThread(progress: progress) { try self.verify($0) }
    }

    /// Puts together small files of the store into large ones.
    /// - Parameter progress: told of the bytes written.
    /// - Returns: what was done.
    /// - Throws: what the function without `async` throws. Cancelled, nothing is lost.
    @discardableResult
    public func compact(progress: ProgressCallback? = nil) async throws -> CompactionReport {
        try await onOwnThread(progress: progress) { try self.compact($0) }
    }

    /// The versions that come into the history from now on, whoever adds them: this handle, others, other processes. What comes while
    /// nobody asks is one element.
    ///
    ///     for await added in try store.newVersions() { show(added) }
    ///
    /// At first come those that others had added when it began, and that this handle had not looked for yet.
    /// - Returns: a sequence that ends when the store is closed or let go of. It does not keep the store open.
    /// - Throws: `.closed`, `.busy` and `.io`, as `Store.observeAdditions`.
    public func newVersions() throws -> Observations<[VersionID]> {
        try Observations(ending: ended, together: { $0 + $1 }) { put in
            let ids = observeVersions(put)
            // What others add is looked for by this one, and told to that.
            do { return [ids, try observeAdditions {}] } catch {
                ids.cancel()
                throw error
            }
        }
    }
}
