/// A passphrase was changed, but a file of the old one could not be deleted.
struct OldPassphraseStays: Error {
    /// The new keys, if any were made.
    let keys: StoreKeys?
    let error: StoreError
}
extension StoreError {
    fileprivate func stays(_ what: String, _ files: [KeyFileName]) -> StoreError {
        var error = self
        let names = files.prefix(3).map { "pack1/keys/\($0)" }.joined(separator: ", ") + (files.count > 3 ? " and others" : "")
        error.message =
            "The new passphrase \(what). The old one's file could not be removed: \(message) Have \(names) removed by a user "
            + "who may do so."
        return error
    }
}

/// Makes keys, and changes their members.
extension StoreKeys {
    /// Seconds between the two checks that must find a place empty before keys are made. Thereby two devices that begin at once see each
    /// other, and a listing that is behind can catch up.
    static let secondLook = 10.0

    /// Makes the keys of an empty place, with one epoch.
    ///
    /// An interrupted call is resumed if nothing but the file of the same passphrase exists.
    /// - Parameters:
    ///   - store: the store id of the root.
    ///   - passphrase: for the member "passphrase"; nil: there is no such member.
    ///   - members: other members: this device.
    ///   - hasRecovery: whether to make a recovery key.
    /// - Returns: the keys, and the recovery key, which is not stored anywhere.
    /// - Throws: `.storeNotEmpty` if the place is not empty, `.wrongKey` if it has a file of another passphrase. Then nothing was created.
    static func create(
        in place: KeyDirectory, store: PackID, passphrase: Secret?, members given: [KeyMember] = [], hasRecovery: Bool, _ clock: KeyClock,
        _ crypto: Crypto
    ) throws -> (keys: StoreKeys, recovery: AgeIdentity?) {
        if let passphrase { try PassphraseFile.check(passphrase) }
        _ = try unused(place, passphrase)
        try clock.wait(secondLook)
        let begun = try unused(place, passphrase)
        var members = given, recovery: AgeIdentity?
        let made = clock.text()
        var opened: [(name: KeyFileName, identity: AgeIdentity, store: PackID)] = []
        if let passphrase, !begun.isEmpty { opened = try PassphraseFile.openAll(begun, passphrase, in: place, crypto) }
        var identity = opened.first?.identity
        if let passphrase, identity == nil {
            let new = try AgeIdentity(crypto)
            _ = try PassphraseFile.make(new, store: store, passphrase, in: place, clock, crypto)
            identity = new
        }
        if let identity {
            members.append(KeyMember(name: "passphrase", kind: .passphrase, recipient: identity.recipient, added: made))
        }
        if hasRecovery {
            let key = try AgeIdentity(crypto)
            members.append(KeyMember(name: "recovery key", kind: .recovery, recipient: key.recipient, added: made))
            recovery = key
        }
        let epoch = try KeyEpoch(number: 1, identity: AgeIdentity(crypto), made: made, why: "created", crypto)
        let ring = try KeyRing(store: store, epochs: [epoch], members: members, removed: [])
        return (try write(ring, to: place, crypto, problems: []), recovery)
    }

    /// Throws if the place has anything but files of a passphrase, and returns these.
    private static func unused(_ place: KeyDirectory, _ passphrase: Secret?) throws -> [KeyFileName] {
        let (rings, passphrases) = try KeyFiles.list(place)
        guard try rings.isEmpty && !place.holdsData() && (passphrases.isEmpty || passphrase != nil) else {
            throw StoreError(
                .storeNotEmpty,
                "No keys were made in \(place.description), since it is not empty. Open it with its passphrase or recovery key, or give an "
                    + "empty place.")
        }
        return passphrases
    }

