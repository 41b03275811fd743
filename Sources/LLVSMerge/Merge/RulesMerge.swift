/// Merges by rules: finds the rules that prevail, and decides each id that differs.
struct RulesMerge {
    private let store: Store
    private let control: PacedControl
    /// Nil if there are no rules. The merger then decides everything except values with undone saves.
    private let schema: MergeSchema?
    private let merger: (any ValueMerger)?
    private let answers = Answers()
    private let recencies: Recencies?
    private var base: ContentBase
    private let bases: [UInt32]
    /// The saves that the two sides undid without each other's knowledge. Their values are recomputed without these saves.
    private let undone: UndoneEdits?
    /// The outcome for the rules themselves, if the sides have different ones.
    private var schemaOutcome: HeldMerge.Outcome?
    /// The decided places in the merged values, by id, if the caller wants them.
    private(set) var places: [[UInt8]: [[UInt8]]] = [:]
    var tellsPlaces = false
    /// The conflict records of the decisions so far, by id.
    private var records: [(id: [UInt8], records: ConflictRecords)] = []

    /// Returns nil if there are no rules, no merger and nothing undone: the merge then proceeds without rules.
    /// - Parameters:
    ///   - recencies: the cache of the fold to which this merge belongs.
    ///   - undone: the saves that the two sides undid without each other's knowledge.
    /// - Throws: `.unsupported` if a side holds rules with an unknown number.
    init?(
        _ first: UInt32, _ second: UInt32, _ bases: [UInt32], _ arbiter: RulesArbiter, recencies: Recencies? = nil,
        undone: UndoneEdits? = nil, in store: Store, _ control: PacedControl
    ) throws {
        let given = arbiter.given
        let p = try store.rules.schemaEntry(at: first), q = try store.rules.schemaEntry(at: second)
        if given == nil, arbiter.merger == nil, undone == nil, p == nil, q == nil { return nil }
        let sides = [p, q]
        for (entry, version) in zip(sides, [first, second]) {
            if let problem = try entry.flatMap({ try store.rules.problem(ofSchema: $0) }), problem.isUnknownMerge {
                throw StoreError(
                    .unsupported,
                    "Versions \(store.versionID(first)) and \(store.versionID(second)) are not merged: in \"\(MergeSchema.valueID)\" at "
                        + "version \(store.versionID(version)), \(problem.reason). Use a newer version of the library, or give an arbiter "
                        + "that merges whole values.", valueID: ValueID(unchecked: MergeSchema.idBytes), path: problem.pointer)
            }
        }
        var base = ContentBase(store, bases: bases, control)
        let outcome = try MergeSchema.idBytes.withUnsafeBytes { key in
            if isSame(sides[0], sides[1]) { return HeldMerge.Outcome(result: .a) }
            let merge = HeldMerge(store: store, key: key, rules: .schema, control: control, recencies: recencies)
            return try merge.merge(base.value(merge).held, SideValue(sides[0]), SideValue(sides[1]))
        }
        var records = outcome.records
        let prevailing: MergeSchema?
        switch outcome.result {
        case .absent: prevailing = nil
        case .computed(let bytes, _): prevailing = try bytes.withUnsafeBytes { try store.schemaCache.schema($0) }
        case .a, .b:
            var entry = sides[1]
            if case .a = outcome.result { entry = sides[0] }
            (prevailing, records) = try store.rules.prevailingSchema(entry, sides.compactMap { $0 }, records)
            // Rules that both sides had before they diverged are not in dispute. Their conflicts were recorded when they were added.
            if try bases.contains(where: { try entry != nil && isSame(store.rules.schemaEntry(at: $0), entry) }) {
                records = outcome.records
            }
        }
        schema = given ?? prevailing
        guard schema != nil || arbiter.merger != nil || undone != nil else { return nil }
        merger = arbiter.merger
        self.store = store
        self.control = control
        self.recencies = recencies
        self.base = base
        (self.bases, self.undone) = (bases, undone)
        schemaOutcome = isSame(sides[0], sides[1]) ? nil : outcome
        if given == nil || !outcome.records.isEmpty, !records.isEmpty { self.records.append((MergeSchema.idBytes, records)) }
    }

    /// Returns whether the id is merged by rules. The rules themselves are, too. Orders to erase never are: a merge keeps them.
    func covers(_ key: UnsafeRawBufferPointer) -> Bool {
        if EraseOrder.isNamed(by: key) { return false }
        return isSchema(key) || merger != nil || schema?.covers(key) ?? false || undone?.contains(key) ?? false
    }
    /// Returns whether the same bytes on both sides are two events, as in a counter.
    func counts(_ key: UnsafeRawBufferPointer) -> Bool { !isSchema(key) && schema?.hasCounter(for: key) ?? false }

