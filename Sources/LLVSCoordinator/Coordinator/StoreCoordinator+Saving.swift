/// Saves on top of the current version, and reads values there.
extension StoreCoordinator {
    /// The result of a save.
    public struct Saved: Sendable {
        /// The new version; nil if there was nothing to save.
        public var version: Version?
        /// The current version before and after the save.
        public var move: Move
    }

    /// The version at which a value is read.
    public enum Place: Sendable {
        /// The current version.
        case current
        /// The newest head of a branch.
        case branch(String)
        /// A version, which must be in the store.
        case version(VersionID)
    }

    /// Records changes on top of the current version and moves it. With `branch`, records them on top of the newest head of that branch, or
    /// of the current version if the branch has no head. The current version then moves only if it was the version saved on.
    ///
    /// If the current version is a head without a branch, and other such heads have its state, all of them are merged first. The merge is
    /// the same on every device, and the save is made on top of it.
    /// - Parameters:
    ///   - changes: the values to insert, update and remove; at most one change for each id.
    ///   - own: metadata of the version, besides the coordinator's `defaultMetadataForNewVersions`; its own entries win.
    ///   - branch: the branch to save on; nil: the current version's.
    ///   - expected: the version to save on. If it is no longer the one to save on, nothing is stored.
    ///   - merges: whether to save even if another version than `expected` is current. If a saved value has changed since `expected`, the
    ///     new version is made on `expected` and merged with the current version at once. Otherwise it is made on the current version.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil if there was nothing to save: no metadata, and no changes except removals of absent values. With
    ///   `merges` the result is the save itself, and the current version may be a merge of it.
    /// - Throws: `.moved` if another version than `expected` is current, or with `merges` one that is not a descendant of it; and errors of
    ///   `makeVersion`. If the merge fails, the save remains a head of its own, and the next merge reports the reason.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        merges: Bool = false, timestamp: Double? = nil
    ) throws -> Version? {
        try changes.withBorrowed {
            try save(borrowing: $0, metadata: own, branch: branch, expected: expected, merges: merges, timestamp: timestamp).version
        }
    }

    /// Saves as above, with values that are read piece by piece in addition to the changes. Each is an update.
    /// - Throws: also the errors of a source, and what `Store.makeVersion` throws for sources. Then nothing is stored.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await the form whose sources are a closure.")
    @discardableResult
    public func save(
        _ changes: [Value.Change] = [], reading sources: [ValueSource], metadata own: Metadata = Metadata(), branch: String? = nil,
        expected: VersionID? = nil, merges: Bool = false, timestamp: Double? = nil
    ) throws -> Version? {
        try changes.withBorrowed {
            try save(
                borrowing: $0, reading: sources, metadata: own, branch: branch, expected: expected, merges: merges, timestamp: timestamp
            ).version
        }
    }

    /// Saves as above, with bytes that the caller owns.
    @discardableResult
    @inline(never)
    package func save(
        borrowing changes: BorrowedChanges, reading sources: [ValueSource] = [], metadata own: Metadata, branch: String?,
        expected: VersionID? = nil, merges: Bool = false, timestamp: Double? = nil
    ) throws -> Saved {
        if merges, branch != nil || expected == nil {
            throw StoreError(
                .invalidArgument,
                "A save that merges is based on the version at which its values were read. Give that version as expected, and no branch.")
        }
        let isEmpty = changes.isEmpty && sources.isEmpty && own.isEmpty
        if isEmpty || expected != nil { try store.checkOpen() }
        if isEmpty, expected == nil {
            let at = currentVersion
            return Saved(version: nil, move: Move(from: at, to: at))
        }
        // Does the same as `moving` without closures, since each closure would count references to all that it captures.
        let entered = try saveGate.enter("Saving")
        let from = current
        defer {
            let to = current
            saveGate.leave(entered)
            if to != from { observers.tell(to) }
        }
        if isReleased { throw ClosedNote.error }
        if merges, let expected, expected != from, try areChanged(changes, sources, between: expected, and: from) {
            return try saveAndMerge(changes, sources, allMetadata(with: own, nil), on: expected, timestamp)
        }
        let base = try self.base(branch, merges ? nil : expected)
        if try isEmpty || removesNothing(changes, sources, own, at: base.id) {
            return Saved(version: nil, move: Move(from: from, to: from))
        }
        let made = try make(changes, sources, allMetadata(with: own, branch), on: base, branch, timestamp)
        return Saved(version: made, move: Move(from: from, to: current))
    }

    /// Returns whether a save only removes absent values.
    private func removesNothing(
        _ changes: BorrowedChanges, _ sources: [ValueSource], _ own: Metadata, at base: VersionID
    ) throws -> Bool {
        guard sources.isEmpty, own.isEmpty, !changes.isEmpty, changes.allSatisfy({ $0.kind == .remove }) else { return false }
        _ = try ChangeOrder(checking: changes)
        let ordinal = try store.requireOrdinal(base)
        return try changes.allSatisfy { try store.maps.entry($0.id, at: ordinal) == nil }
    }

    /// Returns the version to save on, and whether the current version moves with it. The caller holds `saveGate`.
    private func base(_ branch: String?, _ expected: VersionID?) throws -> (id: VersionID, isCurrent: Bool) {
        var base = (id: current, isCurrent: true)
        if let branch {
            let head = try store.heads(onBranch: branch, limit: 1).first?.id
            base = (head ?? current, head == current)
        }
        if let expected, expected != base.id {
            throw StoreError(
                .moved,
                "Nothing was saved: version \(base.id) is current\(branch.map { " on the branch \"\($0)\"" } ?? ""), "
                    + "not \(expected), which was expected. Read the present values, and save again.",
                versionID: base.id.description)
        }
        return base
    }

    /// Returns whether one of the values to save differs between the current version and the version at which it was read.
    /// - Throws: `.moved` if the current version does not descend from that version: a merge would include other changes of another line.
    private func areChanged(
        _ changes: BorrowedChanges, _ sources: [ValueSource], between read: VersionID, and current: VersionID
    ) throws -> Bool {
        if read == EmptyRoot.id || current == EmptyRoot.id {
            throw moved("is current, and \(read) was expected, which is no version that was saved", current)
        }
        guard try store.isAncestor(read, of: current) else {
            throw moved("is current, and does not descend from \(read), which was expected", current)
        }
        let before = try store.requireOrdinal(read), now = try store.requireOrdinal(current)
        func isChanged(_ id: UnsafeRawBufferPointer) throws -> Bool {
            try !isSame(store.maps.entry(id, at: before), store.maps.entry(id, at: now))
        }
        if try changes.contains(where: { try isChanged($0.id) }) { return true }
        return try sources.contains { try $0.id.bytes.withUnsafeBytes { try isChanged($0) } }
    }

    private func moved(_ how: String, _ current: VersionID) -> StoreError {
        StoreError(
            .moved, "Nothing was saved: version \(current) \(how). Read the present values, and save again.",
            versionID: current.description)
    }

    /// Saves on the version where the values were read, and merges with the current version. The caller holds `saveGate`.
    private func saveAndMerge(
        _ changes: BorrowedChanges, _ sources: [ValueSource], _ metadata: Metadata, on read: VersionID, _ timestamp: Double?
    ) throws -> Saved {
        let from = current
        let version = try store.makeVersion(basedOn: read, borrowing: changes, reading: sources, metadata: metadata, timestamp: timestamp)
        do {
            let merged = try store.merge(from, with: version.id, arbiter: options.arbiter)
            differences = KnownDifferences()
            move(to: merged.id)
        } catch {
            // The save remains a version beside the current one, and a later merge includes it.
            Log.write(.warning, "Version \(version.id) was saved beside \(from) in \(store.description), and not merged yet: \(error)")
        }
        return Saved(version: version, move: Move(from: from, to: current))
    }

    /// Returns the metadata of all versions with that of this save.
    private func allMetadata(with own: Metadata, _ branch: String?) -> Metadata {
        var all = lock.withLock { metadata }
        for entry in own.entries { all[entry.key] = entry.value }
        if let mark = deviceMark { all[UndoMarks.deviceKey] = mark }
        if let branch { all.branch = branch }
        return all
    }

    /// Makes the version and moves to it. The caller holds `saveGate`.
    private func make(
        _ changes: BorrowedChanges, _ sources: [ValueSource], _ metadata: Metadata, on base: (id: VersionID, isCurrent: Bool),
        _ branch: String?, _ timestamp: Double?
    ) throws -> Version {
        var id = base.id
        if registered != nil, id == current {
            _ = try writeRegistered()
            id = current
        }
        if branch == nil { id = try self.base() }
        let version = try store.makeVersion(basedOn: id, borrowing: changes, reading: sources, metadata: metadata, timestamp: timestamp)
        if base.isCurrent {
            differences.go(to: version.id, changed: changes, sources)
            // A version with a given timestamp may have existed before. If so, nothing was written.
            move(to: version.id, isAppended: timestamp == nil)
        }
        return version
    }

    /// Returns the version to save on: the current version, merged with the heads that have its state. The caller holds `saveGate`.
    func base() throws -> VersionID {
        try store.equalStates.join(headsLike: current, given: (options.arbiter as? RulesArbiter)?.given, knowing: &differences)
    }

    /// Returns the current version and the heads that have its state, which `base` merges.
    func headsLikeCurrent() throws -> [VersionID] {
        try store.equalStates.headsLike(current, given: (options.arbiter as? RulesArbiter)?.given, knowing: &differences)
    }

    /// Returns the version that a place names; nil for a branch without a head.
    public func version(at place: Place) throws -> VersionID? {
        switch place {
        case .current: return currentVersion
        case .version(let id): return id
        case .branch(let branch): return try store.heads(onBranch: branch, limit: 1).first?.id
        }
    }

    /// Returns the value that prevails at a place; nil if there is none.
    public func value(_ id: ValueID, at place: Place = .current) throws -> Value? {
        guard let version = try version(at: place) else { return nil }
        return try store.value(id, at: version)
    }
}
