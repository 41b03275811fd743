/// Reads the listed packs that are not known yet.
struct PackedReading {
    private let run: PackedRun
    private var verifyKnown: Bool
    private var taking: PackTaking
    /// Packs whose versions wait for others of this exchange.
    private var kept: [PackName: PackFile] = [:]
    private var keptSize = 0
    private var waiting = WaitingPacks()
    private let fetch: PackedBlobs
    /// Packs whose bytes were counted as expected, and as received.
    private var expected: Set<PackName> = [], told: Set<PackName> = []
    /// Packs that were read in this exchange.
    private var tried: Set<PackName> = []
    /// The number of failed packs that may still be retried, and their bytes.
    private var retries = PackedSettings.retries, retriedBytes = PackedSettings.retriedBytes
    private typealias Listed = (name: PackName, size: Int)
    /// A pack that failed before: when it is due, and for how long it has failed, as a power of two of seconds.
    private typealias Failed = (pack: Listed, due: Int64, age: Int)

    init(_ run: PackedRun, verifyKnown: Bool) {
        self.run = run; self.verifyKnown = verifyKnown
        let fetch = PackedBlobs(run)
        fetch.readsAll = verifyKnown
        self.fetch = fetch
        taking = PackTaking(
            run.store, run.control, doing: run.what, from: "a pack in \(run.files.description)", fetch: { try fetch.source($0, into: $1) },
            look: { try fetch.missing(of: $0, in: $1) }, missed: { fetch.missed[$0.digest] })
        fetch.account = taking.account
    }
    /// The versions found intact in a pack, and the versions of the store with a large value that a pack names but the place lacks.
    private var found: Set<VersionID> = [], lost: [VersionID: BlobReference] = [:]
    /// Packs with versions for which the place has exhausted its budget.
    private var overBudget: Set<PackName> = []
    /// The part of a large value for which a pack waits.
    private var lacking: [PackName: PackTaking.MissedPart] = [:]

    mutating func read(_ listed: [PackName: Int]) throws {
        let found = try order(listed)
        try take(found.new)
        // Failed packs come after all new ones, since any writer can upload any number of failing files.
        fetch.triesAgain = true
        defer { fetch.triesAgain = false }
        try take(toTryAgain(found.failed))
        try loseBlobs()
    }

    /// Reads packs, and then the packs that waited for versions in them.
    private mutating func take(_ packs: [Listed]) throws {
        var next = packs[...]
        while !next.isEmpty {
            let new = next.filter { expected.insert($0.name).inserted }
            run.control.bytes?.expect(new.reduce(0) { $0 + max(0, $1.size) })
            while !next.isEmpty {
                let batch = self.batch(&next)
                for (one, source) in try zip(batch, sources(batch)) {
                    defer { if told.insert(one.name).inserted { run.control.bytes?.add(one.size) } }
                    tried.insert(one.name)
                    waiting.looked(at: one.name)
                    guard let source, verifyKnown || run.state.read[one.name] == nil else { continue }
                    try take(one.name, one.size, source)
                }
            }
            next = waiting.next()[...]
        }
    }

    /// Returns the failed packs to retry in this exchange. Half of them have failed for the shortest time, so that a file that is still
    /// arriving comes before files that can never be read. The other half have waited longest for a retry, so that each has its turn,
    /// however many files other devices add.
    private mutating func toTryAgain(_ failed: [Failed]) throws -> [Listed] {
        var chosen: [Listed] = [], names: Set<PackName> = []
        let paced = run.control.paced(.listing, doing: run.what)
        let young = try failed.sorted(
            by: { ($0.age, $0.due, $0.pack.name.id) < ($1.age, $1.due, $1.pack.name.id) }, looking: paced.look)
        try choose(from: young, leaving: retries / 2, &chosen, &names, paced)
        let old = try failed.sorted(by: { ($0.due, $0.pack.name.id) < ($1.due, $1.pack.name.id) }, looking: paced.look)
        try choose(from: old, leaving: 0, &chosen, &names, paced)
        return chosen
    }

