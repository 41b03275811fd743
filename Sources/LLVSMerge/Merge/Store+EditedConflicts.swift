/// A conflict whose merge result still prevails at a version.
struct StandingConflict {
    let conflict: Conflict
    let merge: UInt32
    /// Whether the value is still the merge's, so that it was not edited since.
    let isUnchanged: Bool
}

/// Finds places of conflicts that were edited since, though they hold the merge's result again.
struct EditedConflicts {
    let store: Store

    /// Values whose later versions are read together: of one id, and by the same rules.
    private struct Group: Hashable {
        let id: ValueID
        let schema: UInt32?
    }

    /// Reads the value of one id at versions. Caches the last ones.
    private struct TablesReader {
        let store: Store
        let id: ValueID
        let rules: ValueRules
        let control: PacedControl
        private var last: [(stored: UInt32?, tables: DocumentTables)] = []
        /// The total size of what was read.
        private(set) var bytes = 0

        init(_ store: Store, _ id: ValueID, _ rules: ValueRules, _ control: PacedControl) {
            self.store = store; self.id = id; self.rules = rules; self.control = control
        }

        mutating func tables(at version: UInt32) throws -> DocumentTables {
            try id.bytes.withUnsafeBytes { key in
                let entry = try store.maps.entry(key, at: version)
                if let known = last.first(where: { $0.stored == entry?.version }) { return known.tables }
                Work.documents.count()
                let check = { [control] in try control.step(0, bytes: OperationControl.bytesPerCheck) }
                let merge = DocumentMerge(rules: rules, check: check), arena = ByteArena()
                var count = 0
                let text = try entry.map { entry in
                    try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) {
                        count = $0.count
                        try Memory.expect(count, "Finding open conflicts")
                        return try merge.parsed(arena.copy($0))
                    }
                }
                bytes += count
                let found = DocumentTables(text, rules, bytes: arena, work: DocumentControl(check))
                // Three suffice: a value after a change, the one before it, and the one from which both sides of a merge began.
                if last.count == 3 { last.removeFirst() }
                last.append((entry?.version, found))
                return found
            }
        }
    }

    /// The limits for the merge results whose places are checked in one pass: their number, and their bytes if there are several.
    private static let mostMergesAtOnce = 64, mostBytesAtOnce = 1 << 20

    /// Returns the indexes of the conflicts whose places were edited since, up to a version. An edit beside a merge does not resolve its
    /// conflict.
    func edited(_ found: [StandingConflict], upTo head: UInt32, _ control: PacedControl) throws -> Set<Int> {
        var groups: [Group: [Int]] = [:], order: [Group] = []
        for (i, one) in found.enumerated() where !one.isUnchanged {
            try control.step()
            let group = Group(id: one.conflict.id, schema: try store.rules.schemaEntry(at: one.merge)?.version)
            if groups[group] == nil { order.append(group) }
            groups[group, default: []].append(i)
        }
        var edited: Set<Int> = [], later: (merges: [UInt32], found: LaterVersions.Found)?
        for group in order {
            var left = (groups[group] ?? [])[...]
            guard let first = left.first else { continue }
            let rules = try OpenConflicts(store: store).valueRules(for: group.id, at: found[first].merge)
            while let first = left.first {
                var reader = TablesReader(store, group.id, rules, control), made: [DocumentTables] = [], merges: [UInt32] = []
                var asked: [(index: Int, merge: Int)] = []
                while let next = left.first {
                    let merge = found[next].merge
                    if merges.last != merge {
                        guard merges.isEmpty || (merges.count < Self.mostMergesAtOnce && reader.bytes < Self.mostBytesAtOnce) else { break }
                        made.append(try reader.tables(at: merge))
                        merges.append(merge)
                    }
                    asked.append((next, merges.count - 1))
                    left.removeFirst()
                }
                let oldest = merges.min() ?? found[first].merge
                let versions = try changes(of: group.id, since: oldest, upTo: head, control)
                if versions.isEmpty { continue }
                if later?.merges != merges {
                    later = (merges, try store.walk(LaterVersions(of: merges, upTo: head), control.look))
                }
                for version in versions where !asked.isEmpty {
                    try control.step()
                    try Memory.check()
                    let behind = later?.found.ancestors(of: version) ?? 0
                    guard asked.contains(where: { behind & 1 << UInt64($0.merge) != 0 }),
                        let before = store.lock.withRead({ store.dag.predecessors(version) }).first,
                        try store.recordedKind(of: group.id, in: version) != nil
                    else { continue }
                    let was: DocumentTables, now: DocumentTables
                    do { (was, now) = (try reader.tables(at: before), try reader.tables(at: version)) } catch let error as StoreError
                        where error.code.isGone
                    {
                        // What was edited is not known.
                        continue
                    }
                    try asked.removeAll { one in
                        guard behind & 1 << UInt64(one.merge) != 0 else { return false }
                        try control.step()
                        let conflict = found[one.index].conflict, merged = made[one.merge]
                        let before = try DocumentPlace(of: conflict.record, at: conflict.place, in: was, made: merged)
                        let after = try DocumentPlace(of: conflict.record, at: conflict.place, in: now, made: merged)
                        if try after.stands(as: before, conflict.record, isPart: conflict.isPart) { return false }
                        edited.insert(one.index)
                        return true
                    }
                }
            }
        }
        return edited
    }

    /// Returns the versions with one predecessor that may have changed a value, up to a version, newest first, without those before
    /// `oldest`.
    private func changes(of id: ValueID, since oldest: UInt32, upTo head: UInt32, _ control: PacedControl) throws -> [UInt32] {
        // Predecessors have lower ordinals.
        let all = try store.versionsThatMayHaveChanged(id).filter { $0 > oldest && $0 <= head }
        let single = store.lock.withRead { all.filter { store.dag.predecessors($0).count == 1 } }
        if single.isEmpty { return [] }
        let behind = try store.walk(Ancestors(of: [head], among: single), control.look)
        return single.filter { $0 == head || behind.contains($0) }.sorted(by: >)
    }
}