    /// Checks, before anything is written with new keys, whether another device made keys at the same moment, and makes both use the same.
    /// It chooses the keys with which something at the place was written; if there are none, the keys that a new device would choose.
    ///
    /// A device whose keys give way adds its members to the others, and deletes its own files, which no device needs. Keys that cannot be
    /// opened stay apart.
    /// - Parameters:
    ///   - areOwn: whether this device made these keys, and so may delete them.
    ///   - isUsed: returns whether something was written with keys.
    ///   - notes: the files that were read before; updated.
    /// - Throws: `.keysForked` if the chosen keys were deleted meanwhile, since their maker gave way to another device.
    func agreed(
        in place: KeyDirectory, _ unlocking: Unlocking, _ clock: KeyClock, _ crypto: Crypto, areOwn: Bool = true,
        _ notes: inout KeyFileNotes, isUsed: (StoreKeys) throws -> Bool
    ) throws -> StoreKeys {
        guard try KeyFiles.list(place).rings.count > 1 else { return self }
        // A device that has not seen these keys may be about to write.
        try clock.wait(StoreKeys.secondLook)
        let seen = try StoreKeys.open(place, stores: [], unlocking, pin: pin, &notes, crypto)
        // It may be the ring of the other device.
        if let withheld = seen.withheld { throw withheld }
        var all = [seen]
        for epoch in seen.forked where epoch.number == 1 {
            all.append(try StoreKeys.open(place, stores: [], unlocking, pin: Pin(number: 1, recipient: epoch.recipient), &notes, crypto))
        }
        all.sort { ($0.current.number, $0.current.recipient) < ($1.current.number, $1.current.recipient) }
        guard let first = try all.first(where: isUsed) ?? all.first, first.pin != pin else { return self }
        var identities = unlocking.identities, needless: [KeyFileName] = [], replaced: Set<AgeRecipient> = []
        if let passphrase = unlocking.passphrase {
            let files = try PassphraseFile.openAll(
                KeyFiles.list(place).passphrases, passphrase, in: place, first: notes.passphrases, crypto)
            identities += files.map(\.identity)
            func hasIt(_ keys: StoreKeys, _ identity: AgeIdentity) -> Bool { keys.members.contains { $0.recipient == identity.recipient } }
            if files.contains(where: { hasIt(first, $0.identity) }) {
                let own = files.filter { hasIt(self, $0.identity) && !hasIt(first, $0.identity) }
                needless = own.map(\.name)
                replaced = Set(own.map(\.identity.recipient))
            }
        }
        let new = members.filter { member in
            !replaced.contains(member.recipient) && !first.members.contains { $0.recipient == member.recipient }
        }
        if !new.isEmpty {
            let ring = try KeyRing(store: first.store, epochs: first.own, members: first.members + new, removed: first.removed)
            notes.remember(try StoreKeys.write(ring, to: place, crypto, from: first).files, strange: [])
        }
        // This device's own rings are among the rings that count for it.
        for name in areOwn ? seen.files : [] {
            guard let bytes = try? KeyFiles.read(name, in: place, limit: KeyRing.fileLimit),
                let plain = try? AgeReader.decrypt(bytes, .identities(identities), crypto, limit: KeyRing.sizeLimit).plain,
                let ring = try? KeyRing(plain, crypto), ring.newest?.recipient == current.recipient
            else { continue }
            needless.append(name)
        }
        // If nothing can be deleted they stay, and are reported.
        for name in needless { try? place.delete(name.description) }
        return try StoreKeys.open(place, stores: [], unlocking, pin: first.pin, &notes, crypto)
    }

    /// Adds a member, who can read existing and future data.
    func adding(_ member: KeyMember, in place: KeyDirectory, _ crypto: Crypto) throws -> StoreKeys {
        guard !removed.contains(member.recipient) else {
            throw StoreError(
                .invalidArgument, "\(member.recipient) was removed from \(place.description). Let the device make a new identity.")
        }
        guard !members.contains(where: { $0.recipient == member.recipient }) else { return self }
        var member = member
        // The passphrase of keys that were joined stays one, so that it is removed after a leak.
        if leftOut.contains(where: { $0.recipient == member.recipient && $0.kind == .passphrase }) { member.kind = .passphrase }
        let ring = try KeyRing(store: store, epochs: own, members: members + [member], removed: removed, lacking: leftOut)
        return try StoreKeys.write(ring, to: place, crypto, from: self)
    }

    /// Begins a new epoch without some members. They can still read data written before it.
    /// - Parameters:
    ///   - why: the reason, for display.
    ///   - replacing: members that replace others.
    func rotating(
        _ why: String, removing gone: [AgeRecipient] = [], replacing new: [KeyMember] = [], in place: KeyDirectory, _ clock: KeyClock,
        _ crypto: Crypto
    ) throws -> StoreKeys {
        for recipient in gone where !(members + leftOut).contains(where: { $0.recipient == recipient }) {
            throw StoreError(.invalidArgument, "\(recipient) is no member of \(place.description).")
        }
        let rest = (members + new).filter { !gone.contains($0.recipient) }
        let ring = try KeyRing(
            store: store, epochs: own + [next(after: own, why, clock, crypto)], members: rest, removed: removed + gone, lacking: leftOut)
        return try StoreKeys.write(ring, to: place, crypto, from: self)
    }

    /// Joins competing keys: a new epoch that follows all epochs of both sides, with the members of this side. Members of the other side
    /// alone are then `leftOut`: a former member may have added them.
    ///
    /// If this side has removed no member, the removals of the other side count. Otherwise a former member may have made that side, so its
    /// removals are `disputed`.
    /// - Throws: `.keysForked` if an outsider may have made all the competing keys: none of their makers knew an epoch or the passphrase.
    func joining(in place: KeyDirectory, _ clock: KeyClock, _ crypto: Crypto) throws -> StoreKeys {
        guard let fork else { return self }
        guard !others.isEmpty else { throw fork }
        var epochs: [AgeRecipient: KeyEpoch] = [:], removed = Set(removed)
        for epoch in self.epochs + others.flatMap(\.epochs) { epochs[epoch.recipient] = epoch }
        if removed.isEmpty { for ring in others { removed.formUnion(ring.removed) } }
        let all = Array(epochs.values)
        let ring = try KeyRing(
            store: min(store, others.map(\.store).min() ?? store), epochs: all + [next(after: all, "joined", clock, crypto)],
            members: members.filter { !removed.contains($0.recipient) }, removed: Array(removed),
            lacking: leftOut + others.flatMap(\.members))
        return try StoreKeys.write(ring, to: place, crypto, problems: problems, beside: files)
    }

