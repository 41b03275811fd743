/// Finds out what happened to an edit when its line was merged with others that changed the same value. If it won against another edit
/// and is undone, the other edit must take effect again.
///
/// Each such merge is repeated without the edit. The difference of the two results is what undoing must change. Used by one thread.
final class MergedEdits {
    /// A merge of a line with the edited version and a line without it.
    fileprivate struct Join {
        let merge: UInt32, with: UInt32, without: UInt32
        /// The values of the common ancestors of both lines. Created on first use.
        var base: ContentBase?
    }

    /// The inputs for undoing an edit.
    enum Undoing {
        /// Both results of the last merge, with the edit and without it.
        /// - `records`: the decisions of the merge without it.
        /// - `lost`: the parts of the edit that the merges dropped, the last merge first.
        /// - `isSure`: false if more edits may have lost against the edit than are known.
        case merged(Part, records: ConflictRecords, lost: [Part], isSure: Bool)
        /// The edit lost, and the value was not changed since: there is nothing to undo.
        case lost
        /// An arbiter chose the other line's value, so the edit has no part in the current one. `added` is the current value with the
        /// edit.
        case dropped(added: SideValue?)
        /// A merge of both lines' edits was not decided by rules, so it is not known what lost in it.
        case unknown
    }

    /// A value with an edit, and without it.
    typealias Part = (edited: SideValue?, before: SideValue?)

    /// A merge of values in which the edit may have had a part.
    private struct Step {
        let base: ContentBase.Found, x: SideValue, y: SideValue?, merged: SideValue?
        /// The edit's line with and without the edit, and the result with and without it.
        let edit: Part, result: Part
    }

    /// The outcome of one merge for the edit.
    private enum Outcome {
        /// The merge dropped nothing, so repeating it shows nothing new.
        case nothingLost
        /// The results with the edit and without it, and the records of the merge without it.
        case step(Step, ConflictRecords)
        /// The result is the other line's value, by an arbiter's decision.
        case dropped(merged: SideValue?)
        /// The merge was not made by the rules, and its result is neither side's value.
        case unknown
    }

    /// The most merges of a value that are retained. If there are more, none is: each takes up to two values.
    private static let mostSteps = 64
    private let store: Store
    private let control: PacedControl
    /// Oldest first.
    private var joins: [Join]
    private var ancestors = LineAncestors()

    /// - Parameters:
    ///   - version: the version that is undone.
    ///   - head: the version on which it is undone.
    /// - Complexity: O(versions stored since that version).
    init(by version: UInt32, upTo head: UInt32, in store: Store, _ control: PacedControl) throws {
        self.store = store
        self.control = control
        joins = try store.walk(JoiningMerges(of: version, upTo: head), control.look)
    }

    /// Returns the inputs for undoing an edit of a value; nil if no other line changed the value, so that the edit itself suffices.
    /// - Parameters:
    ///   - original: the value before the edit.
    ///   - edited: the value after it.
    ///   - now: the value where the edit is undone.
    /// - Complexity: a few lookups for each merge of such lines, and one walk to the common ancestors. If the other line changed the
    ///   value, it is merged up to four times, or seven times if the value was changed after the last merge.
    func undoing(
        _ key: UnsafeRawBufferPointer, from original: SideValue?, to edited: SideValue?, now: SideValue?, _ held: HeldMerge
    ) throws -> Undoing? {
        var found: (part: Part, records: ConflictRecords)?, line: Line?, lost: SideValue?
        // The merges, each on top of the one before; nil if they are on several lines.
        var steps: [Step]? = [], stepLine: Line?, lastMerged: SideValue?, dropped: SideValue??, isUnknown = false
        for i in joins.indices {
            try control.step()
            let join = joins[i], y = SideValue(try store.maps.entry(key, at: join.without))
            // Mostly the other line did not change the value.
            if SideValue.isSameReference(y, original) { continue }
            let base = try base(i, held)
            guard try !held.areSame(base.held, y), let x = SideValue(try store.maps.entry(key, at: join.with)) else { continue }
            if try !goesOn(&line, with: join) { continue }
            let isOnStepLine = try steps == nil || goesOn(&stepLine, with: join)
            let merged = SideValue(try store.maps.entry(key, at: join.merge))
            switch try outcome(base, x, y, merged, edit: found?.part ?? (edited, original), held) {
            case .nothingLost: break
            case .unknown: isUnknown = true
            case .dropped(let merged): dropped = .some(merged)
            case .step(let step, let records):
                if steps?.count == Self.mostSteps { steps = nil }
                if !isOnStepLine { steps = nil }
                steps?.append(step)
                (stepLine, lastMerged) = (Line(start: join.merge), merged)
                if try held.areSameDocument(merged, step.result.before) {
                    lost = merged
                } else {
                    (found, line) = ((step.result, records), Line(start: join.merge))
                }
            }
        }
        if let steps, let again = try undoneSince(steps, now, from: original, to: edited, held) { return again }
        if let found {
            let isChanged = try !held.areSameDocument(lastMerged, now)
            let lost = isChanged ? try steps?.reversed().map { try Self.lostPart(of: $0, held) } ?? [] : []
            return .merged(found.part, records: found.records, lost: lost, isSure: !isUnknown && (!isChanged || steps != nil))
        }
        if let lost, try held.areSameDocument(lost, now) { return .lost }
        if let dropped {
            if try held.areSameDocument(dropped, now) { return .lost }
            return .dropped(added: try held.undone((original, edited), in: now))
        }
        return isUnknown ? .unknown : nil
    }

