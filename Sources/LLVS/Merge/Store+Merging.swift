/// Merging versions and heads, and undoing.
extension Store {
    /// Merges two versions and returns the result: the newer of the two when one is an ancestor of the other
    /// (nothing is stored), else a merge version.
    ///
    /// The order of the arguments does not matter but for the `ours` and `theirs` arbiters. Replicas that
    /// resolve alike make the same version. When the heads have equal states, or both sides hold only merges
    /// since their common ancestors, the arbiter is not asked: the newer's state stands, and the version is empty.
    /// - Throws: `.unknownVersion`, `.unresolvedConflict`, `.noCommonAncestor` (with `.related`), what the arbiter
    ///   throws, and what `makeVersion` throws. Nothing is stored when a merge fails.
    /// - Complexity: by the ids that differ between the two, not by the size of the store or dag.
    @discardableResult
    public func merge(_ a: VersionID, with b: VersionID, arbiter: any MergeArbiter, metadata: Metadata = Metadata(), relation: MergeRelation = .any) throws -> Version {
        try checkOpen()
        let x = try requireOrdinal(a, toBuildOn: true), y = try requireOrdinal(b, toBuildOn: true)
        switch try prepareMerge(x, y, arbiter: arbiter, metadata: metadata, relation: relation) {
        case .fastForward(let ordinal): return try version(ordinal)
        case .version(let version, let first, let second, let changes):
            try checkWritable("Merging")
            inFlight.begin(version.id)
            defer { inFlight.end(version.id) }
            return try withExtendedLifetime(changes) {
                let recorded = recordChanges(changes)
                if let existing = try existingVersion(version, recorded, comparingTimestamp: true) { return existing }
                try checkUnconfirmed(version, recorded)
                try commit(Draft(version: version, first: first, second: second, changes: recorded))
                return version
            }
        }
    }

    /// Borrows from `changes`, which the caller keeps alive and unchanged.
    func recordChanges(_ changes: [Value.Change]) -> [RecordChange] {
        changes.withBorrowed { Array($0) }
    }

