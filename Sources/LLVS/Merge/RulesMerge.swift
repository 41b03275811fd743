/// One merge by rules: which rules prevail, and what they make of each id that differs.
struct RulesMerge {
    private let store: Store
    private let control: PacedControl
    /// Nil when there are none, and all is the merger's.
    private let schema: MergeSchema?
    private let merger: (any ValueMerger)?
    private let answers = Answers()
    private let recencies: Recencies?
    private var base: ContentBase
    private let bases: [UInt32]
    /// What is undone on both sides, of which rules are not asked what stands, but what would without it.
    private let undone: UndoneEdits?
    /// What came of the rules themselves, where they differ.
    private var schemaOutcome: HeldMerge.Outcome?
    /// Where in the merged values what was decided is, by id, for those who ask.
    private(set) var places: [[UInt8]: [[UInt8]]] = [:]
    var tellsPlaces = false
    /// Of what was decided so far, by id.
    private var records: [(id: [UInt8], records: ConflictRecords)] = []

    /// Nil when there are no rules: then everything is as without this.
    /// - Parameters:
    ///   - recencies: of the fold that it is a step of.
    ///   - undone: what is undone on both sides.
    /// - Throws: `.unsupported` when a side holds rules of a number that is not known.
    init?(
        _ first: UInt32, _ second: UInt32, _ bases: [UInt32], _ arbiter: RulesArbiter, recencies: Recencies? = nil,
        undone: UndoneEdits? = nil, in store: Store, _ control: PacedControl
    ) throws {
        let given = arbiter.given
        let p = try store.schemaEntry(at: first), q = try store.schemaEntry(at: second)
        if given == nil, arbiter.merger == nil, undone == nil, p == nil, q == nil { return nil }
        let sides = [p, q]
        for (entry, version) in zip(sides, [first, second]) {
            if let problem = try entry.flatMap({ try store.problem(ofSchema: $0) }), problem.isUnknownMerge {
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
        case .computed(let bytes, _): prevailing = try bytes.withUnsafeBytes { try store.schemas.schema($0) }
        case .a, .b:
            var entry = sides[1]
            if case .a = outcome.result { entry = sides[0] }
            (prevailing, records) = try store.prevailingSchema(entry, sides.compactMap { $0 }, records)
            // What both had before they parted is not in dispute: whoever brought it in recorded it.
            if try bases.contains(where: { try entry != nil && isSame(store.schemaEntry(at: $0), entry) }) { records = outcome.records }
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

    /// Whether the id is merged by rules; the rules themselves are, too.
    func covers(_ key: UnsafeRawBufferPointer) -> Bool {
        isSchema(key) || merger != nil || schema?.covers(key) ?? false || undone?.contains(key) ?? false
    }
    /// Whether the same bytes on both sides are two events.
    func counts(_ key: UnsafeRawBufferPointer) -> Bool { !isSchema(key) && schema?.hasCounter(for: key) ?? false }

    private func isSchema(_ key: UnsafeRawBufferPointer) -> Bool { MergeSchema.idBytes.withUnsafeBytes { Bytes.equal(key, $0) } }

    /// What becomes of a covered id: `.a` is the first side's.
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

    /// Adds to differences what is undone on both sides and is the same on both.
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

    /// Whether something was to be decided of the id that `decide` was asked about last.
    func hasRecords(of key: UnsafeRawBufferPointer) -> Bool {
        isSchema(key) || records.last?.id.withUnsafeBytes { Bytes.equal($0, key) } ?? false
    }

    /// The changes of the merge version under the covered ids, in byte order of the ids.
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

    /// What the merge version says of how it came to be.
    func marked(_ metadata: Metadata) throws -> Metadata {
        // Without rules there is nobody whose answer ranks lower.
        if schema == nil { return metadata }
        return try MergeMarks.marked(metadata, answers.hasSome ? .host : .rules, orderedRecords)
    }

    /// Whether the app's merger answered anything.
    private final class Answers {
        var hasSome = false
    }

    /// What was decided so far, in byte order of the ids.
    var orderedRecords: [(id: [UInt8], records: ConflictRecords)] {
        // They are made in order, but for those of the rules.
        let isOrdered = records.indices.dropFirst().allSatisfy { Bytes.compare(records[$0 - 1].id, records[$0].id) < 0 }
        return isOrdered ? records : records.sorted { Bytes.compare($0.id, $1.id) < 0 }
    }
}
