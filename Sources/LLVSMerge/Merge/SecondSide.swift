/// Merges by the changes of the second side alone.
extension Store {
    /// Returns the changes of a merge that a built-in arbiter decides, from the changes of the second side since the base. The first
    /// side's changes since need not be read, however many they are. Returns nil if this is not possible, or if the two may have equal
    /// states.
    ///
    /// It is possible if three conditions hold. Both sides reach the base on their chains of first predecessors. Timestamps never ran
    /// backwards, so values at the base are not newer than the base, and values stored since are newer. The first side adopted nothing
    /// older than the base. Then an entry of the first side is the base's if, and only if, it is not newer than the base, and changes of
    /// the first side alone stay.
    /// - Parameters:
    ///   - onFirst: the map of the first side, if it is known.
    ///   - passed: an id. The result is also nil if the second side changed it.
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
        // If many versions change the same ids again and again, maps need less memory.
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
        // If the first side removed an order, it stays: but the changes of that side are not read here.
        if try orders.hasLost(onFirst, since: atBase) { return nil }
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
            if EraseOrder.isNamed(by: key) {
                if p == nil { out.append(key, preserving: q.map { (versionID($0.version), $0) }) }
                continue
            }
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
