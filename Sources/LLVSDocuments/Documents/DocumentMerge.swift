/// The result of merging a value.
public struct MergedValue: Sendable {
    /// The side whose bytes the result has.
    public enum Source: UInt32, Sendable {
        /// There is no value: it was removed.
        case absent = 0
        /// The newer side's, byte for byte.
        case newer
        /// The older side's, byte for byte.
        case older
        /// Neither side has these bytes: the merge computed them from both.
        case computed
    }
    /// The result, or nil if the value was removed.
    public package(set) var bytes: [UInt8]?
    /// The side whose bytes the result has: the newer one if both are equal.
    public let source: Source
    /// The decisions of the merge about parts that both sides had changed.
    public let records: ConflictRecords
    /// The values between which the merge chose, if it was asked to report them.
    public var contested = ContestedValues()
    /// The place of each record in the result, if the merge was asked to report them. Written as paths, with elements as `{"at": n}`.
    package var places: [[UInt8]] = []
    package init(
        bytes: [UInt8]? = nil, source: Source, records: ConflictRecords, contested: ContestedValues = ContestedValues(),
        places: [[UInt8]] = []
    ) {
        self.bytes = bytes; self.source = source; self.records = records; self.contested = contested; self.places = places
    }

    /// Returns the SHA-256 of the records as canonical JSON, in hexadecimal.
    public func digest(id: [UInt8]) -> String { records.digest(id: id) }
}

/// Merges two values with a common base. The same inputs give the same bytes, in every process and on every machine.
///
/// Time and memory grow with the inputs: O(k log k) for objects of k members, O(n log n) for lists; for texts a count of steps limits
/// them. Every input gives a result. A thread with a stack of 64 KiB suffices.
public struct DocumentMerge {
    private let rules: ValueRules
    private let saves: Bool
    private let swaps: Bool, undoes: Bool
    private let work: DocumentControl
    private let asked: AskedMerger?

    /// - Parameters:
    ///   - schema: the rules; nil for `auto` everywhere.
    ///   - id: the value's id, which selects the rules. A value that no prefix matches is merged by `auto`.
    ///   - check: called about once in a million steps. If it throws, the merge ends with that error.
    public init(schema: MergeSchema? = nil, id: [UInt8] = [], check: (() throws -> Void)? = nil) {
        self.init(rules: schema.flatMap { schema in id.withUnsafeBytes { schema.rules(for: $0) } } ?? ValueRules(), check: check)
    }

    /// - Parameter swaps: whether the merge undoes or picks: then the base is not a common ancestor of the sides. If both sides have a
    ///   value that the base lacks, it may come from the same edit.
    /// - Parameter undoes: whether the merge undoes: then a value of the base that the newer side lacks was removed after the undone
    ///   edit, and stays removed.
    package init(
        rules: ValueRules, saves: Bool = false, swaps: Bool = false, undoes: Bool = false, asking: AskedMerger? = nil,
        check: (() throws -> Void)? = nil
    ) {
        self.rules = rules
        self.saves = saves
        self.swaps = swaps
        self.undoes = undoes
        asked = asking
        work = DocumentControl(check)
    }

    /// The same rules for a value that an application saves: `merge(decoded, new, read)` retains what the application does not know, and
    /// removes what it removed.
    public var saving: DocumentMerge { DocumentMerge(rules: rules, saves: true, work: work) }

    private init(rules: ValueRules, saves: Bool, work: DocumentControl) {
        self.rules = rules
        self.saves = saves
        (swaps, undoes) = (false, false)
        self.work = work
        asked = nil
    }

    /// Runs a single merge that checks `control` now and then.
    /// - Parameter isSaving: whether to merge by `saving`.
    /// - Throws: the errors of the control, and `.outOfMemory`.
    package static func run(
        _ schema: MergeSchema?, id: [UInt8], isSaving: Bool, base: UnsafeRawBufferPointer?, newer: UnsafeRawBufferPointer?,
        older: UnsafeRawBufferPointer?, _ control: OperationControl
    ) throws -> MergedValue {
        let total = [base, newer, older].reduce(0) { $0 + ($1?.count ?? 0) }
        let check = { try control.check(.reading, 0, of: total, doing: "Merging a value") }
        try check()
        let merge = DocumentMerge(schema: schema, id: id, check: check)
        return try (isSaving ? merge.saving : merge).merge(base: base, newer: newer, older: older)
    }

