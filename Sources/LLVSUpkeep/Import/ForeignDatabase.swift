/// A table of the other implementation's SQLite stores: `Zone(key, version, data)`. Reads a copy.
final class ForeignDatabase {
    private let copy: DatabaseCopy
    private let connection: SQLiteConnection
    private let control: PacedControl
    private let query: String
    private var path: String { copy.original }

    /// - Parameter control: checked while SQLite works and waits.
    init(_ copy: DatabaseCopy, _ control: PacedControl) throws {
        self.copy = copy; self.control = control
        let connection = try Waiting.looking(at: control) { try SQLiteConnection(copy.path, .copy, of: copy.original) }
        self.connection = connection
        let index = try connection.watched(by: control) {
            try connection.run("PRAGMA query_only = ON", doing: "Opening")
            return try ForeignDatabase.key(connection)
        }
        guard let index else {
            throw StoreError(
                .notAStore,
                "\(copy.original) is an SQLite database without a table \"Zone\" of the columns key, version and data, with a unique index "
                    + "of the first two, or with views or triggers; and so no part of a store that can be imported. Check the path.",
                path: copy.original)
        }
        // Bound as bytes, since an id may hold a NUL. The index is required: without one, each query would scan the table.
        query =
            "SELECT data, length(data) > \(Limits.valueSize) FROM Zone INDEXED BY \"\(index)\" WHERE key = (CAST(?1 AS TEXT) COLLATE "
            + "BINARY) AND version = (CAST(?2 AS TEXT) COLLATE BINARY)"
    }

    deinit { connection.close() }

    /// Returns the name of the index that finds rows; nil if the table has another form, or if its schema would compute or run anything.
    /// The file is foreign, so nothing in its schema is run and no cell is trusted to be where it claims.
    private static func key(_ connection: SQLiteConnection) throws -> String? {
        func rows(_ sql: String, _ row: @escaping (SQLiteStatement) -> Void) throws {
            try connection.query(
                sql, doing: "Reading",
                row: {
                    row($0); return true
                })
        }
        func text(_ row: SQLiteStatement, _ column: Int32) -> String { String(decoding: row.bytes(column), as: UTF8.self) }
        var isTable = false, isOurs = true, columns: [String] = []
        try rows(
            "SELECT type = 'table', name = 'Zone' AND rootpage > 0, type IN ('table', 'index') FROM sqlite_master WHERE type NOT IN "
                + "('table', 'index') OR name = 'Zone' LIMIT 2"
        ) {
            isTable = isTable || $0.integer(0) == 1 && $0.integer(1) == 1
            isOurs = isOurs && $0.integer(2) == 1
        }
        guard isTable, isOurs else { return nil }
        try rows("PRAGMA table_xinfo(Zone)") {
            columns.append(text($0, 1))
            isOurs = isOurs && $0.integer(6) == 0
        }
        // SQLite before 3.26 has neither this pragma nor computed columns.
        if columns.isEmpty { try rows("PRAGMA table_info(Zone)") { columns.append(text($0, 1)) } }
        guard isOurs, columns.sorted() == ["data", "key", "version"] else { return nil }
        var indexes: [String] = []
        try rows("PRAGMA index_list(Zone)") { if $0.integer(2) == 1, $0.integer(4) == 0 { indexes.append(text($0, 1)) } }
        return try indexes.first { name in
            guard !name.utf8.contains(UInt8(ascii: "\"")) else { return false }
            var parts: [String] = []
            try rows("PRAGMA index_xinfo(\"\(name)\")") { if $0.integer(5) == 1 { parts.append(text($0, 2) + " " + text($0, 4)) } }
            return parts.sorted() == ["key BINARY", "version BINARY"]
        }
    }

    /// Returns the data of a row; nil if there is none.
    func data(_ key: String, _ version: String) throws -> [UInt8]? {
        var found: [UInt8]?
        let key = Array(key.utf8), version = Array(version.utf8)
        try key.withUnsafeBytes { key in
            try version.withUnsafeBytes { version in
                try connection.watched(by: control) {
                    try connection.query(
                        query, doing: "Reading",
                        bind: {
                            $0.bind(1, key); $0.bind(2, version)
                        },
                        row: { row in
                            guard row.integer(1) == 0 else {
                                throw StoreError(
                                    .tooLarge,
                                    "\(path) holds an entry of more than \(Limits.valueSize) bytes, which is the most that a value may "
                                        + "have.",
                                    path: path)
                            }
                            try Memory.expect(row.bytes(0).count, "Reading from \(path)")
                            found = Array(row.bytes(0))
                            return false
                        })
                }
            }
        }
        return found
    }
}
