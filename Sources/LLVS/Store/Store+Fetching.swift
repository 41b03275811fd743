/// Fetching one value, the shortest way.
extension Store {
    /// What a fetch found.
    @frozen public enum Fetched: Sendable {
        /// No value prevails under the id.
        case absent
        /// Its bytes were copied.
        case copied(size: Int, storedVersion: VersionID)
    }

    /// Copies the bytes of the value that prevails at a version to where the caller says, once they are known to be whole.
    /// - Parameter reserve: called once with the size of the value, or not at all; answers where its bytes go (as many must
    ///   fit), or nil to have none. Called with locks held: it must not call the store, nor wait.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, and what `reserve` throws.
    /// - Complexity: O(length of the id + log values + size), and one read when the bytes are not in memory.
    public func fetch(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws -> Fetched {
        if let fetched = try fetchFromMemory(id, at: version, into: reserve) { return fetched }
        guard let located = try locate(id, at: version) else { return .absent }
        return try withBody(located.place, located.entry, id: id, stored: located.stored) { bytes in
            if let target = try reserve(bytes.count) { UnsafeMutableRawBufferPointer(start: target, count: bytes.count).copyMemory(from: bytes) }
            return .copied(size: bytes.count, storedVersion: located.stored)
        }
    }

    /// As `fetch`, when the map and the bytes are in memory; nil when they are not, and nothing was done.
    ///
    /// One pass under the store's lock for readers, which neither calls the storage nor writes to memory that other
    /// readers look at: it allocates nothing and counts no reference.
    public func fetchFromMemory(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws -> Fetched? {
        try ValueID.check(id)
        return try lock.withRead {
            try checkOpenLocked()
            return try dagReference._withUnsafeGuaranteedRef { dag in
                guard let ordinal = dag.ordinal(of: version) else { return nil }
                let (isHere, root) = maps.root(of: ordinal)
                guard isHere else { return nil }
                guard let entry = root?._withUnsafeGuaranteedRef({ $0.lookup(id) }) else { return .absent }
                guard entry.bodyOffset != 0, entry.size != MapEntry.unknownSize,
                      let body = blocks.bytes(dag.rows[Int(entry.version)].place, from: entry.bodyOffset) else { return nil }
                let size = Int(entry.size), stored = dag.id(entry.version)
                guard let bytes = RecordTable.body(body, size: size, id: id, version: stored), bytes.count == size else { return nil }
                if let target = try reserve(size) { UnsafeMutableRawBufferPointer(start: target, count: size).copyMemory(from: bytes) }
                return .copied(size: size, storedVersion: stored)
            }
        }
    }
}
