/// Reading packs: docs/pack-format.md, section 7.
extension PackedRun {
    func retrieve(verifyKnown: Bool) throws -> ExchangeResult {
        control.bytes?.begin()
        guard try unlock() else { return ExchangeResult() }
        if state.roots.isEmpty, try !lookForRoots() { return ExchangeResult() }
        _ = try isBridge()
        let logs = try list(.log)
        try lookAtOwn(logs)
        var isFull = try verifyKnown || mustListFully || isFullListingDue(logs)
        if !isFull, logs.isEmpty, !state.read.isEmpty || !state.attempts.isEmpty { isFull = true }
        if !isFull { isFull = try mayBeAnother(logs) }
        var all = logs
        if isFull {
            let paced = control.paced(.listing, doing: what)
            for (name, size) in try listFully(logs) { try paced.step(0); all[name] = all[name] ?? size }
        } else {
            all.merge(state.wanted.mapValues { $0 > 0 ? $0 : PackedRun.notTold }) { one, _ in one }
        }
        // A faulty file that was removed is not reported any more.
        for name in Array(state.bad.keys) where isFull || name.kind == .log {
            if all[name] == nil { state.bad[name] = nil }
        }
        var reading = PackedReading(self, verifyKnown: verifyKnown)
        try reading.read(all)
        // A device that began at the same moment may have written its root after the roots were listed.
        if reading.meetsOtherStores, try listRootsAnew() { try reading.read(reading.ofOtherStores(all)) }
        if case let locked = reading.lockedUp(all), !locked.isEmpty, try readKeys() { try reading.read(locked) }
        if isFull {
            // Finding losses reads all of it: not on a metered network, or with a low battery.
            if !control.isThrifty { try reading.verify(try lookForLosses(all)) }
            listedInFull = all
            state.extent = PackedState.Extent(names: all.count, bytes: all.values.reduce(0) { $0 + max(0, $1) }, at: now)
            try takeBackUnfinished()
        }
        try lookAtClaims()
        takeNewest(of: logs)
        problems += missingBlobs()
        problems += reports(all)
        return try reading.finish()
    }

    /// Looks for a remote for the first time; false if there is nothing at all.
    private func lookForRoots() throws -> Bool {
        if try listRoots() { return true }
        // Only the root may have been removed.
        return try !list(.log).isEmpty
    }

    private func isFullListingDue(_ logs: [PackName: Int]) throws -> Bool {
        guard let based = state.based, now >= based else { return true }
        if now - based > PackedSettings.day || (state.healing != 0 && now >= state.healing) { return true }
        guard now - based >= PackedSettings.pause else { return false }
        if state.read.values.contains(where: { $0.missing != 0 && !$0.isReplaced }) || !state.missingBlobs.isEmpty { return true }
        if state.bad.contains(where: { $0.key.kind == .base && $0.value.fault?.kind == .damaged }) { return true }
        return try lacksNewest(logs) || hasGap(logs)
    }

    /// Returns whether the newest pack of a writer is not listed and not known to be replaced. Each writer leaves its newest pack in
    /// `log/`, so the remote was reset, or the pack was adopted.
    private func lacksNewest(_ logs: [PackName: Int]) throws -> Bool {
        let paced = control.paced(.listing, doing: what)
        for (writer, newest) in state.seen where writer != state.writer {
            try paced.step(0)
            let name = PackName(kind: .log, writer: writer, first: newest.number, last: newest.number, id: newest.id)
            if logs[name] == nil, let read = state.read[name], !read.isReplaced { return true }
        }
        let mine = state.attempts.filter { $0.key.writer == state.writer && $0.key.kind == .log && $0.value.outcome == .done }.keys
        guard let newest = mine.max(by: { $0.last < $1.last }) else { return false }
        return logs[newest] == nil && state.read[newest]?.isReplaced != true
    }

