/// Versions by when they were made.
extension Store {
    /// The version that stood at a time: the newest of a version and its ancestors that is not later, among those that no other that is not
    /// later is built on; nil when all are later.
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

/// The newest of a version and its ancestors that is not later than a time, among those before which the walk met later ones only.
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
            if dag.rows[Int(at)].timestamp <= time {
                newest = newest.map { dag.isNewer(at, $0) ? at : $0 } ?? at
            } else {
                for before in dag.predecessors(at) where seen.insert(before).inserted { stack.append(before) }
            }
        }
        return .some(newest)
    }
}
