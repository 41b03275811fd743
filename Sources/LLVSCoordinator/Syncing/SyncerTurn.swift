/// The exchange of a round with one place, on a thread of its own. The round waits for it for a limited time, and then continues without
/// it.
final class SyncerTurn: @unchecked Sendable {
    // Sendable: the syncer's lock guards all mutable state.
    let name: String
    let exchange: Exchange
    /// The round to which it belongs, and its number.
    let round: SyncSchedule.Round, number: UInt64
    let token: CancelToken
    /// The rows of the store, and the counts of the transports, when the round began.
    let rows: Int, before: [String: SyncerThread.Counted]
    let isAsked: Bool
    let begun = Clock.steady()
    var ended = Double.infinity
    /// The thread, while the exchange runs.
    var thread: pthread_t?
    /// The result, once the exchange has ended.
    var result: StoreCoordinator.Turn?
    /// The round continued without this exchange, and after a pause.
    var isLeft = false, wasAwaited = false

    init(
        _ name: String, _ exchange: Exchange, _ round: SyncSchedule.Round, _ number: UInt64, _ token: CancelToken, _ rows: Int,
        _ before: [String: SyncerThread.Counted], isAsked: Bool
    ) {
        self.name = name; self.exchange = exchange; self.round = round; self.number = number; self.token = token
        self.rows = rows; self.before = before; self.isAsked = isAsked
    }
}
