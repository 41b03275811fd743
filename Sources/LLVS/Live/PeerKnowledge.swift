/// What a store knows of its links: in which order its versions came, and how far it has all of others. It lasts as long as the handle.
final class PeerKnowledge: Sendable {
    private struct Known {
        var since: LiveFrame.Since
        /// What was in the history then, by which it is told whether something of it was withdrawn.
        var rows: Int, live: Int
    }
    private struct State {
        var incarnation = PackID.random()
        /// By device keys.
        var known: [[UInt8]: Known] = [:]
    }
    private let state = Guarded(State())
    private static let limit = 1_024

    static func of(_ store: Store) -> PeerKnowledge { store.attachments.object(PeerKnowledge.self) { PeerKnowledge() } }

    var incarnation: PackID { state.withLock { $0.incarnation } }
    /// The order of arrival does not tell any more what others lack.
    func renew() { state.withLock { $0.incarnation = .random() } }

    /// All that a device had up to there is here.
    func note(_ since: LiveFrame.Since, of device: [UInt8], in store: Store) {
        let rows = store.rowCount, live = PeerKnowledge.live(rows, store)
        state.withLock {
            if $0.known.count >= PeerKnowledge.limit { $0.known = [:] }
            $0.known[device] = Known(since: since, rows: rows, live: live)
        }
    }
    /// How far all that a device had is here; nothing where that is not known.
    func since(of device: [UInt8], in store: Store) -> LiveFrame.Since {
        guard let known = state.withLock({ $0.known[device] }), PeerKnowledge.live(known.rows, store) == known.live else {
            return LiveFrame.Since()
        }
        return known.since
    }

    private static func live(_ rows: Int, _ store: Store) -> Int {
        store.lock.withRead { store.dag.rows.prefix(rows).reduce(0) { $0 + ($1.state == .live ? 1 : 0) } }
    }
}
