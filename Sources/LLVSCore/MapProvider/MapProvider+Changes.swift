/// The recorded changes of versions: from memory if present, otherwise from their records.
extension MapProvider {
    /// The changes of a larger record are not held in memory when it is stored.
    private static let largestRecordKept = 4_096

    /// Calls `body` with each change that a version recorded, in order of the ids. Changes that are not in memory are read from the record
    /// and cached. `body` must not call the store.
    /// - Throws: `.damaged`, perhaps after `body` was called with some of the changes.
    package func forEachRecordedChange(_ ordinal: UInt32, _ body: (ChangeLists.Change) -> Void) throws {
        if changeLists.forEach(ordinal, body) { return }
        let (place, count) = lock.withRead { (dag.rows[Int(ordinal)].place, Int(dag.rows[Int(ordinal)].changeCount)) }
        // A provisional record will be replaced by the stored one.
        guard count <= MapPolicy.longestKeptList, place.segment != ProvisionalRecords.segment else {
            return try readChanges(of: ordinal, locating: true, body)
        }
        let arena = ByteArena()
        var kept: [ChangeLists.Change] = []
        kept.reserveCapacity(count)
        try readChanges(of: ordinal) { change in
            body(change)
            kept.append(change)
            kept[kept.count - 1].key = arena.copy(change.key)
        }
        withExtendedLifetime(arena) { changeLists.insert(ordinal, kept) }
    }

    /// Calls `body` with each change that a version recorded, in order of the ids, from its record.
    /// - Parameter locating: also finds the places of preserved bytes, if they are in few records.
    package func readChanges(of ordinal: UInt32, locating: Bool = false, _ body: (ChangeLists.Change) throws -> Void) throws {
        let row = lock.withRead { dag.rows[Int(ordinal)] }
        var called = 0, isOfCaller = false
        func read(_ row: History.Row) throws {
            var dependencies: [UInt32?]?, count = 0
            try records.forEachChange(row.place) { entry, header in
                count += 1
                guard header.checksum == row.checksum else { throw replaced(ordinal, row) }
                guard count > called else { return }
                called = count
                do { try body(change(entry, header, of: ordinal, row.place, &dependencies, locating: locating)) } catch {
                    isOfCaller = true
                    throw error
                }
            }
        }
        do { try read(row) } catch let error as StoreError where error.code == .damaged && !isOfCaller {
            try records.again(row.place, after: error) { _ in
                try read(lock.withRead { dag.rows[Int(ordinal)] })
            }
        }
    }

    private func replaced(_ ordinal: UInt32, _ row: History.Row) -> StoreError {
        records.damaged(row.place, "is not the one that was found before", version: history.id(ordinal))
    }

    /// Returns the effect of a change on the map. `dependencies`: nil at first, and shared by all changes of the version.
    private func change(
        _ entry: RecordTable.Entry, _ header: RecordHeader, of ordinal: UInt32, _ place: RecordPlace, _ dependencies: inout [UInt32?]?,
        locating: Bool
    ) throws -> ChangeLists.Change {
        var change = ChangeLists.Change(kind: entry.kind, key: entry.id)
        switch entry.kind {
        case .insert, .update:
            change.entry = MapEntry(
                version: ordinal, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
        case .preserve:
            let known = dependencies ?? lock.withRead { header.dependencies.map(dag.ordinalIncludingStaged) }
            dependencies = known
            guard let version = known[entry.dependency] else {
                throw records.damaged(place, "names a version that is not in the store", version: header.id, value: entry.id)
            }
            let isInPassing = locating && known.count * RecordTable.changesPerPage <= 4 * header.changeCount
            // If it cannot be read now, reading the value throws.
            change.entry =
                (isInPassing ? try? stored(entry.id, in: version) : nil)
                ?? MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0)
        case .remove, .preserveRemoval: break
        }
        return change
    }

    /// Iterates over the changes of one version in order of their ids, for callers that read several versions at once.
    final class ChangeCursor {
        private let provider: MapProvider
        private let ordinal: UInt32
        private var table: ChangeTable
        private var dependencies: [UInt32?]?
        private var row: History.Row
        /// The number of changes that were returned.
        private var count = 0
        /// The current change; nil after the last. Valid until the next call of `advance`.
        private(set) var change: ChangeLists.Change?