    /// The number of the rules' tree. It follows the trees of the three inputs, and the trees of answers follow it.
    private static let rulesTree: UInt32 = 3

    /// Merges the two sides of a base. A nil value is absent.
    /// - Parameters:
    ///   - base: the common base of both sides.
    ///   - newer: the newer side's value.
    ///   - older: the older side's value.
    ///   - contested: the values between which merges chose when they computed the base. If the sides hold two of them, the result has a
    ///     record.
    ///   - tellsContested: whether the result has the values between which this merge chose. For merges that compute a base.
    ///   - tellsPlaces: whether the result has the places of its records.
    /// - Throws: the errors of `check`, and `.outOfMemory`.
    public func merge(
        base: UnsafeRawBufferPointer?, newer: UnsafeRawBufferPointer?, older: UnsafeRawBufferPointer?,
        contested: ContestedValues = ContestedValues(), tellsContested: Bool = false, tellsPlaces: Bool = false
    ) throws -> MergedValue {
        if contested.isEmpty, let unchanged = unchanged(base, newer, older) { return unchanged }
        let kind = rules.top?.kind ?? .auto
        let total = [base, newer, older].reduce(0) { $0 + ($1?.count ?? 0) }
        try Memory.expect(total, "Merging a value")
        let known = contested.isEmpty ? nil : unchanged(base, newer, older)
        // Most of the sides' content is in the base, too.
        let before = try base.map { try read($0, as: kind) }
        let sides = try [newer, older].map { try $0.map { try read($0, as: kind, like: before?.tree) } }
        let (trees, olderIsLater) = try inForms([before] + sides, isKnown: known != nil)
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        let all =
            try trees.map { try $0 ?? JSONText(whole: empty, as: .raw) }
            + (rules.text.map { [$0] } ?? (asked == nil ? [] : [JSONText(whole: empty, as: .raw)]))
        let values = DocumentValues(all, work: work)
        func ref(_ i: Int) -> ValueRef { trees[i] == nil ? .absent : ValueRef(tree: UInt32(truncatingIfNeeded: i), node: 0) }
        let merge = DocumentMergeRun(
            values, RuleStates(rules), rulesTree: Self.rulesTree, saves: saves, swaps: swaps, undoes: undoes,
            tellsPlaces: tellsPlaces || tellsContested, budget: ConflictRecordBudget(inputs: total), contested: contested, asking: asked)
        let inputs = olderIsLater ? [ref(0), ref(2), ref(1)] : [ref(0), ref(1), ref(2)]
        let result = try known == nil ? merge.run(inputs[0], inputs[1], inputs[2]) : .absent
        let (bytes, source): ([UInt8]?, MergedValue.Source)
        do {
            (bytes, source) =
                try known.map { ($0.bytes, $0.source) }
                ?? write(result, kind, values, newer, older, limit: ConflictRecordBudget.result(of: total))
        } catch is CanonicalWriter.TooMuch {
            return try picking(base: base, newer: newer, older: older, newerStands: newer != nil, kind: .limit)
        }
        if known == nil, result.isComputed, kind != .text, let bytes, try !canBeMergedAgain(bytes) {
            return try picking(base: base, newer: newer, older: older, newerStands: newer != nil, kind: .limit)
        }
        do {
            var budget = ConflictRecordBudget(inputs: total)
            let contestedDrafts = tellsContested ? merge.records : Pieces<RecordDraft>()
            var outcomes = tellsPlaces ? try places(of: merge) : []
            let records = try told(merge, &budget)
            if !contested.isEmpty {
                for (record, place) in try contestedRecords(contested, inputs, bytes, kind, merge, &budget) {
                    try records.append(record)
                    if tellsPlaces { outcomes.append(place ?? record.path) }
                }
            }
            var merged = MergedValue(bytes: bytes, source: source, records: ConflictRecords(records))
            merged.places = outcomes
            if !contestedDrafts.isEmpty {
                merged.contested = try withMade(bytes, kind) { try ContestedValues(merge, contestedDrafts, made: $0) }
            }
            return merged
        } catch is ConflictRecordBudget.Full {
            // There are too many records, so one record covers the whole value.
            func json(_ text: JSONText?) throws -> [UInt8]? { try text.map { try self.json($0) } }
            let stands = try bytes.map { try $0.withUnsafeBytes { try self.json($0) } }
            let record = ConflictRecord(
                kind: .limit, path: Array("[]".utf8), base: try json(before), newer: try json(sides[0]), older: try json(sides[1]),
                result: stands, rule: nil)
            return MergedValue(bytes: bytes, source: source, records: try ConflictRecords(record))
        }
    }

