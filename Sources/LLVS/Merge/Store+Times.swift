/// Versions by when they were made.
extension Store {
    /// The version that stood at a time: the newest of a version and its ancestors that is not later, among those that no other that is not
    /// later is built on; nil when all are later.
    /// - Parameters:
    ///   - time: seconds since 2001-01-01 UTC.
    ///   - head: nil: the most recent head.
    /// - Throws: `.unknownVersion`, `.invalidArgument` for a time that is no number.
    /// - Complexity: the versions that are later.
    public func version(at time: Double, head: VersionID? = nil) throws -> Version? {
        try checkOpen()
        guard !time.isNaN else { throw StoreError(.invalidArgument, "The time is no number. Give seconds.") }
        guard let start = try head ?? mostRecentHead()?.id else { return nil }
        let first = try requireOrdinal(start)
        if isVirtual(first) { return nil }
        let found = lock.withRead { () -> UInt32? in
            var stack = [first], seen: Set<UInt32> = [first], newest: UInt32?
            while let at = stack.popLast() {
                Work.versions.count()
                if dag.rows[Int(at)].timestamp <= time {
                    newest = newest.map { dag.isNewer(at, $0) ? at : $0 } ?? at
                } else {
                    for before in dag.predecessors(at) where seen.insert(before).inserted { stack.append(before) }
                }
            }
            return newest
        }
        return try found.flatMap { try version(versionID($0)) }
    }
}