    private func isSchema(_ key: UnsafeRawBufferPointer) -> Bool { MergeSchema.idBytes.withUnsafeBytes { Bytes.equal(key, $0) } }

    /// Decides a covered id. `.a` is the first side's value.
    mutating func decide(_ difference: Difference) throws -> HeldMerge.Result {
        let key = difference.key
        if isSchema(key) { return schemaOutcome?.result ?? .a }
        let rules = schema?.rules(for: key)
        let isUndone = undone?.contains(key) ?? false
        guard rules != nil || merger != nil || isUndone else { return .a }
        let answers = answers
        let asked = merger.map { AskedMerger(merger: $0, id: Array(key)) { answers.hasSome = true } }
        var merge = HeldMerge(
            store: store, key: key, rules: rules.map { .rules($0) } ?? .whole, control: control, asked: asked,
            recencies: recencies)
        merge.tellsPlaces = tellsPlaces
        let outcome: HeldMerge.Outcome
        if isUndone, let undone {
            outcome = try undone.merged(merge, over: bases)
        } else {
            let found = try base.value(merge)
            outcome = try merge.merge(found.held, SideValue(difference.before), SideValue(difference.after), contested: found.contested)
        }
        if !outcome.records.isEmpty { records.append((Array(key), outcome.records)) }
        if !outcome.places.isEmpty { places[Array(key)] = outcome.places }
        return outcome.result
    }

    /// Adds to a list of differences the ids with undone saves that have the same value on both sides.
    /// - Parameter arena: holds their ids.
    func withUndone(_ differences: [Difference], _ first: UInt32, _ second: UInt32, in arena: ByteArena) throws -> [Difference] {
        guard let undone else { return differences }
        let known = Set(differences.map { ValueID(unchecked: $0.key) })
        var all = differences
        for id in undone.ids where !known.contains(id) {
            try control.step()
            try id.bytes.withUnsafeBytes { key in
                if isSchema(key) { return }
                let before = try store.maps.entry(key, at: first), after = try store.maps.entry(key, at: second)
                all.append(Difference(key: arena.copy(key), before: before, after: after))
            }
        }
        return all.count == differences.count ? all : all.sorted { Bytes.compare($0.key, $1.key) < 0 }
    }

    /// Returns whether the last call of `decide`, for this id, made a conflict record. Always true for the id of the rules.
    func hasRecords(of key: UnsafeRawBufferPointer) -> Bool {
        isSchema(key) || records.last?.id.withUnsafeBytes { Bytes.equal($0, key) } ?? false
    }

    /// Returns the changes of the merge version under the covered ids, in byte order of the ids.
    /// - Parameter keys: holds the ids.
    mutating func changes(_ differences: [Difference], keys: ByteArena) throws -> MergeChanges {
        var out = MergeChanges()
        out.keep(keys)
        try out.preallocate(differences.count)
        for difference in differences {
            try control.step()
            try Memory.check()
            let (key, p, q) = (difference.key, difference.before, difference.after)
            switch try decide(difference) {
            case .a: break
            case .b: out.append(key, preserving: q.map { store.versionID($0.version) })
            case .absent: if p != nil { out.append(RecordChange(kind: q == nil ? .preserveRemoval : .remove, id: key)) }
            case .computed(let data, _):
                out.keep(data)
                out.append(RecordChange(kind: p == nil ? .insert : .update, id: key, data: data.withUnsafeBytes { $0 }))
            }
        }
        return out
    }

    /// Returns the metadata of the merge version, with its rank and its conflict records.
    func marked(_ metadata: Metadata) throws -> Metadata {
        // Without rules there is no lower rank to distinguish.
        if schema == nil { return metadata }
        return try MergeMarks.marked(metadata, answers.hasSome ? .host : .rules, orderedRecords)
    }

    /// Whether the application's merger answered a question.
    private final class Answers {
        var hasSome = false
    }

    /// The conflict records so far, in byte order of the ids.
    var orderedRecords: [(id: [UInt8], records: ConflictRecords)] {
        // Records are made in order, except the records of the rules themselves.
        let isOrdered = records.indices.dropFirst().allSatisfy { Bytes.compare(records[$0 - 1].id, records[$0].id) < 0 }
        return isOrdered ? records : records.sorted { Bytes.compare($0.id, $1.id) < 0 }
    }
}
