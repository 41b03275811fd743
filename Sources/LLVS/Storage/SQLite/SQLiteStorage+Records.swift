extension SQLiteStorage {
    /// What places call the two tables.
    static let inRecords: UInt32 = 0
    static let inChunks: UInt32 = 1

    public func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
        guard !records.isEmpty else { return [] }
        writing.lock()
        defer { writing.unlock() }
        do { return try append(records, to: writable("Adding versions to")) } catch let error as StoreError
            where error.code == .readOnly && !isReadOnly
        {
            // Perhaps it is so no more: another connection is made when there can be one.
            writerRefuses = true
            return try append(records, to: writable("Adding versions to"))
        }
    }

    private func append(_ records: [RecordPieces], to writer: SQLiteConnection) throws -> [RecordPlace] {
        try setSynced(options.durability == .full)
        if options.durability == .full { try settle(writer) }
        let doing = "Adding versions to"
        var places: [RecordPlace] = []
        places.reserveCapacity(records.count)
        var bytes: UInt64 = 0
        let range = try appending(to: writer, doing) {
            let before = try writer.integer("SELECT coalesce(max(seq), 0) FROM records", doing: doing)
            guard before >= 0, before < Int64.max - Int64(records.count) else {
                throw StoreError(
                    .damaged,
                    "Adding versions to \(path) failed: its rows are numbered up to the highest number. The database is damaged; "
                        + "exchange with a new store.",
                    path: path)
            }
            for (i, record) in records.enumerated() {
                places.append(try insert(record, as: before + 1 + Int64(i), writer, doing))
                bytes &+= UInt64(record.length)
            }
            return before + 1...before + Int64(records.count)
        }
        state.withLock {
            if lastSeen == range.lowerBound - 1 { lastSeen = range.upperBound } else { own.append(range) }
            // A synced commit syncs the log, and with it all that others wrote there.
            needsSync = options.durability != .full
            counters.bytesWritten &+= bytes
            if options.durability == .full { counters.syncs &+= 1 }
        }
        return places
    }

    private func insert(_ record: RecordPieces, as seq: Int64, _ writer: SQLiteConnection, _ doing: String) throws -> RecordPlace {
        let length = record.length
        var first: Int64?
        if length <= SQLiteStorage.chunkSize {
            scratch.removeAll(keepingCapacity: true)
            try record.forEach { piece in
                try Memory.grow(&scratch, by: piece.count, "Adding versions to \(description)")
                scratch.append(contentsOf: piece)
            }
        } else {
            let start = try writer.integer("SELECT coalesce(max(seq), 0) + 1 FROM chunks", doing: doing)
            try insertChunks(record, from: start, writer, doing)
            first = start
            scratch.removeAll(keepingCapacity: true)
        }
        try scratch.withUnsafeBytes { data in
            try writer.query(
                "INSERT INTO records(seq, length, checksum, first, data) VALUES(?1, ?2, ?3, ?4, ?5)", doing: doing,
                bind: { statement in
                statement.bind(1, seq)
                statement.bind(2, Int64(length))
                if let first {
                    statement.bind(3, SQLiteStorage.checksum(length: Int64(length), first: first))
                    statement.bind(4, first)
                } else {
                    statement.bind(3, Int64(Bytes.crc32c(data)))
                    statement.bind(5, data)
                }
            })
        }
        return RecordPlace(
            segment: first == nil ? SQLiteStorage.inRecords : SQLiteStorage.inChunks, offset: UInt64(bitPattern: first ?? seq),
            length: UInt64(length))
    }

    private func insertChunks(_ record: RecordPieces, from first: Int64, _ writer: SQLiteConnection, _ doing: String) throws {
        guard first > 0, first < Int64.max / 2 else {
            throw StoreError(
                .damaged,
                "Adding versions to \(path) failed: its rows are numbered up to the highest number. The database is damaged; "
                    + "exchange with a new store.",
                path: path)
        }
        var seq = first
        func flush() throws {
            try scratch.withUnsafeBytes { data in
                try writer.query("INSERT INTO chunks(seq, checksum, data) VALUES(?1, ?2, ?3)", doing: doing, bind: { statement in
                    statement.bind(1, seq)
                    statement.bind(2, Int64(Bytes.crc32c(data)))
                    statement.bind(3, data)
                })
            }
            seq += 1
            scratch.removeAll(keepingCapacity: true)
        }
        scratch.removeAll(keepingCapacity: true)
        scratch.reserveCapacity(SQLiteStorage.chunkSize)
        try record.forEach { piece in
            var at = 0
            while at < piece.count {
                let count = min(piece.count - at, SQLiteStorage.chunkSize - scratch.count)
                scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece[at..<at + count]))
                at += count
                if scratch.count == SQLiteStorage.chunkSize { try flush() }
            }
        }
        if !scratch.isEmpty { try flush() }
    }

    /// Of a record in chunks: its row has no bytes to check, so the numbers are.
    static func checksum(length: Int64, first: Int64) -> Int64 {
        withUnsafeBytes(of: (length.littleEndian, first.littleEndian)) { Int64(Bytes.crc32c($0)) }
    }

    // MARK: Reading

    public func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { (path, place.offset) }

    public func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try StorageRange.check(offset, buffer.count, within: place.length, of: description)
        try checkOpen()
        let number = Int64(bitPattern: place.offset)
        switch place.segment {
        case SQLiteStorage.inRecords:
            try readers.use {
                try copy(
                    $0, "SELECT checksum, data FROM records WHERE seq = ?1", number, expecting: place.length, from: offset, into: buffer)
            }
        case SQLiteStorage.inChunks:
            try readers.use { try copy(place, $0, from: offset, into: buffer) }
        default: throw StorageRange.unknownPlace(description)
        }
    }

    /// Copies a part of a record in chunks.
    private func copy(_ place: RecordPlace, _ connection: SQLiteConnection, from offset: UInt64, into buffer: UnsafeMutableRawBufferPointer)
        throws
    {
        let size = UInt64(SQLiteStorage.chunkSize)
        var done = 0
        while done < buffer.count {
            let at = offset + UInt64(done)
            let chunk = at / size
            let length = min(size, place.length - chunk * size)
            let count = Int(min(length - at % size, UInt64(buffer.count - done)))
            let (seq, overflow) = Int64(bitPattern: place.offset).addingReportingOverflow(Int64(clamping: chunk))
            guard !overflow else { throw StorageRange.unknownPlace(description) }
            try copy(connection, "SELECT checksum, data FROM chunks WHERE seq = ?1", seq, expecting: length, from: at % size,
                     into: UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count]))
            done += count
        }
    }

    /// Copies a part of the one row's bytes.
    /// - Parameter checked: all of them must match their checksum.
    private func copy(
        _ connection: SQLiteConnection, _ sql: String, _ seq: Int64, expecting length: UInt64, from offset: UInt64,
        into buffer: UnsafeMutableRawBufferPointer, checked: Bool = false
    ) throws {
        var whole = false
        try connection.query(sql, doing: "Reading a version from", bind: { $0.bind(1, seq) }, row: { row in
            let data = row.bytes(1)
            guard UInt64(data.count) == length, !checked || Int64(Bytes.crc32c(data)) == row.integer(0) else { return false }
            whole = true
            if buffer.count > 0, let to = buffer.baseAddress, let from = data.baseAddress { memcpy(to, from + Int(offset), buffer.count) }
            return false
        })
        guard whole else {
            throw StoreError(
                .damaged,
                "A version in the database \(path) is damaged: row \(seq) is missing or does not match its checksum. "
                    + "Exchange with a store that has the version.",
                path: path)
        }
    }

    // MARK: Scanning

    public func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        try checkOpen()
        try checkPresence("Looking for versions in")
        let (last, own) = state.withLock { (lastSeen, self.own) }
        try readers.use { connection in try connection.watched(by: control) {
            try scanUnreadable(connection, control, found)
            try walk(connection, after: last, thorough: false, skipping: own, looking: { try control.step(0) }, reached: { seq in
                self.state.withLock {
                    self.lastSeen = max(self.lastSeen, seq)
                    while let range = self.own.first, range.lowerBound <= self.lastSeen + 1 {
                        self.lastSeen = max(self.lastSeen, range.upperBound)
                        self.own.removeFirst()
                    }
                }
            }, found: { record in
                state.withLock { needsSync = true }
                try control.step(bytes: record.prefix.count)
                try found(record)
            }, damage: { remember($0) }, unreadable: { seq in
                state.withLock { if unreadable.count < SQLiteStorage.unreadableLimit { unreadable.insert(seq) } }
            })
        } }
    }

    /// Reports those of the rows that could not be read before, and can now.
    private func scanUnreadable(_ connection: SQLiteConnection, _ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        for seq in state.withLock({ unreadable }).sorted() {
            try control.look()
            var isWhole = false
            do {
                try connection.query(
                    SQLiteStorage.columns + " = ?1", doing: "Reading a version from", bind: { $0.bind(1, seq) },
                    row: { row in
                    try visit(row, seq, connection, false, { record in
                        // Handed out before, when it was met first.
                        if record.isDamaged { return }
                        isWhole = true
                        try found(record)
                    }, { _ in })
                    return false
                })
            } catch let error as StoreError where error.code == .damaged && !isWhole { continue }
            guard isWhole else { continue }
            state.withLock {
                unreadable.remove(seq)
                needsSync = true
                damageList.removeAll { $0.offset == UInt64(clamping: seq) && damageSet.remove($0) != nil }
            }
        }
    }

    public func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try checkOpen()
        let doing = "Verifying \(description)"
        try control.check(.verifying, 0, of: 0, doing: doing)
        try readers.use { connection in try connection.watched(by: control.paced(.verifying, doing: doing)) {
            let total = (try? connection.integer("SELECT coalesce(max(seq), 0) FROM records", doing: "Verifying")) ?? 0
            try walk(connection, after: 0, thorough: true, skipping: [], reached: { seq in
                try control.check(.verifying, Int(clamping: seq), of: Int(clamping: total), doing: doing)
            }, found: found, damage: damage)
            var problems: [String] = []
            do {
                try connection.query("PRAGMA quick_check(10)", doing: "Verifying", row: { row in
                    let text = String(decoding: row.bytes(0), as: UTF8.self)
                    if text != "ok" { problems.append(text) }
                    return true
                })
            } catch let error as StoreError where error.code == .damaged || error.code == .io { problems.append(error.message) }
                for problem in problems {
                    try damage(
                        StorageDamage(
                            file: path, offset: 0,
                            message:
                                "SQLite reports: \(problem). Salvage the store into a new one, and retrieve what is missing from where the "
                                    + "versions are."
                        ))
                }
            if let at = unusedLog() { try damage(StorageDamage.log(path, at)) }
        } }
    }

    /// Where bytes begin in the log that SQLite passes over, when nobody is writing to it meanwhile.
    private func unusedLog() -> UInt64? {
        let log = path + "-wal"
        for _ in 0..<3 {
            let before = try? System.status(log), at = SQLiteLog(log, pageSize: nil)?.unusedFrom()
            if at == nil || before == (try? System.status(log)) { return at }
        }
        return nil
    }

    private static let columns = "SELECT seq, length, checksum, first, data FROM records WHERE seq"

    /// Hands out the records after one, in order. Where SQLite meets a page that it cannot read, the rows
    /// behind it are asked for one by one.
    /// - Parameter looking: called for each row, also those that cannot be read; may end the walk.
    private func walk(
        _ connection: SQLiteConnection, after: Int64, thorough: Bool, skipping: [ClosedRange<Int64>], looking: () throws -> Void = {},
        reached: (Int64) throws -> Void, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void,
        unreadable: (Int64) -> Void = { _ in }
    ) throws {
        let columns = SQLiteStorage.columns
        var last = after
        var callback: (any Error)?
        func hand(_ row: SQLiteStatement) throws {
            let seq = row.integer(0)
            do {
                try looking()
                // They are numbered without gaps, in the order of their commits.
                if seq - 1 > last { try damage(StorageDamage.rows(path, last + 1, seq - 1)) }
                if !skipping.contains(where: { $0.contains(seq) }) {
                    try visit(row, seq, connection, thorough, found) {
                        unreadable(seq); try damage($0)
                    }
                }
                last = seq
                try reached(seq)
            } catch {
                callback = error
                throw error
            }
        }
        do {
            try connection.query(
                columns + " > ?1 ORDER BY seq", doing: "Reading versions from", bind: { $0.bind(1, after) },
                row: {
                    try hand($0); return true
                })
            return
        } catch let error as StoreError where error.code == .damaged && callback == nil {
            try damage(StorageDamage(file: path, offset: 0, message: error.message))
        }
        guard let end = try? connection.integer("SELECT coalesce(max(seq), 0) FROM records", doing: "Reading versions from") else { return }
        var seq = last
        // A damaged page can name any number as the last.
        let limit = min(end, last &+ 10_000_000)
        while seq < limit {
            seq += 1
            try looking()
            do {
                try connection.query(
                    columns + " = ?1", doing: "Reading a version from", bind: { $0.bind(1, seq) },
                    row: {
                        try hand($0); return false
                    })
            } catch let error as StoreError where error.code == .damaged && callback == nil {
                unreadable(seq)
            }
        }
    }

    private func visit(
        _ row: SQLiteStatement, _ seq: Int64, _ connection: SQLiteConnection, _ thorough: Bool, _ found: (ScannedRecord) throws -> Void,
        _ damage: (StorageDamage) throws -> Void
    ) throws {
        let length = row.integer(1), checksum = row.integer(2)
        let lost = { (prefix: UnsafeRawBufferPointer?, place: RecordPlace?) in
            let version = prefix.flatMap { self.options.inspector?($0) }
            let name = version.map { "Version \($0) (as far as its bytes can be trusted)" } ?? "A version that cannot be named any more"
            var damage = StorageDamage(
                file: self.path, offset: UInt64(clamping: seq),
                message: "\(name) is damaged: row \(seq) does not match its checksum. Exchange with a store that has the version.",
                version: version)
            damage.place = place
            return damage
        }
        // It was whole once: it counts in the parts that match their own checksums.
        func lostInPart(_ prefix: UnsafeRawBufferPointer, _ place: RecordPlace, _ reader: RecordReader) throws {
            var met = lost(prefix, place), reader = reader
            guard met.version != nil, (try? reader.tellsVersion()) == true else { return try damage(met) }
            met.lost = .value
            try damage(met)
            if !thorough { try found(ScannedRecord(place: place, prefix: prefix, isDamaged: true)) }
        }
        if row.isNull(3) {
            let data = row.bytes(4)
            guard Int64(data.count) == length else { return try damage(lost(data, nil)) }
            let place = RecordPlace(segment: SQLiteStorage.inRecords, offset: UInt64(bitPattern: seq), length: UInt64(length))
            guard Int64(Bytes.crc32c(data)) == checksum else { return try lostInPart(data, place, RecordReader(data)) }
            return try found(ScannedRecord(place: place, prefix: data))
        }
        let first = row.integer(3)
        guard length > Int64(SQLiteStorage.chunkSize), first > 0, SQLiteStorage.checksum(length: length, first: first) == checksum else {
            return try damage(lost(nil, nil))
        }
        let place = RecordPlace(segment: SQLiteStorage.inChunks, offset: UInt64(bitPattern: first), length: UInt64(length))
        let size = UInt64(SQLiteStorage.chunkSize)
        var chunk = [UInt8](repeating: 0, count: SQLiteStorage.chunkSize)
        var isWhole = true
        do {
            // Within the snapshot that the rows come from, on the same connection.
            let load = { (number: UInt64) throws in
                let count = Int(min(size, place.length - number * size))
                try chunk.withUnsafeMutableBytes { target in
                    try self.copy(
                        connection, "SELECT checksum, data FROM chunks WHERE seq = ?1", first &+ Int64(clamping: number),
                        expecting: UInt64(count), from: 0, into: UnsafeMutableRawBufferPointer(rebasing: target[0..<count]), checked: true)
                }
            }
            if thorough { for number in 1..<(place.length + size - 1) / size { try load(number) } }
            try load(0)
        } catch let error as StoreError where error.code == .damaged {
            isWhole = false
        }
        if isWhole { return try chunk.withUnsafeBytes { try found(ScannedRecord(place: place, prefix: $0)) } }
        // The first bytes name the version when its header is whole, whatever else of them is not.
        let there = (try? chunk.withUnsafeMutableBytes { try copy(place, connection, from: 0, into: $0) }) != nil
        guard there else { return try damage(lost(nil, place)) }
        try chunk.withUnsafeBytes {
            try lostInPart($0, place, RecordReader(length: place.length) { try self.copy(place, connection, from: $0, into: $1) })
        }
    }

    // MARK: Blobs

    public func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw StorageRange.noBlobs(description) }
    public func hasBlob(_ id: BlobID) -> Bool { false }
    public func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        throw StorageRange.noBlobs(description)
    }

    // MARK: Caches

    public func cacheGet(_ name: String) throws -> [UInt8]? { try cache(name) { try Memory.copy($0, "Reading a cache") } }
    public func cacheOpen(_ name: String) throws -> CacheBytes? {
        try cache(name) {
            try Memory.expect($0.count, "Opening a cache")
            return CacheBytes(copying: $0)
        }
    }

    /// What `body` makes of the bytes of a cache, which are good until it returns; nil when there are none, or wrong ones.
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

    public func cachePut(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        try checkOpen()
        if isReadOnly { state.withLock { memoryCaches[name] = .some(data) }; return }
        try changeCaches { writer in
            try data.withUnsafeBytes { bytes in
                try writer.withLargeValues(bytes.count) {
                    try writer.query(
                        "INSERT OR REPLACE INTO caches(name, checksum, data) VALUES(?1, ?2, ?3)", doing: "Writing a cache to",
                        bind: { statement in
                        statement.bind(1, name)
                        statement.bind(2, Int64(Bytes.crc32c(bytes)))
                        statement.bind(3, bytes)
                    })
                }
            }
        }
    }

    /// A file beside the database: a transaction for each save would take as long as the save.
    public func openNote(_ name: String) throws -> any StorageNote {
        try CacheName.check(name)
        try checkOpen()
        let claim = isReadOnly ? nil : try FileIdentity(path).map { try NoteClaim(name, of: $0) }
        let file = try NoteFile(
            Place("\(path)-\(name).note"), fileSystem, isReadOnly: isReadOnly,
            storeOwner: { [path] in try? System.status(path).owner }, claim: claim, makeDirectory: {},
            cache: NoteCache(
                get: { [self] in try cacheGet(name) },
                remove: { [weak self] in if let self, try cacheGet(name) != nil { try cacheDelete(name) } }))
        return file ?? CachedNote(self, name, claim)
    }

    public func cacheDelete(_ name: String) throws {
        try CacheName.check(name)
        try checkOpen()
        if isReadOnly { state.withLock { memoryCaches[name] = .some(nil) }; return }
        try changeCaches { try $0.query("DELETE FROM caches WHERE name = ?1", doing: "Deleting a cache from", bind: { $0.bind(1, name) }) }
    }

    /// Caches need not wait for the disk: losing one costs making it again.
    private func changeCaches(_ body: (SQLiteConnection) throws -> Void) throws {
        try writing.withLock {
            let writer = try writable("Writing a cache to")
            try setSynced(false)
            try body(writer)
        }
    }
}
