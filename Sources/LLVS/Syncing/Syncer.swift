/// Keeps a coordinator in step with its exchanges, by itself: it decides when a round of exchanging and merging is due, does it on a
/// thread of its own, and tells what happened (docs/background-sync.md).
///
/// It lasts until it is stopped or let go of, or the coordinator is closed. Saves by the coordinator, by other handles and by other
/// processes, exchanges attached later and news of exchanges are noticed without being told.
/// What comes over a direct connection, by another process or by an import is merged at once, also if no exchange is attached.
///
/// Threads: everything may be called from any thread. Events come one at a time, on the syncer's thread; from within, all may be called
/// but `run`.
public final class Syncer: Sendable {
    private let core: SyncerThread

    /// Starts at once, with a round.
    /// - Parameters:
    ///   - coordinator: kept until the syncer is stopped.
    ///   - options: its delays.
    ///   - conditions: what is so from the beginning.
    ///   - tell: called on the syncer's thread after each round and change of the status, and at most ten times a second while a round
    ///     comes on.
    /// - Throws: `.readOnly` when the store is, `.closed`, `.invalidArgument` for delays that cannot be, and `.io` when no thread can be
    ///   started.
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
                    .invalidArgument, "A delay of \(delay) seconds is none that a syncer can have: more than 0, up to 1,000,000.")
            }
        }
        pace.quietAfterSave = options.afterSave
        pace.longestAfterSave = max(options.afterSave, options.afterSaves)
        pace.poll = options.poll
        pace.longestPoll = max(options.poll, options.longestPoll)
        pace.longestPause = options.longestPause
        pace.turn = options.turn
        core = SyncerThread(coordinator, pace, options.selection, conditions.intersection(.known), tell)
        do { try core.start() } catch {
            core.stop()
            throw error
        }
    }

    deinit { core.stop() }

    /// Ends it: a running round is cancelled, and what it had done whole is kept. Waits until no event is told any more, except from
    /// within one. Any number of times.
    public func stop() { core.stop() }

    /// Something happened that a round may be due for. Does not wait for it.
    /// - Throws: `.closed` when it was stopped, or the coordinator closed.
    public func trigger(_ trigger: Trigger) throws {
        switch trigger {
        case .user: try core.tell(.user)
        case .front: try core.tell(.front)
        case .news: try core.tell(.news)
        }
    }

    /// What is so from now on. Whoever leaves the background or finds a network tells `.front` as well.
    /// - Throws: `.closed`, as `trigger`.
    public func setConditions(_ conditions: Conditions) throws { try core.set(conditions.intersection(.known)) }

    /// What it does now and did so far.
    public var status: Status { core.status }
    /// For tests: whether a call of `run` waits for a round.
    var isAwaited: Bool { core.isAwaited }

    /// Does a round as the user asked for it, whatever the conditions, and waits for its end.
    /// - Parameters:
    ///   - seconds: when they are over, the round is cancelled, and what it had done whole is kept; nil: it takes as long as it takes.
    ///   - control: its token cancels the round; its progress is called on the calling thread, with what the round has come to.
    /// - Returns: whether all was done; false when the deadline came first or a place or the merge failed, as the status says.
    /// - Throws: `.cancelled`, `.closed`, `.busy` from within an event, `.invalidArgument` when no exchange is attached.
    @discardableResult
    public func run(within seconds: Double? = nil, _ control: OperationControl = OperationControl()) throws -> Bool {
        try core.run(seconds, control)
    }
}

extension Syncer.Conditions {
    static let known: Syncer.Conditions = [.offline, .metered, .lowBattery, .background, .paused]

    /// From bits; nil when one of them has no meaning.
    public init?(known bits: UInt32) {
        self.init(rawValue: bits)
        guard isSubset(of: .known) else { return nil }
    }
}
