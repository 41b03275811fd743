/// Merges versions and heads.
extension Store {
    /// Merges two versions and returns the result: the newer of the two if one is an ancestor of the other (nothing is stored), else a
    /// merge version.
    ///
    /// The order of the arguments does not matter, except for the `ours` and `theirs` arbiters. Replicas that decide in the same way
    /// create the same version. The arbiter is not asked in two cases. If both sides hold only merges since their common ancestors, the
    /// larger of the two states wins (`SettledMerge`). If both have equal states (the same bytes for each id), the newer one's wins, and
    /// the version is empty. In both cases the given metadata is not used.
    /// - Parameters:
    ///   - a: one version, which is "ours" for arbiters that distinguish the sides.
    ///   - b: the other version.
    ///   - arbiter: decides about ids that both sides changed.
    ///   - metadata: the metadata of the new version.
    ///   - relation: how to treat versions without a common ancestor.
    ///   - control: called with the compared ids, with stage `.reading`. If it cancels, nothing is stored.
    /// - Throws: `.unknownVersion`, `.unresolvedConflict`, `.noCommonAncestor` (with `.related`), the errors of the arbiter, and those of
    ///   `makeVersion`. If a merge fails, nothing is stored.
    /// - Complexity: grows with the ids that differ between the two, not with the size of the store or of the history.
    @discardableResult
    public func merge(
        _ a: VersionID, with b: VersionID, arbiter: any MergeArbiter, metadata: Metadata = Metadata(), relation: MergeRelation = .any,
        control: OperationControl = OperationControl()
    ) throws -> Version {
        try checkOpen()
        try metadata.checkMade()
        try savingGuards.check(metadata)
        let paced = control.paced(.reading, doing: "Merging versions \(a) and \(b) of \(self.description)")
        try paced.look()
        let x = try requireOrdinal(a, toBuildOn: true), y = try requireOrdinal(b, toBuildOn: true)
        // The empty root has nothing to merge, and a stored version cannot have an unstored predecessor.
        if isVirtual(x) { return try version(y) }
        if isVirtual(y) { return try version(x) }
        let prepared = try notingWanted {
            try MergePreparation(store: self).prepareMerge(x, y, arbiter: arbiter, metadata: metadata, relation: relation, paced)
        }
        switch prepared {
        case .fastForward(let ordinal): return try version(ordinal)
        case .version(let version, let first, let second, let changes):
            try checkWritable("Merging")
            // From here on the version is stored, even if the call is cancelled.
            try paced.look()
            commits.inFlight.begin(version.id)
            defer { commits.inFlight.end(version.id) }
            return try withExtendedLifetime(changes) {
                if let existing = try existingVersion(version, changes.changes, comparingTimestamp: true) { return existing }
                try checkUnconfirmed(version, changes.changes)
                var draft = Draft(version: version, first: first, second: second, changes: changes.changes, traits: changes.traits)
                draft.located = changes.located
                draft.digests = changes.digests
                try Waiting.looking(at: control.quiet.paced(.adding, doing: "Merging versions \(a) and \(b) of \(self.description)")) {
                    try commit(&draft)
                }
                return draft.version
            }
        }
    }

