/// Folding, verifying and deleting: docs/pack-format.md, sections 8 and 9.
extension PackedRun {
    /// Folds own packs, as long as there are enough of one level.
    func fold() throws {
        for _ in 0..<8 { guard try foldOnce() else { return } }
    }

    /// - Returns: whether it is worth looking again.
    private func foldOnce() throws -> Bool {
        let own = state.attempts.filter { $0.key.writer == state.writer }
        var done = own.filter { $0.value.outcome == .done }.sorted { ($0.key.first, $0.key.id) < ($1.key.first, $1.key.id) }
        raiseStranded(&done)
        let newest = done.filter { $0.key.kind == .log }.map(\.key.last).max() ?? 0
        var run: [PackName] = [], size = 0
        let isSparing = state.refusesDeletes || control.isThrifty
        // Two of them at least are to have room in a pack.
        let most = state.cut.map { max(0, $0.most - (64 << 10)) / 2 } ?? .max
        for (name, attempt) in done
        where attempt.level != PackedState.Attempt.tooLarge && !(isSparing && attempt.level >= 1) && attempt.size <= most {
            if let last = run.last, let before = state.attempts[last] {
                if UInt64(last.last) + 1 != UInt64(name.first) || before.level != attempt.level { (run, size) = ([], 0) }
            }
            if name.kind == .log, name.last == newest { continue }
            run.append(name)
            size += attempt.size
            if run.count == settings.fanIn { break }
        }
        guard run.count == settings.fanIn, let first = run.first else { return false }
        let level = run.compactMap { state.attempts[$0]?.level }.max() ?? 0
        // Fewer where a larger one came to no end.
        while let cut = state.cut, run.count > 2, size + (64 << 10) > cut.most { size -= state.attempts[run.removeLast()]?.size ?? 0 }
        guard let last = run.last, hasTime(for: size, .up) else { return false }
        guard size + (64 << 10) <= packLimit else {
            // The small ones in front of a large one are a pack of their own.
            let small = small(of: run)
            guard small.count > 1, let end = small.last else {
                state.attempts[first]?.level = PackedState.Attempt.tooLarge
                return true
            }
            let inside = own.filter { first.first <= $0.key.first && $0.key.last <= end.last && $0.value.outcome != .folded }
            return try replace(inside.map(\.key), known: Set(small), first: first.first, last: end.last, level: level + 1)
        }
        let inside = own.filter { first.first <= $0.key.first && $0.key.last <= last.last && $0.value.outcome != .folded }
        return try replace(inside.map(\.key), known: Set(run), first: first.first, last: last.last, level: level + 1)
    }

    /// Levels steer cost alone. Packs in front of one of a higher level, an adopted one, say, do not become more: they go along with it.
    private func raiseStranded(_ done: inout [(key: PackName, value: PackedState.Attempt)]) {
        for i in done.indices.dropLast().reversed() {
            let level = done[i + 1].value.level
            guard UInt64(done[i].key.last) + 1 == UInt64(done[i + 1].key.first), done[i].value.level < level,
                level != PackedState.Attempt.tooLarge
            else { continue }
            done[i].value.level = level
            state.attempts[done[i].key]?.level = level
        }
    }

    /// The first of them, as many as have an eighth of a pack together.
    private func small(of run: [PackName]) -> ArraySlice<PackName> {
        var size = 0
        return run.prefix {
            size += state.attempts[$0]?.size ?? 0
            return size <= packLimit / 8
        }
    }