    private mutating func choose(
        from failed: [Failed], leaving left: Int, _ chosen: inout [Listed], _ names: inout Set<PackName>, _ paced: PacedControl
    ) throws {
        let isNear = run.files.capabilities.isNear, bytesLeft = left > 0 ? retriedBytes / 2 : 0
        for (pack, _, _) in failed {
            try paced.step(0)
            guard isNear || retries > left else { return }
            guard isNear || chosen.isEmpty || max(0, pack.size) <= retriedBytes - bytesLeft else { continue }
            // Skip a pack that arrived with the new packs, or is chosen already.
            guard !run.state.isKnown(pack.name), !tried.contains(pack.name), !names.contains(pack.name) else { continue }
            if let lacks = run.state.incomplete[pack.name], lacks.parts.count < PackedSettings.missingParts, !lacks.parts.isEmpty,
                try !fetch.isAnyListed(lacks.parts)
            {
                run.lacks(pack.name, lacks.parts)
                continue
            }
            retries -= 1
            retriedBytes -= max(0, pack.size)
            chosen.append(pack)
            names.insert(pack.name)
        }
    }

    /// Uncovers versions whose values were lost, so that this device, which has them, sends them again. If another pack has them complete,
    /// they stay covered.
    private func loseBlobs() throws {
        // A file that the service withholds at present is not lost.
        let lost = lost.filter { !found.contains($0.key) && fetch.missed[$0.value.digest]?.fault.refusal == nil }
        guard !lost.isEmpty else { return }
        for blob in lost.values where run.state.blobs[blob.digest].map({ $0 == blob }) ?? true { run.state.lose(blob.digest) }
        run.store.uncover(Array(lost.keys), in: &run.there) {}
    }

    /// Reads packs again from end to end to check their contents.
    mutating func verify(_ names: [PackName: Int]) throws {
        guard !names.isEmpty else { return }
        verifyKnown = true
        waiting.lookAnew()
        fetch.readsAll = true
        try read(names)
    }

    /// Whether a pack belongs to an unknown root that may still be arriving: the pack was first seen recently, or was read in this
    /// exchange.
    var meetsOtherStores: Bool {
        run.state.bad.contains { name, bad in
            bad.fault?.kind == .otherStore && (run.now - bad.since < PackedSettings.pause || tried.contains(name))
        }
    }

    /// Returns packs of other roots that are due, now that a root was found.
    func ofOtherStores(_ listed: [PackName: Int]) -> [PackName: Int] {
        let found = run.state.bad.filter { $0.value.fault?.kind == .otherStore && $0.value.again <= run.now && listed[$0.key] != nil }.keys
        guard !found.isEmpty else { return [:] }
        let names = Set(found)
        return listed.filter { names.contains($0.key) }
    }

    /// Returns packs encrypted with keys that this device lacks; new keys may have arrived.
    func lockedUp(_ listed: [PackName: Int]) -> [PackName: Int] {
        let names = run.state.bad.filter { $0.value.fault?.kind == .keyMissing && listed[$0.key] != nil }.keys
        return Dictionary(uniqueKeysWithValues: names.map { ($0, listed[$0] ?? 0) })
    }

    /// Whether large values wait because of a metered network. Versions that build on them wait as well. That is not reported as a problem.
    private var isSparing: Bool { run.control.isThrifty && run.state.waiting.values.contains(where: \.isEmpty) }

