/// Adopting: docs/pack-format.md, section 8. Packs of writers that are gone are put together by another.
extension PackedRun {
    /// What is adopted, as its end says.
    private struct Input {
        let name: PackName, size: Int
        let ids: [VersionID]
        let services: PackServices
        /// What it replaced and was not deleted yet, of packs of this device.
        var also: [PackName] = []
    }

    /// Chooses what is to be adopted, when nothing is under way.
    /// - Parameter listed: all packs there are, as a full listing has them.
    func chooseAdoption(_ listed: [PackName: Int]) {
        guard state.adopting.isEmpty, !state.refusesDeletes, state.holes.isEmpty, !leavesTooMany(listed) else { return }
        let time = now
        var packs: [UInt64: [PackName]] = [:]
        for name in listed.keys where name.writer != state.writer && state.attempts[name]?.outcome != .folded {
            // Packs of a former writer of this device count as anybody's, and are seen for the first time by this.
            state.note(name, at: time)
            if isWhollyRead(name) { packs[name.writer, default: []].append(name) }
        }
        let areMany = listed.count > settings.mostNames
        var chosen: [[PackName]] = [], silent: [[PackName]] = []
        for (victim, names) in packs {
            let quiet = time - (state.active[victim] ?? time), turn = Int64(rank(victim)) * PackedSettings.day
            if quiet >= settings.silence + turn {
                silent.append(names.sorted { ($0.last, $0.id) < ($1.last, $1.id) })
            } else if areMany, quiet >= turn, let newest = names.filter({ $0.kind == .log }).map(\.last).max() {
                // It goes on: its newest pack tells how far it is.
                let rest = names.filter { $0.last < newest }
                if rest.count >= settings.fanIn { chosen.append(rest.sorted { ($0.last, $0.id) < ($1.last, $1.id) }) }
            }
        }
        // Of those that are silent all go together: one that left a single pack would be a pack of its own for ever.
        silent.sort { ($1.count, $0[0].writer) < ($0.count, $1[0].writer) }
        chosen.append(silent.flatMap { $0 })
        guard let best = chosen.max(by: { $0.count < $1.count }) else { return }
        state.adopting = fitting(best, listed)
        if state.adopting.count < 2 { state.adopting = [] }
    }

    private func isWhollyRead(_ name: PackName) -> Bool {
        guard let read = state.read[name], state.waiting[name] == nil, state.bad[name] == nil else { return false }
        return read.unread == 0 && !read.isReplaced
    }

    /// As many of them as one pack can hold.
    private func fitting(_ names: [PackName], _ listed: [PackName: Int]) -> [PackName] {
        var size = 64 << 10, found: [PackName] = []
        for name in names {
            let own = max(listed[name] ?? 0, state.read[name]?.size ?? 0)
            guard size + own <= min(mergeLimit, timeFor(.up) ?? .max), found.count < PackFormat.entriesLimit / 4 else { continue }
            size += own
            found.append(name)
        }
        return found
    }

    /// How many of the writers that are active come before this one. Courtesy: two that adopt the same at once do no harm.
    private func rank(_ victim: UInt64) -> Int {
        func digest(_ writer: UInt64) -> [UInt8] {
            var out = ByteWriter()
            out.raw(PackID.bytes(of: writer) + PackID.bytes(of: victim))
            return out.bytes.withUnsafeBytes { Array(SHA256.digest($0)) }
        }
        let mine = digest(state.writer), time = now
        return state.active.count { writer, seen in
            writer != victim && writer != state.writer && time - seen <= PackedSettings.activity && Bytes.compare(digest(writer), mine) < 0
        }
    }

    /// Whether the pack before the next one is an adoption: then a log pack follows, so that `log/` shows how far this writer is.
    var mustFollow: Bool {
        state.attempts.contains { name, attempt in
            attempt.isAdoption && name.writer == state.writer && name.last == state.next &- 1
                && (attempt.outcome == .done || attempt.outcome == .folded)
        }
    }

    /// Whether the next number was attempted for an adoption.
    private var isAdoptionBegun: Bool {
        state.attempts.contains { name, attempt in
            attempt.isAdoption && name.writer == state.writer && name.first == state.next && attempt.outcome != .folded
        }
    }

    /// An adoption that an earlier call did not bring to its end stands back for what this device made: a pack without inputs fills its
    /// number. What it was about is chosen anew later, unless a listing shows that it is there after all.
    func giveUpAdopting() throws {
        guard !state.adopting.isEmpty, let storeID = state.store else { return }
        // Nothing relies on such a pack, so nobody reads it back.
        if isAdoptionBegun, let (made, ids, attempt) = try adopted([], storeID) {
            do { _ = try self.attempt(made, ids, attempt) } catch let error as StoreError where error.isOfOnePack {
                // No merged pack is taken there at all: a log pack has the number.
            }
        }
        state.adopting = []
        try save()
    }

