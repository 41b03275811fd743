/// A holder of the keys of an encrypted place: docs/encryption.md.
public struct RemoteMember: Hashable, Sendable {
    /// The kinds of members.
    public enum Kind: UInt32, Sendable {
        /// The passphrase.
        case passphrase = 0
        /// A key on paper.
        case recovery = 1
        /// An identity of a device.
        case device = 2
        /// An identity of a program on a server.
        case host = 3
    }
    /// The name, for display.
    public let name: String
    /// The kind of member.
    public let kind: Kind
    /// The public half of its identity: `age1...`.
    public let recipient: String
    /// When it was added: `2026-11-22T20:00:00Z`, for display.
    public let added: String

    init(_ member: KeyMember) {
        name = member.name
        kind =
            switch member.kind {
            case .passphrase: .passphrase
            case .recovery: .recovery
            case .device: .device
            case .host: .host
            }
        recipient = "\(member.recipient)"
        added = member.added
    }
}

/// A new identity of age, and its public half.
public struct RemoteIdentity: Sendable {
    /// `AGE-SECRET-KEY-1...`
    private let secret: Secret
    /// `age1...`
    public let recipient: String

    /// Generates an identity.
    /// - Throws: `.unsupported` without libcrypto.
    public init() throws {
        let identity = try AgeIdentity(RemoteKeys.crypto())
        secret = try identity.text()
        recipient = "\(identity.recipient)"
    }
    /// Calls `body` with the secret half, `AGE-SECRET-KEY-1...`. A holder of it can open everything that is encrypted for its recipient.
    public func withSecret<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try secret.withBytes(body) }
}

