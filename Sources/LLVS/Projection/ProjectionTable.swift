/// A table of a projection, and the SQL that makes and fills it.
///
/// A table without a table for searching is kept in order of ids (`WITHOUT ROWID`); one with has a number for each row, `llvs_row`, which
/// both tables share.
struct ProjectionTable: Sendable {
    /// What a column takes.
    enum Kind: String, CaseIterable, Sendable {
        case text, integer, real, boolean
        /// Anything, as canonical JSON.
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
        /// As it is written.
        let pointer: [UInt8]
        let path: [[UInt8]]
        let kind: Kind
    }
    /// How FTS5 takes texts apart.
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

    /// Whether the value of that id has a row. Ids of the library's own values are told apart as for indexes.
    func takes(_ id: UnsafeRawBufferPointer) -> Bool {
        id.starts(with: prefix) && !(id.starts(with: IndexDefinition.reserved) && !prefix.starts(with: IndexDefinition.reserved))
    }

    // MARK: SQL

    /// Names hold letters, digits and underscores alone; in quotes they are no keywords either.
    private func quoted(_ name: String) -> String { "\"\(name)\"" }
    private func list(_ names: [String]) -> String { names.map(quoted).joined(separator: ", ") }

    /// Names of all that is made, and what makes it, in the words that SQLite keeps.
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
    /// Whether that is an index, which is made when the rows are there: from sorted keys at once.
    func isIndex(_ name: String) -> Bool { name.hasPrefix("llvs_index_") }
    /// The tables among these.
    var tableNames: [String] { [name] + (search.map { [$0.name] } ?? []) }

    /// The id and the columns, as parameters 1 and so on. Puts a row in the place of the one that was.
    /// - Parameter rows: how many; 1 in a table that is searched.
    func insert(rows: Int = 1) -> String {
        let names = list([id] + columns.map(\.name)), size = columns.count + 1
        func marks(_ row: Int) -> String { (1...size).map { "?\(row * size + $0)" }.joined(separator: ", ") }
        guard search != nil else {
            return "REPLACE INTO \(quoted(name))(\(names)) VALUES " + (0..<rows).map { "(\(marks($0)))" }.joined(separator: ", ")
        }
        let marks = marks(0)
        return "INSERT INTO \(quoted(name))(\(names), \"llvs_row\") VALUES (\(marks), ?\(columns.count + 2))"
    }
    /// How many rows one statement puts at most, by the parameters that it may have.
    var together: Int { max(1, min(32, SQLiteConnection.mostParameters / (columns.count + 1))) }
    var delete: String { "DELETE FROM \(quoted(name)) WHERE \(quoted(id)) = ?1" }
    /// The number of a row.
    var find: String { "SELECT \"llvs_row\" FROM \(quoted(name)) WHERE \(quoted(id)) = ?1" }
    var last: String { "SELECT coalesce(max(\"llvs_row\"), 0) FROM \(quoted(name))" }
    /// The number of the row, then its id and its columns as in the table for searching.
    var insertIntoSearch: String {
        guard let search else { return "" }
        let marks = (1...search.columns.count + 2).map { "?\($0)" }.joined(separator: ", ")
        return "INSERT INTO \(quoted(search.name))(\"rowid\", \(list([id] + search.columns))) VALUES (\(marks))"
    }
    var deleteFromSearch: String { search.map { "DELETE FROM \(quoted($0.name)) WHERE \"rowid\" = ?1" } ?? "" }
}
