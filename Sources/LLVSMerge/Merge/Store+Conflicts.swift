/// A decision that a merge made, or would make, because both sides changed the same thing.
public struct Conflict: Sendable, Equatable {
    /// The value.
    public var id: ValueID
    /// The merge version that decided it; nil if there is none.
    public var version: VersionID?
    /// The sides, and the result.
    public var record: ConflictRecord
    /// Whether the value has rules; otherwise it was decided as a whole.
    public var isByRules = true
    /// The place in the merged value, as in `MergedValue`; nil if it is unknown.
    var place: [UInt8]?
    /// Whether it concerns a part of a text: an overlap, or contested lines.
    var isPart = false

    public static func == (a: Conflict, b: Conflict) -> Bool {
        (a.id, a.version, a.record) == (b.id, b.version, b.record) && a.isByRules == b.isByRules
    }

    /// Creates a conflict for reports; that stores and decides nothing.
    public init(id: ValueID, version: VersionID?, record: ConflictRecord, isByRules: Bool = true) {
        self.id = id; self.version = version; self.record = record; self.isByRules = isByRules
        isPart = record.isOfText
    }
}

/// Conflicts of two versions, and of merges, found by merging again: a merge is a function of its two versions and of their history.
extension Store {
    /// Conflicts, in byte order of the ids, and for each id in the order of the merge.
    public struct Conflicts: Sendable {
        /// All conflicts.
        public var items: [Conflict] = []
        /// SHA-256, in hexadecimal, of the conflicts that rules decided, as merge versions record it; nil if there are none.
        public var digest: String?
        /// For an explained merge: whether it recorded these conflicts. If not, it was made by other rules than those of the store, or by
        /// an arbiter of the host.
        public var areRecorded = true
    }

    /// How to search for conflicts.
    public struct ConflictQuery: Sendable {
        /// The arbiter. If it has rules, they count instead of the store's.
        public var arbiter: RulesArbiter
        /// Nil, or the only value to search.
        public var only: ValueID?
        /// Creates a query; by default for all values, by the rules of the store.
        public init(arbiter: RulesArbiter = RulesArbiter(), only: ValueID? = nil) { self.arbiter = arbiter; self.only = only }
    }

    /// Returns the conflicts that a merge of two versions by rules would have. Stores nothing.
    ///
    /// There are none if one is an ancestor of the other, if both have equal states, and if both have only merges since their common
    /// ancestors: no arbiter decides then.
    /// - Throws: as `merge`.
    /// - Complexity: that of the merge; values that both sides changed are read.
    public func conflicts(
        between a: VersionID, and b: VersionID, _ query: ConflictQuery = ConflictQuery(), control: OperationControl = OperationControl()
    ) throws -> Conflicts {
        try ConflictFinding(store: self).conflicts(between: a, and: b, query, control: control)
    }

    /// Returns the conflicts of a merge version: merges its predecessors again, and compares the result with the digest that the version
    /// carries. A version that is no merge has none.
    /// - Throws: `.unknownVersion`, and as `merge`.
    /// - Complexity: that of the merge.
    public func explain(
        _ version: VersionID, _ query: ConflictQuery = ConflictQuery(), control: OperationControl = OperationControl()
    ) throws -> Conflicts {
        try ConflictFinding(store: self).explain(version, query, control: control)
    }
}

/// Finds the conflicts of a merge, by preparing it again.
struct ConflictFinding {
    let store: Store

    func conflicts(
        between a: VersionID, and b: VersionID, _ query: Store.ConflictQuery = Store.ConflictQuery(),
        control: OperationControl = OperationControl()
    ) throws -> Store.Conflicts {
        try store.checkOpen()
        let paced = control.paced(.reading, doing: "Finding conflicts between versions \(a) and \(b) of \(store.description)")
        try paced.look()
        let x = try store.requireOrdinal(a), y = try store.requireOrdinal(b)
        if try x == y || store.isVirtual(x) || store.isVirtual(y) || store.walk(AncestorSearch(x, of: y), paced.look)
            || store.walk(AncestorSearch(y, of: x), paced.look)
        {
            return Store.Conflicts()
        }
        let isNewer = store.lock.withRead { store.dag.isNewer(x, y) }
        return try found(isNewer ? x : y, isNewer ? y : x, query, paced).conflicts
    }

    func explain(
        _ version: VersionID, _ query: Store.ConflictQuery = Store.ConflictQuery(), control: OperationControl = OperationControl()
    ) throws -> Store.Conflicts {
        try store.checkOpen()
        let paced = control.paced(.reading, doing: "Explaining version \(version) of \(store.description)")
        try paced.look()
        return try explained(store.requireOrdinal(version), query, paced)
    }

    /// - Parameter among: the ids to merge again: all that the merge version names as having conflicts.
    func explained(_ ordinal: UInt32, _ query: Store.ConflictQuery, among: Set<[UInt8]>? = nil, _ control: PacedControl) throws
        -> Store.Conflicts
    {
        let sides = store.lock.withRead { store.dag.predecessors(ordinal) }
        guard sides.count == 2, let made = try store.version(store.versionID(ordinal)) else { return Store.Conflicts() }
        // The newer side is the first, whichever device made the merge.
        let first = store.lock.withRead { store.dag.isNewer(sides[0], sides[1]) } ? 0 : 1
        var (conflicts, marks, others) = try found(sides[first], sides[1 - first], query, among: among, control, standing: ordinal)
        let keys = [MergeMarks.arbiterKey, MergeMarks.conflictsKey]
        if query.only == nil { conflicts.areRecorded = keys.allSatisfy { made.metadata[$0] == marks[$0] } }
        for i in conflicts.items.indices { conflicts.items[i].version = made.id }
        // The merge has other results than the rules: report its values.
        if query.arbiter.given == nil, query.arbiter.merger == nil, !others.isEmpty {
            for i in conflicts.items.indices where others.contains(conflicts.items[i].id) { conflicts.items[i].place = nil }
            try OpenConflicts(store: store).tellStanding(&conflicts.items, of: others, at: ordinal, control)
        }
        return conflicts
    }

