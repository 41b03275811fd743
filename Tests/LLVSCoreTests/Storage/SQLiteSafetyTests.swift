import CSQLite
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Each switch and limit of SQLite alone, as SQLite reports it. Each is first set to the opposite, since a host may do that too
/// (`sqlite3_auto_extension`, another build).
@Suite struct SQLiteSafetyTests {
    let directory = TemporaryDirectory()
    static let unlimited = Int32.max

    /// A safe connection whose settings were all reversed, and which was then made safe again.
    func connection(_ mode: SQLiteConnection.Mode = .write) throws -> SQLiteConnection {
        let path = directory.path + "/store.sqlite"
        try SQLiteStorage(path: path).close(discarding: false)
        let connection = try SQLiteConnection(path, mode)
        for (option, _, isOn) in SQLiteSafetyTests.switches {
            _ = llvs_sqlite_configure(connection.sqlite, connection.handle, option, 1 - isOn)
        }
        for (kind, _) in SQLiteSafetyTests.limits {
            _ = connection.sqlite.pointee.limit(connection.handle, kind, SQLiteSafetyTests.unlimited)
        }
        try connection.run("PRAGMA mmap_size=65536; PRAGMA cell_size_check=OFF", doing: "Testing")
        try connection.makeSafe(isCopy: mode == .copy)
        return connection
    }

    /// Numbers of `sqlite3_db_config`, the first version of SQLite that has them, and the required setting.
    static let switches: [(option: Int32, since: Int32, isOn: Int32)] = [
        (1010, 3_026_000, 1), // DEFENSIVE
        (1017, 3_031_000, 0), // TRUSTED_SCHEMA
        (1003, 3_007_000, 0), // ENABLE_TRIGGER
        (1015, 3_030_000, 0), // ENABLE_VIEW
        (1005, 3_013_000, 0), // ENABLE_LOAD_EXTENSION
        (1011, 3_027_000, 0), // WRITABLE_SCHEMA
        (1013, 3_029_000, 0), // DQS_DML
        (1014, 3_029_000, 0), // DQS_DDL
    ]
    static let limits: [(kind: Int32, most: Int32)] = [
        (SQLITE_LIMIT_SQL_LENGTH, 10_000), (SQLITE_LIMIT_COLUMN, 100), (SQLITE_LIMIT_EXPR_DEPTH, 20), (SQLITE_LIMIT_COMPOUND_SELECT, 4),
        (SQLITE_LIMIT_VDBE_OP, 25_000), (SQLITE_LIMIT_FUNCTION_ARG, 8), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ]

    @Test(arguments: switches) func aSwitch(_ option: Int32, since: Int32, isOn: Int32) throws {
        let connection = try connection()
        let found = llvs_sqlite_configure(connection.sqlite, connection.handle, option, -1)
        #expect(found == (connection.sqlite.pointee.libversion_number() < since ? -1 : isOn))
    }

    @Test(arguments: limits) func aLimit(_ kind: Int32, most: Int32) throws {
        let connection = try connection()
        #expect(connection.sqlite.pointee.limit(connection.handle, kind, -1) == most)
    }

    @Test func noPagesAreMappedAndCellsAreChecked() throws {
        let connection = try connection()
        var mapped: Int64 = -1
        // If SQLite was built without mapping, the query has no row.
        try connection.query(
            "PRAGMA mmap_size", doing: "Testing",
            row: {
                mapped = $0.integer(0); return false
            })
        #expect(mapped <= 0)
        #expect(try connection.integer("PRAGMA cell_size_check", doing: "Testing") == 1)
    }

    /// The log of a foreign database remains unchanged, and nothing is mapped.
    @Test func aCopy() throws {
        let connection = try connection(.copy)
        #expect(llvs_sqlite_configure(connection.sqlite, connection.handle, 1006, -1) == 1)
        var mode = ""
        try connection.query(
            "PRAGMA locking_mode", doing: "Testing",
            row: {
                mode = String(decoding: $0.bytes(0), as: UTF8.self)
                return false
            })
        #expect(mode == "exclusive")
        #expect(try connection.integer("SELECT count(*) FROM records", doing: "Testing") == 0)
        #expect(FileIdentity(connection.path + "-shm") == nil)
        connection.close()
    }

    /// The effect of the switches: SQL that would do more than store bytes does nothing.
    @Test func statementsThatDoMore() throws {
        let connection = try connection()
        for statement in [
            "ATTACH ':memory:' AS other", "UPDATE sqlite_master SET sql = 'CREATE TABLE x(y)'", "SELECT load_extension('x')",
            "PRAGMA writable_schema=ON; DELETE FROM sqlite_master",
        ] {
            #expect(throws: StoreError.self, "\(statement)") { try connection.run(statement, doing: "Testing") }
        }
        try connection.run("CREATE VIEW v AS SELECT 1 AS x", doing: "Testing")
        #expect(throws: StoreError.self) { try connection.integer("SELECT x FROM v", doing: "Testing") }
        try connection.run("DROP VIEW v; CREATE TRIGGER t AFTER INSERT ON caches BEGIN DELETE FROM records; END", doing: "Testing")
        try connection.run("INSERT INTO records VALUES (1, 1, 1, NULL, NULL); INSERT INTO caches VALUES ('a', 1, x'00')", doing: "Testing")
        #expect(try connection.integer("SELECT count(*) FROM records", doing: "Testing") == 1)
    }

    /// A value that SQLite cannot bind is not stored as NULL.
    @Test func aValueThatCannotBeBoundFailsTheStatement() throws {
        let connection = try connection(), large = [UInt8](repeating: 0x61, count: 2_000)
        try connection.run("CREATE TABLE values_of_the_test (value)", doing: "Testing")
        _ = connection.sqlite.pointee.limit(connection.handle, SQLITE_LIMIT_LENGTH, 1_000)
        let insert = try connection.statement("INSERT INTO values_of_the_test VALUES (?)", doing: "Testing")
        func bind(_ bytes: ArraySlice<UInt8>, _ body: (UnsafeRawBufferPointer, SQLiteStatement) -> Void) throws {
            try bytes.withUnsafeBytes { bytes in try connection.run(insert, doing: "Testing") { body(bytes, $0) } }
        }
        let ways: [(UnsafeRawBufferPointer, SQLiteStatement) -> Void] = [
            { $1.bind(1, $0) }, { $1.bind(1, utf8: $0) }, { $1.bind(1, copying: $0) }, { $1.bind(1, String(decoding: $0, as: UTF8.self)) },
        ]
        for way in ways {
            #expect(throws: StoreError.self) { try bind(large[...], way) }
            // The failure affects only one statement.
            try bind(large[..<10], way)
        }
        #expect(try connection.integer("SELECT count(*) FROM values_of_the_test WHERE length(value) = 10", doing: "Testing") == 4)
        #expect(try connection.integer("SELECT count(*) FROM values_of_the_test", doing: "Testing") == 4)
        connection.close()
    }
}
