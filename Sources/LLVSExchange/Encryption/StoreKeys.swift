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
    /// Epochs that compete with those: made by a device that did not know `current`, or forged. See `joining`.
    let forked: [KeyEpoch]
    /// Members that a ring with only known epochs lists, and that the newest epoch neither has nor removed. They were added while the
    /// newest epoch was made, or by a former member.
    let leftOut: [KeyMember]
    /// Key files that could not be used.
    let problems: [ExchangeProblem]
    /// The competing rings that `joining` accepts: their maker knows a known epoch, or the passphrase.
    let others: [KeyRing]
    /// The files of the rings that count, newest first; then the files of competing rings whose makers had keys of `epochs`.
    let files: [KeyFileName]
    /// The files of other rings.
    var strange: [KeyFileName] = []
    /// Whether all files of rings were read, in this call or before, and none is to be read again.
    var isWhole = true
    /// Members whom joined keys list as removed, although this device's side has not removed them, and the file of these keys.
    var disputed: [(member: KeyMember, file: KeyFileName)] = []
    /// Why a device that has used no keys of the place yet receives, and sends nothing: other keys may be the right ones. Nil otherwise.
    var doubt: StoreError?
    var mayBeOld: Bool { doubt != nil }
    /// The error of a file that the place did not return in this call.
    var withheld: StoreError?

    /// Identifies the keys of an encrypted remote that a device has used, so that an attacker cannot make it accept other keys. Not secret.
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
        let other = "There are other keys of epoch \(one.number) than those that this device uses: "
        return StoreError(
            .keysForked,
            others.isEmpty
                ? other + "their maker knew neither these nor the passphrase, and may be a stranger. They are not used, and cannot be "
                    + "joined. Remove \(strange.first.map { "pack1/keys/\($0)" } ?? "their files"). If a device of yours made them, let it "
                    + "start over then: set the restoration state of its exchange to the word \"new\", once."
                : other + "two devices made or renewed them at once, or a removed member made some. Check the members, then join the keys "
                    + "on one device.")
    }
    /// Reports the members that have no newest keys; nil if there are none.
    var lacking: StoreError? {
        guard let first = leftOut.first else { return nil }
        return StoreError(
            .keysForked,
            "Members without the newest keys, who read nothing that is written with these: \(leftOut.count). The first is "
                + "\"\(first.name)\" (\(first.recipient)). They were added while other keys were made, or by a removed member. Add each "
                + "that you know again, after comparing its recipient on its device, and remove the others.")
    }
    /// Reports the members whom joined keys list as removed; nil if there are none.
    var contested: StoreError? {
        guard let (member, file) = disputed.first else { return nil }
        return StoreError(
            .keysForked,
            "The keys that were joined list \(disputed.count) members as removed, and they are still members. The first is "
                + "\"\(member.name)\" (\(member.recipient)). A former member may have made that list. Remove the members again that you "
                + "had removed. If the others are to stay, remove the file pack1/keys/\(file) then.")
    }
    fileprivate static let advice =
        "Most were made by no device of the place. Exchange again, and further files are read. Or remove from pack1/keys/ the files that "
        + "no device made."

    // MARK: Opening

    /// Opens the keys of a place. Never creates any.
    ///
    /// Reads the files of rings that opened before, then a bounded number of others (`KeyFileNotes`).
    /// - Parameters:
    ///   - stores: the store ids of the roots; empty if none is known yet.
    ///   - pin: the keys that this device remembers.
    ///   - isNew: whether the device has never read all files of rings.
    ///   - notes: the files that were read before; updated, also if the call fails.
    /// - Throws: `.wrongKey` if no credential opens them, `.keyMissing` if there are none, `.damaged` if none can be read,
    ///   `.identifierMismatch` for those of another store, `.keysForked` if they do not continue from the pin, `.tooLarge` if they may be
    ///   among files that a later call reads.
    static func open(
        _ place: KeyDirectory, stores: [PackID], _ unlocking: Unlocking, pin: Pin?, isNew: Bool = false, _ notes: inout KeyFileNotes,
        _ crypto: Crypto
    ) throws -> StoreKeys {
        let (names, passphrases) = try KeyFiles.list(place)
        guard !names.isEmpty || !passphrases.isEmpty else {
            throw KeyFiles.missing(
                "There are no keys in \(place.description). If it is new, create it; if it was used before, restore the files in keys/ "
                    + "from a copy: without them nothing in it can be read.")
        }
        let isNew = isNew || pin == nil
        if !isNew { notes.turn = nil }
        var identities = unlocking.identities, secret: Set<AgeRecipient> = []
        if let passphrase = unlocking.passphrase {
            let opened = try PassphraseFile.openAll(passphrases, passphrase, in: place, first: notes.passphrases, crypto)
            identities += opened.map(\.identity)
            secret = Set(opened.map(\.identity.recipient))
            notes.passphrases = opened.map(\.name)
        }
        guard !identities.isEmpty else {
            throw StoreError(.invalidArgument, "Opening keys in \(place.description) needs a passphrase, a recovery key or an identity.")
        }
        var rings = Rings(place: place, stores: stores, secret: secret, crypto: crypto)
        notes.begin(identities)
        let chosen = notes.chosen(names, isNew: isNew)
        defer { notes = rings.notes }
        rings.notes = notes
        try rings.read(chosen.known, identities)
        rings.notes.nextAgain = try rings.read(chosen.again, identities, atMost: KeyFileNotes.bytes).last ?? notes.nextAgain
        let read = try rings.read(chosen.new, identities, atMost: isNew ? KeyFileNotes.bytesOfNew : KeyFileNotes.bytes)
        rings.notes.next = read.last ?? notes.next
        rings.unread = chosen.left + chosen.new.count - read.count
        var found: StoreKeys
        do { found = try rings.settle(pin, names) } catch {
            // Read again by the next call, for its error.
            if rings.unread == 0 { (rings.notes.tried, rings.notes.turn) = ([:], nil) }
            throw error
        }
        if rings.unread == 0 { rings.notes.turn = nil }
        if isNew { found.doubt = rings.doubt(found, names) }
        rings.notes.remember(found.files, strange: found.strange)
        return found
    }
}

