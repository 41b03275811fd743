/// The map of a version: from memory, or made from the nearest one behind it and the changes between.
extension Store {
    /// What prevails at a version; nil is the empty map.
    func map(_ ordinal: UInt32, _ control: PacedControl = .none) throws -> MapNode? { try mapSlot(ordinal, control).root }

    /// - Throws: also what the control throws; what was made of the way by then is kept.
    func mapSlot(_ ordinal: UInt32, _ control: PacedControl = .none) throws -> MapCache.Slot {
        if let slot = maps.slot(ordinal) { return slot }
        if let view = lines.view(ordinal) {
            let (root, from) = try view.map()
            let slot = maps.store(ordinal, root, changes: from.changes, on: from.slot)
            view.keep(slot)
            return slot
        }
        if let slot = try takeCheckpoint(of: ordinal) { return slot }
        var way = WayToMap(ordinal)
        while !lock.withRead({ goBack(&way) }) { try control.look() }
        let chain = way.chain
        // A checkpoint that is void, or that another thread takes at this moment, is gone from here on.
        let base = try way.near.map { try mapSlot($0, control) } ?? way.base
        // Forward again, a stretch of small versions at a time, leaving an anchor behind each.
        var slot = base
        var i = chain.count - 1
        let stretch = MapPolicy.stretch(versions: chain.count)
        while i >= 0 {
            try control.step(0)
            let next = chain[i]
            if MapPolicy.isWrittenFlat(changes: next.changes, onto: slot.root?.count ?? 0) {
                let root = try flatten(next.ordinal, on: slot.root, changes: next.changes)
                slot = maps.store(next.ordinal, flat: root)
                i -= 1
                continue
            }
            var arena = KeyArena()
            var used = 0
            let single = chain[i].changes >= stretch
            try Memory.expect(max(chain[i].changes, min(stretch, 1 << 16)) * 128, "Making the map of a version")
            var last = i
            while i >= 0, used == 0 || (!single && used + chain[i].changes <= stretch) {
                try control.step(0)
                try Memory.check()
                try forEachRecordedChange(chain[i].ordinal) { arena.append($0.key, $0.entry) }
                used += max(1, chain[i].changes)
                last = i
                i -= 1
            }
            let root = try arena.withChanges(isSorted: single) { try MapNode.applying($0, to: slot.root) }
            slot = maps.store(chain[last].ordinal, root, changes: used, on: slot)
        }
        return slot
    }

    /// Back along the first predecessors of a version, to a map that is here or can be had.
    private struct WayToMap {
        var at: UInt32
        var chain: [(ordinal: UInt32, changes: Int)] = []
        /// What is here: a map, or nothing at the end.
        var base = MapCache.Slot()
        /// Of which a map can be had.
        var near: UInt32?
        init(_ ordinal: UInt32) { at = ordinal }
    }

    /// Versions that are walked over with the lock held.
    private static let stretch = 4_096

    /// Goes back some versions; whether the end of the way is found. The caller holds the lock.
    private func goBack(_ way: inout WayToMap) -> Bool {
        for _ in 0..<Store.stretch {
            Work.versions.count()
            let row = dag.rows[Int(way.at)]
            way.chain.append((way.at, Int(row.changeCount)))
            way.at = row.first
            if way.at == History.none { return true }
            if let slot = maps.slot(way.at) { way.base = slot; return true }
            if checkpoint?.isOf(way.at) == true || lines.view(way.at) != nil { way.near = way.at; return true }
        }
        return false
    }

    /// What prevails for single ids at a version. No map is made of one that the changes since another tell.
    func prevailing(at ordinal: UInt32) throws -> Prevailing {
        if let slot = maps.slot(ordinal) { return .map(slot.root) }
        if let view = lines.view(ordinal) { return .line(view) }
        return .past(self, ordinal)
    }

    enum Prevailing {
        case map(MapNode?)
        case line(MapLines.View)
        /// One id after the other, until there are so many that a map pays.
        case past(Store, UInt32)

        /// What prevails for a key; nil when nothing does.
        func lookup(_ key: UnsafeRawBufferPointer) throws -> MapEntry? {
            switch self {
            case .map(let root): root?.lookup(key)
            case .line(let view): view.lookup(key)
            case .past(let store, let ordinal): try store.entry(key, at: ordinal)
            }
        }
    }

    /// Whether the map of a version is here, or what one is made of.
    func isAtHand(_ ordinal: UInt32) -> Bool { maps.slot(ordinal) != nil || lines.view(ordinal) != nil }

    /// As `view(at:)`, for who saves so many changes on a version; nil when that version had better be looked at one id at a
    /// time: where no map is at hand, unless so many versions are saved one upon the other that one pays. Of many branches that are
    /// gone on with in turn each would need a map of its own.
    func view(toSave changes: Int, on ordinal: UInt32) throws -> MapLines.View? {
        if let view = lines.openView(ordinal) { return view }
        if changes <= MapPolicy.fewLookups, !isAtHand(ordinal) {
            guard let limit = MapPolicy.changesWorthAMap(saves: savedLines.count(endingAt: ordinal)), isWithin(limit, toMakeMapOf: ordinal) else { return nil }
        }
        return try view(at: ordinal)
    }

    /// What prevails at a version, for one of few changes that is to follow it: no map is made of it, but every so often.
    func view(at ordinal: UInt32) throws -> MapLines.View {
        if let view = lines.openView(ordinal) { return view }
        let slot = try mapSlot(ordinal)
        return lines.begin(maps.isHeavy(slot) ? lightened(slot, of: ordinal) : slot, of: ordinal)
    }

    /// The same map, but flat: what was changed in it since the last time takes much memory.
    private func lightened(_ slot: MapCache.Slot, of ordinal: UInt32) -> MapCache.Slot {
        guard let root = slot.root, let flat = try? flatten(root, of: ordinal, isKept: false) else { return slot }
        maps.drop(ordinal)
        return maps.store(ordinal, flat: flat)
    }
}
