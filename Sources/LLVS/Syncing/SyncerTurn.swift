/// An exchange of a round, on a thread of its own. The round does not wait for it longer than a turn lasts; then it goes on without it.
final class SyncerTurn: @unchecked Sendable {
    // Sendable: the syncer's lock guards what changes.
    let name: String
    let exchange: Exchange
    /// The round that it is of, and its number.
    let round: SyncSchedule.Round, number: UInt64
    let token: CancelToken
    /// What there was as the round began.
    let rows: Int, before: [String: SyncerThread.Counted]
    let isAsked: Bool
    let begun = Clock.steady()
    var ended = Double.infinity
    /// The thread, while it works.
    var thread: pthread_t?
    /// What came of it, when it is over.
    var result: StoreCoordinator.Turn?
    /// The round went on without it.
    var isLeft = false

    init(
        _ name: String, _ exchange: Exchange, _ round: SyncSchedule.Round, _ number: UInt64, _ token: CancelToken, _ rows: Int,
        _ before: [String: SyncerThread.Counted], isAsked: Bool
    ) {
        self.name = name; self.exchange = exchange; self.round = round; self.number = number; self.token = token
        self.rows = rows; self.before = before; self.isAsked = isAsked
    }
}
