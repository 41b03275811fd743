/// The credentials with which an exchange with an encrypted remote was opened, and the keys that they opened.
package final class PackedKeys: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    let crypto: Crypto
    private let lock = Lock(.leaf)
    private var unlocking: RemoteKeys
    private var found: Opened?

    /// The keys, with the names of their files and when they were read.
    struct Opened {
        var keys: StoreKeys
        var names: [String]
        var at: Int64
        let sealing: PackSealing
    }

    package init(_ given: RemoteKeys) throws {
        unlocking = given
        crypto = try RemoteKeys.crypto()
    }

    /// The credentials of the exchange; the passphrase is the one last set.
    var given: RemoteKeys { lock.withLock { unlocking } }
    func setPassphrase(_ new: Secret) { lock.withLock { unlocking.passphrase = new } }
    var opened: Opened? { lock.withLock { found } }
    func set(_ keys: StoreKeys, _ names: [String], at now: Int64) {
        let opened = Opened(keys: keys, names: names, at: now, sealing: PackCipher(keys, crypto).sealing)
        lock.withLock { found = opened }
    }
    func lookedAgain(at now: Int64) { lock.withLock { found?.at = now } }
    func forget() { lock.withLock { found = nil } }
}

/// Encrypted remotes: docs/encryption.md.
extension PackedRun {
    /// How files are sealed at the remote.
    var sealing: PackSealing { keys?.opened?.sealing ?? .none }

    private var clock: KeyClock {
        KeyClock(now: { [settings] in settings.clock() }, wait: { [settings, check] in try settings.wait($0, check) })
    }

    /// Reads the keys, if the exchange was opened with some; called before anything else. Throws if the exchange and the place disagree
    /// about encryption.
    /// - Returns: false if the place is to be encrypted and has no keys yet.
    func unlock() throws -> Bool { try during(.keys, unlocked) }
    private func unlocked() throws -> Bool {
        guard let keys else {
            guard state.pin == nil else { throw RemoteKeyDirectory.isEncrypted(files.description) }
            return true
        }
        guard state.pin != nil || state.roots.isEmpty else { throw isInClear }
        // Another process of this device may have adopted newer keys.
        if let opened = keys.opened, now >= opened.at, now - opened.at < PackedSettings.pause, !opened.keys.mayBeOld,
            state.pin.map({ pin in opened.keys.epochs.contains { $0.recipient == pin.recipient } }) ?? true
        {
            try take(opened.keys)
            return true
        }
        _ = try readKeys()
        return keys.opened != nil
    }

    /// Lists the keys, and reads them if the list has changed.
    /// - Returns: whether it has.
    func readKeys() throws -> Bool {
        guard let keys else { return false }
        let names = try RemoteKeyDirectory(files, check, state.keyFiles).keyFiles(), opened = keys.opened
        if let opened, opened.names == names, opened.keys.isWhole || keyNamesRead == names {
            keys.lookedAgain(at: now)
            try take(opened.keys)
            return false
        }
        let place = RemoteKeyDirectory(files, check, listed: names)
        let hasRing = names.contains { if case .ring? = KeyFileName($0) { true } else { false } }
        if !hasRing, state.pin == nil, state.roots.isEmpty {
            guard try place.holdsData() else { return false }
            guard !names.isEmpty else { throw try place.holdsEncrypted() ? RemoteKeyDirectory.keysAreGone(files.description) : isInClear }
        }
        keyNamesRead = names
        let found = try openKeys(place, keys)
        keys.set(found, names, at: now)
        try take(found)
        // Files of keys that are read again bring nothing if the keys are those of before.
        if let opened, opened.keys.epochs.map(\.recipient) == found.epochs.map(\.recipient) { return true }
        for name in Array(state.bad.keys) where state.bad[name]?.fault?.kind == .keyMissing { state.bad[name]?.again = 0 }
        return true
    }

