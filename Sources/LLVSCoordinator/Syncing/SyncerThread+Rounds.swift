/// Rounds: exchanges, each on a thread of its own if it takes long, and the merge between them.
extension SyncerThread {
    /// Runs a round, and reports its results to the schedule and the host.
    func perform(_ round: SyncSchedule.Round, isAsked: Bool, _ token: CancelToken) {
        let names = Set(round.places), number = lock.withLock { roundsBegun }
        let control = self.control(token, isAsked: isAsked), rows = coordinator.store.rowCount, before = counts(names)
        var result: StoreCoordinator.SyncResult?, failure: StoreError?
        let turns: StoreCoordinator.TurnRunner = { [self] name, exchange, body in
            run(SyncerTurn(name, exchange, round, number, token, rows, before, isAsked: isAsked), body)
        }
        do {
            if round.onlySends {
                let sent = try coordinator.exchangeReportingFailures(among: names, onlySending: true, turns: turns, control)
                result = StoreCoordinator.SyncResult(before: sent, move: sent.move)
            } else {
                result = try coordinator.syncReportingFailures(
                    among: names, selection: selection, onlyReceiving: round.onlyReceive, turns: turns, control)
            }
        } catch { failure = StoreError.of(error) }
        report(round, number, result, failure, from: rows, before)
    }

    func control(_ token: CancelToken, isAsked: Bool) -> OperationControl {
        let last = Moment(), bytes = ByteProgress()
        var control = OperationControl(
            progress: { [weak self] progress in
                self?.came(progress, bytes, last)
                return true
            }, token: token)
        control.bytes = bytes
        control.isThrifty = !isAsked && lock.withLock { !schedule.conditions.isDisjoint(with: [.metered, .lowBattery]) }
        control.leavesToMakers = !isAsked
        return control
    }

    /// Runs an exchange on a thread of its own, and waits for it for a limited time. Returns nil if it has not ended by then. It then
    /// continues beside other work, and the syncer's thread reads its result when it ends.
    func run(
        _ turn: SyncerTurn, _ body: @escaping @Sendable (OperationControl) -> StoreCoordinator.Turn
    ) -> StoreCoordinator.Turn? {
        let control = self.control(turn.token, isAsked: turn.isAsked)
        lock.lock()
        guard !turns.contains(where: { $0.name == turn.name }) else { lock.unlock(); return nil }
        turns.append(turn)
        let pause = schedule.pace.pause(after: turns.count { $0.wasAwaited && $0.number == turn.number })
        let end = slow.contains(turn.name) ? turn.begun : turn.begun + pause
        lock.unlock()
        do {
            try OwnThread.start("A thread that exchanges") { [self] in
                lock.withLock { turn.thread = pthread_self() }
                let result = body(control)
                lock.withLock {
                    (turn.result, turn.thread, turn.ended) = (result, nil, Clock.steady())
                    changed.broadcast()
                }
            }
        } catch {
            // No other thread can be started, so the exchange runs on this one.
            lock.withLock { turns.removeAll { $0 === turn } }
            return body(control)
        }
        lock.lock()
        while turn.result == nil {
            guard end > Clock.steady() else { break }
            _ = changed.wait(lock, until: end)
            guard isProgressDue else { continue }
            isProgressDue = false
            let status = told
            lock.unlock()
            tell(Syncer.Event(status: status))
            lock.lock()
        }
        defer { lock.unlock() }
        guard let result = turn.result else {
            turn.isLeft = true
            turn.wasAwaited = end > turn.begun
            slow.insert(turn.name)
            schedule.leave(turn.name)
            return nil
        }
        turns.removeAll { $0 === turn }
        slow.remove(turn.name)
        return result
    }

    /// Completes an exchange that ended after its round: merges the received versions, and sends them to the other places.
    func finish(_ turn: SyncerTurn) {
        guard let ended = lock.withLock({ turn.result }) else { return }
        // The name may belong to another exchange by now, or to none.
        let isAttached = coordinator.attachedPlaces.contains { $0.name == turn.name && $0.exchange === turn.exchange }
        let at = coordinator.currentVersion
        let first = StoreCoordinator.ExchangeOutcome(
            exchanges: isAttached ? [ended.part] : [], move: ended.move ?? StoreCoordinator.Move(from: at, to: at))
        let (others, conditions) = lock.withLock { () -> (Set<String>, Syncer.Conditions) in
            turns.removeAll { $0 === turn }
            if turn.ended - turn.begun <= schedule.pace.turn { slow.remove(turn.name) }
            schedule.comeBack(turn.name)
            let ready = schedule.places.filter { $0.reason == .none || $0.name == turn.name }.map(\.name)
            return (Set(ready).subtracting(turns.map(\.name)), schedule.conditions)
        }
        let mayExchange = turn.isAsked || conditions.isDisjoint(with: [.offline, .paused])
        var result = StoreCoordinator.SyncResult(before: first, move: first.move), failure: StoreError?
        let control = self.control(turn.token, isAsked: turn.isAsked)
        if !turn.round.onlySends {
            let runner: StoreCoordinator.TurnRunner = { [self] name, exchange, body in
                run(
                    SyncerTurn(name, exchange, turn.round, turn.number, turn.token, turn.rows, turn.before, isAsked: turn.isAsked), body)
            }
            do {
                result = try coordinator.finishSync(
                    first, among: mayExchange ? others : [], isPassedOn: true, selection: selection,
                    onlyReceiving: turn.round.onlyReceive, turns: runner, control)
            } catch { failure = StoreError.of(error) }
        }
        var round = turn.round
        let visited = Set((result.before.exchanges + (result.after?.exchanges ?? [])).map(\.name))
        round.places = visited.sorted()
        report(round, turn.number, result, failure, from: turn.rows, turn.before)
    }
}
