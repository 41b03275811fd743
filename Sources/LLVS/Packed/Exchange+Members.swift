/// Who has the keys of an encrypted place: docs/encryption.md.
public struct RemoteMember: Hashable, Sendable {
    /// What opens the keys.
    public enum Kind: UInt32, Sendable {
        /// The passphrase.
        case passphrase = 0
        /// A key on paper.
        case recovery = 1
        /// An identity that a device keeps.
        case device = 2
        /// An identity that a program on a server keeps.
        case host = 3
    }
    /// For people.
    public let name: String
    /// What it is.
    public let kind: Kind
    /// The public half of its identity: `age1...`.
    public let recipient: String
    /// When it was added: `2026-11-22T20:00:00Z`, for people.
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

    /// Makes one of random bytes.
    /// - Throws: `.unsupported` without libcrypto.
    public init() throws {
        let identity = try AgeIdentity(RemoteKeys.crypto())
        secret = try identity.text()
        recipient = "\(identity.recipient)"
    }
    /// Calls with the secret half, `AGE-SECRET-KEY-1...`: whoever has it opens what its recipient can open.
    public func withSecret<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try secret.withBytes(body) }
}

/// A transport to a place that may be encrypted.
package protocol KeyedTransport: StoreTransport {
    /// Whether it was opened with keys.
    var isKeyed: Bool { get }
    /// Does something with the keys, read anew, of a place that has some.
    func withKeys<R>(of store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R
    /// Sends what is left, and tells the others that this device ends.
    func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult
    /// What follows from the keys as they were read last; nil before, and for a place without.
    var livePairing: Pairing? { get }
    /// Tells the others where the place goes on.
    func announce(_ address: String, _ store: Store, _ control: OperationControl) throws -> ExchangeResult
}

extension Exchange {
    /// Who has the keys of the place.
    /// - Throws: `.unsupported` when the exchange was opened without keys, `.keyMissing` when the place has none yet, and as `retrieve`.
    public func members(_ control: OperationControl = OperationControl()) throws -> [RemoteMember] {
        try withKeys("Reading the members", control) { try $0.currentKeys.members.map(RemoteMember.init) }
    }

    /// Gives the keys to one more, who reads what was written and what will be. Who is a member already stays one.
    /// - Parameters:
    ///   - recipient: the public half of its identity: `age1...`.
    ///   - name: for people; at most 256 bytes.
    ///   - kind: what it is, for people; not `.passphrase`.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` for what is none, and for who was removed; as `members`.
    public func addMember(
        _ recipient: String, name: String = "", kind: RemoteMember.Kind = .device, _ control: OperationControl = OperationControl()
    ) throws {
        let new = try AgeRecipient(recipient)
        let kinds: [RemoteMember.Kind: KeyMember.Kind] = [.recovery: .recovery, .device: .device, .host: .host]
        guard let kind = kinds[kind] else {
            throw StoreError(.invalidArgument, "The member \"passphrase\" is there when a place is made with one, and is not added.")
        }
        try withKeys("Adding a member", control) { run in
            try run.change { keys, place, clock, crypto in
                try keys.adding(KeyMember(name: name, kind: kind, recipient: new, added: clock.text()), in: place, crypto)
            }
        }
    }

    /// Takes the keys of what will be written from a member: a new epoch begins. What it has read, and what lies there, it can read for
    /// ever: take its access to the place away first.
    /// - Parameters:
    ///   - recipient: as `members` gives it.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` for who is no member, and for the last one; as `members`.
    public func removeMember(_ recipient: String, _ control: OperationControl = OperationControl()) throws {
        let gone = try AgeRecipient(recipient)
        try withKeys("Removing a member", control) { run in
            try run.change { keys, place, clock, crypto in
                try keys.rotating("a member was removed", removing: [gone], in: place, clock, crypto)
            }
        }
    }

    /// Sets another passphrase. The members and their keys stay; what the old one opened is removed from the place.
    ///
    /// The exchange goes on with the new one. Others that were opened with the old one get `.wrongKey` within 10 minutes, and are to be
    /// opened anew with the new one. When it is interrupted, both may open the place: do it again.
    /// - Parameters:
    ///   - new: 1 to 1,024 bytes of UTF-8.
    ///   - hasLeaked: whether somebody else has the old one: a copy of its file still opens with it. The member "passphrase" then gets
    ///     another identity, and a new epoch begins, as when a member is removed. A place without that member gets it.
    ///   - control: as for `retrieve`.
    /// - Throws: `.invalidArgument` for what is no passphrase, and without `hasLeaked` when the exchange was opened without the old one; as
    ///   `members`.
    public func changePassphrase(
        to new: UnsafeRawBufferPointer, hasLeaked: Bool = false, _ control: OperationControl = OperationControl()
    ) throws {
        let secret = try Secret(new)
        try PassphraseFile.check(secret)
        try withKeys("Changing the passphrase", control) { try $0.changePassphrase(to: secret, hasLeaked: hasLeaked) }
    }

    /// Joins keys that compete (`.keysForked` among the problems of an exchange): a new epoch begins, which has the members of both sides
    /// but those that were removed on one. Look at `members` first: all of them are believed. Nothing happens where none compete.
    /// - Parameter control: as for `retrieve`.
    /// - Throws: as `members`.
    public func joinKeys(_ control: OperationControl = OperationControl()) throws {
        try withKeys("Joining the keys", control) { run in
            guard try !run.currentKeys.forked.isEmpty else { return }
            try run.change { keys, place, clock, crypto in try keys.joining(in: place, clock, crypto) }
        }
    }

    /// What the members of the place make direct connections by, without being paired: 48 bytes, a secret, which follow from the newest
    /// keys. When these are renewed it is another one, and who has only the former gets in nowhere.
    /// - Parameters:
    ///   - isReadAnew: whether the place is asked for its keys; else it is what they were when they were read last.
    ///   - control: as for `retrieve`.
    /// - Throws: `.unsupported` when the exchange was opened without keys, `.keyMissing` when there are none yet, or they were not read
    ///   yet; as `members`.
    public func pairing(isReadAnew: Bool = true, _ control: OperationControl = OperationControl()) throws -> [UInt8] {
        let members = try memberPairing
        if isReadAnew { return try withKeys("Reading the keys", control) { Pairing(try $0.currentKeys).bytes } }
        return try members.current().bytes
    }
    /// The same for connections: by the keys as they were read last, also when that happens later. What was made by former ones ends.
    /// - Throws: `.unsupported` when the exchange was opened without keys.
    public var memberPairing: MemberPairing {
        get throws {
            guard let transport = transport as? any KeyedTransport, transport.isKeyed else {
                throw StoreError(
                    .unsupported, "\(transport.description) was opened without keys: no pairing follows from it. Give one, or the keys.")
            }
            return MemberPairing { transport.livePairing }
        }
    }

    /// Sends all that lies in the place anew, with its newest keys, and takes what lies there with older ones away: so that who has only
    /// these, since a device or a key was lost, can read nothing any more. (Whoever read it before keeps it.) As much is sent as lies
    /// there. What it replaces is deleted by later exchanges of this device, after a day at most; large values after one more.
    ///
    /// What was interrupted goes on with later exchanges that list all packs, of which there is one each day; or call it again.
    /// - Parameters:
    ///   - renewing: whether keys are made first that nobody has but the members of now. They are there already after a member was
    ///     removed, or a passphrase leaked.
    ///   - control: as for `retrieve`.
    /// - Returns: how many packs lie there still with older keys: those that will be deleted, and those that cannot be read here.
    /// - Throws: as `members`.
    public func rekey(renewing: Bool = false, _ control: OperationControl = OperationControl()) throws -> Int {
        try withKeys("Sending all anew", control) { try $0.rekey(renews: renewing) }
    }

    /// Ends what this device sends to a place in the packed layout, for good: sends what is left, and tells the others, who then put what
    /// it sent together at once, and not after 30 days. Nothing is removed here, and the place is not forgotten: what is sent later all
    /// the same is sent as by another device.
    /// - Parameter control: as for `send`.
    /// - Returns: as `send`.
    /// - Throws: `.unsupported` for a place that holds no packs, and as `send`.
    public func retire(_ control: OperationControl = OperationControl()) throws -> ExchangeResult {
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) holds no packs: nobody there waits for this device.")
        }
        return try exclusively("Retiring") { try transport.retire(store, control) }
    }

    private func withKeys<R>(_ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        guard let transport = transport as? any KeyedTransport else {
            throw StoreError(.unsupported, "\(transport.description) has no members: nothing is encrypted there.")
        }
        return try exclusively(what) { try transport.withKeys(of: store, "\(what) of \(transport.description)", control, body) }
    }
}

