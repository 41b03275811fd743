/// What recorded versions mean: whether two are the same, and whether one is what its id says.
extension Store {
    func identityDigest(_ version: Version, _ changes: some Collection<RecordChange>) -> [UInt8] {
        var hasher = IdentityHasher(.identity)
        hasher.add(version.id)
        hasher.add(predecessors: version.predecessors)
        hasher.add(timestamp: version.timestamp)
        hasher.add(version.metadata)
        hasher.add(changeCount: changes.count)
        for change in changes {
            if change.hasData { change.digest.withUnsafeBytes { hasher.add(setting: change.id, size: change.size, digest: $0) } }
            else { hasher.add(change.kind, change.id, stored: change.storedVersion) }
        }
        return hasher.finish()
    }

    func identityDigest(of id: VersionID) throws -> [UInt8] {
        try identityDigest(ofRecordAt: place(of: requireOrdinal(id)))
    }

    /// - Parameter control: looked at for each change.
    func identityDigest(ofRecordAt place: RecordPlace, _ control: PacedControl = .none) throws -> [UInt8] {
        let header = try readHeader(place)
        var hasher = IdentityHasher(.identity)
        hasher.add(header.id)
        hasher.add(predecessors: header.predecessors)
        hasher.add(timestamp: header.timestamp)
        hasher.add(header.metadata)
        hasher.add(changeCount: header.changeCount)
        try forEachDigest(place) { entry, header, digest in
            try control.step(0, bytes: entry.size)
            if let digest { hasher.add(setting: entry.id, size: entry.size, digest: digest) }
            else { hasher.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil) }
        }
        return hasher.finish()
    }

    /// Calls with each change of a record, and for inserts and updates with the SHA-256 of the value: the one that it carries, or computed.
    func forEachDigest(_ place: RecordPlace, _ body: (RecordTable.Entry, RecordHeader, UnsafeRawBufferPointer?) throws -> Void) throws {
        try forEachChange(place) { entry, header in
            guard entry.kind == .insert || entry.kind == .update else { return try body(entry, header, nil) }
            if let digest = entry.digest { return try Array(digest).withUnsafeBytes { try body(entry, header, $0) } }
            let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
            let digest = try withBody(place, located, id: entry.id, stored: header.id) { SHA256.words($0) }
            try withUnsafeBytes(of: digest) { try body(entry, header, $0) }
        }
    }

    /// Whether a record is what its id says. Of a merge as they were made before the timestamp is looked at where its predecessor is known.
    /// - Throws: what reading throws.
    func vouching(ofRecordAt place: RecordPlace) throws -> Vouching {
        let header = try readHeader(place)
        guard var check = ContentCheck(header.version, changeCount: header.changeCount) else { return .free }
        guard header.id.text == nil else { return .none }
        try forEachDigest(place) { entry, header, digest in
            if let digest { check.add(setting: entry.id, size: entry.size, digest: digest) }
            else { check.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil) }
        }
        return settled(check.finish(), header.version)
    }

    /// The id of a merge as they were made before does not cover its timestamp, which follows from its first predecessor.
    func settled(_ vouching: Vouching, _ version: Version) -> Vouching {
        guard vouching == .oldMerge, let first = version.predecessors.first,
              let before = lock.withRead({ dag.ordinalIncludingStaged(of: first).map { dag.rows[Int($0)].timestamp } }) else { return vouching }
        return version.timestamp.bitPattern == Clock.after(before).bitPattern ? .oldMerge : .none
    }
}
