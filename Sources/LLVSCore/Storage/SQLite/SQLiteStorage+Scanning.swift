/// Reads all rows: to find new ones, and to verify them.
extension SQLiteStorage {
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        try checkOpen()
        try checkPresence("Reading versions from")
        let (last, own) = state.withLock { (lastSeen, self.own) }
        try readers.useForScan { connection in
            try connection.watched(by: control) {
                try scanUnreadable(connection, control, found)
                try walk(
                    connection, after: last, thorough: false, skipping: own, looking: { try control.step(0) },
                    reached: { seq in
                        self.state.withLock {
                            self.lastSeen = max(self.lastSeen, seq)
                            while let range = self.own.first, range.lowerBound - 1 <= self.lastSeen {
                                self.lastSeen = max(self.lastSeen, range.upperBound)
                                self.own.removeFirst()
                            }
                        }
                    },
                    found: { record in
                        state.withLock { needsSync = true }
                        try control.step(bytes: record.prefix.count)
                        try found(record)
                    }, damage: { remember($0) },
                    unreadable: { seq in
                        state.withLock { if unreadable.count < SQLiteStorage.unreadableLimit { unreadable.insert(seq) } }
                    })
            }
        }
    }

    /// Reports rows that could not be read before and can now.
    private func scanUnreadable(_ connection: SQLiteConnection, _ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        for seq in state.withLock({ unreadable }).sorted() {
            try control.look()
            var isWhole = false
            do {
                try connection.query(
                    SQLiteStorage.columns + " = ?1", doing: "Reading a version from", bind: { $0.bind(1, seq) },
                    row: { row in
                        try visit(
                            row, seq, connection, false,
                            { record in
                                // A damaged record was already delivered by the first reading.
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

    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try checkOpen()
        let doing = "Verifying \(description)"
        try control.check(.verifying, 0, of: 0, doing: doing)
        try readers.useForScan { connection in
            try connection.watched(by: control.paced(.verifying, doing: doing)) {
                let total = (try? connection.integer("SELECT coalesce(max(seq), 0) FROM records", doing: "Verifying")) ?? 0
                try walk(
                    connection, after: 0, thorough: true, skipping: [],
                    reached: { seq in
                        try control.check(.verifying, Int(clamping: seq), of: Int(clamping: total), doing: doing)
                    }, found: found, damage: damage)
                var problems: [String] = []
                do {
                    try connection.query(
                        "PRAGMA quick_check(10)", doing: "Verifying",
                        row: { row in
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
                                "SQLite reports: \(problem). Salvage the store into a new one, and retrieve what is missing from a "
                                + "store that has it."
                        ))
                }
                if let at = unusedLog() { try damage(StorageDamage.log(path, at)) }
            }
        }
    }

    /// Returns the beginning of bytes in the log that SQLite ignores; nil if another process is writing to the log.
    private func unusedLog() -> UInt64? {
        let log = path + "-wal"
        for _ in 0..<3 {
            let before = try? System.status(log), at = SQLiteLog(log, pageSize: nil)?.unusedFrom()
            if at == nil || before == (try? System.status(log)) { return at }
        }
        return nil
    }

    private static let columns = "SELECT seq, length, checksum, first, data FROM records WHERE seq"

    /// Delivers the records after one, in order. If SQLite finds an unreadable page, the rows after it are read one by one.
    /// - Parameter looking: called for each row, also unreadable ones. May throw to end the walk.
    func walk(
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
                // Rows are numbered without gaps, in the order of their commits.
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
        // On a damaged page, the last number may be any number.
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
            let name = version.map { "Version \($0) (as far as its bytes can be trusted)" } ?? "A version that can no longer be named"
            var damage = StorageDamage(
                file: self.path, offset: UInt64(clamping: seq),
                message: "\(name) is damaged: row \(seq) does not match its checksum. Exchange with a store that has the version.",
                version: version)
            damage.place = place
            return damage
        }
        // The record was complete once, so it counts if its parts match their own checksums.
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
            // Read the chunks in the same snapshot as the rows, on the same connection.
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
        // If the header in the first bytes is valid, it names the version, even if the rest is damaged.
        let there = (try? chunk.withUnsafeMutableBytes { try copy(place, connection, from: 0, into: $0) }) != nil
        guard there else { return try damage(lost(nil, place)) }
        try chunk.withUnsafeBytes {
            try lostInPart($0, place, RecordReader(length: place.length) { try self.copy(place, connection, from: $0, into: $1) })
        }
    }
}

extension StorageDamage {
    package static func log(_ path: String, _ offset: UInt64) -> StorageDamage {
        StorageDamage(
            file: path + "-wal", offset: offset,
            message:
                "The database's log continues after its readable part: its writer was killed, or it is damaged. "
                + "The log does not show whether versions are lost. If they are, a salvage, a copy of the file, or an exchange with "
                + "a store that has them may restore them, before the store is written to.",
            lost: .unfinished)
    }
    package static func rows(_ path: String, _ from: Int64, _ to: Int64) -> StorageDamage {
        StorageDamage(
            file: path, offset: UInt64(clamping: from),
            message:
                "\(from == to ? "Row \(from)" : "Rows \(from) to \(to)") of the database are missing: "
                + "versions that can no longer be named are lost. An exchange with a store that has them restores them."
        )
    }
}
