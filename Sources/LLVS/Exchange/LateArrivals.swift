/// What came to a store over direct connections lately. Of several devices that are linked to each other and to one place, whoever made a
/// version publishes it there; the others do after ten minutes.
final class LateArrivals: Sendable {
    private let batches = Guarded<[(ids: [VersionID], at: Double)]>([])
    /// Seconds for which whoever made a version has it to himself to publish it.
    static let patience = 600.0
    /// How many are kept in mind.
    private static let limit = 200_000
    /// Seconds within which what comes is one batch: so there are few, however it comes.
    private static let together = 1.0

    static func of(_ store: Store) -> LateArrivals { store.attachments.object(LateArrivals.self) { LateArrivals() } }

    /// Versions came over a connection.
    func note(_ ids: [VersionID], at now: Double = Clock.steady()) {
        guard !ids.isEmpty else { return }
        batches.withLock { batches in
            if let last = batches.last, now - last.at < LateArrivals.together {
                batches[batches.count - 1].ids += ids
            } else {
                batches.append((ids, now))
            }
            var count = batches.reduce(0) { $0 + $1.ids.count }
            while let first = batches.first, now - first.at > LateArrivals.patience || count > LateArrivals.limit {
                count -= first.ids.count
                batches.removeFirst()
            }
        }
    }

    /// When the first of what came lately is no longer left to others.
    func nextDue(at now: Double = Clock.steady()) -> Double? {
        batches.withLock { $0.first { now - $0.at <= LateArrivals.patience } }.map { $0.at + LateArrivals.patience + 1 }
    }

    /// What is to be published, predecessors first, without what came lately and nothing else of it builds on.
    func leftOut(of ids: [VersionID], in store: Store, at now: Double = Clock.steady()) throws -> [VersionID] {
        let lately = batches.withLock { $0.filter { now - $0.at <= LateArrivals.patience } }
        guard !lately.isEmpty else { return ids }
        let others = Set(lately.flatMap(\.ids))
        var needed: Set<VersionID> = [], kept: [VersionID] = []
        for id in ids.reversed() where !others.contains(id) || needed.contains(id) {
            kept.append(id)
            needed.formUnion(try store.version(id)?.predecessors ?? [])
        }
        return kept.reversed()
    }
}