    /// Repeats a merge, with the edit and without it.
    private func outcome(
        _ base: ContentBase.Found, _ x: SideValue, _ y: SideValue?, _ merged: SideValue?, edit: Part, _ held: HeldMerge
    ) throws -> Outcome {
        // The reverted value keeps its times, so that it remains the newer or the older side.
        func reverted() throws -> SideValue? {
            try held.dated(held.undone(edit, in: x), as: x)
        }
        func step(_ without: SideValue?) -> Step {
            Step(base: base, x: x, y: y, merged: merged, edit: edit, result: (merged, without))
        }
        let with = try held.merge(base.held, x, y, contested: base.contested)
        if try held.areSameDocument(with.value(newer: x, older: y), merged) {
            if with.records.isEmpty { return .nothingLost }
            let without = try reverted(), outcome = try held.merge(base.held, without, y, contested: base.contested)
            return .step(step(outcome.value(newer: without, older: y)), outcome.records)
        }
        if try held.areSame(base.held, x) { return .nothingLost }
        // The merge decided for the whole value, not inside it.
        if try held.areSameDocument(merged, x) {
            let without = try reverted()
            return .step(step(try held.areSameDocument(without, base.held) ? y : without), ConflictRecords())
        }
        if try held.areSameDocument(merged, y) { return .dropped(merged: merged) }
        return with.records.isEmpty ? .nothingLost : .unknown
    }

    /// Repeats the merges as if the changes since the last one had been made on the edit's line before the first one, with the edit and
    /// without it. So other edits of that line that are already undone have no part in them. Returns nil if nothing was changed since, if
    /// the repeated merges do not result in the current value, or if the result is the same without the edit.
    private func undoneSince(_ steps: [Step], _ now: SideValue?, from original: SideValue?, to edited: SideValue?, _ held: HeldMerge) throws
        -> Undoing?
    {
        guard let last = steps.last, try !held.areSameDocument(last.merged, now) else { return nil }
        // The value between two merges, and the inputs for undoing on top of each.
        var made: Part = (now, now), before = last.merged, edit: Part = (edited, original), records = ConflictRecords()
        for step in steps {
            // Apply the later changes to the edit's line.
            let x = try held.dated(held.undone((before, step.x), in: made.edited), as: step.x)
            let without = try held.dated(held.undone(edit, in: x), as: step.x)
            let outcome = try held.merge(step.base.held, without, step.y, contested: step.base.contested)
            made.edited = try held.merge(step.base.held, x, step.y, contested: step.base.contested).value(newer: x, older: step.y)
            made.before = outcome.value(newer: without, older: step.y)
            (edit, before, records) = (made, step.merged, outcome.records)
        }
        guard try held.areSameDocument(made.edited, now), try !held.areSameDocument(now, made.before) else { return nil }
        return .merged((now, made.before), records: records, lost: [], isSure: true)
    }

