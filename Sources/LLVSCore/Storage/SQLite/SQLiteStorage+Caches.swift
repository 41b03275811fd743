/// Stores caches in rows of their own table, and notes in files beside the database.
extension SQLiteStorage {
    package func cacheGet(_ name: String) throws -> [UInt8]? { try cache(name) { try Memory.copy($0, "Reading a cache") } }
    package func cacheOpen(_ name: String) throws -> OpenCache? {
        try cache(name) {
            try Memory.expect($0.count, "Opening a cache")
            return OpenCache(copying: $0)
        }
    }

    /// Returns the result of `body` for the bytes of a cache, which are valid until it returns; nil if there is no such cache, or it is
    /// damaged.
    private func cache<R>(_ name: String, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        try CacheName.check(name)
        try checkOpen()
        if let kept = state.withLock({ memoryCaches[name] }) { return try kept?.withUnsafeBytes(body) }
        return try readers.use { connection in
            var result: R?
            do {
                try connection.withLargeValues {
                    try connection.query(
                        "SELECT checksum, data FROM caches WHERE name = ?1", doing: "Reading a cache from", bind: { $0.bind(1, name) },
                        row: { row in
                            let bytes = row.bytes(1)
                            if Int64(Bytes.crc32c(bytes)) == row.integer(0) { result = try body(bytes) }
                            return false
                        })
                }
            } catch let error as StoreError where error.code == .damaged { return nil }
            return result
        }
    }

    package func cacheBytes(_ control: PacedControl) throws -> UInt64 {
        try checkOpen()
        return try readers.use { connection in
            var bytes: Int64 = 0
            try connection.query(
                "SELECT coalesce(sum(length(data)), 0) FROM caches", doing: "Counting the caches of",
                row: {
                    bytes = $0.integer(0); return false
                })
            return UInt64(max(0, bytes))
        }
    }

    package func cachePut(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        try checkOpen()
        if isReadOnly { state.withLock { memoryCaches[name] = .some(data) }; return }
        try changeCaches { writer in try writer.withLargeValues(data.count) { try putCache(name, data, writer) } }
    }
    func putCache(_ name: String, _ data: [UInt8], _ writer: SQLiteConnection) throws {
        try data.withUnsafeBytes { bytes in
            try writer.query(
                "INSERT OR REPLACE INTO caches(name, checksum, data) VALUES(?1, ?2, ?3)", doing: "Writing a cache to",
                bind: { statement in
                    statement.bind(1, name)
                    statement.bind(2, Int64(Bytes.crc32c(bytes)))
                    statement.bind(3, bytes)
                })
        }
    }

    /// Uses a file beside the database: a transaction for each save would take as long as the save.
    package func openNote(_ name: String) throws -> any StorageNote {
        try CacheName.check(name)
        try checkOpen()
        let claim = isReadOnly ? nil : try FileIdentity(path).map { try NoteClaim(name, of: $0) }
        let file = try NoteFile(
            DirectoryEntry("\(path)-\(name).note"), fileSystem, isReadOnly: isReadOnly,
            storeOwner: { [path] in try? System.status(path).owner }, claim: claim, makeDirectory: {},
            cache: NoteCache(
                get: { [self] in try cacheGet(name) },
                remove: { [weak self] in if let self, try cacheGet(name) != nil { try cacheDelete(name) } }))
        return file ?? CachedNote(self, name, claim)
    }

    package func cacheDelete(_ name: String) throws {
        try CacheName.check(name)
        try checkOpen()
        if isReadOnly { state.withLock { memoryCaches[name] = .some(nil) }; return }
        try changeCaches { try $0.query("DELETE FROM caches WHERE name = ?1", doing: "Deleting a cache from", bind: { $0.bind(1, name) }) }
    }

    /// Changes caches without waiting for the disk: a lost cache is built again.
    func changeCaches(_ body: (SQLiteConnection) throws -> Void) throws {
        try writing.withLock {
            let writer = try writable("Writing a cache to")
            try setSynced(false)
            try body(writer)
        }
    }
}
