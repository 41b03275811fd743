/// Runs the thread of a syncer, and holds the state that it shares with callers. It outlives the syncer until its work is done.
final class SyncerThread: @unchecked Sendable {
    // Sendable: `lock` guards the state that it names; the rest is used by the thread alone, or does not change.
    private let coordinator: StoreCoordinator
    private let selection: HeadSelection
    private let call: @Sendable (Syncer.Event) -> Void
    private let process = getpid()
    /// Guards all state below. While it is held, neither the host nor the coordinator is called.
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var schedule: SyncSchedule
    private var told = Syncer.Status()
    /// The results for each place, by name: when it was exchanged with, its error and its problems.
    private var known: [String: Syncer.Place] = [:]
    /// By name: the first row of the history that may not have been sent to that place.
    private var unsent: [String: Int] = [:]
    /// The day to which the counts of "today" belong, since 2001.
    private var day = 0.0
    private var isStopped = false, isFinished = true
    private var thread: pthread_t?
    /// The deadlines of the calls that wait for a round.
    private var ends: [Double] = []
    /// The token of the running round.
    private var token: CancelToken?
    private var roundsBegun: UInt64 = 0
    /// The result of the last round, and its number.
    private var wasInterrupted = false, wasWhole = false, wholeRound: UInt64 = 0
    /// The rows of the history that existed when a round ended or that were reported since.
    private var seenRows = 0
    /// Whether the running round only merges, and does not send the result.
    private var onlyMerges = false
    /// The exchanges under way, each on a thread of its own: those of the running round, and those whose rounds continued without them.
    private var turns: [SyncerTurn] = []
    /// The places whose rounds continued without them. Later rounds do not wait for them until one of their exchanges is quick again.
    private var slow: Set<String> = []
    /// The status has progress that was not reported yet.
    private var isProgressDue = false
    private var attachedChanged = true
    /// Used by the thread alone, and by `start` before the thread exists.
    private var news: [String: (exchange: Exchange, observation: (any ExchangeObservation)?)] = [:]
    private var observations: [any ExchangeObservation] = []

    init(
        _ coordinator: StoreCoordinator, _ pace: SyncSchedule.Pace, _ selection: HeadSelection, _ conditions: Syncer.Conditions,
        _ call: @escaping @Sendable (Syncer.Event) -> Void
    ) {
        self.coordinator = coordinator
        self.selection = selection
        self.call = call
        schedule = SyncSchedule(pace: pace)
        schedule.conditions = conditions
    }

    private var isInChild: Bool { getpid() != process }

    func start() throws {
        do { try listenAndWork() } catch {
            for observation in observations { observation.cancel() }
            throw error
        }
    }

    private func listenAndWork() throws {
        seenRows = coordinator.store.rowCount
        // Versions may have arrived before the syncer started, and a merge needs neither a place nor a network.
        schedule.tell(.arrival, at: Clock.steady())
        observations.append(coordinator.ended.add { [weak self] in self?.end() })
        observations.append(coordinator.attachments.add { [weak self] in self?.attachmentsChanged() })
        observations.append(coordinator.observe { [weak self] _ in self?.currentMoved() })
        observations.append(try coordinator.store.observeAdditions { [weak self] in self?.storeGrew() })
        lock.withLock { isFinished = false }
        do { try OwnThread.start("A thread that syncs") { self.work() } } catch {
            lock.withLock { isFinished = true }
            throw error
        }
    }

    // MARK: Told by others

    func tell(_ trigger: SyncSchedule.Trigger) throws {
        try lock.withLock {
            if isStopped { throw Self.closed }
            schedule.tell(trigger, at: Clock.steady())
            changed.broadcast()
        }
    }

    func set(_ conditions: Syncer.Conditions) throws {
        try lock.withLock {
            if isStopped { throw Self.closed }
            schedule.conditions = conditions
            changed.broadcast()
        }
    }