    /// Returns the value of the edit's line, and that value without the part that the merge dropped.
    private static func lostPart(of step: Step, _ held: HeldMerge) throws -> Part {
        (step.edit.edited, try held.undone((step.result.before, step.edit.before), in: step.result.edited))
    }

    /// Merges on top of one another.
    private struct Line {
        let start: UInt32
        /// The last merge of the line so far.
        var last: UInt32

        init(start: UInt32) { (self.start, last) = (start, start) }
    }

    /// Returns whether a merge is on top of a line, and adds it to the line then. Mostly it is directly on top of the last merge, which
    /// takes no walk.
    private func goesOn(_ line: inout Line?, with join: Join) throws -> Bool {
        guard let known = line else { return true }
        guard try isBehind(join.with, known.last) || isBehind(join.with, known.start) else { return false }
        line?.last = join.merge
        return true
    }

    /// Returns whether a version equals an earlier one or descends from it.
    private func isBehind(_ version: UInt32, _ earlier: UInt32) throws -> Bool {
        try version == earlier || store.walk(AncestorSearch(earlier, of: version), control.look)
    }

    private func base(_ i: Int, _ held: HeldMerge) throws -> ContentBase.Found {
        if joins[i].base == nil {
            let bases = try ancestors.common(joins[i].with, joins[i].without, in: store, control)
            joins[i].base = ContentBase(store, bases: bases, control)
        }
        return try joins[i].base?.value(held) ?? ContentBase.Found()
    }
}

extension HeldMerge {
    /// Returns a value without an edit. `part` is the value before and after that edit.
    fileprivate func undone(_ part: MergedEdits.Part, in value: SideValue?) throws -> SideValue? {
        try undo(part.edited, to: part.before, in: value).value(newer: value, older: part.before)
    }
}

extension HeldMerge.Outcome {
    /// Returns the result of a merge of two values.
    func value(newer: SideValue?, older: SideValue?) -> SideValue? {
        switch result {
        case .a: newer
        case .b: older
        case .absent: nil
        case .computed(let bytes, let recency): SideValue(.computed(bytes, recency: recency))
        }
    }
}

/// Finds the common ancestors of a line and others that are merged into it, one after another. After a few of them, it records all
/// ancestors of the line, so that each version is walked only once.
private struct LineAncestors {
    /// Up to this many lines are walked one by one.
    private static let few = 16
    private var known = MergedAncestry(), tip = History.none, asked = 0

    /// Returns the best common ancestors of a version of the line and another version, newest first.
    mutating func common(_ line: UInt32, _ other: UInt32, in store: Store, _ control: PacedControl) throws -> [UInt32] {
        asked += 1
        guard asked > Self.few else { return try store.walk(CommonAncestors([line], [other]), control.look) }
        if tip != line {
            // For another line, record everything again.
            let goesOn = try tip != History.none && store.walk(AncestorSearch(tip, of: line), control.look)
            let before = goesOn ? known.taken() : MergedAncestry()
            (known, tip) = (try store.walk(MergedAncestry.Adding(line, to: before), control.look), line)
        }
        let met = try store.walk(CommonPlaces(of: other, with: known), control.look)
        return met.count > 1 ? try store.walk(CommonAncestors([line], [other]), control.look) : met
    }
}

/// Finds the first common ancestors of a version and others: those that a walk from the version reaches without passing another one.
/// O(versions before these).
private struct CommonPlaces: HistoryPass {
    private let others: MergedAncestry
    private var stack: [UInt32], seen: Set<UInt32> = [], found: [UInt32] = []

    init(of version: UInt32, with others: MergedAncestry) { self.others = others; stack = [version] }

    mutating func go(_ steps: Int, in dag: History) -> [UInt32]? {
        var left = steps
        while let at = stack.popLast() {
            if left <= 0 { stack.append(at); return nil }
            left -= 1
            Work.versions.count()
            if others.contains(at) { found.append(at); continue }
            for next in [dag.rows[Int(at)].first, dag.rows[Int(at)].second] where next != History.none && seen.insert(next).inserted {
                stack.append(next)
            }
        }
        return found
    }
}

/// Finds the merges, up to a version, of a line that has a certain version and a line that does not; oldest first. O(versions since that
/// version).
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
