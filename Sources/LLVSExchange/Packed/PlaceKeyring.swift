/// Encrypted remotes: docs/encryption.md.
struct PlaceKeyring {
    let run: PackedRun

    private var clock: KeyClock {
        KeyClock(
            now: { [settings = run.settings] in settings.clock() },
            wait: { [settings = run.settings, check = run.check] in try settings.wait($0, check) })
    }

    /// Reads the keys, if the exchange was opened with some; called before anything else. Throws if the exchange and the place disagree
    /// about encryption.
    /// - Returns: false if the place is to be encrypted and has no keys yet.
    func unlock() throws -> Bool { try run.during(.keys, unlocked) }
    private func unlocked() throws -> Bool {
        guard let keys = run.keys else {
            guard run.state.pin == nil else { throw RemoteKeyDirectory.isEncrypted(run.files.description) }
            return true
        }
        guard run.state.pin != nil || run.state.roots.isEmpty else { throw isInClear }
        // Another process of this device may have adopted newer keys.
        if let opened = keys.opened, run.now >= opened.at, run.now - opened.at < PackedSettings.pause, !opened.keys.mayBeOld,
            run.state.pin.map({ pin in opened.keys.epochs.contains { $0.recipient == pin.recipient } }) ?? true
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
        guard let keys = run.keys else { return false }
        let names = try RemoteKeyDirectory(run.files, run.check, run.state.keyFiles).keyFiles(), opened = keys.opened
        if let opened, opened.names == names, opened.keys.isWhole || run.found.keyNames == names {
            keys.lookedAgain(at: run.now)
            try take(opened.keys)
            return false
        }
        let place = RemoteKeyDirectory(run.files, run.check, listed: names)
        let hasRing = names.contains { if case .ring? = KeyFileName($0) { true } else { false } }
        if !hasRing, run.state.pin == nil, run.state.roots.isEmpty {
            guard try place.holdsData() else { return false }
            guard !names.isEmpty else {
                throw try place.holdsEncrypted() ? RemoteKeyDirectory.keysAreGone(run.files.description) : isInClear
            }
        }
        run.found.keyNames = names
        let found = try openKeys(place, keys)
        keys.set(found, names, at: run.now)
        try take(found)
        // Files of keys that are read again bring nothing if the keys are those of before.
        if let opened, opened.keys.epochs.map(\.recipient) == found.epochs.map(\.recipient) { return true }
        for name in Array(run.state.bad.keys) where run.state.bad[name]?.fault?.kind == .keyMissing { run.state.bad[name]?.again = 0 }
        return true
    }

    private func take(_ found: StoreKeys) throws {
        // Reported again below, once.
        run.found.problems.removeAll { told in told.name == "pack1/keys" || found.problems.contains { $0.name == told.name } }
        run.found.problems += found.problems
        run.state.keyFiles.remember(found.files, strange: found.strange)
        for error in [found.fork, found.lacking, found.contested] {
            if let error { run.found.problems.append(ExchangeProblem(name: "pack1/keys", error: error)) }
        }
        run.state.mayHaveOldKeys = found.mayBeOld
        guard run.state.pin != found.pin else { return }
        // From now on new packs name no large value that only older keys open.
        if run.state.pin != nil {
            run.state.oldBlobs = Set(run.state.blobs.keys)
            run.state.partials = [:]
        }
        run.state.pin = found.pin
        // Saved before anything is written with the new keys.
        try run.save()
    }

    /// Creates keys if there are none, for the credentials of the exchange.
    func makeKeys() throws {
        guard let keys = run.keys else { return }
        let place = RemoteKeyDirectory(run.files, run.check)
        if let opened = keys.opened {
            // An earlier call may have made these keys and ended before it agreed on keys with other devices.
            if isUntouched, opened.keys.current.number == 1 { try agree(opened.keys, place, keys) }
            return
        }
        do {
            let made = try StoreKeys.create(
                in: place, store: run.settings.random.id(), passphrase: keys.given.passphrase, members: keys.given.members(clock),
                hasRecovery: false, clock, keys.crypto
            ).keys
            keys.set(made, [], at: 0)
            try take(made)
            try agree(made, place, keys)
        } catch let error as StoreError where error.code == .storeNotEmpty {
            // Another device was first.
            guard try readKeys(), keys.opened != nil else {
                throw try place.holdsEncrypted() ? RemoteKeyDirectory.keysAreGone(run.files.description) : isInClear
            }
        }
    }

    /// Resolves a race in which two devices made keys at the same moment: adopts the keys of the other if they prevail.
    private func agree(_ made: StoreKeys, _ place: RemoteKeyDirectory, _ keys: PackedKeys) throws {
        var begun = made, agreed = made, turns = 0, notes = run.state.keyFiles
        defer { run.state.keyFiles = notes }
        while true {
            do {
                agreed = try begun.agreed(
                    in: place, keys.given.unlocking, clock, keys.crypto, areOwn: begun.pin == made.pin, &notes,
                    isUsed: opensRoot)
                break
            } catch let error as StoreError where error.code == .keysForked && turns < PlaceKeyring.mostTurns {
                // The device that made the chosen keys has adopted another's meanwhile.
                turns += 1
                begun = try StoreKeys.open(place, stores: [], keys.given.unlocking, pin: nil, &notes, keys.crypto)
            }
        }
        guard agreed.pin != made.pin else { return }
        run.state.pin = nil
        keys.set(agreed, [], at: 0)
        try take(agreed)
        run.found.roots = nil
    }

