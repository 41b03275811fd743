/// What a fold of heads remembers of those it has merged, so that the next one need not be compared with all that the result holds.
///
/// Where two heads have the same common ancestors with the result, what the second one holds as the first one did comes to the same once
/// more: either the result took it over, or what the result holds stood against it, and does so again. So the second one matters only
/// where it differs from the first one, and where merges since have changed something. This holds for merges that a built-in arbiter
/// decided id by id; where one state stands as a whole nothing was weighed. Rules that merge inside values may count the same twice: for
/// them also each id matters in which one of the two heads differs from the one common ancestor. (For an id that the second one holds as
/// the ancestor does nothing is merged: it comes to what the first side holds, or to the ancestor's, where both are the same bytes.)
///
/// It holds as well where their common ancestors stand on the same lines of versions with one predecessor each, one by one, for all ids
/// that no version between them changed. For what is behind such an ancestor and not behind the other one are versions of the line, and
/// none of them is behind a further ancestor (the lower one would be, too, and would be no best one). So the ancestors of the ancestors,
/// by which it is told what these come to where they disagree, are the same.
final class FoldedHeads {
    /// A head that was merged over some common ancestors.
    private struct Merged {
        var bases: [UInt32]
        var head: UInt32
        /// How many steps had changed something then, that of the head itself not counted; which side was `ours`.
        var steps: Int
        var oursSide: Fork.Side
        var byRules: Bool
        /// What the common ancestors come to.
        var fold: FoldedVersions
    }
    /// What was merged before a head, and what changed since.
    struct Near {
        var head: UInt32
        /// Whether rules merged it, rather than a built-in arbiter.
        var byRules: Bool
        /// Whose changes matter: those of the steps since, and of the versions between its common ancestors and those of the next head.
        var changed: [UInt32]
        /// What its common ancestors come to.
        fileprivate var fold: FoldedVersions

        /// What those of the next head come to.
        func fold(of bases: [UInt32]) -> FoldedVersions { bases == fold.versions ? fold : FoldedVersions(bases, as: fold) }
    }
    /// The last one over the same ancestors, in the order of these, the largest first.
    private var merged: [Merged] = []
    /// The merges that changed something, each on one before, and how much they and those before them changed together.
    private var steps: [(ordinal: UInt32, changes: Int)] = []
    private var top = History.none
    /// What was decided id by id, and is no step yet.
    private var decided: Merged?
    /// An id under which the result and a head differed.
    var differing: ValueID?
    /// Heads of more common ancestors are not remembered. Of so many heads every other one is forgotten.
    private static let mostBases = 64, mostHeads = 4_096

    /// A built-in arbiter, or rules, decide a merge with a head id by id.
    func decide(_ head: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, _ fold: FoldedVersions, byRules: Bool = false) {
        guard bases.count <= FoldedHeads.mostBases else { return }
        decided = Merged(bases: bases, head: head, steps: 0, oursSide: oursSide, byRules: byRules, fold: fold)
    }

    /// A merge is a step of the fold: `first` and what it changed.
    func add(_ step: UInt32, changes: Int, on first: UInt32) {
        let known = decided
        if top != first { restart() }
        if var known {
            known.steps = steps.count
            put(known)
        }
        if changes > 0 { steps.append((step, (steps.last?.changes ?? 0) + changes)) }
        top = step
        decided = nil
    }

    private func put(_ known: Merged) {
        let i = place(of: known.bases)
        if i < merged.count, merged[i].bases == known.bases {
            merged[i] = known
        } else {
            // Newest down, of a line, it comes last.
            merged.insert(known, at: i)
        }
        if merged.count > FoldedHeads.mostHeads { merged = stride(from: merged.count & 1 ^ 1, to: merged.count, by: 2).map { merged[$0] } }
    }

