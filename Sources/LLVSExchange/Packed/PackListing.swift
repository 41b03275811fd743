/// Lists a place, and compares what is listed with what the device knows: docs/pack-format.md, section 7.
struct PackListing {
    let run: PackedRun

    /// The size of a file if the service does not return it.
    static let unknownSize = -1

    /// Returns the packs in a directory, with their sizes; `unknownSize` if the service does not return them.
    func list(_ kind: PackKind) throws -> [PackName: Int] {
        try run.control.check(.listing, 0, of: 0, doing: run.what)
        let directory = String(kind.prefix.dropLast()), paced = run.control.paced(.listing, doing: run.what)
        var found: [PackName: Int] = [:]
        for entry in try run.files.list(directory, withTimes: false, run.check) ?? [] where !entry.isDirectory {
            try paced.step(0)
            guard let name = PackName(kind.prefix + entry.name), found.count < 1_000_000 else { continue }
            // The service may return an impossible size.
            found[name] = entry.size.map { min(max(0, $0), 1 << 40) } ?? PackListing.unknownSize
        }
        return found
    }

    /// Discards the roots of a place that is refused.
    private func forgetNewRoots() { (run.state.roots, run.found.roots) = (run.before.roots, nil) }

    /// Lists the roots again, although they were listed in this run.
    func listRootsAnew() throws -> Bool {
        run.found.roots = nil
        return try listRoots()
    }

    /// Lists the roots, and reads new ones; once per run.
    /// - Returns: whether there is any.
    func listRoots() throws -> Bool {
        if let roots = run.found.roots { return !roots.isEmpty }
        let paced = run.control.paced(.listing, doing: run.what)
        var sizes: [PackName: Int] = [:], hasKeys = false, holdsOther = false
        for entry in try run.files.list("pack1", withTimes: false, run.check) ?? [] {
            try paced.step(0)
            if entry.isDirectory { hasKeys = hasKeys || entry.name == "keys"; holdsOther = true; continue }
            if let name = PackName("pack1/" + entry.name), name.kind == .root { sizes[name] = entry.size ?? PackListing.unknownSize }
        }
        // A root itself says whether the place is encrypted.
        if run.keys == nil, hasKeys || (holdsOther && sizes.isEmpty) { try RemoteKeyDirectory.refuseKeys(run.files, run.check) }
        let known = Set(run.state.roots.map(\.name))
        // Known roots stay, so that an attacker who writes many with smaller ids displaces none.
        let unknown = try sizes.keys.filter {
            try paced.step(0); return !known.contains($0)
        }
        var new = try unknown.sorted(by: { $0.id < $1.id }, looking: paced.look).prefix(PackedSettings.rootsLookedAt)
        var withheld: [(name: PackName, error: StoreError)] = []
        while !new.isEmpty, run.state.roots.count < PackedSettings.rootsLimit {
            let some = new.prefix(PackedSettings.rootsLimit - run.state.roots.count)
            new = new.dropFirst(some.count)
            let reads = some.map { RemoteRead(name: $0.description, limit: PackFormat.fileLimit(.root)) }
            for (name, contents) in try zip(some, run.files.read(reads, run.check)) {
                if case .unreadable(let error) = contents, error.code != .tooLarge { withheld.append((name, error)) }
                try takeRoot(name, contents)
            }
        }
        // Without this error, a device that knows no root would create another one beside the unreadable one.
        if run.state.roots.isEmpty, let error = withheld.first?.error { throw error }
        for (name, error) in withheld { run.found.problems.append(ExchangeProblem(name: name.description, error: error)) }
        run.state.roots.sort { $0.name.id < $1.name.id }
        run.found.roots = sizes
        return !sizes.isEmpty
    }

    /// Reads a root, and remembers it if it is valid.
    private func takeRoot(_ name: PackName, _ contents: RemoteContents) throws {
        guard case .bytes(let bytes, _) = contents else { return }
        do {
            run.state.roots.append(try PackedState.Root(name, bytes, run.sealing))
            // Packs may belong to the store that it names.
            for (name, bad) in run.state.bad where bad.fault?.kind == .otherStore { run.state.bad[name]?.again = 0 }
            // Another device has refilled it already.
            run.state.seedsAnew = false
            run.state.formerStores = []
        } catch let fault as PackFault {
            if run.keys == nil, bytes.starts(with: AgeHeader.magic) { throw RemoteKeyDirectory.isEncrypted(run.files.description) }
            if fault.kind != .notThere { run.found.problems.append(run.problem(name, fault)) }
        }
    }

    // MARK: A place that is new, reset, or another