    mutating func finish() throws -> ExchangeResult {
        let isSparing = isSparing
        for (name, ids) in run.state.waiting.sorted(by: { $0.key.id < $1.key.id }) where !isSparing && !overBudget.contains(name) {
            let text = name.description
            guard let missing = ids.first?.description else { tellLacking(name); continue }
            taking.problem(
                ExchangeProblem(
                    name: text,
                    error: StoreError(
                        .missingPredecessor,
                        "Versions of the pack \(text) in \(run.files.description) wait for the version \(missing), which is neither "
                            + "in the store nor there yet. They are received after it.",
                        versionID: missing, path: text)))
        }
        for (name, bad) in run.state.bad.sorted(by: { $0.key.id < $1.key.id }) {
            if let fault = bad.fault, fault.kind != .notThere || fault.refusal != nil || run.now - bad.since >= PackedSettings.day {
                taking.problem(run.problem(name, fault))
            }
        }
        for (id, blob) in lost where !found.contains(id) {
            guard let part = fetch.missed[blob.digest] else { continue }
            taking.problem(part.fault.refusal == nil ? run.healing.loss(part, of: id) : run.problem(part.name, part.fault))
        }
        var result = taking.result
        // Remove problems of values that another pack of this exchange had complete.
        result.problems.removeAll { told in
            told.error.path?.hasPrefix(PackKind.blob.prefix) ?? false && VersionID(validating: told.name).map(found.contains) ?? false
        }
        let place = run.files.description
        let advice =
            "Later exchanges receive more, except for a version that takes too much alone. If you do not expect such values, find out who "
            + "writes there."
        if let problem = taking.account.problem(place, advice) { result.problems.append(problem) }
        result.problems = ExchangeProblem.inOrder(result.problems + run.found.problems)
        let further = taking.furtherProblems + run.found.furtherBad
        if further > 0 {
            result.problems.append(
                ExchangeProblem(
                    name: "",
                    error: StoreError(
                        .damaged,
                        "\(further) further versions or files in \(run.files.description) could not be received either. "
                            + "Resolve the reported problems, and retrieve again.")))
        }
        return result
    }

    /// Reports a pack that waits for a large value.
    private mutating func tellLacking(_ name: PackName) {
        let text = name.description, place = run.files.description
        let before = run.state.incomplete[name]?.parts.first
        let part =
            lacking[name].map { "the file \($0.name), which a large value needs: \($0.fault.why)" }
            ?? before.map { "the file \($0), which a large value needs, and which was missing or damaged at the last check" }
        var error = StoreError(
            .damaged,
            "Versions of the pack \(text) in \(place) wait for \(part ?? "a large value that is missing or damaged"). They are received "
                + "once a device that has the value has sent it again.")
        error.path = (lacking[name]?.name ?? before)?.description ?? text
        taking.problem(ExchangeProblem(name: text, error: error))
    }

    /// The time for which a file has failed, as a power of two of seconds.
    private func age(_ since: Int64) -> Int { Int64.bitWidth - max(0, run.now &- since).leadingZeroBitCount }

    /// Returns the packs to read: log packs by their numbers, then base packs. A new device reads all of them, the largest first. Also
    /// returns the failed packs that are due.
    private mutating func order(_ listed: [PackName: Int]) throws -> (new: [Listed], failed: [Failed]) {
        var all: [Listed] = [], failed: [Failed] = []
        let paced = run.control.paced(.listing, doing: run.what)
        if run.now - run.state.passedSince > PackedSettings.day { (run.state.passed, run.state.passedSince) = ([], run.now) }
        for (name, size) in listed {
            try paced.step(0)
            if verifyKnown { all.append((name, size)); continue }
            if run.state.isKnown(name) || waiting.contains(name) { continue }
            if let bad = run.state.bad[name] {
                // If the size changed, it is another file. If `again` was reset to 0, the keys or the store that the file needs may be
                // known now.
                let isOther = size != PackListing.unknownSize && bad.size.map { $0 != size } ?? false
                if bad.again != 0, !isOther {
                    if bad.again <= run.now, !tried.contains(name) { failed.append(((name, size), bad.again, age(bad.since))) }
                    continue
                }
            }
            if !run.state.passed.isEmpty, run.state.bad[name] == nil, run.state.passed.contains(run.state.digest(of: name)) {
                run.found.furtherBad += 1
                continue
            }
            // Skip a pack that waits for large values: these are deferred.
            if run.control.isThrifty, run.state.waiting[name]?.isEmpty ?? false { continue }
            if let lacks = run.state.incomplete[name] {
                if lacks.again <= run.now { failed.append(((name, size), lacks.again, age(lacks.since))) }
                continue
            }
            if let ids = run.state.waiting[name], !ids.isEmpty {
                let unknown = try run.store.unknown(among: ids)
                // The other packs may contain the versions that it waits for.
                if unknown.count == ids.count { waiting.wait(name, size: size, for: Set(ids), others: Set(ids)); continue }
            }
            all.append((name, size))
        }
        let isNew = try run.store.statistics().versions <= 1
        func isBefore(_ a: (name: PackName, size: Int), _ b: (name: PackName, size: Int)) -> Bool {
            if isNew, a.size != b.size { return a.size > b.size }
            return (a.name.kind.rawValue, a.name.last, a.name.id) < (b.name.kind.rawValue, b.name.last, b.name.id)
        }
        return (try all.sorted(by: isBefore, looking: paced.look), failed)
    }

