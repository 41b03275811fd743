/// A batch of values, and the contents of the columns of a table for each.
final class ProjectionValues: @unchecked Sendable {
    // Sendable: used by one thread at a time: the one that adds values, then the one that reads them, then the one that writes the rows.
    /// A value whose id belongs to the table.
    struct One {
        fileprivate let row: Int
        let isThere: Bool
        fileprivate let firstCell: Int
        let problems: Range<Int>
    }
    /// The content of a column of a row.
    private struct Cell {
        enum Kind: UInt8 {
            case null, integer, real
            /// Text in the bytes of the value.
            case borrowed
            /// Text in `made`.
            case made
        }
        var kind = Kind.null
        /// A whole number, the bits of a floating-point number, or the size of a text.
        var bits: UInt64 = 0
        /// Where the text begins.
        var start = 0
    }

    private let table: ProjectionTable
    private let batch = ValueBatch(isSeparated: false)
    private var filling: BatchFilling
    private let parts: JSONParts
    /// One entry per column of the table, for each value that exists.
    private var cells = ContiguousArray<Cell>()
    private var made: [UInt8] = []
    private(set) var values = ContiguousArray<One>()
    private(set) var problems: [(pointer: [UInt8], reason: String)] = []
    /// The bytes of the current row.
    private var sizeOfRow = 0

    /// The most bytes of texts in one row; further columns stay empty. SQLite has a limit for a whole row.
    private static let mostInRow = SQLiteConnection.largestRow / 2

    init(_ store: Store, _ table: ProjectionTable) {
        self.table = table
        filling = BatchFilling(store, batch)
        parts = JSONParts(table.columns.map(\.path))
    }

    /// - Parameter entry: the place of the bytes; nil: there is no value.
    func append(_ id: UnsafeRawBufferPointer, _ entry: MapEntry?) throws { try filling.append(id, entry) }

    @inline(__always)
    func id(_ value: One) -> UnsafeRawBufferPointer { batch.id(value.row) }

    /// Reads the values. Called after all were added.
    /// - Throws: `.damaged` for a value that cannot be read.
    func read(_ control: PacedControl) throws {
        try control.look()
        _ = try filling.fill()
        try batch.finish()
        let work = DocumentControl { try control.look() }
        try Memory.grow(&values, by: batch.count, "Reading \(batch.count) values")
        try Memory.grow(&cells, by: batch.count * table.columns.count, "Reading \(batch.count) values")
        for i in 0..<batch.count where table.takes(batch.id(i)) {
            let row = batch.rows[i], firstCell = cells.count, firstProblem = problems.count
            try control.step(bytes: row.data.count)
            try Memory.check()
            // A value without bytes has no row.
            let isThere = row.version != nil && !row.isForgotten
            if isThere { try take(UnsafeRawBufferPointer(rebasing: batch.data[row.data]), at: row.dataStart, work) }
            values.append(One(row: i, isThere: isThere, firstCell: firstCell, problems: firstProblem..<problems.count))
        }
    }

    // MARK: Cells

    /// - Parameter start: the offset of the bytes among those of all values.
    private func take(_ data: UnsafeRawBufferPointer, at start: Int, _ work: DocumentControl) throws {
        sizeOfRow = 0
        switch parts.find(in: data) {
        case .found:
            try work.done(data.count)
            for (i, column) in table.columns.enumerated() { try take(parts[i], of: data, at: start, column, work) }
        case .notJSON: takeNothing()
        case .unsure:
            guard let text = try JSONTreeParser.parse(data, work: work) else { return takeNothing() }
            for column in table.columns { try take(text, column, work) }
        }
    }

    private func takeNothing() {
        for _ in table.columns { cells.append(Cell()) }
        problems.append(([], "not-json"))
    }

    private func take(
        _ part: JSONParts.Part, of data: UnsafeRawBufferPointer, at start: Int, _ column: ProjectionTable.Column, _ work: DocumentControl
    ) throws {
        let bytes = UnsafeRawBufferPointer(rebasing: data[part.start..<part.end])
        switch (column.kind, part.kind) {
        case (.json, .string): try add(json: UnsafeRawBufferPointer(rebasing: data[part.start - 1..<part.end + 1]), column, work)
        case (.json, _) where part.kind != .missing: try add(json: bytes, column, work)
        case (.text, .string) where part.isEscaped:
            var position = part.start - 1
            try add(made: JSONString.read(data, at: &position) ?? [], column)
        case (.text, .string): add(Cell(kind: .borrowed, bits: UInt64(bytes.count), start: start + part.start), column)
        default: add(scalar: part.kind, bytes, column)
        }
    }

