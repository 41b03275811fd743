/// Merging two versions that answered one question twice: both sides hold nothing but merges since their common ancestors.
///
/// One of the two states stands, as a whole: that of the higher rank, which `MergeMarks` tells, or, where both are of one rank, the larger
/// one. At the first id, in byte order, under which they hold different references the larger state has the reference that was stored
/// later; none is smaller than any. This orders all states, and no merge changes which of two is the larger, as it would were the newer
/// version's to stand: each device makes its own answer the newer one by merging it once more. So devices that go on merging their answers
/// come to the largest of them, in whatever order they do it.
extension Store {
    /// The changes of the merge version: none when the first version's state stands, else all that the second one's differs in.
    ///
    /// Both states are compared also where they hold the same bytes: what one merge calls equal another may tell apart by references.
    func changesOfLarger(
        _ first: UInt32, _ second: UInt32, _ ranks: (MergeMarks.Rank, MergeMarks.Rank), _ control: PacedControl = .none
    ) throws -> MergeChanges {
        let isDecided = ranks.0 != ranks.1
        if isDecided, ranks.0.rawValue > ranks.1.rawValue { return MergeChanges() }
        var out = MergeChanges()
        let arena = ByteArena()
        out.keep(arena)
        do {
            try forEachDifferenceByMaps(first, second, control) { difference in
                try control.step()
                try Memory.check()
                if !isDecided, out.changes.isEmpty, !isLarger(difference.after, than: difference.before) { throw FirstStands() }
                try out.preallocate(1)
                out.append(arena.copy(difference.key), preserving: difference.after.map { (versionID($0.version), $0) })
            }
        } catch is FirstStands {}
        return out
    }

    private struct FirstStands: Error {}

    /// Of different references.
    private func isLarger(_ a: MapEntry?, than b: MapEntry?) -> Bool {
        guard let a else { return false }
        return b.map { isStoredLater(a, $0) } ?? true
    }

    /// As `forEachDifference`. Where both maps are in memory, or are made of few changes, nothing is looked at behind the id at which
    /// `body` throws; nor are the merges of a long fold gone back over for each head.
    private func forEachDifferenceByMaps(_ a: UInt32, _ b: UInt32, _ control: PacedControl, _ body: (Difference) throws -> Void) throws {
        guard haveMaps(a, b) else { return try forEachDifference(a, b, control, body) }
        try MapNode.forEachDifference(maps.map(a, control), maps.map(b, control)) { try body(Difference(key: $0, before: $1, after: $2)) }
    }

    private func haveMaps(_ a: UInt32, _ b: UInt32) -> Bool {
        if maps.slot(a) != nil, maps.slot(b) != nil { return true }
        // Nearby, what was recorded since is all that needs a look.
        let near = MapPolicy.manyUses, few = MapPolicy.mostComparedWithMaps
        if lock.withRead({ dag.meeting(a, b, leftAtMost: near, rightAtMost: near) != nil }) { return false }
        return maps.isWithin(few, toMakeMapOf: a) && maps.isWithin(few, toMakeMapOf: b)
    }
}