    /// Folds heads into one: `into` and the selected heads, except ancestors of others, in canonical order from the newest down, whatever
    /// `into` is. All steps are stored as one batch, or none.
    ///
    /// If all of them have equal states, nothing is stored, and the newest one is the result. If only some have equal states, those are
    /// merged with each other first, newest first, into a version of that state that is the same everywhere.
    ///
    /// A head that cannot be merged, since its record or one of an ancestor is damaged, stays a head, and this is logged. It is merged
    /// once a retrieve has repaired it. If the damage is also in the history of `into`, this is an error. The same applies to a head if
    /// rules need bytes that it stored and that are gone (`.forgotten`): the error names the version that stored them. It also applies to a
    /// head that holds rules of an unknown number, if the store's rules merge: it is an error if `into` holds such rules.
    /// - Parameters:
    ///   - into: the version that the result descends from, even if it is no longer a head.
    ///   - arbiter: decides about ids that both sides of a step changed.
    ///   - selection: which heads take part.
    ///   - metadata: the metadata of the new versions.
    ///   - control: called with stage `.adding` before each head is folded in. If it cancels, nothing is stored.
    /// - Returns: the resulting version, or nil if it is `into` itself.
    /// - Complexity: with a built-in arbiter, grows with the changes of the heads since they diverged, plus one walk over the history's
    ///   versions.
    @discardableResult
    public func mergeHeads(
        into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection = .unbranched, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> Version? {
        try mergeHeads(into: into, arbiter: arbiter, selection: selection, metadata: metadata, control) { _ in }
    }

    /// - Parameter leftOut: called with the reason if heads were left out that hold rules of an unknown number.
    package func mergeHeads(
        into: VersionID, arbiter: any MergeArbiter, selection: HeadSelection, metadata: Metadata, _ control: OperationControl,
        leftOut: (StoreError) -> Void
    ) throws -> Version? {
        try checkOpen()
        try metadata.checkMade()
        try savingGuards.check(metadata)
        let target = try requireOrdinal(into, toBuildOn: true)
        let paced = control.within(.adding, 0, of: 0).paced(.adding, doing: "Merging heads")
        try paced.look()
        var candidates = try HeadFolding(store: self).selectedHeads(target, selection, paced), failures = 0
        while let newest = candidates.first {
            do {
                let groups = try equalStates.groupedByState(candidates, given: (arbiter as? RulesArbiter)?.given, paced)
                // They have one state.
                if groups.count == 1 { return newest == target ? nil : try version(newest) }
                return try HeadFolding(store: self).folding(groups, into: target, arbiter: arbiter, metadata: metadata, control)
            } catch let error as StoreError where error.code == .damaged || error.code.isGone {
                failures += 1
                noteWanted(after: error)
                candidates = try MergeableHeads(store: self).withoutDamaged(candidates, target, error, withValues: failures > 1, paced)
            } catch let error as StoreError where error.code == .unsupported {
                candidates = try MergeableHeads(store: self).withoutUnknownRules(candidates, target, error, paced)
                leftOut(error)
            }
        }
        return nil
    }

    /// Calls `body`. If it needs bytes that are forgotten, they are stored once they come from elsewhere.
    private func notingWanted<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as StoreError {
            noteWanted(after: error)
            throw error
        }
    }

    /// Merges heads of equal states, newest first, into the version of that state that is the same everywhere.
    func joinEqualHeads(_ heads: [UInt32]) throws -> Version? {
        guard let newest = heads.first else { return nil }
        return try HeadFolding(store: self).folding(
            [heads], into: newest, arbiter: BuiltInArbiter.mostRecentChange, metadata: Metadata(), OperationControl())
    }

    /// Returns whether `mergeHeads` has heads to merge into a version, besides that one.
    package func hasOtherHeads(than id: VersionID, _ selection: HeadSelection) throws -> Bool {
        let target = try requireOrdinal(id, toBuildOn: true)
        return try HeadFolding(store: self).selectedHeads(target, selection, .none) != [target]
    }
}

/// Folds heads: makes one merge after another, and stores them together.
struct HeadFolding {
    let store: Store