    /// Returns whether anything is at a remote of which this device knows no root.
    func lookForRoots() throws -> Bool {
        if try listRoots() { return true }
        // Only the root may have been removed.
        return try !list(.log).isEmpty
    }

    func isFullListingDue(_ logs: [PackName: Int]) throws -> Bool {
        guard let based = run.state.based, run.now >= based else { return true }
        if run.now - based > PackedSettings.day || (run.state.healing != 0 && run.now >= run.state.healing) { return true }
        guard run.now - based >= PackedSettings.pause else { return false }
        if run.state.read.values.contains(where: { $0.missing != 0 && !$0.isReplaced }) || !run.state.missingBlobs.isEmpty { return true }
        if run.state.bad.contains(where: { $0.key.kind == .base && $0.value.fault?.kind == .damaged }) { return true }
        return try lacksNewest(logs) || hasGap(logs)
    }

    /// Returns whether the newest pack of a writer is not listed and not known to be replaced. Each writer leaves its newest pack in
    /// `log/`, so the remote was reset, or the pack was adopted.
    private func lacksNewest(_ logs: [PackName: Int]) throws -> Bool {
        let paced = run.control.paced(.listing, doing: run.what)
        for (writer, newest) in run.state.seen where writer != run.state.writer {
            try paced.step(0)
            let name = PackName(kind: .log, writer: writer, first: newest.number, last: newest.number, id: newest.id)
            if logs[name] == nil, let read = run.state.read[name], !read.isReplaced { return true }
        }
        let mine = run.state.attempts.filter { $0.key.writer == run.state.writer && $0.key.kind == .log && $0.value.outcome == .done }.keys
        guard let newest = mine.max(by: { $0.last < $1.last }) else { return false }
        return logs[newest] == nil && run.state.read[newest]?.isReplaced != true
    }

    /// Returns whether another writer has a number, below its largest, that is neither listed nor known.
    private func hasGap(_ logs: [PackName: Int]) throws -> Bool {
        let paced = run.control.paced(.listing, doing: run.what)
        var listed: [UInt64: [UInt32]] = [:]
        for name in logs.keys where name.writer != run.state.writer {
            try paced.step(0); listed[name.writer, default: []].append(name.last)
        }
        return try listed.contains { writer, numbers in
            try paced.step(0); return run.state.covered.hasGap(writer, listed: numbers)
        }
    }

    /// Lists `base/` and the roots.
    /// - Throws: `.notFound` if the remote was emptied.
    func listFully(_ logs: [PackName: Int]) throws -> [PackName: Int] {
        let bases = try list(.base)
        try refuseAnother(logs, bases)
        if !run.state.roots.isEmpty { try run.publishing.publishRoots(run.found.roots ?? [:]) }
        try lookAtOwn(bases)
        run.state.based = run.now
        run.state.wanted = [:]
        for (name, size) in bases where run.state.wanted.count < PackedSettings.wantedLimit && !run.state.isKnown(name) {
            run.state.wanted[name] = max(0, size)
        }
        return bases
    }

    /// Returns whether the remote may be emptied, or another place: no pack in `log/` is known, and no former root exists. Usually this
    /// takes no request, since each writer leaves its newest pack in `log/`.
    func mayBeAnother(_ logs: [PackName: Int]) throws -> Bool {
        if run.before.roots.isEmpty || logs.keys.contains(where: run.state.isKnown) { return false }
        return try !hasRoot()
    }

    /// Lists the roots, and refuses a place with nothing that was known before, such as another account or another folder of the same name.
    /// - Throws: `.notFound`.
    func refuseAnother(_ logs: [PackName: Int], _ bases: [PackName: Int]) throws {
        _ = try listRoots()
        guard !run.before.roots.isEmpty, let roots = run.found.roots, !run.before.roots.contains(where: { roots[$0.name] != nil }),
            !logs.keys.contains(where: run.state.isKnown), !bases.keys.contains(where: run.state.isKnown)
        else { return }
        if try hasRoot() { return }
        // Another device may have refilled it under the same store id.
        let stores = Set(run.before.roots.map(\.store))
        if run.state.roots.contains(where: { roots[$0.name] != nil && stores.contains($0.store) }) { return }
        forgetNewRoots()
        throw roots.isEmpty && logs.isEmpty && bases.isEmpty ? isReset : isOfAnotherStore
    }

    /// Returns whether a former root can be read although no listing has it: listings may be behind, mostly at a new place.
    private func hasRoot() throws -> Bool {
        let reads = run.before.roots.map { RemoteRead(name: $0.name.description, limit: PackFormat.fileLimit(.root)) }
        return try zip(run.before.roots, run.files.read(reads, run.check)).contains { root, contents in
            switch contents {
            case .bytes(let bytes, _): return bytes == root.bytes
            case .unreadable(let error): throw error
            case .missing, .large: return false
            }
        }
    }

