/// The database of a projection: opened, checked and written by one thread at a time.
///
///     llvs_projection(version, digest, definition)                   one row: the version and definition of the tables
///     llvs_projection_tables(name)                                   the tables that it made
///     llvs_projection_problems(number, table_name, id, pointer, reason)
///
/// beside the tables of the definition. All of them change in one transaction, so readers see one version.
final class ProjectionDatabase {
    /// "LLVP".
    static let applicationID: Int64 = 0x4C4C_5650
    static let format: Int64 = 1
    private static let tables = [
        ("llvs_projection", "CREATE TABLE llvs_projection(version TEXT NOT NULL, digest BLOB NOT NULL, definition TEXT NOT NULL)"),
        ("llvs_projection_tables", "CREATE TABLE llvs_projection_tables(name TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID"),
        (
            "llvs_projection_problems",
            "CREATE TABLE llvs_projection_problems(number INTEGER PRIMARY KEY, table_name TEXT NOT NULL, id TEXT NOT NULL, "
                + "pointer TEXT NOT NULL, reason TEXT NOT NULL)"
        ),
        (
            "llvs_projection_problems_of",
            "CREATE INDEX llvs_projection_problems_of ON llvs_projection_problems(table_name, id)"
        ),
    ]

    let path: String
    let connection: SQLiteConnection
    /// The files when it was opened.
    private var files: [(path: String, identity: FileIdentity)] = []

    /// Opens the database, or creates it if there is none.
    /// - Throws: `.notAStore` if something else is at the path, `.newerFormat`, `.busy`, `.permission`, `.noSpace`, `.unsupported`, `.io`.
    init(_ path: String, mode: UInt32, _ patience: SQLiteConnection.Patience) throws {
        self.path = path
        try SQLiteLibrary.checkProcess("Opening the projection", path)
        try SQLiteConnection.checkOwner(path, doing: "Opening the projection", "Give")
        try ProjectionDatabase.checkFile(path)
        try SQLiteNewDatabase.make(at: path, mode: mode, patience) {
            SQLiteNewDatabase.empty(ProjectionDatabase.applicationID, ProjectionDatabase.format)
        }
        let connection = try SQLiteConnection(path, .write, patience)
        connection.allowWideTables()
        self.connection = connection
        do {
            try check()
            try connection.useLog(doing: "Opening the projection")
            // A power cut may lose the newest transactions; they are written again.
            try connection.run("PRAGMA journal_size_limit=16777216; PRAGMA synchronous=NORMAL", doing: "Opening the projection")
        } catch {
            connection.close()
            throw error
        }
        files = SQLiteConnection.files(path)
    }

    /// Whether the file, or its log, was removed from its path: SQLite would keep using a file that no other program finds.
    var isGone: Bool { files.first?.path != path || files.contains { $0.identity.isGone(from: $0.path) } }

    /// Checked first, since SQLite treats a file shorter than its own header as an empty database.
    private static func checkFile(_ path: String) throws {
        guard let status = try? System.status(path) else { return }
        guard status.isRegularFile, status.size == 0 || status.size >= 100 else {
            throw StoreError(
                .notAStore, "Opening the projection \(path) failed: the file is not a database. Give another path, or move it away.",
                path: path)
        }
        guard status.size == 0, let log = try? System.status(path + "-wal"), log.size > 0 else { return }
        throw StoreError(
            .damaged,
            "Opening the projection \(path) failed: the file is empty, and its log is not. Delete the file with those named -wal and -shm "
                + "beside it: it is rebuilt.",
            path: path)
    }

    private func check() throws {
        let application = try connection.integer("PRAGMA application_id", doing: "Opening the projection")
        let format = try connection.integer("PRAGMA user_version", doing: "Opening the projection")
        guard application == ProjectionDatabase.applicationID, format >= 1 else {
            throw StoreError(
                .notAStore,
                "Opening the projection \(path) failed: the database is not one of a projection, and was not changed. "
                    + "Give another path.",
                path: path)
        }
        guard format <= ProjectionDatabase.format else {
            throw StoreError(
                .newerFormat,
                "Opening the projection \(path) failed: it has format \(format), and this version of the library knows formats up to "
                    + "\(ProjectionDatabase.format). Use a newer version of the library, or delete the file: it is rebuilt.",
                path: path)
        }
    }

    // MARK: State

    /// Returns the version of the tables; nil if they do not match the definition.
    func version(of definition: ProjectionDefinition) throws -> VersionID? {
        guard try isMade(definition) else { return nil }
        var version: VersionID?
        try connection.query(
            "SELECT version, digest FROM llvs_projection", doing: "Reading the projection",
            row: {
                guard $0.bytes(1).elementsEqual(definition.digest) else { return false }
                version = VersionID(validating: $0.bytes(0))
                return false
            })
        return version
    }