    private func batch(_ left: inout ArraySlice<Listed>) -> [Listed] {
        var batch: [Listed] = [], bytes = 0
        let most = min(PackedSettings.bytesAtOnce, run.timeFor(.down) ?? .max)
        while let one = left.first, batch.count < PackedSettings.filesAtOnce {
            // If the service returns no sizes, each file may have the maximal size.
            let size = one.size < 0 ? PackFormat.fileLimit(one.name.kind) : one.size
            if !batch.isEmpty, size > most - bytes { break }
            batch.append(one)
            bytes += size
            left.removeFirst()
        }
        return batch
    }

    /// Returns whether to read the end of a pack before the whole.
    private func isLookedAtFirst(_ name: PackName, _ size: Int) throws -> Bool {
        try name.kind == .base && size > 2 * PackedSettings.tail && !verifyKnown
            && run.files.capabilities.hasRanges != false && run.store.statistics().versions > 1
    }

    /// Returns a source for each pack; nil for a pack that cannot be read now.
    private mutating func sources(_ batch: [Listed]) throws -> [PackSource?] {
        var reads: [PackFetching.FirstRead] = []
        for (name, size) in batch where kept[name] == nil && size <= PackFormat.fileLimit(name.kind) {
            reads.append(PackFetching.FirstRead(name: name, size: size, isPart: try isLookedAtFirst(name, size)))
        }
        try run.control.check(.receiving, taking.progress, of: 0, doing: run.what)
        let wholes = reads.filter { !$0.isPart }.reduce(0) { $0 + max(0, $1.size) }, start = run.rate.now
        guard run.hasTime(for: wholes, .down) else { throw run.hasNoTime }
        for (i, contents) in try zip(reads.indices, run.files.read(reads.map(run.fetching.request), run.check)) {
            reads[i].contents = contents
        }
        run.rate.moved(wholes, since: start, .down)
        var found = try run.fetching.sources(reads).makeIterator(), sources: [PackSource?] = []
        for (name, size) in batch {
            if let file = kept[name] { sources.append(.whole(file)); continue }
            do {
                guard size <= PackFormat.fileLimit(name.kind) else { throw PackFault.tooLarge("it has \(size) bytes") }
                sources.append(try found.next()?.get())
            } catch let fault as PackFault {
                run.fail(name, fault, size)
                sources.append(nil)
            }
        }
        return sources
    }

    // MARK: One pack

