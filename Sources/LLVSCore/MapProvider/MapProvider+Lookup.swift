/// Looks up single ids at versions whose maps are not in memory. Otherwise each read at an arbitrary past version would make a map from all
/// changes since the nearest one.
extension MapProvider {
    /// Returns the entry that prevails under an id at a version; nil if there is none.
    package func entry(_ id: UnsafeRawBufferPointer, at ordinal: UInt32) throws -> MapEntry? {
        if let slot = cache.slot(ordinal) { return slot.root?.lookup(id) }
        return try entryWithoutMap(id, at: ordinal)
    }

    /// Returns the entry, after the map of the version was found not to be in memory.
    func entryWithoutMap(_ id: UnsafeRawBufferPointer, at ordinal: UInt32) throws -> MapEntry? {
        switch lookUpLazily(id, at: ordinal) {
        case .entry(let found)?: return found
        case .absent?: return nil
        case .void?, nil: break
        }
        if !isCheaper(toMakeMapOf: ordinal) {
            if let view = chains.view(ordinal) { return view.lookup(id) }
            if case .found(let entry) = try lookUpThroughHistory(id, from: ordinal) { return entry }
        }
        return try map(ordinal)?.lookup(id)
    }

    /// Returns whether making the map of a version takes few changes, or so few that it pays after the reads so far.
    private func isCheaper(toMakeMapOf ordinal: UInt32) -> Bool {
        isWithin(MapPolicy.changesWorthAMap(reads: uses.add(.read, at: ordinal)), toMakeMapOf: ordinal)
    }

    /// Returns whether making the map of a version would take at most `limit` changes.
    package func isWithin(_ limit: Int, toMakeMapOf ordinal: UInt32) -> Bool {
        lock.withRead {
            var at = ordinal, changes = 0
            while changes <= limit {
                if cache.slot(at) != nil { return true }
                if let view = chains.view(at) { return changes + view.changes <= limit }
                if let persisted, persisted.isOf(at) { return MapPolicy.mayBePersisted(limit: limit) }
                let row = dag.rows[Int(at)]
                changes += max(1, Int(row.changeCount))
                at = row.first
                if at == History.none { return changes <= limit }
            }
            return false
        }
    }

    enum ThroughHistory {
        case found(MapEntry?)
        case tooMuch
    }

    func lookUpThroughHistory(_ id: UnsafeRawBufferPointer, from ordinal: UInt32) throws -> ThroughHistory {
        let hash = History.keyHash(id), index = try keyHistoryIndex()
        var start = ordinal
        for _ in 0..<MapPolicy.mostStops {
            guard let found = lock.withRead({ nearest(hash, at: start, index) }) else { return .tooMuch }
            guard case .version(let at) = found else { return .found(nil) }
            if let slot = cache.slot(at) { return .found(slot.root?.lookup(id)) }
            switch lookUpLazily(id, at: at) {
            case .entry(let entry)?: return .found(entry)
            case .absent?: return .found(nil)
            case .void?, nil: break
            }
            if let slot = try takePersistedMap(of: at) { return .found(slot.root?.lookup(id)) }
            if isWorthAMap(at) { return .found(try map(at)?.lookup(id)) }
            if let change = try change(of: id, madeIn: at) { return .found(change.entry) }
            start = lock.withRead { dag.rows[Int(at)].first }
            if start == History.none { return .found(nil) }
        }
        return .tooMuch
    }

    /// Returns whether a version of many changes was read so often that making its map pays. Writing the map from the record is faster than
    /// finding a few of its changes there.
    private func isWorthAMap(_ ordinal: UInt32) -> Bool {
        guard lock.withRead({ Int(dag.rows[Int(ordinal)].changeCount) > MapPolicy.longestIndexed }) else { return false }
        return MapPolicy.changesWorthAMap(largeReads: uses.add(.largeRead, at: ordinal)).map { isWithin($0, toMakeMapOf: ordinal) } ?? false
    }

