/// Runs the thread of a syncer, and holds the state that it shares with callers. It outlives the syncer until its work is done.
final class SyncerThread: @unchecked Sendable {
    // Sendable: `lock` guards the state that it names; the rest is used by the thread alone, or does not change.
    let coordinator: StoreCoordinator
    let selection: HeadSelection
    let call: @Sendable (Syncer.Event) -> Void
    let process = getpid()
    /// Guards all state below. While it is held, neither the host nor the coordinator is called.
    let lock = Lock(.leaf)
    let changed = Condition()
    var schedule: SyncSchedule
    var told = Syncer.Status()
    /// The results for each place, by name: when it was exchanged with, its error and its problems.
    var known: [String: Syncer.Place] = [:]
    /// By name: the first row of the history that may not have been sent to that place.
    var unsent: [String: Int] = [:]
    /// The day to which the counts of "today" belong, since 2001.
    var day = 0.0
    var isStopped = false, isFinished = true
    var thread: pthread_t?
    /// The deadlines of the calls that wait for a round.
    var ends: [Double] = []
    /// The token of the running round.
    var token: CancelToken?
    var roundsBegun: UInt64 = 0
    /// The result of the last round, and its number.
    var wasInterrupted = false, wasWhole = false, wholeRound: UInt64 = 0
    /// The rows of the history that existed when a round ended or that were reported since.
    var seenRows = 0
    /// Whether the running round only merges, and does not send the result.
    var onlyMerges = false
    /// The exchanges under way, each on a thread of its own: those of the running round, and those whose rounds continued without them.
    var turns: [SyncerTurn] = []
    /// The places whose rounds continued without them. Later rounds do not wait for them until one of their exchanges is quick again.
    var slow: Set<String> = []
    /// The status has progress that was not reported yet.
    var isProgressDue = false
    var attachedChanged = true
    /// Used by the thread alone, and by `start` before the thread exists.
    var news: [String: (exchange: Exchange, observation: (any ExchangeObservation)?)] = [:]
    var observations: [any ExchangeObservation] = []

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

    var isInChild: Bool { getpid() != process }

    func start() throws {
        do { try listenAndWork() } catch {
            for observation in observations { observation.cancel() }
            throw error
        }
    }

    func listenAndWork() throws {
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

    static var closed: StoreError {
        StoreError(.closed, "The syncer was stopped, or its coordinator closed. Start another one to continue.")
    }

    static var hasNoPlace: StoreError {
        StoreError(.invalidArgument, "No exchange is attached to the coordinator, so there is nothing to sync with. Attach one.")
    }

    func attachmentsChanged() {
        lock.withLock {
            attachedChanged = true
            changed.broadcast()
        }
    }

    /// Called when the current version moves. The syncer's own rounds move it as well, but they send their results.
    func currentMoved() {
        lock.withLock {
            if token != nil, !onlyMerges, isOwnThread(orOfLeft: false) { return }
            schedule.tell(.save, at: Clock.steady())
            changed.broadcast()
        }
    }

    func storeGrew() {
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
    var unsentRows: [Int?] { schedule.places.map { unsent[$0.name] } }

    /// Adds the counts of unsent versions, and of orders to erase, to a status. The caller holds no lock.
    func counted(_ status: Syncer.Status, _ rows: [Int?]) -> Syncer.Status {
        var status = status
        if let counts = try? coordinator.store.orders.counts() { status.erasures = counts }
        guard rows.count == status.places.count else { return status }
        for (i, first) in rows.enumerated() { status.places[i].pending = first.map { coordinator.store.pending(behind: $0) } }
        return status
    }

    // MARK: Stopping

    func end() {
        if isInChild { return }
        let running = lock.withLock {
            isStopped = true
            changed.broadcast()
            return tokens
        }
        for token in running { token.cancel() }
    }

    /// The tokens of everything that runs. The caller holds the lock.
    var tokens: [CancelToken] { (token.map { [$0] } ?? []) + turns.map(\.token) }
    /// The exchanges whose rounds continued without them. The caller holds the lock.
    var left: [SyncerTurn] { turns.filter(\.isLeft) }
    /// Whether this is the syncer's thread, or a thread of one of its exchanges. The caller holds the lock.
    func isOwnThread(orOfLeft: Bool) -> Bool {
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

    func work() {
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
    func tell(_ event: Syncer.Event) {
        var event = event
        event.status = counted(event.status, lock.withLock { unsentRows })
        let erasures = event.status.erasures
        lock.withLock { told.erasures = erasures }
        HostCalls.run(PlainMark(), observes: true) { call(event) }
    }

    /// Observes the exchanges that are attached now.
    func attachNews() {
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
    func settle(until moment: Double?) -> Syncer.Event? {
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
    func refresh() {
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
}
