/// A table of a projection, and the SQL that creates and fills it.
///
/// A table without a search table is stored in order of ids (`WITHOUT ROWID`). Otherwise each row has a number, `llvs_row`, which both
/// tables share.
struct ProjectionTable: Sendable {
    /// The type of a column.
    enum Kind: String, CaseIterable, Sendable {
        case text, integer, real, boolean
        /// Any value, as canonical JSON.
        case json

        fileprivate var declared: String {
            switch self {
            case .text, .json: "TEXT"
            case .integer, .boolean: "INTEGER"
            case .real: "REAL"
            }
        }
    }
    struct Column: Sendable {
        let name: String
        /// The pointer as written in the definition.
        let pointer: [UInt8]
        let path: [[UInt8]]
        let kind: Kind
    }
    /// The tokenizer of FTS5.
    enum Tokenizer: String, CaseIterable, Sendable {
        case unicode61, porter, trigram
    }
    struct Search: Sendable {
        let name: String
        let columns: [String]
        let tokenizer: Tokenizer
    }

    let name: String
    let prefix: [UInt8]
    let id: String
    let columns: [Column]
    var indexes: [[String]] = []
    var search: Search?

    init(name: String, prefix: [UInt8], id: String, columns: [Column]) {
        self.name = name
        self.prefix = prefix
        self.id = id
        self.columns = columns
    }

    /// Returns whether the value of that id has a row. Ids of the library's own values are excluded as for indexes.
    func takes(_ id: UnsafeRawBufferPointer) -> Bool {
        id.starts(with: prefix) && !(id.starts(with: IndexDefinition.reserved) && !prefix.starts(with: IndexDefinition.reserved))
    }

    // MARK: SQL

    /// Names hold only letters, digits and underscores; quoted, they are no keywords either.
    private func quoted(_ name: String) -> String { "\"\(name)\"" }
    private func list(_ names: [String]) -> String { names.map(quoted).joined(separator: ", ") }

    /// The names of all objects to create, and their SQL exactly as SQLite stores it.
    var made: [(name: String, sql: String)] {
        let key =
            search == nil
            ? "\(quoted(id)) TEXT PRIMARY KEY NOT NULL"
            : "\"llvs_row\" INTEGER PRIMARY KEY, \(quoted(id)) TEXT NOT NULL UNIQUE"
        let fields = ([key] + columns.map { "\(quoted($0.name)) \($0.kind.declared)" }).joined(separator: ", ")
        var made = [(name, "CREATE TABLE \(quoted(name))(\(fields))" + (search == nil ? " WITHOUT ROWID" : ""))]
        for (i, columns) in indexes.enumerated() {
            let index = "llvs_index_\(name)_\(i)"
            made.append((index, "CREATE INDEX \(quoted(index)) ON \(quoted(name))(\(list(columns)))"))
        }
        if let search {
            let tokenizer = search.tokenizer == .porter ? "porter unicode61" : search.tokenizer.rawValue
            let columns = "\(quoted(id)) UNINDEXED, \(list(search.columns))"
            made.append((search.name, "CREATE VIRTUAL TABLE \(quoted(search.name)) USING fts5(\(columns), tokenize='\(tokenizer)')"))
        }
        return made
    }
    /// Returns whether that is an index. Indexes are created after the rows, from sorted keys at once.
    func isIndex(_ name: String) -> Bool { name.hasPrefix("llvs_index_") }
    /// The names of the tables, without the indexes.
    var tableNames: [String] { [name] + (search.map { [$0.name] } ?? []) }

    /// Returns SQL that inserts a row with the id and the columns, as parameters 1 and so on, replacing an existing one.
    /// - Parameter rows: the number of rows; 1 for a table with a search table.
    func insert(rows: Int = 1) -> String {
        let names = list([id] + columns.map(\.name)), size = columns.count + 1
        func marks(_ row: Int) -> String { (1...size).map { "?\(row * size + $0)" }.joined(separator: ", ") }
        guard search != nil else {
            return "REPLACE INTO \(quoted(name))(\(names)) VALUES " + (0..<rows).map { "(\(marks($0)))" }.joined(separator: ", ")
        }
        let marks = marks(0)
        return "INSERT INTO \(quoted(name))(\(names), \"llvs_row\") VALUES (\(marks), ?\(columns.count + 2))"
    }
    /// The most rows of one statement, limited by the number of its parameters.
    var together: Int { max(1, min(32, SQLiteConnection.mostParameters / (columns.count + 1))) }
    var delete: String { "DELETE FROM \(quoted(name)) WHERE \(quoted(id)) = ?1" }
    /// SQL that finds the number of a row.
    var find: String { "SELECT \"llvs_row\" FROM \(quoted(name)) WHERE \(quoted(id)) = ?1" }
    var last: String { "SELECT coalesce(max(\"llvs_row\"), 0) FROM \(quoted(name))" }
    /// SQL with the number of the row, then its id and its columns as in the search table.
    var insertIntoSearch: String {
        guard let search else { return "" }
        let marks = (1...search.columns.count + 2).map { "?\($0)" }.joined(separator: ", ")
        return "INSERT INTO \(quoted(search.name))(\"rowid\", \(list([id] + search.columns))) VALUES (\(marks))"
    }
    var deleteFromSearch: String { search.map { "DELETE FROM \(quoted($0.name)) WHERE \"rowid\" = ?1" } ?? "" }
}
