/// The map of a version: from memory, or made from the nearest one behind it and the changes between.
extension Store {
    /// What prevails at a version; nil is the empty map.
    func map(_ ordinal: UInt32) throws -> MapNode? { try mapSlot(ordinal).root }

    func mapSlot(_ ordinal: UInt32) throws -> MapCache.Slot {
        if let slot = maps.slot(ordinal) { return slot }
        if let view = lines.view(ordinal) {
            let (root, from) = view.map()
            let slot = maps.store(ordinal, root, changes: from.changes, on: from.slot)
            view.keep(slot)
            return slot
        }
        if let slot = takeCheckpoint(of: ordinal) { return slot }
        // Back along the first predecessors to a map that is here.
        var chain: [(ordinal: UInt32, place: RecordPlace, changes: Int)] = []
        var base = MapCache.Slot()
        let near = lock.withRead { () -> UInt32? in
            var at = ordinal
            while true {
                let row = dag.rows[Int(at)]
                chain.append((at, row.place, Int(row.changeCount)))
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
                let root = try flatten(next.ordinal, next.place, on: slot.root, changes: next.changes)
                slot = maps.store(next.ordinal, flat: root)
                i -= 1
                continue
            }
            var arena = KeyArena()
            var used = 0
            let single = chain[i].changes >= stretch
            var last = i
            while i >= 0, used == 0 || (!single && used + chain[i].changes <= stretch) {
                try appendChanges(of: chain[i].ordinal, chain[i].place, to: &arena)
                used += max(1, chain[i].changes)
                last = i
                i -= 1
            }
            let root = arena.withChanges(isSorted: single) { MapNode.applying($0, to: slot.root) }
            slot = maps.store(chain[last].ordinal, root, changes: used, on: slot)
        }
        if chain.count > 64, lock.withRead({ !loadedDeltas.isEmpty }) { lock.withWrite { loadedDeltas.removeAll() } }
        return slot
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
        return maps.store(ordinal, flat: flat)
    }

    /// The effect of one version's record on the map of its first predecessor.
    private func appendChanges(of ordinal: UInt32, _ place: RecordPlace, to arena: inout KeyArena) throws {
        if lock.withRead({ loadedDeltas.appendChanges(of: ordinal, to: &arena) }) { return }
        try forEachMapChange(of: ordinal, place) { arena.append($0, $1) }
    }

    /// Calls with what each change of a version's record sets in its map, in order of the keys; nil removes.
    func forEachMapChange(of ordinal: UInt32, _ place: RecordPlace, _ body: (UnsafeRawBufferPointer, MapEntry?) throws -> Void) throws {
        let checksum = lock.withRead { dag.rows[Int(ordinal)].checksum }
        try forEachChange(place) { entry, header in
            guard header.checksum == checksum else { throw damaged(place, "is not the one that was there", version: versionID(ordinal)) }
            switch entry.kind {
            case .insert, .update:
                try body(entry.id, MapEntry(version: ordinal, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset)))
            case .remove, .preserveRemoval:
                try body(entry.id, nil)
            case .preserve:
                let stored = header.dependencies[entry.dependency]
                guard let version = lock.withRead({ dag.ordinalIncludingStaged(of: stored) }) else {
                    throw damaged(place, "names a version that is not here", version: header.id, value: entry.id)
                }
                try body(entry.id, MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0))
            }
        }
    }
}
