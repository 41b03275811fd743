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
        try metadata.checkMade()
        let x = try requireOrdinal(a, toBuildOn: true), y = try requireOrdinal(b, toBuildOn: true)
        // There is nothing to bring over from the empty root, and nothing that is stored can be built on what is not.
        if isVirtual(x) { return try version(y) }
        if isVirtual(y) { return try version(x) }
        switch try prepareMerge(x, y, arbiter: arbiter, metadata: metadata, relation: relation) {
        case .fastForward(let ordinal): return try version(ordinal)
        case .version(let version, let first, let second, let changes):
            try checkWritable("Merging")
            inFlight.begin(version.id)
            defer { inFlight.end(version.id) }
            return try withExtendedLifetime(changes) {
                if let existing = try existingVersion(version, changes.changes, comparingTimestamp: true) { return existing }
                try checkUnconfirmed(version, changes.changes)
                var draft = Draft(version: version, first: first, second: second, changes: changes.changes, traits: changes.traits)
                draft.located = changes.located
                try commit(draft)
                return version
            }
        }
    }

    /// Folds heads into one: `into` and the selected heads, less any that is an ancestor of another, in canonical
    /// order from the newest down, whatever `into` is. All steps are stored as one batch, or none.
    /// - Parameter control: called with stage `.adding`, before each head is folded in. Cancelled, nothing is stored.
    /// - Returns: the resulting version, or nil when it is `into` itself.
    /// - Complexity: with a built-in arbiter, by what the heads recorded since they parted, and the versions of the
    ///   history once.
    @discardableResult
    public func mergeHeads(into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection = .unbranched, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Version? {
        try checkOpen()
        try metadata.checkMade()
        let target = try requireOrdinal(into, toBuildOn: true)
        let candidates = try selectedHeads(target, selection)
        guard var result = candidates.first else { return nil }
        let began = Log.begin(.debug)
        var steps: [Step] = []
        var places: [RecordPlace] = []
        var committed = false
        defer {
            for place in places { provisional.remove(place) }
            if !committed { for step in steps { lock.withWrite { dag.drop(step.ordinal) }; maps.drop(step.ordinal) } }
        }
        // Which of the heads hold `into`: that side is `ours`.
        let holders = lock.withRead { candidates.contains(target) ? [target] : dag.descendants(of: target, among: candidates) }
        var targetIsIn = holders.contains(result)
        var merged = MergedAncestry()
        let line = MergedLine()
        for (i, next) in candidates.dropFirst().enumerated() {
            try control.check(.adding, i, of: candidates.count - 1, doing: "Merging heads")
            let (isMergedAlready, bases) = lock.withRead { () -> (Bool, [UInt32]) in
                merged.add(result, in: dag)
                return merged.contains(next) ? (true, []) : (false, merged.bases(of: next, in: dag))
            }
            if isMergedAlready { continue }
            let nextHasTarget = !targetIsIn && holders.contains(next)
            let (ours, theirs) = nextHasTarget ? (next, result) : (result, next)
            targetIsIn = targetIsIn || nextHasTarget
            if bases.contains(result) { result = next; continue }
            guard case .version(let version, let first, let second, let changes) = try prepareMerge(ours, theirs, bases: bases, arbiter: arbiter, metadata: metadata, line: line) else { continue }
            if let existing = try existingStep(version) { result = existing; continue }
            let draft = Draft(version: version, first: first, second: second, changes: changes.changes, traits: changes.traits)
            let (ordinal, place) = try withExtendedLifetime(changes) { try stage(draft) }
            places.append(place)
            steps.append(Step(ordinal: ordinal, draft: draft, changes: changes))
            result = ordinal
        }
        guard result != target else { return nil }
        if steps.isEmpty { return try version(result) }
        try checkWritable("Merging heads")
        for id in steps.map(\.draft.version.id).sorted() { inFlight.begin(id) }
        defer { for step in steps { inFlight.end(step.draft.version.id) } }
        // Maps of steps that store bytes point into the provisional records, and so do those made from them.
        let pointing = steps.drop { !$0.storesBytes }
        for step in pointing { maps.drop(step.ordinal) }
        let made = try withExtendedLifetime(steps) { () -> [VersionID] in
            // Somebody else who folded the same heads may have stored a step meanwhile: then theirs stands.
            var theirs: [UInt32: UInt32] = [:]
            lock.withWrite {
                for step in steps {
                    if let ordinal = dag.ordinal(of: step.draft.version.id) {
                        theirs[step.ordinal] = ordinal
                        dag.drop(step.ordinal)
                    } else if !theirs.isEmpty {
                        dag.redirect(step.ordinal, theirs)
                    }
                }
            }
            let missing = steps.filter { theirs[$0.ordinal] == nil }
            try store(missing.map { step in
                var draft = step.draft
                draft.first = theirs[draft.first] ?? draft.first
                draft.second = theirs[draft.second] ?? draft.second
                return (step.ordinal, draft)
            })
            return missing.map(\.draft.version.id)
        }
        committed = true
        Log.write(.debug, "Merged \(candidates.count) heads of \(description) into \(versionID(result)): \(made.count) merges stored\(Log.duration(since: began)).")
        for step in pointing { maps.drop(step.ordinal) }
        if !made.isEmpty { tellOfNew(made) }
        return steps.last?.draft.version
    }

    /// One merge of a fold, staged: to be stored with the others.
    private struct Step {
        var ordinal: UInt32
        var draft: Draft
        /// Holds what the draft borrows.
        var changes: MergeChanges
        var storesBytes: Bool { draft.changes.contains(where: \.hasData) }
    }

    /// Makes a merge that is not stored yet readable by those who know its id.
    private func stage(_ draft: Draft) throws -> (ordinal: UInt32, RecordPlace) {
        let ordinal = lock.withWrite { appendHidden(draft) }
        do {
            let (place, checksum, mapped) = try encoders.with { encoder -> (RecordPlace, UInt32, [MapChange]) in
                try encoder.encode(draft.version, draft.changes, blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
                let mapped = draft.mapChanges(ordinal, in: encoder) { id in lock.withRead { dag.ordinalIncludingStaged(of: id) } }
                return (provisional.add(try encoder.bytes(draft.changes)), encoder.checksum, mapped)
            }
            lock.withWrite { dag.stage(ordinal, place, checksum) }
            if !draft.changes.contains(where: \.hasData) {
                // What it names lies elsewhere, and stays what it is when the merge is stored.
                keepChanges(ordinal, draft, mapped)
                if let behind = maps.slot(draft.first) {
                    maps.store(ordinal, MapNode.applying(mapped[...], to: behind.root), changes: mapped.count, on: behind)
                }
            }
            return (ordinal, place)
        } catch {
            lock.withWrite { dag.drop(ordinal) }
            throw error
        }
    }

    /// The live version of a step's id.
    /// - Throws: `.versionMismatch` when it is not a merge of these two: its state would not hold what they hold.
    private func existingStep(_ version: Version) throws -> UInt32? {
        guard let found = lock.withRead({ dag.ordinal(of: version.id).map { ($0, dag.predecessors($0).map(dag.id)) } }) else { return nil }
        guard found.1 == version.predecessors else {
            throw StoreError(.versionMismatch, "Version \(version.id) exists already, and is not the merge of \(version.predecessors.map(\.description).joined(separator: " and ")) that its id stands for: somebody has taken the id. Give the merge other metadata, which makes it another version.", versionID: version.id.description)
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
            if dag.virtualRoot != target, !chosen.contains(target), dag.descendants(of: target, among: chosen).isEmpty { chosen.append(target) }
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
        let now = try map(target)
        var changes: [Value.Change] = []
        func undo(_ key: UnsafeRawBufferPointer, _ was: MapEntry?, _ became: MapEntry?) {
            guard isSame(now?.lookup(key), became) else { return }
            let id = ValueID(unchecked: key)
            changes.append(was.map { .preserve(.init(id: id, version: versionID($0.version))) } ?? .remove(id))
        }
        if before == History.none {
            try MapNode.forEachDifference(nil, map(undone), undo)
        } else {
            try forEachDifference(before, undone) { undo($0.key, $0.before, $0.after) }
        }
        return try makeVersion(basedOn: head, changes: changes, metadata: metadata)
    }
}
