/// Keeps a coordinator in sync with its exchanges. It decides when a round of exchanging and merging is due, runs it on a thread of its
/// own, and reports the results (docs/background-sync.md).
///
/// It runs until it is stopped or released, or the coordinator is closed. It notices saves by the coordinator, by other handles and by
/// other processes, exchanges that are attached later, and news of exchanges. Versions that arrive over a direct connection, from another
/// process or by an import are merged at once, even if no exchange is attached.
///
/// Threads: all methods may be called from any thread. Events come one at a time, on the syncer's thread. An event may call all methods
/// except `run`.
public final class Syncer: Sendable {
    private let core: SyncerThread
    /// Receive what the callback receives.
    package let listeners = Observers<Event>()
    /// Reports the end of the syncer, after its last event.
    package let ended = Observers<Void>()

    /// Starts the syncer with a round at once.
    /// - Parameters:
    ///   - coordinator: the coordinator, which is retained until the syncer is stopped.
    ///   - options: the delays.
    ///   - conditions: the conditions at the start.
    ///   - tell: called on the syncer's thread after each round and each change of the status, and at most ten times a second as a round
    ///     makes progress.
    /// - Throws: `.readOnly` if the store is, `.closed`, `.invalidArgument` for invalid delays, and `.io` if no thread can be started.
    public init(
        _ coordinator: StoreCoordinator, options: Options = Options(), conditions: Conditions = [],
        _ tell: @escaping @Sendable (Event) -> Void = { _ in }
    ) throws {
        guard !coordinator.store.isReadOnly else {
            throw StoreError(
                .readOnly,
                "\(coordinator.store.description) was opened for reading only, so nothing can be synced with it. Open it to write.")
        }
        try coordinator.store.checkOpen()
        var pace = SyncSchedule.Pace()
        for delay in [options.afterSave, options.afterSaves, options.poll, options.longestPoll, options.longestPause] {
            guard delay > 0, delay <= 1e6 else {
                throw StoreError(
                    .invalidArgument, "A delay of \(delay) seconds is not one that a syncer can have: more than 0, up to 1,000,000.")
            }
        }
        pace.quietAfterSave = options.afterSave
        pace.longestAfterSave = max(options.afterSave, options.afterSaves)
        pace.poll = options.poll
        pace.longestPoll = max(options.poll, options.longestPoll)
        pace.longestPause = options.longestPause
        pace.turn = options.turn
        core = SyncerThread(coordinator, pace, options.selection, conditions.intersection(.known)) { [listeners, ended] event in
            tell(event)
            listeners.tell(event)
            if event.status.state == .off { ended.tell(()) }
        }
        do { try core.start() } catch {
            core.stop()
            throw error
        }
    }

    deinit { core.stop() }

    /// Stops the syncer. Cancels a running round, and keeps what it completed. Returns after the last event has ended, unless it is called
    /// from within an event. It may be called any number of times.
    public func stop() { core.stop() }

    /// Reports an event for which a round may be due. Does not wait for the round.
    /// - Throws: `.closed` if the syncer was stopped, or the coordinator closed.
    public func trigger(_ trigger: Trigger) throws {
        switch trigger {
        case .user: try core.tell(.user)
        case .front: try core.tell(.front)
        case .news: try core.tell(.news)
        }
    }

    /// Sets the conditions. A program that leaves the background or finds a network also triggers `.front`.
    /// - Throws: `.closed`, as `trigger`.
    public func setConditions(_ conditions: Conditions) throws { try core.set(conditions.intersection(.known)) }

    /// The state of the syncer, and its results so far.
    public var status: Status { core.status }
    /// For tests: whether a call of `run` waits for a round.
    var isAwaited: Bool { core.isAwaited }

    /// Runs a round as if the user asked for it, whatever the conditions, and waits for its end.
    /// - Parameters:
    ///   - seconds: the time after which the round is cancelled; it keeps what it completed. Nil for no limit.
    ///   - control: its token cancels the round. Its progress is called on the calling thread, with the progress of the round.
    /// - Returns: whether everything was done; false if the deadline came first, or if a place or the merge failed, as the status says.
    /// - Throws: `.cancelled`, `.closed`, `.busy` from within an event, `.invalidArgument` if no exchange is attached.
    @discardableResult
    public func run(within seconds: Double? = nil, control: OperationControl = OperationControl()) throws -> Bool {
        try core.run(seconds, control)
    }
}

extension Syncer.Conditions {
    static let known: Syncer.Conditions = [.offline, .metered, .lowBattery, .background, .paused]

    /// Creates conditions from bits; nil if one of the bits has no meaning.
    public init?(known bits: UInt32) {
        self.init(rawValue: bits)
        guard isSubset(of: .known) else { return nil }
    }
}
