/// Counts the bytes of values sent, for progress.
private final class PackedBytes {
    private let run: PackedRun
    private var parts = 0
    init(_ run: PackedRun) { self.run = run }

    private func size(_ ids: [VersionID]) throws -> Int {
        try ids.reduce(0) { try $0 + Int(clamping: run.store.version($1)?.valueDataSize ?? 0) }
    }
    func expect(_ ids: [VersionID]) throws {
        guard let bytes = run.control.bytes else { return }
        bytes.expect(try size(ids))
    }
    /// Counts a part of a large value. The pack that names it counts its bytes as well.
    func sent(_ part: Int) {
        run.control.bytes?.add(part)
        parts += part
    }
    func sent(_ ids: [VersionID]) throws {
        guard let bytes = run.control.bytes else { return }
        let size = try size(ids)
        bytes.add(size - parts)
        parts = max(0, parts - size)
    }
}

/// Sends versions of the store that are not known to be at the remote.
struct PackedSending {
    private let run: PackedRun
    private(set) var result = ExchangeResult()
    private var failed: Set<VersionID> = []
    /// Versions deferred because of a metered network or a low battery.
    private var later: Set<VersionID> = []

    init(_ run: PackedRun) { self.run = run }

    /// Adds versions of a pack that an earlier call or another process began to send.
    mutating func tell(_ versions: [VersionID]) { result.versions += versions }
    mutating func tell(_ problem: ExchangeProblem) { result.problems = ExchangeProblem.inOrder(result.problems + [problem]) }

    /// - Parameters:
    ///   - evenEmpty: whether to write a pack even if there is nothing to send.
    ///   - notices: notices of the first pack to other devices.
    mutating func publish(evenEmpty: Bool = false, notices: [PackServices.Notice] = []) throws {
        let store = run.store, listing = run.control.paced(.listing, doing: run.what)
        var ids = try run.bridging.toSend(of: store.missing(from: run.there, listing.look))
        if run.control.leavesToMakers { ids = try LateArrivals.of(store).leftOut(of: ids, in: store) }
        // After a loss, another pack may cover the missing number; that is known once the loss was examined.
        let damaged = run.state.damagedParts.filter { $0.value.told == 0 }
        let evenEmpty = evenEmpty || (!run.state.holes.isEmpty && run.state.healing == 0) || !damaged.isEmpty
        guard !ids.isEmpty || evenEmpty else { return }
        if let doubt = run.keys?.opened?.keys.doubt { throw doubt }
        try run.publishing.ensureRoot()
        guard let storeID = run.state.store else { return }
        var place = VersionPacker.Place()
        place.blobs = run.state.currentBlobs
        place.random = run.settings.random
        place.hasDifferences = run.publishing.sendsDifferences
        place.sealing = run.sealing
        // The notice that a writer has retired counts only in its newest pack.
        let isEnd = !notices.isEmpty
        place.next = { [run] in
            let number = isEnd ? run.state.next : run.state.holes.min() ?? run.state.next
            return (number, run.state.link(before: number))
        }
        place.partials = try run.publishing.partsThere()
        place.sizeLimit = run.publishing.sendLimit(isEnd ? run.state.next : run.state.holes.min() ?? run.state.next)
        place.services.seen = run.notices.movedWriters
        place.services.notices = notices + run.notices.introduction
        place.services.notices += damaged.map { PackServices.Notice(damaged: $0.key, of: $0.value.digest) }
        if run.state.seedsAnew {
            place.services.notices.append(PackServices.Notice(kind: PackServices.Notice.seededAnew, payload: []))
        }
        let seen = place.services.seen, run = self.run
        let bytes = PackedBytes(run)
        var packed: [VersionID] = []
        try bytes.expect(ids)
        func emit(_ made: MadePack, _ ids: [VersionID]) throws {
            if made.name.kind == .blob {
                try run.publishing.uploadPart(made)
                return bytes.sent(made.size)
            }
            // This is no failed attempt, so later packs are not made smaller.
            guard run.hasTime(for: made.size, .up) else { throw run.hasNoTime }
            // The pack names the large values sent so far.
            for digest in Array(run.state.partials.keys) { run.state.partials[digest]?.isNamed = true }
            var attempt = PackedState.Attempt(size: made.size, listed: run.now)
            attempt.seen = seen
            _ = try run.publishing.attempt(made, ids, attempt)
            packed += ids
            try bytes.sent(ids)
            run.state.seedsAnew = false
            run.state.saidName = run.settings.deviceName
            for part in damaged.keys { run.state.damagedParts[part]?.told = run.now }
        }
        defer {
            result.versions += packed
            result.left = later
        }
        let paced = run.control.paced(.sending, of: ids.count, doing: run.what)
        try withoutActuallyEscaping(emit) { emit in
            var packer = VersionPacker(store, storeID: storeID, writer: run.state.writer, place: place, paced, emit)
            for (i, id) in ids.enumerated() {
                try run.control.check(.sending, i, of: ids.count, doing: run.what)
                // A refusal from before a pack was made smaller is reported once.
                if try failed.contains(id) || isForLater(id) || isHeldBack(id) { continue }
                do { try packer.add(id) } catch let refusal as VersionPacker.Refusal {
                    failed.insert(id)
                    result.problems.append(ExchangeProblem(name: id.description, error: refusal.error))
                }
            }
            try packer.finish(evenEmpty: evenEmpty)
            run.state.know(packer.known)
            for blob in packer.known.values { for digest in try run.sealing.blobDigests(blob.sha256) { run.state.partials[digest] = nil } }
        }
        if !ids.isEmpty { try run.control.check(.sending, ids.count, of: ids.count, doing: run.what) }
        result.problems = ExchangeProblem.inOrder(result.problems)
    }

    /// On a metered network or a low battery, large values are deferred, and all versions that build on theirs.
    private mutating func isForLater(_ id: VersionID) throws -> Bool {
        guard run.control.isThrifty, let version = try run.store.version(id) else { return false }
        var isLarge = version.predecessors.contains(where: later.contains)
        if !isLarge, version.valueDataSize > UInt64(PackFormat.inlineValue) {
            try run.store.forEachChangeSize(madeIn: id) { _, size in isLarge = isLarge || size > PackFormat.inlineValue }
        }
        if isLarge { later.insert(id) }
        return isLarge
    }

    private mutating func isHeldBack(_ id: VersionID) throws -> Bool {
        guard !failed.isEmpty, let held = try run.store.version(id)?.predecessors.first(where: failed.contains) else { return false }
        failed.insert(id)
        result.problems.append(
            ExchangeProblem(
                name: id.description,
                error: StoreError(
                    .missingPredecessor,
                    "The version \(id) was not sent to \(run.files.description), since its predecessor \(held) could not be. "
                        + "It is sent after that one.",
                    versionID: held.description)))
        return true
    }
}
