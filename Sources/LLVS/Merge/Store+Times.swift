/// Versions by when they were made.
extension Store {
    /// The version that stood at a time: of a version and its ancestors the one that was made last (`Version.madeAt`), and not later, among
    /// those that no other that is not later is built on; nil when all are later.
    /// - Parameters:
    ///   - time: seconds since 2001-01-01 UTC.
    ///   - head: nil: the most recent head.
    ///   - control: looked at with stage `.reading`.
    /// - Throws: `.unknownVersion`, `.invalidArgument` for a time that is no number.
    /// - Complexity: the versions that are later.
    public func version(at time: Double, head: VersionID? = nil, _ control: OperationControl = OperationControl()) throws -> Version? {
        try checkOpen()
        guard !time.isNaN else { throw StoreError(.invalidArgument, "The time is no number. Give seconds.") }
        let control = control.paced(.reading, doing: "Looking for what stood at a time in \(description)")
        try control.look()
        guard let start = try head ?? mostRecentHead()?.id else { return nil }
        let first = try requireOrdinal(start)
        if isVirtual(first) { return nil }
        let found = try walk(StoodSearch(first, at: time), control.look)
        return try found.flatMap { try version(versionID($0)) }
    }
}

/// Of a version and its ancestors the one that was made last, and not later than at a time, among those before which the walk met later
/// ones only.
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