    /// Sets another passphrase for the same identity, and deletes the files that the old one opens. A copy of such a file can still be
    /// opened: if a passphrase leaked, use `replacingPassphrase`.
    /// - Parameter notes: the files that were read before; updated.
    /// - Throws: as `PassphraseFile.openAll`: then nothing was created. `OldPassphraseStays` if only the deletion failed.
    static func changePassphrase(
        from old: Secret, to new: Secret, in place: KeyDirectory, _ clock: KeyClock, _ notes: inout KeyFileNotes, _ crypto: Crypto
    ) throws {
        try PassphraseFile.check(new)
        let opened = try PassphraseFile.openAll(try KeyFiles.list(place).passphrases, old, in: place, first: notes.passphrases, crypto)
        var done: Set<AgeRecipient> = []
        for (_, identity, store) in opened where done.insert(identity.recipient).inserted {
            let name = try PassphraseFile.make(identity, store: store, new, in: place, clock, crypto)
            guard try PassphraseFile.open(name, new, in: place, crypto).0.recipient == identity.recipient else {
                throw StoreError(.internal, "A passphrase that was just set does not open its file.")
            }
            notes.passphrases.append(name)
        }
        let (left, error) = try StoreKeys.deleting(opened.map(\.name), in: place)
        if let error {
            let what = "opens \(place.description), and so does the old one"
            throw OldPassphraseStays(keys: nil, error: error.stays(what, left))
        }
    }

    /// Gives the member "passphrase" a new identity under a new passphrase, and begins a new epoch, after the old passphrase leaked.
    /// - Parameter notes: the files that were read before; updated.
    /// - Throws: `OldPassphraseStays` if only the deletion failed.
    func replacingPassphrase(
        by new: Secret, in place: KeyDirectory, _ clock: KeyClock, _ notes: inout KeyFileNotes, _ crypto: Crypto
    ) throws -> StoreKeys {
        try PassphraseFile.check(new)
        let old = try KeyFiles.list(place).passphrases, identity = try AgeIdentity(crypto)
        let name = try PassphraseFile.make(identity, store: store, new, in: place, clock, crypto)
        let member = KeyMember(name: "passphrase", kind: .passphrase, recipient: identity.recipient, added: clock.text())
        let keys = try rotating(
            "the passphrase leaked", removing: members.filter { $0.kind == .passphrase }.map(\.recipient), replacing: [member], in: place,
            clock, crypto)
        notes.passphrases = [name]
        let (left, error) = try StoreKeys.deleting(old.filter { $0 != name }, in: place)
        if let error {
            let what = "opens \(place.description), and new keys are there, which the old one does not open"
            throw OldPassphraseStays(keys: keys, error: error.stays(what, left))
        }
        return keys
    }

    /// - Returns: the files that could not be deleted, and the error of the last one.
    private static func deleting(_ files: [KeyFileName], in place: KeyDirectory) throws -> ([KeyFileName], StoreError?) {
        var left: [KeyFileName] = [], last: StoreError?
        for file in files {
            do { try place.delete(file.description) } catch let error as StoreError {
                left.append(file)
                last = error
                if error.code == .cancelled { break }
            }
        }
        return (left, last)
    }

    /// The epochs that lead to the current epoch, without competing epochs.
    private var own: [KeyEpoch] { epochs.filter { epoch in !forked.contains { $0.recipient == epoch.recipient } } }

    private func next(after epochs: [KeyEpoch], _ why: String, _ clock: KeyClock, _ crypto: Crypto) throws -> KeyEpoch {
        let (number, overflow) = (epochs.map(\.number).max() ?? 0).addingReportingOverflow(1)
        guard !overflow else { throw StoreError(.tooLarge, "There are no further epochs. Begin a new remote.") }
        return try KeyEpoch(number: number, identity: AgeIdentity(crypto), made: clock.text(), why: why, crypto)
    }

    /// Writes a ring, and returns its keys.
    private static func write(
        _ ring: KeyRing, to place: KeyDirectory, _ crypto: Crypto, problems: [ExchangeProblem] = [], beside files: [KeyFileName] = [],
        from before: StoreKeys? = nil
    ) throws -> StoreKeys {
        guard let newest = ring.newest else { throw StoreError(.internal, "A ring of keys has no epoch.") }
        let bytes = try AgeWriter.encrypt(ring.encoded(crypto), for: .recipients(ring.members.map(\.recipient)), crypto)
        let name = KeyFileName.ring(epoch: newest.number, id: KeyFileName.id(of: bytes))
        try KeyFiles.create(name, bytes, in: place)
        let forked = before?.forked ?? []
        return StoreKeys(
            store: ring.store, current: newest,
            epochs: (ring.epochs + (before?.epochs ?? []).filter { !ring.holds($0) })
                .sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) },
            members: ring.members, removed: ring.removed, forked: forked, leftOut: ring.lacking, problems: before?.problems ?? problems,
            others: before?.others ?? [], files: Array(([name] + (before?.files ?? files)).prefix(KeyFileNotes.ringsLimit)))
    }
}
