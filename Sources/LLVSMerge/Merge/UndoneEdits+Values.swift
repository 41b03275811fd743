/// The values without what was undone.
extension UndoneEdits {
    /// Thrown if more versions must be recomputed: a merge joined lines, one of which did not know of an undo on the other.
    struct MoreIsUndone: Error {}

    /// Recomputes one id. Returns its values by version, and the outcome.
    func made(_ held: HeldMerge) throws -> (table: [UInt32: Made], outcome: Outcome) {
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
    func origin(of given: UInt32) -> UInt32 {
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

    func found(_ given: UInt32, _ key: UnsafeRawBufferPointer, _ table: inout [UInt32: Made]) throws -> Made {
        let version = origin(of: given)
        if let known = table[version] { return known }
        Work.undoneValues.count()
        let entry = SideValue(try store.maps.entry(key, at: version)), made = Made(value: entry, actual: entry)
        table[version] = made
        return made
    }

    func base(_ bases: [UInt32], _ held: HeldMerge, _ table: inout [UInt32: Made], isActual: Bool = false) throws
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

    func made(_ held: HeldMerge, _ outcome: inout Outcome) throws -> [UInt32: Made] {
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
    func stepsFor(_ held: HeldMerge, _ hash: UInt32, _ touched: Set<Int>) -> [Int] {
        let more = ids.count.multipliedReportingOverflow(by: candidates.forForms.count)
        let areForms = held.hasForms && !more.overflow && more.partialValue <= workLimit
        return (touched + candidates.always + (areForms ? candidates.forForms : candidates.merging[hash] ?? [])).sorted()
    }

    /// Returns whether a version that did not change the id has the values of its first predecessor, with and without the undone saves.
    func changesNothing(_ step: Step, _ first: UInt32, _ held: HeldMerge, _ table: inout [UInt32: Made]) throws -> Bool {
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
    func sides(of merge: UInt32) throws -> Sides {
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
    func changed(by versions: [UInt32]) throws -> Set<UInt32>? {
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

    func merge(
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
