/// How old what versions preserve is: remembered while many merges are made in a row.
final class PreservedAges {
    private var oldest: [UInt32: UInt32] = [:]

    /// The oldest version, in canonical order, whose bytes a version preserves; nil when it preserves none.
    func oldest(_ ordinal: UInt32, in store: Store) throws -> UInt32? {
        if let known = oldest[ordinal] { return known == History.none ? nil : known }
        var named: [UInt32] = []
        try store.forEachRecordedChange(ordinal) { if $0.kind == .preserve, let entry = $0.entry { named.append(entry.version) } }
        let found = store.lock.withRead { named.min { store.dag.isNewer($1, $0) } }
        oldest[ordinal] = found ?? History.none
        return found
    }
}

/// Merging by what the second side did alone.
extension Store {
    /// The changes of a merge that a built-in arbiter decides, from what the second side recorded since the base: what
    /// the first side did since needs no look then, however much it is. Nil when that cannot be told, or when the two
    /// may have equal states.
    ///
    /// It can when both sides are behind the base on their chains of first predecessors; when timestamps never ran
    /// backwards (what prevails at the base is not newer than the base then, and what was stored since is newer); and
    /// when the first side brought over nothing that is older than the base. So an entry of the first side is the
    /// base's if, and only if, it is not newer than the base, and what the first side alone changed stays.
    func changesOfSecond(
        _ first: UInt32, _ second: UInt32, _ base: UInt32, _ arbiter: BuiltInArbiter, _ oursSide: Fork.Side, _ ages: PreservedAges
    ) throws -> MergeChanges? {
        let found = lock.withRead { () -> (Meeting, preserving: [UInt32])? in
            guard dag.rows[Int(first)].traits.contains(.isLaterThanAncestors), dag.rows[Int(second)].traits.contains(.isLaterThanAncestors),
                  let meeting = dag.meeting(first, second, leftAtMost: .max, rightAtMost: RecordedSides.mostChanges), meeting.at == base else { return nil }
            return (meeting, meeting.left.filter { dag.rows[Int($0)].traits.contains(.preserves) })
        }
        guard let (meeting, preserving) = found else { return nil }
        for ordinal in preserving {
            guard let oldest = try ages.oldest(ordinal, in: self) else { continue }
            if !lock.withRead({ dag.isNewer(oldest, base) }) { return nil }
        }
        let changed = try ChainChanges(meeting.right, in: self)
        let onFirst = try prevailing(at: first)
        var onBase: Prevailing?
        func atBase(_ key: UnsafeRawBufferPointer) throws -> MapEntry? {
            let found = try onBase ?? prevailing(at: base)
            onBase = found
            return found.lookup(key)
        }
        var out = MergeChanges()
        out.keep(changed)
        var differs = false
        for item in changed.items {
            let key = item.key, p = onFirst.lookup(key), q = item.entry
            if isSame(p, q) { continue }
            differs = true
            func wasThere() throws -> Bool { item.before == .unknown ? try atBase(key) != nil : item.before == .present }
            let isNewOnSecond: Bool
            if let q { isNewOnSecond = try isStoredLater(q, than: base) || !isSame(atBase(key), q) } else { isNewOnSecond = try wasThere() }
            guard isNewOnSecond else { continue }
            let isNewOnFirst: Bool
            if let p { isNewOnFirst = isStoredLater(p, than: base) } else { isNewOnFirst = try wasThere() }
            let takesSecond: Bool
            if let p, let q, isNewOnFirst || !isStoredLater(q, p), try haveSameBytes(p, q, key, nil, item.fingerprint) {
                takesSecond = isStoredLater(q, p)
            } else {
                takesSecond = !isNewOnFirst || arbiter.winner(p, q, oursSide: oursSide, isStoredLater: isStoredLater) == .second
            }
            if takesSecond { out.append(key, preserving: q.map { (versionID($0.version), $0) }) }
        }
        return differs ? out : nil
    }

    private func isStoredLater(_ entry: MapEntry, than version: UInt32) -> Bool { lock.withRead { dag.isNewer(entry.version, version) } }
}
