/// Reads the tuple of a document in one pass (`JSONParts`), without a tree, where nothing in it is unusual. What that is not sure of is
/// left to `IndexTuples`, and so is what is wanted where something in it is escaped: nobody sees which of both has read. Used by one
/// thread.
final class IndexScan {
    enum Outcome {
        /// `IndexTuples` is to be asked.
        case unsure
        /// It is in no index.
        case absent
        /// `tuple` is what it has, as long as its bytes are there.
        case found
    }

    private let conditions: [IndexDefinition.Condition]
    /// The parts of the tuple, and behind them what the conditions look at.
    private let parts: JSONParts
    /// What was found last.
    let tuple: UnsafeMutableBufferPointer<IndexPart>

    /// Nil for a definition in which elements are to be chosen, or whose keys a callback gives.
    init?(_ definition: IndexDefinition) {
        let on = definition.stars.parts
        guard definition.stars.stars.isEmpty, !on.isEmpty else { return nil }
        conditions = definition.conditions
        parts = JSONParts(on.map(\.path) + conditions.map(\.path))
        tuple = .allocate(capacity: on.count)
        tuple.initialize(repeating: .missing)
    }
    deinit { tuple.deallocate() }

    /// Reads a value under whose id it may be in the index.
    func read(_ data: UnsafeRawBufferPointer) -> Outcome {
        switch parts.find(in: data) {
        case .unsure: return .unsure
        case .notJSON: return .absent
        case .found: break
        }
        guard parts.hasNumbersOfKeys else { return .absent }
        for i in conditions.indices {
            let part = parts[tuple.count + i]
            guard !part.isEscaped else { return .unsure }
            guard holds(conditions[i].wanted, part, data) else { return .absent }
        }
        for i in tuple.indices {
            let part = parts[i]
            guard !part.isEscaped else { return .unsure }
            tuple[i] = IndexScan.part(part, data)
        }
        return tuple[0].isMissing ? .absent : .found
    }

    private func holds(_ wanted: IndexDefinition.Condition.Wanted, _ part: JSONParts.Part, _ data: UnsafeRawBufferPointer) -> Bool {
        if case .present(let wanted) = wanted { return (part.kind != .missing) == wanted }
        return switch (wanted, IndexScan.part(part, data)) {
        case (.null, .null): true
        case (.bool(let wanted), .bool(let value)): wanted == value
        case (.number(let wanted), .number(let lexeme)): JSONDecimal(lexeme) == wanted
        case (.string(let wanted), .string(let text)): wanted.withUnsafeBytes { Bytes.equal(text, $0) }
        default: false
        }
    }

    @inline(__always)
    private static func part(_ part: JSONParts.Part, _ data: UnsafeRawBufferPointer) -> IndexPart {
        switch part.kind {
        case .missing, .container: .missing
        case .null: .null
        case .no: .bool(false)
        case .yes: .bool(true)
        case .number: .number(UnsafeRawBufferPointer(rebasing: data[part.start..<part.end]))
        case .string: .string(UnsafeRawBufferPointer(rebasing: data[part.start..<part.end]))
        }
    }
}
