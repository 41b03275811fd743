/// What came of merging a value.
public struct MergedValue: Sendable {
    /// Which bytes they are.
    public enum Source: UInt32, Sendable { case absent = 0, newer, older, computed }
    /// The result; nil when the value is gone.
    public let bytes: [UInt8]?
    /// Whose bytes the result's are: of the newer side where both are equal.
    public let source: Source
    /// What was decided where both sides had changed the same.
    public let records: [ConflictRecord]

    /// SHA-256 of the records as canonical JSON, in hexadecimal.
    public func digest(id: [UInt8]) -> String {
        ConflictRecord.json(records.map { (id, $0) }).withUnsafeBytes { SHA256.digest($0) }
            .reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16) }
    }
}

/// Merges two values that came from one: the same inputs give the same bytes, in every process and on every machine.
///
/// Time and memory grow with the inputs: O(k log k) for objects of k members, O(n log n) for lists, for texts capped by counting steps.
/// Every input gives a result. A thread with a stack of 64 KiB suffices.
public struct DocumentMerge {
    private let rules: ValueRules
    private let saves: Bool
    private let work: DocumentWork

    /// - Parameters:
    ///   - schema: the rules; nil for `auto` everywhere.
    ///   - id: of the value, which tells the rules that are for it; a value that no prefix is for merges by `auto`.
    ///   - check: called about once in every million steps; what it throws ends the merge.
    public init(schema: MergeSchema? = nil, id: [UInt8] = [], check: (() throws -> Void)? = nil) {
        self.init(rules: schema.flatMap { schema in id.withUnsafeBytes { schema.rules(for: $0) } } ?? ValueRules(), check: check)
    }

    init(rules: ValueRules, saves: Bool = false, check: (() throws -> Void)? = nil) {
        self.rules = rules
        self.saves = saves
        work = DocumentWork(check)
    }

    /// The same rules for what an application saves: `merge(decoded, new, read)` keeps what it does not know of, and removes what it removed.
    public var saving: DocumentMerge { DocumentMerge(rules: rules, saves: true, work: work) }

    private init(rules: ValueRules, saves: Bool, work: DocumentWork) {
        self.rules = rules
        self.saves = saves
        self.work = work
    }

    /// Merges what two sides made of a base; nil is absent.
    /// - Throws: what `check` throws, and `.outOfMemory`.
    public func merge(
        base: UnsafeRawBufferPointer?, newer: UnsafeRawBufferPointer?, older: UnsafeRawBufferPointer?
    ) throws -> MergedValue {
        if let unchanged = unchanged(base, newer, older) { return unchanged }
        let kind = topRule?.kind ?? .auto
        let trees = try [base, newer, older].map { try $0.map { try read($0, as: kind) } }
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        let all = try trees.map { try $0 ?? JSONTree(whole: empty, as: .raw) } + (rules.tree.map { [$0] } ?? [])
        let values = DocumentValues(all, work: work)
        func ref(_ i: Int) -> ValueRef { trees[i] == nil ? .absent : ValueRef(tree: UInt32(truncatingIfNeeded: i), node: 0) }
        let merge = ValueMerge(values, RuleStates(rules), rulesTree: 3, saves: saves)
        let result = try merge.run(ref(0), ref(1), ref(2))
        let (bytes, source) = try write(result, kind, values, newer, older)
        return MergedValue(bytes: bytes, source: source, records: try merge.records.map { try record($0, merge) })
    }

    private var topRule: MergeRule? { RuleStates(rules).rule(RuleStates.start).map { rules.rules[$0] } }

    /// What is clear without looking into the values.
    private func unchanged(_ base: UnsafeRawBufferPointer?, _ newer: UnsafeRawBufferPointer?, _ older: UnsafeRawBufferPointer?) -> MergedValue? {
        func same(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> Bool {
            guard let a, let b else { return a == nil && b == nil }
            return Bytes.equal(a, b)
        }
        if newer == nil, older == nil { return MergedValue(bytes: nil, source: .absent, records: []) }
        guard topRule?.absent == nil || (base != nil && newer != nil && older != nil) else { return nil }
        var taken: (UnsafeRawBufferPointer?, MergedValue.Source)?
        if same(newer, base) { taken = (older, .older) } else if same(older, base) { taken = (newer, .newer) }
        if taken == nil, same(newer, older), !rules.hasCounter { taken = (newer, .newer) }
        guard let taken else { return nil }
        guard let bytes = taken.0 else { return MergedValue(bytes: nil, source: .absent, records: []) }
        return MergedValue(bytes: Array(bytes), source: same(bytes, newer) ? .newer : taken.1, records: [])
    }

    private func read(_ bytes: UnsafeRawBufferPointer, as kind: MergeRule.Kind) throws -> JSONTree {
        switch kind {
        case .bytes: break
        case .text:
            if Bytes.isValidUTF8(bytes) { return try JSONTree(whole: bytes, as: .string) }
        default:
            if let tree = try JSONTreeParser.parse(bytes, work: work) {
                let top = tree.kind(0)
                if top >= .array || (top == .number && kind == .counter) { return tree }
            }
        }
        return try JSONTree(whole: bytes, as: .raw)
    }

    private func write(
        _ result: ValueRef, _ kind: MergeRule.Kind, _ values: DocumentValues, _ newer: UnsafeRawBufferPointer?, _ older: UnsafeRawBufferPointer?
    ) throws -> ([UInt8]?, MergedValue.Source) {
        if result.isAbsent { return (nil, .absent) }
        var bytes: [UInt8]
        if result.tree < 3, result.node == 0 {
            bytes = Array(values.tree(result).bytes)
        } else if kind == .text, values.kind(result) == .string {
            if result.isComputed, case .text(let text) = values.computed[Int(result.node)] { bytes = text } else { bytes = Array(values.text(result)) }
        } else {
            bytes = try CanonicalWriter.bytes(of: result, in: values)
        }
        let source: MergedValue.Source = bytes.withUnsafeBytes { all in
            if let newer, Bytes.equal(all, newer) { return .newer }
            if let older, Bytes.equal(all, older) { return .older }
            return .computed
        }
        return (bytes, source)
    }

    private func record(_ draft: RecordDraft, _ merge: ValueMerge) throws -> ConflictRecord {
        func bytes(_ ref: ValueRef) throws -> [UInt8]? { ref.isAbsent ? nil : try CanonicalWriter.bytes(of: ref, in: merge.values) }
        let rule = merge.rules.rule(draft.inputs.state).map { rules.rules[$0] }
        return ConflictRecord(
            kind: draft.kind, path: try RecordPath.json(draft.place, merge.values), base: try bytes(draft.inputs.o), newer: try bytes(draft.inputs.x),
            older: try bytes(draft.inputs.y), result: try bytes(draft.result), rule: rule.map { ($0.prefix, $0.pattern) })
    }
}
