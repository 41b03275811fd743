/// Which step of a fold changed an id last. Steps are not stored yet, so `KeyHistoryIndex` does not tell of them; and each stands on the
/// one before, so that all of them would be gone back over for each id that is looked up at the last one.
///
/// Guarded by the lock of the history. A dictionary entry for each id that a step changed.
final class FoldedKeys {
    /// That a step changed an id; `before` is the entry of the same hash before it, -1 where there is none.
    private struct Entry {
        var step: Int
        var before: Int
    }
    private var entries: [Entry] = []
    /// By hashes, the entry of the last step that changed such an id.
    private var last: [UInt32: Int] = [:]
    /// Steps of which nobody knows by heart which ids they changed.
    private var others: [Int] = []
    /// Each on the one before.
    private var steps: [UInt32] = []
    private var places: [UInt32: Int] = [:]

    /// A step is staged. One that does not stand on the one before begins a line of its own.
    func add(_ step: UInt32, in dag: History) {
        if let top = steps.last, dag.rows[Int(step)].first != top { clear() }
        let place = steps.count
        steps.append(step)
        places[step] = place
        guard let hashes = dag.keyHashes(of: step) else { return others.append(place) }
        for hash in hashes {
            entries.append(Entry(step: place, before: last[hash] ?? -1))
            last[hash] = entries.count - 1
        }
    }

    private func clear() {
        entries = []
        last = [:]
        others = []
        steps = []
        places = [:]
    }

    enum Found {
        /// It may have changed the id; none between has.
        case version(UInt32)
        /// None of the steps has changed it: one behind this one may, which the first step stands on.
        case behind(UInt32)
    }

    /// The nearest step at or behind `ordinal` that may have changed an id of that hash; nil when `ordinal` is none of the steps. O(1) for
    /// the last one.
    func nearest(_ hash: UInt32, at ordinal: UInt32, in dag: History) -> Found? {
        guard let place = places[ordinal] else { return nil }
        var at = last[hash] ?? -1
        while at >= 0, entries[at].step > place { at = entries[at].before }
        let known = at < 0 ? nil : entries[at].step, other = others.last { $0 <= place }
        guard let found = [known, other].compactMap({ $0 }).max() else { return .behind(dag.rows[Int(steps[0])].first) }
        return .version(steps[found])
    }
}
