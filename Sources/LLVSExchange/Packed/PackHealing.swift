/// Losses at the remote: docs/pack-format.md, section 10.
struct PackHealing {
    let run: PackedRun

    /// Finds packs, in a full listing, that disappeared without a replacement.
    /// - Returns: packs to read from end to end, to check what the remote holds.
    func lookForLosses(_ listed: [PackName: Int]) throws -> [PackName: Int] {
        let time = run.now
        // From now on packs of this device count as read.
        for (name, attempt) in run.state.attempts where attempt.outcome == .done && run.state.read[name] == nil && listed[name] == nil {
            run.state.read[name] = PackedState.Read(size: attempt.size)
        }
        var isLost = false, unsure: [PackName: Int] = [:]
        for (name, read) in run.state.read {
            if let size = listed[name] {
                if read.missing != 0 { run.state.read[name]?.missing = 0 }
                // If the pack were replaced, the device that replaced it would have deleted it by now.
                if read.unread != 0, !run.believesIndexes, time - read.unread > PackedSettings.day { unsure[name] = size }
            } else if read.missing == 0 {
                run.state.read[name]?.missing = time
            } else if read.isReplaced {
                guard time - read.missing > PackedSettings.day else { continue }
                run.state.read[name] = nil
            } else if time - read.missing >= PackedSettings.pause {
                run.state.read[name] = nil
                if isNewest(name) { run.state.reports.happened(.rolledBack, name.writer, name.last, at: time) }
                lose(name)
                isLost = true
            }
        }
        // Packs with waiting versions count as lost too, since some of their versions were read.
        for name in Array(run.state.waiting.keys) where listed[name] == nil {
            run.state.waiting[name] = nil
            run.state.incomplete[name] = nil
            isLost = true
        }
        for (name, attempt) in run.state.attempts where attempt.outcome != .done && time - attempt.listed > PackedSettings.attemptLife {
            if run.state.deletions[name] == nil, name.first != run.state.next { run.state.attempts[name] = nil }
        }
        if try lookForMissingBlobs() { isLost = true }
        if isLost, run.state.healing == 0 {
            run.state.healing = max(1, time + Int64(run.settings.random.word() % PackedSettings.longestWait))
        }
        if run.state.healing != 0, time >= run.state.healing {
            if let others = try heal(listed) {
                unsure.merge(others) { one, _ in one }
                // Set only at the end, so that an interrupted check is repeated.
                run.state.healing = 0
            }
        }
        return unsure
    }

    /// Returns whether it is the newest log pack of its writer, which is not removed until it is adopted.
    private func isNewest(_ name: PackName) -> Bool {
        guard name.kind == .log else { return false }
        return name.writer == run.state.writer ? name.last == run.state.next &- 1 : run.state.seen[name.writer]?.id == name.id
    }

    private func lose(_ name: PackName) {
        guard let attempt = run.state.attempts[name], attempt.outcome == .done else { return }
        run.state.attempts[name]?.outcome = .failed
        if name.writer == run.state.writer, name.kind == .log || attempt.isAdoption { run.state.holes.insert(name.first) }
        // The packs that it replaced stay if they still exist. They count as another device's, since this device no longer knows their
        // contents.
        for other in attempt.replaces where run.state.deletions.removeValue(forKey: other) != nil {
            run.state.read[other] = PackedState.Read(size: run.state.attempts[other]?.size ?? 0)
            run.state.attempts[other] = nil
        }
    }

    /// Recomputes what the remote holds, from the ends of the listed packs that this device made or read from end to end. The next send
    /// sends the rest.
    /// - Returns: the other packs, whose ends alone are known; nil: try again later.
    private func heal(_ listed: [PackName: Int]) throws -> [PackName: Int]? {
        var packs: [PackName: (size: Int, ids: [VersionID])] = [:]
        var found: Set<VersionID> = [], replaced: Set<PackName> = [], unsure: [PackName: Int] = [:], numbers: [PackServices.Range] = []
        for (name, size) in listed.sorted(by: { $0.key.id < $1.key.id }) where run.state.isKnown(name) {
            // A pack of unknown size is read whole.
            guard size != 0, size <= PackFormat.fileLimit(name.kind) else { continue }
            do {
                let (index, services) = try run.fetching.end(name, size)
                packs[name] = (size, index.versions.map(\.id))
                if run.believesIndexes || run.state.attempts[name] != nil || run.state.read[name]?.isVerified == true {
                    found.formUnion(try run.haveAllBytes(index.versions.map(\.id), services))
                } else {
                    unsure[name] = size
                }
                replaced.formUnion(services.replaces)
                numbers += services.covers + ([name] + services.replaces).map(CoveredNumbers.range)
                // Includes packs of this device that were taken for failed: they count now, so their loss counts too.
                if run.state.read[name] == nil { run.state.read[name] = PackedState.Read(size: max(0, size)) }
            } catch let fault as PackFault {
                // A file that the service withholds at present is not lost, unless that lasts.
                if fault.refusal != nil, run.now - run.state.healing < PackedSettings.day { return nil }
            }
        }
        // A number is no hole if another pack covers it, such as an adopted one.
        let stands = PackServices.joined(numbers.filter { $0.writer == run.state.writer })
        run.state.holes = run.state.holes.filter { hole in !stands.contains { $0.first <= hole && hole <= $0.last } }
        run.there = try run.store.coverage(behind: [])
        // Large values with missing parts are sent with the versions that name them.
        found.subtract(try loseBlobs(packs))
        run.store.cover(Array(found), in: &run.there)
        // A pack that only lost packs replaced counts as unreplaced, so that its own loss is noticed. A remote that was reset to an old
        // state has the packs from before a merge, and the device that merged them may still delete them.
        for name in Array(run.state.read.keys) { run.state.read[name]?.isReplaced = replaced.contains(name) }
        return unsure
    }
}
