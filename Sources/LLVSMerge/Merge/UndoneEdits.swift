/// Computes the values of a state as if saves that devices undid had not been made.
///
/// An undo names the versions that it reverts (`UndoMarks`). The value without them is recomputed from the history, beginning at the first
/// of them. An undone save changes nothing, and neither does an undo or a redo itself. Any other save makes the same change as before.
/// Merges are repeated by the rules. The result therefore does not depend on the order in which saves were undone, or on the devices that
/// undid them. If one of two devices undoes an edit that both made, the result is what the other device left. Used by one thread.
package final class UndoneEdits {
    /// A value at a version, with and without the undone saves.
    private struct Made {
        /// The value without the undone saves.
        var value: SideValue?
        /// The value that prevails at the version.
        var actual: SideValue?
        var isActual: Bool { SideValue.isSameReference(value, actual) }
    }

    /// The result for one id: its value without the undone saves.
    struct Outcome {
        var value: SideValue?
        /// Whether the value was changed on several lines that were merged. If so, the undone version alone does not determine the result.
        var isMet = false
        /// The conflict records of the last of those merges.
        var records = ConflictRecords()
        /// Whether members remain that an undone save created for a later form.
        var keepsMembers = false
    }

    /// A version to recompute, since it may have changed one of the ids.
    private struct Step {
        enum Kind {
            case save, undone, undo
            case merge(with: UInt32)
        }
        let version: UInt32
        /// Nil for a root.
        let first: UInt32?
        let kind: Kind
        /// Whether the ids that the version changed are unknown.
        let isUntold: Bool
    }

    private let store: Store
    private let control: PacedControl
    private let heads: [UInt32]
    /// Cached results of `targets(of:)`: the versions that an undo or a redo names. Empty for a version that counts as a save.
    private var named: [UInt32: [UInt32]] = [:]
    /// The number of undos and redos in `named`.
    private var namedCount = 0
    /// Cached results of `mayMatter`.
    private var mattering: [UInt32: Bool] = [:]
    /// The versions to recompute, each after its predecessors.
    private var versions: [UInt32] = [], covered: Set<UInt32> = []
    private var steps: [Step] = []
    /// For versions without a step: the nearest earlier version with the same values of the ids.
    private var alike: [UInt32: UInt32] = [:]
    /// The positions of the steps by version, and by the hash of an id that the version may have changed.
    private var positions: [UInt32: Int] = [:], touching: [UInt32: [Int]] = [:]
    /// Which steps are recomputed for an id, besides those in `touching`.
    private var candidates = Candidates()
    private struct Candidates {
        /// For every id; and of the others those for ids with forms.
        var always: [Int] = [], forForms: [Int] = []
        /// Merges, by the hash of an id that their second side changed.
        var merging: [UInt32: [Int]] = [:]
    }
    /// For each step: the step of its first predecessor, or -1; and the earliest step of its line. The steps of a line each have the one
    /// before as their first predecessor. From any step, the way back to the earliest step crosses O(log n) lines.
    private var parents: [Int] = [], lines: [Int] = []
    /// For the id that is being recomputed, by line: the steps that may have other values of the id than their first predecessors.
    private var marks: [Int: [Int]] = [:]
    private var hasMerges = false
    /// The work so far, in units of about 50 ns, and the most of it.
    private var work = 0
    private let workLimit: Int
    /// For merges: their best common ancestors, and whether one side has an undo that the other side did not know.
    private var known: [UInt32: Sides] = [:]
    private struct Sides {
        var bases: [UInt32], areApart: Bool
        /// The hashes of the ids that the second side changed since the bases; nil if unknown, or if lines were merged into it.
        var changed: Set<UInt32>?
        /// Whether the merge leaves all ids alone that the second side did not change. Ids with forms may be exceptions.
        var isSimple: Bool { !areApart && bases.count == 1 && changed != nil }
    }
    /// The versions at which recomputing begins, and the versions to undo now.
    private var seeds: Set<UInt32> = [], acting: [UInt32] = []
    /// The versions that count as undone.
    private var undone: Set<UInt32> = []
    /// The ids to recompute, in byte order.
    private(set) var ids: [ValueID] = []
    private var hashes: Set<UInt32> = []
    private var isAbout: Set<ValueID> = []

    /// The most work for one undo or merge, beyond a multiple of the versions: docs/merging-internals.md, "What is undone".
    package static let workLimit = 32_000_000
    private static let workOfVersion = 64

    private init(_ heads: [UInt32], in store: Store, _ control: PacedControl, _ workLimit: Int) {
        (self.heads, self.store, self.control, self.workLimit) = (heads, store, control, workLimit)
    }

    /// Thrown if more work would be needed than is done.
    private struct TooMuchWork: Error {}
    private func spend(_ more: Int) throws {
        work += more
        if work > workLimit + UndoneEdits.workOfVersion * versions.count { throw TooMuchWork() }
    }
    /// Returns a prepared instance; nil if it would need too much work, which is logged.
    private func prepared() throws -> UndoneEdits? {
        do {
            try find()
            while true {
                do { try findCandidates(); return self } catch is MoreIsUndone { try find() }
            }
        } catch is TooMuchWork {
            Log.write(
                .warning,
                "An undo or a merge in \(store.description) did not consider which saves were undone before: for \(ids.count) values the "
                    + "history has too many merges and undos. An undo then reverts its own saves alone. A merge treats undos like other "
                    + "saves.")
            return nil
        }
    }

    /// Prepares an undo at a head.
    /// - Parameters:
    ///   - acting: the versions to undo: saves, or undos to redo.
    ///   - head: the version on which to undo them.
    ///   - limit: the most work; tests have a smaller limit.
    /// - Returns: nil if one of the versions is a merge, or if no merge may concern them: then recomputing yields no more than reverting
    ///   the edits does. Nil as well if it needs too much work.
    package static func undoing(
        _ acting: [UInt32], at head: UInt32, in store: Store, _ control: PacedControl, limit: Int = UndoneEdits.workLimit
    ) throws -> UndoneEdits? {
        let made = UndoneEdits([head], in: store, control, limit)
        guard store.lock.withRead({ acting.allSatisfy { store.dag.rows[Int($0)].second == History.none } }) else { return nil }
        if try !made.mayMeetMerges(acting, upTo: head) { return nil }
        try made.note(made.changedIDs(acting))
        (made.seeds, made.acting) = (Set(acting), acting)
        return try made.prepared()
    }

    /// Finds the values for which two versions disagree about undos: one side undid saves without the other side knowing it, and the other
    /// side changed or undid the same values. Neither version may be an ancestor of the other.
    /// - Parameter bases: their best common ancestors. If nil, finds only values that both sides undid.
    /// - Returns: nil if there is no such value, or if they need too much work.
    static func apart(
        _ first: UInt32, _ second: UInt32, over bases: [UInt32]?, in store: Store, _ control: PacedControl
    ) throws -> UndoneEdits? {
        if store.lock.withRead({ store.dag.undos.isEmpty }) { return nil }
        let found = try store.walk(UndosApart(first, second), control.look)
        guard bases == nil ? !found.left.isEmpty && !found.right.isEmpty : !found.left.isEmpty || !found.right.isEmpty else { return nil }
        let made = UndoneEdits([first, second], in: store, control, workLimit)
        let left = try made.changedIDs(found.left), right = try made.changedIDs(found.right)
        var ids = left.intersection(right)
        if let bases {
            let left = try made.changed(left, at: second, mergedSince: found.mergesRight, bases)
            ids.formUnion(try left.union(made.changed(right, at: first, mergedSince: found.mergesLeft, bases)))
        }
        if ids.isEmpty { return nil }
        made.note(ids)
        do { _ = try made.add(found); return made } catch is MoreIsUndone { return try made.prepared() }
    }

    /// Returns the ids that a line may have changed since its common ancestors with another line. If lines were merged into it, all ids are
    /// returned, since a value may have changed and returned to its earlier bytes.
    private func changed(_ ids: Set<ValueID>, at version: UInt32, mergedSince: Bool, _ bases: [UInt32]) throws -> Set<ValueID> {
        if mergedSince || bases.count > 1 { return ids }
        return try ids.filter { id in
            try control.step()
            return try id.bytes.withUnsafeBytes { key in
                try !isSame(bases.first.flatMap { try store.maps.entry(key, at: $0) }, store.maps.entry(key, at: version))
            }
        }
    }

    func contains(_ key: UnsafeRawBufferPointer) -> Bool { isAbout.contains(ValueID(unchecked: key)) }

    // MARK: Which versions

    /// Returns the ancestors that an undo or a redo names. Returns none if the version counts as a save: it names no ancestor, or it names
    /// a merge.
    private func targets(of version: UInt32) throws -> [UInt32] {
        if let known = named[version] { return known }
        // Look up as many undos near it as are known already. The number grows with each look-up, so that few walks find any number of
        // undos.
        let more = namedCount
        let near = store.lock.withRead { () -> [UInt32] in
            let undos = store.dag.undos, at = store.dag.countOfUndos(before: version)
            return Array(undos[max(0, at - more)..<min(undos.count, at + more)])
        }
        try lookUp([version], near)
        return named[version] ?? []
    }

    /// Finds the ancestors that versions name, in one walk.
    /// - Parameter near: more versions, left out if they are damaged.
    private func lookUp(_ versions: [UInt32], _ near: [UInt32] = []) throws {
        var pairs: [NamedAncestors.Pair] = []
        for (at, version) in (versions + near).enumerated() where named[version] == nil {
            let isUndo = store.lock.withRead {
                store.dag.rows[Int(version)].traits.contains(.undoes) && store.dag.rows[Int(version)].second == History.none
            }
            var metadata: Metadata?
            do { if isUndo { metadata = try store.version(store.versionID(version))?.metadata } } catch {
                try control.look()
                if at < versions.count { throw error }
                continue
            }
            named[version] = []
            guard let metadata else { continue }
            namedCount += 1
            var names: Set<UInt32> = []
            try UndoMarks.forEachID(metadata[UndoMarks.redoKey] ?? metadata[UndoMarks.undoKey], control) { id in
                // The empty root changed nothing.
                guard id != EmptyRoot.id, let ordinal = store.lock.withRead({ store.dag.ordinal(of: id) }), ordinal < version else {
                    return
                }
                names.insert(ordinal)
            }
            pairs += names.sorted().map { NamedAncestors.Pair(version: version, name: $0) }
        }
        if pairs.isEmpty { return }
        let found = try store.walk(NamedAncestors(pairs), control.look)
        var namesMerge: Set<UInt32> = []
        for pair in found {
            named[pair.version, default: []].append(pair.name)
            if store.lock.withRead({ store.dag.rows[Int(pair.name)].second != History.none }) { namesMerge.insert(pair.version) }
        }
        for version in namesMerge { named[version] = [] }
    }

    /// Returns whether a merge may be among the versions to recompute.
    private func mayMeetMerges(_ acting: [UInt32], upTo head: UInt32) throws -> Bool {
        var end = head + 1, start = acting.min() ?? end
        while start < end {
            if try store.walk(MergeBetween(start, end), control.look) { return true }
            let undos = store.lock.withRead {
                Array(store.dag.undos[store.dag.countOfUndos(before: start)..<store.dag.countOfUndos(before: end)])
            }
            try lookUp([], undos)
            end = start
            for undo in undos {
                guard let names = named[undo] else { return true }
                start = min(start, names.first ?? start)
            }
        }
        return false
    }

    /// Returns the ids that versions changed, and those that the versions they undo changed.
    private func changedIDs(_ versions: [UInt32]) throws -> Set<ValueID> {
        var ids: Set<ValueID> = [], open = versions, seen = Set(versions)
        try lookUp(versions)
        while let version = open.popLast() {
            try control.step()
            try store.maps.forEachRecordedChange(version) { ids.insert(ValueID(unchecked: $0.key)) }
            for target in try targets(of: version) where seen.insert(target).inserted { open.append(target) }
        }
        return ids
    }

    private func note(_ ids: Set<ValueID>) {
        isAbout = ids
        self.ids = ids.sorted()
        hashes = Set(ids.map { $0.bytes.withUnsafeBytes(History.keyHash) })
    }

    /// Returns whether a version, or a version that it undoes, may have changed one of the ids.
    private func mayMatter(_ version: UInt32) throws -> Bool {
        if let known = mattering[version] { return known }
        var open = [version], seen: Set<UInt32> = [version]
        while let at = open.popLast() {
            try control.step()
            Work.undoneSteps.count()
            if store.lock.withRead({ store.dag.keyHashes(of: at)?.contains(where: hashes.contains) ?? true }) {
                mattering[at] = true
            } else {
                for target in try targets(of: at) where mattering[target] == nil && seen.insert(target).inserted { open.append(target) }
            }
        }
        // Each names earlier ones only, so one pass decides all, and none is visited for another undo again.
        for at in seen.sorted() where mattering[at] == nil { mattering[at] = try targets(of: at).contains { mattering[$0] ?? false } }
        return mattering[version] ?? false
    }

    /// Adds the undos that one of two lines did not know of.
    /// - Returns: whether any of them may have changed one of the ids.
    /// - Throws: `MoreIsUndone` if they, or versions that they name, are not yet among the versions to recompute.
    private func add(_ apart: UndosApart.Found) throws -> Bool {
        try lookUp(apart.left + apart.right)
        let before = seeds.count, mattering = try (apart.left + apart.right).filter(mayMatter)
        if mattering.isEmpty { return false }
        for version in mattering {
            for one in try [version] + targets(of: version) where !covered.contains(one) { seeds.insert(one) }
        }
        if seeds.count > before { throw MoreIsUndone() }
        return true
    }

    /// Finds the versions to recompute: those from the seeds on, and those that undos among them name.
    private func find() throws {
        while true {
            versions = try store.walk(VersionsBetween(Array(seeds), heads), control.look)
            try spend(versions.count)
            try lookUp(versions)
            let known = seeds.union(versions), before = seeds.count
            for version in versions {
                for target in try targets(of: version) where !known.contains(target) {
                    if try mayMatter(target) { seeds.insert(target) }
                }
            }
            if seeds.count == before { break }
        }
        covered = Set(versions)
        // An undo comes after the versions that it names, and its redo comes after the undo.
        undone = Set(acting)
        for version in versions.reversed() where !undone.contains(version) { undone.formUnion(try targets(of: version)) }
        try findSteps()
    }

    private func findSteps() throws {
        (steps, alike, hasMerges) = ([], [:], false)
        (positions, touching) = ([:], [:])
        for version in versions {
            try control.step()
            let (sides, changed) = store.lock.withRead {
                (store.dag.predecessors(version), store.dag.keyHashes(of: version).map { $0.filter(hashes.contains) })
            }
            let first = sides.first.map { alike[$0] ?? $0 }, kind: Step.Kind
            if sides.count == 2 {
                hasMerges = true
                kind = .merge(with: alike[sides[1]] ?? sides[1])
            } else if first == nil || !(changed?.isEmpty ?? false) {
                kind = try !targets(of: version).isEmpty ? .undo : undone.contains(version) ? .undone : .save
            } else {
                alike[version] = first
                continue
            }
            positions[version] = steps.count
            for hash in changed ?? [] { touching[hash, default: []].append(steps.count) }
            steps.append(Step(version: version, first: first, kind: kind, isUntold: changed == nil))
        }
    }

    /// Finds the common ancestors of merges, and which steps matter for which ids.
    private func findCandidates() throws {
        var found = Candidates(), heaviest = [Int](repeating: -1, count: steps.count), sizes = [Int](repeating: 1, count: steps.count)
        for (at, step) in steps.enumerated() {
            try control.step()
            if step.isUntold || step.first == nil { found.always.append(at); continue }
            switch step.kind {
            case .save, .undo: break
            case .undone: found.forForms.append(at)
            case .merge:
                let sides = try sides(of: step.version)
                guard sides.isSimple else { found.always.append(at); continue }
                found.forForms.append(at)
                for hash in sides.changed ?? [] { found.merging[hash, default: []].append(at) }
            }
        }
        for hash in ids.lazy.map({ $0.bytes.withUnsafeBytes(History.keyHash) }) {
            try spend(20 * found.always.count + 2 * ((touching[hash]?.count ?? 0) + (found.merging[hash]?.count ?? 0)))
        }
        candidates = found
        parents = steps.map { $0.first.flatMap { positions[$0] } ?? -1 }
        for (at, parent) in parents.enumerated().reversed() where parent >= 0 {
            sizes[parent] += sizes[at]
            if heaviest[parent] < 0 || sizes[heaviest[parent]] < sizes[at] { heaviest[parent] = at }
        }
        lines = []
        for (at, parent) in parents.enumerated() { lines.append(parent >= 0 && heaviest[parent] == at ? lines[parent] : at) }
    }

    // MARK: Values

    /// Thrown if more versions must be recomputed: a merge joined lines, one of which did not know of an undo on the other.
    private struct MoreIsUndone: Error {}

    /// Recomputes one id. Returns its values by version, and the outcome.
    private func made(_ held: HeldMerge) throws -> (table: [UInt32: Made], outcome: Outcome) {
        var outcome = Outcome()
        return (try made(held, &outcome), outcome)
    }

    /// Returns the value of an id with the versions undone.
    func value(_ held: HeldMerge) throws -> Outcome {
        // Without merges, recomputing yields no more than reverting the edit does.
        guard hasMerges else { return Outcome() }
        var (table, outcome) = try made(held)
        outcome.value = try heads.first.flatMap { try found($0, held.key, &table).value }
        return outcome
    }

    /// Merges the value of an id at the two versions.
    func merged(_ held: HeldMerge, over bases: [UInt32]) throws -> HeldMerge.Outcome {
        var table = try made(held).table
        guard heads.count == 2 else { return HeldMerge.Outcome(result: .absent) }
        let first = try found(heads[0], held.key, &table), second = try found(heads[1], held.key, &table)
        let base = try base(bases, held, &table)
        var outcome = try held.merge(base.held, first.value, second.value, contested: base.contested)
        let value = outcome.value(newer: first.value, older: second.value)
        outcome.contested = ContestedValues()
        // If the result equals the document of a side, the bytes of that side are used.
        if try held.areSameDocument(value, first.actual) {
            outcome.result = .a
        } else if try held.areSameDocument(value, second.actual) {
            outcome.result = .b
        } else if let value {
            outcome.result = .computed(try held.bytes(of: value), recency: try held.recency(value))
        } else {
            outcome.result = .absent
        }
        return outcome
    }

    /// Returns the nearest earlier version with the same values of the id that is being recomputed.
    private func origin(of given: UInt32) -> UInt32 {
        let version = alike[given] ?? given
        guard var at = positions[version], lines.count == steps.count else { return version }
        while true {
            let line = lines[at]
            if let all = marks[line] {
                var (low, high) = (0, all.count)
                while low < high {
                    let middle = (low + high) / 2
                    if all[middle] <= at { low = middle + 1 } else { high = middle }
                }
                if low > 0 { return steps[all[low - 1]].version }
            }
            guard parents[line] >= 0 else { return steps[line].first ?? steps[line].version }
            at = parents[line]
        }
    }

    private func found(_ given: UInt32, _ key: UnsafeRawBufferPointer, _ table: inout [UInt32: Made]) throws -> Made {
        let version = origin(of: given)
        if let known = table[version] { return known }
        Work.undoneValues.count()
        let entry = SideValue(try store.maps.entry(key, at: version)), made = Made(value: entry, actual: entry)
        table[version] = made
        return made
    }

    private func base(_ bases: [UInt32], _ held: HeldMerge, _ table: inout [UInt32: Made], isActual: Bool = false) throws
        -> ContentBase.Found
    {
        var known = table
        var base = ContentBase(
            store, bases: bases,
            holding: { key, version in
                let made = try self.found(version, key, &known)
                return isActual ? made.actual : made.value
            }, control)
        let found = try base.value(held)
        table = known
        return found
    }

    private func made(_ held: HeldMerge, _ outcome: inout Outcome) throws -> [UInt32: Made] {
        var table: [UInt32: Made] = [:]
        let hash = History.keyHash(held.key), touched = Set(touching[hash] ?? [])
        marks = [:]
        var last = -1
        for at in stepsFor(held, hash, touched) where at != last {
            last = at
            try control.step()
            Work.undoneSteps.count()
            let step = steps[at], version = step.version, isTouched = step.isUntold || touched.contains(at)
            if !isTouched, let first = step.first, try changesNothing(step, first, held, &table) { continue }
            marks[lines[at], default: []].append(at)
            if case .merge(let other) = step.kind {
                if let first = step.first { table[version] = try merge(version, first, other, held, &table, &outcome) }
                continue
            }
            let before = try step.first.map { try found($0, held.key, &table) } ?? Made()
            var made = before
            if isTouched {
                made.actual = SideValue(try store.maps.entry(held.key, at: version))
            }
            if case .undo = step.kind {
                // An undo makes no change of its own.
            } else if case .undone = step.kind {
                if let kept = try held.kept(before.value, in: made.actual) {
                    made.value = kept.value
                    if kept.hasMembers { outcome.keepsMembers = true }
                }
            } else if SideValue.isSameReference(made.actual, before.actual) {
                // The save did not change the value.
            } else if before.isActual {
                made.value = made.actual
            } else if try held.areSameDocument(before.value, before.actual) {
                made.value = made.actual
            } else {
                made.value = try held.changed(before.value, by: (before.actual, made.actual))
            }
            table[version] = made
        }
        return table
    }

    /// Returns the steps to recompute for an id, in order, some of them twice. All others have its values of their first predecessors.
    private func stepsFor(_ held: HeldMerge, _ hash: UInt32, _ touched: Set<Int>) -> [Int] {
        let more = ids.count.multipliedReportingOverflow(by: candidates.forForms.count)
        let areForms = held.hasForms && !more.overflow && more.partialValue <= workLimit
        return (touched + candidates.always + (areForms ? candidates.forForms : candidates.merging[hash] ?? [])).sorted()
    }

    /// Returns whether a version that did not change the id has the values of its first predecessor, with and without the undone saves.
    private func changesNothing(_ step: Step, _ first: UInt32, _ held: HeldMerge, _ table: inout [UInt32: Made]) throws -> Bool {
        switch step.kind {
        case .save, .undo: return true
        // An undone version may keep members of a later form.
        case .undone: return try found(first, held.key, &table).isActual
        case .merge(let other):
            let sides = try sides(of: step.version), bases = sides.bases
            guard !sides.areApart, bases.count == 1 else { return false }
            // The second side did not change the value since: without undone saves on it, no value has to be looked up.
            if origin(of: other) == origin(of: bases[0]) { return true }
            let isOutside = positions[alike[other] ?? other] == nil && positions[alike[bases[0]] ?? bases[0]] == nil
            if isOutside, let changed = sides.changed, !changed.contains(History.keyHash(held.key)) { return true }
            let p = try found(first, held.key, &table), q = try found(other, held.key, &table)
            let base = try found(bases[0], held.key, &table)
            guard SideValue.isSameReference(q.actual, base.actual), SideValue.isSameReference(q.value, base.value) else { return false }
            return try p.isActual && q.isActual
                || (held.isToBeTaken(p.actual, insteadOf: q.actual) && held.isToBeTaken(p.value, insteadOf: q.value))
        }
    }

    /// Returns the best common ancestors of the sides of a merge, and whether one side has an undo that the other side did not know. If so,
    /// the merge considers undone saves as well.
    private func sides(of merge: UInt32) throws -> Sides {
        if let found = known[merge] { return found }
        let sides = store.lock.withRead { store.dag.predecessors(merge) }
        let apart = try store.walk(UndosApart(sides[0], sides[1], collecting: true), control.look)
        // Its common ancestors are found by such a walk as well.
        try spend(4 * apart.visited)
        var found = Sides(bases: [], areApart: try add(apart))
        found.bases = try store.walk(CommonAncestors([sides[0]], [sides[1]]), control.look)
        if !apart.mergesRight { found.changed = try changed(by: apart.all) }
        known[merge] = found
        return found
    }

    /// Returns the hashes of the ids that the versions may have changed; nil if unknown.
    private func changed(by versions: [UInt32]) throws -> Set<UInt32>? {
        var all: Set<UInt32> = []
        for version in versions {
            try control.step()
            let found = store.lock.withRead { store.dag.keyHashes(of: version).map { ($0.count, $0.filter(hashes.contains)) } }
            guard let found else { return nil }
            try spend(found.0)
            all.formUnion(found.1)
        }
        return all
    }

    private func merge(
        _ version: UInt32, _ first: UInt32, _ second: UInt32, _ held: HeldMerge, _ table: inout [UInt32: Made], _ outcome: inout Outcome
    ) throws -> Made {
        let p = try found(first, held.key, &table), q = try found(second, held.key, &table)
        let actual = SideValue(try store.maps.entry(held.key, at: version))
        var made = Made(value: actual, actual: actual)
        let sides = try sides(of: version), (bases, areApart) = (sides.bases, sides.areApart)
        if try !areApart && p.isActual && q.isActual && bases.allSatisfy({ try found($0, held.key, &table).isActual }) { return made }
        let known = try base(bases, held, &table, isActual: true), base = try base(bases, held, &table)
        if !SideValue.isSameReference(known.held, p.actual), !SideValue.isSameReference(known.held, q.actual) { outcome.isMet = true }
        let with = try held.merge(known.held, p.actual, q.actual, contested: known.contested)
        let came = with.value(newer: p.actual, older: q.actual)
        if try areApart || held.areSameDocument(came, actual) {
            let again = try held.merge(base.held, p.value, q.value, contested: base.contested)
            made.value = again.value(newer: p.value, older: q.value)
            if !again.records.isEmpty || !with.records.isEmpty { outcome.records = again.records }
        } else if try held.areSameDocument(actual, p.actual) {
            // An arbiter decided it, for the whole value.
            made.value = try held.areSameDocument(p.value, base.held) ? q.value : p.value
        } else if try held.areSameDocument(actual, q.actual) {
            made.value = try held.areSameDocument(q.value, base.held) ? p.value : q.value
        } else {
            let again = try held.merge(base.held, p.value, q.value, contested: base.contested)
            made.value = try held.changed(again.value(newer: p.value, older: q.value), by: (came, actual))
        }
        if try held.areSameDocument(made.value, actual) { made.value = actual }
        return made
    }
}

