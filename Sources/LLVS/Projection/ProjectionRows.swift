/// Puts rows into the tables of a projection. Used by one thread, within one transaction.
final class ProjectionRows {
    private let connection: SQLiteConnection
    private let store: Store
    private let table: ProjectionTable
    /// The tables were made in this transaction: nothing is there that a row would replace.
    private let isNew: Bool
    private let control: PacedControl
    private let work: DocumentControl
    private let insert: SQLiteStatement
    private var delete: SQLiteStatement?, insertIntoSearch: SQLiteStatement?, deleteFromSearch: SQLiteStatement?
    private let addProblem: SQLiteStatement, removeProblems: SQLiteStatement
    private var lastRow: Int64 = 0
    /// Rows that were put, changed or removed.
    private(set) var changed: UInt64 = 0

    private static let doing = "Writing the projection"
    /// Bytes of texts in one row, beyond which columns stay empty: SQLite has a limit for a whole row.
    private static let mostInRow = SQLiteConnection.largestRow / 2

    init(_ connection: SQLiteConnection, _ store: Store, _ table: ProjectionTable, isNew: Bool, _ control: PacedControl) throws {
        self.connection = connection
        self.store = store
        self.table = table
        self.isNew = isNew
        self.control = control
        work = DocumentControl { try control.look() }
        func statement(_ sql: String) throws -> SQLiteStatement { try connection.statement(sql, doing: ProjectionRows.doing) }
        insert = try statement(table.insert)
        addProblem = try statement("INSERT INTO llvs_projection_problems(table_name, id, pointer, reason) VALUES (?1, ?2, ?3, ?4)")
        removeProblems = try statement("DELETE FROM llvs_projection_problems WHERE table_name = ?1 AND id = ?2")
        if !isNew { delete = try statement(table.delete) }
        guard table.search != nil else { return }
        insertIntoSearch = try statement(table.insertIntoSearch)
        if !isNew {
            deleteFromSearch = try statement(table.deleteFromSearch)
            lastRow = try connection.integer(table.last, doing: ProjectionRows.doing)
        }
    }

    /// Reads values, and puts a row for each; for nil takes the row away.
    /// - Throws: `.damaged` for a value that cannot be read.
    func put(_ values: some Collection<(id: [UInt8], entry: MapEntry?)>) throws {
        let batch = ValueBatch(isSeparated: false)
        var filling = BatchFilling(store, batch)
        for (id, entry) in values { try id.withUnsafeBytes { try filling.append($0, entry) } }
        try control.look()
        _ = try filling.fill()
        try batch.finish()
        try withExtendedLifetime(batch) {
            for i in 0..<batch.count {
                let row = batch.rows[i], id = batch.id(i)
                guard table.takes(id) else { continue }
                try control.step(bytes: row.data.count)
                try Memory.check()
                try put(id, row.version == nil ? nil : UnsafeRawBufferPointer(rebasing: batch.data[row.data]))
                changed += 1
            }
        }
    }

    private func put(_ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer?) throws {
        var number = Int64(0)
        if !isNew { number = try remove(id, replaced: data != nil) }
        guard let data else { return }
        if number == 0 {
            guard lastRow < .max else {
                throw StoreError(
                    .damaged,
                    "Writing the projection \(connection.path) failed: rows of the table \"\(table.name)\" are numbered up to the highest "
                        + "number. Delete the file: it is made again.",
                    path: connection.path)
            }
            lastRow += 1
            number = lastRow
        }
        // What the columns take must stay until the row is written.
        guard let text = try JSONTreeParser.parse(data, work: work) else {
            try write(id, number, [ProjectionCell](repeating: .null, count: table.columns.count))
            return try note(id, [], "not-json")
        }
        try withExtendedLifetime(text) {
            var cells: [ProjectionCell] = [], problems: [(Int, String)] = [], size = 0
            cells.reserveCapacity(table.columns.count)
            for (i, column) in table.columns.enumerated() {
                var (cell, problem) = try ProjectionCell.of(text, column, work)
                size += cell.size
                if size > ProjectionRows.mostInRow {
                    size -= cell.size
                    (cell, problem) = (.null, "size")
                }
                if let problem { problems.append((i, problem)) }
                cells.append(cell)
            }
            try write(id, number, cells)
            for (i, reason) in problems { try note(id, table.columns[i].pointer, reason) }
        }
    }

