/// The persisted map: a large map in the caches instead of memory.
extension MapProvider {
    /// Returns the map of a version if the persisted map has it; opens that on first use.
    func takePersistedMap(of ordinal: UInt32) throws -> MapCache.Slot? {
        guard let found = lock.withRead({ persisted }), found.isOf(ordinal) else { return nil }
        guard let flat = found.flat ?? openPersistedMap(found) else { return nil }
        let root: MapNode?
        if found.base == ordinal {
            root = MapNode(flat)
        } else {
            let decoded =
                found.lazyReader?.patch ?? found.patch.flatMap { MapPatch($0.bytes, count: flat.count, versionLimit: found.versionLimit) }
            guard let patch = decoded else {
                forgetPersistedMap(found)
                return nil
            }
            root = try patch.apply(to: flat) { try other($0, $1) }
        }
        return cache.store(ordinal, flat: root, persisted: true)
    }

    private func openPersistedMap(_ wanted: PersistedMap) -> FlatMap? {
        guard let file = openWhole(wanted), let flat = FlatMap(file, versionLimit: wanted.versionLimit) else {
            forgetPersistedMap(wanted)
            return nil
        }
        return lock.withWrite {
            guard persisted?.id == wanted.id else { return flat }
            if let other = persisted?.flat { return other }
            persisted?.flat = flat
            persisted?.lazyReader = nil
            return flat
        }
    }

    /// Opens the whole map. If it would take too much memory, it is copied to a private unnamed file and mapped.
    private func openWhole(_ wanted: PersistedMap) -> FlatMapFile? {
        if let file = wanted.lazyReader?.file, file.memory.memory <= account.mostOfOneMap { return file }
        guard let file = openFile(wanted) else { return nil }
        let bytes = mapped(file.memory)
        return bytes === file.memory ? file : FlatMapFile(bytes)
    }

