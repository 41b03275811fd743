/// Maintains maps while versions are saved.
extension MapProvider {
    /// As `view(at:)`, for saving `changes` changes on a version. Returns nil if looking up single ids is cheaper: that is, if no map is in
    /// memory, unless so many versions were saved in sequence that one pays. (Saves that alternate between many branches would need a map
    /// for each.)
    func view(toSave changes: Int, on ordinal: UInt32) throws -> DeltaChains.View? {
        if let view = chains.openView(ordinal) { return view }
        if changes <= MapPolicy.fewLookups, !isAtHand(ordinal) {
            guard let limit = MapPolicy.changesWorthAMap(saves: uses.count(.save, at: ordinal)), isWithin(limit, toMakeMapOf: ordinal)
            else { return nil }
        }
        return try view(at: ordinal)
    }

    /// Returns the entries that prevail at a version, for saving a version of few changes on it. A map is made only from time to time.
    func view(at ordinal: UInt32) throws -> DeltaChains.View {
        if let view = chains.openView(ordinal) { return view }
        let slot = try mapSlot(ordinal)
        return chains.begin(cache.isHeavy(slot) ? lightened(slot, of: ordinal) : slot, of: ordinal)
    }

    /// Returns the same map, flattened, since the changes since the last time take much memory.
    func lightened(_ slot: MapCache.Slot, of ordinal: UInt32) -> MapCache.Slot {
        guard let root = slot.root, let flat = (try? relisted(slot)) ?? (try? flatten(root, of: ordinal, isKept: false))
        else { return slot }
        cache.drop(ordinal)
        return cache.store(ordinal, flat: flat)
    }

    /// Returns the same map, as new entries for the nodes of the flat map that it builds on, if no id was added or removed. Writing these
    /// is much faster than writing a map. Nil if that is impossible.
    private func relisted(_ slot: MapCache.Slot) throws -> MapNode? {
        guard let flat = slot.flat, let root = slot.root, root.count == flat.count else { return nil }
        var updates: [(number: Int, entry: MapEntry)] = [], isOther = false
        MapNode.forEachDifference(MapNode(flat), root) { key, old, new in
            guard !isOther, old != nil, let new, let number = flat.find(key, beneath: flat.root) else { isOther = true; return }
            updates.append((number, new))
        }
        return isOther ? nil : try other(flat, updates).map { MapNode($0) }
    }

    /// Returns a map with the same keys and other entries, in memory, or in a file if they are many.
    func other(_ flat: FlatMap, _ updates: [(number: Int, entry: MapEntry)]) throws -> FlatMap? {
        let size = flat.count * MemoryLayout<MapEntry>.stride
        if size > account.mostOfOneMap / 2, let writer = fileWriter, let made = try FlatMap(flat, replacing: updates, to: writer) {
            return made
        }
        try Memory.expect(size, "Replacing the entries of a map")
        return FlatMap(flat, replacing: updates)
    }

    /// Returns a writer for a file without a name; nil if the storage has none.
    var fileWriter: (any CacheWriter)? {
        guard let writer = try? storage.cacheWriter(nil), !(writer is MemoryCacheWriter) else { return nil }
        return writer
    }

    /// Makes the map of a stored version available without reading its record: few changes become a delta if the map of the predecessor is
    /// in memory, more become a map. A map of many changes is not made at this time: a loader may never use it, and it is made from the
    /// record on demand.
    /// - Parameters:
    ///   - first: the predecessor; `History.none` for a root.
    ///   - count: the number of changes.
    ///   - changes: their effect on the map; empty for many.
    ///   - view: the entries that prevail at `first`, if in memory.
    func keep(_ ordinal: UInt32, on first: UInt32, count: Int, _ changes: [MapChange], _ view: DeltaChains.View?) {
        guard first != History.none else { return }
        switch MapPolicy.keeping(changes: count) {
        case .nothing: return
        case .map:
            guard let behind = try? mapSlot(first) else { return }
            // If memory is short, the map is made on demand.
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
