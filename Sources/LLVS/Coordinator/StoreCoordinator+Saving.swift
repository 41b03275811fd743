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
    ///   - merges: whether to save also if another version than `expected` is current by now. If one of the values that are saved has
    ///     changed since, the new version stands on `expected`, and is merged with the current one at once; else it stands on the current
    ///     one.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil when there was nothing to save: no metadata, and no changes but removals of what is not there.
    ///   With `merges` that is the save, and the current version may be a merge of it.
    /// - Throws: `.moved` when another version than `expected` is current, with `merges` one that is no descendant of it; and what
    ///   `makeVersion` throws. If the merge fails, the save is a head of its own, and the next merge tells why.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil,
        merges: Bool = false, timestamp: Double? = nil
    ) throws -> Version? {
        try changes.withBorrowed {
            try save(borrowing: $0, metadata: own, branch: branch, expected: expected, merges: merges, timestamp: timestamp).version
        }
    }

    /// As above, with bytes that stay the caller's, and values that are asked for piece by piece.
    @discardableResult
    @inline(never)
    public func save(
        borrowing changes: BorrowedChanges, reading sources: [ValueSource] = [], metadata own: Metadata, branch: String?,
        expected: VersionID? = nil, merges: Bool = false, timestamp: Double? = nil
    ) throws -> Saved {
        if merges, branch != nil || expected == nil {
            throw StoreError(
                .invalidArgument,
                "A save that merges stands on the version at which its values were read. Give that version as expected, and no branch.")
        }
        let isEmpty = changes.isEmpty && sources.isEmpty && own.isEmpty
        if isEmpty || expected != nil { try store.checkOpen() }
        if isEmpty, expected == nil {
            let at = currentVersion
            return Saved(version: nil, move: Move(from: at, to: at))
        }
        // As `moving` does, but without closures, each of which would count references to all that it captures.
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

    /// Whether a save says no more than to remove what is not there.
    private func removesNothing(
        _ changes: BorrowedChanges, _ sources: [ValueSource], _ own: Metadata, at base: VersionID
    ) throws -> Bool {
        guard sources.isEmpty, own.isEmpty, !changes.isEmpty, changes.allSatisfy({ $0.kind == .remove }) else { return false }
        _ = try ChangeOrder(checking: changes)
        let ordinal = try store.requireOrdinal(base)
        return try changes.allSatisfy { try store.maps.entry($0.id, at: ordinal) == nil }
    }

    /// What a save stands on, and whether the current version goes with it. The caller holds `saveGate`.
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
                    + "not \(expected), which was expected. Read what is there now, and save again.",
                versionID: base.id.description)
        }
        return base
    }

    /// Whether one of the values that are to be saved is another at the current version than at the version where it was read.
    /// - Throws: `.moved` if the current version does not descend from that: a merge would bring along other changes of another line.
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
            .moved, "Nothing was saved: version \(current) \(how). Read what is there now, and save again.",
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
            // It is saved, as a version that came from elsewhere is, and merged as that is.
            Log.write(.warning, "Version \(version.id) was saved beside \(from) in \(store.description), and not merged yet: \(error)")
        }
        return Saved(version: version, move: Move(from: from, to: current))
    }

    /// What every version gets, with what this one gets.
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
            // With a timestamp it may have been there before, and then nothing was written.
            move(to: version.id, isAppended: timestamp == nil)
        }
        return version
    }

    /// What to save on: the current version, joined with heads that have its state. The caller holds `saveGate`.
    func base() throws -> VersionID {
        try store.join(headsLike: current, given: (options.arbiter as? RulesArbiter)?.given, knowing: &differences)
    }

    /// The current version and the heads that have its state, into which `base` merges them.
    func headsLikeCurrent() throws -> [VersionID] {
        try store.headsLike(current, given: (options.arbiter as? RulesArbiter)?.given, knowing: &differences)
    }

    /// The version that a place names; nil for a branch without a head.
    public func version(at place: Place) throws -> VersionID? {
        switch place {
        case .current: return currentVersion
        case .version(let id): return id
        case .branch(let branch): return try store.heads(onBranch: branch, limit: 1).first?.id
        }
    }

    /// The value that prevails there; nil when none does.
    public func value(_ id: ValueID, at place: Place = .current) throws -> Value? {
        guard let version = try version(at: place) else { return nil }
        return try store.value(id, at: version)
    }
}
