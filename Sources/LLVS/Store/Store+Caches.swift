/// The caches beside the records: the history and one map, written at close when they pay. Never needed: in doubt
/// they are passed over, and everything comes from the records.
extension Store {
    private static let historyName = "history"
    private static let mapName = "map"
    /// Fewer new versions than this are read from their records as fast as from a cache.
    private static let fewVersions = 1_000

    /// Takes up the history where a handle before left it. The caller is opening the store.
    func loadCaches() {
        guard let bytes = try? storage.cacheGet(Store.historyName) else { return }
        guard let cached = HistoryIndex.decode(bytes, resume: storage.resume) else {
            // Void, perhaps only after the storage had gone on behind it.
            storage.forgetResumed()
            return
        }
        dag = cached
        cachedVersions = cached.liveCount
        guard let map = try? storage.cacheGet(Store.mapName), let version = MapCheckpoint.version(map) else { return }
        if let ordinal = cached.ordinal(of: version) {
            checkpoint = (ordinal, map)
            checkpointVersions = Int(ordinal)
        }
    }

    /// The checkpoint's map, when it is of that version: decoded when it is first needed.
    func takeCheckpoint(of ordinal: UInt32) -> MapCache.Slot? {
        guard let (at, bytes) = lock.withRead({ checkpoint }), at == ordinal else { return nil }
        let decoded = lock.withRead {
            MapCheckpoint.decode(bytes) { id in dag.ordinal(of: id).map { ($0, dag.rows[Int($0)].checksum) } }
        }
        lock.withWrite { checkpoint = nil }
        guard let decoded else { return nil }
        maps.store(ordinal, decoded.root, changes: MapCache.anchorSpacing, replayBehind: 0)
        return MapCache.Slot(root: decoded.root, replay: 0)
    }

    /// Writes what the next one to open the store would otherwise have to find out, when it is much.
    func saveCaches() {
        guard !storage.isReadOnly, storage.damages.isEmpty, unpublished.isNone else { return }
        let (count, isWhole, isOutdated) = lock.withRead { (dag.liveCount, pending.count == 0 && damages.isEmpty, cachesAreOutdated) }
        let isMuch = count - cachedVersions >= max(Store.fewVersions, cachedVersions / 4)
        guard isWhole, isMuch || (isOutdated && count >= Store.fewVersions), let mark = storage.scanMark() else { return }
        if let index = lock.withRead({ HistoryIndex.encode(dag, mark: mark, place: storage.currentPlace) }) { try? storage.cachePut(Store.historyName, index) }

        guard let head = lock.withRead({ dag.headOrdinals.max { dag.isNewer($1, $0) } }), let slot = maps.slot(head),
              count - checkpointVersions >= max(Store.fewVersions, (slot.root?.count ?? 0) / 8) else { return }
        let map = lock.withRead { MapCheckpoint.encode(dag.id(head), slot.root) { (dag.id($0), dag.rows[Int($0)].checksum) } }
        try? storage.cachePut(Store.mapName, map)
    }
}
