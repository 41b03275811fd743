/// The combined changes of a chain of versions, each based on the one before: one per id, in byte order.
package struct ChainChanges {
    /// The state of an id before the first of the versions, as far as their records show it.
    package enum Before: UInt8 { case absent, present, unknown }

    package struct Item {
        package var key: UnsafeRawBufferPointer
        /// The entry after the last of the versions; nil if the value is absent.
        package var entry: MapEntry?
        /// The fingerprint of its bytes, if it is known.
        package var fingerprint: UInt32?
        package var before: Before
        /// Whether an earlier version stored the bytes, which the change names.
        var isPreserved: Bool

        /// Whether a value was present before, and the change made a difference; nil if the records do not show it.
        var toldBefore: Bool? {
            // A preserved value may equal the one that was present before.
            isPreserved || before == .unknown ? nil : before == .present
        }
    }
    package private(set) var items: [Item] = []
    /// Retains the keys.
    private let arena = ByteArena()

    /// - Parameter chain: the versions, newest first.
    package init(_ chain: [UInt32], in store: Store, _ control: PacedControl = .none) throws {
        if chain.isEmpty { return }
        let areTrue = store.lock.withRead { chain.map { store.dag.rows[Int($0)].traits.contains(.changeKindsVerified) } }
        items.reserveCapacity(chain.count)
        for (ordinal, changeKindsVerified) in zip(chain, areTrue) {
            try control.step(0)
            let count = store.lock.withRead { Int(store.dag.rows[Int(ordinal)].changeCount) }
            try Memory.grow(&items, by: count, "Reading \(count) changes")
            try store.maps.forEachRecordedChange(ordinal) { change in
                var item = Item(
                    key: arena.copy(change.key), entry: change.entry, fingerprint: change.fingerprint, before: .unknown,
                    isPreserved: change.kind == .preserve)
                if changeKindsVerified {
                    switch change.kind {
                    case .insert: item.before = .absent
                    case .update, .remove, .preserveRemoval: item.before = .present
                    case .preserve: break
                    }
                }
                items.append(item)
            }
        }
        if chain.count > 1 { try sortAndJoin() }
    }

    /// The changes from one version to another, from their maps.
    package init(from base: UInt32, to version: UInt32, in store: Store, _ control: PacedControl = .none) throws {
        try MapNode.forEachDifference(store.maps.map(base, control), store.maps.map(version, control)) { key, before, after in
            try control.step(0)
            try Memory.check()
            try Memory.grow(&items, "Comparing two versions")
            items.append(Item(key: arena.copy(key), entry: after, before: before == nil ? .absent : .present, isPreserved: false))
        }
    }

    /// Joins the changes of each id: the newest determines the entry, the oldest the state before.
    private mutating func sortAndJoin() throws {
        try Memory.expect(items.count * (MemoryLayout<Item>.stride + 16), "Comparing two versions")
        let order = items.indices.sorted { i, j in
            let c = Bytes.compare(items[i].key, items[j].key)
            return c != 0 ? c < 0 : i < j
        }
        var joined: [Item] = []
        joined.reserveCapacity(items.count)
        for i in order {
            if let last = joined.last, Bytes.equal(last.key, items[i].key) {
                joined[joined.count - 1].before = items[i].before
            } else {
                joined.append(items[i])
            }
        }
        items = joined
    }
}

/// The chains of first predecessors of two versions, down to the first version that is on both.
package struct Meeting {
    var at: UInt32
    /// The versions from each of the two back to the meeting, newest first and without it, and how many changes they recorded.
    var left: [UInt32] = []
    var right: [UInt32] = []
    var leftChanges = 0
    var rightChanges = 0
}

/// Walks the versions from one back to another on its chain of first predecessors, newest first and without the latter, and counts their
/// changes. Empty if the latter is not on the chain.
package struct ChainBehind: HistoryPass {
    private var at: UInt32
    private let base: UInt32
    private var versions: [UInt32] = [], changes = 0

    package init(from version: UInt32, behind base: UInt32) { at = version; self.base = base }

    package mutating func go(_ steps: Int, in dag: History) -> (versions: [UInt32], changes: Int)?? {
        let floor = dag.rows[Int(base)].generation
        var left = steps
        while at != base {
            if left <= 0 { return nil }
            left -= 1
            Work.versions.count()
            guard dag.rows[Int(at)].generation > floor, dag.rows[Int(at)].first != History.none else { return .some(nil) }
            versions.append(at)
            changes += Int(dag.rows[Int(at)].changeCount)
            at = dag.rows[Int(at)].first
        }
        return .some((versions, changes))
    }
}

extension History {
    /// Returns where the chains of first predecessors of two versions meet. Nil if they do not meet, or if one chain has more versions and
    /// changes up to there than its limit.
    package func meeting(_ a: UInt32, _ b: UInt32, leftAtMost: Int, rightAtMost: Int) -> Meeting? {
        var meeting = Meeting(at: a)
        var x = a, y = b, leftCost = 0, rightCost = 0
        while x != y {
            Work.versions.count()
            if rows[Int(x)].generation >= rows[Int(y)].generation {
                leftCost += 1 + Int(rows[Int(x)].changeCount)
                meeting.left.append(x)
                x = rows[Int(x)].first
            } else {
                rightCost += 1 + Int(rows[Int(y)].changeCount)
                meeting.right.append(y)
                y = rows[Int(y)].first
            }
            if x == History.none || y == History.none || leftCost > leftAtMost || rightCost > rightAtMost { return nil }
        }
        meeting.at = x
        return meeting
    }
}
