/// What the syncer reports after a round, and while it runs, to the schedule and the host.
extension SyncerThread {
    /// Reports the results of a round to the schedule and the host.
    func report(
        _ round: SyncSchedule.Round, _ number: UInt64, _ result: StoreCoordinator.SyncResult?, _ given: StoreError?, from rows: Int,
        _ before: [String: Counted]
    ) {
        let names = Set(round.places)
        var failure = given
        // A round without news does not access the store, so the store is checked here. Its error is not an error of the place.
        let storeFailure = gone()
        if let storeFailure { failure = storeFailure }
        let late = LateArrivals.of(coordinator.store).nextDue()
        let after = coordinator.store.rowCount, sentUpTo = firstUnsent(result, round, from: rows), asked = counts(names)
        let isLeft = isAnythingLeft(result, from: rows, upTo: after)
        let hasSent = result.map { ($0.before.exchanges + ($0.after?.exchanges ?? [])).contains(where: \.hasSent) } ?? false
        lock.lock()
        schedule.lateSend = late
        let now = Clock.steady(), time = Clock.now()
        let today = (time / 86_400).rounded(.down)
        if today != day {
            day = today
            for name in Array(known.keys) { known[name]?.today = Syncer.Traffic() }
        }
        var outcomes: [SyncSchedule.Outcome] = []
        var isInterrupted = false, isWhole = failure == nil
        let isUnfinished = Set(left.map(\.name))
        for name in round.places where !isUnfinished.contains(name) {
            let parts = (result.map { $0.before.exchanges + ($0.after?.exchanges ?? []) } ?? []).filter { $0.name == name }
            let failing = parts.first { $0.failure != nil }, sends = !round.onlyReceive.contains(name)
            let error = storeFailure ?? failing?.failure.map { StoreError.of($0) } ?? failure
            // Exchanges after a cancelled one were not run.
            if error?.code == .cancelled || (parts.isEmpty && failure == nil) { isInterrupted = true; continue }
            let moved = parts.contains { !$0.retrieved.versions.isEmpty || !$0.sent.versions.isEmpty }
            outcomes.append(
                SyncSchedule.Outcome(
                    name: name, reason: storeFailure != nil ? .failed : error.map(Self.reason) ?? .none,
                    needsUser: error.map { $0.circumstance == .needsUser || $0.code == .wrongKey } ?? false, retryAfter: error?.retryAfter,
                    retrieved: !round.onlySends,
                    sends: sends, failedToSend: failing.map { round.onlySends || $0.hasRetrieved } ?? false, moved: moved))
            var place = known[name] ?? Syncer.Place(place: schedule.places.first { $0.name == name }?.title ?? name)
            // An error of sending remains valid as long as the round does not send.
            if error != nil || sends { place.error = error }
            if parts.contains(where: \.hasRetrieved) { place.lastRetrieve = time }
            if parts.contains(where: \.hasSent) { place.lastSend = time }
            if let counted = asked[name] {
                place.round = counted.since(before[name])
                place.today.add(place.round)
                place.remote = counted.remote ?? place.remote
            }
            if error == nil, sends { place.lastSuccess = time } else { isWhole = false }
            // A problem of the place itself keeps no version from being sent.
            let areSent = parts.allSatisfy { $0.sent.problems.allSatisfy { $0.name.hasPrefix("pack1/") } }
            if error == nil, sends, !parts.isEmpty, areSent { unsent[name] = max(unsent[name] ?? 0, sentUpTo[name] ?? 0) }
            if parts.contains(where: \.hasRetrieved) {
                // Versions from a device with a fast clock were received nevertheless.
                let unread = parts.flatMap(\.retrieved.problems).filter { $0.error.code != .clockAhead }
                let names = Set(unread.map(\.name).filter { !$0.isEmpty && $0 != "snapshots" })
                let remote = asked[name]?.remote
                place.unread = remote?.unread ?? UInt64(names.count)
                place.unreadSince = place.unread == 0 ? nil : remote?.unreadSince ?? place.unreadSince ?? time
            }
            if !parts.isEmpty { place.problems = parts.flatMap { $0.retrieved.problems + $0.sent.problems } }
            known[name] = place
            for part in parts {
                told.retrieved &+= UInt64(part.retrieved.versions.count)
                told.sent &+= UInt64(part.sent.versions.count)
            }
        }
        told.mergeFailure = result?.mergeFailure.map { StoreError.of($0) }
        if told.mergeFailure?.code == .cancelled { isInterrupted = true; told.mergeFailure = nil }
        if told.mergeFailure != nil { isWhole = false }
        schedule.finish(outcomes, at: now, isInterrupted: isInterrupted)
        told.rounds &+= 1
        // Exchanges for which a round did not wait count for that round as well.
        if number == wholeRound { isWhole = isWhole && wasWhole; isInterrupted = isInterrupted || wasInterrupted }
        let isOver = !left.contains { $0.number == number }
        if isWhole && !isInterrupted && isOver { told.lastSuccess = time }
        // Versions that other threads or processes saved during the round may not have been sent.
        if isLeft { schedule.tell(.save, at: now) }
        // These versions may have arrived after the merge, if there was one.
        if after > rows, isLeft || !hasSent { schedule.tell(.arrival, at: now) }
        seenRows = max(seenRows, after)
        refresh()
        self.token = nil
        if number >= wholeRound { (wasWhole, wasInterrupted, wholeRound) = (isWhole, isInterrupted, number) }
        conclude(result, failure, at: now)
    }

