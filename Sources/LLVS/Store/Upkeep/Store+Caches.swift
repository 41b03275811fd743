/// The caches beside the records: the history and one map, written at close when they pay. Never needed: in doubt
/// they are passed over, and everything comes from the records.
extension Store {
    static let historyName = "history"

    /// Takes up the history where a handle before left it. The caller is opening the store.
    /// - Throws: what the control throws.
    func loadCaches(_ control: PacedControl = .none) throws {
        guard let bytes = try? storage.cacheGet(Store.historyName) else { return }
        guard let cached = try HistoryIndex.decode(bytes, control, resume: storage.resume) else {
            // Void, perhaps only after the storage had gone on behind it.
            storage.forgetResumed()
            return
        }
        dag = cached.history
        if cached.mayHaveDifferences { differencing.note() }
        caches.versions = dag.liveCount
        caches.rows = dag.rows.count
        maps.persisted = cached.persisted
        maps.namedPersistedMap = cached.persisted
    }

    /// Writes what the next one to open the store would otherwise have to find out, when it is much.
    func saveCaches() {
        let mayBe = lock.withRead { commits.unpublished.isNone && !caches.areWrong }
        guard mayBe, !storage.isReadOnly, storage.damages.isEmpty else { return }
        let (count, isWhole, isOutdated, head) = lock.withRead {
            (
                dag.liveCount, pending.count == 0 && findings.damages.allSatisfy { $0.lost == .nothing }, caches.areOutdated,
                dag.headOrdinals.max { dag.isNewer($1, $0) }
            )
        }
        guard isWhole, let head else { return }
        let isMuch = MapPolicy.cachesPay(new: count - caches.versions, known: caches.versions, isOutdated: isOutdated)
        maps.renewPersistedMap(head, isMuch: isMuch)
        let kept = lock.withRead { maps.persisted }
        guard isMuch || kept?.id != maps.namedPersistedMap?.id, let mark = storage.scanMark() else { return }
        // Who reads the index does not look at the records again: after a power cut it must not speak of any that are lost.
        do { try storage.sync() } catch { return }
        // A cache can wait until there is memory.
        do { try Memory.expect(lock.withRead { dag.liveCount } * 128, "Writing the index of the history") } catch { return }
        // Whoever takes the index up does not see what the records say of it.
        let mayHaveDifferences = differencing.mayBeMet
        let index = lock.withRead {
            HistoryIndex.encode(dag, kept, mark: mark, mayHaveDifferences: mayHaveDifferences, place: storage.currentPlace)
        }
        do { try storage.cachePut(Store.historyName, index) } catch { return }
        if let old = maps.namedPersistedMap, old.id != kept?.id { try? storage.cacheDelete(old.name) }
    }
}
