/// Defines the tables of a projection, and which part of a value each column holds. Immutable.
///
///     {"tables": {"people": {
///         "prefix": "contact/",
///         "columns": [{"name": "last", "pointer": "/lastName", "type": "text"}, {"name": "born", "pointer": "/born", "type": "integer"}],
///         "id": "id", "indexes": [["last"]], "search": {"name": "people_search", "columns": ["last"], "tokenize": "porter"}}}}
///
/// docs/finding.md, *Projections*, says what each member means.
public struct ProjectionDefinition: Sendable {
    static let mostTables = 32, mostColumns = 64, mostIndexes = 16, mostName = 63
    static let idColumn = "id"

    let tables: [ProjectionTable]
    /// The definition as canonical JSON.
    public let text: [UInt8]
    /// SHA-256 that identifies the definition.
    public let digest: [UInt8]

    /// - Parameter json: the definition.
    /// - Throws: `.invalidArgument` with the JSON pointer to the problem as its path; `.outOfMemory`.
    public init(_ json: UnsafeRawBufferPointer) throws {
        guard let text = try JSONTreeParser.parse(json, work: DocumentControl()) else {
            throw ProjectionDefinition.invalid("", "JSON is expected: UTF-8, no name twice in one object, at most 64 MiB and 128 levels")
        }
        do { tables = try ProjectionReader(tree: text.tree).tables() } catch let problem as InvalidIndex {
            throw ProjectionDefinition.invalid(problem.pointer, problem.reason)
        }
        let values = DocumentValues([text], work: DocumentControl())
        self.text = try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: 0), in: values, normalises: true)
        digest = (Array("llvs-projection 1\n".utf8) + self.text).withUnsafeBytes { Array(SHA256.digest($0)) }
    }

    private static func invalid(_ pointer: String, _ reason: String) -> StoreError {
        StoreError(
            .invalidArgument, "The definition of a projection cannot be used: at \"\(pointer)\", \(reason). Correct it there.",
            path: pointer)
    }
}

/// Reads a definition. Reports the first problem and where it is.
private struct ProjectionReader {
    let tree: JSONTree

    private func pointer(_ parts: String...) -> [UInt8] { Array(parts.joined().utf8) }
    private func string(_ node: UInt32) -> String { String(decoding: tree.text(node), as: UTF8.self) }
    private func step(_ name: UInt32) -> [UInt8] { [UInt8(ascii: "/")] + JSONPointer.escaped(tree.text(name)) }

    private func member(_ name: String, of node: UInt32) -> UInt32? { Array(name.utf8).withUnsafeBytes { tree.member($0, of: node) } }

    /// Checks that a node is an object without other members than these.
    private func check(_ node: UInt32, has names: [String], _ place: [UInt8], _ what: String) throws {
        guard tree.kind(node) == .object else { throw InvalidIndex(place, "\(what) is an object") }
        for value in tree.children(of: node) where !names.contains(string(tree.nameNode(of: value))) {
            throw InvalidIndex(place + step(tree.nameNode(of: value)), "\(what) has no member of that name")
        }
    }

    func tables() throws -> [ProjectionTable] {
        try check(0, has: ["tables"], [], "a definition")
        let place = pointer("/tables")
        guard let section = member("tables", of: 0), tree.kind(section) == .object, !tree.children(of: section).isEmpty else {
            throw InvalidIndex(place, "an object is needed: names of tables, and what they hold")
        }
        var tables: [ProjectionTable] = [], names = ProjectionNames()
        for value in tree.children(of: section) {
            let place = place + step(tree.nameNode(of: value))
            guard tables.count < ProjectionDefinition.mostTables else {
                throw InvalidIndex(place, "there are more than \(ProjectionDefinition.mostTables) tables")
            }
            let name = try name(tree.nameNode(of: value), place)
            try names.add(name, place)
            let table = try table(name, value, place)
            if let search = table.search { try names.add(search: search.name, place + pointer("/search/name")) }
            tables.append(table)
        }
        return tables
    }

    private func table(_ name: String, _ node: UInt32, _ place: [UInt8]) throws -> ProjectionTable {
        try check(node, has: ["prefix", "columns", "id", "indexes", "search"], place, "a table")
        guard let prefix = member("prefix", of: node), tree.kind(prefix) == .string else {
            throw InvalidIndex(place + pointer("/prefix"), "a string is needed, which may be empty: what the ids of the values begin with")
        }
        var names = ProjectionNames(), id = ProjectionDefinition.idColumn
        if let given = member("id", of: node) { id = try column(given, place + pointer("/id")) }
        try names.add(id, place + pointer("/id"))
        let list = place + pointer("/columns"), why = "an array of 1 to \(ProjectionDefinition.mostColumns) columns is needed"
        guard let given = member("columns", of: node), tree.kind(given) == .array else { throw InvalidIndex(list, why) }
        let items = tree.children(of: given)
        guard (1...ProjectionDefinition.mostColumns).contains(items.count) else { throw InvalidIndex(list, why) }
        var columns: [ProjectionTable.Column] = []
        for (i, item) in items.enumerated() {
            let place = list + pointer("/\(i)"), column = try self.columns(item, place)
            try names.add(column.name, place + pointer("/name"))
            columns.append(column)
        }
        var table = ProjectionTable(name: name, prefix: Array(tree.text(prefix)), id: id, columns: columns)
        if let given = member("indexes", of: node) { table.indexes = try indexes(given, table, place + pointer("/indexes")) }
        if let given = member("search", of: node) { table.search = try search(given, table, place + pointer("/search")) }
        return table
    }

