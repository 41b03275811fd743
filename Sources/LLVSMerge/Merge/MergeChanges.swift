/// The changes of a merge version, in byte order of the ids, and the owners of their bytes.
struct MergeChanges {
    private(set) var changes: [RecordChange] = []
    /// For each change, the place of the bytes that it preserves, if that is known.
    private(set) var located: [MapEntry?] = []
    /// SHA-256 of the values that are in the record, one after another, once the id is known.
    var digests: [UInt8] = []
    /// Retains keys and bytes.
    private var owners: [Any] = []

    var traits: History.Traits { changes.contains { $0.kind == .preserve } ? [.changeKindsVerified, .preserves] : .changeKindsVerified }

    /// Reserves room for `count` more changes.
    /// - Throws: `.outOfMemory`.
    mutating func preallocate(_ count: Int) throws {
        try Memory.grow(&changes, by: count, "A merge of \(count) changes")
        try Memory.grow(&located, by: count, "A merge of \(count) changes")
    }

    init() {}

    /// Joins the changes of both, which have no id in common.
    init(_ a: consuming MergeChanges, _ b: consuming MergeChanges) throws {
        if a.changes.isEmpty || b.changes.isEmpty {
            let others = a.changes.isEmpty ? a.owners : b.owners
            self = a.changes.isEmpty ? b : a
            owners += others
            return
        }
        owners = a.owners + b.owners
        try preallocate(a.changes.count + b.changes.count)
        var i = 0, j = 0
        while i < a.changes.count || j < b.changes.count {
            let takesA = j == b.changes.count || (i < a.changes.count && Bytes.compare(a.changes[i].id, b.changes[j].id) < 0)
            changes.append(takesA ? a.changes[i] : b.changes[j])
            located.append(takesA ? a.located[i] : b.located[j])
            if takesA { i += 1 } else { j += 1 }
        }
    }

    /// Retains an object that changes borrow from.
    mutating func keep(_ owner: Any) { owners.append(owner) }

    mutating func append(_ change: RecordChange) {
        changes.append(change)
        located.append(nil)
    }

    /// Adopts the second side's value, or its absence.
    mutating func append(_ key: UnsafeRawBufferPointer, preserving stored: VersionID?) {
        append(RecordChange(kind: stored == nil ? .preserveRemoval : .preserve, id: key, storedVersion: stored))
    }

    /// Does the same, and appends the entry. Only for stored records: records of the steps of a fold may move.
    mutating func append(_ key: UnsafeRawBufferPointer, preserving stored: (version: VersionID, entry: MapEntry)?) {
        append(key, preserving: stored?.version)
        if let stored { located[located.count - 1] = stored.entry }
    }
}

/// How one id differs between the sides of a merge and their ancestor: a fork with map entries instead of references.
struct MergeFork {
    var key: UnsafeRawBufferPointer
    var kind: Fork.Kind
    var side: Fork.Side?
    var first: MapEntry?
    var second: MapEntry?
    var ancestor: MapEntry?
    /// The ancestors' entries if they disagree.
    var candidates: [MapEntry] = []

    var isConflicting: Bool { kind.isConflicting }

    /// Classifies a difference by the table of `Fork`. `first` and `second` differ.
    /// - Parameters:
    ///   - unchanged: the side that equals the ancestor.
    ///   - areBasesAtOdds: whether there are several ancestors, and not exactly one of them equals one side.
    init(
        _ key: UnsafeRawBufferPointer, first p: MapEntry?, second q: MapEntry?, ancestor o: MapEntry?, unchanged: Fork.Side?,
        areBasesAtOdds: Bool = false
    ) {
        self.key = key
        first = p
        second = q
        ancestor = o
        if areBasesAtOdds {
            (kind, side) = p != nil && q != nil ? (.twiceUpdated, nil) : (.removedAndUpdated, p == nil ? .first : .second)
        } else if o == nil {
            (kind, side) = p != nil && q != nil ? (.twiceInserted, nil) : (.inserted, p != nil ? .first : .second)
        } else if unchanged == .second {
            (kind, side) = (p == nil ? .removed : .updated, .first)
        } else if unchanged == .first {
            (kind, side) = (q == nil ? .removed : .updated, .second)
        } else {
            (kind, side) = p != nil && q != nil ? (.twiceUpdated, nil) : (.removedAndUpdated, p == nil ? .first : .second)
        }
    }

    /// A value that both sides removed.
    init(removedTwice key: UnsafeRawBufferPointer, ancestor: MapEntry) {
        self.key = key
        kind = .twiceRemoved
        self.ancestor = ancestor
    }
}