    /// Sets when the next round is, and reports the result of the one that ended. The caller holds the lock, which this releases.
    private func conclude(_ result: StoreCoordinator.SyncResult?, _ failure: StoreError?, at now: Double) {
        let waits: Double?
        if case .at(let moment) = schedule.next(now) { waits = moment } else { waits = nil }
        _ = settle(until: waits)
        if failure?.code == .closed { isStopped = true }
        let event = Syncer.Event(status: told, round: result)
        changed.broadcast()
        lock.unlock()
        tell(event)
    }

    /// Merges versions that arrived outside of a round, if there are heads other than the current version.
    func mergeArrivals() {
        guard (try? coordinator.hasHeadsToMerge(selection)) ?? true else {
            let told = lock.withLock { isStopped ? nil : self.told }
            if let told, let counts = try? coordinator.store.orders.counts(), counts != told.erasures { tell(Syncer.Event(status: told)) }
            return
        }
        let token = CancelToken(end: .infinity)
        let status = lock.withLock { () -> Syncer.Status? in
            if isStopped { return nil }
            (self.token, onlyMerges) = (token, true)
            told.state = .running
            told.nextRound = nil
            return told
        }
        guard let status else { return }
        tell(Syncer.Event(status: status))
        let bytes = ByteProgress(), last = Moment()
        let control = OperationControl(
            progress: { [weak self] progress in
                self?.came(progress, bytes, last)
                return true
            }, token: token)
        let at = coordinator.currentVersion
        var result = StoreCoordinator.SyncResult(
            before: StoreCoordinator.ExchangeOutcome(move: StoreCoordinator.Move(from: at, to: at)),
            move: StoreCoordinator.Move(from: at, to: at))
        do {
            let merged = try coordinator.mergeReportingFailures(selection: selection, control: control)
            (result.move, result.hasMerged, result.mergeFailure) = (merged.move, merged.move.isMove, merged.failure)
        } catch { result.mergeFailure = error }
        let failure = result.mergeFailure.map { StoreError.of($0) }, isInterrupted = failure?.code == .cancelled || failure?.code == .busy
        lock.lock()
        let now = Clock.steady()
        (self.token, onlyMerges) = (nil, false)
        schedule.finishMerging(at: now)
        told.mergeFailure = isInterrupted ? nil : failure
        if isInterrupted { schedule.tell(.arrival, at: now) }
        told.rounds &+= 1
        conclude(result, failure, at: now)
    }

    /// Returns an error if the store of this device was deleted, moved or replaced while it was open.
    func gone() -> StoreError? {
        do { try coordinator.store.storage.checkPresence("Syncing") } catch { return StoreError.of(error) }
        return nil
    }

