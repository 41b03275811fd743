/// The outcome of preparing a merge: nothing to store, or a version to store.
enum MergeOutcome {
    /// One version is an ancestor of the other, or both are the same. The associated version is the result.
    case fastForward(UInt32)
    case version(Version, first: UInt32, second: UInt32, changes: MergeChanges)
}

/// Prepares merges: order, bases, forks, the arbiter's answer, and the canonical version that results.
struct MergePreparation {
    let store: Store
    private var idsToCompare: IDsToCompare { IDsToCompare(store: store) }

    func prepareMerge(
        _ a: UInt32, _ b: UInt32, arbiter: any MergeArbiter, metadata: Metadata, relation: MergeRelation, _ control: PacedControl = .none
    ) throws -> MergeOutcome {
        if try a == b || store.walk(AncestorSearch(b, of: a), control.look) { return .fastForward(a) }
        if try store.walk(AncestorSearch(a, of: b), control.look) { return .fastForward(b) }
        let bases = try relation == .unrelated ? [] : store.walk(CommonAncestors([a], [b]), control.look)
        if relation == .related, bases.isEmpty {
            throw StoreError(
                .noCommonAncestor,
                "Versions \(store.versionID(a)) and \(store.versionID(b)) have no common ancestor. Use an unrelated merge to join them.",
                versionID: store.versionID(b).description)
        }
        let areSettled = try !bases.isEmpty && store.walk(MergesOnly(a, b), control.look)
        return try prepareMerge(
            a, b, among: bases, areSettled: areSettled, arbiter: arbiter, metadata: metadata, line: MergedLine(), control)
    }