/// A transport to a place that may be encrypted.
package protocol KeyedTransport: StoreTransport {
    /// Whether it was opened with keys.
    var isKeyed: Bool { get }
    /// Runs `body` after reading the keys of the place again; throws if it has none.
    func withKeys<R>(of store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R
    /// Sends the remaining versions, and announces to the other devices that this one stops writing.
    func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult
    /// Sends the remaining versions, and lets all writers store values of new packs as differences.
    func enableDifferences(_ store: Store, _ control: OperationControl) throws -> ExchangeResult
    /// The pairing derived from the keys as last read; nil before that, and for a place without keys.
    var livePairing: Pairing? { get }
    /// Announces the new address of the place to the other devices.
    func announce(_ address: String, _ store: Store, _ control: OperationControl) throws -> ExchangeResult
}

extension Exchange {
    /// Returns the members of the place.
    /// - Throws: `.unsupported` if the exchange was opened without keys, `.keyMissing` if the place has none yet, `.tooLarge` if this
    ///   device has not read all files of keys yet (docs/encryption.md, section 5), and as `retrieve`.
    public func members(control: OperationControl = OperationControl()) throws -> [RemoteMember] {
        try withKeys("Reading the members", control) { try $0.keyring.currentKeys.members.map(RemoteMember.init) }
    }

    /// Adds a member, who can read existing and future data. Has no effect for a present member.
    /// - Parameters:
    ///   - recipient: the public half of its identity: `age1...`.
    ///   - name: for display; at most 256 bytes.
    ///   - kind: the kind of member, for display; not `.passphrase`.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` for an invalid recipient, and for a removed member; as `members`.
    public func addMember(
        _ recipient: String, name: String = "", kind: RemoteMember.Kind = .device, control: OperationControl = OperationControl()
    ) throws {
        let new = try AgeRecipient(recipient)
        let kinds: [RemoteMember.Kind: KeyMember.Kind] = [.recovery: .recovery, .device: .device, .host: .host]
        guard let kind = kinds[kind] else {
            throw StoreError(.invalidArgument, "The member \"passphrase\" is there when a place is made with one, and is not added.")
        }
        try withKeys("Adding a member", control) { run in
            try run.keyring.change { keys, place, clock, crypto in
                try keys.adding(KeyMember(name: name, kind: kind, recipient: new, added: clock.text()), in: place, crypto)
            }
        }
    }

    /// Removes a member: a new epoch begins, whose keys it does not get. It can still read all that it has read, and the data at the place
    /// now, so revoke its access to the place first.
    /// - Parameters:
    ///   - recipient: as `members` returns it, or as a problem reports a member without the newest keys.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` if it is no member, or the last one; as `members`.
    public func removeMember(_ recipient: String, control: OperationControl = OperationControl()) throws {
        let gone = try AgeRecipient(recipient)
        try withKeys("Removing a member", control) { run in
            try run.keyring.change { keys, place, clock, crypto in
                try keys.rotating("a member was removed", removing: [gone], in: place, clock, crypto)
            }
        }
    }

    /// Sets another passphrase. The members and their keys stay; the file that the old passphrase opened is deleted from the place.
    ///
    /// This exchange continues with the new passphrase. Other exchanges opened with the old one get `.wrongKey` within 10 minutes, and must
    /// be reopened with the new one. If the call is interrupted, both may open the place: repeat it.
    /// - Parameters:
    ///   - new: 1 to 1,024 bytes of UTF-8.
    ///   - hasLeaked: whether other people may know the old passphrase, which still opens a copy of its file. The member "passphrase" then
    ///     gets another identity, and a new epoch begins, as when a member is removed. A place without that member gets it.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` for an invalid passphrase, and if the exchange was opened without the old one and `hasLeaked` is false;
    ///   as `members`.
    public func changePassphrase(
        to new: UnsafeRawBufferPointer, hasLeaked: Bool = false, control: OperationControl = OperationControl()
    ) throws {
        let secret = try Secret(new)
        try PassphraseFile.check(secret)
        try withKeys("Changing the passphrase", control) { try $0.keyring.changePassphrase(to: secret, hasLeaked: hasLeaked) }
    }

    /// Joins competing keys (`.keysForked` among the problems of an exchange): a new epoch begins with the members of this device's side.
    /// Members whom the other side removed are removed, unless this side has removed any: a former member may have made the other keys.
    /// These, and members of the other side alone, are reported as problems of later exchanges: remove or add again those that you know.
    /// Has no effect if no keys compete.
    /// - Parameter control: as for `retrieve`.
    /// - Throws: `.keysForked` if the maker of the other keys knew neither a former key of this device nor the passphrase: then a stranger
    ///   may have made them, and nothing is changed. The same if this device has used neither keys; as `members`.
    public func joinKeys(control: OperationControl = OperationControl()) throws {
        try withKeys("Joining the keys", control) { run in
            guard try !run.keyring.currentKeys.forked.isEmpty else { return }
            try run.keyring.change { keys, place, clock, crypto in try keys.joining(in: place, clock, crypto) }
        }
    }

    /// Returns the pairing by which members of the place make direct connections without being paired: 48 secret bytes, derived from the
    /// newest keys. When the keys are renewed it changes, and the former one is no longer accepted.
    /// - Parameters:
    ///   - isReadAnew: whether to read the keys from the place; otherwise those last read are used.
    ///   - control: as for `retrieve`.
    /// - Throws: `.unsupported` if the exchange was opened without keys, `.keyMissing` if there are none yet, or none were read yet; as
    ///   `members`.
    public func pairing(isReadAnew: Bool = true, control: OperationControl = OperationControl()) throws -> [UInt8] {
        let members = try memberPairing
        if isReadAnew { return try withKeys("Reading the keys", control) { Pairing(try $0.keyring.currentKeys).bytes } }
        return try members.current().bytes
    }
    /// The pairing of the members, for connections: it follows the keys as last read, also later. Connections made with former keys end.
    /// - Throws: `.unsupported` if the exchange was opened without keys.
    public var memberPairing: MemberPairing {
        get throws {
            guard let transport = transport as? any KeyedTransport, transport.isKeyed else {
                throw StoreError(
                    .unsupported, "\(transport.description) was opened without keys, so it has no pairing. Give one, or the keys.")
            }
            return MemberPairing { transport.livePairing }
        }
    }

    /// Rewrites all data at the place with its newest keys, and removes the data with older ones. Then older keys, from a lost device or a
    /// leak, open nothing at the place any more. (Data read before stays readable.) It sends as much as the place holds. The replaced data
    /// is deleted by later exchanges of this device, after a day at most; large values after one more.
    ///
    /// Later exchanges that list all packs, one each day, resume an interrupted call; or call it again.
    /// - Parameters:
    ///   - renewing: whether first to create keys that only the present members have. Such keys exist already after a member was removed,
    ///     or a leaked passphrase was replaced.
    ///   - control: as for `retrieve`.
    /// - Returns: the number of packs that still have older keys: those that will be deleted, and those that this device cannot read.
    /// - Throws: as `members`.
    public func rekey(renewing: Bool = false, control: OperationControl = OperationControl()) throws -> Int {
        try withKeys("Resending all data", control) { try $0.keyring.rekey(renews: renewing) }
    }

    /// Ends this device's writing to a place in the packed layout: sends the remaining versions, and announces the end to the other
    /// devices, which can then merge its packs at once instead of after 30 days. Removes nothing, and does not forget the place: if this
    /// device sends later all the same, it does so as a new writer.
    /// - Parameter control: as for `send`.
    /// - Returns: as `send`.
    /// - Throws: `.unsupported` for a place that has no packs, and as `send`.
    public func retire(control: OperationControl = OperationControl()) throws -> ExchangeResult {
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) holds no packs: no device there waits for this one.")
        }
        return try exclusively("Retiring") { try transport.retire(store, control) }
    }

    /// Lets all devices write values to a place in the packed layout as differences from earlier ones, which take far less room:
    /// docs/pack-format.md. New places have it from the start. First sends what the place lacks. Other devices learn of it when they next
    /// list the whole place, which they do once a day. A library that does not know differences reports the versions that have some as
    /// `.newerFormat`, and reads all others. This cannot be undone.
    /// - Parameter control: as for `send`.
    /// - Returns: as `send`.
    /// - Throws: `.unsupported` for a place that has no packs, `.tooLarge` for a place that has 16 roots, and as `send`.
    public func enableDifferences(control: OperationControl = OperationControl()) throws -> ExchangeResult {
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) holds no packs: its files have whole values.")
        }
        return try exclusively("Turning on differences") { try transport.enableDifferences(store, control) }
    }

    private func withKeys<R>(_ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) has no members: nothing is encrypted there.")
        }
        return try exclusively(what) { try transport.withKeys(of: store, "\(what) of \(transport.description)", control, body) }
    }
}