    /// Puts together what was chosen for adoption. The number stays with it, until a pack is there.
    func adopt() throws {
        guard !state.adopting.isEmpty, let storeID = state.store else { return }
        var isBegun = isAdoptionBegun
        var inputs = waitsForRoom ? [] : try state.adopting.compactMap(input)
        while true {
            // With nothing left, a number that was attempted is filled all the same.
            guard !inputs.isEmpty || isBegun else { state.adopting = []; return }
            if let (made, ids, attempt) = try adopted(inputs, storeID) {
                // The number is known to be one of an adoption before anything of it is at the remote.
                try save()
                do {
                    guard try self.attempt(made, ids, attempt, isWhole: { try inputs.isEmpty || isVerified(made) }) else { return }
                } catch let error as StoreError where [.noSpace, .tooLarge].contains(error.code) && !inputs.isEmpty {
                    // A place that is full, or takes no pack so large, goes on to take what this device made itself.
                    state.attempts[made.name]?.outcome = .failed
                    isBegun = true
                    if error.code == .noSpace {
                        state.withoutRoom = now
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
        state.adopting = []
        try save()
    }

    /// Nil when it is not there any more, or has versions that are not here.
    private func input(_ name: PackName) throws -> Input? {
        // What this device made itself it need not read.
        if let attempt = state.attempts[name], attempt.outcome != .folded, let ids = try notes.ids(of: name) {
            guard try store.inOrder(Set(ids)) != nil else { return nil }
            var services = PackServices()
            services.covers = attempt.covers
            services.seen = attempt.seen
            return Input(
                name: name, size: attempt.size, ids: ids, services: services, also: attempt.replaces.filter { state.deletions[$0] != nil })
        }
        let size = state.read[name]?.size ?? 0
        do {
            let (index, services) = try end(name, size > 0 ? size : PackedRun.notTold)
            let ids = index.versions.map(\.id)
            guard try store.inOrder(Set(ids)) != nil else { return nil }
            // Another version under an id that is here goes on to be there.
            if !believesIndexes, state.read[name]?.isVerified != true, try index.versions.contains(where: isAnother) { return nil }
            return Input(name: name, size: size, ids: ids, services: services)
        } catch is PackFault { return nil }
    }

    private func isAnother(_ entry: PackIndex.VersionEntry) throws -> Bool {
        try store.identityDigest(of: entry.id).first8 != entry.identity
    }

    private func adopted(_ inputs: [Input], _ storeID: PackID) throws -> (MadePack, [VersionID], PackedState.Attempt)? {
        var attempt = PackedState.Attempt(size: 0, listed: now, isAdoption: true)
        var names = Set(inputs.map(\.name)), all = Set(inputs.flatMap(\.ids))
        for input in inputs {
            names.formUnion(input.also)
            // What an input replaced, and whoever made it had not deleted yet. In clear anybody may say so of any pack: what is in it is
            // looked at, and goes along.
            for other in input.services.replaces where state.read[other].map({ $0.missing == 0 && $0.unread == 0 }) ?? false {
                if believesIndexes { names.insert(other); continue }
                guard !names.contains(other), let inner = try self.input(other) else { continue }
                names.insert(other)
                all.formUnion(inner.ids)
            }
            attempt.covers = PackServices.joined(attempt.covers + input.services.covers + [CoveredNumbers.range(input.name)])
            attempt.seen = PackedRun.joined(attempt.seen, input.services.seen)
        }
        // What earlier attempts left there has nothing that this one has not.
        for (name, left) in unfinishedMerges where left.isAdoption && !inputs.isEmpty {
            if let held = try notes.ids(of: name), !held.isEmpty, all.isSuperset(of: held) { names.insert(name) }
        }
        attempt.replaces = names.sorted { $0.id < $1.id }
        attempt.seen.removeAll { $0.writer == state.writer }
        guard let ordered = try store.inOrder(all) else { return nil }
        guard attempt.replaces.count <= PackFormat.entriesLimit, attempt.covers.count <= PackFormat.entriesLimit,
            let (made, ids) = try pack(
                ordered, attempt, storeID, first: state.next, last: state.next, limit: inputs.count == 1 ? rekeyLimit : nil)
        else { return nil }
        attempt.size = made.size
        // A small one is merged with the log packs beside it.
        attempt.level = made.size < packLimit / 2 ? 0 : 1
        return (made, ids, attempt)
    }
}
