/// Some values, read together, and what the columns of a table take of each.
final class ProjectionValues: @unchecked Sendable {
    // Sendable: one thread at a time uses it: who adds values, then who reads them, then who writes the rows.
    /// A value whose id the table takes.
    struct One {
        fileprivate let row: Int
        let isThere: Bool
        let cells: Range<Int>, problems: Range<Int>
    }

    private let table: ProjectionTable
    private let batch = ValueBatch(isSeparated: false)
    private var filling: BatchFilling
    /// What cells borrow texts of.
    private var texts: [JSONText] = []
    private(set) var values: [One] = []
    private(set) var cells: [ProjectionCell] = []
    private(set) var problems: [(pointer: [UInt8], reason: String)] = []

    /// Bytes of texts in one row, beyond which columns stay empty: SQLite has a limit for a whole row.
    private static let mostInRow = SQLiteConnection.largestRow / 2

    init(_ store: Store, _ table: ProjectionTable) {
        self.table = table
        filling = BatchFilling(store, batch)
    }

    /// - Parameter entry: where the bytes are; nil: there is no value.
    func append(_ id: UnsafeRawBufferPointer, _ entry: MapEntry?) throws { try filling.append(id, entry) }

    func id(_ value: One) -> UnsafeRawBufferPointer { batch.id(value.row) }

    /// Once all were added.
    /// - Throws: `.damaged` for a value that cannot be read.
    func read(_ control: PacedControl) throws {
        try control.look()
        _ = try filling.fill()
        try batch.finish()
        let work = DocumentControl { try control.look() }
        for i in 0..<batch.count where table.takes(batch.id(i)) {
            let row = batch.rows[i], firstCell = cells.count, firstProblem = problems.count
            try control.step(bytes: row.data.count)
            try Memory.check()
            if row.version != nil { try take(UnsafeRawBufferPointer(rebasing: batch.data[row.data]), work) }
            values.append(
                One(
                    row: i, isThere: row.version != nil, cells: firstCell..<cells.count, problems: firstProblem..<problems.count))
        }
    }

    private func take(_ data: UnsafeRawBufferPointer, _ work: DocumentControl) throws {
        guard let text = try JSONTreeParser.parse(data, work: work) else {
            for _ in table.columns { cells.append(.null) }
            problems.append(([], "not-json"))
            return
        }
        var size = 0, isBorrowed = false
        for column in table.columns {
            var (cell, problem) = try ProjectionCell.of(text, column, work)
            size += cell.size
            if size > ProjectionValues.mostInRow {
                size -= cell.size
                (cell, problem) = (.null, "size")
            }
            if let problem { problems.append((column.pointer, problem)) }
            if case .text = cell { isBorrowed = true }
            cells.append(cell)
        }
        if isBorrowed { texts.append(text) }
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
