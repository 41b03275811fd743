/// Which ids there are at a version on which versions of many changes are saved, one after the other: most of what is loaded is new, and a
/// map of all that is there already, made only to see that, would cost the more the more there is.
extension MapProvider {
    /// The ids that versions changed from one with a map, or the first, up to another.
    final class KnownIDs {
        /// Behind the first of them; `History.none`: there is nothing.
        fileprivate let base: UInt32
        fileprivate var last: UInt32
        fileprivate let filter: IDFilter
        fileprivate init(base: UInt32, most: Int) { self.base = base; last = base; filter = IDFilter(most: most) }
    }

    /// Calls with what tells the ids at a version for one who saves so many changes on it, where its map is neither at hand nor needed:
    /// of an id that is not there for certain it asks nothing else. Nil in all other cases.
    func withKnownIDs<R>(
        at ordinal: UInt32, toSave changes: Int, _ body: (((UnsafeRawBufferPointer) throws -> MapEntry?)?) throws -> R
    ) throws -> R {
        guard let known = try learnIDs(at: ordinal, toSave: changes) else { return try body(nil) }
        defer {
            knownIDs.withLock { $0 = known }
            account.note(knownIDs: known.filter.memory)
        }
        let base = known.base == History.none ? nil : try map(known.base)
        var lookups = MapPolicy.mostLookedFor(toSave: changes), whole: MapNode?? = .none
        func present(_ id: UnsafeRawBufferPointer) throws -> MapEntry? {
            guard known.filter.mayHold(id) else { return base?.lookup(id) }
            if let whole { return whole?.lookup(id) }
            lookups -= 1
            if lookups > 0 { return try entry(id, at: ordinal) }
            let root = try map(ordinal)
            whole = .some(root)
            return root?.lookup(id)
        }
        return try body(present)
    }

    /// Nil when the map had better be asked.
    private func learnIDs(at ordinal: UInt32, toSave changes: Int) throws -> KnownIDs? {
        guard ordinal != History.none, MapPolicy.mostLearned(toSave: changes) > 0, !isAtHand(ordinal) else { return nil }
        // Another thread that comes meanwhile begins anew.
        let before = knownIDs.withLock { known in
            defer { known = nil }
            return known
        }
        account.note(knownIDs: 0)
        var way: [UInt32] = [], sum = 0, base = History.none
        let known: KnownIDs? = lock.withRead {
            var at = ordinal
            while at != History.none {
                if let before, before.last == at { return before }
                if way.isEmpty ? persisted?.isOf(at) == true : cache.slot(at) != nil || persisted?.isOf(at) == true { base = at; break }
                let row = dag.rows[Int(at)]
                way.append(at)
                sum += max(1, Int(row.changeCount))
                if sum > MapPolicy.mostLearned(toSave: changes) { return nil }
                at = row.first
            }
            return way.isEmpty ? nil : KnownIDs(base: base, most: account.knownIDs)
        }
        guard let known, known.filter.reserve(sum) else { return nil }
        for version in way.reversed() {
            try readChanges(of: version) { known.filter.insert($0.key) }
            known.last = version
        }
        return known
    }

    /// A map of what they tell is there by now, or the memory is needed.
    func forgetIDs() {
        knownIDs.withLock { $0 = nil }
        account.note(knownIDs: 0)
    }
}
