/// Adds records: one row each, and further rows of 64 KiB for large ones.
extension SQLiteStorage {
    /// The numbers of the two tables in places.
    static let inRecords: UInt32 = 0
    static let inChunks: UInt32 = 1

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try append(records, stamp: nil) }
    /// The orders change within a transaction, too.
    package func append(_ records: [RecordPieces], ifOrdersAre stamp: UInt64) throws -> [RecordPlace] { try append(records, stamp: stamp) }

    private func append(_ records: [RecordPieces], stamp: UInt64?) throws -> [RecordPlace] {
        guard !records.isEmpty else { return [] }
        writing.lock()
        defer { writing.unlock() }
        do { return try append(records, to: writable("Adding versions to"), stamp) } catch let error as StoreError
            where error.code == .readOnly && !isReadOnly
        {
            // The reason may be gone by now: reconnect when that is possible.
            mustReconnect = true
            return try append(records, to: writable("Adding versions to"), stamp)
        }
    }

    private func append(_ records: [RecordPieces], to writer: SQLiteConnection, _ stamp: UInt64?) throws -> [RecordPlace] {
        try setSynced(options.durability == .full)
        if options.durability == .full { try settle(writer) }
        let doing = "Adding versions to"
        var places: [RecordPlace] = []
        places.reserveCapacity(records.count)
        var bytes: UInt64 = 0
        let range = try appending(to: writer, doing) {
            if let stamp, ordersStamp() != stamp { throw OrdersChanged() }
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
        noteLog()
        state.withLock {
            if lastSeen == range.lowerBound - 1 { lastSeen = range.upperBound } else { own.append(range) }
            // A synced commit syncs the log, including what other processes wrote to it.
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
                bind: { SQLiteStorage.bindRow($0, seq, length, first, data) })
        }
        return SQLiteStorage.place(seq, length, first)
    }

    /// Binds a row of `records`: the parameters 1 to 5 are `seq`, `length`, `checksum`, `first` and `data`.
    /// - Parameters:
    ///   - first: the first chunk of the record; nil if the record is in the row.
    ///   - data: the record, if it is in the row.
    static func bindRow(_ statement: SQLiteStatement, _ seq: Int64, _ length: Int, _ first: Int64?, _ data: UnsafeRawBufferPointer) {
        statement.bind(1, seq)
        statement.bind(2, Int64(length))
        if let first {
            statement.bind(3, checksum(length: Int64(length), first: first))
            statement.bind(4, first)
        } else {
            statement.bind(3, Int64(Bytes.crc32c(data)))
            statement.bind(5, data)
        }
    }
    /// Returns the place of the record of a row.
    static func place(_ seq: Int64, _ length: Int, _ first: Int64?) -> RecordPlace {
        RecordPlace(segment: first == nil ? inRecords : inChunks, offset: UInt64(bitPattern: first ?? seq), length: UInt64(length))
    }

    func insertChunks(_ record: RecordPieces, from first: Int64, _ writer: SQLiteConnection, _ doing: String) throws {
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
                try writer.query(
                    "INSERT INTO chunks(seq, checksum, data) VALUES(?1, ?2, ?3)", doing: doing,
                    bind: { statement in
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

    /// Returns the checksum for the row of a chunked record. The row has no bytes, so its numbers are checked.
    package static func checksum(length: Int64, first: Int64) -> Int64 {
        withUnsafeBytes(of: (length.littleEndian, first.littleEndian)) { Int64(Bytes.crc32c($0)) }
    }
}