    /// Returns whether a computed value is within the limits of values that are merged inside. (It is no deeper than the sides.)
    private func canBeMergedAgain(_ bytes: [UInt8]) throws -> Bool {
        if bytes.count > JSONTreeParser.sizeLimit { return false }
        guard rules.text != nil || asked != nil || rules.forms != nil else { return true }
        return try bytes.withUnsafeBytes { try JSONTreeParser.parse($0, work: work) != nil }
    }

    /// Returns the values in the latest of their forms, and whether the older side counts as newer since its form is later. If the bytes
    /// alone decide, the values are not converted.
    private func inForms(_ texts: [JSONText?], isKnown: Bool) throws -> (texts: [JSONText?], olderIsLater: Bool) {
        guard let forms = rules.forms, !isKnown else { return (texts, false) }
        let lifted = try forms.lifted(texts, work: work)
        return (lifted.texts, lifted.olderIsLater && !saves && !swaps)
    }

    /// Returns the value to undo to if the undone edit brought the value into a later form: see `ValueForms.kept`.
    package func kept(
        _ before: UnsafeRawBufferPointer, in edited: UnsafeRawBufferPointer
    ) throws -> (bytes: [UInt8], hasMembers: Bool)? {
        guard let forms = rules.forms else { return nil }
        return try forms.kept(parsed(before), in: parsed(edited), rules, work: work).map { (Array($0.text.tree.bytes), $0.hasMembers) }
    }

    /// Returns a whole value as records show it.
    package func json(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] { try json(parsed(bytes)) }

