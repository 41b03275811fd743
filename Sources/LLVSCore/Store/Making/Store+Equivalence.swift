/// Compares versions by their resulting states, however their changes are recorded.
extension Store {
    /// The state that a change leaves for its id.
    private enum Outcome: Equatable {
        case bytes(size: Int, digest: [UInt8])
        case preserved(VersionID)
        case removed
    }

    /// Returns whether changes lead to the same state as those of a record, both on top of `first`. Other implementations record removals
    /// of absent values, or preserves of prevailing ones. For the same change, one records `remove` and another records `preserveRemoval`.
    /// - Complexity: O(changes × log values), and reads the record. Only needed for versions whose digests differ.
    func haveSameOutcome(_ changes: some Collection<RecordChange>, _ place: RecordPlace, on first: UInt32) throws -> Bool {
        let root = first == History.none ? nil : try maps.map(first)
        var one: [(ValueID, Outcome)] = [], other: [(ValueID, Outcome)] = []
        for change in changes {
            let outcome = outcome(change.kind, at: root?.lookup(change.id), stored: change.storedVersion) {
                .bytes(size: change.size, digest: change.digest)
            }
            if let outcome { one.append((ValueID(unchecked: change.id), outcome)) }
        }
        try records.forEachChange(place) { entry, header in
            let stored = entry.kind == .preserve ? header.dependencies[entry.dependency] : nil
            let outcome = try outcome(entry.kind, at: root?.lookup(entry.id), stored: stored) {
                if let digest = entry.digest { return .bytes(size: entry.size, digest: Array(digest)) }
                let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
                return .bytes(
                    size: entry.size, digest: try records.withBody(place, located, id: entry.id, stored: header.id) { SHA256.digest($0) })
            }
            if let outcome { other.append((ValueID(unchecked: entry.id), outcome)) }
        }
        return one.elementsEqual(other) { $0.0 == $1.0 && $0.1 == $1.1 }
    }

    /// Returns nil for a change that leaves the state as it is.
    private func outcome(_ kind: Value.Change.Kind, at present: MapEntry?, stored: VersionID?, bytes: () throws -> Outcome) rethrows
        -> Outcome?
    {
        switch kind {
        case .insert, .update: return try bytes()
        case .remove, .preserveRemoval: return present == nil ? nil : .removed
        case .preserve:
            guard let stored else { return nil }
            if let present, versionID(present.version) == stored { return nil }
            return .preserved(stored)
        }
    }
}
