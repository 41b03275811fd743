/// Merges two versions that hold only merges since their common ancestors, that is, two answers to the same question.
///
/// One of the two states wins as a whole: the one of the higher rank (see `MergeMarks`), or, if both have the same rank, the larger one.
/// The larger state is the one whose reference was stored later at the first id, in byte order, where they hold different references; an
/// absent value is smaller than any. This is a total order of states, and no merge changes which of two is larger. If the newer version's
/// state won instead, each device could make its own answer the newer one by merging again. So devices that repeatedly merge their
/// answers converge to the largest, in whatever order they do it.
struct SettledMerge {
    let store: Store

    /// Returns the changes of the merge version: none if the first version's state wins, otherwise every difference of the second version.
    ///
    /// States with the same bytes are compared, too: what one merge treats as equal may have different references for another.
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
                out.append(arena.copy(difference.key), preserving: difference.after.map { (store.versionID($0.version), $0) })
            }
        } catch is FirstStands {}
        return out
    }

    private struct FirstStands: Error {}

    /// Compares different references.
    private func isLarger(_ a: MapEntry?, than b: MapEntry?) -> Bool {
        guard let a else { return false }
        return b.map { store.isStoredLater(a, $0) } ?? true
    }

    /// The same as `forEachDifference`. If both maps are in memory, or have few changes, nothing is read after the id at which `body`
    /// throws, and the merges of a long fold are not walked again for each head.
    private func forEachDifferenceByMaps(_ a: UInt32, _ b: UInt32, _ control: PacedControl, _ body: (Difference) throws -> Void) throws {
        guard haveMaps(a, b) else { return try store.forEachDifference(a, b, control, body) }
        try MapNode.forEachDifference(store.maps.map(a, control), store.maps.map(b, control)) {
            try body(Difference(key: $0, before: $1, after: $2))
        }
    }

    private func haveMaps(_ a: UInt32, _ b: UInt32) -> Bool {
        if store.maps.slot(a) != nil, store.maps.slot(b) != nil { return true }
        // For near versions, only the changes recorded since need to be read.
        let near = MapPolicy.manyUses, few = MapPolicy.mostComparedWithMaps
        if store.lock.withRead({ store.dag.meeting(a, b, leftAtMost: near, rightAtMost: near) != nil }) { return false }
        return store.maps.isWithin(few, toMakeMapOf: a) && store.maps.isWithin(few, toMakeMapOf: b)
    }
}
