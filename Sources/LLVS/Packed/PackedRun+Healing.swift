/// What was lost at the remote: docs/pack-format.md, section 10.
extension PackedRun {
    /// Looks, in a full listing, for packs that are gone without another having what they had.
    /// - Returns: packs that are to be read from end to end, for what is at the remote.
    func lookForLosses(_ listed: [PackName: Int]) throws -> [PackName: Int] {
        let time = now
        // Those of this device are among what was read, from now on.
        for (name, attempt) in state.attempts where attempt.outcome == .done && state.read[name] == nil && listed[name] == nil {
            state.read[name] = PackedState.Read(size: attempt.size)
        }
        var isLost = false, unsure: [PackName: Int] = [:]
        for (name, read) in state.read {
            if let size = listed[name] {
                if read.missing != 0 { state.read[name]?.missing = 0 }
                // A writer that replaced the pack would have deleted it by now.
                if read.unread != 0, !believesIndexes, time - read.unread > PackedSettings.day { unsure[name] = size }
            } else if read.missing == 0 {
                state.read[name]?.missing = time
            } else if read.isReplaced {
                guard time - read.missing > PackedSettings.day else { continue }
                state.read[name] = nil
            } else if time - read.missing >= PackedSettings.pause {
                state.read[name] = nil
                if isNewest(name) { state.reports.happened(.rolledBack, name.writer, name.last, at: time) }
                lose(name)
                isLost = true
            }
        }
        // What was taken from a pack with versions that wait counts as well.
        for name in Array(state.waiting.keys) where listed[name] == nil {
            state.waiting[name] = nil
            state.incomplete[name] = nil
            isLost = true
        }
        for name in Array(state.bad.keys) where listed[name] == nil { state.bad[name] = nil }
        for (name, attempt) in state.attempts where attempt.outcome != .done && time - attempt.listed > PackedSettings.attemptLife {
            if state.deletions[name] == nil, name.first != state.next { state.attempts[name] = nil }
        }
        if try lookForMissingBlobs() { isLost = true }
        if isLost, state.healing == 0 {
            state.healing = max(1, time + Int64(settings.random.word() % PackedSettings.longestWait))
        }
        if state.healing != 0, time >= state.healing {
            if let others = try heal(listed) {
                unsure.merge(others) { one, _ in one }
                // Not before: what ended in the middle is done again.
                state.healing = 0
            }
        }
        return unsure
    }

    /// Whether it is the newest log pack of its writer, which stays where it is as long as nobody adopts it.
    private func isNewest(_ name: PackName) -> Bool {
        guard name.kind == .log else { return false }
        return name.writer == state.writer ? name.last == state.next &- 1 : state.seen[name.writer]?.id == name.id
    }

    private func lose(_ name: PackName) {
        guard let attempt = state.attempts[name], attempt.outcome == .done else { return }
        state.attempts[name]?.outcome = .failed
        if name.writer == state.writer, name.kind == .log || attempt.isAdoption { state.holes.insert(name.first) }
        // What it replaced stays, where it is still there, and is anybody's now: this device does not know any more what is in it.
        for other in attempt.replaces where state.deletions.removeValue(forKey: other) != nil {
            state.read[other] = PackedState.Read(size: state.attempts[other]?.size ?? 0)
            state.attempts[other] = nil
        }
    }

    /// What is at the remote is what the ends of the listed packs say, of those that this device made or read from end to end. The rest is
    /// sent by the next send.
    /// - Returns: the other packs, whose ends only say so. Nil: another time.
    private func heal(_ listed: [PackName: Int]) throws -> [PackName: Int]? {
        var packs: [PackName: (size: Int, ids: [VersionID])] = [:]
        var found: Set<VersionID> = [], replaced: Set<PackName> = [], unsure: [PackName: Int] = [:], numbers: [PackServices.Range] = []
        for (name, size) in listed.sorted(by: { $0.key.id < $1.key.id }) where state.isKnown(name) {
            // A pack whose size is not known is read whole.
            guard size != 0, size <= PackFormat.fileLimit(name.kind) else { continue }
            do {
                let (index, services) = try end(name, size)
                packs[name] = (size, index.versions.map(\.id))
                if believesIndexes || state.attempts[name] != nil || state.read[name]?.isVerified == true {
                    found.formUnion(index.versions.map(\.id))
                } else {
                    unsure[name] = size
                }
                replaced.formUnion(services.replaces)
                numbers += services.covers + ([name] + services.replaces).map(CoveredNumbers.range)
                // Also what this device made and took for failed: it counts now, so its loss is one.
                if state.read[name] == nil { state.read[name] = PackedState.Read(size: max(0, size)) }
            } catch let fault as PackFault {
                // What the service does not give now is not lost, unless that lasts.
                if fault.refusal != nil, now - state.healing < PackedSettings.day { return nil }
            }
        }
        // Nobody misses a number for which another pack stands: of packs that others adopted, say.
        let stands = PackServices.joined(numbers.filter { $0.writer == state.writer })
        state.holes = state.holes.filter { hole in !stands.contains { $0.first <= hole && hole <= $0.last } }
        there = try store.coverage(behind: [])
        // Large values whose parts are gone are sent with the versions that name them.
        found.subtract(try loseBlobs(packs))
        store.cover(Array(found), in: &there)
        // What only packs replaced that were lost may be lost itself one day, and that is to be noticed: a remote that was set back to an
        // old state has the packs from before they were folded, and whoever folded them may delete them still.
        for name in Array(state.read.keys) { state.read[name]?.isReplaced = replaced.contains(name) }
        return unsure
    }
}
