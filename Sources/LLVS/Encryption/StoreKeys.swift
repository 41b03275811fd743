/// The keys of an encrypted remote, opened: docs/encryption.md, section 5.
struct StoreKeys: Sendable {
    /// The store id in the ring.
    let store: PackID
    /// The epoch of new packs.
    let current: KeyEpoch
    /// All epochs whose packs are trusted, including `current`.
    let epochs: [KeyEpoch]
    let members: [KeyMember]
    /// The former members.
    let removed: [AgeRecipient]
    /// Epochs that compete with those: made by a device that did not know `current`, or forged. See `join`.
    let forked: [KeyEpoch]
    /// Members of an earlier epoch that are neither members nor removed in the newest: they were added while that was made.
    let leftOut: [KeyMember]
    /// Key files that could not be used.
    let problems: [ExchangeProblem]
    /// The rings that `join` combines.
    let others: [KeyRing]

    /// Identifies the keys of an encrypted remote that a device has used, so that it cannot be made to accept others instead. Not secret.
    struct Pin: Hashable, Sendable {
        let number: UInt32
        let recipient: AgeRecipient
    }
    var pin: Pin { Pin(number: current.number, recipient: current.recipient) }

    /// The credentials that open rings.
    struct Unlocking {
        var passphrase: Secret?
        var identities: [AgeIdentity] = []
    }

    /// Why there are competing keys; nil if there are none.
    var fork: StoreError? {
        guard let one = forked.first else { return nil }
        return StoreError(
            .keysForked,
            "There are other keys of epoch \(one.number) than those that this device uses: two devices made or renewed them at once, or "
                + "somebody who was removed made some. Look at the members, then join the keys on one device.")
    }

    // MARK: Opening

    /// The most rings that are read, the newest first: a store has one for each change of its members or keys.
    static let ringsLimit = 256

    /// Opens the keys of a place. Never creates any.
    /// - Parameters:
    ///   - stores: the store ids of the roots; empty if none is known yet.
    ///   - pin: the keys that this device remembers.
    /// - Throws: `.wrongKey` if no credential opens them, `.keyMissing` if there are none, `.damaged` if none can be read,
    ///   `.identifierMismatch` for those of another store, `.keysForked` if they do not continue from the pin.
    static func open(
        _ place: KeyDirectory, stores: [PackID], _ unlocking: Unlocking, pin: Pin? = nil, _ crypto: Crypto
    ) throws -> StoreKeys {
        let (names, passphrases) = try KeyFiles.list(place)
        guard !names.isEmpty || !passphrases.isEmpty else {
            throw KeyFiles.missing(
                "There are no keys in \(place.description). If it is new, create it; if it was used before, bring back the files in keys/ "
                    + "from a copy: without them nothing in it can be read.")
        }
        var identities = unlocking.identities
        if let passphrase = unlocking.passphrase {
            identities += try PassphraseFile.openAll(passphrases, passphrase, in: place, crypto).map(\.identity)
        }
        guard !identities.isEmpty else {
            throw StoreError(.invalidArgument, "Opening keys in \(place.description) needs a passphrase, a recovery key or an identity.")
        }
        var rings = Rings(place: place, stores: stores, crypto: crypto)
        for name in names.suffix(ringsLimit) { try rings.read(name, identities) }
        return try rings.settle(pin)
    }
}

/// Collects the rings of a place while they are read.
private struct Rings {
    let place: KeyDirectory
    let stores: [PackID]
    let crypto: Crypto
    private var rings: [KeyRing] = []
    private var problems: [ExchangeProblem] = []
    private var isForOthers = false, isOfOther = false, fault: AgeFault?

    init(place: KeyDirectory, stores: [PackID], crypto: Crypto) { self.place = place; self.stores = stores; self.crypto = crypto }

    mutating func read(_ name: KeyFileName, _ identities: [AgeIdentity]) throws {
        do {
            let bytes = try KeyFiles.read(name, in: place, limit: KeyRing.fileLimit)
            let plain = try AgeReader.decrypt(bytes, .identities(identities), crypto, limit: KeyRing.sizeLimit).plain
            let ring = try KeyRing(plain, crypto)
            guard case .ring(let epoch, _) = name, ring.newest?.number == epoch else {
                throw AgeFault.damaged("its keys are of another epoch than its name says")
            }
            guard stores.isEmpty || stores.contains(ring.store) else {
                isOfOther = true
                problem(name, StoreError(.identifierMismatch, "The keys \(name) in \(place.description) are of another store."))
                return
            }
            rings.append(ring)
        } catch let found as AgeFault {
            // A ring for other members is normal: from before a member was added, or after it was removed.
            if found.kind == .wrongKey { isForOthers = true; return }
            fault = fault ?? found
            problem(name, found.error("The file of keys \(name) in \(place.description)"))
        } catch is KeyFiles.Gone {}
    }
    private mutating func problem(_ name: KeyFileName, _ error: StoreError) {
        if problems.count < ExchangeLimits.problemCount { problems.append(ExchangeProblem(name: name.description, error: error)) }
    }