    /// Returns whether each table and index exists in the form in which it is made, since other programs may have changed them.
    private func isMade(_ definition: ProjectionDefinition) throws -> Bool {
        var left = Dictionary(
            (ProjectionDatabase.tables + definition.tables.flatMap(\.made)).map { ($0.0, $0.1) }, uniquingKeysWith: { first, _ in first })
        try connection.query(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL", doing: "Reading the projection",
            row: {
                let name = String(decoding: $0.bytes(0), as: UTF8.self)
                if let sql = left[name], $0.bytes(1).elementsEqual(sql.utf8) { left[name] = nil }
                return true
            })
        return left.isEmpty
    }

    // MARK: Making

    /// Drops the tables of an earlier definition, and creates those of this one. Called within a transaction.
    /// - Throws: `.invalidArgument` if the database has a table of the name that the projection did not make.
    func make(_ definition: ProjectionDefinition) throws {
        var known: Set<String> = []
        if try exists("llvs_projection_tables") {
            try connection.query(
                "SELECT name FROM llvs_projection_tables", doing: "Reading the projection",
                row: {
                    known.insert(String(decoding: $0.bytes(0), as: UTF8.self))
                    return true
                })
        }
        for name in known.sorted() where !name.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == 0 }) {
            try connection.run("DROP TABLE IF EXISTS \"\(name)\"", doing: "Rebuilding the projection")
        }
        for (name, _) in ProjectionDatabase.tables.reversed() {
            let kind = name == "llvs_projection_problems_of" ? "INDEX" : "TABLE"
            try connection.run("DROP \(kind) IF EXISTS \(name)", doing: "Rebuilding the projection")
        }
        for (_, sql) in ProjectionDatabase.tables { try connection.run(sql, doing: "Making the projection") }
        for table in definition.tables {
            for (name, sql) in table.made {
                if try exists(name) {
                    throw StoreError(
                        .invalidArgument,
                        "Making the projection \(path) failed: the database has a table, a view or an index \"\(name)\" that was not made "
                            + "by the projection, and was not changed. Give another path, or another name.",
                        path: path)
                }
                if !table.isIndex(name) { try connection.run(sql, doing: "Making the projection") }
            }
            for name in table.tableNames {
                try connection.query("INSERT INTO llvs_projection_tables(name) VALUES (?1)", doing: "Making the projection") {
                    $0.bind(1, name)
                }
            }
        }
    }

    /// Creates the indexes of tables that `make` made, after their rows were written. Called within the same transaction.
    func makeIndexes(_ definition: ProjectionDefinition) throws {
        for table in definition.tables {
            for (name, sql) in table.made where table.isIndex(name) { try connection.run(sql, doing: "Making the projection") }
        }
    }

    private func exists(_ name: String) throws -> Bool {
        var isThere = false
        try connection.query(
            "SELECT 1 FROM sqlite_master WHERE name = ?1 COLLATE NOCASE", doing: "Reading the projection", bind: { $0.bind(1, name) },
            row: { _ in
                isThere = true; return false
            })
        return isThere
    }

    /// Records the version of the tables. Called within the transaction that changed them.
    func note(_ version: VersionID, _ definition: ProjectionDefinition) throws {
        try connection.query("DELETE FROM llvs_projection", doing: "Writing the projection")
        let text = String(decoding: definition.text, as: UTF8.self)
        try definition.digest.withUnsafeBytes { digest in
            try connection.query(
                "INSERT INTO llvs_projection(version, digest, definition) VALUES (?1, ?2, ?3)", doing: "Writing the projection",
                bind: {
                    $0.bind(1, version.description); $0.bind(2, digest); $0.bind(3, text)
                })
        }
    }

    // MARK: Problems

    /// A part of a value that did not fit.
    struct Problem {
        let number: Int64
        let table, id, pointer, reason: [UInt8]
    }

    /// Returns the problems after a number, in order.
    func problems(after: Int64, limit: Int) throws -> [Problem] {
        var found: [Problem] = []
        guard try exists("llvs_projection_problems") else { return [] }
        try connection.query(
            "SELECT number, table_name, id, pointer, reason FROM llvs_projection_problems WHERE number > ?1 ORDER BY number LIMIT ?2",
            doing: "Reading the problems of the projection",
            bind: {
                $0.bind(1, after); $0.bind(2, Int64(limit))
            },
            row: {
                found.append(
                    Problem(
                        number: $0.integer(0), table: Array($0.bytes(1)), id: Array($0.bytes(2)), pointer: Array($0.bytes(3)),
                        reason: Array($0.bytes(4))))
                return true
            })
        return found
    }
}