extension PackedTransport: KeyedTransport {
    package var livePairing: Pairing? { (keys?.opened?.keys).map(Pairing.init) }
    package func withKeys<R>(of store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        guard isKeyed else {
            throw StoreError(.unsupported, "The exchange with \(description) was opened without keys, and has no members to show.")
        }
        return try run(store, what, control) { run in
            _ = try run.unlock()
            _ = try run.readKeys()
            return try body(run)
        }
    }
}

extension PackedTransport {
    package func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        // Nobody is waited for any more.
        try bothWays(store, "Retiring from \(description)", control) { run in
            run.state.bridging = [:]
            return (try run.retire(), [])
        }
    }
    package func announce(_ address: String, _ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        try bothWays(store, "Announcing a move of \(description)", control) {
            (try $0.announce(address), $0.leftToOthers(fromPacks: true))
        }
    }
}

extension AutomaticTransport: KeyedTransport {
    package var isKeyed: Bool { packs.isKeyed }
    package var livePairing: Pairing? { packs.livePairing }
    package func retire(_ store: Store, _ control: OperationControl) throws -> ExchangeResult {
        guard try isPacked(store, control) else {
            throw StoreError(.unsupported, "\(description) holds no packs: nobody there waits for this device.")
        }
        return try packs.retire(store, control)
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
