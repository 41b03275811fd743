/// Fetching one value, the shortest way.
extension Store {
    /// What a fetch found.
    @frozen public enum Fetched: Sendable {
        /// No value prevails under the id.
        case absent
        /// Its bytes were copied.
        case copied(size: Int, storedVersion: VersionID)
    }

    /// Copies the bytes of the value that prevails at a version to where the caller says. When it throws, what is there
    /// may not be used: a large value is checked where it is wanted, so that it is in memory once.
    /// - Parameter reserve: called once with the size of the value, or not at all; answers where its bytes go (as many must
    ///   fit), or nil to have none. Called with locks held: it must not call the store, nor wait.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, and what `reserve` throws.
    /// - Complexity: O(length of the id + log values + size), and one read when the bytes are not in memory.
    public func fetch(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws -> Fetched {
        if let fetched = try fetchQuickly(id, at: version, into: reserve) { return fetched }
        guard let located = try locate(id, at: version) else { return .absent }
        return .copied(size: try copy(located, id, into: reserve), storedVersion: located.stored)
    }

    /// A large value goes straight to where it is wanted, and is not read at all when it is wanted nowhere. Answers its size.
    private func copy(_ located: Located, _ id: UnsafeRawBufferPointer, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws -> Int {
        var entry = located.entry
        if entry.bodyOffset == 0 || entry.size == MapEntry.unknownSize {
            guard let found = try records.findChange(located.place, id), let known = MapEntry(version: entry.version, found) else {
                throw records.damaged(located.place, "does not hold a value that another version says it does", version: located.stored, value: id)
            }
            if let blob = found.body.blob {
                try records.check(blob, found.body, located.place, id: id, stored: located.stored)
                if let target = try reserve(found.body.size) {
                    try records.readBlob(blob, at: 0, into: UnsafeMutableRawBufferPointer(start: target, count: found.body.size), id: id, stored: located.stored)
                }
                return found.body.size
            }
            entry = known
        }
        if Int(entry.size) > StoreBlocks.largest {
            if let target = try reserve(Int(entry.size)) {
                try records.withLargeBody(located.place, entry, id: id, stored: located.stored) {
                    try $0.read(whole: UnsafeMutableRawBufferPointer(start: target, count: Int(entry.size)))
                }
            }
            return Int(entry.size)
        }
        return try records.withBody(located.place, entry, id: id, stored: located.stored) { bytes in
            if let target = try reserve(bytes.count) { UnsafeMutableRawBufferPointer(start: target, count: bytes.count).copyMemory(from: bytes) }
            return bytes.count
        }
    }

    private enum Quick {
        /// To be fetched as usual.
        case unknown
        case fetched(Fetched)
        /// Not in memory, but where it is, is known.
        case missing(MapEntry, RecordPlace, VersionID)
    }

    /// As `fetch`, for small values, when the map is in memory and the bytes are there too, or one read away in a segment
    /// that is open; nil when that is not so, and nothing was done.
    ///
    /// One look under the store's lock for readers, and no write to memory that other readers look at: it counts no
    /// reference, allocates nothing, and never calls the host.
    public func fetchQuickly(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws -> Fetched? {
        try ValueID.check(id)
        let quick: Quick = try lock.withRead {
            try checkOpenLocked()
            return try sharedHistory.dagReference._withUnsafeGuaranteedRef { dag in
                guard let ordinal = dag.ordinal(of: version) else { return .unknown }
                let (isHere, root) = maps.root(of: ordinal)
                guard isHere else { return .unknown }
                guard let entry = root?._withUnsafeGuaranteedRef({ $0.lookup(id) }) else { return .fetched(.absent) }
                guard entry.bodyOffset != 0, entry.size != MapEntry.unknownSize else { return .unknown }
                let place = dag.rows[Int(entry.version)].place, size = Int(entry.size), stored = dag.id(entry.version)
                guard let body = records.blocks.bytes(place, from: entry.bodyOffset) else { return .missing(entry, place, stored) }
                guard let bytes = RecordTable.body(body, size: size, id: id, version: stored), bytes.count == size else { return .unknown }
                if let target = try reserve(size) { UnsafeMutableRawBufferPointer(start: target, count: size).copyMemory(from: bytes) }
                return .fetched(.copied(size: size, storedVersion: stored))
            }
        }
        switch quick {
        case .unknown: return nil
        case .fetched(let fetched): return fetched
        case .missing(let entry, let place, let stored):
            let size = Int(entry.size)
            guard records.blocks.readsSegments, size <= Store.quickSize else { return nil }
            return try withScratch(RecordTable.bodyHeaderSize + size) { buffer in
                guard try records.blocks.readMissed(place, at: entry.bodyOffset, into: buffer),
                      let bytes = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: stored), bytes.count == size else { return nil }
                if let target = try reserve(size) { UnsafeMutableRawBufferPointer(start: target, count: size).copyMemory(from: bytes) }
                return .copied(size: size, storedVersion: stored)
            }
        }
    }

    /// Larger values cost so much to copy that it does not matter how they are found.
    private static let quickSize = 4_000
}