    /// - Parameter standing: the existing merge; its values are the results of ids that no rules decided.
    /// - Returns: the conflicts, their record in the metadata of a merge version, and the values with conflicts for which the existing
    ///   merge
    ///   has another result.
    private func found(
        _ first: UInt32, _ second: UInt32, _ query: Store.ConflictQuery, among: Set<[UInt8]>? = nil, _ control: PacedControl,
        standing: UInt32? = nil
    ) throws -> (conflicts: Store.Conflicts, marks: Metadata, others: Set<ValueID>) {
        let bases = try store.walk(CommonAncestors([first], [second]), control.look)
        let areSettled = try !bases.isEmpty && store.walk(MergesOnly(first, second), control.look)
        if try areSettled || store.equalStates.haveEqualStates(first, second, given: query.arbiter.given, control) {
            return (Store.Conflicts(), try MergeMarks.settled(store.rank(of: first), store.rank(of: second)), [])
        }
        let undone = try UndoneEdits.apart(first, second, over: bases, in: store, control)
        var rules = try RulesMerge(first, second, bases, query.arbiter, recencies: Recencies(), undone: undone, in: store, control)
        let forks = try MergeForks(first, second, bases, areShown: false, rules: rules, in: store, control)
        if forks == nil, undone == nil { return (Store.Conflicts(), Metadata(), []) }
        let arena = forks?.arena ?? ByteArena()
        let covered = try rules?.withUndone(forks?.covered ?? [], first, second, in: arena) ?? []
        defer { withExtendedLifetime(arena) {} }
        var others: Set<ValueID> = []
        var all: [(id: [UInt8], records: ConflictRecords)] = [], conflicts = Store.Conflicts(), marks = Metadata()
        if rules != nil {
            rules?.tellsPlaces = standing != nil
            for difference in covered {
                try control.step()
                if let only = query.only, !only.bytes.withUnsafeBytes({ Bytes.equal($0, difference.key) }) { continue }
                if let among, !among.contains(Array(difference.key)) { continue }
                let result = try rules?.decide(difference)
                guard let standing, let result, rules?.hasRecords(of: difference.key) == true else { continue }
                if try !holds(result, of: difference, at: standing) { others.insert(ValueID(unchecked: Array(difference.key))) }
            }
            if let rules {
                marks = try rules.marked(Metadata())
                all = rules.orderedRecords
                conflicts.digest = all.isEmpty ? nil : MergeMarks.hash(all)
            }
        }
        let decided = Set(all.map { ValueID(unchecked: $0.id) })
        for fork in forks?.forks ?? [] where fork.isConflicting && among == nil {
            try control.step()
            if let only = query.only, !only.bytes.withUnsafeBytes({ Bytes.equal($0, fork.key) }) { continue }
            all.append((Array(fork.key), try ConflictRecords(wholeRecord(fork, standing: standing))))
        }
        all.sort { Bytes.compare($0.id, $1.id) < 0 }
        conflicts.items = all.flatMap { entry in
            let id = ValueID(unchecked: entry.id)
            let places = rules?.places[entry.id] ?? []
            return entry.records.enumerated().map { i, record in
                var conflict = Conflict(id: id, version: nil, record: record, isByRules: decided.contains(id))
                if places.indices.contains(i) { conflict.place = places[i] }
                conflict.isPart = record.isOfText || conflict.place.map(DocumentPlace.isPart) ?? false
                return conflict
            }
        }
        if let only = query.only { conflicts.items.removeAll { $0.id != only } }
        return (conflicts, marks, others)
    }

    /// Returns whether a merge version has the result of the rules for an id.
    private func holds(_ result: HeldMerge.Result, of difference: Difference, at merge: UInt32) throws -> Bool {
        let there = try store.maps.entry(difference.key, at: merge)
        switch result {
        case .a: return there?.version == difference.before?.version
        case .b: return there?.version == difference.after?.version
        case .absent: return there == nil
        case .computed(let data, _):
            guard let there, there.version == merge else { return false }
            return try store.records.hasBytes(data, store.place(of: merge), there, id: difference.key, stored: store.versionID(merge))
        }
    }

    /// Returns the record of an id that is decided as a whole.
    private func wholeRecord(_ fork: MergeFork, standing: UInt32?) throws -> ConflictRecord {
        let firstIsNewer =
            switch (fork.first, fork.second) {
            case (let p?, let q?): store.isStoredLater(p, q)
            default: fork.first != nil
            }
        let merge = DocumentMerge(), key = fork.key
        func json(_ entry: MapEntry?) throws -> [UInt8]? {
            try entry.map { entry in
                try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) {
                    try merge.json($0)
                }
            }
        }
        let x = try json(firstIsNewer ? fork.first : fork.second), y = try json(firstIsNewer ? fork.second : fork.first)
        let result = try standing.map { try json(store.maps.entry(key, at: $0)) } ?? x
        return ConflictRecord(
            kind: x == nil || y == nil ? .deleteEdit : .pick, path: Array("[]".utf8), base: try json(fork.ancestor), newer: x, older: y,
            result: result, rule: nil)
    }
}
