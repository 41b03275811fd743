/// A value that prevails at a version, or that a merge of several bases computed.
struct SideValue {
    enum Content {
        case stored(MapEntry)
        /// Bytes that no version stored.
        case computed([UInt8], recency: UInt32)
    }
    let content: Content

    init(_ content: Content) { self.content = content }
    init?(_ entry: MapEntry?) {
        guard let entry else { return nil }
        content = .stored(entry)
    }

    var entry: MapEntry? { if case .stored(let entry) = content { entry } else { nil } }

    /// Returns whether one version stored both, or both are absent.
    static func isSameReference(_ a: SideValue?, _ b: SideValue?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        guard let x = a.entry, let y = b.entry else { return false }
        return x.isSameReference(as: y)
    }
}

/// How the values of one id are merged.
enum HeldValueRules {
    /// The rules that cover the id.
    case rules(ValueRules)
    /// The id is that of the rules themselves: `SchemaValueMerger` merges it.
    case schema
    /// No rules cover the id: the application's merger decides.
    case whole

    var areRules: Bool { if case .rules = self { true } else { false } }
    var hasCounter: Bool { if case .rules(let rules) = self { rules.hasCounter } else { false } }
}

/// Caches the recency of values that merges stored, by merge and id. It is kept during a fold, since each merge of a fold builds on the
/// previous one.
final class Recencies {
    private var known: [UInt32: [ValueID: UInt32]] = [:]

    subscript(_ merge: UInt32, _ key: UnsafeRawBufferPointer) -> UInt32? {
        get { known[merge]?[ValueID(unchecked: key)] }
        set { known[merge, default: [:]][ValueID(unchecked: key)] = newValue }
    }
}

/// Caches the recency of values that recent merges of a store recorded, by merge and id. It helps on a line of successive merges, in which
/// each merge takes values from the previous one.
final class KnownRecencies: Sendable {
    private struct Place: Hashable {
        let merge: VersionID, value: ValueID
    }
    private static let most = 4_096
    /// Longer ids are not cached.
    private static let longest = 256
    private let known = Guarded<[Place: VersionID]>([:])

    func newest(_ merge: VersionID, _ key: UnsafeRawBufferPointer) -> VersionID? {
        if key.count > Self.longest { return nil }
        let place = Place(merge: merge, value: ValueID(unchecked: key))
        return known.withLock { $0[place] }
    }

    func add(_ newest: VersionID, of merge: VersionID, _ key: UnsafeRawBufferPointer) {
        if key.count > Self.longest { return }
        let place = Place(merge: merge, value: ValueID(unchecked: key))
        known.withLock { known in
            if known.count >= Self.most { known.removeAll(keepingCapacity: true) }
            known[place] = newest
        }
    }
}

/// Merges the values that two sides have of one id.
struct HeldMerge {
    enum Result {
        /// The value of one side; absent if that side has none.
        case a, b
        case absent
        case computed([UInt8], recency: UInt32)
    }
    struct Outcome {
        var result: Result
        var records = ConflictRecords()
        var contested = ContestedValues()
        /// The places in the value, as `MergedValue` reports them.
        var places: [[UInt8]] = []
    }

    let store: Store
    let key: UnsafeRawBufferPointer
    let rules: HeldValueRules
    let control: PacedControl
    var asked: AskedMerger?
    var recencies: Recencies?
    var tellsPlaces = false

