/// Events and claims to report about a remote in the packed layout. They do not affect the exchange: docs/pack-format.md, section 7.
struct PackedReports: Equatable {
    /// A writer of which another writer has seen a later pack than this device.
    struct Ahead: Equatable { var number: UInt32, since: Int64, teller: UInt64 }
    /// A pack of a writer, and its preceding pack.
    struct Link: Equatable { var number: UInt32, id: PackID, before: PackID }
    enum Kind: UInt8 { case rolledBack = 1, forked, seededAnew }
    struct Event: Equatable { var kind: Kind, writer: UInt64, number: UInt32, since: Int64 }
    /// The new address of the remote, and the writer that announced it.
    struct Move: Equatable { var address: String, writer: UInt64 }

    var ahead: [UInt64: Ahead] = [:]
    var chains: [UInt64: [Link]] = [:]
    var events: [Event] = []
    var move: Move?

    /// Bounds, since other devices may write any number of packs and writers.
    static let writersLimit = 256, chainLimit = 32, eventsLimit = 100
    /// Bytes of an address.
    static let addressLimit = 1_024
    /// In seconds: how long a writer may be ahead before that is reported, how long an event is reported, and how long it is remembered.
    static let patience: Int64 = 3_600, telling: Int64 = 86_400, memory: Int64 = 30 * 86_400

    mutating func putRight(at now: Int64) {
        for (writer, one) in ahead where one.since > now { ahead[writer]?.since = now }
        for i in events.indices where events[i].since > now { events[i].since = now }
    }

    mutating func happened(_ kind: Kind, _ writer: UInt64, _ number: UInt32, at now: Int64) {
        events.removeAll { now - $0.since > PackedReports.memory }
        guard events.count < PackedReports.eventsLimit,
            !events.contains(where: { $0.kind == kind && $0.writer == writer && $0.number == number })
        else { return }
        events.append(Event(kind: kind, writer: writer, number: number, since: now))
    }

    /// Records a link.
    /// - Returns: a number for which two packs have different predecessors, if other packs continue both; nil otherwise.
    mutating func link(_ writer: UInt64, _ link: Link) -> UInt32? {
        guard chains[writer] != nil || chains.count < PackedReports.writersLimit else { return nil }
        var chain = chains[writer] ?? []
        guard !chain.contains(link) else { return nil }
        chain.append(link)
        chain.sort { ($0.number, $0.id) < ($1.number, $1.id) }
        chain.removeFirst(max(0, chain.count - PackedReports.chainLimit))
        chains[writer] = chain
        let continued = Set(chain.map(\.before))
        for (a, b) in zip(chain, chain.dropFirst()) where a.number == b.number && a.before != b.before {
            if continued.contains(a.id), continued.contains(b.id) { return a.number }
        }
        return nil
    }
}

/// The display name of a device: 1 to 128 bytes of UTF-8, without control characters and direction marks.
package enum DeviceName {
    package static let limit = 128
    /// Returns the name; nil if it is invalid.
    package static func text(_ bytes: [UInt8]) -> String? {
        guard (1...limit).contains(bytes.count), let text = String(validating: bytes, as: UTF8.self) else { return nil }
        return text.unicodeScalars.contains(where: isRefused) ? nil : text
    }
    /// Returns whether a scalar controls a terminal, ends a line, or changes the direction of writing. Joiners of letters and emoji are
    /// allowed.
    private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0; DEL and C1.
        case 0x00...0x1F, 0x7F...0x9F: true
        // Line and paragraph separators; embeddings and overrides.
        case 0x2028...0x202E: true
        // Direction marks; isolates.
        case 0x061C, 0x200E...0x200F, 0x2066...0x2069: true
        default: false
        }
    }
}
extension PackServices.Notice {
    init(naming name: String) { self.init(kind: Self.named, payload: Array(name.utf8)) }
}