extension HeldMerge {
    /// Applies the change that a save made to another value.
    fileprivate func changed(_ value: SideValue?, by edit: (before: SideValue?, after: SideValue?)) throws -> SideValue? {
        let outcome = try undo(edit.before, to: value, in: edit.after)
        guard let result = outcome.value(newer: edit.after, older: value), let after = edit.after else { return nil }
        return try dated(result, as: after)
    }
}

/// Finds the versions that are seeds or their descendants, and that are heads or their ancestors. Orders each after its predecessors.
/// O(versions since the first seed).
private struct VersionsBetween: HistoryPass {
    private let first: UInt32, last: UInt32
    private let seeds: Set<UInt32>
    private var isLater: [Bool] = []
    private var stack: [UInt32], seen: Set<UInt32> = []

    init(_ seeds: [UInt32], _ heads: [UInt32]) {
        self.seeds = Set(seeds)
        first = seeds.min() ?? .max
        last = heads.max() ?? 0
        stack = heads
        seen = Set(heads)
    }

    mutating func go(_ steps: Int, in dag: History) -> [UInt32]? {
        guard first <= last else { return [] }
        let end = min(Int(last) + 1, dag.rows.count)
        var left = steps
        while Int(first) + isLater.count < end {
            if left <= 0 { return nil }
            left -= 1
            Work.versions.count()
            let at = first + UInt32(truncatingIfNeeded: isLater.count), row = dag.rows[Int(at)]
            isLater.append(seeds.contains(at) || isMet(row.first) || isMet(row.second))
        }
        while let at = stack.popLast() {
            if left <= 0 { stack.append(at); return nil }
            left -= 1
            Work.versions.count()
            guard isMet(at) else { seen.remove(at); continue }
            for side in [dag.rows[Int(at)].first, dag.rows[Int(at)].second] where isMet(side) && seen.insert(side).inserted {
                stack.append(side)
            }
        }
        return seen.sorted()
    }

    private func isMet(_ ordinal: UInt32) -> Bool {
        ordinal != History.none && ordinal >= first && Int(ordinal - first) < isLater.count && isLater[Int(ordinal - first)]
    }
}
