/// The map of a version: from memory, or made from the nearest one behind it and the changes between.
extension Store {
    /// What prevails at a version; nil is the empty map.
    func map(_ ordinal: UInt32) throws -> MapNode? { try mapSlot(ordinal).root }

    func mapSlot(_ ordinal: UInt32) throws -> MapCache.Slot {
        if let slot = maps.slot(ordinal) { return slot }
        if let view = lines.view(ordinal) {
            let (root, from) = try view.map()
            let slot = maps.store(ordinal, root, changes: from.changes, on: from.slot)
            view.keep(slot)
            return slot
        }
        if let slot = try takeCheckpoint(of: ordinal) { return slot }
        // Back along the first predecessors to a map that is here.
        var chain: [(ordinal: UInt32, changes: Int)] = []
        var base = MapCache.Slot()
        let near = lock.withRead { () -> UInt32? in
            var at = ordinal
            while true {
                let row = dag.rows[Int(at)]
                chain.append((at, Int(row.changeCount)))
                at = row.first
                if at == History.none { return nil }
                if let slot = maps.slot(at) { base = slot; return nil }
                if let checkpoint, checkpoint.isOf(at) { return at }
                if lines.view(at) != nil { return at }
            }
        }
        // A checkpoint that is void, or that another thread takes at this moment, is gone from here on.
        if let near { base = try mapSlot(near) }
        // Forward again, a stretch of small versions at a time, leaving an anchor behind each.
        var slot = base
        var i = chain.count - 1
        let stretch = max(MapCache.anchorSpacing, chain.count / 32)
        while i >= 0 {
            let next = chain[i]
            if next.changes >= Store.flatChanges, next.changes >= (slot.root?.count ?? 0) / 8 {
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
        if changes <= Store.fewChanges, !isAtHand(ordinal) {
            let saved = savedLines.count(endingAt: ordinal), isOften = saved >= Store.fewReads && saved & (saved - 1) == 0
            // What looking back costs more for each is about what four changes cost in a map.
            guard isOften, isWithin(saved * 4, toMakeMapOf: ordinal) else { return nil }
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
