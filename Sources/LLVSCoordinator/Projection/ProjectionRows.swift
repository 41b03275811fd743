/// Writes rows into the tables of a projection. Used by one thread, within one transaction.
final class ProjectionRows {
    private let connection: SQLiteConnection
    private let table: ProjectionTable
    /// Whether the tables were made in this transaction, so that no row replaces another.
    private let isNew: Bool
    private let work: DocumentControl
    private let insert: SQLiteStatement
    /// Inserts several rows at once into a new table, and how many.
    private var insertTogether: SQLiteStatement?
    private let together: Int
    private var delete: SQLiteStatement?, insertIntoSearch: SQLiteStatement?, deleteFromSearch: SQLiteStatement?
    private let columnCount: Int
    /// The columns that the search table has.
    private let searched: [Int]
    private let addProblem: SQLiteStatement, removeProblems: SQLiteStatement
    private var lastRow: Int64 = 0
    /// The number of rows inserted, changed or removed.
    private(set) var changed: UInt64 = 0

    private static let doing = "Writing the projection"

    init(_ connection: SQLiteConnection, _ table: ProjectionTable, isNew: Bool, _ control: PacedControl) throws {
        self.connection = connection
        self.table = table
        self.isNew = isNew
        columnCount = table.columns.count
        searched = table.search?.columns.compactMap { name in table.columns.firstIndex { $0.name == name } } ?? []
        together = isNew && table.search == nil ? table.together : 1
        work = DocumentControl { try control.look() }
        func statement(_ sql: String) throws -> SQLiteStatement { try connection.statement(sql, doing: ProjectionRows.doing) }
        insert = try statement(table.insert())
        addProblem = try statement("INSERT INTO llvs_projection_problems(table_name, id, pointer, reason) VALUES (?1, ?2, ?3, ?4)")
        removeProblems = try statement("DELETE FROM llvs_projection_problems WHERE table_name = ?1 AND id = ?2")
        if together > 1 { insertTogether = try statement(table.insert(rows: together)) }
        if !isNew { delete = try statement(table.delete) }
        guard table.search != nil else { return }
        insertIntoSearch = try statement(table.insertIntoSearch)
        if !isNew {
            deleteFromSearch = try statement(table.deleteFromSearch)
            lastRow = try connection.integer(table.last, doing: ProjectionRows.doing)
        }
    }

    /// Writes a row for each value, and removes the rows of missing ones.
    func put(_ values: ProjectionValues) throws {
        try withExtendedLifetime(values) {
            var next = 0
            while next < values.values.count {
                let count = values.values.count - next >= together ? together : 1
                try work.done(count)
                try Memory.check()
                if count > 1 { try putTogether(values, next..<next + count) } else { try put(values, values.values[next]) }
                next += count
            }
        }
    }

    private func put(_ values: ProjectionValues, _ value: ProjectionValues.One) throws {
        let id = values.id(value)
        var number = Int64(0)
        if !isNew { number = try remove(id, replaced: value.isThere) }
        changed += 1
        guard value.isThere else { return }
        if number == 0 {
            guard lastRow < .max else {
                throw StoreError(
                    .damaged,
                    "Writing the projection \(connection.path) failed: rows of the table \"\(table.name)\" are numbered up to the "
                        + "highest number. Delete the file: it is rebuilt.",
                    path: connection.path)
            }
            lastRow += 1
            number = lastRow
        }
        try write(values, value, id, number)
        try noteProblems(values, value)
    }

    /// Inserts consecutive rows by one statement: SQLite continues at its position, and does not search for each row.
    private func putTogether(_ values: ProjectionValues, _ range: Range<Int>) throws {
        guard let insertTogether else { return }
        try connection.run(insertTogether, doing: ProjectionRows.doing) { row in
            var first: Int32 = 1
            for i in range {
                let value = values.values[i]
                row.bind(first, utf8: values.id(value))
                for column in 0..<columnCount { values.bind(value, column: column, to: row, first + Int32(column + 1)) }
                first += Int32(columnCount + 1)
            }
        }
        changed += UInt64(range.count)
        for i in range where !values.values[i].problems.isEmpty { try noteProblems(values, values.values[i]) }
    }

    /// Removes the rows of an id. Returns the number of its row, if it existed and rows have numbers.
    private func remove(_ id: UnsafeRawBufferPointer, replaced: Bool) throws -> Int64 {
        var number = Int64(0)
        try connection.run(removeProblems, doing: ProjectionRows.doing) {
            $0.bind(1, table.name); $0.bind(2, utf8: id)
        }
        if let deleteFromSearch {
            try connection.query(
                table.find, doing: ProjectionRows.doing, bind: { $0.bind(1, utf8: id) },
                row: {
                    number = $0.integer(0); return false
                })
            guard number != 0 else { return 0 }
            try connection.run(deleteFromSearch, doing: ProjectionRows.doing) { $0.bind(1, number) }
        }
        // The new row replaces a row without a number.
        if let delete, !replaced || number != 0 { try connection.run(delete, doing: ProjectionRows.doing) { $0.bind(1, utf8: id) } }
        return number
    }

    private func write(
        _ values: ProjectionValues, _ value: ProjectionValues.One, _ id: UnsafeRawBufferPointer, _ number: Int64
    ) throws {
        try connection.run(insert, doing: ProjectionRows.doing) { row in
            row.bind(1, utf8: id)
            for i in 0..<columnCount { values.bind(value, column: i, to: row, Int32(i + 2)) }
            if insertIntoSearch != nil { row.bind(Int32(columnCount + 2), number) }
        }
        guard let insertIntoSearch else { return }
        try connection.run(insertIntoSearch, doing: ProjectionRows.doing) { row in
            row.bind(1, number)
            row.bind(2, utf8: id)
            for (i, column) in searched.enumerated() { values.bind(value, column: column, to: row, Int32(i + 3)) }
        }
    }

    private func noteProblems(_ values: ProjectionValues, _ value: ProjectionValues.One) throws {
        for problem in values.problems[value.problems] { try note(values.id(value), problem.pointer, problem.reason) }
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
