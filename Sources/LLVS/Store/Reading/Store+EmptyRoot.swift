/// The empty root, where nothing was built on it yet: an empty state that can be read and compared in every store. It is no head
/// there, is not listed, counted or sent, and nothing is written for it.
extension Store {
    /// As `findOrdinal`, but the empty root is found in every store.
    func findReadable(_ id: VersionID) throws -> UInt32? { try findOrdinal(id) ?? (id == EmptyRoot.id ? virtualRoot() : nil) }

    /// Under which it is read. Its record is in memory alone.
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

    /// Whether the version is the empty root of a store in which nothing is built on it.
    func isVirtual(_ ordinal: UInt32) -> Bool { lock.withRead { dag.virtualRoot == ordinal } }
}
