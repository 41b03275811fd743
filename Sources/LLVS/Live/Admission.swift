/// Decides which connections a listener reads before it knows who the other side is. The caller gives the time, in seconds of a steady
/// clock. The listener's lock guards it.
struct Admission {
    /// Where a connection comes from.
    struct Source: Equatable {
        /// What is counted together: an address, or the first 64 bits of one of IPv6; empty for a Unix socket.
        let key: String
        /// A device got in from this address before.
        let isKnown: Bool
    }
    /// A connection of which it is not known yet who the other side is.
    struct HalfOpen {
        let source: Source
        /// When it was accepted.
        let since: Double
        /// It has not sent its beginning.
        let isSilent: Bool
    }
    enum Decision: Equatable {
        case take
        /// Takes it in the place of another one, by its number.
        case replace(Int)
        case refuse
    }

    /// Connections of strangers that are half-open, those of addresses from which somebody got in before, and those of one source.
    static let halfOpen = 32, halfOpenKnown = 16, fromOne = 16
    /// Connections of one source in a minute that did not get in; of so many sources that is remembered.
    static let strangers = 5, sources = 4_096
    /// Addresses from which somebody got in that are remembered.
    static let knownLimit = 256
    /// Seconds after which a connection that has sent its beginning may be ended for another one, and after which one that gives way
    /// counts as one that did not get in.
    static let least = 1.0

    /// When somebody from a source did not get in.
    private var refused: [String: [Double]] = [:]
    /// Addresses from which somebody got in, with the number of the last time.
    private var known: [String: UInt64] = [:]
    private var times: UInt64 = 0

    /// Returns where a connection comes from.
    /// - Parameter host: the numeric address; empty for a Unix socket.
    func source(of host: String) -> Source {
        let isKnown = !host.isEmpty && known[host] != nil
        // A stranger of the same network has no part in what a known address has left.
        return Source(key: isKnown ? host : Admission.group(host), isKnown: isKnown)
    }

    /// What is counted together with an address: who has one address of IPv6 mostly has all that begin with the same 64 bits. On a link
    /// without a router all addresses begin so: each is counted alone.
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

    /// Notes that somebody got in.
    mutating func gotIn(from host: String) {
        guard !host.isEmpty else { return }
        times += 1
        known[host] = times
        if known.count > Admission.knownLimit, let oldest = known.min(by: { $0.value < $1.value }) { known[oldest.key] = nil }
    }

    /// Notes that somebody did not get in; who reaches a Unix socket is no stranger.
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

    /// How many connections of a source did not get in within a minute.
    func refusals(_ key: String, at now: Double) -> Int { (refused[key] ?? []).filter { $0 > now - 60 }.count }

    /// Decides on a connection that was accepted.
    ///
    /// If there is no room, another connection gives way: one that is silent, of the source that has most, and of these the oldest. If none
    /// is silent, the oldest of at least a second. Connections of known addresses have room of their own, and give way to each other alone.
    /// O(connections that are half-open).
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
