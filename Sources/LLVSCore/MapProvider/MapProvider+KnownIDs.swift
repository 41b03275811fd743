/// The ids that exist at a version on which versions of many changes are saved in sequence. Most of the loaded ids are new, and a map of
/// all existing ones, made only to check that, would cost more the more there are.
extension MapProvider {
    /// The ids that versions changed, from one with a map, or from the first, up to another.
    final class KnownIDs {
        /// The version before the first of them; `History.none`: there is none.
        fileprivate let base: UInt32
        fileprivate var last: UInt32
        fileprivate let filter: IDFilter
        /// For each layer of the filter the versions whose ids are in it.
        private var versions: [[UInt32]] = []
        /// The tables of records that were searched. They bypass the block cache, which is for blocks that are read again.
        private var tables: [UInt32: ChangeTable] = [:]
        fileprivate init(base: UInt32, most: Int) { self.base = base; last = base; filter = IDFilter(most: most) }

        fileprivate func learn(_ version: UInt32) {
            while versions.count < filter.layerCount { versions.append([]) }
            versions[versions.count - 1].append(version)
            last = version
        }

        /// Returns the versions of some layers, the newest first; nil if they are many.
        fileprivate func versions(of layers: UInt64) -> [UInt32]? {
            var found: [UInt32] = []
            for (i, list) in versions.enumerated().reversed() where layers & 1 << UInt64(min(i, 63)) != 0 {
                found += list.reversed()
                if found.count > MapPolicy.fewLookups { return nil }
            }
            return found
        }

        /// Returns the table of a record. Tables of small versions are cached only up to a limit.
        fileprivate func table(of version: UInt32, at place: RecordPlace, in records: Records) throws -> ChangeTable {
            if let known = tables[version], known.place == place { return known }
            let table = try ChangeTable(place, anew: true, in: records)
            if tables.count < MapPolicy.fewLookups || tables[version] != nil { tables[version] = table }
            return table
        }
    }

    /// Calls `body` with a lookup of the ids at a version, for saving `changes` changes on it, if its map is neither in memory nor needed.
    /// For an id that is certainly absent the lookup reads nothing. In all other cases passes nil.
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
            let layers = known.filter.layersThatMayHold(id)
            guard layers != 0 else { return base?.lookup(id) }
            if let whole { return whole?.lookup(id) }
            lookups -= 1
            if lookups > 0 {
                switch try lookUp(id, known, in: layers) {
                case .entry(let entry): return entry
                case .absent: return base?.lookup(id)
                case .unknown: return try entry(id, at: ordinal)
                }
            }
            let root = try map(ordinal)
            whole = .some(root)
            return root?.lookup(id)
        }
        return try body(present)
    }

    private enum LookedUp { case entry(MapEntry?), absent, unknown }

    /// Searches the records of the versions of some layers, if they are few. Never makes a map. Most ids that are looked up are in no
    /// layer.
    private func lookUp(_ id: UnsafeRawBufferPointer, _ known: KnownIDs, in layers: UInt64) throws -> LookedUp {
        guard let versions = known.versions(of: layers) else { return .unknown }
        do {
            for version in versions {
                let place = lock.withRead { dag.rows[Int(version)].place }
                guard place.segment != ProvisionalRecords.segment else { return .unknown }
                let table = try known.table(of: version, at: place, in: records)
                guard let found = try records.findChange(in: table, id) else { continue }
                return .entry(try change(found, of: id, madeIn: version, place).entry)
            }
        } catch let error as StoreError where error.code == .damaged { return .unknown }
        return .absent
    }

    /// Returns the ids known at a version; nil if its map should be used instead.
    private func learnIDs(at ordinal: UInt32, toSave changes: Int) throws -> KnownIDs? {
        guard ordinal != History.none, MapPolicy.mostLearned(toSave: changes) > 0, !isAtHand(ordinal) else { return nil }
        // Another thread that arrives meanwhile begins from the start.
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
            known.learn(version)
        }
        return known
    }

    /// Discards the ids: there is a map that includes them, or the memory is needed.
    func forgetIDs() {
        knownIDs.withLock { $0 = nil }
        account.note(knownIDs: 0)
    }
}
