/// Finds versions by the times at which they were made.
extension Store {
    /// Returns the version that was current at a time. Candidates are a version and its ancestors that were made at or before that time
    /// and have no such descendant. Of these, it is the one that was made last (`Version.madeAt`); nil if all are later.
    /// - Parameters:
    ///   - time: seconds since 2001-01-01 UTC.
    ///   - head: the version to search from; nil for the most recent head.
    ///   - control: checked with stage `.reading`.
    /// - Throws: `.unknownVersion`, `.invalidArgument` for a time that is not a number.
    /// - Complexity: grows with the number of later versions.
    public func version(at time: Double, head: VersionID? = nil, control: OperationControl = OperationControl()) throws -> Version? {
        try checkOpen()
        guard !time.isNaN else { throw StoreError(.invalidArgument, "The time is no number. Give seconds.") }
        let control = control.paced(.reading, doing: "Finding the version at a time in \(description)")
        try control.look()
        guard let start = try head ?? mostRecentHead()?.id else { return nil }
        let first = try requireOrdinal(start)
        if isVirtual(first) { return nil }
        let found = try walk(StoodSearch(first, at: time), control.look)
        return try found.flatMap { try version(versionID($0)) }
    }
}

/// Finds the last version that was made at or before a time, among a version and its ancestors. The walk continues only through later
/// versions.
private struct StoodSearch: HistoryPass {
    let time: Double
    private var stack: [UInt32], seen: Set<UInt32>, newest: UInt32?

    init(_ first: UInt32, at time: Double) { self.time = time; stack = [first]; seen = [first] }

    mutating func go(_ steps: Int, in dag: History) -> UInt32?? {
        var left = steps
        while let at = stack.last {
            if left <= 0 { return nil }
            left -= 1
            stack.removeLast()
            Work.versions.count()
            if dag.rows[Int(at)].made <= time {
                newest = newest.map { isLater(at, than: $0, in: dag) ? at : $0 } ?? at
            } else {
                for before in dag.predecessors(at) where seen.insert(before).inserted { stack.append(before) }
            }
        }
        return .some(newest)
    }

    private func isLater(_ a: UInt32, than b: UInt32, in dag: History) -> Bool {
        let x = dag.rows[Int(a)].made, y = dag.rows[Int(b)].made
        return x != y ? x > y : dag.isNewer(a, b)
    }
}
