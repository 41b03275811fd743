/// Whether the caches that this handle took up say what the records say. Their checksums only tell that they are what somebody wrote.
extension Store {
    /// What a verification finds out of the history that came from a cache, record by record.
    struct CacheVerification {
        /// How many rows of the history came from there; 0: none did.
        let rows: Int
        /// Of which a record says the same.
        private var confirmed: [Bool]
        /// Versions with a whole record that are not in the history.
        private(set) var hidden: Set<VersionID> = []
        private static let mostHidden = 1_000

        init(rows: Int) { self.rows = rows; confirmed = Array(repeating: false, count: rows) }

        /// The caller holds the store's lock for reading.
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

        /// Versions of which the history says what no record does.
        func unconfirmed(in history: History) -> [VersionID] {
            (0..<rows).filter { !confirmed[$0] && history.isLive($0) }.map { history.id(UInt32(truncatingIfNeeded: $0)) }
        }
    }

    /// Removes caches that say other than the records, and tells of them.
    /// - Parameter explained: versions of which damage was found that explains why no record of them was met; nil: of all.
    func settleCaches(_ found: CacheVerification, explained: Set<VersionID>?, _ report: inout VerifyReport, _ control: PacedControl) throws
    {
        guard found.rows > 0 else { return }
        // Others may have added versions since.
        try reloadHistory()
        let (hidden, wrong) = lock.withRead { () -> (VersionID?, VersionID?) in
            let refused = Set(findings.damages.compactMap(\.version))
            let isHidden = { [self] (id: VersionID) in
                // Those being stored, or of which nobody knows whether they are, are not in it yet.
                dag.ordinal(of: id) == nil && pending.records[id] == nil && !refused.contains(id) && !dag.isHidden(id)
                    && commits.unpublished.unconfirmed(id) == nil
            }
            return (
                found.hidden.filter(isHidden).min(),
                explained.flatMap { explained in found.unconfirmed(in: dag).filter { !explained.contains($0) }.min() }
            )
        }
        var isWrong = hidden != nil || wrong != nil
        if let version = wrong ?? hidden {
            report.damages.append(wrongCache(Store.historyName, "the history of version \(version)", version))
        }
        if !isWrong, let version = try wrongKeys(below: found.rows, control) {
            isWrong = true
            report.damages.append(wrongCache(Store.historyName, "which values version \(version) changed", version))
        }
        // A map can only be held against records that are there, and that the history names rightly.
        if !isWrong, let persisted = lock.withRead({ maps.persisted }), Int(persisted.base) < found.rows,
            try !isTrue(persisted, control)
        {
            isWrong = true
            report.damages.append(
                wrongCache(persisted.name, "what prevails at version \(versionID(persisted.base))", versionID(persisted.base)))
            try? storage.cacheDelete(persisted.name)
        }
        // Of a version whose record is damaged the records alone would tell nothing: who opens the store next is to know no more.
        let tellsOfDamaged = !isWrong && lock.withRead { !found.unconfirmed(in: dag).isEmpty }
        guard isWrong || tellsOfDamaged else { return }
        lock.withWrite {
            caches.areWrong = true
            if isWrong { maps.persisted = nil }
        }
        if isWrong { maps.cache.removeAll() }
        guard !storage.isReadOnly else { return }
        try? storage.cacheDelete(Store.historyName)
    }

    /// A version of which the history says that it changed other ids than its record does; nil when there is none.
    private func wrongKeys(below end: Int, _ control: PacedControl) throws -> VersionID? {
        for ordinal in 0..<UInt32(truncatingIfNeeded: end) {
            try control.step()
            guard let told = lock.withRead({ dag.isLive(Int(ordinal)) ? dag.keyHashes(of: ordinal).map { Array($0) } : nil }) else {
                continue
            }
            var recorded: [UInt32] = []
            recorded.reserveCapacity(told.count)
            // What is damaged is told by others.
            guard (try? maps.readChanges(of: ordinal) { recorded.append(History.keyHash($0.key)) }) != nil else { continue }
            if recorded != told { return versionID(ordinal) }
        }
        return nil
    }

    func wrongCache(_ name: String, _ what: String, _ version: VersionID) -> StorageDamage {
        let advice = storage.isReadOnly ? "Remove it" : "It was removed"
        return StorageDamage(
            file: storage.cacheLocation(name), offset: 0,
            message:
                "A cache tells other than the records: \(what). \(advice), and is made again; "
                + "close the store and open it, since what was read through this handle may be wrong.",
            version: version, lost: .nothing)
    }

    /// Whether a map from the caches is what the records make.
    private func isTrue(_ persisted: PersistedMap, _ control: PacedControl) throws -> Bool {
        for ordinal in [persisted.base, persisted.patch?.ordinal].compactMap({ $0 }) {
            // One that cannot be taken is void, and so never believed.
            guard let cached = try maps.takePersistedMap(of: ordinal)?.root else { continue }
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

    /// The map of a version, whatever is in memory or in caches.
    private func madeFromRecords(_ ordinal: UInt32, _ control: PacedControl) throws -> MapNode? {
        var chain: [UInt32] = []
        lock.withRead {
            var at = ordinal
            while at != History.none { chain.append(at); at = dag.rows[Int(at)].first }
        }
        var root: MapNode?, arena = KeyArena()
        func apply() throws {
            root = try arena.withChanges(isSorted: false) { try MapNode.applying($0, to: root) }
            arena = KeyArena()
        }
        while let next = chain.popLast() {
            try control.step()
            try maps.readChanges(of: next) { change in
                arena.append(change.key, change.entry)
                // Within one version no id comes twice.
                if arena.count >= MapPolicy.anchorSpacing { try apply() }
            }
        }
        try apply()
        return root
    }
}