    /// Writes one base pack in the place of others that this device made.
    /// - Parameters:
    ///   - names: what it replaces.
    ///   - known: those of them that are there for certain.
    private func replace(_ names: [PackName], known: Set<PackName>, first: UInt32, last: UInt32, level: UInt8) throws -> Bool {
        guard let storeID = state.store else { return false }
        // What an earlier attempt left there is taken, where it is whole.
        let unfinished = unfinishedMerges.filter { $0.key.first <= last && first <= $0.key.last }
        if !unfinished.isEmpty {
            let listed = try list(.base), writer = state.writer
            try lookAtOwn(listed)
            try takeBackUnfinished()
            if leavesTooMany(listed) { state.cut?.at = now }
            guard state.writer == writer, !leavesTooMany(listed) else { return false }
            if unfinished.keys.contains(where: { state.attempts[$0]?.outcome == .done }) { return true }
        }
        var ids: Set<VersionID> = [], inputs: [PackName] = []
        // What was to have versions of others, and was left in the middle, is for the next adoption to replace.
        for name in names where unfinished[name]?.isAdoption != true {
            if let held = try notes.ids(of: name) {
                ids.formUnion(held)
                inputs.append(name)
            } else if known.contains(name) {
                state.attempts[name]?.level = PackedState.Attempt.tooLarge
                return true
            }
        }
        guard let ordered = try store.inOrder(ids) else { return false }
        var attempt = PackedState.Attempt(size: 0, level: level, listed: now)
        attempt.replaces = inputs
        for name in inputs {
            guard let input = state.attempts[name] else { continue }
            attempt.replaces += input.replaces.filter { state.deletions[$0] != nil }
            attempt.covers = PackServices.joined(attempt.covers + input.covers)
            attempt.seen = PackedRun.joined(attempt.seen, input.seen)
        }
        guard attempt.replaces.count <= PackFormat.entriesLimit, attempt.covers.count <= PackFormat.entriesLimit,
            let (made, ids) = try fitting({ try pack(ordered, attempt, storeID, first: first, last: last) })
        else {
            state.attempts[inputs.min { $0.first < $1.first } ?? names[0]]?.level = PackedState.Attempt.tooLarge
            return true
        }
        attempt.size = made.size
        // What is too large for the service stays as it is, and is not tried again: smaller ones are put together.
        guard let isThere = try fitting({ try self.attempt(made, ids, attempt, isWhole: { try isVerified(made) }) }) else {
            return true
        }
        guard isThere else { return false }
        replace(attempt.replaces)
        try save()
        return true
    }

    /// Nil when the service refuses a file as too large.
    private func fitting<R>(_ body: () throws -> R?) throws -> R? {
        do { return try body() } catch let error as StoreError where error.code == .tooLarge { return nil }
    }

    /// A pack of this device was read back that has all that is in these: they go, when readers had time to do without.
    func replace(_ names: [PackName]) {
        for name in names {
            state.attempts[name]?.outcome = .folded
            state.read[name]?.isReplaced = true
            notes.forget(name)
            state.deletions[name] = PackedState.Deletion(
                due: now + (name.kind == .log ? PackedSettings.logGrace : PackedSettings.baseGrace), exchange: state.exchanges)
        }
    }

    /// Packs of this writer that were to replace others, and of which nobody knows that they are there.
    var unfinishedMerges: [PackName: PackedState.Attempt] {
        state.attempts.filter { name, attempt in
            name.kind == .base && name.writer == state.writer && [.trying, .failed].contains(attempt.outcome)
                && !attempt.replaces.isEmpty && state.deletions[name] == nil
        }
    }
    /// Whether a place shows several of them, and does not give them: it is not filled with more.
    func leavesTooMany(_ listed: [PackName: Int]) -> Bool {
        unfinishedMerges.count { name, attempt in listed[name] == attempt.size || listed[name] == PackedRun.notTold } > 1
    }

    /// Reads back the merged packs of this device that were listed and of which the outcome is not known, as far as there is time. A line
    /// that breaks in it ends no exchange: the next full listing looks again.
    func takeBackUnfinished() throws {
        defer { toReadBack = [] }
        for name in toReadBack.sorted(by: { $0.id < $1.id }) {
            guard let attempt = state.attempts[name], [.failed, .trying].contains(attempt.outcome), !control.isThrifty,
                hasTime(for: attempt.size, .down)
            else { continue }
            let start = rate.now
            do { try takeBack(name, attempt) } catch let error as StoreError where error.code == .transport { return }
            rate.moved(attempt.size, since: start, .down)
        }
    }