    /// Folds heads into one: `into` and the selected heads, less any that is an ancestor of another, in canonical
    /// order from the newest down, whatever `into` is. All steps are stored as one batch, or none.
    /// - Parameter control: called with stage `.adding`, before each head is folded in. Cancelled, nothing is stored.
    /// - Returns: the resulting version, or nil when it is `into` itself.
    @discardableResult
    public func mergeHeads(into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection = .unbranched, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Version? {
        try checkOpen()
        let target = try requireOrdinal(into, toBuildOn: true)
        let candidates = try selectedHeads(target, selection)
        guard var result = candidates.first else { return nil }
        var steps: [(ordinal: UInt32, version: Version, first: UInt32, second: UInt32, changes: [Value.Change])] = []
        var places: [RecordPlace] = []
        var committed = false
        defer {
            for place in places { provisional.remove(place) }
            if !committed { for step in steps { lock.withWrite { dag.drop(step.ordinal) }; maps.drop(step.ordinal) } }
        }
        var targetIsIn = result == target || lock.withRead { dag.isAncestor(target, of: result) }
        for (i, next) in candidates.dropFirst().enumerated() {
            try control.check(.adding, i, of: candidates.count - 1, doing: "Merging heads")
            let nextHasTarget = !targetIsIn && (next == target || lock.withRead { dag.isAncestor(target, of: next) })
            let (ours, theirs) = nextHasTarget ? (next, result) : (result, next)
            targetIsIn = targetIsIn || nextHasTarget
            switch try prepareMerge(ours, theirs, arbiter: arbiter, metadata: metadata, relation: .any) {
            case .fastForward(let ordinal): result = ordinal
            case .version(let version, let first, let second, let changes):
                if let existing = try existingStep(version) { result = existing; continue }
                let draft = Draft(version: version, first: first, second: second, changes: recordChanges(changes))
                let (place, checksum) = try encoders.with { encoder -> (RecordPlace, UInt32) in
                    try encoder.encode(version, draft.changes, blobThreshold: nil) { _ in BlobID(high: 0, low: 0) }
                    return (provisional.add(try encoder.bytes(draft.changes)), encoder.checksum)
                }
                places.append(place)
                result = lock.withWrite {
                    let ordinal = appendHidden(draft)
                    dag.stage(ordinal, place, checksum)
                    return ordinal
                }
                steps.append((result, version, first, second, changes))
            }
        }
        guard result != target else { return nil }
        if steps.isEmpty { return try version(result) }
        try checkWritable("Merging heads")
        for id in steps.map(\.version.id).sorted() { inFlight.begin(id) }
        defer { for step in steps { inFlight.end(step.version.id) } }
        // The maps made so far point into the provisional records.
        for step in steps { maps.drop(step.ordinal) }
        let made = try withExtendedLifetime(steps) { () -> [VersionID] in
            // Somebody else who folded the same heads may have stored a step meanwhile: then theirs stands.
            var theirs: [UInt32: UInt32] = [:]
            lock.withWrite {
                for step in steps {
                    if let ordinal = dag.ordinal(of: step.version.id) {
                        theirs[step.ordinal] = ordinal
                        dag.drop(step.ordinal)
                    } else if !theirs.isEmpty {
                        dag.redirect(step.ordinal, theirs)
                    }
                }
            }
            let missing = steps.filter { theirs[$0.ordinal] == nil }
            try store(missing.map { step in
                let first = theirs[step.first] ?? step.first, second = theirs[step.second] ?? step.second
                return (step.ordinal, Draft(version: step.version, first: first, second: second, changes: recordChanges(step.changes)))
            })
            return missing.map(\.version.id)
        }
        committed = true
        for step in steps { maps.drop(step.ordinal) }
        if !made.isEmpty { tellOfNew(made) }
        return steps.last?.version
    }

    /// The live version of a step's id.
    /// - Throws: `.versionMismatch` when it is not a merge of these two: its state would not hold what they hold.
    private func existingStep(_ version: Version) throws -> UInt32? {
        guard let found = lock.withRead({ dag.ordinal(of: version.id).map { ($0, dag.predecessors($0).map(dag.id)) } }) else { return nil }
        guard found.1 == version.predecessors else {
            throw StoreError(.versionMismatch, "Version \(version.id) exists already, and is not the merge of \(version.predecessors.map(\.description).joined(separator: " and ")) that its id stands for.", versionID: version.id.description)
        }
        return found.0
    }

    /// `target` and the selected heads without those that are ancestors of others, newest first.
    private func selectedHeads(_ target: UInt32, _ selection: HeadSelection) throws -> [UInt32] {
        lock.withRead {
            func isNamed(_ branch: String?, _ names: [String]) -> Bool {
                guard let branch else { return false }
                return names.contains { Bytes.equal(Array($0.utf8), Array(branch.utf8)) }
            }
            var chosen = dag.heads().filter { head in
                let branch = dag.branch(head)
                switch selection {
                case .all: return true
                case .unbranched: return branch == nil
                case .unbranchedAnd(let names): return branch == nil || isNamed(branch, names)
                case .branches(let names): return isNamed(branch, names)
                }
            }
            // Heads are no ancestors of each other; only `target` can be one of theirs.
            if !chosen.contains(target), !chosen.contains(where: { dag.isAncestor(target, of: $0) }) { chosen.append(target) }
            return chosen.sorted(by: dag.isNewer)
        }
    }

    /// Records the inverse of a version's changes (against its first predecessor) on top of a head: undo that
    /// keeps what came from elsewhere. An id that has been changed again since keeps its newer value.
    /// - Throws: `.unknownVersion`, and what `makeVersion` throws.
    @discardableResult
    public func revert(_ version: VersionID, at head: VersionID, metadata: Metadata = Metadata()) throws -> Version {
        try checkWritable("Reverting")
        let undone = try requireOrdinal(version), target = try requireOrdinal(head)
        let before = lock.withRead { dag.rows[Int(undone)].first }
        let old = before == History.none ? nil : try map(before), new = try map(undone), now = try map(target)
        var changes: [Value.Change] = []
        MapNode.forEachDifference(old, new) { key, was, became in
            guard isSame(now?.lookup(key), became) else { return }
            let id = ValueID(unchecked: key)
            changes.append(was.map { .preserve(.init(id: id, version: versionID($0.version))) } ?? .remove(id))
        }
        return try makeVersion(basedOn: head, changes: changes, metadata: metadata)
    }
}