    /// - Parameter isForBase: the result is a base for another merge, so the contested values are returned as well.
    func merge(
        _ base: SideValue?, _ a: SideValue?, _ b: SideValue?, contested: ContestedValues = ContestedValues(), isForBase: Bool = false
    ) throws -> Outcome {
        if a == nil, b == nil { return Outcome(result: .absent) }
        if SideValue.isSameReference(a, b) { return Outcome(result: .a) }
        if contested.isEmpty {
            if SideValue.isSameReference(base, a) { return Outcome(result: try isToBeTaken(b, insteadOf: a) ? .b : .a) }
            if SideValue.isSameReference(base, b) { return Outcome(result: try isToBeTaken(a, insteadOf: b) ? .a : .b) }
            // Small documents are parsed in any case, which finds equal ones.
            if let a, let b, !rules.hasCounter, !(rules.areRules && isSmall(a) && isSmall(b)), try haveSameBytes(a, b) {
                return Outcome(result: try isNewer(b, than: a) ? .b : .a)
            }
        }
        return try withBytes(base) { o in
            try withBytes(a) { p in
                try withBytes(b) { q in
                    let aIsNewer = try isNewer(a, p, than: b, q)
                    let merged = try merged(o, aIsNewer ? p : q, aIsNewer ? q : p, contested, isForBase)
                    let result: Result
                    switch merged.source {
                    case .absent: result = .absent
                    case .newer: result = aIsNewer ? .a : .b
                    case .older: result = aIsNewer ? .b : .a
                    case .computed:
                        let newer = aIsNewer ? a : b
                        result = .computed(merged.bytes ?? [], recency: try newer.map(recency) ?? 0)
                    }
                    return Outcome(result: result, records: merged.records, contested: merged.contested, places: merged.places)
                }
            }
        }
    }

    /// Merges with given roles, whatever the recency of the values. `.a` is the newer side's.
    /// - Parameters:
    ///   - swaps: the base is not a common ancestor of the sides.
    ///   - undoes: parts that the newer side lacks were removed after the undone edit, and remain removed.
    func merge(_ base: SideValue?, newer: SideValue?, older: SideValue?, swaps: Bool = true, undoes: Bool = false) throws -> Outcome {
        try withBytes(base) { o in
            try withBytes(newer) { x in
                try withBytes(older) { y in
                    let merged = try merged(o, x, y, ContestedValues(), false, swaps: swaps, undoes: undoes)
                    let result: Result =
                        switch merged.source {
                        case .absent: .absent
                        case .newer: .a
                        case .older: .b
                        case .computed: .computed(merged.bytes ?? [], recency: 0)
                        }
                    return Outcome(result: result, records: merged.records)
                }
            }
        }
    }

    /// Reverts an edit in a value that contains it. Later changes remain.
    func undo(_ edited: SideValue?, to before: SideValue?, in value: SideValue?) throws -> Outcome {
        try merge(edited, newer: value, older: before, undoes: true)
    }

    /// Whether the rules have forms of values.
    var hasForms: Bool { if case .rules(let rules) = rules { rules.forms != nil } else { false } }
    /// Returns the result of undoing an edit that brought the value into a later form: see `ValueForms.kept`.
    func kept(_ before: SideValue?, in edited: SideValue?) throws -> (value: SideValue, hasMembers: Bool)? {
        guard case .rules(let rules) = rules, rules.forms != nil else { return nil }
        let check = { [control] in try control.step(0, bytes: OperationControl.bytesPerCheck) }
        return try withBytes(before) { y in
            try withBytes(edited) { o in
                guard let o, let y else { return nil }
                let kept = try DocumentMerge(rules: rules, check: check).kept(y, in: o)
                return kept.map { (SideValue(.computed($0.bytes, recency: 0)), $0.hasMembers) }
            }
        }
    }

    /// Returns a value as one that is as recent as another.
    func dated(_ value: SideValue?, as other: SideValue) throws -> SideValue? {
        if value == nil || SideValue.isSameReference(value, other) { return value }
        let recency = try recency(other)
        return try withBytes(value) { bytes in bytes.map { SideValue(.computed(Array($0), recency: recency)) } }
    }

    /// Returns the bytes of a value.
    func bytes(of value: SideValue) throws -> [UInt8] { try withBytes(value) { $0.map { Array($0) } ?? [] } }