extension PackedTransport: KeyedTransport {
    package var livePairing: Pairing? {
        guard let keys = keys?.opened?.keys, !keys.mayBeOld else { return nil }
        return Pairing(keys)
    }
    package func withKeys<R>(of store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        guard isKeyed else {
            throw StoreError(.unsupported, "The exchange with \(description) was opened without keys, and has no members to show.")
        }
        return try run(store, what, control) { run in
            _ = try run.keyring.unlock()
            _ = try run.keyring.readKeys()
            return try body(run)
        }
    }
}

extension PackedTransport {
    package func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        // No version is left to other devices any more.
        try bothWays(store, "Retiring from \(description)", control) { run in
            run.state.bridging = [:]
            return (try run.publishing.retire(), [])
        }
    }
    package func enableDifferences(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        try bothWays(store, "Turning on differences in \(description)", control) {
            (try $0.publishing.enableDifferences(), $0.bridging.leftToOthers(fromPacks: true))
        }
    }
    package func announce(_ address: String, _ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        try bothWays(store, "Announcing a move of \(description)", control) {
            (try $0.notices.announce(address), $0.bridging.leftToOthers(fromPacks: true))
        }
    }
}

extension AutomaticTransport: KeyedTransport {
    package var isKeyed: Bool { packs.isKeyed }
    package var livePairing: Pairing? { packs.livePairing }
    package func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        guard try isPacked(store, control) else {
            throw StoreError(.unsupported, "\(description) holds no packs: no device there waits for this one.")
        }
        return try packs.retire(store, control)
    }
    package func enableDifferences(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        guard try isPacked(store, control) else {
            throw StoreError(.unsupported, "\(description) holds no packs: its files have whole values.")
        }
        return try packs.enableDifferences(store, control)
    }
    package func announce(_ address: String, _ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        guard try isPacked(store, control) else {
            throw StoreError(.unsupported, "\(description) holds no packs: nothing can be announced there.")
        }
        return try packs.announce(address, store, control)
    }
    package func withKeys<R>(of store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        try packs.withKeys(of: store, what, control, body)
    }
}