    /// Folds the heads of each group, which have equal states, into one, and then folds those.
    /// - Returns: the resulting version, or nil if it is `target` itself.
    func folding(
        _ groups: [[UInt32]], into target: UInt32, arbiter: any MergeArbiter, metadata: Metadata, _ control: OperationControl
    ) throws -> Version? {
        let began = Log.begin(.debug)
        var fold = Fold()
        let keys = fold.keys
        store.lock.withWrite { store.maps.folds.append(keys) }
        defer {
            store.lock.withWrite { store.maps.folds.removeAll { $0 === keys } }
            for place in fold.places { store.records.provisional.remove(place) }
            if !fold.isStored {
                for step in fold.steps { store.lock.withWrite { store.dag.drop(step.ordinal) }; store.maps.drop(step.ordinal) }
            }
        }
        func look() throws { try control.check(.adding, 0, of: 0, doing: "Merging heads") }
        // Find the heads that descend from `into`: their side is `ours`.
        let heads = groups.flatMap { $0 }
        fold.holders =
            heads.contains(target)
            ? [target]
            : try store.walk(Descendants(of: target, among: heads)) { try control.check(.adding, 0, of: 0, doing: "Merging heads") }
        let preparing = control.within(.adding, 0, of: 0)
        // Do this for all groups at once, since each would walk the same history.
        var joined: [UInt32] = [], told = try areSettled(groups.filter { $0.count > 1 }, preparing)[...]
        for group in groups {
            let settled = group.count > 1 ? told.prefix(group.count) : []
            told = told.dropFirst(settled.count)
            guard
                let head = try self.fold(
                    group, areSettled: settled, areEqual: true, &fold, arbiter: arbiter, metadata: metadata, preparing)
            else { continue }
            if !fold.holders.isDisjoint(with: group) { fold.holders.insert(head) }
            joined.append(head)
        }
        let ordered = try store.newestFirst(joined, look)
        let settled = try areSettled(ordered.count > 1 ? [ordered] : [], control)[...]
        guard
            let result = try self.fold(
                ordered, areSettled: settled, areEqual: false, &fold, arbiter: arbiter, metadata: metadata, control)
        else { return nil }
        let steps = fold.steps
        guard result != target else { return nil }
        if steps.isEmpty { return try store.version(result) }
        try store.checkWritable("Merging heads")
        for id in steps.map(\.draft.version.id).sorted() { store.commits.inFlight.begin(id) }
        defer { for step in steps { store.commits.inFlight.end(step.draft.version.id) } }
        // Maps of steps that store bytes refer to the provisional records, and so do maps built from them.
        let pointing = steps.drop { !$0.storesBytes }
        for step in pointing { store.maps.drop(step.ordinal) }
        let made = try withExtendedLifetime(steps) { () -> [VersionID] in
            // Another thread or process that folded the same heads may have stored a step meanwhile. Then use its version.
            var theirs: [UInt32: UInt32] = [:]
            store.lock.withWrite {
                store.maps.folds.removeAll { $0 === keys }
                for step in steps {
                    if let ordinal = store.dag.ordinal(of: step.draft.version.id) {
                        theirs[step.ordinal] = ordinal
                        store.dag.drop(step.ordinal)
                    } else if !theirs.isEmpty {
                        store.dag.redirect(step.ordinal, theirs)
                    }
                }
            }
            let missing = steps.filter { theirs[$0.ordinal] == nil }
            try Waiting.looking(at: control.quiet.paced(.adding, doing: "Merging heads")) {
                try store.store(
                    missing.map { step in
                        var draft = step.draft
                        draft.first = theirs[draft.first] ?? draft.first
                        draft.second = theirs[draft.second] ?? draft.second
                        return (step.ordinal, draft)
                    })
            }
            return missing.map(\.draft.version.id)
        }
        fold.isStored = true
        Log.write(
            .debug,
            "Merged \(heads.count) heads of \(store.description) into \(store.versionID(result)): "
                + "\(made.count) merges stored\(Log.duration(since: began))."
        )
        for step in pointing { store.maps.drop(step.ordinal) }
        if !made.isEmpty { store.tellOfNew(made) }
        return try steps.first { $0.ordinal == result }?.draft.version ?? store.version(result)
    }

    /// Merges that are prepared and not stored yet.
    private struct Fold {
        var steps: [Step] = []
        var places: [RecordPlace] = []
        var isStored = false
        /// The heads that equal or descend from the version into which all is merged.
        var holders: Set<UInt32> = []
        let keys = FoldedKeys()
    }

