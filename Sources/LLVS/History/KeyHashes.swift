/// Hashes of the ids that versions changed, by the rows of the versions: one number for each row, and those of versions that changed
/// several ids one after the other.
struct KeyHashes {
    /// The hash of a version that changed one id; of others, where theirs begin in `many`. Of rows that were not set it means nothing.
    private var ofRows: ContiguousArray<UInt32> = []
    private var many: ContiguousArray<UInt32> = []

    /// How many hashes there are of versions that changed several ids.
    var manyCount: Int { many.count }
    /// In bytes: of the hashes, and of the arrays that they are in.
    var size: Int { (ofRows.count + many.count) * MemoryLayout<UInt32>.stride }
    var memory: Int { (ofRows.capacity + many.capacity) * MemoryLayout<UInt32>.stride }

    mutating func reserve(_ rows: Int) { ofRows.reserveCapacity(rows) }
    /// Makes room for one more row.
    mutating func preallocate() throws { try Memory.grow(&ofRows, "The history") }
    mutating func appendRow() { ofRows.append(0) }

    /// False when there are none, or too many: they are not kept.
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

    /// The hashes of a row that was set with so many.
    func of(_ row: Int, count: Int) -> ContiguousArray<UInt32>.SubSequence {
        if count == 1 { return ofRows[row...row] }
        let start = Int(ofRows[row])
        return many[start..<start + count]
    }
    /// The hash of a row that was set with one.
    @inline(__always) func single(_ row: Int) -> UInt32 { ofRows[row] }
}
