/// Which map answers for a version, from what, and at which cost (`MapPolicy`): one in memory, a chain of deltas, one from the caches, or
/// one made from the nearest of these behind it and the changes recorded since; single ids are also looked up through the history.
///
/// It needs the history and the records, and nothing else. Callers hold no lock, unless a method says so. Safe from all threads.
final class MapProvider: @unchecked Sendable {
    // Sendable: `persisted` and `keyHistory` are guarded by the lock of the history, `namedPersistedMap` by the commit lock; its parts
    // have locks.
    let history: SharedHistory
    let records: Records
    /// The maps in memory.
    let cache: MapCache
    let chains: DeltaChains
    /// What versions recorded, as far as it is in memory.
    let changeLists: ChangeLists
    /// The map that the caches hold. Guarded by `lock`.
    var persisted: PersistedMap? { didSet { account.note(persistedMap: persisted?.memory ?? 0) } }
    /// The one that the history index on disk names.
    var namedPersistedMap: PersistedMap?
    /// Which version changed an id last before another. Made when the past is first read here and there. Guarded by `lock`.
    var keyHistory: KeyHistoryIndex?
    /// The folds that are going on. Guarded by `lock`.
    var folds: [FoldedKeys] = []
    /// What was done without maps.
    let uses = UseCounts()

    /// Which ids there are at a version that much was saved on.
    let knownIDs = Guarded<KnownIDs?>(nil)
    let account: MemoryAccount

    /// - Parameter account: what memory there is.
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

    /// A version's map for one who holds the lock for reading, for as long as that: `found` tells whether it is here, and `root` is nil
    /// when it is empty.
    @inline(__always)
    func root(of ordinal: UInt32) -> (found: Bool, root: Unmanaged<MapNode>?) {
        Work.mapLooks.count()
        return cache.root(of: ordinal)
    }

    /// The map of a version, when it is in memory.
    func slot(_ ordinal: UInt32) -> MapCache.Slot? { cache.slot(ordinal) }

    /// Forgets the map of a version: its commit failed, or it points to where nothing will be.
    func drop(_ ordinal: UInt32) { cache.drop(ordinal) }

    /// Lets go of the memory of all maps, which are made again when they are asked for.
    func giveWay() {
        forgetIDs()
        chains.removeAll()
        cache.removeAll()
        records.bases.removeAll()
    }

    /// What prevails at a version; nil is the empty map.
    func map(_ ordinal: UInt32, _ control: PacedControl = .none) throws -> MapNode? { try mapSlot(ordinal, control).root }

    /// - Throws: also what the control throws; what was made of the way by then is kept.
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
        // A persisted map that is void, or that another thread takes at this moment, is gone from here on.
        let base = try way.near.map { try mapSlot($0, control) } ?? way.base
        // Forward again, a stretch of small versions at a time, leaving an anchor behind each.
        var slot = base
        var i = chain.count - 1
        let stretch = MapPolicy.stretch(versions: chain.count, values: base.root?.count ?? 0, reserve: account.reserve)
        while i >= 0 {
            try control.step(0)
            let next = chain[i]
            let large = MapPolicy.versionsWrittenFlat(
                changes: chain[...i].reversed().lazy.map { Int($0.changeCount) }, onto: slot.root?.count ?? 0, memory: account.mostMaps)
            if large > 0 {
                // Of several one upon the other the map of the last is written, and none between.
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

    /// Back along the first predecessors of a version, to a map that is here or can be had.
    private struct WayToMap {
        var at: UInt32
        /// As few bytes as can be: it may be all of a long history.
        var chain: [(ordinal: UInt32, changeCount: UInt32)] = []
        /// What is here: a map, or nothing at the end.
        var base = MapCache.Slot()
        /// Of which a map can be had.
        var near: UInt32?
        init(_ ordinal: UInt32) { at = ordinal }
    }

    /// Goes back some versions; whether the end of the way is found. The caller holds the lock.
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

    /// What prevails for single ids at a version. No map is made of one that the changes since another tell.
    func prevailing(at ordinal: UInt32) throws -> Prevailing {
        if let slot = cache.slot(ordinal) { return .map(slot.root) }
        if let view = chains.view(ordinal) { return .chain(view) }
        return .past(self, ordinal)
    }

    /// Whether the map of a version is here, or what one is made of.
    func isAtHand(_ ordinal: UInt32) -> Bool { cache.slot(ordinal) != nil || chains.view(ordinal) != nil }
}