    private static let mostTurns = 8

    /// Returns whether a root exists that was written with these keys.
    private func opensRoot(_ found: StoreKeys) throws -> Bool {
        guard let keys = run.keys else { return false }
        let sealing = PackCipher(found, keys.crypto).sealing
        let names = try (run.files.list("pack1", withTimes: false, run.check) ?? []).compactMap { PackName("pack1/" + $0.name) }
        let roots = names.filter { $0.kind == .root }.sorted { $0.id < $1.id }.prefix(PackedSettings.rootsLimit)
        let contents = try run.files.read(
            roots.map { RemoteRead(name: $0.description, limit: PackFormat.fileLimit(.root)) }, run.check)
        var withheld: StoreError?
        for (name, contents) in zip(roots, contents) {
            if case .bytes(let bytes, _) = contents, (try? PackedState.Root(name, bytes, sealing)) != nil { return true }
            if case .unreadable(let error) = contents, error.code != .tooLarge { withheld = withheld ?? error }
        }
        // The unreadable root may be the one.
        if let withheld { throw withheld }
        return false
    }

    /// Whether nothing of this place was read and nothing was sent to it.
    private var isUntouched: Bool { run.state.roots.isEmpty && run.state.attempts.isEmpty && run.state.read.isEmpty }

    /// Whether this device began at the place a few minutes ago and has read nothing of other devices. All packs that it ever sent are then
    /// that recent.
    private var hasJustBegun: Bool {
        guard run.state.pin?.number == 1, !run.state.attempts.isEmpty, Int(run.state.next) <= run.state.attempts.count + 1 else {
            return false
        }
        return run.state.attempts.values.allSatisfy { run.now >= $0.listed && run.now - $0.listed < PackedSettings.pause }
            && run.state.read.keys.allSatisfy { run.state.attempts[$0] != nil }
    }

    /// Opens the keys of the place. If several devices create an encrypted place at once, some keys give way to others. A device whose keys
    /// gave way starts over with the prevailing ones. If it has used its own keys for longer, it refuses, since they may have been replaced
    /// maliciously.
    private func openKeys(_ place: RemoteKeyDirectory, _ keys: PackedKeys) throws -> StoreKeys {
        do {
            return try StoreKeys.open(
                place, stores: [], keys.given.unlocking, pin: run.state.pin, isNew: run.state.mayHaveOldKeys, &run.state.keyFiles,
                keys.crypto)
        } catch let error as StoreError where error.code == .keysForked && (isUntouched || hasJustBegun) {
            if hasJustBegun { try run.beginAnew() }
            run.state.pin = nil
            return try StoreKeys.open(place, stores: [], keys.given.unlocking, pin: nil, &run.state.keyFiles, keys.crypto)
        }
    }

    // MARK: Members

    var currentKeys: StoreKeys {
        get throws {
            guard let opened = run.keys?.opened else {
                throw StoreError(
                    .keyMissing,
                    "\(run.files.description) has no keys yet: the first send that has something to send makes them. Send first.")
            }
            if let doubt = opened.keys.doubt { throw doubt }
            return opened.keys
        }
    }

    /// Writes new keys, and uses them from now on.
    func change(_ body: (StoreKeys, RemoteKeyDirectory, KeyClock, Crypto) throws -> StoreKeys) throws {
        let before = try currentKeys
        guard let keys = run.keys else { return }
        let made = try body(before, RemoteKeyDirectory(run.files, run.check), clock, keys.crypto)
        // The next call reads them again.
        keys.set(made, [], at: 0)
        try take(made)
    }

    /// Sets another passphrase, and uses it from now on. A leaked one is removed with its identity: a new epoch begins.
    func changePassphrase(to new: Secret, hasLeaked: Bool) throws {
        guard let keys = run.keys else { return }
        let old = keys.given.passphrase
        var stays: StoreError?
        try change { found, place, clock, crypto in
            if hasLeaked {
                do {
                    return try found.replacingPassphrase(by: new, in: place, clock, &run.state.keyFiles, crypto)
                } catch let left as OldPassphraseStays {
                    stays = left.error
                    return left.keys ?? found
                }
            }
            guard let old else {
                throw StoreError(
                    .invalidArgument,
                    "The passphrase of \(run.files.description) is changed by an exchange that was opened with it, and this one was opened "
                        + "with an identity. Open it with the passphrase, or say that it leaked, and a new one takes its place.")
            }
            do {
                try StoreKeys.changePassphrase(from: old, to: new, in: place, clock, &run.state.keyFiles, crypto)
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
            "\(run.files.description) is not encrypted, and this exchange was opened with keys. Nothing was sent. An encrypted place is so "
                + "from its beginning: give an empty one, or leave the keys out.")
    }
    var hasNoRoot: StoreError {
        StoreError(
            .keyMissing,
            "No root in \(run.files.description) can be opened with the keys that are there. Nothing was sent. Restore the files in pack1/ "
                + "from a copy, or give an empty place.")
    }
}
