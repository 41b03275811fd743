/// What versions recorded: from memory while it is there, else from their records.
extension MapProvider {
    /// A record larger than this is read again when its changes are needed.
    private static let largestRecordKept = 4_096

    /// Calls with each change that a version recorded, in order of the ids. What is not in memory is read, and kept
    /// there. `body` must not call the store.
    /// - Throws: `.damaged`, when some of the changes may have been told already.
    func forEachRecordedChange(_ ordinal: UInt32, _ body: (ChangeLists.Change) -> Void) throws {
        if changeLists.forEach(ordinal, body) { return }
        let (place, count) = lock.withRead { (dag.rows[Int(ordinal)].place, Int(dag.rows[Int(ordinal)].changeCount)) }
        // A provisional record is not the one that will be stored.
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

    /// Calls with each change that a version recorded, in order of the ids, from its record.
    /// - Parameter locating: also says where preserved bytes are, when they are in a few records that are read in passing.
    func readChanges(of ordinal: UInt32, locating: Bool = false, _ body: (ChangeLists.Change) throws -> Void) throws {
        let (place, checksum) = lock.withRead { (dag.rows[Int(ordinal)].place, dag.rows[Int(ordinal)].checksum) }
        var dependencies: [UInt32?]?
        try records.forEachChange(place) { entry, header in
            guard header.checksum == checksum else {
                throw records.damaged(place, "is not the one that was there", version: history.id(ordinal))
            }
            try body(change(entry, header, of: ordinal, place, &dependencies, locating: locating))
        }
    }

    /// What a change does to the map. `dependencies`: nil at first, and the same for all changes of the version.
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
                throw records.damaged(place, "names a version that is not here", version: header.id, value: entry.id)
            }
            let isInPassing = locating && known.count * RecordTable.changesPerPage <= 4 * header.changeCount
            // What cannot be read now is an error when the value is asked for.
            change.entry =
                (isInPassing ? try? stored(entry.id, in: version) : nil)
                ?? MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0)
        case .remove, .preserveRemoval: break
        }
        return change
    }

    /// The changes of one version in order of their ids, for who reads several versions at once.
    final class ChangeCursor {
        private let provider: MapProvider
        private let ordinal: UInt32
        private let table: ChangeTable
        private var dependencies: [UInt32?]?
        /// The one that it is at; nil behind the last. Good until the next call of `advance`.
        private(set) var change: ChangeLists.Change?

        init(_ ordinal: UInt32, _ provider: MapProvider) throws {
            self.ordinal = ordinal
            self.provider = provider
            let row = provider.lock.withRead { provider.dag.rows[Int(ordinal)] }
            table = try ChangeTable(row.place, anew: true, in: provider.records)
            guard table.header.checksum == row.checksum else {
                throw provider.records.damaged(row.place, "is not the one that was there", version: provider.history.id(ordinal))
            }
            try advance()
        }

        func advance() throws {
            change = try table.next(in: provider.records).map {
                try provider.change($0, table.header, of: ordinal, table.place, &dependencies, locating: true)
            }
        }

        var isOutOfOrder: StoreError {
            provider.records.damaged(table.place, "has a damaged table of changes", version: provider.history.id(ordinal))
        }
    }

    /// Keeps the changes of a version that is being stored; `mapped` is what they do to the map.
    func keepChanges(_ ordinal: UInt32, _ changes: RecordChanges, _ mapped: [MapChange]) {
        guard changes.count <= MapPolicy.longestKeptList, mapped.count == changes.count else { return }
        var kept: [ChangeLists.Change] = []
        kept.reserveCapacity(mapped.count)
        for (change, mapped) in zip(changes, mapped) {
            // Larger values have digests in their records.
            // The bytes of what was written aside are not at hand.
            let hasFingerprint = change.hasData && change.written == nil && change.data.count <= RecordTable.digestThreshold
            kept.append(
                ChangeLists.Change(
                    kind: change.kind, key: change.id, entry: mapped.entry,
                    fingerprint: hasFingerprint ? ChangeLists.fingerprint(change.data) : nil))
        }
        changeLists.insert(ordinal, kept)
    }

    /// Keeps the changes of a version from its record, while that is at hand, when it is small and preserves nothing. The caller
    /// holds the lock for writing.
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

    /// Where the bytes are that a version stored under an id; nil when it stored none.
    func stored(_ id: UnsafeRawBufferPointer, in ordinal: UInt32) throws -> MapEntry? {
        // What a version stored prevails there, and its map may be in memory.
        let (isKnown, entry, place) = lock.withRead { () -> (Bool, MapEntry?, RecordPlace) in
            let (isHere, root) = cache.root(of: ordinal)
            return (isHere, root?._withUnsafeGuaranteedRef { $0.lookup(id) }, dag.rows[Int(ordinal)].place)
        }
        if isKnown, entry?.version != ordinal { return nil }
        if let entry, entry.size != MapEntry.unknownSize { return entry }
        return try records.findChange(place, id).flatMap { MapEntry(version: ordinal, $0) }
    }
}
