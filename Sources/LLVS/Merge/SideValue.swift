/// A value as it prevails at a version, or as a merge of several bases made it.
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

    /// Whether both are what one version stored, or both are absent.
    static func isSameReference(_ a: SideValue?, _ b: SideValue?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        guard let x = a.entry, let y = b.entry else { return false }
        return x.isSameReference(as: y)
    }
}

/// How the values of one id are merged.
enum HeldValueRules {
    /// By rules that cover the id.
    case rules(ValueRules)
    /// As the rules themselves are: `SchemaValueMerger`.
    case schema
    /// No rules are for it: by the app's merger.
    case whole

    var areRules: Bool { if case .rules = self { true } else { false } }
    var hasCounter: Bool { if case .rules(let rules) = self { rules.hasCounter } else { false } }
}

/// How recent the values are that merges stored: the versions that tell it, by the ids and by the merges. Kept while heads are folded,
/// since each merge of a fold is made of the one before.
final class Recencies {
    private var known: [UInt32: [ValueID: UInt32]] = [:]

    subscript(_ merge: UInt32, _ key: UnsafeRawBufferPointer) -> UInt32? {
        get { known[merge]?[ValueID(unchecked: key)] }
        set { known[merge, default: [:]][ValueID(unchecked: key)] = newValue }
    }
}

/// How recent the values are that merges stored lately, of a store: the versions that tell it, by the merges and the ids. Merges of a line
/// that goes on have their values made of the merge before.
final class KnownRecencies: Sendable {
    private struct Place: Hashable {
        let merge: VersionID, value: ValueID
    }
    private static let most = 4_096
    /// Longer ids are looked for each time.
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

/// Merges what two sides hold of one id.
struct HeldMerge {
    enum Result {
        /// As the one side has it, or the other: absent when that has none.
        case a, b
        case absent
        case computed([UInt8], recency: UInt32)
    }
    struct Outcome {
        var result: Result
        var records = ConflictRecords()
        var contested = ContestedValues()
        /// As `MergedValue` tells them.
        var places: [[UInt8]] = []
    }

    let store: Store
    let key: UnsafeRawBufferPointer
    let rules: HeldValueRules
    let control: PacedControl
    var asked: AskedMerger?
    var recencies: Recencies?
    var tellsPlaces = false

    /// - Parameter isForBase: the result is a base for another merge, which wants to know what this one chose between.
    func merge(
        _ base: SideValue?, _ a: SideValue?, _ b: SideValue?, contested: ContestedValues = ContestedValues(), isForBase: Bool = false
    ) throws -> Outcome {
        if a == nil, b == nil { return Outcome(result: .absent) }
        if SideValue.isSameReference(a, b) { return Outcome(result: .a) }
        if contested.isEmpty {
            if SideValue.isSameReference(base, a) { return Outcome(result: try isToBeTaken(b, insteadOf: a) ? .b : .a) }
            if SideValue.isSameReference(base, b) { return Outcome(result: try isToBeTaken(a, insteadOf: b) ? .a : .b) }
            // (Small documents are read in any case, and equal ones told then.)
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

    /// Merges in roles that are given, whichever value is the more recent. `.a` is the newer side's.
    /// - Parameters:
    ///   - swaps: the base is no common ancestor of the sides.
    ///   - undoes: what the newer side has not got was removed after what is undone, and stays removed.
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

    /// Takes back what an edit changed, from a value that has it: what was changed since stays.
    func undo(_ edited: SideValue?, to before: SideValue?, in value: SideValue?) throws -> Outcome {
        try merge(edited, newer: value, older: before, undoes: true)
    }

    /// What undoing an edit comes to, where that brought the value into a later form: see `ValueForms.kept`.
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

    /// The bytes of a value.
    func bytes(of value: SideValue) throws -> [UInt8] { try withBytes(value) { $0.map { Array($0) } ?? [] } }

    /// Whether both are the same bytes, or both are absent.
    func areSame(_ a: SideValue?, _ b: SideValue?) throws -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        return try SideValue.isSameReference(a, b) || haveSameBytes(a, b)
    }

    /// Whether both are the same JSON, however it is written, or the same bytes.
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
                // Rules that are not known and were replaced since: nobody merges by them any more.
                guard problem.isUnknownMerge, let newer = x ?? y else { throw problem }
                return MergedValue(bytes: Array(newer), source: x == nil ? .older : .newer, records: ConflictRecords())
            }
        }
    }

    /// A value that no rules are for. Both sides changed it, or it is there on one that changed it.
    private func whole(
        _ o: UnsafeRawBufferPointer?, _ x: UnsafeRawBufferPointer?, _ y: UnsafeRawBufferPointer?, _ check: @escaping () throws -> Void
    ) throws -> MergedValue {
        // Never looked into: what one side left alone, and equal sides, are told by bytes.
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

    /// Whether what a side changed is to be taken instead of what the other side left alone: not when it is the same bytes, stored before.
    private func isToBeTaken(_ changed: SideValue?, insteadOf other: SideValue?) throws -> Bool {
        guard let changed, let other else { return true }
        return try isNewer(changed, than: other) || !haveSameBytes(changed, other)
    }

    // MARK: Recency

    /// Whose value is the more recent. Of two that are equally recent, the larger bytes: one was made of the other.
    private func isNewer(_ a: SideValue?, _ p: UnsafeRawBufferPointer?, than b: SideValue?, _ q: UnsafeRawBufferPointer?) throws -> Bool {
        guard let a, let p else { return false }
        guard let b, let q else { return true }
        let x = try recency(a), y = try recency(b)
        if x != y { return store.lock.withRead { store.dag.isNewer(x, y) } }
        let order = Bytes.compare(p, q)
        if order != 0 { return order > 0 }
        return try !isNewer(b, than: a)
    }

    /// The same, where the bytes do not matter.
    private func isNewer(_ a: SideValue, than b: SideValue) throws -> Bool {
        let x = try recency(a), y = try recency(b)
        if x != y { return store.lock.withRead { store.dag.isNewer(x, y) } }
        guard let p = a.entry, let q = b.entry else { return a.entry != nil }
        return store.isStoredLater(p, q)
    }

    /// The version that tells how recent a value is: the one that stored it; where that is a merge, the later one of its two sides'.
    func recency(_ held: SideValue) throws -> UInt32 {
        switch held.content {
        case .computed(_, let recency): return recency
        case .stored(let entry): return try recency(storedIn: entry.version)
        }
    }

    private func recency(storedIn version: UInt32) throws -> UInt32 {
        // What no merge stored is told by its version, as most often.
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
