/// Decides which map answers for a version, from which source, and at which cost (`MapPolicy`): a map in memory, a chain of deltas, a map
/// in the caches, or one made from the nearest of these before it and the changes recorded since. Single ids are also looked up through the
/// history.
///
/// It needs the history and the records, and nothing else. Callers hold no lock, unless a method says so. Safe from all threads.
package final class MapProvider: @unchecked Sendable {
    // Sendable: `persisted` and `keyHistory` are guarded by the lock of the history, `namedPersistedMap` by the commit lock; the parts have
    // locks.
    let history: SharedHistory
    let records: Records
    /// The maps in memory.
    package let cache: MapCache
    let chains: DeltaChains
    /// The recorded changes of versions, as far as in memory.
    package let changeLists: ChangeLists
    /// The map in the caches. Guarded by `lock`.
    var persisted: PersistedMap? { didSet { account.note(persistedMap: persisted?.memory ?? 0) } }
    /// The persisted map that the history index on disk names.
    var namedPersistedMap: PersistedMap?
    /// Finds the version that last changed an id. Built at the first reads of arbitrary past versions. Guarded by `lock`.
    var keyHistory: KeyHistoryIndex?
    /// The folds in progress. Guarded by `lock`.
    package var folds: [FoldedKeys] = []
    /// Counts of operations done without maps.
    let uses = UseCounts()

    /// The ids that exist at a version on which much was saved.
    let knownIDs = Guarded<KnownIDs?>(nil)
    package let account: MemoryAccount

    /// - Parameter account: the memory budgets.
    init(_ history: SharedHistory, _ records: Records, _ account: MemoryAccount) {
        self.history = history
        self.records = records
        self.account = account
        cache = MapCache(account, readers: history.lock)
        chains = DeltaChains(account)
        changeLists = ChangeLists(capacity: account.changeLists)
    }

    var lock: ReadWriteLock { history.lock }
    /// Guarded by `lock`.
    var dag: History { history.dag }
    var storage: any Storage { records.storage }

    /// Returns a version's map. The caller holds the lock for reading, and uses the map only while it does. `found` is whether it is in
    /// memory; `root` is nil if it is empty.
    @inline(__always)
    func root(of ordinal: UInt32) -> (found: Bool, root: Unmanaged<MapNode>?) {
        Work.mapLooks.count()
        return cache.root(of: ordinal)
    }

    /// Returns the map of a version if it is in memory.
    package func slot(_ ordinal: UInt32) -> MapCache.Slot? { cache.slot(ordinal) }

    /// Removes the map of a version whose commit failed, or whose entries point to records that will not exist.
    package func drop(_ ordinal: UInt32) { cache.drop(ordinal) }

    /// Releases the memory of all maps, which are rebuilt on demand.
    func giveWay() {
        forgetIDs()
        chains.removeAll()
        cache.removeAll()
        records.bases.removeAll()
    }

    /// Returns the map of a version; nil is the empty map.
    package func map(_ ordinal: UInt32, _ control: PacedControl = .none) throws -> MapNode? { try mapSlot(ordinal, control).root }

    /// - Throws: also errors of the control; intermediate maps made by then remain cached.
    func mapSlot(_ ordinal: UInt32, _ control: PacedControl = .none) throws -> MapCache.Slot {
        if let slot = cache.slot(ordinal) { return slot }
        if let view = chains.view(ordinal) {
            let (root, from) = try view.map()
            let slot = cache.store(ordinal, root, changes: from.changes, on: from.slot)
            view.keep(slot)
            return slot
        }
        if let slot = try takePersistedMap(of: ordinal) { return slot }
        var way = WayToMap(ordinal)
        while !lock.withRead({ goBack(&way) }) { try control.look() }
        let chain = way.chain
        // By now an invalid persisted map, or one that another thread opens at this moment, was discarded.
        let base = try way.near.map { try mapSlot($0, control) } ?? way.base
        // Forward again, a stretch of small versions at a time, caching an anchor after each.
        var slot = base
        var i = chain.count - 1
        let stretch = MapPolicy.stretch(versions: chain.count, values: base.root?.count ?? 0, reserve: account.reserve)
        while i >= 0 {
            try control.step(0)
            let next = chain[i]
            let large = MapPolicy.versionsWrittenFlat(
                changes: chain[...i].reversed().lazy.map { Int($0.changeCount) }, onto: slot.root?.count ?? 0, memory: account.mostMaps)
            if large > 0 {
                // If several large versions follow each other, write the map of the last one only.
                let run = chain[(i - large + 1)...i]
                slot = cache.store(
                    run[run.startIndex].ordinal,
                    flat: try flatten(run.map(\.ordinal), on: slot.root, changes: run.reduce(0) { $0 + Int($1.changeCount) }))
                forgetIDs()
                i -= large
                continue
            }
            var arena = KeyArena()
            var used = 0
            let single = Int(next.changeCount) >= stretch
            try Memory.expect(max(Int(chain[i].changeCount), min(stretch, 1 << 16)) * 128, "Making the map of a version")
            var last = i
            while i >= 0, used == 0 || (!single && used + Int(chain[i].changeCount) <= stretch) {
                try control.step(0)
                try Memory.check()
                try forEachRecordedChange(chain[i].ordinal) { arena.append($0.key, $0.entry) }
                used += max(1, Int(chain[i].changeCount))
                last = i
                i -= 1
            }
            let root = try arena.withChanges(isSorted: single) { try MapNode.applying($0, to: slot.root) }
            slot = cache.store(chain[last].ordinal, root, changes: used, on: slot)
            if cache.isHeavy(slot) { slot = lightened(slot, of: chain[last].ordinal) }
        }
        return slot
    }

    /// The way back along the first predecessors of a version, to a map that is in memory or can be opened.
    private struct WayToMap {
        var at: UInt32
        /// The versions on the way, in a compact form, since it may span a long history.
        var chain: [(ordinal: UInt32, changeCount: UInt32)] = []
        /// The map in memory at the end of the way, or the empty map before a root.
        var base = MapCache.Slot()
        /// A version whose map can be opened.
        var near: UInt32?
        init(_ ordinal: UInt32) { at = ordinal }
    }

    /// Goes back some versions; returns whether the end of the way is found. The caller holds the lock.
    private func goBack(_ way: inout WayToMap) -> Bool {
        lock.assertHeld("The history")
        for _ in 0..<SharedHistory.versionsAtATime {
            Work.versions.count()
            let row = dag.rows[Int(way.at)]
            way.chain.append((way.at, row.changeCount))
            way.at = row.first
            if way.at == History.none { return true }
            if let slot = cache.slot(way.at) { way.base = slot; return true }
            if persisted?.isOf(way.at) == true || chains.view(way.at) != nil { way.near = way.at; return true }
        }
        return false
    }

    /// Returns a lookup of single ids at a version. Makes no map of a version whose entries follow from the changes since another.
    package func prevailing(at ordinal: UInt32) throws -> Prevailing {
        if let slot = cache.slot(ordinal) { return .map(slot.root) }
        if let view = chains.view(ordinal) { return .chain(view) }
        return .past(self, ordinal)
    }

    /// Returns whether the map of a version is in memory, or a chain from which it is made.
    func isAtHand(_ ordinal: UInt32) -> Bool { cache.slot(ordinal) != nil || chains.view(ordinal) != nil }
}
