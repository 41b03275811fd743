/// A table of the other implementation's SQLite stores, for reading: `Zone(key, version, data)`.
final class ForeignDatabase {
    private let connection: SQLiteConnection
    private let path: String
    private let control: PacedControl

    /// - Parameter isAtRest: nothing is in a log beside it: then nothing is made beside it either.
    /// - Parameter control: looked at while SQLite works and waits.
    init(_ path: String, isAtRest: Bool, _ control: PacedControl) throws {
        self.path = path; self.control = control
        connection = try Waiting.looking(at: control) { try SQLiteConnection(path, isAtRest ? .immutable : .read, followsLinks: false) }
        // The file is somebody else's: nothing that its schema says is run, and no cell is believed to be where it says.
        var isTable = false
        try connection.watched(by: control) {
            try connection.run("PRAGMA query_only = ON", doing: "Opening")
            try connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Zone' AND rootpage > 0", doing: "Reading", row: { _ in isTable = true; return false })
        }
        guard isTable else {
            throw StoreError(.notAStore, "\(path) is an SQLite database without a table \"Zone\", and so no part of a store that can be imported. Check the path.", path: path)
        }
    }

    /// Nil when there is no such row.
    func data(_ key: String, _ version: String) throws -> [UInt8]? {
        var found: [UInt8]?
        let key = Array(key.utf8), version = Array(version.utf8)
        try key.withUnsafeBytes { key in
            try version.withUnsafeBytes { version in
                // Bound as bytes, since an id may hold a NUL.
                try connection.watched(by: control) { try connection.query(
                    "SELECT data, length(data) > \(Limits.valueSize) FROM Zone WHERE key = CAST(?1 AS TEXT) AND version = CAST(?2 AS TEXT)", doing: "Reading",
                    bind: { $0.bind(1, key); $0.bind(2, version) },
                    row: { row in
                        guard row.integer(1) == 0 else {
                            throw StoreError(.tooLarge, "\(path) holds an entry of more than \(Limits.valueSize) bytes, which is the most that a value may have.", path: path)
                        }
                        try Memory.expect(row.bytes(0).count, "Reading from \(path)")
                        found = Array(row.bytes(0))
                        return false
                    }) }
            }
        }
        return found
    }
}