    private func take(_ found: StoreKeys) throws {
        // Reported again below, once.
        problems.removeAll { told in told.name == "pack1/keys" || found.problems.contains { $0.name == told.name } }
        problems += found.problems
        state.keyFiles.remember(found.files, strange: found.strange)
        for error in [found.fork, found.lacking, found.contested] {
            if let error { problems.append(ExchangeProblem(name: "pack1/keys", error: error)) }
        }
        state.mayHaveOldKeys = found.mayBeOld
        guard state.pin != found.pin else { return }
        // From now on new packs name no large value that only older keys open.
        if state.pin != nil {
            state.oldBlobs = Set(state.blobs.keys)
            state.partials = [:]
        }
        state.pin = found.pin
        // Saved before anything is written with the new keys.
        try save()
    }

    /// Creates keys if there are none, for the credentials of the exchange.
    func makeKeys() throws {
        guard let keys else { return }
        let place = RemoteKeyDirectory(files, check)
        if let opened = keys.opened {
            // An earlier call may have made these keys and ended before it agreed on keys with other devices.
            if isUntouched, opened.keys.current.number == 1 { try agree(opened.keys, place, keys) }
            return
        }
        do {
            let made = try StoreKeys.create(
                in: place, store: settings.random.id(), passphrase: keys.given.passphrase, members: keys.given.members(clock),
                hasRecovery: false, clock, keys.crypto
            ).keys
            keys.set(made, [], at: 0)
            try take(made)
            try agree(made, place, keys)
        } catch let error as StoreError where error.code == .storeNotEmpty {
            // Another device was first.
            guard try readKeys(), keys.opened != nil else {
                throw try place.holdsEncrypted() ? RemoteKeyDirectory.keysAreGone(files.description) : isInClear
            }
        }
    }

    /// Resolves a race in which two devices made keys at the same moment: adopts the keys of the other if they prevail.
    private func agree(_ made: StoreKeys, _ place: RemoteKeyDirectory, _ keys: PackedKeys) throws {
        var begun = made, agreed = made, turns = 0, notes = state.keyFiles
        defer { state.keyFiles = notes }
        while true {
            do {
                agreed = try begun.agreed(
                    in: place, keys.given.unlocking, clock, keys.crypto, areOwn: begun.pin == made.pin, &notes,
                    isUsed: opensRoot)
                break
            } catch let error as StoreError where error.code == .keysForked && turns < PackedRun.mostTurns {
                // The device that made the chosen keys has adopted another's meanwhile.
                turns += 1
                begun = try StoreKeys.open(place, stores: [], keys.given.unlocking, pin: nil, &notes, keys.crypto)
            }
        }
        guard agreed.pin != made.pin else { return }
        state.pin = nil
        keys.set(agreed, [], at: 0)
        try take(agreed)
        rootsListed = nil
    }

    private static let mostTurns = 8

    /// Returns whether a root exists that was written with these keys.
    private func opensRoot(_ found: StoreKeys) throws -> Bool {
        guard let keys else { return false }
        let sealing = PackCipher(found, keys.crypto).sealing
        let names = try (files.list("pack1", withTimes: false, check) ?? []).compactMap { PackName("pack1/" + $0.name) }
        let roots = names.filter { $0.kind == .root }.sorted { $0.id < $1.id }.prefix(PackedSettings.rootsLimit)
        let contents = try files.read(
            roots.map { RemoteRead(name: $0.description, limit: PackFormat.fileLimit(.root)) }, check)
        var withheld: StoreError?
        for (name, contents) in zip(roots, contents) {
            if case .bytes(let bytes, _) = contents, (try? PackedRun.root(name, bytes, sealing)) != nil { return true }
            if case .unreadable(let error) = contents, error.code != .tooLarge { withheld = withheld ?? error }
        }
        // The unreadable root may be the one.
        if let withheld { throw withheld }
        return false
    }

