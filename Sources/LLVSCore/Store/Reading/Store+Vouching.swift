/// Counts the versions that the ids of heads vouch for.
extension Store {
    /// Counts how much of the history the ids of the heads vouch for.
    func countVouched(_ whole: Set<VersionID>, _ report: inout VerifyReport, _ look: () throws -> Void) rethrows {
        var isReached: [Bool] = lock.withRead {
            var isReached = [Bool](repeating: false, count: dag.rows.count)
            for head in dag.headOrdinals { isReached[Int(head)] = true }
            return isReached
        }
        // Rows come after their predecessors.
        for end in stride(from: isReached.count, to: 0, by: -Store.countedAtOnce) {
            lock.withRead {
                for i in (max(0, end - Store.countedAtOnce)..<end).reversed() where dag.rows[i].state == .live {
                    let id = dag.id(UInt32(truncatingIfNeeded: i))
                    guard isReached[i], id.text == nil, id.hasContentForm, whole.contains(id) else { report.unvouched += 1; continue }
                    report.vouched += 1
                    for predecessor in [dag.rows[i].first, dag.rows[i].second] where predecessor != History.none {
                        isReached[Int(predecessor)] = true
                    }
                }
            }
            try look()
        }
    }
    /// Versions that are visited while the lock is held once.
    private static let countedAtOnce = 8_192
}