    /// Where heads over these ancestors are, or would be.
    private func place(of bases: [UInt32]) -> Int {
        var low = 0, high = merged.count
        while low < high {
            let middle = (low + high) / 2
            if bases.lexicographicallyPrecedes(merged[middle].bases) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// What comes next is no merge on top of the one before.
    func restart() {
        merged = []
        steps = []
        top = History.none
        decided = nil
    }

    /// Of the heads that were merged over these ancestors, or over such as stand on the same lines, the nearest; nil when there is none, or
    /// when more than so much changed since.
    fileprivate func near(_ first: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, atMost limit: Int, in dag: History) -> Near? {
        guard top == first, bases.count <= FoldedHeads.mostBases else { return nil }
        var found: Near?, least = limit
        let at = place(of: bases)
        for i in [at, at - 1] where merged.indices.contains(i) {
            let known = merged[i], before = known.steps == 0 ? 0 : steps[known.steps - 1].changes
            var cost = (steps.last?.changes ?? 0) - before, changed: [UInt32] = []
            guard known.oursSide == oursSide, known.bases.count == bases.count, cost <= least else { continue }
            let areOnLines = zip(known.bases, bases).allSatisfy { dag.addLine($0, $1, to: &changed, &cost, atMost: least) }
            guard areOnLines else { continue }
            least = cost
            found = Near(
                head: known.head, byRules: known.byRules, changed: steps[known.steps...].map(\.ordinal) + changed, fold: known.fold)
        }
        return found
    }
}

extension History {
    /// Adds the versions from one of two back to the other one, without the latter, and to the cost how many they are and what they
    /// changed; false when they are not on a line of versions with one predecessor each, or when it costs more than so much.
    fileprivate func addLine(_ a: UInt32, _ b: UInt32, to line: inout [UInt32], _ cost: inout Int, atMost limit: Int) -> Bool {
        let (from, to) = rows[Int(a)].generation >= rows[Int(b)].generation ? (a, b) : (b, a)
        guard Int(rows[Int(from)].generation) - Int(rows[Int(to)].generation) <= limit - cost else { return false }
        var at = from
        while at != to {
            Work.versions.count()
            let row = rows[Int(at)]
            cost += 1 + Int(row.changeCount)
            guard row.first != History.none, row.second == History.none, row.generation > rows[Int(to)].generation, cost <= limit else {
                return false
            }
            line.append(at)
            at = row.first
        }
        return true
    }
}

extension Store {
    /// Of a first side that holds so many times what the others do, the ids that the others hold are looked up.
    private static let muchLarger = 4

    /// A head that was merged before this one, nearby; nil when there is none.
    func nearHead(_ first: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, _ heads: FoldedHeads) -> FoldedHeads.Near? {
        lock.withRead { heads.near(first, bases, oursSide, atMost: MapPolicy.mostComparedWithMaps, in: dag) }
    }

    /// The ids that a merge of two versions has to look at once another head was merged, in byte order, some of which may be equal in both.
    /// There are no more of them than the two heads differ in, and than limits allow that changed since.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, _ near: FoldedHeads.Near, into arena: ByteArena, _ control: PacedControl
    ) throws -> [UnsafeRawBufferPointer] {
        var keys: [UnsafeRawBufferPointer] = []
        try forEachDifference(near.head, second, control) { try add($0.key, to: &keys, arena, control) }
        for version in near.changed {
            try control.step(0)
            try maps.forEachRecordedChange(version) { keys.append(arena.copy($0.key)) }
        }
        sortOnce(&keys)
        return keys
    }

    /// The ids that a merge by rules has to look at, none of which stands for a value that is gone: the others come to what they came to
    /// when the head before was merged, or are none of the second side's. Nil when those that differ are found with less work.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, _ near: FoldedHeads.Near?, byRulesOver bases: [UInt32], _ control: PacedControl
    ) throws -> (keys: [UnsafeRawBufferPointer], arena: ByteArena)? {
        func isSchema(_ key: UnsafeRawBufferPointer) -> Bool { MergeSchema.idBytes.withUnsafeBytes { Bytes.equal($0, key) } }
        if let near, near.byRules, bases.count == 1 {
            let arena = ByteArena()
            var keys = try idsToMerge(first, second, near, into: arena, control)
            for head in [near.head, second] {
                try forEachDifference(bases[0], head, control) { try add($0.key, to: &keys, arena, control) }
            }
            sortOnce(&keys)
            // Other rules may weigh what was weighed.
            if !keys.contains(where: isSchema) { return (keys, arena) }
        }
        guard let (others, arena) = try idsToMerge(first, second, without: bases, control) else { return nil }
        var keys = others
        if !keys.contains(where: isSchema) {
            try MergeSchema.idBytes.withUnsafeBytes { try add($0, to: &keys, arena, control) }
            sortOnce(&keys)
        }
        return (keys, arena)
    }

    /// The ids that a merge of two versions has to look at which parted long ago, or have nothing in common, where the first side holds
    /// much more than the others do; nil when those that differ are found with less work.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, without bases: [UInt32], _ control: PacedControl
    ) throws -> (keys: [UnsafeRawBufferPointer], arena: ByteArena)? {
        let most = MapPolicy.mostComparedWithMaps
        guard lock.withRead({ dag.meeting(first, second, leftAtMost: most, rightAtMost: most) }) == nil else { return nil }
        // An id that neither the second side nor any ancestor holds is the first side's alone, which stays.
        var keys: [UnsafeRawBufferPointer] = []
        let arena = ByteArena()
        var left = try (maps.map(first, control)?.count ?? 0) / Store.muchLarger
        for other in [second] + bases {
            let held = try maps.map(other, control)
            left -= held?.count ?? 0
            guard left >= 0 else { return nil }
            try MapNode.forEachDifference(nil, held) { key, _, _ in try add(key, to: &keys, arena, control) }
        }
        sortOnce(&keys)
        return (keys, arena)
    }

    private func add(
        _ key: UnsafeRawBufferPointer, to keys: inout [UnsafeRawBufferPointer], _ arena: ByteArena, _ control: PacedControl
    ) throws {
        try control.step(0)
        try Memory.check()
        try Memory.grow(&keys, "Comparing two versions")
        keys.append(arena.copy(key))
    }

    /// In byte order, each once.
    private func sortOnce(_ keys: inout [UnsafeRawBufferPointer]) {
        keys.sort { Bytes.compare($0, $1) < 0 }
        var count = 0
        for key in keys where count == 0 || !Bytes.equal(keys[count - 1], key) {
            keys[count] = key
            count += 1
        }
        keys.removeSubrange(count...)
    }

    /// What two versions hold under some ids, where it differs. The ids are borrowed.
    func differences(
        _ first: UInt32, _ second: UInt32, under keys: [UnsafeRawBufferPointer], _ control: PacedControl
    ) throws -> [Difference] {
        let onFirst = try maps.prevailing(at: first), onSecond = try maps.prevailing(at: second)
        var differences: [Difference] = []
        for key in keys {
            try control.step(0)
            try Memory.check()
            let before = try onFirst.lookup(key), after = try onSecond.lookup(key)
            if isSame(before, after) { continue }
            try Memory.grow(&differences, "Comparing two versions")
            differences.append(Difference(key: key, before: before, after: after))
        }
        return differences
    }
}