    /// Returns whether both have the same bytes, or both are absent.
    func areSame(_ a: SideValue?, _ b: SideValue?) throws -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        return try SideValue.isSameReference(a, b) || haveSameBytes(a, b)
    }

    /// Returns whether both are equal JSON documents, however they are written, or have the same bytes.
    func areSameDocument(_ a: SideValue?, _ b: SideValue?) throws -> Bool {
        if try areSame(a, b) { return true }
        return try withBytes(a) { p in
            try withBytes(b) { q in
                guard let p, let q else { return false }
                return try DocumentValues.areSame(Array(p), Array(q))
            }
        }
    }

    private func merged(
        _ o: UnsafeRawBufferPointer?, _ x: UnsafeRawBufferPointer?, _ y: UnsafeRawBufferPointer?, _ contested: ContestedValues,
        _ isForBase: Bool, swaps: Bool = false, undoes: Bool = false
    ) throws -> MergedValue {
        let check = { [control] in try control.step(0, bytes: OperationControl.bytesPerCheck) }
        switch rules {
        case .rules(let rules):
            Work.merges.count()
            let merge = DocumentMerge(rules: rules, swaps: swaps, undoes: undoes, asking: asked, check: check)
            let merged = try merge.merge(
                base: o, newer: x, older: y, contested: contested, tellsContested: isForBase, tellsPlaces: tellsPlaces)
            guard (merged.bytes?.count ?? 0) <= Limits.valueSize else {
                return try merge.picking(base: o, newer: x, older: y, newerStands: true)
            }
            return merged
        case .whole: return try whole(o, x, y, check)
        case .schema:
            do {
                return try SchemaValueMerger.merge(base: o, newer: x, older: y, check: check)
            } catch let problem as InvalidRules where isForBase {
                // The rules are unknown and were replaced later, so no merge applies them any more.
                guard problem.isUnknownMerge, let newer = x ?? y else { throw problem }
                return MergedValue(bytes: Array(newer), source: x == nil ? .older : .newer, records: ConflictRecords())
            }
        }
    }

    /// Merges a value that no rules cover. Either both sides changed it, or one side changed it and the other side does not have it.
    private func whole(
        _ o: UnsafeRawBufferPointer?, _ x: UnsafeRawBufferPointer?, _ y: UnsafeRawBufferPointer?, _ check: @escaping () throws -> Void
    ) throws -> MergedValue {
        // Values are compared by their bytes and never parsed.
        let plain = DocumentMerge(rules: .bytes, check: check), merged = try plain.merge(base: o, newer: x, older: y)
        guard !merged.records.isEmpty, let asked else { return merged }
        let answer = try asked.ask(Array("[]".utf8), o.map { Array($0) }, x.map { Array($0) }, y.map { Array($0) })
        guard case .value(let bytes) = answer else { return merged }
        func isSame(_ side: UnsafeRawBufferPointer?) -> Bool {
            guard let side, let bytes else { return false }
            return bytes.withUnsafeBytes { Bytes.equal($0, side) }
        }
        let source: MergedValue.Source = bytes == nil ? .absent : isSame(x) ? .newer : isSame(y) ? .older : .computed
        func json(_ side: UnsafeRawBufferPointer?) throws -> [UInt8]? { try side.map { try plain.json($0) } }
        let record = ConflictRecord(
            kind: .arbiter, path: Array("[]".utf8), base: try json(o), newer: try json(x), older: try json(y),
            result: try bytes.map { try $0.withUnsafeBytes { try plain.json($0) } }, rule: nil)
        return MergedValue(bytes: bytes, source: source, records: try ConflictRecords(record))
    }

    // MARK: Bytes

    private func withBytes<R>(_ held: SideValue?, _ body: (UnsafeRawBufferPointer?) throws -> R) throws -> R {
        switch held?.content {
        case nil: return try body(nil)
        case .computed(let bytes, _)?: return try bytes.withUnsafeBytes { try body($0) }
        case .stored(let entry)?:
            let stored = store.versionID(entry.version)
            return try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: stored) { try body($0) }
        }
    }

    private func isSmall(_ held: SideValue) -> Bool {
        guard let size = held.entry?.size else { return false }
        return size != MapEntry.unknownSize && Int(size) <= RecordTable.digestThreshold
    }

    private func haveSameBytes(_ a: SideValue, _ b: SideValue) throws -> Bool {
        if let x = a.entry, let y = b.entry { return try store.haveSameBytes(x, y, key) }
        return try withBytes(a) { p in try withBytes(b) { q in p.flatMap { p in q.map { Bytes.equal(p, $0) } } ?? false } }
    }

    /// Returns whether the changed value replaces the unchanged one. It does not if it has the same bytes and is not newer.
    func isToBeTaken(_ changed: SideValue?, insteadOf other: SideValue?) throws -> Bool {
        guard let changed, let other else { return true }
        return try isNewer(changed, than: other) || !haveSameBytes(changed, other)
    }

    // MARK: Recency

    /// Returns whether a value is more recent than another. If both are equally recent, one was derived from the other, and the larger
    /// bytes win.
    private func isNewer(_ a: SideValue?, _ p: UnsafeRawBufferPointer?, than b: SideValue?, _ q: UnsafeRawBufferPointer?) throws -> Bool {
        guard let a, let p else { return false }
        guard let b, let q else { return true }
        let x = try recency(a), y = try recency(b)
        if x != y { return store.lock.withRead { store.dag.isNewer(x, y) } }
        let order = Bytes.compare(p, q)
        if order != 0 { return order > 0 }
        return try !isNewer(b, than: a)
    }

    /// Compares recency without regard to the bytes.
    private func isNewer(_ a: SideValue, than b: SideValue) throws -> Bool {
        let x = try recency(a), y = try recency(b)
        if x != y { return store.lock.withRead { store.dag.isNewer(x, y) } }
        guard let p = a.entry, let q = b.entry else { return a.entry != nil }
        return store.isStoredLater(p, q)
    }

    /// Returns the version that determines the recency of a value: the version that stored it. If that is a merge, the later one of its two
    /// sides' versions.
    func recency(_ held: SideValue) throws -> UInt32 {
        switch held.content {
        case .computed(_, let recency): return recency
        case .stored(let entry): return try recency(storedIn: entry.version)
        }
    }

    private func recency(storedIn version: UInt32) throws -> UInt32 {
        // The common case: the version is no merge.
        if store.lock.withRead({ store.dag.rows[Int(version)].second == History.none }) { return version }
        if let known = knownRecency(of: version) { return known }
        var newest: UInt32?, open = [version], seen: Set<UInt32> = [version]
        func meet(_ leaf: UInt32) {
            if let found = newest, store.lock.withRead({ store.dag.isNewer(found, leaf) }) { return }
            newest = leaf
        }
        while let at = open.popLast() {
            try control.step(0)
            Work.comparisons.count()
            let sides = store.lock.withRead { () -> [UInt32] in
                let row = store.dag.rows[Int(at)]
                return row.second == History.none ? [] : [row.first, row.second]
            }
            if at != version, !sides.isEmpty, let known = knownRecency(of: at) {
                meet(known)
                continue
            }
            let entries = try sides.compactMap { try store.maps.entry(key, at: $0) }
            if entries.isEmpty { meet(at) }
            for entry in entries where seen.insert(entry.version).inserted { open.append(entry.version) }
        }
        recencies?[version, key] = newest ?? version
        knownRecencies.add(store.versionID(newest ?? version), of: store.versionID(version), key)
        return newest ?? version
    }

    private var knownRecencies: KnownRecencies { store.attachments.object(KnownRecencies.self) { KnownRecencies() } }

    private func knownRecency(of merge: UInt32) -> UInt32? {
        if let known = recencies?[merge, key] { return known }
        guard let known = knownRecencies.newest(store.versionID(merge), key) else { return nil }
        return store.lock.withRead { store.dag.ordinalIncludingStaged(of: known) }
    }
}