    /// Returns the bytes of an unshared map, in a file without a name if they would take too much memory.
    private func mapped(_ bytes: OpenCache) -> OpenCache {
        let piece = 256 << 10, count = bytes.bytes.count
        guard bytes.areRead, bytes.memory > account.mostOfOneMap, let writer = fileWriter else { return bytes }
        do {
            for start in stride(from: 0, to: count, by: piece) {
                let range = start..<min(start + piece, count)
                guard bytes.fill(range) else { return bytes }
                try writer.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[range]))
                bytes.letGo(range)
            }
            return try writer.finish()
        } catch { return bytes }
    }

    private func openFile(_ wanted: PersistedMap) -> FlatMapFile? {
        guard let bytes = try? storage.cacheOpen(wanted.name), let file = FlatMapFile(bytes), file.id == wanted.id else { return nil }
        return file
    }

    /// Returns the entry for one id at a version of the persisted map, as long as the whole map was not needed and few ids were looked up;
    /// nil in all other cases. An invalid map is discarded, and rebuilt from the records on demand.
    func lookUpLazily(_ id: UnsafeRawBufferPointer, at ordinal: UInt32) -> LazyMapReader.Found? {
        guard let found = lock.withRead({ persisted }), found.flat == nil, found.isOf(ordinal) else { return nil }
        guard let reader = found.lazyReader ?? openLazily(found) else { forgetPersistedMap(found); return nil }
        let answer = reader.find(id, patched: ordinal != found.base)
        if case .void? = answer { forgetPersistedMap(found); return nil }
        return answer
    }

    private func openLazily(_ wanted: PersistedMap) -> LazyMapReader? {
        guard let file = openFile(wanted) else { return nil }
        var patch: MapPatch?
        if let bytes = wanted.patch?.bytes {
            patch = MapPatch(bytes, count: file.count, versionLimit: wanted.versionLimit)
            if patch == nil { return nil }
        }
        let reader = LazyMapReader(file, patch, versionLimit: wanted.versionLimit, most: account.mostOfOneMap)
        return lock.withWrite {
            guard persisted?.id == wanted.id, persisted?.flat == nil else { return reader }
            if let other = persisted?.lazyReader { return other }
            persisted?.lazyReader = reader
            return reader
        }
    }

    /// Discards an invalid persisted map.
    private func forgetPersistedMap(_ void: PersistedMap) {
        lock.withWrite { if persisted?.id == void.id { persisted = nil } }
    }

    /// Writes the map of a version that changes much as a flat map, straight from its record; also that of several such versions in
    /// sequence (`ordinals`, newest first). The first of these maps becomes the persisted map, for later processes; others are removed when
    /// no longer used.
    func flatten(_ ordinals: [UInt32], on first: MapNode?, changes: Int) throws -> MapNode? {
        guard let ordinal = ordinals.first else { return first }
        let isKept = lock.withRead { persisted == nil && dag.rows[Int(ordinal)].state == .live } && !storage.isReadOnly
        return try flatten(ordinal, isKept: isKept, expected: (first?.count ?? 0) + changes) { put in
            var count = 0
            func append(_ key: UnsafeRawBufferPointer, _ entry: MapEntry) throws {
                try put(key, entry)
                count += 1
                if count & 0x3FFF == 0 { first?.flat?.letGoOfPages() }
            }
            // The entries of the version before, between the last change and the next.
            var from: [UInt8] = []
            func copy(upTo key: UnsafeRawBufferPointer?) throws {
                var failure: (any Error)?
                _ = from.withUnsafeBytes { from in
                    first?.forEach(from: from, to: key) { key, entry in
                        do { try append(key, entry); return true } catch { failure = error; return false }
                    }
                }
                if let failure { throw failure }
            }
            try readChanges(ofAll: ordinals) { change in
                let key = change.key
                if first != nil {
                    try copy(upTo: key)
                    // The least key after this one.
                    from.removeAll(keepingCapacity: true)
                    from.append(contentsOf: key)
                    from.append(0)
                }
                if let entry = change.entry { try append(key, entry) }
            }
            try copy(upTo: nil)
            first?.flat?.letGoOfPages()
        }
    }

    /// Calls `body` with the changes of versions in sequence, in order of the ids: for each id that of the newest version, which is the
    /// first listed.
    private func readChanges(ofAll ordinals: [UInt32], _ body: (ChangeLists.Change) throws -> Void) throws {
        if ordinals.count == 1 { return try readChanges(of: ordinals[0], locating: true, body) }
        let cursors = try ordinals.map { try ChangeCursor($0, self) }
        var last: [UInt8]?
        while true {
            var least: (cursor: ChangeCursor, change: ChangeLists.Change)?
            for cursor in cursors {
                guard let change = cursor.change else { continue }
                if let found = least, Bytes.compare(found.change.key, change.key) <= 0 { continue }
                least = (cursor, change)
            }
            guard let (cursor, change) = least else { return }
            let order = last.map { $0.withUnsafeBytes { Bytes.compare($0, change.key) } } ?? -1
            guard order <= 0 else { throw cursor.isOutOfOrder }
            if order < 0 {
                try body(change)
                last = last ?? []
                last?.removeAll(keepingCapacity: true)
                last?.append(contentsOf: change.key)
            }
            try cursor.advance()
        }
    }

    /// Writes a map in order of its keys. Falls back on memory if no file can be written.
    private func flatten(
        _ ordinal: UInt32, isKept: Bool, expected: Int, _ fill: ((UnsafeRawBufferPointer, MapEntry) throws -> Void) throws -> Void
    ) throws -> MapNode? {
        let id = try posix("Naming a map", storage.description) { () throws(Errno) in try RandomName.random() }
        func write(_ writer: any CacheWriter) throws -> OpenCache? {
            let isMany = expected * MemoryLayout<MapEntry>.stride > account.reserve
            var builder = FlatMapBuilder(writer, expected: expected, aside: isMany ? fileWriter : nil)
            try fill { try builder.append($0, $1) }
            return try builder.finish(id)
        }
        let limit = lock.withRead { dag.rows.count }
        var wanted = PersistedMap(id: id, base: ordinal, versionLimit: limit)
        var written = isKept
        let bytes: OpenCache?
        do {
            bytes = try write(storage.cacheWriter(isKept ? wanted.name : nil))
        } catch let error as StoreError where error.code != .damaged && error.code != .internal {
            written = false
            bytes = try write(MemoryCacheWriter())
        }
        guard let bytes else { return nil }
        guard let flat = FlatMap(mapped(bytes), versionLimit: limit) else {
            throw StoreError(.internal, "A map that was just written cannot be read.")
        }
        if written {
            wanted.flat = flat
            let isFirst = lock.withWrite { () -> Bool in
                guard persisted == nil else { return false }
                persisted = wanted
                return true
            }
            // Another thread was faster, so delete this file. Its bytes remain while they are used.
            if !isFirst { try? storage.cacheDelete(wanted.name) }
        }
        return MapNode(flat)
    }

    /// Brings the persisted map to the newest head, if that is worth its bytes. Called when the store closes.
    func renewPersistedMap(_ head: UInt32, isMuch: Bool) {
        // A large version that was not read yet is written now, while its record is probably in memory.
        let isLarge = lock.withRead { dag.rows[Int(head)].changeCount >= UInt32(MapPolicy.manyChanges) && persisted == nil }
        let slot =
            cache.slot(head) ?? (try? takePersistedMap(of: head))
            ?? (isLarge || (isMuch && chains.view(head) != nil) ? try? mapSlot(head) : nil)
        guard let root = slot?.root else { return }
        let found = lock.withRead { persisted }
        if let found, let flat = found.flat {
            if found.isOf(head) { return }
            guard isMuch else { return }
            if let patch = MapPatch.encode(flat, to: root, limit: MapPolicy.mostPatched(values: root.count)) {
                let limit = lock.withRead { dag.rows.count }
                lock.withWrite {
                    persisted?.patch = (head, patch)
                    persisted?.versionLimit = limit
                }
                return
            }
        } else if found != nil || !(isMuch || isLarge) {
            return
        }
        // There is no persisted map, or most of it is obsolete.
        lock.withWrite { persisted = nil }
        _ = try? flatten(root, of: head, isKept: true)
    }

    /// Rewrites the map as one in a file. `isKept`: as the persisted map, if there is none.
    func flatten(_ root: MapNode, of ordinal: UInt32, isKept: Bool) throws -> MapNode? {
        try flatten(ordinal, isKept: isKept, expected: root.count) { append in
            var failure: (any Error)?
            root.forEach { key, entry in
                do { try append(key, entry); return true } catch { failure = error; return false }
            }
            if let failure { throw failure }
        }
    }
}