    private func take(_ text: JSONText, _ column: ProjectionTable.Column, _ work: DocumentControl) throws {
        guard let node = text.tree.find(column.path, from: 0) else { return add(Cell(), column) }
        switch (column.kind, text.tree.kind(node)) {
        case (.json, _): try add(json: text, node, column, work)
        case (.text, .string): try add(made: Memory.copy(text.tree.text(node), "Reading a value"), column)
        case (_, .null): add(scalar: .null, text.tree.text(node), column)
        case (_, .bool): add(scalar: text.tree.bool(node) ? .yes : .no, text.tree.text(node), column)
        case (_, .number): add(scalar: .number, text.tree.text(node), column)
        default: add(scalar: .container, text.tree.text(node), column)
        }
    }

    /// Adds a value that is no text. A missing value or null is no problem.
    private func add(scalar kind: JSONParts.Part.Kind, _ bytes: UnsafeRawBufferPointer, _ column: ProjectionTable.Column) {
        switch (column.kind, kind) {
        case (_, .missing), (_, .null): add(Cell(), column)
        case (.boolean, .yes), (.boolean, .no): add(Cell(kind: .integer, bits: kind == .yes ? 1 : 0), column)
        case (.integer, .number):
            let (isWhole, value) = JSONDecimal.integer(bytes)
            guard let value else { return add(Cell(), column, isWhole ? "range" : "type") }
            add(Cell(kind: .integer, bits: UInt64(bitPattern: value)), column)
        case (.real, .number):
            guard let value = JSONNumber.double(bytes) else { return add(Cell(), column, "range") }
            add(Cell(kind: .real, bits: value.bitPattern), column)
        default: add(Cell(), column, "type")
        }
    }

    private func add(json: UnsafeRawBufferPointer, _ column: ProjectionTable.Column, _ work: DocumentControl) throws {
        guard let text = try JSONTreeParser.parse(json, work: work) else { return add(Cell(), column, "not-json") }
        try add(json: text, 0, column, work)
    }

    private func add(json text: JSONText, _ node: UInt32, _ column: ProjectionTable.Column, _ work: DocumentControl) throws {
        let values = DocumentValues([text], work: work)
        try add(made: CanonicalWriter.bytes(of: ValueRef(tree: 0, node: node), in: values, normalises: true), column)
    }

    private func add(made text: [UInt8], _ column: ProjectionTable.Column) throws {
        let start = made.count
        guard sizeOfRow + text.count <= ProjectionValues.mostInRow else { return add(Cell(), column, "size") }
        try Memory.grow(&made, by: text.count, "Reading a value")
        made += text
        add(Cell(kind: .made, bits: UInt64(text.count), start: start), column)
    }

    private func add(_ cell: Cell, _ column: ProjectionTable.Column, _ problem: String? = nil) {
        let size = cell.kind == .borrowed || cell.kind == .made ? Int(cell.bits) : 8
        let isLarge = sizeOfRow + size > ProjectionValues.mostInRow
        if !isLarge { sizeOfRow += size }
        if let problem = isLarge ? "size" : problem { problems.append((column.pointer, problem)) }
        cells.append(isLarge ? Cell() : cell)
    }

    // MARK: Rows

    /// Binds the content of a column of an existing value.
    @inline(__always)
    func bind(_ value: One, column: Int, to row: SQLiteStatement, _ index: Int32) {
        let cell = cells[value.firstCell + column]
        var text: Range<Int> { cell.start..<cell.start + Int(cell.bits) }
        switch cell.kind {
        case .null: break
        case .integer: row.bind(index, Int64(bitPattern: cell.bits))
        case .real: row.bind(index, Double(bitPattern: cell.bits))
        case .borrowed: row.bind(index, utf8: UnsafeRawBufferPointer(rebasing: batch.data[text]))
        case .made: made.withUnsafeBytes { row.bind(index, copying: UnsafeRawBufferPointer(rebasing: $0[text])) }
        }
    }
}

extension JSONDecimal {
    /// Returns whether a JSON number is an integer, and its value if it fits 64 bits.
    fileprivate static func integer(_ spelling: UnsafeRawBufferPointer) -> (isWhole: Bool, value: Int64?) {
        // Most are few digits without anything else.
        if spelling.count <= 18 {
            var sum: Int64 = 0, isPlain = true
            for byte in spelling {
                guard byte >= 0x30, byte <= 0x39 else { isPlain = false; break }
                sum = sum &* 10 &+ Int64(byte - 0x30)
            }
            if isPlain { return (true, sum) }
        }
        return (JSONDecimal(spelling) ?? .zero).integer
    }

    /// Whether it is an integer, and its value if it fits 64 bits.
    private var integer: (isWhole: Bool, value: Int64?) {
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