    /// Whether nothing of this place was read and nothing was sent to it.
    private var isUntouched: Bool { state.roots.isEmpty && state.attempts.isEmpty && state.read.isEmpty }

    /// Whether this device began at the place a few minutes ago and has read nothing of other devices. All packs that it ever sent are then
    /// that recent.
    private var hasJustBegun: Bool {
        guard state.pin?.number == 1, !state.attempts.isEmpty, Int(state.next) <= state.attempts.count + 1 else { return false }
        return state.attempts.values.allSatisfy { now >= $0.listed && now - $0.listed < PackedSettings.pause }
            && state.read.keys.allSatisfy { state.attempts[$0] != nil }
    }

    /// Opens the keys of the place. If several devices create an encrypted place at once, some keys give way to others. A device whose keys
    /// gave way starts over with the prevailing ones. If it has used its own keys for longer, it refuses, since they may have been replaced
    /// maliciously.
    private func openKeys(_ place: RemoteKeyDirectory, _ keys: PackedKeys) throws -> StoreKeys {
        do {
            return try StoreKeys.open(
                place, stores: [], keys.given.unlocking, pin: state.pin, isNew: state.mayHaveOldKeys, &state.keyFiles, keys.crypto)
        } catch let error as StoreError where error.code == .keysForked && (isUntouched || hasJustBegun) {
            if hasJustBegun { try beginAnew() }
            state.pin = nil
            return try StoreKeys.open(place, stores: [], keys.given.unlocking, pin: nil, &state.keyFiles, keys.crypto)
        }
    }

    // MARK: Members

    var currentKeys: StoreKeys {
        get throws {
            guard let opened = keys?.opened else {
                throw StoreError(
                    .keyMissing, "\(files.description) has no keys yet: the first send that has something to send makes them. Send first.")
            }
            if let doubt = opened.keys.doubt { throw doubt }
            return opened.keys
        }
    }

    /// Writes new keys, and uses them from now on.
    func change(_ body: (StoreKeys, RemoteKeyDirectory, KeyClock, Crypto) throws -> StoreKeys) throws {
        let before = try currentKeys
        guard let keys else { return }
        let made = try body(before, RemoteKeyDirectory(files, check), clock, keys.crypto)
        // The next call reads them again.
        keys.set(made, [], at: 0)
        try take(made)
    }

    /// Sets another passphrase, and uses it from now on. A leaked one is removed with its identity: a new epoch begins.
    func changePassphrase(to new: Secret, hasLeaked: Bool) throws {
        guard let keys else { return }
        let old = keys.given.passphrase
        var stays: StoreError?
        try change { found, place, clock, crypto in
            if hasLeaked {
                do {
                    return try found.replacingPassphrase(by: new, in: place, clock, &state.keyFiles, crypto)
                } catch let left as OldPassphraseStays {
                    stays = left.error
                    return left.keys ?? found
                }
            }
            guard let old else {
                throw StoreError(
                    .invalidArgument,
                    "The passphrase of \(files.description) is changed by an exchange that was opened with it, and this one was opened "
                        + "with an identity. Open it with the passphrase, or say that it leaked, and a new one takes its place.")
            }
            do {
                try StoreKeys.changePassphrase(from: old, to: new, in: place, clock, &state.keyFiles, crypto)
            } catch let left as OldPassphraseStays {
                stays = left.error
            }
            return found
        }
        keys.setPassphrase(new)
        if let stays { throw stays }
    }

    private var isInClear: StoreError {
        StoreError(
            .keyMissing,
            "\(files.description) is not encrypted, and this exchange was opened with keys. Nothing was sent. An encrypted place is so "
                + "from its beginning: give an empty one, or leave the keys out.")
    }
    var hasNoRoot: StoreError {
        StoreError(
            .keyMissing,
            "No root in \(files.description) can be opened with the keys that are there. Nothing was sent. Restore the files in pack1/ "
                + "from a copy, or give an empty place.")
    }
}