/// Collects the rings of a place while they are read.
private struct Rings {
    let place: KeyDirectory
    let stores: [PackID]
    /// The recipients of the passphrase, which only members know.
    let secret: Set<AgeRecipient>
    let crypto: Crypto
    var notes = KeyFileNotes()
    /// The number of files that were left for later calls.
    var unread = 0
    private var rings: [(name: KeyFileName, ring: KeyRing)] = []
    /// The files that this call found unusable: of each kind of error the number and the first one.
    private var unusable: [StoreError.Code: (count: Int, first: KeyFileName, error: StoreError)] = [:]
    private var isForOthers = false, isOfOther = false, fault: AgeFault?
    /// Whether a file was unreadable in this call, but may become readable.
    private var isOpen = false
    /// The number of files that this call found useless.
    private var uselessNow = 0
    /// The error of the first file that the place did not return.
    private var withheld: StoreError?

    init(place: KeyDirectory, stores: [PackID], secret: Set<AgeRecipient>, crypto: Crypto) {
        self.place = place; self.stores = stores; self.secret = secret; self.crypto = crypto
    }

    /// Reads files until they have more than `limit` bytes together.
    /// - Returns: the files that were read.
    @discardableResult mutating func read(
        _ names: [KeyFileName], _ identities: [AgeIdentity], atMost limit: Int = .max
    ) throws -> ArraySlice<KeyFileName> {
        var size = 0
        for (i, name) in names.enumerated() {
            guard size <= limit else { return names.prefix(i) }
            size += try read(name, identities)
        }
        return names[...]
    }