        init(_ ordinal: UInt32, _ provider: MapProvider) throws {
            self.ordinal = ordinal
            self.provider = provider
            row = provider.lock.withRead { provider.dag.rows[Int(ordinal)] }
            do {
                table = try ChangeTable(row.place, anew: true, in: provider.records)
                try advance()
            } catch let error as StoreError where error.code == .damaged {
                var now: (History.Row, ChangeTable)?
                try provider.records.again(row.place, after: error) { _ in now = try ChangeCursor.found(ordinal, provider) }
                guard let now else { throw error }
                (row, table) = now
                try advance()
            }
        }

        private static func found(_ ordinal: UInt32, _ provider: MapProvider) throws -> (History.Row, ChangeTable) {
            let row = provider.lock.withRead { provider.dag.rows[Int(ordinal)] }
            return (row, try ChangeTable(row.place, anew: true, in: provider.records))
        }

        func advance() throws {
            do { try step() } catch let error as StoreError where error.code == .damaged {
                try provider.records.again(row.place, after: error) { _ in
                    (row, table) = try ChangeCursor.found(ordinal, provider)
                    dependencies = nil
                    for _ in 0..<count { _ = try table.next(in: provider.records) }
                    try step()
                }
            }
            count += 1
        }
        private func step() throws {
            guard table.header.checksum == row.checksum else { throw provider.replaced(ordinal, row) }
            change = try table.next(in: provider.records).map {
                try provider.change($0, table.header, of: ordinal, table.place, &dependencies, locating: true)
            }
        }

        var isOutOfOrder: StoreError {
            provider.records.damaged(table.place, "has a damaged table of changes", version: provider.history.id(ordinal))
        }
    }

    /// Stores the changes of a version that is being stored; `mapped` is their effect on the map.
    package func keepChanges(_ ordinal: UInt32, _ changes: RecordChanges, _ mapped: [MapChange]) {
        guard changes.count <= MapPolicy.longestKeptList, mapped.count == changes.count else { return }
        var kept: [ChangeLists.Change] = []
        kept.reserveCapacity(mapped.count)
        for (change, mapped) in zip(changes, mapped) {
            // Larger values have digests in their records. The bytes of values written separately are not in memory.
            let hasFingerprint = change.hasData && change.written == nil && change.data.count <= RecordTable.digestThreshold
            kept.append(
                ChangeLists.Change(
                    kind: change.kind, key: change.id, entry: mapped.entry,
                    fingerprint: hasFingerprint ? ChangeLists.fingerprint(change.data) : nil))
        }
        changeLists.insert(ordinal, kept)
    }

    /// Stores the changes of a version from its record, if it is small and preserves nothing. The caller holds the lock for writing.
    func keepChanges(_ ordinal: UInt32, _ header: RecordHeader, _ record: UnsafeRawBufferPointer) {
        guard record.count <= MapProvider.largestRecordKept, header.pageCount <= 1, header.dependencies.isEmpty,
            record.count == header.recordSize
        else { return }
        var kept: [ChangeLists.Change] = []
        if header.pageCount == 1 {
            var needs: Int?
            let table = UnsafeRawBufferPointer(rebasing: record[header.tableOffset..<header.bodiesOffset])
            let read = try? RecordTable.readPage(table, number: 0, of: header, needs: &needs) { entry in
                let isSet = entry.kind == .insert || entry.kind == .update
                kept.append(
                    ChangeLists.Change(
                        kind: entry.kind, key: entry.id,
                        entry: isSet
                            ? MapEntry(version: ordinal, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
                            : nil))
            }
            guard read ?? nil != nil else { return }
        }
        dag.noteKeys(ordinal, count: kept.count) { History.keyHash(kept[$0].key) }
        changeLists.insert(ordinal, kept)
    }

    /// Returns the place of the bytes that a version stored under an id; nil if it stored none.
    package func stored(_ id: UnsafeRawBufferPointer, in ordinal: UInt32) throws -> MapEntry? {
        // Stored values prevail at their version, whose map may be in memory.
        let (isKnown, entry, place) = lock.withRead { () -> (Bool, MapEntry?, RecordPlace) in
            let (isHere, root) = cache.root(of: ordinal)
            return (isHere, root?._withUnsafeGuaranteedRef { $0.lookup(id) }, dag.rows[Int(ordinal)].place)
        }
        if isKnown, entry?.version != ordinal { return nil }
        if let entry, entry.size != MapEntry.unknownSize { return entry }
        return try records.findChange(place, id).flatMap { MapEntry(version: ordinal, $0) }
    }
}