    private static var closed: StoreError {
        StoreError(.closed, "The syncer was stopped, or its coordinator closed. Start another one to continue.")
    }

    private static var hasNoPlace: StoreError {
        StoreError(.invalidArgument, "No exchange is attached to the coordinator, so there is nothing to sync with. Attach one.")
    }

    private func attachmentsChanged() {
        lock.withLock {
            attachedChanged = true
            changed.broadcast()
        }
    }

    /// Called when the current version moves. The syncer's own rounds move it as well, but they send their results.
    private func currentMoved() {
        lock.withLock {
            if token != nil, !onlyMerges, isOwnThread(orOfLeft: false) { return }
            schedule.tell(.save, at: Clock.steady())
            changed.broadcast()
        }
    }

    private func storeGrew() {
        let rows = coordinator.store.rowCount
        lock.withLock {
            // Versions that arrive while a round runs are checked when it ends.
            guard token == nil || onlyMerges, rows > seenRows else { return }
            seenRows = rows
            schedule.tell(.save, at: Clock.steady())
            schedule.tell(.arrival, at: Clock.steady())
            changed.broadcast()
        }
    }

    var status: Syncer.Status {
        let (status, rows) = lock.withLock { (told, unsentRows) }
        return counted(status, rows)
    }

    /// The first unsent rows for the places of the status. The caller holds the lock.
    private var unsentRows: [Int?] { schedule.places.map { unsent[$0.name] } }

    /// Adds the counts of unsent versions to a status. The caller holds no lock.
    private func counted(_ status: Syncer.Status, _ rows: [Int?]) -> Syncer.Status {
        var status = status
        guard rows.count == status.places.count else { return status }
        for (i, first) in rows.enumerated() { status.places[i].pending = first.map { coordinator.store.pending(behind: $0) } }
        return status
    }

    // MARK: Stopping

    private func end() {
        if isInChild { return }
        let running = lock.withLock {
            isStopped = true
            changed.broadcast()
            return tokens
        }
        for token in running { token.cancel() }
    }

    /// The tokens of everything that runs. The caller holds the lock.
    private var tokens: [CancelToken] { (token.map { [$0] } ?? []) + turns.map(\.token) }
    /// The exchanges whose rounds continued without them. The caller holds the lock.
    private var left: [SyncerTurn] { turns.filter(\.isLeft) }
    /// Whether this is the syncer's thread, or a thread of one of its exchanges. The caller holds the lock.
    private func isOwnThread(orOfLeft: Bool) -> Bool {
        let me = pthread_self()
        if let thread, pthread_equal(thread, me) != 0 { return true }
        return turns.contains { turn in
            guard orOfLeft || !turn.isLeft, let thread = turn.thread else { return false }
            return pthread_equal(thread, me) != 0
        }
    }

    func stop() {
        if isInChild { return }
        end()
        lock.withLock {
            if HostCalls.isObserving { return }
            if isOwnThread(orOfLeft: true) { return }
            while !isFinished { changed.wait(lock) }
        }
    }

    // MARK: A round for a waiting caller

    /// Whether a call waits for a round.
    var isAwaited: Bool { lock.withLock { !ends.isEmpty } }