    private func json(_ text: JSONText) throws -> [UInt8] {
        try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: 0), in: DocumentValues([text], work: work))
    }

    /// Parses a value as its top rule demands.
    package func parsed(_ bytes: UnsafeRawBufferPointer) throws -> JSONText { try read(bytes, as: rules.top?.kind ?? .auto) }

    /// Picks one side as a whole, with a record.
    package func picking(
        base: UnsafeRawBufferPointer?, newer: UnsafeRawBufferPointer?, older: UnsafeRawBufferPointer?, newerStands: Bool,
        kind: ConflictRecord.Kind = .pick
    ) throws -> MergedValue {
        func json(_ bytes: UnsafeRawBufferPointer?) throws -> [UInt8]? { try bytes.map { try self.json($0) } }
        let (x, y) = (try json(newer), try json(older))
        let record = ConflictRecord(
            kind: kind, path: Array("[]".utf8), base: try json(base), newer: x, older: y, result: newerStands ? x : y, rule: nil)
        return MergedValue(
            bytes: (newerStands ? newer : older).map { Array($0) }, source: newerStands ? .newer : .older,
            records: try ConflictRecords(record))
    }

    /// Calls with the parsed result of a merge, or with nil if the merge removed the value.
    private func withMade<R>(_ result: [UInt8]?, _ kind: SchemaRule.Kind, _ body: (DocumentValues?) throws -> R) throws -> R {
        guard let result else { return try body(nil) }
        return try result.withUnsafeBytes { try body(DocumentValues([read($0, as: kind)], work: work)) }
    }

    /// Returns records, in the order of their paths, of the places where both sides hold different values that were contested before.
    /// Also returns their places in the result, if they are in it.
    private func contestedRecords(
        _ contested: ContestedValues, _ inputs: [ValueRef], _ result: [UInt8]?, _ kind: SchemaRule.Kind, _ merge: DocumentMergeRun,
        _ budget: inout ConflictRecordBudget
    ) throws -> [(record: ConflictRecord, place: [UInt8]?)] {
        try withMade(result, kind) { made in
            let sides = ContestedSides(merge.values, merge.rules, inputs, made: made)
            var records: [(record: ConflictRecord, place: [UInt8]?)] = []
            for (place, digests) in contested.ordered {
                func isContested(_ value: ValueRef) throws -> Bool {
                    try digests.contains(ContestedValues.digest(value, in: merge.values))
                }
                guard let found = try sides.find(place, isContested: isContested) else { continue }
                let both = try [found.newer, found.older].map { try ContestedValues.digest($0, in: merge.values) }
                guard both[0] != both[1], digests.isSuperset(of: both) else { continue }
                func json(_ ref: ValueRef, _ values: DocumentValues?) throws -> [UInt8]? {
                    guard let values, !ref.isAbsent else { return nil }
                    return try CanonicalWriter.bytes(of: ref, in: values)
                }
                let rule = merge.rules.rule(found.state).map { rules.rules[$0] }.flatMap { $0.isBuiltIn ? nil : $0 }
                let record = ConflictRecord(
                    kind: .contested, path: found.path, base: try json(found.base, merge.values),
                    newer: try json(found.newer, merge.values), older: try json(found.older, merge.values),
                    result: try json(found.result, found.resultValues), rule: rule.map { ($0.prefix, $0.pattern) })
                try budget.take(record)
                records.append((record, found.place))
            }
            return records.sorted { a, b in
                let order = Bytes.compare(a.record.path, b.record.path)
                return order != 0 ? order < 0 : Bytes.compare(a.record.json(id: []), b.record.json(id: [])) < 0
            }
        }
    }

    /// Returns the result if the bytes alone decide.
    private func unchanged(
        _ base: UnsafeRawBufferPointer?, _ newer: UnsafeRawBufferPointer?, _ older: UnsafeRawBufferPointer?
    ) -> MergedValue? {
        func same(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> Bool {
            guard let a, let b else { return a == nil && b == nil }
            return Bytes.equal(a, b)
        }
        if newer == nil, older == nil { return MergedValue(bytes: nil, source: .absent, records: ConflictRecords()) }
        var taken: (UnsafeRawBufferPointer?, MergedValue.Source)?
        if same(newer, base) { taken = (older, .older) } else if same(older, base) { taken = (newer, .newer) }
        if taken == nil, same(newer, older), !rules.hasCounter { taken = (newer, .newer) }
        guard let taken else { return nil }
        guard let bytes = taken.0 else { return MergedValue(bytes: nil, source: .absent, records: ConflictRecords()) }
        return MergedValue(bytes: Array(bytes), source: same(bytes, newer) ? .newer : taken.1, records: ConflictRecords())
    }

    private func read(_ bytes: UnsafeRawBufferPointer, as kind: SchemaRule.Kind, like other: JSONTree? = nil) throws -> JSONText {
        switch kind {
        case .bytes: break
        case .text:
            if Bytes.isValidUTF8(bytes) { return try JSONText(whole: bytes, as: .string) }
        default:
            if let text = try JSONTreeParser.parse(bytes, like: other, work: work) {
                let top = text.tree.kind(0)
                if top >= .array || (top == .number && kind == .counter) { return text }
            }
        }
        return try JSONText(whole: bytes, as: .raw)
    }

    private func write(
        _ result: ValueRef, _ kind: SchemaRule.Kind, _ values: DocumentValues, _ newer: UnsafeRawBufferPointer?,
        _ older: UnsafeRawBufferPointer?, limit: Int
    ) throws -> ([UInt8]?, MergedValue.Source) {
        if result.isAbsent { return (nil, .absent) }
        var bytes: [UInt8]
        if !result.isComputed, result.tree != Self.rulesTree, result.node == 0 {
            bytes = Array(values.tree(result).bytes)
        } else if kind == .text, values.kind(result) == .string {
            bytes = []
            if !result.isComputed {
                bytes = Array(values.text(result))
            } else if case .text(let text) = values.computed[Int(result.node)] {
                bytes = text
            }
        } else {
            try Memory.expect((newer?.count ?? 0) + (older?.count ?? 0), "Writing a merged value")
            let most = max(newer?.count ?? 0, older?.count ?? 0)
            bytes = try CanonicalWriter.bytes(of: result, in: values, limit: limit, likely: most + most / 32)
        }
        let source: MergedValue.Source = bytes.withUnsafeBytes { all in
            if let newer, Bytes.equal(all, newer) { return .newer }
            if let older, Bytes.equal(all, older) { return .older }
            return .computed
        }
        return (bytes, source)
    }

    /// Returns the places of the records in the result.
    private func places(of merge: DocumentMergeRun) throws -> [[UInt8]] {
        var writer = RecordPath.Writer(merge.places, merge.values, inResult: true), places: [[UInt8]] = []
        for i in 0..<merge.records.count {
            var path: [UInt8] = []
            _ = try writer.write(merge.records[i].place) { path = Array($0) }
            if let start = merge.starts[i] {
                path.removeLast()
                path += Array("\(path.count > 1 ? "," : ""){\"from\":\(start)}]".utf8)
            }
            places.append(path)
        }
        return places
    }

    /// Returns the records of the merge with all their parts.
    private func told(
        _ merge: DocumentMergeRun, _ budget: inout ConflictRecordBudget
    ) throws -> ConflictRecords.Room {
        let out = ConflictRecords.Room()
        if merge.hasTooMany { throw ConflictRecordBudget.Full() }
        var drafts = Pieces<RecordDraft>()
        swap(&drafts, &merge.records)
        if drafts.isEmpty { return out }
        try out.reserve(drafts.count)
        var writer = CanonicalWriter(merge.values), paths = RecordPath.Writer(merge.places, merge.values)
        for i in 0..<drafts.count {
            drafts.forget(before: i)
            let draft = drafts[i]
            if i & (DocumentValues.batch / 4 - 1) == 0, drafts.count >= DocumentValues.many {
                merge.values.touch(4 * (drafts.count - i)) { drafts[i + $0 >> 2].part($0 & 3) }
            }
            let inputs = draft.inputs
            var size = try paths.write(draft.place) { try out.begin(draft.kind, path: $0) } + ConflictRecord.ownSize
            func part(_ ref: ValueRef, _ part: ConflictRecords.Room.Part) throws -> Int {
                guard !ref.isAbsent else { return 0 }
                if !ref.isComputed {
                    let tree = merge.values.tree(ref)
                    if let place = tree.written(ref.node), place.count < CanonicalWriter.large {
                        try out.add(part, UnsafeRawBufferPointer(rebasing: tree.bytes[place]))
                        return place.count
                    }
                }
                writer.clear()
                try writer.write(ref)
                let count = writer.bytes.count
                try writer.hand { try out.add(part, taking: &$0) }
                return count
            }
            size += try part(inputs.o, .base)
            let newer = try part(inputs.x, .newer), older = try part(inputs.y, .older)
            size += newer + older
            // The result is usually the value of one side. Its bytes are then stored once.
            if draft.result == inputs.x {
                out.addResult(of: 1)
                size += newer
            } else if draft.result == inputs.y {
                out.addResult(of: 2)
                size += older
            } else {
                size += try part(draft.result, .result)
            }
            if let number = merge.rules.rule(Int(inputs.state)), !rules.rules[number].isBuiltIn {
                let rule = rules.rules[number]
                out.add((rule.prefix, rule.pattern), number: number)
                size += rule.prefix.count + rule.pattern.count
            }
            try budget.take(size)
        }
        return out
    }
}
