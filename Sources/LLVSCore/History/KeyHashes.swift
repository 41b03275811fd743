/// Hashes of the ids that versions changed. Each row has one number: the hash if the version changed one id, otherwise an index into the
/// hashes of all versions that changed several.
struct KeyHashes {
    /// The hash of the only changed id, or the index in `many` where the hashes begin. Undefined for rows that were not set.
    private var ofRows: ContiguousArray<UInt32> = []
    private var many: ContiguousArray<UInt32> = []

    /// The number of hashes of versions that changed several ids.
    var manyCount: Int { many.count }
    /// Bytes of the hashes, and of the arrays that hold them.
    var size: Int { (ofRows.count + many.count) * MemoryLayout<UInt32>.stride }
    var memory: Int { (ofRows.capacity + many.capacity) * MemoryLayout<UInt32>.stride }

    mutating func reserve(_ rows: Int) { ofRows.reserveCapacity(rows) }
    /// Makes room for one more row.
    mutating func preallocate() throws { try Memory.grow(&ofRows, "The history") }
    mutating func appendRow() { ofRows.append(0) }

    /// Sets the hashes of a row; false if there are none, or too many to record.
    mutating func set(_ row: Int, count: Int, _ hash: (Int) -> UInt32) -> Bool {
        guard count > 0, count <= MapPolicy.longestIndexed else { return false }
        if count == 1 {
            ofRows[row] = hash(0)
        } else {
            guard many.count + count <= MapPolicy.mostIndexed else { return false }
            ofRows[row] = UInt32(truncatingIfNeeded: many.count)
            for number in 0..<count { many.append(hash(number)) }
        }
        return true
    }

    /// Returns the hashes of a row that was set with `count` of them.
    func of(_ row: Int, count: Int) -> ContiguousArray<UInt32>.SubSequence {
        if count == 1 { return ofRows[row...row] }
        let start = Int(ofRows[row])
        return many[start..<start + count]
    }
    /// Returns the hash of a row that was set with one.
    @inline(__always) func single(_ row: Int) -> UInt32 { ofRows[row] }
}