    /// The error if nothing known of the remote exists any more.
    private var isReset: StoreError {
        var error = StoreError(
            .notFound,
            "\(run.files.description) was emptied, or is another place than before: the root and the packs are gone. Nothing was "
                + "removed here, and nothing is sent. Restore it; or, to fill it again from this store, set the restoration state of the "
                + "exchange to the word \"new\", and exchange again.")
        error.circumstance = .remoteReset
        return error
    }

    /// The error if there are packs, but none of a known store.
    private var isOfAnotherStore: StoreError {
        var error = StoreError(
            .notFound,
            "\(run.files.description) is the place of another store: it has packs, and neither a root nor a pack that was there before. "
                + "Nothing was received from it, and nothing is sent. Check the address, the account and the drive; or, if the two stores "
                + "are to be joined, or the place was filled again, set the restoration state of the exchange to the word \"new\", once, "
                + "and exchange again: then all versions of both stores are merged, for good.")
        error.circumstance = .remoteReset
        return error
    }

    // MARK: Packs of this device

    /// Processes the packs of this device in a listing.
    func lookAtOwn(_ listing: [PackName: Int]) throws {
        let paced = run.control.paced(.listing, doing: run.what)
        // Other devices may have written any number of names at the remote.
        var own: [(key: PackName, value: Int)] = []
        for one in listing {
            try paced.step(0)
            if one.key.writer == run.state.writer || run.state.attempts[one.key] != nil { own.append(one) }
        }
        for (name, size) in try own.sorted(by: { $0.key.id < $1.key.id }, looking: paced.look) {
            if name.writer != run.state.writer {
                // Sent under a former writer id.
                if let attempt = run.state.attempts[name], attempt.outcome == .done, size != PackListing.unknownSize, size != attempt.size {
                    try isShort(name)
                    run.state.attempts[name] = nil
                    run.state.read[name] = nil
                }
                continue
            }
            guard var attempt = run.state.attempts[name] else {
                if run.state.read[name] == nil, try run.fetching.isPack(name, size) {
                    return run.state.becomeNewWriter(run.settings.random)
                }
                continue
            }
            if run.now - attempt.listed > PackedSettings.day {
                attempt.listed = run.now
                run.state.attempts[name] = attempt
            }
            if size != PackListing.unknownSize, size != attempt.size {
                if attempt.outcome == .done {
                    try isShort(name)
                    run.state.attempts[name]?.outcome = .failed
                    if name.kind == .log || attempt.isAdoption { run.state.holes.insert(name.first) }
                } else if attempt.outcome == .trying {
                    run.state.attempts[name]?.outcome = .failed
                }
            } else if attempt.outcome == .trying, name.kind == .log, name.first == run.state.next || run.state.holes.contains(name.first) {
                // If the service returns digests, the size is not sufficient. A file that it withholds at present is sent again, since it
                // may never return it.
                let answer = run.files.capabilities.tellsDigests ? try run.fetching.readBack(name, attempt.size) : .success(true)
                if (try? answer.get()) != true {
                    run.state.attempts[name]?.outcome = .failed
                } else {
                    try run.publishing.recordComplete(name)
                }
            } else if attempt.outcome == .failed || attempt.outcome == .trying, name.kind == .base {
                run.found.toReadBack.insert(name)
            }
        }
    }

    /// An acknowledged pack is incomplete or missing: its versions are sent again.
    private func isShort(_ name: PackName) throws {
        if let ids = try run.notes.ids(of: name) { run.store.uncover(ids, in: &run.there) {} }
    }

    // MARK: Progress of all writers

    /// Records the newest pack of each writer in `log/`, of those that this device knows.
    func recordNewest(of logs: [PackName: Int]) {
        let before = run.state.newest
        run.state.newest = [:]
        for name in logs.keys where run.state.isKnown(name) {
            recordNewest(PackServices.Seen(writer: name.writer, number: name.last, id: name.id))
        }
        // A pack just sent may not be listed yet.
        if let own = before[run.state.writer] { recordNewest(own) }
    }
    func recordNewest(_ one: PackServices.Seen) {
        if let known = run.state.newest[one.writer], (known.number, known.id) >= (one.number, one.id) { return }
        guard run.state.newest[one.writer] != nil || run.state.newest.count < CoveredNumbers.writersLimit else { return }
        run.state.newest[one.writer] = one
    }
}
