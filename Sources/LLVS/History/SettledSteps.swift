/// Which steps of a fold bring together versions that differ in merges only: whether every version that can be reached from exactly one
/// of the two, the result so far and the next head, is a merge. It is known before the fold begins: behind the result are the heads so
/// far and what is behind them, whatever the merges on the way come to.
///
/// Two versions differ in merges only when the same versions that are no merges are behind both. Enough of these are looked at: the
/// first ones on all ways back from the heads, since all others are behind one of them. Which of them are behind a version
/// follows from its predecessors; 64 of them are looked for at once. So the merges on top are walked over once, and what came since
/// the lowest of 64 once for these.
struct SettledSteps: HistoryPass {
    private let heads: [UInt32]
    /// Where a group of heads begins, which are folded apart from the others.
    private let begins: [Bool]
    private var outcome: [Bool]
    /// What the walk back from the heads comes to next.
    private var stack: [UInt32], seen = OrdinalSet()
    /// The first versions that are no merges; when the walk is at its end the highest first.
    private var others: [UInt32] = [], isAtEnd = false
    /// Those of them that were not looked for yet begin here.
    private var next = 0
    /// Which of 64 a version is, or has behind it, for each from the lowest of them on.
    private var behind: [UInt64] = []
    /// Those of the 64 that the walk up from the lowest has not met yet end here.
    private var untold = 0

    /// - Parameter heads: in the order of the fold, none an ancestor of another.
    init(_ heads: [UInt32]) { self.init([heads]) }

    /// Of several folds at once, so that what is behind all of them is walked over once.
    init(_ groups: [[UInt32]]) {
        heads = groups.flatMap { $0 }
        begins = groups.flatMap { $0.indices.map { $0 == 0 } }
        outcome = heads.map { _ in true }
        stack = heads
    }

    /// For each head, whether the step that folds it in is such a one; of the first of a group, false.
    mutating func go(_ steps: Int, in dag: History) -> [Bool]? {
        var left = steps
        if !isAtEnd {
            guard findOthers(&left, dag) else { return nil }
            isAtEnd = true
        }
        // Heads that are no merges are the highest: mostly they tell of all.
        while next < others.count, outcome.contains(true) {
            let group = others[next..<min(next + 64, others.count)]
            guard fill(group, &left, dag) else { return nil }
            next = group.endIndex
        }
        return outcome
    }

    private mutating func findOthers(_ left: inout Int, _ dag: History) -> Bool {
        for i in heads.indices where begins[i] || dag.rows[Int(heads[i])].second == History.none { outcome[i] = false }
        guard outcome.contains(true) else { return true }
        while let at = stack.popLast() {
            if seen.contains(at) { continue }
            if left <= 0 { stack.append(at); return false }
            left -= 1
            Work.versions.count()
            seen.insert(at)
            let row = dag.rows[Int(at)]
            guard row.second != History.none else { others.append(at); continue }
            stack.append(row.first)
            stack.append(row.second)
        }
        others.sort(by: >)
        return true
    }

    /// Finds what of some others is behind each version, and holds the heads against each other; false when it is not at its end.
    private mutating func fill(_ group: ArraySlice<UInt32>, _ left: inout Int, _ dag: History) -> Bool {
        let lowest = Int(group.last ?? 0), end = Int(heads.max() ?? 0) + 1
        if behind.isEmpty {
            behind.reserveCapacity(end - lowest)
            untold = group.endIndex
        }
        // Predecessors have lower ordinals.
        while lowest + behind.count < end {
            if left <= 0 { return false }
            left -= 1
            Work.versions.count()
            let row = dag.rows[lowest + behind.count]
            func bits(_ predecessor: UInt32) -> UInt64 {
                let i = Int(predecessor) - lowest
                return predecessor != History.none && i >= 0 && i < behind.count ? behind[i] : 0
            }
            var mine = bits(row.first) | bits(row.second)
            if untold > group.startIndex, Int(others[untold - 1]) == lowest + behind.count {
                untold -= 1
                mine |= 1 << UInt64(untold - group.startIndex)
            }
            behind.append(mine)
        }
        var together: UInt64 = 0
        for (i, head) in heads.enumerated() {
            let bits = Int(head) < lowest ? 0 : behind[Int(head) - lowest]
            if begins[i] { together = 0 }
            if bits != together { outcome[i] = false }
            together |= bits
        }
        left -= heads.count
        behind.removeAll(keepingCapacity: true)
        return true
    }
}
