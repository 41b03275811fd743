/// Remembers the heads that a fold has merged, so that the next head need not be compared with everything that the result holds.
///
/// Suppose two heads have the same common ancestors with the result. An id that the second head holds as the first did comes to the same
/// again: either the result adopted that entry, or the result's own entry prevailed, and does so again. So the second head matters only
/// where it differs from the first, and where merges since have changed something. This holds for merges that a built-in arbiter decided
/// id by id. It does not hold where one state was adopted as a whole, since nothing was compared then. Rules that merge inside values may
/// count the same edit twice. For them, each id in which one of the two heads differs from the single common ancestor matters, too. (An
/// id that the second head holds as the ancestor is not merged: the result has the first side's entry, or the ancestor's if both have the
/// same bytes.)
///
/// It also holds if the common ancestors of the two heads are pairwise on the same lines of versions with one predecessor each, for all
/// ids that no version between them changed. What is reachable from one such ancestor and not from the other are versions of the line.
/// None of these is reachable from a further ancestor, since then the lower ancestor would be, too, and would not be a best one. So the
/// ancestors of the ancestors, which decide where these disagree, are the same.
final class FoldedHeads {
    /// A head that was merged, and its common ancestors with the result.
    private struct Merged {
        var bases: [UInt32]
        var head: UInt32
        /// How many steps had changed something before this head, and which side was `ours`.
        var steps: Int
        var oursSide: Fork.Side
        var byRules: Bool
        /// The virtual base from the common ancestors.
        var fold: FoldedVersions
    }
    /// An earlier merged head, and what changed since.
    struct Near {
        var head: UInt32
        /// Whether rules merged it, instead of a built-in arbiter.
        var byRules: Bool
        /// The versions whose changes matter: the steps since, and those between its common ancestors and the next head's.
        var changed: [UInt32]
        /// The virtual base from its common ancestors.
        fileprivate var fold: FoldedVersions

        /// Returns the virtual base for the next head's common ancestors.
        func fold(of bases: [UInt32]) -> FoldedVersions { bases == fold.versions ? fold : FoldedVersions(bases, as: fold) }
    }
    /// The last head for each set of ancestors, in the order of these, the largest first.
    private var merged: [Merged] = []
    /// The merges that changed something, each based on the one before, with the total number of changes up to it.
    private var steps: [(ordinal: UInt32, changes: Int)] = []
    private var top = History.none
    /// The last head that was decided id by id and is not a step yet.
    private var decided: Merged?
    /// An id in which the result and a head differed.
    var differing: ValueID?
    /// Heads with more common ancestors are not remembered. When there are `mostHeads`, every other one is forgotten.
    private static let mostBases = 64, mostHeads = 4_096

    /// Records that a built-in arbiter, or rules, decide a merge with a head id by id.
    func decide(_ head: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, _ fold: FoldedVersions, byRules: Bool = false) {
        guard bases.count <= FoldedHeads.mostBases else { return }
        decided = Merged(bases: bases, head: head, steps: 0, oursSide: oursSide, byRules: byRules, fold: fold)
    }

