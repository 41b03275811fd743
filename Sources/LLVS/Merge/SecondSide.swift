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
    /// - Parameters:
    ///   - onFirst: what prevails at the first, when that is known.
    ///   - passed: an id; nil as well when the second side gave it a value.
    func changesOfSecond(
        _ first: UInt32, _ second: UInt32, _ base: UInt32, _ arbiter: BuiltInArbiter, _ oursSide: Fork.Side, _ line: MergedLine,
        onFirst known: Prevailing? = nil, passing passed: [UInt8] = [], _ control: PacedControl = .none
    ) throws -> MergeChanges? {
        let areOrdered = lock.withRead {
            dag.rows[Int(first)].traits.contains(.isLaterThanAncestors) && dag.rows[Int(second)].traits.contains(.isLaterThanAncestors)
        }
        guard areOrdered, let chain = try walk(ChainBehind(from: second, behind: base), control.look),
            try line.preservesNothingOlder(than: base, behindItUpTo: first, in: self, control)
        else { return nil }
        // Of many versions that change the same again and again, maps tell it in less memory.
        let isShort = MapPolicy.looksAtEach(versions: chain.versions.count, changes: chain.changes)
        let changed =
            isShort ? try ChainChanges(chain.versions, in: self, control) : try ChainChanges(from: base, to: second, in: self, control)
        let onFirst = try known ?? maps.prevailing(at: first)
        var onBase: Prevailing?
        func atBase(_ key: UnsafeRawBufferPointer) throws -> MapEntry? {
            let found = try onBase ?? maps.prevailing(at: base)
            onBase = found
            return try found.lookup(key)
        }
        var out = MergeChanges()
        out.keep(changed)
        try out.preallocate(changed.items.count)
        var differs = false
        for item in changed.items {
            try control.step()
            try Memory.check()
            let key = item.key, p = try onFirst.lookup(key), q = item.entry
            if q != nil, key.count == passed.count, key.elementsEqual(passed) { return nil }
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
            } else if !isNewOnFirst {
                takesSecond = true
            } else {
                let unchanged = try unchangedSide(BaseState(atBase(key)), p, q, key, nil, item.fingerprint)
                let winner = unchanged?.other ?? arbiter.winner(p, q, oursSide: oursSide, isStoredLater: isStoredLater)
                takesSecond = winner == .second
            }
            if takesSecond { out.append(key, preserving: q.map { (versionID($0.version), $0) }) }
        }
        return differs ? out : nil
    }

    private func isStoredLater(_ entry: MapEntry, than version: UInt32) -> Bool { lock.withRead { dag.isNewer(entry.version, version) } }
}
