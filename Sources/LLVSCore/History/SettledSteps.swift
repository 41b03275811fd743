/// Finds the steps of a fold whose two versions, the result so far and the next head, differ in merges only: every version reachable from
/// exactly one of the two is a merge. Known before the fold begins: the ancestors of a result are the heads so far and their ancestors,
/// whatever the merges in between yield.
///
/// Two versions differ in merges only if the same non-merge versions are in both ancestries. It suffices to compare the first non-merge
/// versions on each way back from the heads, since all others are their ancestors. 64 of them are compared at once, each version's bits
/// following from its predecessors'. So the merges on top are visited once, and the versions since the lowest of 64 once for these.
package struct SettledSteps: HistoryPass {
    private let heads: [UInt32]
    /// Whether a group of heads begins here, which is folded apart from the others.
    private let begins: [Bool]
    private var outcome: [Bool]
    /// The versions that the walk back from the heads visits next.
    private var stack: [UInt32], seen = OrdinalSet()
    /// The first non-merge versions on the ways back; sorted, highest first, once the walk has ended.
    private var others: [UInt32] = [], isAtEnd = false
    /// The index of the first of `others` that is not yet compared.
    private var next = 0
    /// For each version from the lowest of the 64 on: which of them it is or descends from.
    private var behind: [UInt64] = []
    /// The bits from this index of `others` up are given. The walk up from the lowest has not yet met the others of the 64.
    private var untold = 0

    /// - Parameter heads: in the order of the fold, none an ancestor of another.
    init(_ heads: [UInt32]) { self.init([heads]) }

    /// For several folds at once, so that common ancestors are visited once.
    package init(_ groups: [[UInt32]]) {
        heads = groups.flatMap { $0 }
        begins = groups.flatMap { $0.indices.map { $0 == 0 } }
        outcome = heads.map { _ in true }
        stack = heads
    }

    /// Returns for each head whether the step that folds it in differs in merges only; false for the first of a group.
    package mutating func go(_ steps: Int, in dag: History) -> [Bool]? {
        var left = steps
        if !isAtEnd {
            guard findOthers(&left, dag) else { return nil }
            isAtEnd = true
        }
        // Heads that are no merges are the highest, and usually decide all.
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

    /// Computes the bits of each version for one group, and compares the heads; false if not finished.
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