    /// Records that a merge is a step of the fold: it consists of `first` and its changes.
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
            // If a line is walked from the newest version down, this appends.
            merged.insert(known, at: i)
        }
        if merged.count > FoldedHeads.mostHeads { merged = stride(from: merged.count & 1 ^ 1, to: merged.count, by: 2).map { merged[$0] } }
    }

    /// Returns where heads with these ancestors are, or would be inserted.
    private func place(of bases: [UInt32]) -> Int {
        var low = 0, high = merged.count
        while low < high {
            let middle = (low + high) / 2
            if bases.lexicographicallyPrecedes(merged[middle].bases) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Forgets everything: the next merge is not on top of the one before.
    func restart() {
        merged = []
        steps = []
        top = History.none
        decided = nil
    }

    /// Returns the nearest head that was merged with these ancestors, or with ancestors on the same lines; nil if there is none, or more
    /// than `limit` changed since.
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
    /// Adds the versions from one of two back to the other one, without the latter, and adds their number and changes to the cost.
    /// Returns false if they are not on one line of versions with one predecessor each, or if the cost exceeds the limit.
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

/// Finds the ids that a merge of two versions must compare, if earlier merges of the fold make that fewer than all that differ.
struct IDsToCompare {
    let store: Store

    /// If the first side holds this many times as many ids as the others, their ids are looked up in it.
    private static let muchLarger = 4

    /// Returns a head that was merged before this one and is near it; nil if there is none.
    func nearHead(_ first: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, _ heads: FoldedHeads) -> FoldedHeads.Near? {
        store.lock.withRead { heads.near(first, bases, oursSide, atMost: MapPolicy.mostComparedWithMaps, in: store.dag) }
    }

    /// Returns the ids that a merge of two versions must compare after another head was merged, in byte order. Some may be equal in both.
    /// They are at most those in which the two heads differ, and those that changed since, which limits bound.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, _ near: FoldedHeads.Near, into arena: ByteArena, _ control: PacedControl
    ) throws -> [UnsafeRawBufferPointer] {
        var keys: [UnsafeRawBufferPointer] = []
        try store.forEachDifference(near.head, second, control) { try add($0.key, to: &keys, arena, control) }
        for version in near.changed {
            try control.step(0)
            try store.maps.forEachRecordedChange(version) { keys.append(arena.copy($0.key)) }
        }
        sortOnce(&keys)
        return keys
    }

    /// Returns the ids that a merge by rules must compare. None of them is of a removed value. All other ids come to the same as when the
    /// previous head was merged, or are absent on the second side. Returns nil if finding all differences is less work.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, _ near: FoldedHeads.Near?, byRulesOver bases: [UInt32], _ control: PacedControl
    ) throws -> (keys: [UnsafeRawBufferPointer], arena: ByteArena)? {
        func isSchema(_ key: UnsafeRawBufferPointer) -> Bool { MergeSchema.idBytes.withUnsafeBytes { Bytes.equal($0, key) } }
        if let near, near.byRules, bases.count == 1 {
            let arena = ByteArena()
            var keys = try idsToMerge(first, second, near, into: arena, control)
            for head in [near.head, second] {
                try store.forEachDifference(bases[0], head, control) { try add($0.key, to: &keys, arena, control) }
            }
            sortOnce(&keys)
            // Other rules may decide differently.
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

    /// Returns the ids that a merge of two versions must compare if the versions diverged long ago, or have no common ancestor, and the
    /// first side holds far more than the others. Returns nil if finding all differences is less work.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, without bases: [UInt32], _ control: PacedControl
    ) throws -> (keys: [UnsafeRawBufferPointer], arena: ByteArena)? {
        let most = MapPolicy.mostComparedWithMaps
        guard store.lock.withRead({ store.dag.meeting(first, second, leftAtMost: most, rightAtMost: most) }) == nil else { return nil }
        // If neither the second side nor any ancestor holds an id, it is on the first side alone, and stays.
        var keys: [UnsafeRawBufferPointer] = []
        let arena = ByteArena()
        var left = try (store.maps.map(first, control)?.count ?? 0) / IDsToCompare.muchLarger
        for other in [second] + bases {
            let held = try store.maps.map(other, control)
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

    /// Sorts keys in byte order and removes duplicates.
    private func sortOnce(_ keys: inout [UnsafeRawBufferPointer]) {
        keys.sort { Bytes.compare($0, $1) < 0 }
        var count = 0
        for key in keys where count == 0 || !Bytes.equal(keys[count - 1], key) {
            keys[count] = key
            count += 1
        }
        keys.removeSubrange(count...)
    }

    /// Returns the differences of two versions at some ids. The ids are borrowed.
    func differences(
        _ first: UInt32, _ second: UInt32, under keys: [UnsafeRawBufferPointer], _ control: PacedControl
    ) throws -> [Difference] {
        let onFirst = try store.maps.prevailing(at: first), onSecond = try store.maps.prevailing(at: second)
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