    func run(_ seconds: Double?, _ control: OperationControl) throws -> Bool {
        let deadline = seconds.map { Clock.steady() + max(0, $0) } ?? .infinity
        guard !lock.withLock({ isOwnThread(orOfLeft: true) }) else {
            throw StoreError(.busy, "A round cannot be waited for from within an event of the syncer. Ask for one by a trigger.")
        }
        if lock.withLock({ isStopped }) { throw Self.closed }
        guard !coordinator.exchanges.isEmpty else { throw Self.hasNoPlace }
        if control.token?.isCancelled ?? false { throw OperationControl.cancelled("Syncing") }
        // Tokens have locks of their own.
        let current = lock.withLock { () -> [CancelToken] in
            ends.append(deadline)
            return tokens
        }
        for token in current { token.stop(by: deadline) }
        lock.lock()
        defer {
            if let i = ends.firstIndex(of: deadline) { ends.remove(at: i) }
            lock.unlock()
        }
        if isStopped { throw Self.closed }
        let before = roundsBegun
        schedule.wait()
        changed.broadcast()
        var isCancelled = false, isWithdrawn = false, isAlone = false, failure: (any Error)?
        // The call waits for the first round that begins from now on, and for all exchanges of that round.
        while !isStopped
            && (roundsBegun == before || (roundsBegun == before + 1 && token != nil) || turns.contains { $0.number == before + 1 })
        {
            let now = Clock.steady()
            if isAlone, roundsBegun == before {
                // The last exchange was detached, so no round begins.
                if !isWithdrawn { schedule.withdraw() }
                throw Self.hasNoPlace
            }
            if now >= deadline || isCancelled {
                if roundsBegun == before {
                    if !isWithdrawn { schedule.withdraw() }
                    isWithdrawn = true
                    // At the deadline everything is cancelled, including a round that ran before. The call waits for its end.
                    if now < deadline || (token == nil && turns.isEmpty) { break }
                }
                let running = tokens
                lock.unlock()
                for token in running { token.cancel() }
                lock.lock()
                if token == nil, turns.isEmpty { continue }
            }
            _ = changed.wait(lock, until: now + min(0.1, deadline > now ? deadline - now : 0.1))
            let progress = told.progress
            lock.unlock()
            defer { lock.lock() }
            isAlone = coordinator.exchanges.isEmpty
            if control.token?.isCancelled ?? false { isCancelled = true }
            guard let progress, let report = control.progress, failure == nil else { continue }
            do { if try !report(progress) { isCancelled = true } } catch { (failure, isCancelled) = (error, true) }
        }
        if let failure { throw failure }
        if isCancelled { throw OperationControl.cancelled("Syncing") }
        if isStopped { throw Self.closed }
        return roundsBegun > before && wasWhole && !wasInterrupted
    }

    // MARK: The thread

    private func work() {
        lock.withLock { thread = pthread_self() }
        while !isInChild {
            attachNews()
            lock.lock()
            guard !isStopped else { lock.unlock(); break }
            if attachedChanged { lock.unlock(); continue }
            if let turn = left.first(where: { $0.result != nil }) {
                token = turn.token
                told.state = .running
                lock.unlock()
                finish(turn)
                continue
            }
            if isProgressDue {
                isProgressDue = false
                let status = told
                lock.unlock()
                tell(Syncer.Event(status: status))
                continue
            }
            switch schedule.next(Clock.steady()) {
            case .now(let round) where round.onlyMerges:
                schedule.begin(round)
                lock.unlock()
                mergeArrivals()
            case .now(let round):
                let isAsked = schedule.isAsked
                schedule.begin(round)
                roundsBegun += 1
                let token = CancelToken(end: ends.filter { $0 > Clock.steady() }.min() ?? .infinity)
                self.token = token
                told.state = .running
                told.nextRound = nil
                let status = told
                lock.unlock()
                tell(Syncer.Event(status: status))
                perform(round, isAsked: isAsked, token)
            case .at(let moment):
                let event = settle(until: moment)
                if event == nil { _ = changed.wait(lock, until: moment) }
                lock.unlock()
                if let event { tell(event) }
            case .whenTold:
                let event = settle(until: nil)
                if event == nil { changed.wait(lock) }
                lock.unlock()
                if let event { tell(event) }
            }
        }
        if isInChild { return }
        // The exchanges were cancelled. The versions that they moved are stored.
        lock.withLock {
            while turns.contains(where: { $0.result == nil }) { changed.wait(lock) }
            turns = []
        }
        for observation in observations + news.values.compactMap(\.observation) { observation.cancel() }
        news = [:]
        lock.lock()
        told.state = .off
        told.reason = .none
        told.progress = nil
        (told.bytesDone, told.bytesTotal) = (0, 0)
        told.nextRound = nil
        let status = told
        lock.unlock()
        tell(Syncer.Event(status: status))
        lock.withLock {
            isFinished = true
            changed.broadcast()
        }
    }

