/// Fetches single values on the shortest path.
extension Store {
    /// The result of a fetch.
    package enum Fetched: Sendable {
        /// No value prevails under the id.
        case absent
        /// Its bytes were copied.
        case copied(size: Int, storedVersion: VersionID)
    }

    /// Copies the bytes of the value that prevails at a version to memory of the caller. After an error that memory must not be used: a
    /// large value is checked in place, so that it is in memory only once.
    /// - Parameters:
    ///   - id: the value's id, as UTF-8.
    ///   - version: the version to read.
    ///   - reserve: called at most once, with the size of the value. It returns memory for that many bytes, or nil for none. It is called
    ///     with locks held, and must neither call the store nor wait.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, and what `reserve` throws.
    /// - Complexity: O(length of the id + log values + size), and one read when the bytes are not in memory.
    package func fetch(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws
        -> Fetched
    {
        switch try fetchQuickly(id, at: version, into: reserve) {
        case .fetched(let fetched): return fetched
        case .unfinished(let unfinished): return try fetch(id, at: version, going: unfinished, into: reserve)
        }
    }

    /// Continues after `fetchQuickly`, and does not check again whether the map of the version is in memory.
    package func fetch(
        _ id: UnsafeRawBufferPointer, at version: VersionID, going unfinished: Unfinished,
        into reserve: (Int) throws -> UnsafeMutableRawPointer?
    ) throws -> Fetched {
        guard let located = try unfinished.located ?? locateWithoutMap(id, at: unfinished.ordinal ?? requireOrdinal(version)) else {
            return .absent
        }
        return .copied(size: try copy(located, id, into: reserve), storedVersion: located.stored)
    }

    /// Copies a value and returns its size. A large value is read straight into the caller's memory, or not at all if there is none.
    private func copy(_ located: Located, _ id: UnsafeRawBufferPointer, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws
        -> Int
    {
        var entry = located.entry
        if entry.bodyOffset == 0 || entry.size == MapEntry.unknownSize {
            guard let found = try records.findChange(located.place, id), let known = MapEntry(version: entry.version, found) else {
                throw records.damaged(
                    located.place, "lacks a value that another version names", version: located.stored, value: id)
            }
            if found.body.isHollow { throw records.forgotten(id, located.stored) }
            if found.body.blob != nil {
                var target: UnsafeMutableRawPointer??
                func read(_ found: Records.FoundChange, _ place: RecordPlace) throws {
                    guard let blob = found.body.blob else { throw records.forgotten(id, located.stored) }
                    try records.check(blob, found.body, place, id: id, stored: located.stored)
                    let memory = try target ?? reserve(found.body.size)
                    target = .some(memory)
                    guard let memory else { return }
                    try records.readBlob(
                        blob, at: 0, into: UnsafeMutableRawBufferPointer(start: memory, count: found.body.size), id: id,
                        stored: located.stored)
                }
                do { try read(found, located.place) } catch let error as StoreError where error.code.isDamage {
                    // Another handle may have erased the value.
                    try records.again(located.place, after: error) { place in
                        guard let now = try records.findChange(place, id, anew: true), now.body.size == found.body.size else { throw error }
                        try read(now, place)
                    }
                }
                return found.body.size
            }
            entry = known
        }
        if Int(entry.size) > StoreBlocks.largest {
            guard let start = try reserve(Int(entry.size)) else { return Int(entry.size) }
            let target = UnsafeMutableRawBufferPointer(start: start, count: Int(entry.size))
            let isRead = try records.withLargeBody(located.place, entry, id: id, stored: located.stored) { body in
                if !body.isDifference { try body.read(whole: target) }
                return !body.isDifference
            }
            if isRead { return target.count }
            return try records.withBody(located.place, entry, id: id, stored: located.stored, into: target) { bytes in
                guard bytes.count == target.count else {
                    throw records.damaged(
                        located.place, "has a value of another size than was recorded", version: located.stored, value: id)
                }
                if bytes.baseAddress != UnsafeRawPointer(start) { target.copyMemory(from: bytes) }
                return bytes.count
            }
        }
        return try records.withBody(located.place, entry, id: id, stored: located.stored) { bytes in
            if let target = try reserve(bytes.count) {
                UnsafeMutableRawBufferPointer(start: target, count: bytes.count).copyMemory(from: bytes)
            }
            return bytes.count
        }
    }

    /// The result of `fetchQuickly`.
    package enum Quick: Sendable {
        /// The fetch is complete.
        case fetched(Fetched)
        /// Fetching takes longer; the next step continues from the partial result.
        case unfinished(Unfinished)
    }

    /// The partial result of a fetch that was not quick.
    package struct Unfinished: Sendable {
        /// The ordinal of the version; nil if it is not in the history.
        var ordinal: UInt32?
        /// The location of the value; nil if the map of the version is not in memory.
        var located: Located?
    }

    private enum Found {
        case done(Quick)
        /// The location is known, but the bytes are not in memory.
        case missing(Located)
    }

    /// Fetches a small value if the map is in memory, and the bytes are in memory or one read away in an open segment. Otherwise it does
    /// nothing, and `fetch(_:at:going:into:)` continues.
    ///
    /// It holds the store's lock for readers once, and writes to no memory that other readers use: it counts no reference, allocates
    /// nothing, and never calls the host.
    package func fetchQuickly(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?)
        throws -> Quick
    {
        try ValueID.check(id)
        let found: Found = try lock.withRead {
            try checkOpenLocked()
            return try sharedHistory.dagReference._withUnsafeGuaranteedRef { dag in
                guard let ordinal = dag.ordinal(of: version) else { return .done(.unfinished(Unfinished())) }
                let (isHere, root) = maps.root(of: ordinal)
                guard isHere else { return .done(.unfinished(Unfinished(ordinal: ordinal))) }
                guard let entry = root?._withUnsafeGuaranteedRef({ $0.lookup(id) }) else { return .done(.fetched(.absent)) }
                let located = Located(entry: entry, stored: dag.id(entry.version), place: dag.rows[Int(entry.version)].place),
                    size = Int(entry.size)
                guard entry.bodyOffset != 0, entry.size != MapEntry.unknownSize else {
                    return .done(.unfinished(Unfinished(ordinal: ordinal, located: located)))
                }
                guard let body = records.blocks.bytes(located.place, from: entry.bodyOffset) else { return .missing(located) }
                guard let bytes = RecordTable.body(body, size: size, id: id, version: located.stored), bytes.count == size else {
                    return .done(.unfinished(Unfinished(ordinal: ordinal, located: located)))
                }
                if let target = try reserve(size) { UnsafeMutableRawBufferPointer(start: target, count: size).copyMemory(from: bytes) }
                return .done(.fetched(.copied(size: size, storedVersion: located.stored)))
            }
        }
        switch found {
        case .done(let quick): return quick
        case .missing(let located):
            let size = Int(located.entry.size), unfinished = Quick.unfinished(Unfinished(located: located))
            guard records.blocks.readsSegments, size <= Store.quickSize else { return unfinished }
            return try withScratch(RecordTable.bodyHeaderSize + size) { buffer in
                guard try records.blocks.readMissed(located.place, at: located.entry.bodyOffset, into: buffer),
                    let bytes = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: located.stored),
                    bytes.count == size
                else { return unfinished }
                if let target = try reserve(size) { UnsafeMutableRawBufferPointer(start: target, count: size).copyMemory(from: bytes) }
                return .fetched(.copied(size: size, storedVersion: located.stored))
            }
        }
    }

    /// The largest value to fetch quickly. For larger ones, copying dominates the cost.
    private static let quickSize = 4_000
}
