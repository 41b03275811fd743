/// Finds out what became of an edit where its line was merged with others that changed the same value. If it won against another edit there
/// and is undone, the other edit is due again.
///
/// Each such merge is made again twice: with the edit, and without it. The difference of the two results is what undoing has to change.
struct MergedEdits {
    /// A merge of a line that has the edited version and a line that has not.
    private struct Join {
        let merge: UInt32, with: UInt32, without: UInt32
    }

    /// What undoing is merged from.
    struct Undoing {
        /// What the last of the merges gives with the edit.
        var edited: SideValue?
        /// What it gives without the edit.
        var before: SideValue?
        /// What merging without the edit had to decide.
        var records: ConflictRecords
    }

    private let store: Store
    private let control: PacedControl
    /// Oldest first.
    private let joins: [Join]

    /// - Parameters:
    ///   - version: the version that is undone.
    ///   - head: where it is undone.
    /// - Complexity: O(versions stored since that version).
    init(by version: UInt32, upTo head: UInt32, in store: Store, _ control: PacedControl) throws {
        self.store = store
        self.control = control
        joins = try store.walk(JoiningMerges(of: version, upTo: head), control.look).map {
            Join(merge: $0.merge, with: $0.with, without: $0.without)
        }
    }

    /// Returns what undoing an edit of a value is merged from, if other lines changed the same in the value; nil if none did.
    /// - Parameters:
    ///   - original: the value before the edit.
    ///   - edited: the value after it.
    ///   - now: the value where the edit is undone.
    func undoing(
        _ key: UnsafeRawBufferPointer, from original: SideValue?, to edited: SideValue?, now: SideValue?, _ held: HeldMerge
    ) throws -> Undoing? {
        var found: Undoing?, last: UInt32?, lastValue = edited
        for join in joins {
            try control.step()
            let other = try store.maps.entry(key, at: join.without)
            let ancestor = try store.walk(CommonAncestors([join.with], [join.without]), control.look).first
            let before = try ancestor.flatMap { try store.maps.entry(key, at: $0) }
            // Most often only one line changed the value.
            if try store.isSameValue(before, other, key) { continue }
            guard let x = SideValue(try store.maps.entry(key, at: join.with)) else { continue }
            if let last, last != join.with, try !store.walk(AncestorSearch(last, of: join.with), control.look) { continue }
            let y = SideValue(other), base = SideValue(before), merged = SideValue(try store.maps.entry(key, at: join.merge))
            // The value of the line with the edit, as if all that came later had been done there.
            let current = try held.value(of: held.merge(merged, newer: now, older: x), newer: now, older: x, dated: x)
            let (from, to) = found.map { ($0.edited, $0.before) } ?? (edited, original)
            // If nobody changed the value since, it would be as old as it was.
            let dated = try held.areSame(x, lastValue) ? to ?? x : x
            let reverted = try held.value(of: held.merge(from, newer: current, older: to), newer: current, older: to, dated: dated)
            if try held.areSameDocument(held.merge(base, x, y).value(newer: x, older: y), merged) {
                let with = try held.merge(base, current, y)
                // Nothing lost.
                if with.records.isEmpty { continue }
                let without = try held.merge(base, reverted, y)
                found = Undoing(
                    edited: with.value(newer: current, older: y), before: without.value(newer: reverted, older: y), records: without.records
                )
            } else if try held.areSameDocument(merged, x), try !held.areSame(base, x) {
                // Others decided it, by the whole value.
                let isUndone = try held.areSameDocument(reverted, base)
                found = Undoing(edited: current, before: isUndone ? y : reverted, records: ConflictRecords())
            } else {
                continue
            }
            (last, lastValue) = (join.merge, merged)
        }
        return found
    }
}

extension HeldMerge.Outcome {
    /// The value that came out of a merge of two values.
    func value(newer: SideValue?, older: SideValue?) -> SideValue? {
        switch result {
        case .a: newer
        case .b: older
        case .absent: nil
        case .computed(let bytes, let recency): SideValue(.computed(bytes, recency: recency))
        }
    }
}

/// Merges, up to a version, of a line that has a certain version and a line that has not; oldest first. O(versions since that version).
private struct JoiningMerges: HistoryPass {
    private let version: UInt32
    private var later: LaterVersions, descendants: LaterVersions.Found?
    private var stack: [UInt32], seen: Set<UInt32> = []
    private var found: [(merge: UInt32, with: UInt32, without: UInt32)] = []

    init(of version: UInt32, upTo head: UInt32) {
        self.version = version
        later = LaterVersions(of: [version], upTo: head)
        stack = [head]
    }

    mutating func go(_ steps: Int, in dag: History) -> [(merge: UInt32, with: UInt32, without: UInt32)]? {
        guard let descendants = descendants ?? later.go(steps, in: dag) else { return nil }
        self.descendants = descendants
        var left = steps
        while let at = stack.popLast() {
            if left <= 0 { stack.append(at); return nil }
            left -= 1
            Work.versions.count()
            guard descendants.contains(at) else { continue }
            let row = dag.rows[Int(at)], sides = [row.first, row.second].filter { $0 != History.none }
            let have = sides.map { $0 == version || descendants.contains($0) }
            if sides.count == 2, have[0] != have[1] {
                found.append((merge: at, with: sides[have[0] ? 0 : 1], without: sides[have[0] ? 1 : 0]))
            }
            for side in sides where descendants.contains(side) && seen.insert(side).inserted { stack.append(side) }
        }
        // Predecessors have lower ordinals.
        return found.sorted { $0.merge < $1.merge }
    }
}
