/// What recorded versions mean: whether two are the same, and whether one is what its id says.
extension Store {
    func identityDigest(_ version: Version, _ changes: some Collection<RecordChange>) -> [UInt8] {
        var hasher = IdentityHasher(.identity)
        hasher.add(version, changeCount: changes.count)
        for change in changes {
            if change.hasData {
                change.digest.withUnsafeBytes { hasher.add(setting: change.id, size: change.size, digest: $0) }
            } else {
                hasher.add(change.kind, change.id, stored: change.storedVersion)
            }
        }
        return hasher.finish()
    }

    func identityDigest(of id: VersionID) throws -> [UInt8] {
        try records.identityDigest(place(of: requireOrdinal(id)))
    }

    /// Whether a record is what its id says. Of a merge as they were made before the timestamp is looked at where its predecessor is known.
    /// - Throws: what reading throws.
    func vouching(ofRecordAt place: RecordPlace) throws -> Vouching {
        let (vouching, version) = try records.vouching(place)
        return settled(vouching, version)
    }

    /// The id of a merge as they were made before does not cover its timestamp, which follows from its first predecessor.
    func settled(_ vouching: Vouching, _ version: Version) -> Vouching {
        guard vouching == .oldMerge, let first = version.predecessors.first,
            let before = lock.withRead({ dag.ordinalIncludingStaged(of: first).map { dag.rows[Int($0)].timestamp } })
        else { return vouching }
        return version.timestamp.bitPattern == Clock.after(before).bitPattern ? .oldMerge : .none
    }
}
