/// Merging, verifying and deleting packs: docs/pack-format.md, sections 8 and 9.
struct PackMerging {
    let run: PackedRun

    /// Merges this device's packs while enough of them have one level.
    func merge() throws {
        for _ in 0..<8 { guard try mergeOnce() else { return } }
    }

    /// - Returns: whether to try again.
    private func mergeOnce() throws -> Bool {
        let own = run.state.attempts.filter { $0.key.writer == run.state.writer }
        var done = own.filter { $0.value.outcome == .done }.sorted { ($0.key.first, $0.key.id) < ($1.key.first, $1.key.id) }
        raiseStranded(&done)
        let newest = done.filter { $0.key.kind == .log }.map(\.key.last).max() ?? 0
        var row: [PackName] = [], size = 0
        let isSparing = run.state.refusesDeletes || run.control.isThrifty
        // At least two must fit into a pack.
        let most = run.state.cut.map { max(0, $0.most - (64 << 10)) / 2 } ?? .max
        for (name, attempt) in done
        where attempt.level != PackedState.Attempt.tooLarge && !(isSparing && attempt.level >= 1) && attempt.size <= most {
            if let last = row.last, let before = run.state.attempts[last] {
                if UInt64(last.last) + 1 != UInt64(name.first) || before.level != attempt.level { (row, size) = ([], 0) }
            }
            if name.kind == .log, name.last == newest { continue }
            row.append(name)
            size += attempt.size
            if row.count == run.settings.fanIn { break }
        }
        guard row.count == run.settings.fanIn, let first = row.first else { return false }
        let level = row.compactMap { run.state.attempts[$0]?.level }.max() ?? 0
        // Fewer if a larger pack was not finished.
        while let cut = run.state.cut, row.count > 2, size + (64 << 10) > cut.most {
            size -= run.state.attempts[row.removeLast()]?.size ?? 0
        }
        guard let last = row.last, run.hasTime(for: size, .up) else { return false }
        guard size + (64 << 10) <= run.packLimit else {
            // The small packs before a large one are merged separately.
            let small = small(of: row)
            guard small.count > 1, let end = small.last else {
                run.state.attempts[first]?.level = PackedState.Attempt.tooLarge
                return true
            }
            let inside = own.filter { first.first <= $0.key.first && $0.key.last <= end.last && $0.value.outcome != .replaced }
            return try replace(inside.map(\.key), known: Set(small), first: first.first, last: end.last, level: level + 1)
        }
        let inside = own.filter { first.first <= $0.key.first && $0.key.last <= last.last && $0.value.outcome != .replaced }
        return try replace(inside.map(\.key), known: Set(row), first: first.first, last: last.last, level: level + 1)
    }

    /// Raises the level of packs that stand before a pack of a higher level, such as an adopted one. No more packs of their level will
    /// follow, so they are merged with it. Levels affect only cost.
    private func raiseStranded(_ done: inout [(key: PackName, value: PackedState.Attempt)]) {
        for i in done.indices.dropLast().reversed() {
            let level = done[i + 1].value.level
            guard UInt64(done[i].key.last) + 1 == UInt64(done[i + 1].key.first), done[i].value.level < level,
                level != PackedState.Attempt.tooLarge
            else { continue }
            done[i].value.level = level
            run.state.attempts[done[i].key]?.level = level
        }
    }

    /// Returns the first packs that together have at most an eighth of a pack.
    private func small(of row: [PackName]) -> ArraySlice<PackName> {
        var size = 0
        return row.prefix {
            size += run.state.attempts[$0]?.size ?? 0
            return size <= run.packLimit / 8
        }
    }

