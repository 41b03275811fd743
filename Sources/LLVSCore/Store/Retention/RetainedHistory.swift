/// The shape of the history, for finding what is kept.
struct RetainedHistory {
    let count: Int
    private(set) var first: ContiguousArray<UInt32> = [], second: ContiguousArray<UInt32> = []
    /// When versions were made.
    private(set) var made: ContiguousArray<Double> = []
    private(set) var isLive: ContiguousArray<Bool> = []
    /// The places of versions in a walk through the tree of first predecessors: a version comes before those that build on it, which are
    /// the `size - 1` after it.
    private(set) var enter: ContiguousArray<UInt32> = [], size: ContiguousArray<UInt32> = []
    let heads: [UInt32]

    init(_ store: Store) {
        (count, heads) = store.lock.withRead { (store.dag.rows.count, store.dag.headOrdinals.sorted()) }
        store.lock.withRead {
            for row in store.dag.rows.prefix(count) {
                first.append(row.first)
                second.append(row.second)
                made.append(row.made)
                isLive.append(row.state == .live || row.state == .virtual)
            }
        }
        enter = ContiguousArray(repeating: 0, count: count)
        size = ContiguousArray(repeating: 0, count: count)
        for i in (0..<count).reversed() where isLive[i] {
            size[i] += 1
            // Rows come after those of their predecessors.
            if let before = before(i) { size[before] += size[i] }
        }
        var next = enter, root: UInt32 = 0
        for i in 0..<count where isLive[i] {
            if let before = before(i) {
                enter[i] = next[before]
                next[before] += size[i]
            } else {
                enter[i] = root
                root += size[i]
            }
            next[i] = enter[i] + 1
        }
    }
    /// The first predecessor.
    func before(_ i: Int) -> Int? {
        let before = Int(first[i])
        return first[i] != History.none && before < i && isLive[before] ? before : nil
    }
    /// Calls with both predecessors.
    @inline(__always)
    private func forEachPredecessor(_ i: Int, _ body: (Int) -> Void) {
        for ordinal in [first[i], second[i]] where ordinal != History.none && Int(ordinal) < i { body(Int(ordinal)) }
    }

    /// Returns whether each version is one of these, or behind one of them.
    func behind(_ ordinals: [UInt32]) -> [Bool] {
        var found = [Bool](repeating: false, count: count)
        for ordinal in ordinals where Int(ordinal) < count { found[Int(ordinal)] = true }
        for i in (0..<count).reversed() where found[i] { forEachPredecessor(i) { found[$0] = true } }
        return found
    }
    /// Returns those of the versions behind which no other of them is.
    func newest(of ordinals: [UInt32]) -> [UInt32] {
        let all = Set(ordinals.filter { Int($0) < count })
        var hidden = [Bool](repeating: false, count: count)
        for i in (0..<count).reversed() where hidden[i] || all.contains(UInt32(truncatingIfNeeded: i)) {
            forEachPredecessor(i) { hidden[$0] = true }
        }
        return all.filter { !hidden[Int($0)] }.sorted()
    }

    /// The most heads of which common ancestors are found.
    static let mostHeads = 1_024

    /// Returns the common ancestors of two or more of the versions, if no version that builds on one has the same of them before it.
    func commonAncestors(of ordinals: [UInt32]) -> [UInt32] {
        guard ordinals.count > 1 else { return [] }
        let words = (ordinals.count + 63) / 64
        var reached = ContiguousArray<UInt64>(repeating: 0, count: count * words), found: [Int] = []
        for (bit, ordinal) in ordinals.enumerated() where Int(ordinal) < count {
            reached[Int(ordinal) * words + bit / 64] |= 1 << UInt64(bit % 64)
        }
        // Whether a version that builds on it has all that it has.
        var isCovered = [Bool](repeating: false, count: count)
        for i in (0..<count).reversed() where isLive[i] {
            let bits = (0..<words).reduce(0) { $0 + reached[i * words + $1].nonzeroBitCount }
            if bits > 1 { found.append(i) }
            forEachPredecessor(i) { before in for word in 0..<words { reached[before * words + word] |= reached[i * words + word] } }
        }
        for i in 0..<count where isLive[i] {
            forEachPredecessor(i) { before in
                if (0..<words).allSatisfy({ reached[before * words + $0] == reached[i * words + $0] }) { isCovered[before] = true }
            }
        }
        return found.filter { !isCovered[$0] }.map { UInt32(truncatingIfNeeded: $0) }
    }
}
