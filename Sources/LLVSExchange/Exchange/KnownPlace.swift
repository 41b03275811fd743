/// A transport with single files whose place a store remembers: docs/exchanges.md, "Which store a place belongs to".
package protocol AddressedTransport: ExchangeTransport {
    /// Returns the name of the place, and its account if the address alone does not identify it. Returns nil if the place is not
    /// remembered.
    func placeAddress(in store: Store, _ check: @escaping () throws -> Void) throws -> (place: String, account: String?)?
    /// Returns whether the caller said, since the last call, that the store joins the place whatever it contains.
    func takeJoin() -> Bool
}

/// Versions by which a store recognizes a place with single files.
struct PlaceIdentity: Equatable {
    /// Versions of the first exchange that both sides had. A template that two stores were copied from has them as well.
    var first: [VersionID] = []
    /// Versions exchanged later. No other store has them.
    var later: [VersionID] = []
    /// How many versions the place had after the first exchange, and when a version was last added to `later`.
    var firstCount = 0, lastCount = 0

    static let firstLimit = 16, laterLimit = 64, laterAtOnce = 4

    var isEmpty: Bool { first.isEmpty && later.isEmpty }

    /// Returns whether to add versions, now that the place has `count`. Not each time, since that writes a file.
    func isDue(_ count: Int) -> Bool {
        if isEmpty { return true }
        let grown = count - firstCount, before = lastCount - firstCount
        return grown > before + before / 4
    }

    /// Adds versions that both sides have, the newest first.
    mutating func add(_ newest: [VersionID], count: Int) {
        if isEmpty {
            guard !newest.isEmpty else { return }
            first = Array(newest.prefix(PlaceIdentity.firstLimit))
            firstCount = count
        } else {
            let known = Set(first + later), fresh = newest.prefix { !known.contains($0) }.prefix(PlaceIdentity.laterAtOnce)
            later += fresh.reversed()
            // The oldest and the newest stay: a place may be reset to an earlier state.
            while later.count > PlaceIdentity.laterLimit { later.remove(at: later.count / 2) }
        }
        lastCount = count
    }

    enum Match { case same, mayBe, none }
    /// Returns whether a place with these versions is the remembered one.
    /// - Returns: `mayBe` if it has versions of the first exchange only, although later ones are remembered.
    func match<IDs: Sequence>(_ listed: IDs, _ look: () throws -> Void) rethrows -> Match where IDs.Element == VersionID {
        let strong = Set(later.isEmpty ? first : later), weak = Set(later.isEmpty ? [] : first)
        var hasWeak = false, seen = 0
        for id in listed {
            seen += 1
            if seen & 1_023 == 0 { try look() }
            if strong.contains(id) { return .same }
            hasWeak = hasWeak || weak.contains(id)
        }
        return hasWeak ? .mayBe : .none
    }

    /// Returns whether one of a few of the versions can be read although no listing has it: listings may be behind, mostly at a new place.
    /// Call it if no version matches.
    /// - Parameter fetch: reads the version files with these names.
    func canBeRead(_ fetch: ([String]) throws -> [FetchedFile]) throws -> Bool {
        let strong = later.isEmpty ? first : later
        let names = Set(strong.prefix(2) + strong.suffix(2)).map(\.description)
        if names.isEmpty { return false }
        return try fetch(names).contains { file in
            switch file {
            case .data, .pieces: return true
            case .unreadable(let error): throw error
            case .missing: return false
            }
        }
    }

    // MARK: Encoding

    private static let format: UInt8 = 2

    var encoded: [UInt8] {
        var out = ByteWriter()
        out.bytes.append(PlaceIdentity.format)
        out.varint(UInt64(max(0, firstCount)))
        out.varint(UInt64(max(0, lastCount)))
        for list in [first, later] {
            out.varint(UInt64(list.count))
            for id in list { out.versionID(id) }
        }
        return out.bytes
    }

    init() {}
    /// Nil for other formats: an earlier version of this library recorded only that there were single files, not which.
    init?(encoded bytes: [UInt8]) {
        let read: PlaceIdentity? = bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes), found = PlaceIdentity()
            guard reader.integer(UInt8.self) == PlaceIdentity.format, let firstCount = reader.count(atMost: 1 << 40),
                let lastCount = reader.count(atMost: 1 << 40)
            else { return nil }
            (found.firstCount, found.lastCount) = (firstCount, max(firstCount, lastCount))
            for list in [\PlaceIdentity.first, \.later] {
                guard let count = reader.count(atMost: PlaceIdentity.laterLimit) else { return nil }
                for _ in 0..<count {
                    guard let id = reader.versionID() else { return nil }
                    found[keyPath: list].append(id)
                }
            }
            return found
        }
        guard let read else { return nil }
        self = read
    }
}

