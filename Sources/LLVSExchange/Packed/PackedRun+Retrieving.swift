/// Retrieving packs: docs/pack-format.md, section 7.
extension PackedRun {
    /// Receives what is new at the remote.
    /// - Parameters:
    ///   - verifyKnown: reads also packs that were read before.
    ///   - listsAll: lists all packs, although the newest may suffice.
    func retrieve(verifyKnown: Bool, listsAll: Bool = false) throws -> ExchangeResult {
        control.bytes?.begin()
        guard try keyring.unlock() else { return ExchangeResult() }
        if state.roots.isEmpty, try !listing.lookForRoots() { return ExchangeResult() }
        _ = try bridging.isBridge()
        let logs = try listing.list(.log)
        try listing.lookAtOwn(logs)
        var isFull = try verifyKnown || listsAll || listing.isFullListingDue(logs)
        if !isFull, logs.isEmpty, !state.read.isEmpty || !state.attempts.isEmpty { isFull = true }
        if !isFull { isFull = try listing.mayBeAnother(logs) }
        var all = logs
        if isFull {
            let paced = control.paced(.listing, doing: what)
            for (name, size) in try listing.listFully(logs) { try paced.step(0); all[name] = all[name] ?? size }
        } else {
            all.merge(state.wanted.mapValues { $0 > 0 ? $0 : PackListing.unknownSize }) { one, _ in one }
        }
        // A faulty file that was removed is not reported any more.
        for name in Array(state.bad.keys) where isFull || name.kind == .log {
            if all[name] == nil { state.bad[name] = nil }
        }
        var reading = PackedReading(self, verifyKnown: verifyKnown)
        let waited = Set(state.waiting.keys)
        try reading.read(all)
        // A device that began at the same moment may have written its root after the roots were listed.
        if reading.meetsOtherStores, try listing.listRootsAnew() { try reading.read(reading.ofOtherStores(all)) }
        if case let locked = reading.lockedUp(all), !locked.isEmpty, try keyring.readKeys() { try reading.read(locked) }
        // If orders came, perhaps with this retrieve, all packs may have the bytes. And who erased them elsewhere deleted packs at once, so
        // that what new versions build on is in base packs.
        let isNewWaiting = state.waiting.contains { !$0.value.isEmpty && !waited.contains($0.key) }
        if !isFull, try isNewWaiting || erasing.areOrdersNew() {
            isFull = true
            all.merge(try listing.listFully(logs)) { one, _ in one }
            try reading.read(all)
        }
        if isFull { try erasing.note(all) }
        if isFull {
            // Finding losses reads all of it: not on a metered network, or with a low battery.
            if !control.isThrifty { try reading.verify(try healing.lookForLosses(all)) }
            found.packs = all
            state.extent = PackedState.Extent(names: all.count, bytes: all.values.reduce(0) { $0 + max(0, $1) }, at: now)
            try merging.takeBackUnfinished()
        }
        try healing.lookAtClaims()
        listing.recordNewest(of: logs)
        found.problems += healing.missingBlobs() + notices.reports(all)
        return try reading.finish()
    }
}
