/// What a device knows of a place in the packed layout, as of its last exchange there.
public struct RemoteStatus: Sendable {
    /// Who writes there.
    public struct Writer: Sendable, Hashable {
        /// The random number by which the place knows a device: 13 characters. A device that lost its memory has another one.
        public let id: String
        /// Of its newest pack.
        public let number: UInt32
        /// When this device saw a new pack of it last, in seconds since 2001-01-01 UTC; nil for this device.
        public let lastSeen: Double?
        /// Whether it is this device.
        public let isHere: Bool
        /// What it is called, as it says itself (`Exchange.URLOptions.deviceName`); nil: it does not.
        public let name: String?
    }
    /// `.packed` or `.bridged`.
    public let layout: Exchange.Layout
    /// The number of the newest keys; 0: it is not encrypted.
    public let epoch: UInt32
    /// Six words over the newest pack of each writer: two devices that were shown the same, and have read it, have the same. Empty when
    /// there is none.
    public let fingerprint: String
    /// How many packs lay there when all were listed last, and their bytes, large values not counted.
    public let packs: UInt64, bytes: UInt64
    /// When that was, in seconds since 2001-01-01 UTC; nil: not yet.
    public let listed: Double?
    /// All that have a pack in `log/`, by their ids.
    public let writers: [Writer]
    /// How many listed files could not be read, and since when, in seconds since 2001-01-01 UTC; nil: all could.
    public let unread: UInt64, unreadSince: Double?

    init(_ state: PackedState) {
        layout = state.pin == nil && state.roots.contains(where: \.isBridged) ? .bridged : .packed
        epoch = state.pin?.number ?? 0
        packs = UInt64(clamping: state.extent?.names ?? 0)
        bytes = UInt64(clamping: state.extent?.bytes ?? 0)
        func since2001(_ time: Int64) -> Double { Double(time) - Clock.secondsFrom1970To2001 }
        listed = state.extent.map { since2001($0.at) }
        unread = UInt64(clamping: state.bad.count)
        unreadSince = state.bad.values.map(\.since).min().map(since2001)
        let newest = state.newest.values.sorted { $0.writer < $1.writer }
        writers = newest.map { one in
            let isHere = one.writer == state.writer
            return Writer(
                id: Base32.encode(PackID.bytes(of: one.writer)), number: one.number,
                lastSeen: isHere ? nil : state.active[one.writer].map(since2001), isHere: isHere,
                name: isHere ? state.saidName : state.names[one.writer]?.name)
        }
        fingerprint = RemoteStatus.fingerprint(state.store, newest)
    }

    /// The first 12 bytes of SHA-256 over the store id and, for each writer, its id, number and pack id: six words of 16 bits each.
    static func fingerprint(_ store: PackID?, _ newest: [PackServices.Seen]) -> String {
        guard let store, !newest.isEmpty else { return "" }
        var out = ByteWriter()
        out.raw(Array("llvs fingerprint 1\n".utf8) + store.bytes)
        for one in newest {
            out.raw(PackID.bytes(of: one.writer))
            out.integer(one.number)
            out.raw(one.id.bytes)
        }
        let digest = out.bytes.withUnsafeBytes { Array(SHA256.digest($0)) }
        return (0..<6).map { word(UInt16(digest[2 * $0]) << 8 | UInt16(digest[2 * $0 + 1])) }.joined(separator: " ")
    }

    /// A word of five letters that can be spoken: consonants of 4 bits, vowels of 2, the high bits first.
    private static func word(_ number: UInt16) -> String {
        let consonants = Array("bdfghjklmnprstvz"), vowels = Array("aiou")
        return String([
            consonants[Int(number >> 12 & 15)], vowels[Int(number >> 10 & 3)], consonants[Int(number >> 6 & 15)],
            vowels[Int(number >> 4 & 3)], consonants[Int(number & 15)],
        ])
    }
}

/// A transport that tells what it knows of the place.
package protocol TellingTransport: ExchangeTransport {
    /// What was asked and moved since it was opened.
    var counts: RemoteCounts { get }
    /// As of the last exchange with it; nil: there was none, or the place has no packs.
    var remoteStatus: RemoteStatus? { get }
    /// Whose place it is, as far as that is known without asking anybody; nil where the address says it.
    func knownAccount() throws -> String?
}
extension RemoteTransport: TellingTransport { package var remoteStatus: RemoteStatus? { nil } }
extension AutomaticTransport: TellingTransport { package var remoteStatus: RemoteStatus? { packs.remoteStatus } }

extension Exchange {
    /// What this device knows of the place, as of the last exchange of its store there; nothing is asked of the place.
    /// - Returns: nil: there was no exchange, or it has no packs.
    /// - Throws: `.closed`, and what keeps the store's caches from being read.
    public func remoteStatus() throws -> RemoteStatus? {
        guard let transport = transport as? any TellingTransport else { return nil }
        if let known = transport.remoteStatus { return known }
        guard let state = try PackedNotes.known(of: store, remote: transport.description, account: transport.knownAccount()),
            !state.roots.isEmpty
        else { return nil }
        return RemoteStatus(state)
    }

    /// Tells the other devices that the place goes on elsewhere, after sending what is left: their exchanges here have that as a problem
    /// (`.placeMoved`) from then on. Nothing else changes, and nothing is removed.
    /// - Parameters:
    ///   - address: where, for people and programs: 1 to 1,024 bytes, without control characters. No secrets: whoever reads the place
    ///     reads it.
    ///   - control: as for `send`.
    /// - Returns: as `send`.
    /// - Throws: `.invalidArgument` for what is no address, `.unsupported` for a place that holds no packs, and as `send`.
    public func announceMove(to address: String, _ control: OperationControl = OperationControl()) throws -> ExchangeResult {
        guard (1...PackedReports.addressLimit).contains(address.utf8.count), address.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else {
            throw StoreError(
                .invalidArgument, "The address of a place has 1 to \(PackedReports.addressLimit) bytes, and no control characters.")
        }
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) holds no packs: nothing can be announced there.")
        }
        return try exclusively("Announcing a move") { try transport.announce(address, store, control) }
    }
}