    /// - Returns: the size of the file.
    private mutating func read(_ name: KeyFileName, _ identities: [AgeIdentity]) throws -> Int {
        let bytes: [UInt8]
        do { bytes = try KeyFiles.read(name, in: place, limit: KeyRing.fileLimit) } catch let found as AgeFault {
            failed(name, found, .open)
            return found.kind == .tooLarge ? KeyRing.fileLimit : 0
        } catch is KeyFiles.Gone {
            isOpen = true
            return 0
        } catch let found as KeyFiles.Withheld {
            // A service that failed once may answer next time, before anything is sent with keys that this file replaces.
            let isNew = notes.tried[name] != .withheld
            notes.note(name, .withheld)
            if isNew, found.error.code == .transport || found.error.code == .busy { throw found.error }
            withheld = withheld ?? found.error
            problem(name, found.error)
            return 0
        }
        do {
            let plain = try AgeReader.decrypt(bytes, .identities(identities), crypto, limit: KeyRing.sizeLimit).plain
            let ring = try KeyRing(plain, crypto)
            guard case .ring(let epoch, _) = name, ring.newest?.number == epoch else {
                throw AgeFault.damaged("its keys are of another epoch than its name says")
            }
            guard stores.isEmpty || stores.contains(ring.store) else {
                isOfOther = true
                notes.note(name, .open)
                problem(name, StoreError(.identifierMismatch, "The keys \(name) in \(place.description) are of another store."))
                return bytes.count
            }
            notes.tried[name] = nil
            rings.append((name, ring))
        } catch let found as AgeFault {
            // A ring for other members is normal: from before a member was added, or after it was removed.
            if found.kind == .wrongKey { notes.note(name, .others) } else { failed(name, found, found.kind == .newer ? .open : .useless) }
        }
        return bytes.count
    }
    private mutating func failed(_ name: KeyFileName, _ found: AgeFault, _ outcome: KeyFileNotes.Outcome) {
        notes.note(name, outcome)
        isOpen = isOpen || outcome == .open
        if outcome == .useless { uselessNow += 1 }
        fault = fault ?? found
        problem(name, found.error("The file of keys \(name) in \(place.description)"))
    }
    private mutating func problem(_ name: KeyFileName, _ error: StoreError) {
        unusable[error.code, default: (0, name, error)].count += 1
    }
    /// Reports unusable files: one problem for each kind, by the name of the file if it is the only one.
    /// - Parameter useless: the number of files that an earlier call found useless.
    private func problems(_ useless: Int) -> [ExchangeProblem] {
        var found: [ExchangeProblem] = []
        for (code, one) in unusable.sorted(by: { $0.key.rawValue > $1.key.rawValue }) {
            let count = code == .damaged ? one.count + useless : one.count
            guard count > 1 else { found.append(ExchangeProblem(name: one.first.description, error: one.error)); continue }
            let error = StoreError(
                code,
                "\(count) files of keys in \(place.description) cannot be used. If no device wrote them, remove them from pack1/keys/. "
                    + "The first: \(one.error.message)")
            found.append(ExchangeProblem(name: "pack1/keys", error: error))
        }
        if unusable[.damaged] == nil, useless > 0 {
            let error = StoreError(
                .damaged,
                "\(useless) files of keys in \(place.description) are none, as was found before. If no device wrote them, remove them "
                    + "from pack1/keys/.")
            found.append(ExchangeProblem(name: "pack1/keys", error: error))
        }
        if unread > 0 {
            let error = StoreError(
                .tooLarge, "\(unread) files of keys in \(place.description) were not read. \(StoreKeys.advice)")
            found.append(ExchangeProblem(name: "pack1/keys", error: error))
        }
        return found
    }

