/// Puts rows into the tables of a projection. Used by one thread, within one transaction.
final class ProjectionRows {
    private let connection: SQLiteConnection
    private let table: ProjectionTable
    /// The tables were made in this transaction: nothing is there that a row would replace.
    private let isNew: Bool
    private let work: DocumentControl
    private let insert: SQLiteStatement
    private var delete: SQLiteStatement?, insertIntoSearch: SQLiteStatement?, deleteFromSearch: SQLiteStatement?
    private let addProblem: SQLiteStatement, removeProblems: SQLiteStatement
    private var lastRow: Int64 = 0
    /// Rows that were put, changed or removed.
    private(set) var changed: UInt64 = 0

    private static let doing = "Writing the projection"

    init(_ connection: SQLiteConnection, _ table: ProjectionTable, isNew: Bool, _ control: PacedControl) throws {
        self.connection = connection
        self.table = table
        self.isNew = isNew
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

    /// Puts a row for each value, and takes the rows of those away that are not there.
    func put(_ values: ProjectionValues) throws {
        try withExtendedLifetime(values) {
            for value in values.values {
                try work.done(1)
                try Memory.check()
                let id = values.id(value)
                var number = Int64(0)
                if !isNew { number = try remove(id, replaced: value.isThere) }
                changed += 1
                guard value.isThere else { continue }
                if number == 0 {
                    guard lastRow < .max else {
                        throw StoreError(
                            .damaged,
                            "Writing the projection \(connection.path) failed: rows of the table \"\(table.name)\" are numbered up to the "
                                + "highest number. Delete the file: it is made again.",
                            path: connection.path)
                    }
                    lastRow += 1
                    number = lastRow
                }
                try write(id, number, values.cells[value.cells])
                for problem in values.problems[value.problems] { try note(id, problem.pointer, problem.reason) }
            }
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

    private func write(_ id: UnsafeRawBufferPointer, _ number: Int64, _ cells: ArraySlice<ProjectionCell>) throws {
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
                cells[cells.startIndex + from].bind(to: row, Int32(i + 3))
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
