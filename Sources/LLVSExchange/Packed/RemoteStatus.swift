/// The knowledge of a device about a place in the packed layout, as of its last exchange.
public struct RemoteStatus: Sendable {
    /// A writer at the place.
    public struct Writer: Sendable, Hashable {
        /// The random number by which the place knows a device: 13 characters. A device that lost its memory gets another one.
        public let id: String
        /// The number of its newest pack.
        public let number: UInt32
        /// When this device last saw a new pack of it, in seconds since 2001-01-01 UTC; nil for this device.
        public let lastSeen: Double?
        /// Whether it is this device.
        public let isHere: Bool
        /// The display name that the writer announced (`Exchange.URLOptions.deviceName`); nil: none.
        public let name: String?
    }
    /// `.packed` or `.bridged`.
    public let layout: Exchange.Layout
    /// The number of the newest keys; 0: the place is not encrypted.
    public let epoch: UInt32
    /// Six words derived from the newest pack of each writer: equal on two devices that were shown, and have read, the same packs. Empty if
    /// there is none.
    public let fingerprint: String
    /// The number of packs at the last full listing, and their bytes, without large values.
    public let packs: UInt64, bytes: UInt64
    /// When that was, in seconds since 2001-01-01 UTC; nil: never.
    public let listed: Double?
    /// All writers with a pack in `log/`, sorted by id.
    public let writers: [Writer]
    /// The number of listed files that could not be read, and since when, in seconds since 2001-01-01 UTC; nil: all could.
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

    /// Returns six words of 16 bits each: the first 12 bytes of SHA-256 over the store id and, for each writer, its id, number and pack id.
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

    /// Returns a pronounceable word of five letters: consonants of 4 bits, vowels of 2, the high bits first.
    private static func word(_ number: UInt16) -> String {
        let consonants = Array("bdfghjklmnprstvz"), vowels = Array("aiou")
        return String([
            consonants[Int(number >> 12 & 15)], vowels[Int(number >> 10 & 3)], consonants[Int(number >> 6 & 15)],
            vowels[Int(number >> 4 & 3)], consonants[Int(number & 15)],
        ])
    }
}

/// A transport that reports what it knows of the place.
package protocol TellingTransport: ExchangeTransport {
    /// The requests and bytes since it was opened.
    var counts: RemoteCounts { get }
    /// The status as of the last exchange; nil: there was none, or the place has no packs.
    var remoteStatus: RemoteStatus? { get }
    /// Whether the service may keep deleted files, or old versions of files.
    var keepsDeletedFiles: Bool { get }
    /// Whether no pack at the place has bytes that orders to erase name, as of the last exchange; nil: there was none, or there are no
    /// packs.
    var arePacksClean: Bool? { get }
    /// Returns the account whose place it is, as far as known without a request; nil if the address implies it.
    func knownAccount() throws -> String?
    /// Returns the name of the place in the notes of a store.
    func notedPlace(in store: Store) throws -> String
}
extension RemoteTransport: TellingTransport {
    package var remoteStatus: RemoteStatus? { nil }
    package var arePacksClean: Bool? { nil }
}
extension AutomaticTransport: TellingTransport {
    package var remoteStatus: RemoteStatus? { packs.remoteStatus }
    package var keepsDeletedFiles: Bool { packs.keepsDeletedFiles }
    package var arePacksClean: Bool? { packs.arePacksClean }
}

extension Exchange {
    /// Returns what this device knows of the place, as of the store's last exchange there. Makes no request.
    /// - Returns: nil: there was no exchange, or it has no packs.
    /// - Throws: `.closed`, and errors of reading the store's caches.
    public func remoteStatus() throws -> RemoteStatus? {
        guard let transport = transport as? any TellingTransport else { return nil }
        if let known = transport.remoteStatus { return known }
        let known = try PackedNotes.known(of: store, remote: transport.notedPlace(in: store), account: transport.knownAccount())
        guard let state = known, !state.roots.isEmpty
        else { return nil }
        return RemoteStatus(state)
    }

    /// Sends the remaining versions, then announces to the other devices that the place moves elsewhere: from then on their exchanges here
    /// report it as a problem (`.placeMoved`). Changes and removes nothing else.
    /// - Parameters:
    ///   - address: the new place, for people and programs: 1 to 1,024 bytes, without control characters. No secrets: all readers of the
    ///     place can read it.
    ///   - control: as for `send`.
    /// - Returns: as `send`.
    /// - Throws: `.invalidArgument` for an invalid address, `.unsupported` for a place that has no packs, and as `send`.
    public func announceMove(to address: String, control: OperationControl = OperationControl()) throws -> ExchangeResult {
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