    /// Reports an event to the host. The caller holds no lock.
    private func tell(_ event: Syncer.Event) {
        var event = event
        event.status = counted(event.status, lock.withLock { unsentRows })
        HostCalls.run(HostCallMark(), observes: true) { call(event) }
    }

    /// Observes the exchanges that are attached now.
    private func attachNews() {
        guard
            lock.withLock({
                defer { attachedChanged = false }; return attachedChanged
            })
        else { return }
        let attached = coordinator.attachedPlaces
        // Another exchange may have been attached under the same name.
        var replaced: [String] = []
        for (name, known) in news where !attached.contains(where: { $0.name == name && $0.exchange === known.exchange }) {
            known.observation?.cancel()
            news[name] = nil
            replaced.append(name)
        }
        for place in attached where news[place.name] == nil {
            // Exchanges that cannot be observed are polled.
            news[place.name] = (place.exchange, (try? place.exchange.observe { [weak self] in try? self?.tell(.news) }) ?? nil)
        }
        lock.withLock {
            for name in replaced {
                schedule.forget(name)
                // The former exchange has the name until it ends.
                if turns.contains(where: { $0.name == name }) { schedule.leave(name) }
                slow.remove(name)
                known[name] = nil
                unsent[name] = nil
            }
            schedule.attach(attached.map { ($0.name, $0.place) })
            known = known.filter { name, _ in attached.contains { $0.name == name } }
            refresh()
        }
    }

    /// Updates the status while the syncer waits. Returns an event if the state or the reason changed. The caller holds the lock.
    private func settle(until moment: Double?) -> Syncer.Event? {
        let before = (told.state, told.reason)
        guard left.isEmpty else {
            (told.state, told.reason) = (.running, .none)
            told.nextRound = moment.map { Clock.now() + $0 - Clock.steady() }
            return before == (told.state, told.reason) ? nil : Syncer.Event(status: told)
        }
        let waiting = schedule.places.filter { $0.reason != .none }
        if schedule.conditions.contains(.paused) {
            (told.state, told.reason) = (.paused, .paused)
        } else if schedule.conditions.contains(.offline) {
            (told.state, told.reason) = (.waiting, .offline)
        } else if let first = waiting.first, waiting.count == schedule.places.count {
            told.state = waiting.allSatisfy { $0.waitsForUser || $0.reason == .noSpace } ? .paused : .waiting
            told.reason = first.reason
        } else {
            (told.state, told.reason) = (.idle, waiting.first?.reason ?? .none)
        }
        told.progress = nil
        (told.bytesDone, told.bytesTotal) = (0, 0)
        told.nextRound = moment.map { Clock.now() + $0 - Clock.steady() }
        return before == (told.state, told.reason) ? nil : Syncer.Event(status: told)
    }

    /// Updates the places of the status. The caller holds the lock.
    private func refresh() {
        told.places = schedule.places.map { place in
            var shown = known[place.name] ?? Syncer.Place(place: place.title)
            shown.reason = place.reason
            shown.failures = UInt64(place.failures)
            let at = max(place.retryAt, place.sendAt == .infinity ? -.infinity : place.sendAt, place.notBefore)
            shown.retryAt =
                place.reason == .none || (place.waitsForUser && !place.mayNotSend) || at == -.infinity
                ? nil : Clock.now() + at - Clock.steady()
            return shown
        }
    }