    /// Prepares the merge of two versions. Neither may be an ancestor of the other.
    /// - Parameters:
    ///   - ancestors: their best common ancestors. It is not evaluated if the states are equal.
    ///   - areSettled: whether they have common ancestors, and differ from these in merges only.
    ///   - areEqual: whether their states are known to be equal.
    func prepareMerge(
        _ a: UInt32, _ b: UInt32, among ancestors: @autoclosure () throws -> [UInt32], areSettled: Bool, areEqual: Bool = false,
        arbiter: any MergeArbiter, metadata: Metadata, line: MergedLine, _ control: PacedControl
    ) throws -> MergeOutcome {
        let aIsNewer = store.lock.withRead { store.dag.isNewer(a, b) }
        let first = aIsNewer ? a : b, second = aIsNewer ? b : a, oursSide = aIsNewer ? Fork.Side.first : .second
        var known: [UInt32]?
        func outcome(_ metadata: Metadata, _ changes: MergeChanges) -> MergeOutcome {
            var changes = changes
            let version = mergeVersion(first, second, metadata, &changes)
            Log.write(
                .debug,
                "Merging \(store.versionID(first)) and \(store.versionID(second)) of \(store.description) gives \(version.id): "
                    + "\(told(known)), \(changes.changes.count) changes recorded."
            )
            return .version(version, first: first, second: second, changes: changes)
        }
        // Replicas that answered one question differently are settled without asking the arbiter again. Equal states need no arbiter.
        let byRules = arbiter as? RulesArbiter
        // The earlier merge that limits the ids to compare, if another head was merged before.
        let near = try areSettled || areEqual ? nil : idsToCompare.nearHead(first, ancestors(), oursSide, line.heads)
        var matter: (keys: [UnsafeRawBufferPointer], arena: ByteArena)?
        func matters() throws -> [UnsafeRawBufferPointer] {
            guard let near else { return [] }
            let arena = ByteArena(), keys = try idsToCompare.idsToMerge(first, second, near, into: arena, control)
            matter = (keys, arena)
            return keys
        }
        if try areSettled
            || store.equalStates.haveEqualStates(
                first, second, given: byRules?.given, knowing: line.heads, first: matters, control)
        {
            let ranks = (try store.rank(of: first), try store.rank(of: second))
            let changes = areSettled ? try SettledMerge(store: store).changesOfLarger(first, second, ranks, control) : MergeChanges()
            return outcome(try MergeMarks.settled(ranks.0, ranks.1), changes)
        }
        let bases = try ancestors()
        known = bases
        let undone = try byRules == nil ? nil : UndoneEdits.apart(first, second, over: bases, in: store, control)
        if let byRules {
            // The common case is a store without rules: the first side has none, and the second side adds none.
            if byRules.given == nil, byRules.merger == nil, undone == nil, bases.count == 1 {
                // In a fold, the previous merge may have found that there are no rules.
                let onFirst = line.withoutRules == first ? nil : try store.maps.prevailing(at: first)
                if try onFirst.flatMap(store.rules.schemaEntry) == nil,
                    let changes = try store.changesOfSecond(
                        first, second, bases[0], .mostRecentChange, oursSide, line, onFirst: onFirst, passing: MergeSchema.idBytes, control)
                {
                    line.hasFoundNoRules = true
                    line.heads.decide(second, bases, oursSide, near?.fold(of: bases) ?? FoldedVersions(bases))
                    return outcome(metadata, changes)
                }
            }
            if var rules = try RulesMerge(
                first, second, bases, byRules, recencies: line.recencies, undone: undone, in: store, control)
            {
                let matter = try idsToCompare.idsToMerge(first, second, near, byRulesOver: bases, control)
                let forks = try MergeForks(first, second, bases, areShown: false, rules: rules, among: matter, in: store, control)
                if forks == nil, undone == nil { return outcome(try rules.marked(metadata), MergeChanges()) }
                if undone == nil { line.heads.decide(second, bases, oursSide, FoldedVersions(bases), byRules: true) }
                let arena = forks?.arena ?? ByteArena()
                let covered = try rules.withUndone(forks?.covered ?? [], first, second, in: arena)
                let inside = try rules.changes(covered, keys: arena)
                let whole = try forks?.changes(.mostRecentChange, oursSide) ?? MergeChanges()
                return outcome(try rules.marked(metadata), try MergeChanges(whole, inside))
            }
        }
        let builtIn = arbiter as? BuiltInArbiter ?? (byRules == nil ? nil : .mostRecentChange)
        if let builtIn, byRules == nil, bases.count == 1,
            let changes = try store.changesOfSecond(first, second, bases[0], builtIn, oursSide, line, control)
        {
            line.heads.decide(second, bases, oursSide, near?.fold(of: bases) ?? FoldedVersions(bases))
            return outcome(metadata, changes)
        }
        if let builtIn {
            if matter == nil, near?.byRules == false { _ = try matters() }
            if matter == nil || near?.byRules == true { matter = try idsToCompare.idsToMerge(first, second, without: bases, control) }
            let fold = near?.fold(of: bases) ?? FoldedVersions(bases)
            guard let forks = try MergeForks(first, second, bases, areShown: false, among: matter, fold: fold, in: store, control)
            else {
                return outcome(Metadata(), MergeChanges())
            }
            line.heads.decide(second, bases, oursSide, fold)
            return outcome(metadata, try forks.changes(builtIn, oursSide))
        }
        let counted = CountedIDs(store, first, second, given: nil)
        guard let forks = try MergeForks(first, second, bases, areShown: true, counted: counted, in: store, control) else {
            return outcome(Metadata(), MergeChanges())
        }
        let merge = Merge(
            first: try store.version(first), second: try store.version(second), oursSide: oursSide,
            bases: try bases.map { try store.version($0) },
            forks: try forks.described())
        let hasRules = try store.rules.schemaEntry(at: first) != nil || store.rules.schemaEntry(at: second) != nil
        let changes = try forks.changes(arbiter.resolve(merge, in: store), first, second)
        return outcome(hasRules ? try MergeMarks.marked(metadata, .host) : metadata, changes)
    }

    /// Describes the common ancestors of a merge for the log.
    private func told(_ bases: [UInt32]?) -> String {
        guard let bases else { return "of equal states, or results of the same merges" }
        if bases.isEmpty { return "without a common ancestor" }
        return "common ancestors " + bases.map { store.versionID($0).description }.joined(separator: ", ")
    }

    /// Makes the version of a merge. Its id and timestamp follow from its contents.
    private func mergeVersion(_ first: UInt32, _ second: UInt32, _ metadata: Metadata, _ changes: inout MergeChanges) -> Version {
        let (predecessors, timestamp) = store.lock.withRead {
            ([store.dag.id(first), store.dag.id(second)], Clock.after(store.dag.rows[Int(first)].timestamp))
        }
        let size = changes.changes.reduce(UInt64(0)) { $0 + UInt64($1.data.count) }
        var version = Version(id: EmptyRoot.id, predecessors: predecessors, timestamp: timestamp, valueDataSize: size, metadata: metadata)
        version.id = version.contentID(RecordChanges(changes.changes), digests: &changes.digests)
        return version
    }
}
