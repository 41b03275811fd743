extension Store {
    /// Returns the newest version without a branch that no other such version has among its ancestors; nil if there is none. A version
    /// with rules of an unknown number, which cannot be merged, is returned only if all have such rules.
    package func mostRecentHeadIDToMerge(_ arbiter: any MergeArbiter) throws -> VersionID? {
        let heads = try newestFirst(
            lock.withRead {
                try checkOpenLocked(); return Array(dag.unbranchedHeadOrdinals)
            }
        ) {}
        guard let byRules = arbiter as? RulesArbiter, byRules.given == nil else { return heads.first.map(versionID) }
        let known = heads.first { head in
            // If it cannot be read, the caller finds out when using it.
            (try? rules.schemaEntry(at: head).flatMap { try rules.problem(ofSchema: $0) })??.isUnknownMerge != true
        }
        return (known ?? heads.first).map(versionID)
    }
}

/// Selects the heads that can be merged: not those that are damaged or hold rules of an unknown number.
struct MergeableHeads {
    let store: Store

    /// Returns the heads without damaged versions and their descendants. What the heads add to `target` is read once, so that any number
    /// of damaged ones costs no more than the merge did.
    /// - Parameters:
    ///   - error: the error of a merge of all heads.
    ///   - withValues: whether to read their values, too. Mostly a merge needs none.
    /// - Throws: that error if no head can be left out, or the damage is in the history of `target`.
    func withoutDamaged(
        _ heads: [UInt32], _ target: UInt32, _ error: StoreError, withValues: Bool, _ control: PacedControl
    ) throws -> [UInt32] {
        let known = try store.damagedVersions(control.look), named = error.versionID.flatMap { try? VersionID($0) }
        var left: Set<UInt32> = []
        for ordinal in try store.walk(Brought(by: heads, beside: target), control.look) {
            try control.step(0)
            let (id, row) = store.lock.withRead { (store.dag.id(ordinal), store.dag.rows[Int(ordinal)]) }
            let isBuiltOnSuch = left.contains(row.first) || left.contains(row.second)
            let isLeft = try isBuiltOnSuch || id == named || known.contains(id) || !isReadable(row.place, withValues: withValues)
            if isLeft { left.insert(ordinal) }
        }
        let kept = heads.filter { !left.contains($0) }
        guard kept.count < heads.count else { throw error }
        Log.write(
            .warning,
            "\(heads.count - kept.count) heads of \(store.description) were not merged, and stay heads: they are damaged here, or descend "
                + "from damaged versions. \(error.message)")
        return try keeping(target, in: kept, control)
    }

    /// Returns the heads without those that hold rules of an unknown number. Any device can store such a version, which must not prevent
    /// the others from merging.
    /// - Throws: the error of the merge of all heads, if there are no such rules, or `target` holds some.
    func withoutUnknownRules(_ heads: [UInt32], _ target: UInt32, _ error: StoreError, _ control: PacedControl) throws -> [UInt32] {
        func areUnknown(_ head: UInt32) throws -> Bool {
            try control.step(0)
            return try store.rules.schemaEntry(at: head).flatMap { try store.rules.problem(ofSchema: $0) }?.isUnknownMerge ?? false
        }
        let kept = try heads.filter { try !areUnknown($0) }
        guard kept.count < heads.count, try store.isVirtual(target) || !areUnknown(target) else { throw error }
        Log.write(.warning, "\(heads.count - kept.count) heads of \(store.description) were not merged, and stay heads. \(error.message)")
        return try keeping(target, in: kept, control)
    }

    /// Returns these heads, and `target` if none of them descends from it, since the head that did may have been left out. Newest first.
    private func keeping(_ target: UInt32, in heads: [UInt32], _ control: PacedControl) throws -> [UInt32] {
        let isHeld =
            try store.isVirtual(target) || heads.contains(target)
            || !store.walk(Descendants(of: target, among: heads), control.look).isEmpty
        return try store.newestFirst(isHeld ? heads : heads + [target], control.look)
    }

    /// Returns whether the changes of a record can be read, and on request their values.
    private func isReadable(_ place: RecordPlace, withValues: Bool) throws -> Bool {
        if withValues { return try store.records.isWhole(place, withBlobs: true) }
        do { try store.records.forEachChange(place) { _, _ in } } catch let error as StoreError where error.code.isDamage { return false }
        return true
    }
}