    /// Determines the current keys.
    func settle(_ pin: StoreKeys.Pin?) throws -> StoreKeys {
        guard !rings.isEmpty else { throw none }
        var current = try start(pin), visited: [KeyRing] = []
        while true {
            visited += rings.filter { $0.newest?.recipient == current.recipient }
            let later = try rings.filter {
                guard let newest = $0.newest, newest.number > current.number, $0.holds(current) else { return false }
                return try $0.isVouched(by: current, crypto)
            }
            let next = later.compactMap(\.newest).min { ($0.number, $0.recipient) < ($1.number, $1.recipient) }
            guard let next else { break }
            current = next
        }
        var epochs: [AgeRecipient: KeyEpoch] = [:], members: [AgeRecipient: KeyMember] = [:], removed: Set<AgeRecipient> = []
        for ring in visited {
            for epoch in ring.epochs { epochs[epoch.recipient] = epoch }
            removed.formUnion(ring.removed)
        }
        for ring in visited where ring.newest?.recipient == current.recipient {
            for member in ring.members { members[member.recipient] = member }
        }
        // Other rings made by a holder of one of these epochs: data in their epochs is read, but they stay apart until joined.
        let others = rings.filter { ring in ring.epochs.contains { epochs[$0.recipient] == nil } }
        var forked: [AgeRecipient: KeyEpoch] = [:]
        for ring in others {
            let isKnown = try epochs.values.contains { try ring.isVouched(by: $0, crypto) }
            for epoch in ring.epochs where epochs[epoch.recipient] == nil { forked[epoch.recipient] = epoch }
            if isKnown { for epoch in ring.epochs { epochs[epoch.recipient] = epoch } }
        }
        let leftOut = visited.flatMap(\.members).filter { members[$0.recipient] == nil && !removed.contains($0.recipient) }
        guard let store = visited.last(where: { $0.newest?.recipient == current.recipient })?.store else { throw none }
        return StoreKeys(
            store: store, current: current, epochs: epochs.values.sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) },
            members: members.values.filter { !removed.contains($0.recipient) }.sorted { $0.recipient < $1.recipient },
            removed: removed.sorted(), forked: forked.values.sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) },
            leftOut: Array(Set(leftOut)).sorted { $0.recipient < $1.recipient }, problems: problems, others: others)
    }

    /// Returns the epoch from which to start.
    private func start(_ pin: StoreKeys.Pin?) throws -> KeyEpoch {
        if let pin {
            for ring in rings { if let epoch = ring.epochs.first(where: { $0.recipient == pin.recipient }) { return epoch } }
            throw StoreError(
                .keysForked,
                "The keys in \(place.description) do not go on from epoch \(pin.number), which this device used. They were made anew by "
                    + "who did not know it, or an old copy was brought back. Nothing was changed; compare with another device. If the "
                    + "place was emptied and filled anew on purpose, set the restoration state of the exchange to the word \"new\", once: "
                    + "then this device begins anew with what is there.")
        }
        let first = rings.compactMap(\.newest).min { ($0.number, $0.recipient) < ($1.number, $1.recipient) }
        guard let first else { throw none }
        return first
    }

    /// Why no ring can be used.
    private var none: StoreError {
        if isForOthers {
            return StoreError(
                .wrongKey,
                "What was given opens no keys in \(place.description): it is no member, or was removed. Nothing was changed. Have a member "
                    + "add this device, or use the passphrase or the recovery key.")
        }
        if let fault { return fault.error("The file of keys in \(place.description)") }
        if isOfOther {
            return StoreError(.identifierMismatch, "The keys in \(place.description) are those of another store. Nothing was changed.")
        }
        return KeyFiles.missing(
            "The keys of \(place.description) are missing: there is a passphrase, and nothing that it opens. If creating it was "
                + "interrupted, create it again with the same passphrase; else bring back the files in keys/ from a copy.")
    }
}
