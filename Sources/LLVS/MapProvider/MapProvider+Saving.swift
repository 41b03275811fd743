/// What becomes of maps while versions are saved.
extension MapProvider {
    /// As `view(at:)`, for who saves so many changes on a version; nil when that version had better be looked at one id at a
    /// time: where no map is at hand, unless so many versions are saved one upon the other that one pays. Of many branches that are
    /// gone on with in turn each would need a map of its own.
    func view(toSave changes: Int, on ordinal: UInt32) throws -> DeltaChains.View? {
        if let view = chains.openView(ordinal) { return view }
        if changes <= MapPolicy.fewLookups, !isAtHand(ordinal) {
            guard let limit = MapPolicy.changesWorthAMap(saves: uses.count(.save, at: ordinal)), isWithin(limit, toMakeMapOf: ordinal)
            else { return nil }
        }
        return try view(at: ordinal)
    }

    /// What prevails at a version, for one of few changes that is to follow it: no map is made of it, but every so often.
    func view(at ordinal: UInt32) throws -> DeltaChains.View {
        if let view = chains.openView(ordinal) { return view }
        let slot = try mapSlot(ordinal)
        return chains.begin(cache.isHeavy(slot) ? lightened(slot, of: ordinal) : slot, of: ordinal)
    }

    /// The same map, but flat: what was changed in it since the last time takes much memory.
    func lightened(_ slot: MapCache.Slot, of ordinal: UInt32) -> MapCache.Slot {
        guard let root = slot.root, let flat = (try? relisted(slot)) ?? (try? flatten(root, of: ordinal, isKept: false))
        else { return slot }
        cache.drop(ordinal)
        return cache.store(ordinal, flat: flat)
    }

    /// The same map by other entries for the nodes of the flat map that it builds on, where no id came or went: these are written much
    /// sooner than a map. Nil where that cannot be done.
    private func relisted(_ slot: MapCache.Slot) throws -> MapNode? {
        guard let flat = slot.flat, let root = slot.root, root.count == flat.count else { return nil }
        var updates: [(number: Int, entry: MapEntry)] = [], isOther = false
        MapNode.forEachDifference(MapNode(flat), root) { key, old, new in
            guard !isOther, old != nil, let new, let number = flat.find(key, beneath: flat.root) else { isOther = true; return }
            updates.append((number, new))
        }
        return isOther ? nil : try other(flat, updates).map { MapNode($0) }
    }

    /// The same keys with other entries, in memory or, where they are many, in a file.
    func other(_ flat: FlatMap, _ updates: [(number: Int, entry: MapEntry)]) throws -> FlatMap? {
        let size = flat.count * MemoryLayout<MapEntry>.stride
        if size > account.mostOfOneMap / 2, let writer = fileWriter, let made = try FlatMap(flat, replacing: updates, to: writer) {
            return made
        }
        try Memory.expect(size, "Taking up a map")
        return FlatMap(flat, replacing: updates)
    }

    /// Writes a cache without a name that takes no memory; nil where there is none.
    var fileWriter: (any CacheWriter)? {
        guard let writer = try? storage.cacheWriter(nil), !(writer is MemoryCacheWriter) else { return nil }
        return writer
    }

    /// Sees to it that the map of a version that was stored can be had without reading its record, when what it builds on is at hand. That
    /// of many changes is
    /// not made while it is stored: whoever loads much may never ask for it, and it is read from the record when somebody does.
    /// - Parameters:
    ///   - first: what it builds on; `History.none` for a root.
    ///   - count: how many changes it has.
    ///   - changes: what they do to the map; empty for many.
    ///   - view: what prevails at `first`, when that is at hand.
    func keep(_ ordinal: UInt32, on first: UInt32, count: Int, _ changes: [MapChange], _ view: DeltaChains.View?) {
        guard first != History.none else { return }
        switch MapPolicy.keeping(changes: count) {
        case .nothing: return
        case .map:
            guard let behind = try? mapSlot(first) else { return }
            // Short of memory it is made when somebody asks for it.
            do { cache.store(ordinal, try MapNode.applying(changes[...], to: behind.root), changes: changes.count, on: behind) } catch {}
        case .delta:
            if let view = view ?? (isAtHand(first) ? try? self.view(at: first) : nil) {
                chains.append(ordinal, changes, to: view)
            } else {
                uses.add(.save, at: ordinal, after: first)
            }
        }
    }
}