    /// Takes away what is there of an id. Returns the number of its row, where there was one and rows have numbers.
    private func remove(_ id: UnsafeRawBufferPointer, replaced: Bool) throws -> Int64 {
        var number = Int64(0)
        try connection.run(removeProblems, doing: ProjectionRows.doing) { $0.bind(1, table.name); $0.bind(2, utf8: id) }
        if let deleteFromSearch {
            try connection.query(
                table.find, doing: ProjectionRows.doing, bind: { $0.bind(1, utf8: id) }, row: { number = $0.integer(0); return false })
            guard number != 0 else { return 0 }
            try connection.run(deleteFromSearch, doing: ProjectionRows.doing) { $0.bind(1, number) }
        }
        // A row without a number is replaced by the one that comes.
        if let delete, !replaced || number != 0 { try connection.run(delete, doing: ProjectionRows.doing) { $0.bind(1, utf8: id) } }
        return number
    }

    private func write(_ id: UnsafeRawBufferPointer, _ number: Int64, _ cells: [ProjectionCell]) throws {
        try connection.run(insert, doing: ProjectionRows.doing) { row in
            row.bind(1, utf8: id)
            for (i, cell) in cells.enumerated() { cell.bind(to: row, Int32(i + 2)) }
            if table.search != nil { row.bind(Int32(cells.count + 2), number) }
        }
        guard let insertIntoSearch, let search = table.search else { return }
        try connection.run(insertIntoSearch, doing: ProjectionRows.doing) { row in
            row.bind(1, number)
            row.bind(2, utf8: id)
            for (i, name) in search.columns.enumerated() {
                guard let from = table.columns.firstIndex(where: { $0.name == name }) else { continue }
                cells[from].bind(to: row, Int32(i + 3))
            }
        }
    }

    private func note(_ id: UnsafeRawBufferPointer, _ pointer: [UInt8], _ reason: String) throws {
        try pointer.withUnsafeBytes { pointer in
            try connection.run(addProblem, doing: ProjectionRows.doing) {
                $0.bind(1, table.name)
                $0.bind(2, utf8: id)
                $0.bind(3, utf8: pointer)
                $0.bind(4, reason)
            }
        }
    }
}

/// What a column of a row holds. Text of a value is borrowed from it.
enum ProjectionCell {
    case null
    case integer(Int64)
    case real(Double)
    case text(UnsafeRawBufferPointer)
    case made([UInt8])

    var size: Int {
        switch self {
        case .text(let text): text.count
        case .made(let text): text.count
        default: 8
        }
    }

    /// The part of a value that a column takes, and what is wrong with it: "type" or "range". What is missing, or null, is nothing wrong.
    static func of(_ text: JSONText, _ column: ProjectionTable.Column, _ work: DocumentControl) throws -> (ProjectionCell, String?) {
        let tree = text.tree
        guard let node = tree.find(column.path, from: 0) else { return (.null, nil) }
        if column.kind == .json {
            let values = DocumentValues([text], work: work)
            return (.made(try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: node), in: values, normalises: true)), nil)
        }
        switch (column.kind, tree.kind(node)) {
        case (_, .null): return (.null, nil)
        case (.text, .string): return (.text(tree.text(node)), nil)
        case (.boolean, .bool): return (.integer(tree.bool(node) ? 1 : 0), nil)
        case (.integer, .number):
            let (isWhole, value) = tree.decimal(node).integer
            return value.map { (.integer($0), nil) } ?? (.null, isWhole ? "range" : "type")
        case (.real, .number):
            let number = Double(String(decoding: tree.text(node), as: UTF8.self)) ?? .infinity
            return number.isFinite ? (.real(number), nil) : (.null, "range")
        default: return (.null, "type")
        }
    }

    func bind(to row: SQLiteStatement, _ index: Int32) {
        switch self {
        case .null: break
        case .integer(let number): row.bind(index, number)
        case .real(let number): row.bind(index, number)
        case .text(let text): row.bind(index, utf8: text)
        case .made(let text): text.withUnsafeBytes { row.bind(index, copying: $0) }
        }
    }
}

extension JSONDecimal {
    /// Whether it is a whole number, and which, within 64 bits.
    fileprivate var integer: (isWhole: Bool, value: Int64?) {
        guard exponent >= 0 else { return (false, nil) }
        guard digits.count + exponent <= 19 else { return (true, nil) }
        var sum: UInt64 = 0
        for digit in digits { sum = sum &* 10 &+ UInt64(digit) }
        for _ in 0..<exponent { sum = sum &* 10 }
        // 19 digits are less than 2^64.
        if negative { return (true, sum <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- sum) : nil) }
        return (true, Int64(exactly: sum))
    }
}
