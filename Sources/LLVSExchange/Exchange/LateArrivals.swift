/// The versions that recently came to a store over direct connections. If several devices are linked to each other and to one place, the
/// device that made a version publishes it there; the others wait ten minutes.
package final class LateArrivals: Sendable {
    private let batches = Guarded<[(ids: [VersionID], at: Double)]>([])
    /// Seconds in which only the device that made a version publishes it.
    static let patience = 600.0
    /// The most ids held.
    private static let limit = 200_000
    /// Arrivals within this many seconds form one batch, which keeps batches few.
    private static let together = 1.0

    package static func of(_ store: Store) -> LateArrivals { store.attachments.object(LateArrivals.self) { LateArrivals() } }

    /// Records versions that came over a connection.
    package func note(_ ids: [VersionID], at now: Double = Clock.steady()) {
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

    /// The time until which the first of the recent versions is left to other devices; nil if there is none.
    package func nextDue(at now: Double = Clock.steady()) -> Double? {
        batches.withLock { $0.first { now - $0.at <= LateArrivals.patience } }.map { $0.at + LateArrivals.patience + 1 }
    }

    /// Returns the versions to publish, predecessors first. Leaves out recent arrivals, unless another of the versions builds on them.
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
