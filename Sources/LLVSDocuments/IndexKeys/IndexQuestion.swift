/// A query of an index: docs/index-keys.md, *Questions*. Tuples are JSON arrays, in which `{}` is a missing part.
public struct IndexQuestion: Sendable {
    /// The first parts of the matching tuples; empty: any.
    public var equal: [UInt8] = []
    /// The beginning of the string after them, in UTF-8; nil: any. Not together with bounds.
    public var beginning: [UInt8]?
    /// Bounds for the parts after `equal`: not below `low`, and not above `high`; empty: no bound.
    public var low: [UInt8] = [], high: [UInt8] = []
    /// Whether the bound itself is excluded.
    public var lowIsOpen = false, highIsOpen = false
    /// Whether entries come from the last to the first.
    public var isBackwards = false
    /// Whether a value with several matching keys is returned once, with the first that the walk meets.
    public var isUnique = false
    /// The most entries of a page; 0: 1,000.
    public var limit = 0
    /// The bytes of values with which a page ends; 0: 16 MiB.
    public var byteLimit = 0
    /// The cursor of the page before; empty: from the beginning.
    public var after: [UInt8] = []
    /// Whether to return keys, values, and the number of matches over all pages.
    public var wantsKeys = false, wantsValues = false, wantsCount = false

    /// A query for all entries, in order.
    public init() {}

    /// A tuple passed in by the caller.
    struct Tuple {
        private let text: JSONText?
        private let nodes: [UInt32]
        var count: Int { nodes.count }

        /// - Parameters:
        ///   - json: a JSON array; no bytes count as an empty one.
        ///   - name: its name in messages.
        /// - Throws: `.invalidArgument`.
        init(_ json: UnsafeRawBufferPointer, named name: String) throws {
            try self.init(json) { StoreError(.invalidArgument, "\"\(name)\" of a question to an index is not usable: \($0).") }
        }

        /// - Parameter wrong: returns the error for a problem.
        init(_ json: UnsafeRawBufferPointer, orThrow wrong: (String) -> StoreError) throws {
            guard json.count > 0 else {
                (text, nodes) = (nil, [])
                return
            }
            guard let text = try JSONTreeParser.parse(json, copying: true, work: DocumentControl()), text.tree.kind(0) == .array else {
                throw wrong("a JSON array is expected, like [\"Smith\",\"Ann\"]")
            }
            let tree = text.tree, nodes = tree.children(of: 0)
            for node in nodes {
                switch tree.kind(node) {
                case .array: throw wrong("it holds an array, which cannot be a part of a key")
                case .object where !tree.children(of: node).isEmpty:
                    throw wrong("it holds an object, which cannot be a part of a key; {} is a missing part")
                case .number where !IndexNumber.isWithinLimits(tree.text(node)):
                    throw wrong("it holds a number of more than 400 digits, or with an exponent beyond 9999")
                default: break
                }
            }
            (self.text, self.nodes) = (text, nodes)
        }

        /// Calls `body` with the parts, which are valid during the call.
        func withParts<R>(_ body: ([IndexPart]) throws -> R) rethrows -> R {
            guard let text else { return try body([]) }
            let tree = text.tree
            return try withExtendedLifetime(text) {
                try body(
                    nodes.map { node in
                        switch tree.kind(node) {
                        case .null: .null
                        case .bool: .bool(tree.bool(node))
                        case .number: .number(tree.text(node))
                        case .string: .string(tree.text(node))
                        default: .missing
                        }
                    })
            }
        }

        func bytes(folds: Bool) -> [UInt8] {
            withParts { parts in
                var out: [UInt8] = []
                IndexKey.append(parts, folds: folds, to: &out)
                return out
            }
        }
    }

    /// Returns the first matching bytes, and the first bytes after all matches; nil: there is no upper bound.
    /// - Throws: `.invalidArgument`, `.invalidUTF8`.
    package func bounds(in definition: IndexDefinition) throws -> (low: [UInt8], high: [UInt8]?) {
        let folds = definition.folds
        let equal = try equal.withUnsafeBytes { try Tuple($0, named: "equal") }
        let low = try low.withUnsafeBytes { try Tuple($0, named: "low") }
        let high = try high.withUnsafeBytes { try Tuple($0, named: "high") }
        let wanted = equal.count + max(low.count, high.count, beginning == nil ? 0 : 1)
        guard wanted <= definition.parts else {
            throw StoreError(
                .invalidArgument,
                "A question to an index names \(wanted) parts of its keys, which have \(definition.parts). Leave out the others.")
        }
        let here = equal.bytes(folds: folds)
        if let beginning {
            guard low.count == 0, high.count == 0 else {
                throw StoreError(
                    .invalidArgument, "A question to an index has a beginning and bounds as well. Give one of them.")
            }
            guard beginning.withUnsafeBytes({ Bytes.isValidUTF8($0) }) else {
                throw StoreError(.invalidUTF8, "The beginning in a question to an index is not valid UTF-8. Give it in that encoding.")
            }
            var first = here
            beginning.withUnsafeBytes { IndexKey.append(beginning: $0, folds: folds, to: &first) }
            return (first, IndexKey.behind(first))
        }
        var bounds = (low: here, high: IndexKey.behind(here))
        if low.count > 0 {
            bounds.low = here + low.bytes(folds: folds)
            if lowIsOpen { bounds.low = IndexKey.behind(bounds.low) ?? [] }
        }
        if high.count > 0 {
            let end = here + high.bytes(folds: folds)
            bounds.high = highIsOpen ? end : IndexKey.behind(end)
        }
        return bounds
    }
}