    /// Returns, for each version of some folds, whether the step with it merges versions that differ only in merges.
    private func areSettled(_ groups: [[UInt32]], _ control: OperationControl) throws -> [Bool] {
        if groups.isEmpty { return [] }
        return try store.walk(SettledSteps(groups)) { try control.check(.adding, 0, of: 0, doing: "Merging heads") }
    }

    /// Merges versions that are no ancestors of each other, newest first; nil if there are none.
    /// - Parameter areEqual: whether they are heads with equal states, whose common ancestors are not needed.
    private func fold(
        _ versions: [UInt32], areSettled: ArraySlice<Bool>, areEqual: Bool, _ fold: inout Fold, arbiter: any MergeArbiter,
        metadata: Metadata, _ control: OperationControl = OperationControl()
    ) throws -> UInt32? {
        guard var result = versions.first else { return nil }
        if versions.count == 1 { return result }
        var targetIsIn = fold.holders.contains(result)
        let line = MergedLine(), folded = FoldedVersions(versions)
        for (i, next) in versions.dropFirst().enumerated() {
            try control.check(.adding, i, of: versions.count - 1, doing: "Merging heads")
            // Progress is reported in heads.
            let paced = control.within(.adding, i, of: versions.count - 1).paced(.adding, doing: "Merging heads")
            let bases = areEqual ? [] : try folded.bases(upTo: i + 1, in: store, paced)
            if bases.contains(next) { continue }
            let nextHasTarget = !targetIsIn && fold.holders.contains(next)
            let (ours, theirs) = nextHasTarget ? (next, result) : (result, next)
            targetIsIn = targetIsIn || nextHasTarget
            if bases.contains(result) {
                line.heads.restart()
                result = next
                continue
            }
            // Without a common ancestor, the roots are no merges of one side.
            let isSettled = areSettled[areSettled.startIndex + i + 1]
            line.hasFoundNoRules = false
            let outcome = try MergePreparation(store: store).prepareMerge(
                ours, theirs, among: areEqual ? folded.bases(upTo: i + 1, in: store, paced) : bases, areSettled: isSettled,
                areEqual: areEqual, arbiter: arbiter, metadata: metadata, line: line, paced)
            guard case .version(let version, let first, let second, let changes) = outcome else { continue }
            if let existing = try existingStep(version) {
                line.heads.add(existing, changes: changes.changes.count, on: first)
                result = existing
                continue
            }
            var draft = Draft(version: version, first: first, second: second, changes: changes.changes, traits: changes.traits)
            draft.digests = changes.digests
            let (ordinal, place) = try withExtendedLifetime(changes) { try stage(&draft) }
            store.lock.withWrite { fold.keys.add(ordinal, in: store.dag) }
            fold.places.append(place)
            fold.steps.append(Step(ordinal: ordinal, draft: draft, changes: changes))
            line.heads.add(ordinal, changes: changes.changes.count, on: first)
            result = ordinal
            if line.hasFoundNoRules { line.withoutRules = ordinal }
        }
        return result
    }

    /// One staged merge of a fold, to be stored with the others.
    private struct Step {
        var ordinal: UInt32
        var draft: Draft
        /// Retains what the draft borrows.
        var changes: MergeChanges
        var storesBytes: Bool { draft.changes.contains(where: \.hasData) }
    }