    /// Writes one base pack that replaces others of this device.
    /// - Parameters:
    ///   - names: the packs to replace.
    ///   - known: those of them that certainly exist.
    private func replace(_ names: [PackName], known: Set<PackName>, first: UInt32, last: UInt32, level: UInt8) throws -> Bool {
        guard let storeID = run.state.store else { return false }
        // The result of an earlier attempt is used if it is complete.
        let unfinished = unfinishedMerges.filter { $0.key.first <= last && first <= $0.key.last }
        if !unfinished.isEmpty {
            let listed = try run.listing.list(.base), writer = run.state.writer
            try run.listing.lookAtOwn(listed)
            try takeBackUnfinished()
            if leavesTooMany(listed) { run.state.cut?.at = run.now }
            guard run.state.writer == writer, !leavesTooMany(listed) else { return false }
            if unfinished.keys.contains(where: { run.state.attempts[$0]?.outcome == .done }) { return true }
        }
        var ids: Set<VersionID> = [], inputs: [PackName] = []
        // An unfinished adoption is left for the next adoption to replace.
        for name in names where unfinished[name]?.isAdoption != true {
            if let held = try run.notes.ids(of: name) {
                // The pack may have bytes that the store lacks.
                if known.contains(name), try held.contains(where: isForgotten) {
                    run.state.attempts[name]?.level = PackedState.Attempt.tooLarge
                    return true
                }
                ids.formUnion(held)
                inputs.append(name)
            } else if known.contains(name) {
                run.state.attempts[name]?.level = PackedState.Attempt.tooLarge
                return true
            }
        }
        guard let ordered = try run.store.inOrder(ids) else { return false }
        var attempt = PackedState.Attempt(size: 0, level: level, listed: run.now)
        attempt.replaces = inputs
        for name in inputs {
            guard let input = run.state.attempts[name] else { continue }
            attempt.replaces += input.replaces.filter { run.state.deletions[$0] != nil }
            attempt.covers = PackServices.joined(attempt.covers + input.covers)
            attempt.seen = PackMerging.joined(attempt.seen, input.seen)
        }
        guard attempt.replaces.count <= PackFormat.entriesLimit, attempt.covers.count <= PackFormat.entriesLimit,
            let (made, ids) = try fitting({ try pack(ordered, attempt, storeID, first: first, last: last) })
        else {
            run.state.attempts[inputs.min { $0.first < $1.first } ?? names[0]]?.level = PackedState.Attempt.tooLarge
            return true
        }
        attempt.size = made.size
        // If the service refuses it as too large, the inputs stay and are not tried again; smaller ones are merged.
        guard let isThere = try fitting({ try run.publishing.attempt(made, ids, attempt, isWhole: { try run.fetching.isVerified(made) }) })
        else {
            return true
        }
        guard isThere else { return false }
        replace(attempt.replaces)
        try run.save()
        return true
    }

    private func isForgotten(_ id: VersionID) throws -> Bool {
        guard try run.store.mayHaveHollow(), try run.store.contains(id) else { return false }
        return (try? run.store.orders.hasForgotten(id)) ?? true
    }

    /// Nil if the service refuses a file as too large.
    private func fitting<R>(_ body: () throws -> R?) throws -> R? {
        do { return try body() } catch let error as StoreError where error.code == .tooLarge { return nil }
    }

    /// Records that a verified pack of this device replaces these packs. They are deleted after a time for readers to adapt.
    func replace(_ names: [PackName]) {
        for name in names {
            run.state.attempts[name]?.outcome = .replaced
            run.state.read[name]?.isReplaced = true
            run.notes.forget(name)
            run.state.deletions[name] = PackedState.Deletion(
                due: run.now + (name.kind == .log ? PackedSettings.logGrace : PackedSettings.baseGrace), exchange: run.state.exchanges)
        }
    }

    /// Merged packs of this writer whose upload has an unknown outcome.
    var unfinishedMerges: [PackName: PackedState.Attempt] {
        run.state.attempts.filter { name, attempt in
            name.kind == .base && name.writer == run.state.writer && [.trying, .failed].contains(attempt.outcome)
                && !attempt.replaces.isEmpty && run.state.deletions[name] == nil
        }
    }
    /// Returns whether the remote lists several unfinished merged packs but does not return them: then no more are sent to it.
    func leavesTooMany(_ listed: [PackName: Int]) -> Bool {
        unfinishedMerges.count { name, attempt in listed[name] == attempt.size || listed[name] == PackListing.unknownSize } > 1
    }

    /// Reads back listed merged packs of this device with an unknown outcome, as time permits. A broken connection does not fail the
    /// exchange: the next full listing retries.
    func takeBackUnfinished() throws {
        defer { run.found.toReadBack = [] }
        for name in run.found.toReadBack.sorted(by: { $0.id < $1.id }) {
            guard let attempt = run.state.attempts[name], [.failed, .trying].contains(attempt.outcome), !run.control.isThrifty,
                run.hasTime(for: attempt.size, .down)
            else { continue }
            let start = run.rate.now
            do { try takeBack(name, attempt) } catch let error as StoreError where error.code == .transport { return }
            run.rate.moved(attempt.size, since: start, .down)
        }
    }

    /// Verifies a listed merged pack of this device whose outcome was unknown, or that was taken for lost or cut short. Otherwise the packs
    /// that it replaces would never be deleted.
    private func takeBack(_ name: PackName, _ attempt: PackedState.Attempt) throws {
        guard try run.notes.ids(of: name) != nil, case .success(true) = try run.fetching.readBack(name, attempt.size) else { return }
        // If it has the next number, it belongs to the adoption in progress.
        if attempt.isAdoption, name.first == run.state.next { run.state.adopting = [] }
        run.state.cut = nil
        try run.publishing.recordComplete(name)
        replace(attempt.replaces)
    }

    static func joined(_ a: [PackServices.Seen], _ b: [PackServices.Seen]) -> [PackServices.Seen] {
        var all: [UInt64: PackServices.Seen] = [:]
        for one in a + b where all[one.writer].map({ $0.number < one.number }) ?? true { all[one.writer] = one }
        return Array(all.values.sorted { $0.number > $1.number }.prefix(PackFormat.entriesLimit))
    }