    private mutating func take(_ name: PackName, _ size: Int, _ source: PackSource) throws {
        do {
            let versions = source.index.versions, services = source.services, outcome: PackTaking.Outcome
            _ = fetch.takeMissed()
            taking.account.came(name.id, size)
            switch source {
            case .whole(let file):
                let wanted = verifyKnown || !run.believesIndexes ? versions.inPlace : try taking.wanted(of: versions)
                outcome = try taking.take(
                    wanted, of: versions, isVerifying: verifyKnown, tellsMissing: false, file.block)
            case .part(let part):
                let wanted = try self.wanted(of: versions)
                guard let done = try takeParts(size, part, wanted, of: versions) else {
                    return try take(name, size, .whole(run.fetching.whole(name, size)))
                }
                outcome = done
            }
            let held = run.believesIndexes ? try run.haveAllBytes(versions.map(\.id), services) : outcome.held
            run.store.cover(held, in: &run.there)
            found.formUnion(outcome.held)
            waiting.came(outcome.held)
            for (version, blob) in outcome.lost { lost[version] = blob }
            let read = Set(outcome.held)
            for (version, blob) in outcome.references where run.state.blobs.count < PackFormat.blobsLimit {
                run.state.know(blob, hasOlderKeys: fetch.hasOlderKeys(blob))
                if read.contains(version) { fetch.isHere(blob, in: version) }
            }
            guard outcome.waitingFor.isEmpty, !outcome.lacksBlobs, !outcome.isOverBudget else {
                try wait(name, size, versions, outcome)
                if case .whole(let file) = source, kept[name] == nil, keptSize + size <= PackedSettings.mostKept {
                    kept[name] = file
                    keptSize += size
                }
                return
            }
            run.state.take(name, size: max(0, size), services, at: run.now)
            try run.erasing.note(name, size, versions)
            if run.believesIndexes { run.state.giveUp(services.replaces) }
            if outcome.held.count == versions.count { run.state.read[name]?.isVerified = true }
            run.notices.hear(services, source.index, from: name)
        } catch let fault as PackFault { run.fail(name, fault, size) }
        if kept.removeValue(forKey: name) != nil { keptSize -= size }
    }

    /// Records that versions of a pack wait for other versions or for large values.
    private mutating func wait(_ name: PackName, _ size: Int, _ versions: [PackIndex.VersionEntry], _ outcome: PackTaking.Outcome) throws {
        let ids = outcome.waitingFor.union(outcome.incomplete), left = Set(try run.store.unknown(among: Array(ids)))
        if left.isEmpty, !outcome.isOverBudget {
            waiting.isReady(name, size: size)
        } else {
            waiting.wait(name, size: size, for: left, others: left.subtracting(versions.lazy.map(\.id)))
        }
        // Versions that wait for a large value may be in the pack itself or depend on it. No other arrival shows when to retry.
        let lacks = outcome.lacksBlobs || outcome.isOverBudget
        run.state.waiting[name] = lacks ? [] : left.sorted().prefix(64).map { $0 }
        if outcome.isOverBudget { overBudget.insert(name) }
        guard lacks, !run.control.isThrifty else {
            run.state.incomplete[name] = nil
            return
        }
        guard outcome.lacksBlobs else { return run.lacks(name, []) }
        lacking[name] = fetch.lastMissed
        run.lacks(name, fetch.takeMissed())
    }

    /// Returns the versions to read from a pack whose end is known. Versions that the store has, but that are not known to be at the
    /// remote, are compared before they count as present there.
    private func wanted(of versions: [PackIndex.VersionEntry]) throws -> [PackIndex.VersionEntry] {
        let wanted = try taking.wanted(of: versions)
        guard !run.believesIndexes else { return wanted }
        let ids = Set(wanted.map(\.id)).union(run.store.uncovered(among: versions.map(\.id), in: run.there))
        return versions.filter { ids.contains($0.id) }.inPlace
    }

    /// Reads versions from a pack whose end is known; nil if reading the whole pack is better.
    private mutating func takeParts(
        _ size: Int, _ part: PartialPack, _ wanted: [PackIndex.VersionEntry], of versions: [PackIndex.VersionEntry]
    ) throws -> PackTaking.Outcome? {
        guard !wanted.isEmpty else { return PackTaking.Outcome() }
        guard let found = try run.fetching.ranges(part.ranges(of: wanted), of: part.parts, size) else { return nil }
        return try taking.take(wanted, of: versions, tellsMissing: false) { try part.block($0, in: found) }
    }
}

extension [PackIndex.VersionEntry] {
    /// The entries, sorted by their offsets.
    fileprivate var inPlace: Self { sorted { ($0.place.block, $0.place.offset) < ($1.place.block, $1.place.offset) } }
}
