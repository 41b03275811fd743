/// Merging heads where some of them are damaged here: the others are merged without them.
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
        var kept = heads.filter { !left.contains($0) }
        guard kept.count < heads.count else { throw error }
        Log.write(
            .warning,
            "\(heads.count - kept.count) heads of \(description) were not merged, and stay heads: they are damaged here, or built on what "
                + "is. \(error.message)")
        // It may have been left to a head that was built on it.
        if !isVirtual(target), !kept.contains(target), try walk(Descendants(of: target, among: kept), control.look).isEmpty {
            kept.append(target)
        }
        return try newestFirst(kept, control.look)
    }

    /// Whether the changes that a record tells of can be read, and their values when asked for.
    private func isReadable(_ place: RecordPlace, withValues: Bool) throws -> Bool {
        if withValues { return try records.isWhole(place, withBlobs: true) }
        do { try records.forEachChange(place) { _, _ in } } catch let error as StoreError where error.code.isDamage { return false }
        return true
    }
}
