/// Saving on top of the current version, and reading there.
extension StoreCoordinator {
    /// What a save did.
    public struct Saved: Sendable {
        /// The new version; nil when there was nothing to save.
        public var version: Version?
        /// Where the current version was before the save, and is after it.
        public var move: Move
    }

    /// Where a value is read.
    public enum Place: Sendable {
        /// At the current version.
        case current
        /// The newest head of a branch.
        case branch(String)
        /// At this version, which must be in the store.
        case version(VersionID)
    }

    /// Records changes on top of the current version and moves it; with `branch`, on top of the newest head of that
    /// branch (the current version when it has none yet), and the current version moves only if it was that head.
    ///
    /// When heads without a branch are known that have the state of the current version, which is one of them, all of them are first
    /// merged into the version of that state that is the same everywhere, and the save stands on that.
    /// - Parameters:
    ///   - changes: what to insert, update and remove; at most one for each id.
    ///   - own: metadata of the version, besides the coordinator's `defaultMetadataForNewVersions`; its own entries win.
    ///   - branch: the branch to save on; nil: the current version's.
    ///   - expected: the version that the save is to stand on; when another is there by now, nothing is stored.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil when there was nothing to save: no changes and no metadata.
    /// - Throws: `.moved` when another version than `expected` is current, and what `makeVersion` throws.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        timestamp: Double? = nil
    ) throws -> Version? {
        try changes.withBorrowed {
            try save(borrowing: $0, metadata: own, branch: branch, expected: expected, timestamp: timestamp).version
        }
    }

    /// As above, with bytes that stay the caller's, and values that are asked for piece by piece.
    @discardableResult
    public func save(
        borrowing changes: BorrowedChanges, reading sources: [ValueSource] = [], metadata own: Metadata, branch: String?,
        expected: VersionID? = nil, timestamp: Double? = nil
    ) throws -> Saved {
        let isEmpty = changes.isEmpty && sources.isEmpty && own.isEmpty
        if isEmpty, expected == nil {
            let at = currentVersion
            return Saved(version: nil, move: Move(from: at, to: at))
        }
        // Passed by address, so that no closure on the way retains its members.
        let save = Save(changes: changes, sources: sources, own: own, branch: branch, expected: expected, timestamp: timestamp)
        let (version, move) = try withUnsafePointer(to: save) { save in try moving("Saving") { try make(save) } }
        return Saved(version: version, move: move)
    }

    /// What a save was given.
    private struct Save {
        let changes: BorrowedChanges
        let sources: [ValueSource]
        let own: Metadata
        let branch: String?
        let expected: VersionID?
        let timestamp: Double?
        var isEmpty: Bool { changes.isEmpty && sources.isEmpty && own.isEmpty }
    }

    /// Makes the version and moves to it. The caller holds `saveGate`.
    private func make(_ save: UnsafePointer<Save>) throws -> Version? {
        var all = lock.withLock { metadata }
        for entry in save.pointee.own.entries { all[entry.key] = entry.value }
        if let mark = deviceMark { all[UndoMarks.deviceKey] = mark }
        var base = current
        var movesCurrent = true
        let branch = save.pointee.branch
        if let branch {
            all.branch = branch
            if let head = try store.heads(onBranch: branch).first?.id {
                movesCurrent = head == base
                base = head
            } else {
                movesCurrent = false
            }
        }
        if let expected = save.pointee.expected, expected != base {
            throw StoreError(
                .moved,
                "Nothing was saved: version \(base) is current\(branch.map { " on the branch \"\($0)\"" } ?? ""), "
                    + "not \(expected), which was expected. Read what is there now, and save again.",
                versionID: base.description)
        }
        if save.pointee.isEmpty { return nil }
        if base == current { base = try writeRegistered() }
        if branch == nil { base = try self.base() }
        let version = try store.makeVersion(
            basedOn: base, borrowing: save.pointee.changes, reading: save.pointee.sources, metadata: all, timestamp: save.pointee.timestamp)
        if movesCurrent {
            differences.go(to: version.id, changed: save.pointee.changes, save.pointee.sources)
            move(to: version.id)
        }
        return version
    }

    /// What to save on: the current version, joined with heads that have its state. The caller holds `saveGate`.
    func base() throws -> VersionID {
        try store.join(headsLike: current, given: (options.arbiter as? RulesArbiter)?.given, knowing: &differences)
    }

    /// The version that a place names; nil for a branch without a head.
    public func version(at place: Place) throws -> VersionID? {
        switch place {
        case .current: return currentVersion
        case .version(let id): return id
        case .branch(let branch): return try store.heads(onBranch: branch).first?.id
        }
    }

    /// The value that prevails there; nil when none does.
    public func value(_ id: ValueID, at place: Place = .current) throws -> Value? {
        guard let version = try version(at: place) else { return nil }
        return try store.value(id, at: version)
    }
}
