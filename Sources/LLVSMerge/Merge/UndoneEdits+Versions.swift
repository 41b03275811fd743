/// Which versions matter: those that were undone, those that undid them, and those that build on them.
extension UndoneEdits {
    /// Returns the ancestors that an undo or a redo names. Returns none if the version counts as a save: it names no ancestor, or it names
    /// a merge.
    func targets(of version: UInt32) throws -> [UInt32] {
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
    func lookUp(_ versions: [UInt32], _ near: [UInt32] = []) throws {
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
    func mayMeetMerges(_ acting: [UInt32], upTo head: UInt32) throws -> Bool {
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
    func changedIDs(_ versions: [UInt32]) throws -> Set<ValueID> {
        var ids: Set<ValueID> = [], open = versions, seen = Set(versions)
        try lookUp(versions)
        while let version = open.popLast() {
            try control.step()
            try store.maps.forEachRecordedChange(version) { ids.insert(ValueID(unchecked: $0.key)) }
            for target in try targets(of: version) where seen.insert(target).inserted { open.append(target) }
        }
        return ids
    }

    func note(_ ids: Set<ValueID>) {
        isAbout = ids
        self.ids = ids.sorted()
        hashes = Set(ids.map { $0.bytes.withUnsafeBytes(History.keyHash) })
    }

    /// Returns whether a version, or a version that it undoes, may have changed one of the ids.
    func mayMatter(_ version: UInt32) throws -> Bool {
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
    func add(_ apart: UndosApart.Found) throws -> Bool {
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
    func find() throws {
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

    func findSteps() throws {
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
    func findCandidates() throws {
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