/// The place of an exchange with single files, as its store remembers it. Refuses the place of another store.
package struct KnownPlace {
    private var isLoaded = false
    private var identity = PlaceIdentity()
    /// The listing that was found to belong to the same place.
    private var checkedMark: UInt64?

    /// Refuses a listing with none of the remembered versions. Call it before anything is read or sent.
    /// - Throws: `.notFound`.
    mutating func check(
        _ listing: ExchangeListing, of transport: any ExchangeTransport, in store: Store, _ control: OperationControl, _ what: String
    ) throws {
        let look = { try control.check(.listing, 0, of: 0, doing: what) }
        guard let transport = transport as? any AddressedTransport, let address = try transport.placeAddress(in: store, look)
        else { return }
        if transport.takeJoin() {
            try PlaceNotes.forgetIdentity(of: store, address.place, address.account)
            (isLoaded, checkedMark) = (false, nil)
        }
        if let mark = listing.mark, mark == checkedMark { return }
        if try !isSame(listing, in: store, address, look) {
            // Another exchange of this store may have joined the place meanwhile.
            isLoaded = false
            if try !isSame(listing, in: store, address, look) {
                // As long as the listing shows none of them, each call checks again.
                checkedMark = nil
                if try identity.canBeRead({ try transport.fetchVersions($0, control) }) { return }
                throw PlaceIdentity.refusal(of: transport.description, isEmpty: listing.versions.isEmpty)
            }
        }
        checkedMark = listing.mark
    }

    private mutating func isSame(
        _ listing: ExchangeListing, in store: Store, _ address: (place: String, account: String?), _ look: () throws -> Void
    ) throws -> Bool {
        if !isLoaded {
            identity = try PlaceNotes.identity(of: store, address.place, address.account) ?? PlaceIdentity()
            isLoaded = true
        }
        if identity.isEmpty { return true }
        // A version whose version file was lost may still have its changes file.
        switch try identity.match([listing.versions, listing.changesOnly].joined(), look) {
        case .same: return true
        case .none: return false
        case .mayBe: return try store.unknown(among: listing.versions, look).isEmpty
        }
    }

    /// Refuses a place for a snapshot as an exchange would. Lists it if anything is remembered.
    /// - Throws: `.notFound`.
    package static func checkForSnapshot(of store: Store, _ transport: any AddressedTransport, _ control: OperationControl) throws {
        let what = "Listing \(transport.description)", look = { try control.check(.listing, 0, of: 0, doing: what) }
        guard let address = try transport.placeAddress(in: store, look),
            let known = try PlaceNotes.identity(of: store, address.place, address.account), !known.isEmpty
        else { return }
        var place = KnownPlace()
        if try !place.isSame(transport.list(control), in: store, address, look),
            try !known.canBeRead({ try transport.fetchVersions($0, control) })
        {
            throw PlaceIdentity.refusal(of: transport.description, isEmpty: try transport.list(control).versions.isEmpty)
        }
    }

    /// Remembers versions that both sides have. Call it at the end of an exchange.
    /// - Parameter sent: the versions sent since the listing.
    mutating func note(
        _ listing: ExchangeListing, sent: [VersionID] = [], of transport: any ExchangeTransport, in store: Store,
        _ look: @escaping () throws -> Void
    ) throws {
        let count = listing.versions.count + sent.count
        guard isLoaded, count > 0, identity.isDue(count), let transport = transport as? any AddressedTransport,
            let address = try transport.placeAddress(in: store, look)
        else { return }
        var coverage = try store.coverage(by: listing.versions, complete: nil, look)
        store.cover(sent, in: &coverage)
        let before = identity
        identity.add(try store.newestOwn(in: coverage, PlaceIdentity.firstLimit, look), count: count)
        guard identity != before else { return }
        // Nothing else relies on it, and the store may be read-only.
        try? PlaceNotes.setIdentity(identity, of: store, address.place, address.account)
    }
}

extension PlaceIdentity {
    static func refusal(of place: String, isEmpty: Bool) -> StoreError {
        let advice =
            "Nothing was received from it, and nothing is sent. Check the address, the account and the drive. To "
            + "\(isEmpty ? "fill" : "join") it from this store all the same, set the restoration state of the exchange to the word "
            + "\"new\", once, and exchange again"
        if isEmpty { return StoreError(.notFound, "\(place) had single files of versions, and is empty. \(advice).") }
        var error = StoreError(
            .notFound,
            "\(place) is the place of another store: none of the versions that were there before is. \(advice): then all versions of both "
                + "stores are merged, for good.")
        error.circumstance = .remoteReset
        return error
    }
}

extension Store {
    /// Returns covered versions that no other store can make independently, the newest first. The empty root and a first version that only
    /// holds rules are left out; both have fixed timestamps.
    /// - Parameters:
    ///   - most: the most versions to return.
    ///   - look: called now and then; an error that it throws ends the work.
    func newestOwn(in coverage: Coverage, _ most: Int, _ look: () throws -> Void) throws -> [VersionID] {
        var found: [VersionID] = [], fixed = 0
        let latest = Clock.after(EmptyRoot.version.timestamp)
        for (i, ordinal) in coverage.all.reversed().enumerated() {
            if i & 8_191 == 8_191 { try look() }
            let own: VersionID? = lock.withRead {
                let row = dag.rows[Int(ordinal)]
                return row.state == .live && row.timestamp > latest ? dag.id(ordinal) : nil
            }
            if let own { found.append(own) } else { fixed += 1 }
            // A genuine store has few versions with fixed timestamps, so the search is bounded.
            if found.count == most || fixed > 10_000 { break }
        }
        return found
    }
}
