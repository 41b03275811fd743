/// Decides which connections a listener reads before the other side is known. The caller passes the time, in seconds of a steady clock.
/// The listener's lock guards this value.
struct Admission {
    /// The source of a connection.
    struct Source: Equatable {
        /// The unit that is counted: an address, or the first 64 bits of an IPv6 address; empty for a Unix socket.
        let key: String
        /// Whether a device was let in from this address before.
        let isKnown: Bool
    }
    /// A connection whose other side is not known yet.
    struct HalfOpen {
        let source: Source
        /// When it was accepted.
        let since: Double
        /// Whether it has not sent its beginning yet.
        let isSilent: Bool
    }
    enum Decision: Equatable {
        case take
        /// Accept it in place of the half-open connection with this index.
        case replace(Int)
        case refuse
    }

    /// Limits of half-open connections: from unknown addresses, from known addresses, and from one source.
    static let halfOpen = 32, halfOpenKnown = 16, fromOne = 16
    /// The refusals of one source within a minute after which it is refused, and how many sources are remembered.
    static let strangers = 5, sources = 4_096
    /// The most known addresses that are remembered.
    static let knownLimit = 256
    /// Seconds after which a connection that has sent its beginning may be ended for another one. A connection that gives way later than
    /// this counts as refused.
    static let least = 1.0

    /// The times when connections of a source were refused.
    private var refused: [String: [Double]] = [:]
    /// Addresses from which a device was let in, with the number of the last time.
    private var known: [String: UInt64] = [:]
    private var times: UInt64 = 0

    /// Returns where a connection comes from.
    /// - Parameter host: the numeric address; empty for a Unix socket.
    func source(of host: String) -> Source {
        let isKnown = !host.isEmpty && known[host] != nil
        // A stranger in the same network must not use up the room of a known address.
        return Source(key: isKnown ? host : Admission.group(host), isKnown: isKnown)
    }

    /// Returns what an address is counted as. A device with an IPv6 address mostly has all addresses with the same first 64 bits. On a
    /// link without a router all devices share these bits, so each link-local address is counted alone.
    static func group(_ host: String) -> String {
        guard host.contains(":") else { return host }
        var address = in6_addr()
        guard inet_pton(Int32(AF_INET6), host.prefix { $0 != "%" }.description, &address) == 1 else { return host }
        let bytes = withUnsafeBytes(of: &address) { Array($0) }
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return bytes[12...].map { "\($0)" }.joined(separator: ".")
        }
        if bytes[0] == 0xFE, bytes[1] & 0xC0 == 0x80 { return host }
        let groups = stride(from: 0, to: 8, by: 2).map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
        return groups.joined(separator: ":") + "::/64"
    }

    /// Records that a device was let in.
    mutating func gotIn(from host: String) {
        guard !host.isEmpty else { return }
        times += 1
        known[host] = times
        if known.count > Admission.knownLimit, let oldest = known.min(by: { $0.value < $1.value }) { known[oldest.key] = nil }
    }

    /// Records that a connection was refused. A Unix socket has no strangers.
    mutating func refuse(_ key: String, at now: Double) {
        guard !key.isEmpty else { return }
        if refused.count >= Admission.sources, refused[key] == nil {
            refused = refused.filter { now - ($0.value.last ?? now) < 60 }
            if refused.count >= Admission.sources, let oldest = refused.min(by: { ($0.value.last ?? 0) < ($1.value.last ?? 0) }) {
                refused[oldest.key] = nil
            }
        }
        refused[key] = ((refused[key] ?? []) + [now]).suffix(Admission.strangers)
    }

    /// Returns how many connections of a source were refused within the last minute.
    func refusals(_ key: String, at now: Double) -> Int { (refused[key] ?? []).filter { $0 > now - 60 }.count }

    /// Decides on a connection that was accepted.
    ///
    /// If there is no room, another connection gives way: a silent one of the source that has most, and of these the oldest. If none is
    /// silent, the oldest that has lasted at least a second. Connections from known addresses have room of their own, and only give way
    /// to each other. O(half-open connections).
    func decide(_ source: Source, among halfOpen: [HalfOpen], at now: Double) -> Decision {
        guard refusals(source.key, at: now) < Admission.strangers else { return .refuse }
        var counts: [String: Int] = [:], others = 0
        for one in halfOpen {
            counts[one.source.key, default: 0] += 1
            if one.source.isKnown == source.isKnown { others += 1 }
        }
        guard source.key.isEmpty || counts[source.key] ?? 0 < Admission.fromOne else { return .refuse }
        guard others >= (source.isKnown ? Admission.halfOpenKnown : Admission.halfOpen) else { return .take }
        let all = halfOpen.indices.filter {
            halfOpen[$0].source.isKnown == source.isKnown && (halfOpen[$0].isSilent || now - halfOpen[$0].since >= Admission.least)
        }
        func rank(_ i: Int) -> (Int, Int, Double) {
            (halfOpen[i].isSilent ? 0 : 1, -(counts[halfOpen[i].source.key] ?? 0), halfOpen[i].since)
        }
        return all.min { rank($0) < rank($1) }.map { .replace($0) } ?? .refuse
    }
}