    /// Returns the nearest version, from `ordinal` back, that may have changed an id; nil if finding it would take too long. The caller
    /// holds the lock.
    private func nearest(_ hash: UInt32, at ordinal: UInt32, _ index: KeyHistoryIndex) -> KeyHistoryIndex.Found? {
        lock.assertHeld("The history")
        var at = ordinal
        while at >= index.end {
            if dag.rows[Int(at)].state == .staged, let found = nearestStep(hash, at: at) {
                switch found {
                case .version(let step): return .version(step)
                case .behind(let below): at = below
                }
            } else {
                Work.unindexed.count()
                if dag.mayHaveChanged(at, hash) { return .version(at) }
                at = dag.rows[Int(at)].first
            }
            if at == History.none { return KeyHistoryIndex.Found.none }
        }
        let found = index.nearest(hash, at: at, in: dag)
        if case .tooMany = found { return nil }
        return found
    }

    /// Returns the same among the steps of a fold; nil if the version is not a known step. The caller holds the lock.
    private func nearestStep(_ hash: UInt32, at ordinal: UInt32) -> FoldedKeys.Found? {
        for fold in folds { if let found = fold.nearest(hash, at: ordinal, in: dag) { return found } }
        return nil
    }

    /// Returns the change that a version recorded for an id; nil if it recorded none.
    private func change(of id: UnsafeRawBufferPointer, madeIn ordinal: UInt32) throws -> MapChange? {
        let (place, count) = lock.withRead { (dag.rows[Int(ordinal)].place, dag.rows[Int(ordinal)].changeCount) }
        if count <= RecordTable.changesPerPage {
            var found: MapChange?
            if changeLists.forEach(ordinal, { if Bytes.equal($0.key, id) { found = MapChange(key: id, entry: $0.entry) } }) { return found }
        }
        return try records.findChange(place, id).map { try self.change($0, of: id, madeIn: ordinal, place) }
    }

    /// Returns the change that a version recorded for an id, as found in its record.
    func change(
        _ found: Records.FoundChange, of id: UnsafeRawBufferPointer, madeIn ordinal: UInt32, _ place: RecordPlace
    ) throws -> MapChange {
        switch found.kind {
        case .insert, .update: return MapChange(key: id, entry: MapEntry(version: ordinal, found))
        case .remove, .preserveRemoval: return MapChange(key: id, entry: nil)
        case .preserve:
            guard let stored = found.dependency, let version = lock.withRead({ dag.ordinalIncludingStaged(of: stored) }) else {
                throw records.damaged(place, "names a version that is not in the store", version: history.id(ordinal), value: id)
            }
            return MapChange(key: id, entry: MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0))
        }
    }

    // MARK: The index

    /// Returns the index of all versions except the newest few.
    func keyHistoryIndex(_ control: OperationControl = OperationControl()) throws -> KeyHistoryIndex {
        let (known, isEnough) = lock.withRead { () -> (KeyHistoryIndex?, Bool) in
            guard let keyHistory else { return (nil, false) }
            let end = Int(keyHistory.end), count = dag.rows.count
            // While a version is being stored, the versions after it cannot be indexed.
            return (keyHistory, count - end <= MapPolicy.mostUnindexed(versions: count) || !dag.rows[end].isSettled)
        }
        if let known, isEnough { return known }
        try learnKeys(from: known?.end ?? 0, control)
        try Memory.expect(lock.withRead { dag.rows.count * 40 + dag.manyKeyCount * 24 }, "Indexing the past of \(storage.description)")
        let rows = lock.withRead { KeyHistoryIndex.Rows(dag, behind: known) }
        let index = KeyHistoryIndex(rows, behind: known)
        let taken = lock.withWrite {
            if (keyHistory?.end ?? 0) < index.end { keyHistory = index }
            return (keyHistory ?? index).memory + dag.sizeOfTables
        }
        account.note(keyHistory: taken)
        return index
    }

    /// Reads the changed ids of versions for which they are unknown: those that were found by their records.
    private func learnKeys(from start: UInt32, _ control: OperationControl) throws {
        let unknown = lock.withRead { dag.ordinalsOfUnknownKeys(from: start) }
        for (i, ordinal) in unknown.enumerated() {
            if i & 255 == 0 {
                try control.check(.reading, i, of: unknown.count, doing: "Finding which values were changed in \(storage.description)")
            }
            var hashes: [UInt32] = []
            // A damaged record is skipped; it is read again when its content matters.
            guard (try? forEachRecordedChange(ordinal) { hashes.append(History.keyHash($0.key)) }) != nil else { continue }
            lock.withWrite { dag.noteKeys(ordinal, count: hashes.count) { hashes[$0] } }
        }
    }
}