    /// Returns whether another writer has a number, below its largest, that is neither listed nor known.
    private func hasGap(_ logs: [PackName: Int]) throws -> Bool {
        let paced = control.paced(.listing, doing: what)
        var listed: [UInt64: [UInt32]] = [:]
        for name in logs.keys where name.writer != state.writer { try paced.step(0); listed[name.writer, default: []].append(name.last) }
        return try listed.contains { writer, numbers in
            try paced.step(0); return state.covered.hasGap(writer, listed: numbers)
        }
    }

    /// Lists `base/` and the roots.
    /// - Throws: `.notFound` if the remote was emptied.
    private func listFully(_ logs: [PackName: Int]) throws -> [PackName: Int] {
        let bases = try list(.base)
        try refuseAnother(logs, bases)
        if !state.roots.isEmpty { try publishRoots(rootsListed ?? [:]) }
        try lookAtOwn(bases)
        state.based = now
        state.wanted = [:]
        for (name, size) in bases where state.wanted.count < PackedSettings.wantedLimit && !state.isKnown(name) {
            state.wanted[name] = max(0, size)
        }
        return bases
    }

    /// Returns whether the remote may be emptied, or another place: no pack in `log/` is known, and no former root exists. Usually this
    /// takes no request, since each writer leaves its newest pack in `log/`.
    func mayBeAnother(_ logs: [PackName: Int]) throws -> Bool {
        if rootsBefore.isEmpty || logs.keys.contains(where: state.isKnown) { return false }
        return try !hasRoot()
    }

    /// Lists the roots, and refuses a place with nothing that was known before, such as another account or another folder of the same name.
    /// - Throws: `.notFound`.
    func refuseAnother(_ logs: [PackName: Int], _ bases: [PackName: Int]) throws {
        _ = try listRoots()
        guard !rootsBefore.isEmpty, let roots = rootsListed, !rootsBefore.contains(where: { roots[$0.name] != nil }),
            !logs.keys.contains(where: state.isKnown), !bases.keys.contains(where: state.isKnown)
        else { return }
        if try hasRoot() { return }
        // Another device may have refilled it under the same store id.
        let stores = Set(rootsBefore.map(\.store))
        if state.roots.contains(where: { roots[$0.name] != nil && stores.contains($0.store) }) { return }
        forgetNewRoots()
        throw roots.isEmpty && logs.isEmpty && bases.isEmpty ? isReset : isOfAnotherStore
    }

    /// Returns whether a former root can be read although no listing has it: listings may be behind, mostly at a new place.
    func hasRoot() throws -> Bool {
        let reads = rootsBefore.map { RemoteRead(name: $0.name.description, limit: PackFormat.fileLimit(.root)) }
        return try zip(rootsBefore, files.read(reads, check)).contains { root, contents in
            switch contents {
            case .bytes(let bytes, _): return bytes == root.bytes
            case .unreadable(let error): throw error
            case .missing, .large: return false
            }
        }
    }

    /// The error if nothing known of the remote exists any more.
    var isReset: StoreError {
        var error = StoreError(
            .notFound,
            "\(files.description) was emptied, or is another place than before: the root and the packs are gone. Nothing was "
                + "removed here, and nothing is sent. Restore it; or, to fill it again from this store, set the restoration state of the "
                + "exchange to the word \"new\", and exchange again.")
        error.circumstance = .remoteReset
        return error
    }

    /// The error if there are packs, but none of a known store.
    private var isOfAnotherStore: StoreError {
        var error = StoreError(
            .notFound,
            "\(files.description) is the place of another store: it has packs, and neither a root nor a pack that was there before. "
                + "Nothing was received from it, and nothing is sent. Check the address, the account and the drive; or, if the two stores "
                + "are to be joined, or the place was filled again, set the restoration state of the exchange to the word \"new\", once, "
                + "and exchange again: then all versions of both stores are merged, for good.")
        error.circumstance = .remoteReset
        return error
    }
}
