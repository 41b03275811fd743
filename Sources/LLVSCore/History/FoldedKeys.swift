/// Finds the step of a fold that changed an id last. `KeyHistoryIndex` does not cover steps, since they are not stored yet; and each step
/// builds on the one before, so without this each lookup at the last step would walk back over all of them.
///
/// Guarded by the lock of the history. One dictionary entry for each id that a step changed.
package final class FoldedKeys {
    /// Records that a step changed an id. `before` is the previous entry with the same hash, -1 if there is none.
    private struct Entry {
        var step: Int
        var before: Int
    }
    private var entries: [Entry] = []
    /// Maps a hash to its last entry.
    private var last: [UInt32: Int] = [:]
    /// Steps whose changed ids are not recorded.
    private var others: [Int] = []
    /// The steps, each built on the one before.
    private var steps: [UInt32] = []
    private var places: [UInt32: Int] = [:]
    package init() {}

    /// Adds a staged step. A step that does not build on the last one begins a new line.
    package func add(_ step: UInt32, in dag: History) {
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
        /// This version may have changed the id; none in between has.
        case version(UInt32)
        /// No step changed the id; a version at or before this one may have. It is the version that the first step builds on.
        case behind(UInt32)
    }

    /// Returns the nearest step, from `ordinal` back, that may have changed an id of that hash; nil if `ordinal` is no step. O(1) for the
    /// last step.
    func nearest(_ hash: UInt32, at ordinal: UInt32, in dag: History) -> Found? {
        guard let place = places[ordinal] else { return nil }
        var at = last[hash] ?? -1
        while at >= 0, entries[at].step > place { at = entries[at].before }
        let known = at < 0 ? nil : entries[at].step, other = others.last { $0 <= place }
        guard let found = [known, other].compactMap({ $0 }).max() else { return .behind(dag.rows[Int(steps[0])].first) }
        return .version(steps[found])
    }
}