    /// A merged pack of this device that is listed, and of which the outcome was not known, or that was taken for lost while listings were
    /// behind, or for cut short. Nothing else would ever delete what it replaces.
    private func takeBack(_ name: PackName, _ attempt: PackedState.Attempt) throws {
        guard try notes.ids(of: name) != nil, case .success(true) = try readBack(name, attempt.size) else { return }
        // One that has the next number is the adoption that is under way.
        if attempt.isAdoption, name.first == state.next { state.adopting = [] }
        state.cut = nil
        try settle(name)
        replace(attempt.replaces)
    }

    static func joined(_ a: [PackServices.Seen], _ b: [PackServices.Seen]) -> [PackServices.Seen] {
        var all: [UInt64: PackServices.Seen] = [:]
        for one in a + b where all[one.writer].map({ $0.number < one.number }) ?? true { all[one.writer] = one }
        return Array(all.values.sorted { $0.number > $1.number }.prefix(PackFormat.entriesLimit))
    }

    /// One base pack of these versions; nil when they are too many for one, or cannot be read here.
    func pack(
        _ ids: [VersionID], _ attempt: PackedState.Attempt, _ storeID: PackID, first: UInt32, last: UInt32, limit: Int? = nil
    ) throws -> (MadePack, [VersionID])? {
        var place = VersionPacker.Place(kind: .base, number: last, first: first, link: state.link(before: first))
        place.services.replaces = attempt.replaces
        place.services.covers = attempt.covers
        place.services.seen = attempt.seen
        // What says where the remote goes on outlives the pack that said it first.
        if let move = state.reports.move {
            place.services.notices = [PackServices.Notice(kind: PackServices.Notice.moved, payload: Array(move.address.utf8))]
        }
        if let name = state.saidName { place.services.notices.append(PackServices.Notice(naming: name)) }
        // None with older keys: another device may delete those, when it sends all anew with newer keys.
        place.blobs = state.currentBlobs
        place.random = settings.random
        place.sealing = sealing
        place.sizeLimit = limit ?? packLimit
        var result: (MadePack, [VersionID])?
        func emit(_ made: MadePack, _ ids: [VersionID]) throws {
            if made.name.kind == .blob { try upload(made) } else { result = (made, ids) }
        }
        let paced = control.paced(stage == .folding ? .folding : .sending, of: ids.count, doing: what)
        try withoutActuallyEscaping(emit) { emit in
            var packer = VersionPacker(store, storeID: storeID, writer: state.writer, place: place, paced, emit)
            // Also when no pack is made: what was uploaded is not uploaded again.
            defer { state.know(packer.known) }
            do {
                for id in ids { try packer.add(id) }
                try packer.finish(evenEmpty: true)
            } catch is VersionPacker.Full {} catch is VersionPacker.Refusal {}
        }
        return result
    }

    /// Whether what is at the remote is what was made: as the service says, where it tells digests, or as it is read.
    func isVerified(_ made: MadePack) throws -> Bool {
        if files.capabilities.tellsDigests, let entry = try entry(of: made.name), entry.size == made.size,
            entry.digest?.isRight(of: made.bytes) ?? false
        {
            return true
        }
        return try isReadBack(made.name, made.size)
    }

    /// Whether a file is there whole, of which nobody knows what came of sending it.
    func isThere(_ made: MadePack) throws -> Bool {
        guard let entry = try entry(of: made.name), entry.size == made.size else { return false }
        guard let isRight = entry.digest?.isRight(of: made.bytes), !isRight else { return true }
        return try isReadBack(made.name, made.size)
    }

    private func entry(of name: PackName) throws -> RemoteEntry? {
        let (directory, last) = RemoteName.split(name.description)
        return try files.list(directory, withTimes: false, check)?.first { $0.name == last && !$0.isDirectory }
    }

    /// Whether what is at the remote is what was made, by its bytes.
    func isReadBack(_ name: PackName, _ size: Int) throws -> Bool { try readBack(name, size).get() }