    /// Runs a round, and reports its results to the schedule and the host.
    private func perform(_ round: SyncSchedule.Round, isAsked: Bool, _ token: CancelToken) {
        let names = Set(round.places), number = lock.withLock { roundsBegun }
        let control = self.control(token, isAsked: isAsked), rows = coordinator.store.rowCount, before = counts(names)
        var outcome: StoreCoordinator.SyncOutcome?, failure: StoreError?
        let turns: StoreCoordinator.TurnRunner = { [self] name, exchange, body in
            run(SyncerTurn(name, exchange, round, number, token, rows, before, isAsked: isAsked), body)
        }
        do {
            if round.onlySends {
                let sent = try coordinator.exchangeReportingFailures(among: names, onlySending: true, turns: turns, control)
                outcome = StoreCoordinator.SyncOutcome(before: sent, move: sent.move)
            } else {
                outcome = try coordinator.syncReportingFailures(
                    among: names, selection: selection, onlyReceiving: round.onlyReceive, turns: turns, control)
            }
        } catch { failure = StoreError.of(error) }
        report(round, number, outcome, failure, from: rows, before)
    }

    private func control(_ token: CancelToken, isAsked: Bool) -> OperationControl {
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
    private func run(
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
    private func finish(_ turn: SyncerTurn) {
        guard let result = lock.withLock({ turn.result }) else { return }
        // The name may belong to another exchange by now, or to none.
        let isAttached = coordinator.attachedPlaces.contains { $0.name == turn.name && $0.exchange === turn.exchange }
        let at = coordinator.currentVersion
        let first = StoreCoordinator.ExchangeOutcome(
            exchanges: isAttached ? [result.part] : [], move: result.move ?? StoreCoordinator.Move(from: at, to: at))
        let (others, conditions) = lock.withLock { () -> (Set<String>, Syncer.Conditions) in
            turns.removeAll { $0 === turn }
            if turn.ended - turn.begun <= schedule.pace.turn { slow.remove(turn.name) }
            schedule.comeBack(turn.name)
            let ready = schedule.places.filter { $0.reason == .none || $0.name == turn.name }.map(\.name)
            return (Set(ready).subtracting(turns.map(\.name)), schedule.conditions)
        }
        let mayExchange = turn.isAsked || conditions.isDisjoint(with: [.offline, .paused])
        var outcome = StoreCoordinator.SyncOutcome(before: first, move: first.move), failure: StoreError?
        let control = self.control(turn.token, isAsked: turn.isAsked)
        if !turn.round.onlySends {
            let runner: StoreCoordinator.TurnRunner = { [self] name, exchange, body in
                run(
                    SyncerTurn(name, exchange, turn.round, turn.number, turn.token, turn.rows, turn.before, isAsked: turn.isAsked), body)
            }
            do {
                outcome = try coordinator.finishSync(
                    first, among: mayExchange ? others : [], isPassedOn: true, selection: selection,
                    onlyReceiving: turn.round.onlyReceive, turns: runner, control)
            } catch { failure = StoreError.of(error) }
        }
        var round = turn.round
        let visited = Set((outcome.before.exchanges + (outcome.after?.exchanges ?? [])).map(\.name))
        round.places = visited.sorted()
        report(round, turn.number, outcome, failure, from: turn.rows, turn.before)
    }

    /// Reports the results of a round to the schedule and the host.
    private func report(
        _ round: SyncSchedule.Round, _ number: UInt64, _ outcome: StoreCoordinator.SyncOutcome?, _ given: StoreError?, from rows: Int,
        _ before: [String: Counted]
    ) {
        let names = Set(round.places)
        var failure = given
        // A round without news does not access the store, so the store is checked here. Its error is not an error of the place.
        let storeFailure = gone()
        if let storeFailure { failure = storeFailure }
        let late = LateArrivals.of(coordinator.store).nextDue()
        let after = coordinator.store.rowCount, sentUpTo = firstUnsent(outcome, round, from: rows), asked = counts(names)
        let isLeft = isAnythingLeft(outcome, from: rows, upTo: after)
        let hasSent = outcome.map { ($0.before.exchanges + ($0.after?.exchanges ?? [])).contains(where: \.hasSent) } ?? false
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
            let parts = (outcome.map { $0.before.exchanges + ($0.after?.exchanges ?? []) } ?? []).filter { $0.name == name }
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
        told.mergeFailure = outcome?.mergeFailure.map { StoreError.of($0) }
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
        let waits: Double?
        if case .at(let moment) = schedule.next(now) { waits = moment } else { waits = nil }
        _ = settle(until: waits)
        if failure?.code == .closed { isStopped = true }
        let event = Syncer.Event(status: told, round: outcome)
        changed.broadcast()
        lock.unlock()
        tell(event)
    }

    /// Merges versions that arrived outside of a round, if there are heads other than the current version.
    private func mergeArrivals() {
        guard (try? coordinator.hasHeadsToMerge(selection)) ?? true else { return }
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
        var outcome = StoreCoordinator.SyncOutcome(
            before: StoreCoordinator.ExchangeOutcome(move: StoreCoordinator.Move(from: at, to: at)),
            move: StoreCoordinator.Move(from: at, to: at))
        do {
            let merged = try coordinator.mergeReportingFailures(selection: selection, control: control)
            (outcome.move, outcome.hasMerged, outcome.mergeFailure) = (merged.move, merged.move.isMove, merged.failure)
        } catch { outcome.mergeFailure = error }
        let failure = outcome.mergeFailure.map { StoreError.of($0) }, isInterrupted = failure?.code == .cancelled || failure?.code == .busy
        lock.lock()
        let now = Clock.steady()
        (self.token, onlyMerges) = (nil, false)
        schedule.finishMerging(at: now)
        told.mergeFailure = isInterrupted ? nil : failure
        if isInterrupted { schedule.tell(.arrival, at: now) }
        told.rounds &+= 1
        let waits: Double?
        if case .at(let moment) = schedule.next(now) { waits = moment } else { waits = nil }
        _ = settle(until: waits)
        if failure?.code == .closed { isStopped = true }
        let event = Syncer.Event(status: told, round: outcome)
        changed.broadcast()
        lock.unlock()
        tell(event)
    }

    /// Returns an error if the store of this device was deleted, moved or replaced while it was open.
    private func gone() -> StoreError? {
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
    private func counts(_ names: Set<String>) -> [String: Counted] {
        var found: [String: Counted] = [:]
        for place in coordinator.attachedPlaces where names.contains(place.name) {
            guard let transport = place.exchange.transport as? any TellingTransport else { continue }
            found[place.name] = Counted(counts: transport.counts, remote: transport.remoteStatus)
        }
        return found
    }

    /// Returns, by the name of a place, the first row that may be missing there. It is the first row since the beginning of the round that
    /// the round neither sent nor received, or an earlier row that was deferred.
    private func firstUnsent(_ outcome: StoreCoordinator.SyncOutcome?, _ round: SyncSchedule.Round, from rows: Int) -> [String: Int] {
        guard let outcome else { return [:] }
        let parts = outcome.before.exchanges + (outcome.after?.exchanges ?? [])
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
    private func isAnythingLeft(_ outcome: StoreCoordinator.SyncOutcome?, from rows: Int, upTo after: Int) -> Bool {
        guard let outcome, after > rows else { return false }
        let parts = outcome.before.exchanges + (outcome.after?.exchanges ?? [])
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
    private final class Moment: @unchecked Sendable {
        // Sendable: one thread at a time uses it.
        var at = -Double.infinity
    }

    /// Records progress. Reports it at once if this is the syncer's thread; otherwise that thread reports it.
    private func came(_ progress: OperationProgress, _ bytes: ByteProgress, _ last: Moment) {
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

    private static func reason(_ error: StoreError) -> Syncer.Reason {
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
