/// Adopting: docs/pack-format.md, section 8. A device merges the packs of writers that are gone.
extension PackMerging {
    /// A pack to adopt, as its end describes it.
    private struct Input {
        let name: PackName, size: Int
        let ids: [VersionID]
        let services: PackServices
        /// For packs of this device: packs that it replaced and that are not deleted yet.
        var also: [PackName] = []
    }

    /// Chooses packs to adopt, unless an adoption is in progress.
    /// - Parameter listed: all existing packs, from a full listing.
    func chooseAdoption(_ listed: [PackName: Int]) {
        guard run.state.adopting.isEmpty, !run.state.refusesDeletes, run.state.holes.isEmpty, !leavesTooMany(listed) else { return }
        let time = run.now
        var packs: [UInt64: [PackName]] = [:]
        for name in listed.keys where name.writer != run.state.writer && run.state.attempts[name]?.outcome != .replaced {
            // Packs of a former writer id of this device count as another's, seen first by this one.
            run.state.note(name, at: time)
            if isWhollyRead(name) { packs[name.writer, default: []].append(name) }
        }
        let areMany = listed.count > run.settings.mostNames
        var chosen: [[PackName]] = [], silent: [[PackName]] = []
        for (victim, names) in packs {
            let quiet = time - (run.state.active[victim] ?? time), turn = Int64(rank(victim)) * PackedSettings.day
            if quiet >= run.settings.silence + turn {
                silent.append(names.sorted { ($0.last, $0.id) < ($1.last, $1.id) })
            } else if areMany, quiet >= turn, let newest = names.filter({ $0.kind == .log }).map(\.last).max() {
                // The writer is still active: its newest pack must remain to show its progress.
                let rest = names.filter { $0.last < newest }
                if rest.count >= run.settings.fanIn { chosen.append(rest.sorted { ($0.last, $0.id) < ($1.last, $1.id) }) }
            }
        }
        // Packs of silent writers are merged together: a writer with a single pack would keep that for ever.
        silent.sort { ($1.count, $0[0].writer) < ($0.count, $1[0].writer) }
        chosen.append(silent.flatMap { $0 })
        guard let best = chosen.max(by: { $0.count < $1.count }) else { return }
        run.state.adopting = fitting(best, listed)
        if run.state.adopting.count < 2 { run.state.adopting = [] }
    }

    private func isWhollyRead(_ name: PackName) -> Bool {
        guard let read = run.state.read[name], run.state.waiting[name] == nil, run.state.bad[name] == nil else { return false }
        return read.unread == 0 && !read.isReplaced
    }

    /// Returns as many of them as fit one pack.
    private func fitting(_ names: [PackName], _ listed: [PackName: Int]) -> [PackName] {
        var size = 64 << 10, found: [PackName] = []
        for name in names {
            let own = max(listed[name] ?? 0, run.state.read[name]?.size ?? 0)
            guard size + own <= min(run.mergeLimit, run.timeFor(.up) ?? .max), found.count < PackFormat.entriesLimit / 4 else { continue }
            size += own
            found.append(name)
        }
        return found
    }

    /// Returns how many active writers take precedence over this one. This only saves work: two may adopt the same packs at once.
    private func rank(_ victim: UInt64) -> Int {
        func digest(_ writer: UInt64) -> [UInt8] {
            var out = ByteWriter()
            out.raw(PackID.bytes(of: writer) + PackID.bytes(of: victim))
            return out.bytes.withUnsafeBytes { Array(SHA256.digest($0)) }
        }
        let mine = digest(run.state.writer), time = run.now
        return run.state.active.count { writer, seen in
            writer != victim && writer != run.state.writer && time - seen <= PackedSettings.activity
                && Bytes.compare(digest(writer), mine) < 0
        }
    }

    /// Whether the last pack is an adoption: then a log pack must follow, so that `log/` shows how far this writer is.
    var mustFollow: Bool {
        run.state.attempts.contains { name, attempt in
            attempt.isAdoption && name.writer == run.state.writer && name.last == run.state.next &- 1
                && (attempt.outcome == .done || attempt.outcome == .replaced)
        }
    }

    /// Whether an adoption with the next number was begun.
    private var isAdoptionBegun: Bool {
        run.state.attempts.contains { name, attempt in
            attempt.isAdoption && name.writer == run.state.writer && name.first == run.state.next && attempt.outcome != .replaced
        }
    }

    /// Abandons an adoption that an earlier call did not finish, so that this device's own versions can be sent: an empty merged pack fills
    /// its number. Its inputs are chosen again later, unless a listing shows that the adoption succeeded.
    func giveUpAdopting() throws {
        guard !run.state.adopting.isEmpty, let storeID = run.state.store else { return }
        // Nothing relies on such a pack, so it is not read back.
        if isAdoptionBegun, let (made, ids, attempt) = try adopted([], storeID) {
            do { _ = try run.publishing.attempt(made, ids, attempt) } catch let error as StoreError where error.isOfOnePack {
                // The place accepts no merged packs: a log pack gets the number.
            }
        }
        run.state.adopting = []
        try run.save()
    }