    /// The same. A failure: the service does not give it now, so nobody knows.
    func readBack(_ name: PackName, _ size: Int) throws -> Result<Bool, StoreError> {
        let read = RemoteRead(name: name.description, limit: PackFormat.fileLimit(name.kind))
        do {
            let contents = try files.read([read], check).first ?? .missing
            if case .unreadable(let error) = contents, error.code != .tooLarge { return .failure(error) }
            let bytes = try bytes(contents, atMost: PackFormat.fileLimit(name.kind))
            return .success(bytes.count == size && bytes.withUnsafeBytes { PackID(SHA256.digest($0)) } == name.id)
        } catch is PackFault { return .success(false) }
    }

    // MARK: Deleting

    /// What packs of this device replace that are there now. The place may have been set back since they were verified: then what they
    /// replaced may be all that is left, and waits.
    private func keepDeletions(_ due: [PackName], _ listed: [PackName: Int]?) throws -> Set<PackName> {
        let packs = try listed ?? list(.base)
        var held: Set<PackName> = [], missing: Set<PackName> = [], others: Set<PackName> = []
        // What this device once replaced by a pack of which it knows nothing any more is anybody's.
        let known = Set(state.attempts.values.flatMap(\.replaces))
        for (name, attempt) in state.attempts where attempt.outcome == .done && !attempt.replaces.isEmpty {
            if let size = packs[name], size == PackedRun.notTold || size == attempt.size {
                held.formUnion(attempt.replaces)
            } else if let read = state.read[name], read.isReplaced {
                others.formUnion(attempt.replaces)
            } else {
                missing.formUnion(attempt.replaces)
                // Looked for in a full listing, which this makes soon.
                if state.read[name]?.missing ?? 0 == 0 { state.read[name] = PackedState.Read(size: attempt.size, missing: now) }
            }
        }
        for name in due where !held.contains(name) {
            // Who replaced the pack that replaced it deletes it as well.
            if !known.contains(name) || (others.contains(name) && !missing.contains(name)) { state.deletions[name] = nil; continue }
            state.deletions[name]?.due = now + (missing.contains(name) ? PackedSettings.pause : PackedSettings.day)
        }
        return held
    }

    /// Deletes what packs of this device replace, and what readers had time to do without.
    /// - Parameters:
    ///   - listed: all packs there are, where a retrieve has just listed them.
    ///   - isFull: at once, since there is no room at the remote.
    func deleteWhatIsDue(_ listed: [PackName: Int]? = nil, isFull: Bool = false) throws {
        let due = state.deletions.filter { isFull || ($0.value.due <= now && $0.value.exchange < state.exchanges) }.map(\.key)
        guard !due.isEmpty else { return }
        let held = try keepDeletions(due, listed)
        let names = due.filter(held.contains).sorted { $0.id < $1.id }.prefix(1_000)
        guard !names.isEmpty else { return }
        do { try files.delete(names.map(\.description), check) } catch let error as StoreError where error.code != .cancelled {
            // Files that nobody may delete stay, and so do these. What else is in the way passes, and nothing waits for it.
            let isRefusal = error.code == .permission || [405, 501].contains(error.httpStatus)
            if isRefusal { state.refusesDeletes = true }
            for name in names { state.deletions[name]?.due = now + (isRefusal ? PackedSettings.day : PackedSettings.pause) }
            return
        }
        state.refusesDeletes = false
        // There is more room now, perhaps.
        state.withoutRoom = 0
        for name in names {
            state.deletions[name] = nil
            state.read[name] = PackedState.Read(size: state.attempts[name]?.size ?? 0, isReplaced: true)
            state.attempts[name] = nil
        }
    }
}

extension StoreError {
    /// Whether a service that answers otherwise did not take, or give, that one pack.
    var isOfOnePack: Bool {
        if circumstance == .oneFile { return true }
        guard retryAfter == nil, ![401, 407, 429, 503].contains(httpStatus) else { return false }
        return code == .permission || (code == .transport && httpStatus >= 400)
    }
}