    private func columns(_ node: UInt32, _ place: [UInt8]) throws -> ProjectionTable.Column {
        try check(node, has: ["name", "pointer", "type"], place, "a column")
        guard let name = member("name", of: node) else { throw InvalidIndex(place + pointer("/name"), "a name is needed") }
        let there = place + pointer("/pointer"), kinds = ProjectionTable.Kind.allCases.map { "\"\($0.rawValue)\"" }
        guard let path = member("pointer", of: node), tree.kind(path) == .string else {
            throw InvalidIndex(there, "a JSON pointer is needed: what of the value the column takes")
        }
        let segments = try IndexDefinition.segments(tree.text(path), there).map { segment -> [UInt8] in
            guard case .name(let name) = segment else {
                throw InvalidIndex(there, "a column takes one part of a value, not \"*\"; the type \"json\" takes a whole array")
            }
            return name
        }
        let kind = member("type", of: node).flatMap { tree.kind($0) == .string ? ProjectionTable.Kind(rawValue: string($0)) : nil }
        guard let kind else {
            throw InvalidIndex(place + pointer("/type"), "one of \(kinds.joined(separator: ", ")) is needed")
        }
        return ProjectionTable.Column(
            name: try column(name, place + pointer("/name")), pointer: Array(tree.text(path)), path: segments, kind: kind)
    }

    /// Reads a list of column names of the table.
    private func list(_ node: UInt32, _ table: ProjectionTable, _ place: [UInt8]) throws -> [String] {
        guard tree.kind(node) == .array, !tree.children(of: node).isEmpty else {
            throw InvalidIndex(place, "an array of names of columns is needed")
        }
        var names: [String] = []
        for (i, item) in tree.children(of: node).enumerated() {
            let place = place + pointer("/\(i)")
            guard tree.kind(item) == .string, table.id == string(item) || table.columns.contains(where: { $0.name == string(item) }) else {
                throw InvalidIndex(place, "the name of a column of the table is needed")
            }
            guard !names.contains(string(item)) else { throw InvalidIndex(place, "the same column occurs twice") }
            names.append(string(item))
        }
        return names
    }

    private func indexes(_ node: UInt32, _ table: ProjectionTable, _ place: [UInt8]) throws -> [[String]] {
        guard tree.kind(node) == .array, tree.children(of: node).count <= ProjectionDefinition.mostIndexes else {
            throw InvalidIndex(place, "an array of at most \(ProjectionDefinition.mostIndexes) arrays of names of columns is needed")
        }
        return try tree.children(of: node).enumerated().map { try list($1, table, place + pointer("/\($0)")) }
    }

    private func search(_ node: UInt32, _ table: ProjectionTable, _ place: [UInt8]) throws -> ProjectionTable.Search {
        try check(node, has: ["name", "columns", "tokenize"], place, "a table for searching")
        let words = ProjectionTable.Tokenizer.allCases.map { "\"\($0.rawValue)\"" }, here = place + pointer("/name")
        guard let given = member("name", of: node) else { throw InvalidIndex(here, "a name is needed") }
        let name = try name(given, here)
        guard let columns = member("columns", of: node) else {
            throw InvalidIndex(place + pointer("/columns"), "an array of names of columns is needed")
        }
        let searched = try list(columns, table, place + pointer("/columns"))
        if let i = searched.firstIndex(of: table.id) {
            throw InvalidIndex(place + pointer("/columns/\(i)"), "the id is in the table for searching in any case, and not searched")
        }
        // FTS5 adds a column named like the table, and one named rank.
        guard !([table.id] + searched).contains(where: { $0.lowercased() == name.lowercased() }) else {
            throw InvalidIndex(here, "a table for searching is not called like one of its columns")
        }
        var tokenizer = ProjectionTable.Tokenizer.unicode61
        if let given = member("tokenize", of: node) {
            guard tree.kind(given) == .string, let known = ProjectionTable.Tokenizer(rawValue: string(given)) else {
                throw InvalidIndex(place + pointer("/tokenize"), "one of \(words.joined(separator: ", ")) is needed")
            }
            tokenizer = known
        }
        return ProjectionTable.Search(name: name, columns: searched, tokenizer: tokenizer)
    }

    // MARK: Names

    private func column(_ node: UInt32, _ place: [UInt8]) throws -> String {
        let name = try name(node, place)
        guard !["rowid", "oid", "_rowid_", "rank"].contains(name.lowercased()) else {
            throw InvalidIndex(place, "SQLite uses this name itself")
        }
        return name
    }

    private func name(_ node: UInt32, _ place: [UInt8]) throws -> String {
        let text = tree.text(node)
        func isLetter(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        guard tree.kind(node) == .string, (1...ProjectionDefinition.mostName).contains(text.count), text.first.map(isLetter) ?? false,
            text.allSatisfy({ isLetter($0) || $0 >= 0x30 && $0 <= 0x39 })
        else {
            throw InvalidIndex(
                place, "a name has 1 to \(ProjectionDefinition.mostName) of A-Z, a-z, 0-9 and underscore, and begins with no digit")
        }
        let name = string(node)
        guard !["sqlite_", "llvs_"].contains(where: { name.lowercased().hasPrefix($0) }) else {
            throw InvalidIndex(place, "names that begin with \"sqlite_\" or \"llvs_\" are not for definitions")
        }
        return name
    }
}

/// The names in use, compared as SQLite does: without case.
private struct ProjectionNames {
    private var known: Set<String> = []

    mutating func add(_ name: String, _ place: [UInt8]) throws {
        guard known.insert(name.lowercased()).inserted else { throw InvalidIndex(place, "the name is in use; SQLite ignores case") }
    }
    /// FTS5 creates further tables, named after its own.
    mutating func add(search name: String, _ place: [UInt8]) throws {
        for suffix in ["", "_data", "_idx", "_content", "_docsize", "_config"] { try add(name + suffix, place) }
    }
}