    /// Makes an unstored merge readable by its id.
    private func stage(_ draft: inout Draft) throws -> (ordinal: UInt32, RecordPlace) {
        let ordinal = try store.lock.withWrite {
            try store.dag.preallocate(); return store.appendHidden(&draft)
        }
        do {
            let (place, checksum, mapped) = try store.commits.encoders.with { encoder -> (RecordPlace, UInt32, [MapChange]) in
                try encoder.encode(draft.version, draft.changes, digests: draft.digests, storedAt: draft.storedAt, blobThreshold: nil) {
                    _, _ in
                    BlobID(high: 0, low: 0)
                }
                let mapped = draft.mapChanges(ordinal, in: encoder) { id in store.lock.withRead { store.dag.ordinalIncludingStaged(of: id) }
                }
                return (store.records.provisional.add(try encoder.bytes(draft.changes)), encoder.checksum, mapped)
            }
            store.lock.withWrite { store.dag.stage(ordinal, place, checksum) }
            if !draft.changes.contains(where: \.hasData) {
                // The merge has no bytes of its own: the bytes that it names are in other records, and do not move when the merge is
                // stored.
                store.maps.keepChanges(ordinal, draft.changes, mapped)
                if let behind = store.maps.slot(draft.first) {
                    store.maps.cache.store(ordinal, try MapNode.applying(mapped[...], to: behind.root), changes: mapped.count, on: behind)
                }
            }
            return (ordinal, place)
        } catch {
            store.lock.withWrite { store.dag.drop(ordinal) }
            throw error
        }
    }

    /// Returns the live version with the id of a step.
    /// - Throws: `.versionMismatch` if it is not a merge of these two: its state would not be that of the merge.
    private func existingStep(_ version: Version) throws -> UInt32? {
        guard
            let found = store.lock.withRead({ store.dag.ordinal(of: version.id).map { ($0, store.dag.predecessors($0).map(store.dag.id)) } }
            )
        else { return nil }
        guard found.1 == version.predecessors else {
            throw StoreError(
                .versionMismatch,
                "Version \(version.id) exists already, and is not the merge of "
                    + "\(version.predecessors.map(\.description).joined(separator: " and ")), which has this id: "
                    + "another version was made under it. Give the merge other metadata, so that it gets another id.",
                versionID: version.id.description)
        }
        return found.0
    }

    /// Throws if a named branch never had a version.
    private func checkBranches(_ selection: HeadSelection) throws {
        let named: [String]
        switch selection {
        case .all, .unbranched: return
        case .unbranchedAnd(let names), .branches(let names): named = names
        }
        guard let unknown = named.first(where: { name in store.lock.withRead { !store.dag.hasBranch(name) } }) else { return }
        throw StoreError(
            .unknownVersion,
            "There is no version of the branch \"\(unknown)\" in \(store.description), so its heads cannot be merged. "
                + "Check the name, or retrieve the branch from its maker."
        )
    }

    /// Returns `target` and the selected heads without ancestors of others, newest first.
    func selectedHeads(_ target: UInt32, _ selection: HeadSelection, _ control: PacedControl) throws -> [UInt32] {
        try checkBranches(selection)
        var (chosen, buried) = store.lock.withRead { () -> ([UInt32], [UInt32]) in
            func heads(named names: [String]) -> [UInt32] { Set(names).flatMap { store.dag.headsInNoOrder(onBranch: $0) } }
            switch selection {
            case .all: return (Array(store.dag.headOrdinals), [])
            case .branches(let names): return (heads(named: names), [])
            case .unbranched, .unbranchedAnd:
                var chosen = Array(store.dag.unbranchedHeadOrdinals)
                let buried = chosen.filter { !store.dag.headOrdinals.contains($0) }
                if case .unbranchedAnd(let names) = selection { chosen += heads(named: names) }
                return (chosen, buried)
            }
        }
        // A head without a branch may be an ancestor of one with a branch, and so of `target`.
        if !buried.isEmpty {
            let behind = try store.walk(Ancestors(of: chosen + [target], among: buried), control.look)
            chosen.removeAll(where: behind.contains)
        }
        // Heads are no ancestors of each other. Only `target` can be an ancestor of one.
        if !store.isVirtual(target), !chosen.contains(target), try store.walk(Descendants(of: target, among: chosen), control.look).isEmpty
        {
            chosen.append(target)
        }
        return try store.newestFirst(chosen, control.look)
    }
}