    /// The counts of a transport, and the status of its place.
    struct Counted: Sendable {
        let counts: RemoteCounts, remote: RemoteStatus?
        func since(_ other: Counted?) -> Syncer.Traffic {
            func more(_ count: KeyPath<RemoteCounts, Int>) -> UInt64 {
                UInt64(clamping: counts[keyPath: count] - (other?.counts[keyPath: count] ?? 0))
            }
            return Syncer.Traffic(requests: more(\.requests), bytesUp: more(\.bytesUp), bytesDown: more(\.bytesDown))
        }
    }
    func counts(_ names: Set<String>) -> [String: Counted] {
        var found: [String: Counted] = [:]
        for place in coordinator.attachedPlaces where names.contains(place.name) {
            guard let transport = place.exchange.transport as? any TellingTransport else { continue }
            found[place.name] = Counted(counts: transport.counts, remote: transport.remoteStatus)
        }
        return found
    }

    /// Returns, by the name of a place, the first row that may be missing there. It is the first row since the beginning of the round that
    /// the round neither sent nor received, or an earlier row that was deferred.
    func firstUnsent(_ result: StoreCoordinator.SyncResult?, _ round: SyncSchedule.Round, from rows: Int) -> [String: Int] {
        guard let result else { return [:] }
        let parts = result.before.exchanges + (result.after?.exchanges ?? [])
        var found: [String: Int] = [:]
        for name in round.places {
            let moved = parts.filter { $0.name == name }.flatMap { $0.retrieved.versions + $0.sent.versions }
            let first = coordinator.store.firstRow(behind: rows, notAmong: Set(moved))
            let left = parts.last { $0.name == name }?.sent.left ?? []
            found[name] = left.isEmpty ? first : min(first, coordinator.store.firstRow(among: left))
        }
        return found
    }

    /// Returns whether a version arrived during the round that the round neither sent nor received: another handle of the store may save at
    /// any moment. Each such version is found once, by the round in which it arrived.
    func isAnythingLeft(_ result: StoreCoordinator.SyncResult?, from rows: Int, upTo after: Int) -> Bool {
        guard let result, after > rows else { return false }
        let parts = result.before.exchanges + (result.after?.exchanges ?? [])
        guard parts.contains(where: \.hasSent) else { return false }
        // The empty root comes with the first versions, and is not reported.
        var known: Set<VersionID> = [EmptyRoot.id]
        for part in parts {
            known.formUnion(part.retrieved.versions + part.sent.versions)
            known.formUnion(part.sent.left)
            known.formUnion(part.sent.problems.compactMap { VersionID(validating: $0.name) })
        }
        return coordinator.store.firstRow(behind: rows, notAmong: known) < after
    }

    /// The time of the last progress report of an exchange or merge.
    final class Moment: @unchecked Sendable {
        // Sendable: one thread at a time uses it.
        var at = -Double.infinity
    }

    /// Records progress. Reports it at once if this is the syncer's thread; otherwise that thread reports it.
    func came(_ progress: OperationProgress, _ bytes: ByteProgress, _ last: Moment) {
        let moved = bytes.now, now = Clock.coarse(), isDue = now - last.at >= 0.1
        let status = lock.withLock { () -> Syncer.Status? in
            told.progress = progress
            (told.bytesDone, told.bytesTotal) = moved
            guard isDue else { return nil }
            if let thread, pthread_equal(thread, pthread_self()) != 0 { return told }
            isProgressDue = true
            changed.broadcast()
            return nil
        }
        if isDue { last.at = now }
        if let status { tell(Syncer.Event(status: status)) }
    }

    static func reason(_ error: StoreError) -> Syncer.Reason {
        switch error.circumstance {
        case .remoteReset: return .remoteReset
        case .alreadyRunning: return .alreadyRunning
        case .oneFile, .needsUser, nil: break
        }
        return switch error.code {
        case .permission: .signIn
        case .noSpace: .noSpace
        case .newerFormat: .updateApp
        case .wrongKey, .keyMissing: .passphrase
        case .busy: .rateLimited
        case .transport, .notFound: .unreachable
        default: .failed
        }
    }
}
