/// Reads and writes the caches beside the records: the history and one map, written at close if that pays. They are never needed: in doubt
/// they are skipped, and everything is read from the records.
extension Store {
    static let historyName = "history"

    /// Loads the history that an earlier handle cached. Called while the store is being opened.
    /// - Throws: the errors of the control.
    func loadCaches(_ control: PacedControl = .none) throws {
        guard let bytes = try? storage.cacheGet(Store.historyName) else { return }
        guard let cached = try HistoryIndex.decode(bytes, control, resume: storage.resume) else {
            // Invalid, which may have been noticed only after the storage had resumed from it.
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

    /// Writes the caches that spare the next opening work, if that is much.
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
        // A reader of the index does not read the records again: after a power cut it must not contain lost ones.
        do { try storage.sync() } catch { return }
        guard !orders.hasOpenNow(), !orders.hasUnread else { return }
        // A cache can wait until there is memory.
        do { try Memory.expect(lock.withRead { dag.liveCount } * 128, "Writing the index of the history") } catch { return }
        // A reader of the index does not see the flags of the records.
        let mayHaveDifferences = differencing.mayBeMet
        let index = lock.withRead {
            HistoryIndex.encode(dag, kept, mark: mark, mayHaveDifferences: mayHaveDifferences, place: storage.currentPlace)
        }
        do { try storage.cachePut(Store.historyName, index) } catch { return }
        if let old = maps.namedPersistedMap, old.id != kept?.id { try? storage.cacheDelete(old.name) }
    }
}