    /// Merges the packs chosen for adoption. Their number stays reserved until a pack with it exists.
    func adopt() throws {
        guard !run.state.adopting.isEmpty, let storeID = run.state.store else { return }
        var isBegun = isAdoptionBegun
        var inputs = run.publishing.waitsForRoom ? [] : try run.state.adopting.compactMap(input)
        while true {
            // A number that was attempted must be filled even if no inputs are left.
            guard !inputs.isEmpty || isBegun else { run.state.adopting = []; return }
            if let (made, ids, attempt) = try adopted(inputs, storeID) {
                // Saves that the number belongs to an adoption before anything of it is at the remote.
                try run.save()
                do {
                    guard try run.publishing.attempt(made, ids, attempt, isWhole: { try inputs.isEmpty || run.fetching.isVerified(made) })
                    else { return }
                } catch let error as StoreError where [.noSpace, .tooLarge].contains(error.code) && !inputs.isEmpty {
                    // A place that is full, or refuses so large a pack, may still accept this device's own versions.
                    run.state.attempts[made.name]?.outcome = .failed
                    isBegun = true
                    if error.code == .noSpace {
                        run.state.withoutRoom = run.now
                        inputs = []
                    } else {
                        inputs.removeLast((inputs.count + 1) / 2)
                    }
                    continue
                }
                replace(attempt.replaces)
                break
            }
            guard !inputs.isEmpty else { return }
            inputs.removeLast((inputs.count + 1) / 2)
        }
        run.state.adopting = []
        try run.save()
    }

    /// Returns an input; nil if it no longer exists, or has versions that the store lacks.
    private func input(_ name: PackName) throws -> Input? {
        // A pack that this device made need not be read.
        if let attempt = run.state.attempts[name], attempt.outcome != .replaced, let ids = try run.notes.ids(of: name) {
            guard try run.store.inOrder(Set(ids)) != nil else { return nil }
            var services = PackServices()
            services.covers = attempt.covers
            services.seen = attempt.seen
            return Input(
                name: name, size: attempt.size, ids: ids, services: services,
                also: attempt.replaces.filter { run.state.deletions[$0] != nil })
        }
        let size = run.state.read[name]?.size ?? 0
        do {
            let (index, services) = try run.fetching.end(name, size > 0 ? size : PackListing.unknownSize)
            let ids = index.versions.map(\.id)
            guard try run.store.inOrder(Set(ids)) != nil else { return nil }
            // A pack with another version under an id of the store must stay.
            if !run.believesIndexes, run.state.read[name]?.isVerified != true, try index.versions.contains(where: isAnother) { return nil }
            return Input(name: name, size: size, ids: ids, services: services)
        } catch is PackFault { return nil }
    }

    private func isAnother(_ entry: PackIndex.VersionEntry) throws -> Bool {
        try run.store.identityDigest(of: entry.id).first8 != entry.identity
    }

    private func adopted(_ inputs: [Input], _ storeID: PackID) throws -> (MadePack, [VersionID], PackedState.Attempt)? {
        var attempt = PackedState.Attempt(size: 0, listed: run.now, isAdoption: true)
        var names = Set(inputs.map(\.name)), all = Set(inputs.flatMap(\.ids))
        for input in inputs {
            names.formUnion(input.also)
            // Packs that an input replaced and its maker has not deleted yet. In an unencrypted place the claim cannot be trusted, so such
            // packs are read and their versions included.
            for other in input.services.replaces where run.state.read[other].map({ $0.missing == 0 && $0.unread == 0 }) ?? false {
                if run.believesIndexes { names.insert(other); continue }
                guard !names.contains(other), let inner = try self.input(other) else { continue }
                names.insert(other)
                all.formUnion(inner.ids)
            }
            attempt.covers = PackServices.joined(attempt.covers + input.services.covers + [CoveredNumbers.range(input.name)])
            attempt.seen = PackMerging.joined(attempt.seen, input.services.seen)
        }
        // Remains of earlier attempts that contain nothing more than this one.
        for (name, left) in unfinishedMerges where left.isAdoption && !inputs.isEmpty {
            if let held = try run.notes.ids(of: name), !held.isEmpty, all.isSuperset(of: held) { names.insert(name) }
        }
        attempt.replaces = names.sorted { $0.id < $1.id }
        attempt.seen.removeAll { $0.writer == run.state.writer }
        guard let ordered = try run.store.inOrder(all) else { return nil }
        guard attempt.replaces.count <= PackFormat.entriesLimit, attempt.covers.count <= PackFormat.entriesLimit,
            let (made, ids) = try pack(
                ordered, attempt, storeID, first: run.state.next, last: run.state.next,
                limit: inputs.count == 1 ? run.keyring.rekeyLimit : nil)
        else { return nil }
        attempt.size = made.size
        // A small adopted pack is merged later with the log packs beside it.
        attempt.level = made.size < run.packLimit / 2 ? 0 : 1
        return (made, ids, attempt)
    }
}
