/// Compares the content of recorded versions, and checks it against their ids.
extension Store {
    @_specialize(where Changes == [RecordChange]) // for merges, which are in another module
    package func identityDigest<Changes: Collection<RecordChange>>(_ version: Version, _ changes: Changes) -> [UInt8] {
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

    package func identityDigest(of id: VersionID) throws -> [UInt8] {
        try records.identityDigest(place(of: requireOrdinal(id)))
    }

    /// Returns whether a record is what its id claims. For a merge in the old form, the timestamp is checked if its predecessor is known.
    /// - Throws: the errors of reading.
    func vouching(ofRecordAt place: RecordPlace) throws -> Vouching {
        let (vouching, version) = try records.vouching(place)
        return settled(vouching, version)
    }

    /// The id of a merge in the old form does not cover its timestamp, which follows from its first predecessor.
    func settled(_ vouching: Vouching, _ version: Version) -> Vouching {
        guard vouching == .oldMerge, let first = version.predecessors.first,
            let before = lock.withRead({ dag.ordinalIncludingStaged(of: first).map { dag.rows[Int($0)].timestamp } })
        else { return vouching }
        return version.timestamp.bitPattern == Clock.after(before).bitPattern ? .oldMerge : .none
    }
}
