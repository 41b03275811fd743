/// Merging heads where some of them are damaged here, or hold rules that nobody knows: the others are merged without them.
extension Store {
    /// The heads without those that are a damaged version, or are built on one. What they bring beside `target` is looked at once, so that
    /// any number of damaged ones costs no more than the merge did.
    /// - Parameters:
    ///   - error: what a merge of all of them met.
    ///   - withValues: whether their values are read as well. Mostly a merge needs none.
    /// - Throws: that error when none can be left out, or the damage is behind `target`.
    func withoutDamaged(
        _ heads: [UInt32], _ target: UInt32, _ error: StoreError, withValues: Bool, _ control: PacedControl
    ) throws -> [UInt32] {
        let known = try damagedVersions(control.look), named = error.versionID.flatMap { try? VersionID($0) }
        var left: Set<UInt32> = []
        for ordinal in try walk(Brought(by: heads, beside: target), control.look) {
            try control.step(0)
            let (id, row) = lock.withRead { (dag.id(ordinal), dag.rows[Int(ordinal)]) }
            let isBuiltOnSuch = left.contains(row.first) || left.contains(row.second)
            let isLeft = try isBuiltOnSuch || id == named || known.contains(id) || !isReadable(row.place, withValues: withValues)
            if isLeft { left.insert(ordinal) }
        }
        let kept = heads.filter { !left.contains($0) }
        guard kept.count < heads.count else { throw error }
        Log.write(
            .warning,
            "\(heads.count - kept.count) heads of \(description) were not merged, and stay heads: they are damaged here, or built on what "
                + "is. \(error.message)")
        return try keeping(target, in: kept, control)
    }

    /// The heads without those that hold rules of a number that is not known here. Anybody can make such a version: it is not to keep the
    /// others from merging.
    /// - Throws: the error that the merge of all of them met, when that is not why, or when `target` holds such rules.
    func withoutUnknownRules(_ heads: [UInt32], _ target: UInt32, _ error: StoreError, _ control: PacedControl) throws -> [UInt32] {
        func areUnknown(_ head: UInt32) throws -> Bool {
            try control.step(0)
            return try schemaEntry(at: head).flatMap { try problem(ofSchema: $0) }?.isUnknownMerge ?? false
        }
        let kept = try heads.filter { try !areUnknown($0) }
        guard kept.count < heads.count, try isVirtual(target) || !areUnknown(target) else { throw error }
        Log.write(.warning, "\(heads.count - kept.count) heads of \(description) were not merged, and stay heads. \(error.message)")
        return try keeping(target, in: kept, control)
    }

    /// The newest version without a branch that no other such version has among its ancestors; nil when there is none. One that could not
    /// be merged with others, since it holds rules of a number that is not known here, only when all do.
    func mostRecentHeadIDToMerge(_ arbiter: any MergeArbiter) throws -> VersionID? {
        let heads = try newestFirst(
            lock.withRead {
                try checkOpenLocked(); return Array(dag.unbranchedHeadOrdinals)
            }
        ) {}
        guard let byRules = arbiter as? RulesArbiter, byRules.given == nil else { return heads.first.map(versionID) }
        let known = heads.first { head in
            // What cannot be read is looked at by whoever takes it.
            (try? schemaEntry(at: head).flatMap { try problem(ofSchema: $0) })??.isUnknownMerge != true
        }
        return (known ?? heads.first).map(versionID)
    }

    /// These, and `target` unless one of them is built on it: it may have been left to a head that is not among them. Newest first.
    private func keeping(_ target: UInt32, in heads: [UInt32], _ control: PacedControl) throws -> [UInt32] {
        let isHeld = try isVirtual(target) || heads.contains(target) || !walk(Descendants(of: target, among: heads), control.look).isEmpty
        return try newestFirst(isHeld ? heads : heads + [target], control.look)
    }

    /// Whether the changes that a record tells of can be read, and their values when asked for.
    private func isReadable(_ place: RecordPlace, withValues: Bool) throws -> Bool {
        if withValues { return try records.isWhole(place, withBlobs: true) }
        do { try records.forEachChange(place) { _, _ in } } catch let error as StoreError where error.code.isDamage { return false }
        return true
    }
}
