/// Verifies that the caches that this handle loaded match the records. Their checksums only prove that they are as written.
extension Store {
    /// Compares the history from a cache with the records, one by one.
    struct CacheVerification {
        /// The number of rows of the history that came from the cache; 0 if none did.
        let rows: Int
        /// For each row, whether a record confirmed it.
        private var confirmed: [Bool]
        /// Versions with a valid record that are missing in the history.
        private(set) var hidden: Set<VersionID> = []
        private static let mostHidden = 1_000

        init(rows: Int) { self.rows = rows; confirmed = Array(repeating: false, count: rows) }

        /// Precondition: the caller holds the store's lock for reading.
        mutating func met(_ header: RecordHeader, in history: History) {
            guard rows > 0 else { return }
            guard let ordinal = history.ordinal(of: header.id) else {
                if hidden.count < CacheVerification.mostHidden { hidden.insert(header.id) }
                return
            }
            guard Int(ordinal) < rows, !confirmed[Int(ordinal)] else { return }
            let row = history.rows[Int(ordinal)]
            confirmed[Int(ordinal)] =
                row.timestamp.bitPattern == header.timestamp.bitPattern && row.valueDataSize == header.valueDataSize
                && Int(row.changeCount) == header.changeCount && history.branch(ordinal) == header.metadata.branchName
                && history.predecessors(ordinal).map(history.id) == header.predecessors
        }

        /// Returns the versions whose rows no record confirmed.
        func unconfirmed(in history: History) -> [VersionID] {
            (0..<rows).filter { !confirmed[$0] && history.isLive($0) }.map { history.id(UInt32(truncatingIfNeeded: $0)) }
        }
    }

    package func wrongCache(_ name: String, _ what: String, _ version: VersionID) -> StorageDamage {
        let advice = storage.isReadOnly ? "Remove it" : "It was removed"
        return StorageDamage(
            file: storage.cacheLocation(name), offset: 0,
            message:
                "A cache contradicts the records: \(what). \(advice), and is rebuilt; "
                + "close the store and open it, since what was read through this handle may be wrong.",
            version: version, lost: .nothing)
    }
}

/// Checks caches against the records that they were made from.
struct CacheChecking {
    let store: Store

    /// Removes caches that contradict the records, and reports them.
    /// - Parameter explained: versions with damage that explains why no record of them was found; nil for all.
    func settleCaches(_ found: Store.CacheVerification, explained: Set<VersionID>?, _ report: inout VerifyReport, _ control: PacedControl)
        throws
    {
        guard found.rows > 0 else { return }
        // Other processes may have added versions since.
        try store.reloadHistory()
        let (hidden, wrong) = store.lock.withRead { () -> (VersionID?, VersionID?) in
            let refused = Set(store.findings.damages.compactMap(\.version))
            let isHidden = { [store] (id: VersionID) in
                // Versions that are being stored, or whose outcome is unknown, are not in it yet.
                store.dag.ordinal(of: id) == nil && store.pending.records[id] == nil && !refused.contains(id) && !store.dag.isHidden(id)
                    && store.commits.unpublished.unconfirmed(id) == nil
            }
            return (
                found.hidden.filter(isHidden).min(),
                explained.flatMap { explained in found.unconfirmed(in: store.dag).filter { !explained.contains($0) }.min() }
            )
        }
        var isWrong = hidden != nil || wrong != nil
        if let version = wrong ?? hidden {
            report.damages.append(store.wrongCache(Store.historyName, "the history of version \(version)", version))
        }
        if !isWrong, let version = try wrongKeys(below: found.rows, control) {
            isWrong = true
            report.damages.append(store.wrongCache(Store.historyName, "which values version \(version) changed", version))
        }
        // A map can only be compared with records that exist and that the history places correctly.
        if !isWrong, let persisted = store.lock.withRead({ store.maps.persisted }), Int(persisted.base) < found.rows,
            try !isTrue(persisted, control)
        {
            isWrong = true
            report.damages.append(
                store.wrongCache(
                    persisted.name, "what prevails at version \(store.versionID(persisted.base))", store.versionID(persisted.base)))
            try? store.storage.cacheDelete(persisted.name)
        }
        // A history from the records alone would not have a version with a damaged record. The next process to open the store must have
        // the same.
        let tellsOfDamaged = !isWrong && store.lock.withRead { !found.unconfirmed(in: store.dag).isEmpty }
        guard isWrong || tellsOfDamaged else { return }
        store.lock.withWrite {
            store.caches.areWrong = true
            if isWrong { store.maps.persisted = nil }
        }
        if isWrong { store.maps.cache.removeAll() }
        guard !store.storage.isReadOnly else { return }
        try? store.storage.cacheDelete(Store.historyName)
    }

    /// Returns a version that changed other ids according to its record than according to the history; nil if there is none.
    private func wrongKeys(below end: Int, _ control: PacedControl) throws -> VersionID? {
        for ordinal in 0..<UInt32(truncatingIfNeeded: end) {
            try control.step()
            guard
                let told = store.lock.withRead({ store.dag.isLive(Int(ordinal)) ? store.dag.keyHashes(of: ordinal).map { Array($0) } : nil }
                )
            else {
                continue
            }
            var recorded: [UInt32] = []
            recorded.reserveCapacity(told.count)
            // Damage is reported elsewhere.
            guard (try? store.maps.readChanges(of: ordinal) { recorded.append(History.keyHash($0.key)) }) != nil else { continue }
            if recorded != told { return store.versionID(ordinal) }
        }
        return nil
    }

    /// Returns whether a map from the caches equals the one built from records.
    private func isTrue(_ persisted: PersistedMap, _ control: PacedControl) throws -> Bool {
        for ordinal in [persisted.base, persisted.patch?.ordinal].compactMap({ $0 }) {
            // A map that cannot be loaded is void, so it is never used.
            guard let cached = try store.maps.takePersistedMap(of: ordinal)?.root else { continue }
            let made: MapNode?
            do { made = try madeFromRecords(ordinal, control) } catch let error as StoreError where error.code.isOfOne { return true }
            guard let made, made.count == cached.count else { return false }
            var stopped: (any Error)?
            let isSame = cached.forEach { key, entry in
                do { try control.step() } catch { stopped = error; return false }
                guard let right = made.lookup(key), right.version == entry.version else { return false }
                let sizes = [right.size, entry.size], offsets = [right.bodyOffset, entry.bodyOffset]
                return (sizes.contains(MapEntry.unknownSize) || sizes[0] == sizes[1]) && (offsets.contains(0) || offsets[0] == offsets[1])
            }
            if let stopped { throw stopped }
            if !isSame { return false }
        }
        return true
    }

    /// Builds the map of a version from records, without memory or caches.
    private func madeFromRecords(_ ordinal: UInt32, _ control: PacedControl) throws -> MapNode? {
        var chain: [UInt32] = []
        store.lock.withRead {
            var at = ordinal
            while at != History.none { chain.append(at); at = store.dag.rows[Int(at)].first }
        }
        var root: MapNode?, arena = KeyArena()
        func apply() throws {
            root = try arena.withChanges(isSorted: false) { try MapNode.applying($0, to: root) }
            arena = KeyArena()
        }
        while let next = chain.popLast() {
            try control.step()
            try store.maps.readChanges(of: next) { change in
                arena.append(change.key, change.entry)
                // Within one version, no id occurs twice.
                if arena.count >= MapPolicy.anchorSpacing { try apply() }
            }
        }
        try apply()
        return root
    }
}
