/// The empty root before it has descendants: an empty state that can be read and compared in every store. Then it is not a head, is not
/// listed, counted or sent, and nothing is written for it.
extension Store {
    /// The same as `findOrdinal`, but finds the empty root in every store.
    func findReadable(_ id: VersionID) throws -> UInt32? { try findOrdinal(id) ?? (id == EmptyRoot.id ? virtualRoot() : nil) }

    /// Returns the ordinal of the virtual empty root. Its record is only in memory.
    private func virtualRoot() throws -> UInt32 {
        if let known = lock.withRead({ dag.virtualRoot }) { return known }
        var draft = Draft(version: EmptyRoot.version, first: History.none, second: History.none, changes: [])
        let (place, checksum) = try commits.encoders.with { encoder -> (RecordPlace, UInt32) in
            try encoder.encode(draft.version, draft.changes, blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
            return (records.provisional.add(try encoder.bytes(draft.changes)), encoder.checksum)
        }
        return lock.withWrite {
            if let known = dag.virtualRoot {
                records.provisional.remove(place)
                return known
            }
            let ordinal = appendHidden(&draft)
            dag.makeVirtual(ordinal, place, checksum)
            return ordinal
        }
    }

    /// Returns whether the version is the empty root of a store in which it has no descendants.
    package func isVirtual(_ ordinal: UInt32) -> Bool { lock.withRead { dag.virtualRoot == ordinal } }
}
