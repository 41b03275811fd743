/// Finds out what became of an edit where its line was merged with others that changed the same. If it won against another edit there and
/// is undone, the other edit is due again.
///
/// Each such merge is made again without the edit. What the two results differ in is what undoing has to change. Used by one thread.
final class MergedEdits {
    /// A merge of a line that has the edited version and a line that has not.
    fileprivate struct Join {
        let merge: UInt32, with: UInt32, without: UInt32
        /// The newest of the common ancestors of the two lines, if there is any; looked for when it is first needed.
        var base: UInt32??
    }

    /// What undoing is merged from.
    enum Undoing {
        /// Both results of the last merge, with the edit and without it, and what merging without it had to decide.
        case merged(edited: SideValue?, before: SideValue?, records: ConflictRecords)
        /// The edit lost, and nobody changed the value since: there is nothing to undo.
        case lost
    }

    private let store: Store
    private let control: PacedControl
    /// Oldest first.
    private var joins: [Join]

    /// - Parameters:
    ///   - version: the version that is undone.
    ///   - head: where it is undone.
    /// - Complexity: O(versions stored since that version).
    init(by version: UInt32, upTo head: UInt32, in store: Store, _ control: PacedControl) throws {
        self.store = store
        self.control = control
        joins = try store.walk(JoiningMerges(of: version, upTo: head), control.look)
    }

    /// Returns what undoing an edit of a value is merged from; nil if no other line changed the same, so that the edit itself tells it.
    /// - Parameters:
    ///   - original: the value before the edit.
    ///   - edited: the value after it.
    ///   - now: the value where the edit is undone.
    /// - Complexity: for each merge of such lines a few lookups, and a walk to the common ancestor once. If the other line changed the
    ///   value, it is merged up to four times.
    func undoing(
        _ key: UnsafeRawBufferPointer, from original: SideValue?, to edited: SideValue?, now: SideValue?, _ held: HeldMerge
    ) throws -> Undoing? {
        var found: (edited: SideValue?, before: SideValue?, records: ConflictRecords)?, last: UInt32?, lost: SideValue?
        for i in joins.indices {
            try control.step()
            let join = joins[i], y = SideValue(try store.maps.entry(key, at: join.without))
            // Most often the other line left the value alone.
            if SideValue.isSameReference(y, original) { continue }
            let base = SideValue(try commonAncestor(i).flatMap { try store.maps.entry(key, at: $0) })
            guard try !held.areSame(base, y), let x = SideValue(try store.maps.entry(key, at: join.with)) else { continue }
            if let last, last != join.with, try !store.walk(AncestorSearch(last, of: join.with), control.look) { continue }
            let merged = SideValue(try store.maps.entry(key, at: join.merge))
            let (from, to) = found.map { ($0.edited, $0.before) } ?? (edited, original)
            // It stays the newer or the older side, as it was.
            let reverted = try held.dated(held.merge(from, newer: x, older: to).value(newer: x, older: to), as: x)
            let without: SideValue?, records: ConflictRecords
            if case let with = try held.merge(base, x, y), try held.areSameDocument(with.value(newer: x, older: y), merged) {
                // Nothing lost.
                if with.records.isEmpty { continue }
                let outcome = try held.merge(base, reverted, y)
                (without, records) = (outcome.value(newer: reverted, older: y), outcome.records)
            } else if try held.areSameDocument(merged, x), try !held.areSame(base, x) {
                // Others decided it, by the whole value.
                (without, records) = (try held.areSameDocument(reverted, base) ? y : reverted, ConflictRecords())
            } else {
                continue
            }
            if try held.areSameDocument(merged, without) {
                // Another edit of the same line may hide that it won, and may be undone by now.
                if found == nil, case let again? = try undoneSince(base, x, y, merged, now, from: from, to: to, held) { return again }
                lost = merged
                continue
            }
            (found, last) = ((merged, without, records), join.merge)
        }
        if let found { return .merged(edited: found.edited, before: found.before, records: found.records) }
        return try lost != nil && held.areSameDocument(lost, now) ? .lost : nil
    }

    /// Makes a merge again as if what was changed since had been changed on the line of the edit before; with the edit, and without it.
    /// Returns nil if that does not give what is there now, or if it is the same without the edit.
    private func undoneSince(
        _ base: SideValue?, _ x: SideValue, _ y: SideValue?, _ merged: SideValue?, _ now: SideValue?, from: SideValue?, to: SideValue?,
        _ held: HeldMerge
    ) throws -> Undoing? {
        if try held.areSameDocument(merged, now) { return nil }
        let current = try held.dated(held.merge(merged, newer: now, older: x).value(newer: now, older: x), as: x)
        guard try held.areSameDocument(held.merge(base, current, y).value(newer: current, older: y), now) else { return nil }
        let reverted = try held.dated(held.merge(from, newer: current, older: to).value(newer: current, older: to), as: x)
        let outcome = try held.merge(base, reverted, y), without = outcome.value(newer: reverted, older: y)
        return try held.areSameDocument(now, without) ? nil : .merged(edited: now, before: without, records: outcome.records)
    }

    private func commonAncestor(_ i: Int) throws -> UInt32? {
        if let known = joins[i].base { return known }
        let found = try store.walk(CommonAncestors([joins[i].with], [joins[i].without]), control.look).first
        joins[i].base = .some(found)
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
    private var found: [MergedEdits.Join] = []

    init(of version: UInt32, upTo head: UInt32) {
        self.version = version
        later = LaterVersions(of: [version], upTo: head)
        stack = [head]
    }

    mutating func go(_ steps: Int, in dag: History) -> [MergedEdits.Join]? {
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
                found.append(MergedEdits.Join(merge: at, with: sides[have[0] ? 0 : 1], without: sides[have[0] ? 1 : 0]))
            }
            for side in sides where descendants.contains(side) && seen.insert(side).inserted { stack.append(side) }
        }
        // Predecessors have lower ordinals.
        return found.sorted { $0.merge < $1.merge }
    }
}
