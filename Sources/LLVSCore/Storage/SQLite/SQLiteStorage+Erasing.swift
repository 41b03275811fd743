/// Replaces records in their rows: docs/format.md, "Making changes hollow".
extension SQLiteStorage {
    package var canErase: Bool { true }
    /// A file of its own: the orders are replaced when they change, and SQLite's files must not be opened beside it.
    package func openRecordsLock() throws -> OpenFile? {
        let place = DirectoryEntry(ordersPath + ".lock")
        return try posix("Opening", place.path) { () throws(Errno) in
            try OpenFile(place, isReadOnly ? O_RDONLY : O_RDWR | O_CREAT, mode: fileSystem.mode)
        }
    }

    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] {
        try checkOpen()
        guard !isReadOnly else { throw StorageRange.readOnly(description) }
        let doing = "Erasing values of"
        func find() throws -> [RecordPlace] {
            var concerned: [RecordPlace] = []
            try readers.useForScan { connection in
                try walk(
                    connection, after: 0, thorough: false, skipping: [], looking: { try control.step(0) }, reached: { _ in },
                    found: { if try erasure.concerns($0) { concerned.append($0.place) } }, damage: { _ in })
            }
            return concerned
        }
        var concerned = try find()
        var moved: [RecordPlace: RecordPlace] = [:]
        writing.lock()
        defer { writing.unlock() }
        let writer = try writable(doing)
        try writer.run("PRAGMA secure_delete=ON", doing: doing)
        defer { try? writer.run("PRAGMA secure_delete=OFF", doing: doing) }
        try setSynced(true)
        try settle(writer)
        if !concerned.isEmpty {
            try appending(to: writer, doing) {
                // Another handle may have erased values since. Within the transaction none does.
                if concerned.contains(where: isGone) { concerned = try find() }
                for place in concerned {
                    guard let new = try erasure.rewritten(place, isLast: true) else { continue }
                    moved[place] = try replace(place, new.bytes, writer, doing)
                }
            }
        }
        noteLog()
        try erasure.moved(moved)
        return []
    }

    package func finishErasing() throws -> [String] {
        let doing = "Erasing values of"
        writing.lock()
        defer { writing.unlock() }
        let writer = try writable(doing)
        try writer.run("PRAGMA secure_delete=ON", doing: doing)
        defer { try? writer.run("PRAGMA secure_delete=OFF", doing: doing) }
        // SQLite zeroes the cell of a row that is replaced. But when it splits a page, it leaves copies of the moved cells in the unused
        // part of the page, and nothing but a rebuilt database is free of them.
        try writer.rebuild(doing: doing)
        var waiting: [String] = []
        var isBusy = false
        try writer.query(
            "PRAGMA wal_checkpoint(TRUNCATE)", doing: doing,
            row: {
                isBusy = $0.integer(0) != 0; return false
            })
        noteLog()
        if isBusy { waiting.append("Another connection reads \(path), so that its log keeps old bytes. Close it.") }
        return waiting
    }

    /// Writes a record into the row of another one. Precondition: `writing` is held, in a transaction.
    private func replace(_ old: RecordPlace, _ bytes: [UInt8], _ writer: SQLiteConnection, _ doing: String) throws -> RecordPlace {
        let size = Int64(SQLiteStorage.chunkSize), number = Int64(bitPattern: old.offset)
        let seq =
            old.segment == SQLiteStorage.inRecords
            ? number
            : try writer.integer("SELECT coalesce(max(seq), 0) FROM records WHERE first = \(number)", doing: doing)
        if old.segment == SQLiteStorage.inChunks {
            let first = Int64(bitPattern: old.offset), count = (Int64(clamping: old.length) + size - 1) / size
            try writer.query(
                "UPDATE chunks SET checksum = 0, data = x'' WHERE seq >= ?1 AND seq < ?2", doing: doing,
                bind: {
                    $0.bind(1, first)
                    $0.bind(2, first + count)
                })
        }
        var first: Int64?
        if bytes.count > SQLiteStorage.chunkSize {
            let start = try writer.integer("SELECT coalesce(max(seq), 0) + 1 FROM chunks", doing: doing)
            try bytes.withUnsafeBytes { try insertChunks(RecordPieces($0), from: start, writer, doing) }
            scratch.removeAll(keepingCapacity: true)
            first = start
        }
        try bytes.withUnsafeBytes { data in
            try writer.query(
                "UPDATE records SET length = ?2, checksum = ?3, first = ?4, data = ?5 WHERE seq = ?1", doing: doing,
                bind: { SQLiteStorage.bindRow($0, seq, data.count, first, data) })
        }
        return SQLiteStorage.place(seq, bytes.count, first)
    }

    /// Returns whether the row of a record has another record by now.
    package func isGone(_ place: RecordPlace) -> Bool {
        let column = place.segment == SQLiteStorage.inRecords ? "seq" : "first"
        var length: Int64?
        do {
            try readers.use { connection in
                try connection.query(
                    "SELECT length FROM records WHERE \(column) = ?1", doing: "Reading a version from",
                    bind: { $0.bind(1, Int64(bitPattern: place.offset)) },
                    row: {
                        length = $0.integer(0); return false
                    })
            }
        } catch { return false }
        return length != Int64(clamping: place.length)
    }
    /// Reads all rows with the next scan.
    package func forgetScanned() {
        state.withLock {
            lastSeen = 0
            own = []
        }
    }

    // MARK: Caches

    package func cacheErase(_ name: String) throws {
        try CacheName.check(name)
        try checkOpen()
        if isReadOnly { return try cacheDelete(name) }
        try changeCaches { writer in
            let doing = "Deleting a cache from"
            try writer.run("PRAGMA secure_delete=ON", doing: doing)
            defer { try? writer.run("PRAGMA secure_delete=OFF", doing: doing) }
            try writer.query("DELETE FROM caches WHERE name = ?1", doing: doing, bind: { $0.bind(1, name) })
        }
    }
    package func cacheNames() throws -> [String] {
        try checkOpen()
        return try readers.use { connection in
            var names: [String] = []
            try connection.query(
                "SELECT name FROM caches", doing: "Listing the caches of",
                row: {
                    names.append(String(decoding: $0.bytes(0), as: UTF8.self)); return true
                })
            return names
        }
    }

    // MARK: Orders

    /// The orders are in the table of caches, so that a copy of the database has them, and in a file beside it, which stays if that table
    /// is emptied, and by which other handles notice orders without a query. A database that was put back from a copy lacks an order of the
    /// file, or does not say that it is followed.
    package func orders() throws -> [[UInt8]] { try orders(besides: cacheGet(ErasureNote.name)) }
    private func orders(besides inside: [UInt8]?) throws -> [[UInt8]] {
        guard let file = try? OpenFile(DirectoryEntry(ordersPath), O_RDONLY),
            let (length, expected) = CacheDirectory.envelope(of: file, ErasureNote.name)
        else { return inside.map { [$0] } ?? [] }
        try Memory.expect(length, "Reading the orders to erase")
        var data = [UInt8](repeating: 0, count: length)
        let count = try posix("Reading", ordersPath) { () throws(Errno) in
            try data.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: UInt64(CacheDirectory.envelopeSize)) }
        }
        guard count == length, data.withUnsafeBytes({ Bytes.crc32c($0) }) == expected else { return inside.map { [$0] } ?? [] }
        return [inside ?? [], data]
    }

    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws {
        try checkOpen()
        guard !isReadOnly else { return try cachePut(ErasureNote.name, change(orders())) }
        let doing = "Changing the orders to erase of"
        try changeCaches { writer in
            try writer.withLargeValues {
                // The file, too, is written while no other handle can change the orders.
                try writer.transaction(doing: doing) {
                    var inside: [UInt8]?
                    try writer.query(
                        "SELECT checksum, data FROM caches WHERE name = ?1", doing: doing, bind: { $0.bind(1, ErasureNote.name) },
                        row: {
                            let data = $0.bytes(1)
                            if Int64(Bytes.crc32c(data)) == $0.integer(0) { inside = try Memory.copy(data, doing) }
                            return false
                        })
                    let bytes = try change(orders(besides: inside))
                    try writer.withLargeValues(bytes.count) { try putCache(ErasureNote.name, bytes, writer) }
                    try writeOrdersFile(bytes)
                }
            }
        }
        state.withLock { needsSync = true }
        try sync()
    }
    private func writeOrdersFile(_ bytes: [UInt8]) throws {
        let checksum = bytes.withUnsafeBytes { Bytes.crc32c($0) }
        let all = CacheDirectory.envelope(ErasureNote.name, size: UInt64(bytes.count), checksum: checksum) + bytes
        let aside = DirectoryEntry(ordersPath + ".new")
        try posix("Writing", ordersPath) { () throws(Errno) in
            let file = try OpenFile(aside, O_WRONLY | O_CREAT | O_TRUNC, mode: fileSystem.mode)
            try all.borrowed { (b) throws(Errno) in try fileSystem.write(file, b, at: 0) }
            try fileSystem.sync(file)
            try aside.rename(to: DirectoryEntry(ordersPath))
        }
    }
    private var ordersPath: String { path + "-erasures" }
    package func touchOrders() { DirectoryEntry(ordersPath).touch() }
    package func ordersStamp() -> UInt64 {
        (try? System.status(ordersPath))?.stamp ?? 0
    }
}