    /// Determines the current keys.
    /// - Parameter names: all files of rings at the place.
    mutating func settle(_ pin: StoreKeys.Pin?, _ names: [KeyFileName]) throws -> StoreKeys {
        isForOthers = names.contains { notes.tried[$0] == .others }
        let read = rings, rings = read.map(\.ring)
        guard !rings.isEmpty else { throw none }
        let useless = max(0, names.count { notes.tried[$0] == .useless } - uselessNow)
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
        var leftOut: [AgeRecipient: KeyMember] = [:]
        for ring in visited {
            for epoch in ring.epochs { epochs[epoch.recipient] = epoch }
        }
        // Rings of the newest epoch repeat who was removed before. A former member may still write rings of earlier epochs.
        for ring in visited where ring.newest?.recipient == current.recipient {
            for member in ring.members { members[member.recipient] = member }
            removed.formUnion(ring.removed)
        }
        // Other rings made by a holder of one of these epochs: data in their epochs is read, but they stay apart until joined.
        func isOther(_ ring: KeyRing) -> Bool { ring.epochs.contains { known[$0.recipient] == nil } }
        // Members whom the makers of these rings knew to lack the epoch, in rings that this device may not open.
        for ring in visited where ring.newest?.recipient == current.recipient {
            for member in ring.lacking where members[member.recipient] == nil && !removed.contains(member.recipient) {
                leftOut[member.recipient] = member
            }
        }
        let known = epochs, others = read.filter { isOther($0.ring) }
        var forked: [AgeRecipient: KeyEpoch] = [:], strange: [KeyFileName] = [], joinable: [KeyRing] = []
        for (name, ring) in others {
            let isKnown = try epochs.values.contains { try ring.isVouched(by: $0, crypto) }
            for epoch in ring.epochs where epochs[epoch.recipient] == nil { forked[epoch.recipient] = epoch }
            if isKnown { for epoch in ring.epochs { epochs[epoch.recipient] = epoch } } else { strange.append(name) }
            // An outsider may know the recipients of devices, which are no secrets.
            if isKnown || ring.members.contains(where: { secret.contains($0.recipient) }),
                ring.epochs.count(where: { known[$0.recipient] == nil }) <= KeyRing.joinedLimit
            {
                joinable.append(ring)
            }
        }
        var disputed: [AgeRecipient: (member: KeyMember, file: KeyFileName)] = [:]
        for (name, ring) in read where !isOther(ring) {
            for member in ring.members where members[member.recipient] == nil && !removed.contains(member.recipient) {
                leftOut[member.recipient] = member
            }
            for recipient in ring.removed where !removed.contains(recipient) {
                if let member = members[recipient] { disputed[recipient] = (member, name) }
            }
        }
        guard let store = visited.last(where: { $0.newest?.recipient == current.recipient })?.store else { throw none }
        let path = Set(visited.compactMap { $0.newest?.recipient })
        let counting = read.filter { one in one.ring.newest.map { path.contains($0.recipient) } ?? false }
        let newest = counting.sorted { ($0.ring.newest?.number ?? 0) > ($1.ring.newest?.number ?? 0) }.map(\.name)
        let apart = Set(newest + strange), rest = read.filter { !apart.contains($0.name) }
        let competing = rest.filter { isOther($0.ring) } + rest.filter { !isOther($0.ring) }
        return StoreKeys(
            store: store, current: current, epochs: epochs.values.sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) },
            members: members.values.filter { !removed.contains($0.recipient) }.sorted { $0.recipient < $1.recipient },
            removed: removed.sorted(), forked: forked.values.sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) },
            leftOut: leftOut.values.sorted { $0.recipient < $1.recipient }, problems: problems(useless), others: joinable,
            files: newest + competing.map(\.name), strange: strange,
            isWhole: unread == 0 && !isOpen && withheld == nil && !names.contains { notes.tried[$0]?.mayChange == true },
            disputed: disputed.values.sorted { $0.member.recipient < $1.member.recipient }, withheld: withheld)
    }

    /// Returns why a device that has used no keys of the place yet sends nothing with those that it found; nil if it does.
    /// - Parameter names: all files of rings at the place.
    func doubt(_ found: StoreKeys, _ names: [KeyFileName]) -> StoreError? {
        let ending = "Until that is settled it receives, and sends nothing."
        if unread > 0 {
            return StoreError(
                .tooLarge,
                "This device has not read all files of keys in \(place.description), so there may be newer keys than it found. "
                    + "\(ending) \(StoreKeys.advice)")
        }
        // An older ring changes nothing.
        if let name = names.first(where: { notes.tried[$0] == .withheld && $0.epoch >= found.current.number }) {
            return StoreError(
                .keyMissing,
                "This device cannot read the file of keys \(name) in \(place.description), and newer keys may be in it. \(ending) Have the "
                    + "file made readable; or remove it from pack1/keys/ if no device made it."
                    + (withheld.map { " The reason: \($0.message)" } ?? ""))
        }
        // Only members know the recipient of the passphrase.
        let isSure = found.others.isEmpty && found.members.contains { secret.contains($0.recipient) }
        guard let other = found.forked.first, !isSure else { return nil }
        let files = (found.files.prefix(1) + found.strange.prefix(1) + found.files.suffix(1)).map { "pack1/keys/\($0)" }
        return StoreError(
            .keysForked,
            "Keys in \(place.description) compete with the keys of epoch \(other.number). This device has used neither of them, and cannot "
                + "tell which ones the members use: a former member may have made some. \(ending) Join the keys on a device that has used "
                + "them. Or remove the files that no device of yours made; some files with keys: "
                + "\(Set(files).sorted().joined(separator: ", ")).")
    }

    /// Returns the epoch from which to start.
    private func start(_ pin: StoreKeys.Pin?) throws -> KeyEpoch {
        if let pin {
            for (_, ring) in rings { if let epoch = ring.epochs.first(where: { $0.recipient == pin.recipient }) { return epoch } }
            if unread > 0 { throw unfinished }
            if let withheld { throw withheld }
            throw StoreError(
                .keysForked,
                "The keys in \(place.description) do not continue from epoch \(pin.number), which this device used. A device that did not "
                    + "know it made new ones, or an old copy was restored. Nothing was changed; compare with another device. If the "
                    + "place was emptied and filled again on purpose, set the restoration state of the exchange to the word \"new\", once: "
                    + "then this device starts over with what is there.")
        }
        let first = rings.compactMap(\.ring.newest).min { ($0.number, $0.recipient) < ($1.number, $1.recipient) }
        guard let first else { throw none }
        return first
    }

    private var unfinished: StoreError {
        StoreError(
            .tooLarge,
            "The keys of \(place.description) were not found yet, since \(unread) files of keys were not read. Nothing was changed. "
                + StoreKeys.advice)
    }

    /// Why no ring can be used.
    private var none: StoreError {
        if unread > 0 { return unfinished }
        // It may be the one.
        if let withheld { return withheld }
        if isForOthers {
            return StoreError(
                .wrongKey,
                "The key opens no keys in \(place.description): it is no member's, or was removed. Nothing was changed. Have a member "
                    + "add this device, or use the passphrase or the recovery key.")
        }
        if let fault { return fault.error("The file of keys in \(place.description)") }
        if isOfOther {
            return StoreError(.identifierMismatch, "The keys in \(place.description) are those of another store. Nothing was changed.")
        }
        return KeyFiles.missing(
            "The keys of \(place.description) are missing: there is a passphrase, and nothing that it opens. If creating it was "
                + "interrupted, create it again with the same passphrase; otherwise restore the files in keys/ from a copy.")
    }
}
