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
    /// - Parameters:
    ///   - id: the value's id, as UTF-8.
    ///   - version: whose state is read.
    ///   - reserve: called once with the size of the value, or not at all; answers where its bytes go (as many must fit), or nil to have
    ///     none. Called with locks held: it must not call the store, nor wait.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, and what `reserve` throws.
    /// - Complexity: O(length of the id + log values + size), and one read when the bytes are not in memory.
    public func fetch(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws
        -> Fetched
    {
        switch try fetchQuickly(id, at: version, into: reserve) {
        case .fetched(let fetched): return fetched
        case .unfinished(let unfinished): return try fetch(id, at: version, going: unfinished, into: reserve)
        }
    }

    /// Goes on where `fetchQuickly` ended. Whether the map of the version is in memory is not asked again.
    public func fetch(
        _ id: UnsafeRawBufferPointer, at version: VersionID, going unfinished: Unfinished,
        into reserve: (Int) throws -> UnsafeMutableRawPointer?
    ) throws -> Fetched {
        guard let located = try unfinished.located ?? locateWithoutMap(id, at: unfinished.ordinal ?? requireOrdinal(version)) else {
            return .absent
        }
        return .copied(size: try copy(located, id, into: reserve), storedVersion: located.stored)
    }

    /// A large value goes straight to where it is wanted, and is not read at all when it is wanted nowhere. Answers its size.
    private func copy(_ located: Located, _ id: UnsafeRawBufferPointer, into reserve: (Int) throws -> UnsafeMutableRawPointer?) throws
        -> Int
    {
        var entry = located.entry
        if entry.bodyOffset == 0 || entry.size == MapEntry.unknownSize {
            guard let found = try records.findChange(located.place, id), let known = MapEntry(version: entry.version, found) else {
                throw records.damaged(
                    located.place, "does not hold a value that another version says it does", version: located.stored, value: id)
            }
            if let blob = found.body.blob {
                try records.check(blob, found.body, located.place, id: id, stored: located.stored)
                if let target = try reserve(found.body.size) {
                    try records.readBlob(
                        blob, at: 0, into: UnsafeMutableRawBufferPointer(start: target, count: found.body.size), id: id,
                        stored: located.stored)
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
            return try records.withBody(located.place, entry, id: id, stored: located.stored) { bytes in
                guard bytes.count == target.count else {
                    throw records.damaged(
                        located.place, "has a value of another size than was told", version: located.stored, value: id)
                }
                target.copyMemory(from: bytes)
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

    /// What fetching quickly came to.
    public enum Quick: Sendable {
        /// It is done.
        case fetched(Fetched)
        /// It takes longer; what was found out by then is not found out again.
        case unfinished(Unfinished)
    }

    /// What is known of a value that was not fetched quickly.
    public struct Unfinished: Sendable {
        /// Of the version; nil when it is not in the history.
        var ordinal: UInt32?
        /// The value; nil when the map of the version is not in memory.
        var located: Located?
    }

    private enum Found {
        case done(Quick)
        /// Not in memory, but where it is, is known.
        case missing(Located)
    }

    /// As `fetch`, for small values, when the map is in memory and the bytes are there too, or one read away in a segment
    /// that is open; else nothing was done, and `fetch(_:at:going:into:)` goes on.
    ///
    /// One look under the store's lock for readers, and no write to memory that other readers look at: it counts no
    /// reference, allocates nothing, and never calls the host.
    public func fetchQuickly(_ id: UnsafeRawBufferPointer, at version: VersionID, into reserve: (Int) throws -> UnsafeMutableRawPointer?)
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

    /// Larger values cost so much to copy that it does not matter how they are found.
    private static let quickSize = 4_000
}
