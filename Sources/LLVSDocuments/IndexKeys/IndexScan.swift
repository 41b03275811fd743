/// Reads the tuple of a document in one pass (`JSONParts`), without a tree, if nothing in it is unusual. Doubtful documents, and those with
/// escapes in wanted parts, are left to `IndexTuples`. Both yield the same. Used by one thread.
package final class IndexScan {
    package enum Outcome {
        /// `IndexTuples` must read it.
        case unsure
        /// The value is not in the index.
        case absent
        /// `tuple` holds its tuple, valid as long as its bytes.
        case found
    }

    private let conditions: [IndexDefinition.Condition]
    /// The parts of the tuple, followed by those that conditions read.
    private let parts: JSONParts
    /// The tuple found last.
    package let tuple: UnsafeMutableBufferPointer<IndexPart>

    /// Nil for a definition with stars, or whose keys a callback computes.
    package init?(_ definition: IndexDefinition) {
        let on = definition.stars.parts
        guard definition.stars.stars.isEmpty, !on.isEmpty else { return nil }
        conditions = definition.conditions
        parts = JSONParts(on.map(\.path) + conditions.map(\.path))
        tuple = .allocate(capacity: on.count)
        tuple.initialize(repeating: .missing)
    }
    deinit { tuple.deallocate() }

    /// Reads a value whose id fits the index.
    package func read(_ data: UnsafeRawBufferPointer) -> Outcome {
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