    /// Makes one base pack of these versions; nil if they are too many, or unreadable.
    func pack(
        _ ids: [VersionID], _ attempt: PackedState.Attempt, _ storeID: PackID, first: UInt32, last: UInt32, limit: Int? = nil
    ) throws -> (MadePack, [VersionID])? {
        var place = VersionPacker.Place(kind: .base, number: last, first: first, link: run.state.link(before: first))
        place.services.replaces = attempt.replaces
        place.services.covers = attempt.covers
        place.services.seen = attempt.seen
        // The announcement of a move must outlive the pack that made it.
        if let move = run.state.reports.move {
            place.services.notices = [PackServices.Notice(kind: PackServices.Notice.moved, payload: Array(move.address.utf8))]
        }
        if let name = run.state.saidName { place.services.notices.append(PackServices.Notice(naming: name)) }
        // Values with older keys are not reused: another device may delete them when it rewrites all data.
        place.blobs = run.state.currentBlobs
        place.random = run.settings.random
        place.hasDifferences = run.publishing.sendsDifferences
        place.sealing = run.sealing
        place.sizeLimit = limit ?? run.packLimit
        var result: (MadePack, [VersionID])?
        func emit(_ made: MadePack, _ ids: [VersionID]) throws {
            if made.name.kind == .blob { try run.publishing.upload(made) } else { result = (made, ids) }
        }
        let paced = run.control.paced(run.stage == .merging ? .merging : .sending, of: ids.count, doing: run.what)
        try withoutActuallyEscaping(emit) { emit in
            var packer = VersionPacker(run.store, storeID: storeID, writer: run.state.writer, place: place, paced, emit)
            // Record the uploaded values even if no pack was made, so that they are not uploaded again.
            defer { run.state.know(packer.known) }
            do {
                for id in ids { try packer.add(id) }
                try packer.finish(evenEmpty: true)
            } catch is VersionPacker.Full {} catch is VersionPacker.Refusal {}
        }
        return result
    }

    // MARK: Deleting

    /// Returns the packs replaced by packs of this device that still exist. If the place was reset after these were verified, the replaced
    /// packs may be all that is left; their deletion is postponed.
    private func keepDeletions(_ due: [PackName], _ listed: [PackName: Int]?) throws -> Set<PackName> {
        let packs = try listed ?? run.listing.list(.base)
        var held: Set<PackName> = [], missing: Set<PackName> = [], others: Set<PackName> = []
        // If this device no longer knows the replacing pack, the replaced one is treated as another's.
        let known = Set(run.state.attempts.values.flatMap(\.replaces))
        for (name, attempt) in run.state.attempts where attempt.outcome == .done && !attempt.replaces.isEmpty {
            if let size = packs[name], size == PackListing.unknownSize || size == attempt.size {
                held.formUnion(attempt.replaces)
            } else if let read = run.state.read[name], read.isReplaced {
                others.formUnion(attempt.replaces)
            } else {
                missing.formUnion(attempt.replaces)
                // A full listing, which this makes due, finds out whether the pack is lost.
                if run.state.read[name]?.missing ?? 0 == 0 { run.state.read[name] = PackedState.Read(size: attempt.size, missing: run.now) }
            }
        }
        for name in due where !held.contains(name) {
            // If another device replaced the replacing pack, that device deletes this one as well.
            if !known.contains(name) || (others.contains(name) && !missing.contains(name)) { run.state.deletions[name] = nil; continue }
            run.state.deletions[name]?.due = run.now + (missing.contains(name) ? PackedSettings.pause : PackedSettings.day)
        }
        return held
    }

    /// Deletes packs that packs of this device replace, after the time for readers.
    /// - Parameters:
    ///   - listed: all existing packs, if a retrieve has just listed them.
    ///   - isFull: deletes at once, since the remote is full.
    func deleteWhatIsDue(_ listed: [PackName: Int]? = nil, isFull: Bool = false) throws {
        let due = run.state.deletions.filter { isFull || ($0.value.due <= run.now && $0.value.exchange < run.state.exchanges) }.map(\.key)
        guard !due.isEmpty else { return }
        let held = try keepDeletions(due, listed)
        let names = due.filter(held.contains).sorted { $0.id < $1.id }.prefix(1_000)
        guard !names.isEmpty else { return }
        do { try run.files.delete(names.map(\.description), run.check) } catch let error as StoreError where error.code != .cancelled {
            // If deletion is forbidden, the files stay. Other failures are temporary, and nothing depends on the deletion.
            let isRefusal = error.code == .permission || [405, 501].contains(error.httpStatus)
            if isRefusal { run.state.refusesDeletes = true }
            for name in names { run.state.deletions[name]?.due = run.now + (isRefusal ? PackedSettings.day : PackedSettings.pause) }
            return
        }
        run.state.refusesDeletes = false
        // The deletions may have made room.
        run.state.withoutRoom = 0
        for name in names {
            run.state.deletions[name] = nil
            run.state.read[name] = PackedState.Read(size: run.state.attempts[name]?.size ?? 0, isReplaced: true)
            run.state.attempts[name] = nil
        }
    }
}
