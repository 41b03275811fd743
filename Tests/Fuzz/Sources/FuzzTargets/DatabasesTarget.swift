import Glibc
import LLVS

@testable import LLVSCore

/// The rows of a store in SQLite, and its database file with changes to the schema.
///
///     input = how u8 (bit 0: the rest is a database file; bit 2: patches) · (kind u8 · number u8 · ... ) ...
///     patches: (offset u16 · size u16 · bytes) ... over a new database, whose schema is on its first page
///     kind  = 0 a record: size u16 · bytes, with the right checksum   1 a record's row: length u64 · checksum u32 · first u64 · size u16 ·
///     data
///             2 a chunk: checksum kept u8 · size u16 · data            3 the caches' row of the history: size u16 · data
enum DatabasesTarget {
    static let target = FuzzTarget(name: "databases", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte(), path = Folder.empty() + "/store.sqlite"
        Examining.attempt {
            if how & 4 != 0 {
                var file = SQLiteNewDatabase.bytes
                while !input.isAtEnd {
                    let at = input.uint16(), bytes = input.part()
                    for (i, byte) in bytes.enumerated() where at + i < file.count { file[at + i] = byte }
                }
                Folder.write("store.sqlite", file)
            } else if how & 1 != 0 {
                Folder.write("store.sqlite", input.rest())
            } else {
                try Store(path: path, options: Examining.options(.sqlite)).close()
                let connection = try SQLiteConnection(path, .write)
                try connection.run("PRAGMA synchronous = OFF; BEGIN", doing: "Fuzzing")
                try rows(&input, connection)
                try connection.run("COMMIT", doing: "Fuzzing")
                connection.close()
            }
            var options = Examining.options(.sqlite)
            options.readOnly = how & 2 != 0
            Examining.examine(try Store(path: path, options: options), isDerived: false)
        }
        Folder.remove(Folder.path)
    }

    private static func rows(_ input: inout FuzzInput, _ connection: SQLiteConnection) throws {
        func add(_ sql: String, _ bind: (SQLiteStatement) -> Void) throws { try connection.query(sql, doing: "Fuzzing", bind: bind) }
        var count = 0
        while !input.isAtEnd, count < 64 {
            count += 1
            let kind = input.byte(), number = Int64(input.byte())
            switch kind % 4 {
            case 0:
                var record = input.part()
                Repair.record(&record)
                try add("INSERT OR REPLACE INTO records(seq, length, checksum, first, data) VALUES(?1, ?2, ?3, NULL, ?4)") { row in
                    row.bind(1, number)
                    row.bind(2, Int64(record.count))
                    row.bind(3, Int64(Repair.checksum(record[...])))
                    record.withUnsafeBytes { row.bind(4, $0) }
                }
            case 1:
                let length = Int64(bitPattern: input.uint64()), first = Int64(bitPattern: input.uint64()),
                    isChecked = input.byte() & 1 == 0, checksum = Int64(input.uint32()), data = input.part()
                let right = withUnsafeBytes(of: (length.littleEndian, first.littleEndian)) { Int64(Bytes.crc32c($0)) }
                try add("INSERT OR REPLACE INTO records(seq, length, checksum, first, data) VALUES(?1, ?2, ?3, ?4, ?5)") { row in
                    row.bind(1, number)
                    row.bind(2, length)
                    row.bind(3, isChecked ? right : checksum)
                    row.bind(4, first)
                    if !data.isEmpty { data.withUnsafeBytes { row.bind(5, $0) } }
                }
            case 2:
                let isChecked = input.byte() & 1 == 0
                var data = input.part()
                if isChecked { Repair.record(&data) }
                try add("INSERT OR REPLACE INTO chunks(seq, checksum, data) VALUES(?1, ?2, ?3)") { row in
                    row.bind(1, number)
                    row.bind(2, isChecked ? Int64(Repair.checksum(data[...])) : 7)
                    data.withUnsafeBytes { row.bind(3, $0) }
                }
            default:
                let data = input.part()
                try add("INSERT OR REPLACE INTO caches(name, checksum, data) VALUES(?1, ?2, ?3)") { row in
                    row.bind(1, number & 1 == 0 ? "history" : FlatMap.namePrefix + RandomName(high: 1, low: 2).hex)
                    row.bind(2, Int64(Repair.checksum(data[...])))
                    data.withUnsafeBytes { row.bind(3, $0) }
                }
            }
        }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        // A definition with another spelling, a definition of another kind, and a definition that names another table.
        func patches(_ name: String, _ old: String, _ new: String) throws -> FuzzTarget.Seed {
            let file = SQLiteNewDatabase.bytes, old = Array(old.utf8)
            let at = file.indices.first { file[$0...].starts(with: old) } ?? 0
            return FuzzTarget.Seed(name: name, bytes: [4, UInt8(at & 255), UInt8(at >> 8)] + FuzzInput.part(Array(new.utf8)))
        }
        let altered = try [
            patches("altered-check", "first INTEGER, data BLOB)", "first, data CHECK(first))"),
            patches("altered-default", "checksum INTEGER NOT NULL, data BLOB NOT NULL)", "checksum DEFAULT(zeroblob(1e9)), data   BLOB)"),
            patches("altered-column", "data BLOB NOT NULL)", "data AS (checksum))"), patches("altered-name", "chunks", "chunkz"),
            patches("altered-type", "tablerecords", "indexrecords"), patches("altered-view", "CREATE TABLE chunks", "CREATE VIEW  chunks"),
        ]
        let records = try Examples.history().map { try RecordsTarget.record($0.version, $0.changes) }
        var rows: [UInt8] = [0], chunks = ByteWriter(bytes: [0])
        for (i, record) in records.enumerated() {
            rows += [0, UInt8(i + 1)] + FuzzInput.part(record)
            // A row, and the chunk to which it refers.
            chunks.raw([1, UInt8(i + 1)])
            chunks.integer(UInt64(record.count))
            chunks.integer(UInt64(i + 1))
            chunks.raw([0, 0, 0, 0, 0, 0, 0])
            chunks.raw([2, UInt8(i + 1), 0] + FuzzInput.part(record))
        }
        let store = try Examining.memoryStore()
        try Examples.fill(store)
        let index = store.lock.withRead { HistoryIndex.encode(store.dag, nil, mark: Array(repeating: 0, count: 8)) }
        let path = Folder.empty() + "/store.sqlite"
        let database = try Store(path: path, options: Examining.options(.sqlite))
        try Examples.fill(database)
        try database.close()
        let file = Folder.read("store.sqlite")
        Folder.remove(Folder.path)
        return [
            FuzzTarget.Seed(name: "rows", bytes: rows), FuzzTarget.Seed(name: "chunks", bytes: chunks.bytes),
            FuzzTarget.Seed(name: "rows-and-cache", bytes: rows + [3, 0] + FuzzInput.part(index)),
            FuzzTarget.Seed(name: "file", bytes: [1] + file),
        ] + altered
    }
}
