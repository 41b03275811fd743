/// Walks over the DAG, each in one go (`HistoryPass` has resumable ones). All use explicit stacks and visit only versions between those
/// asked about. Generations order the walks, never timestamps.
extension History {
    /// Whether `a` is reachable from `b` by going back at least one step.
    func isAncestor(_ a: UInt32, of b: UInt32) -> Bool {
        var search = AncestorSearch(a, of: b)
        return search.finish(in: self)
    }

    /// Returns all best common ancestors of two sets of versions, newest first.
    func bestCommonAncestors(_ left: [UInt32], _ right: [UInt32]) -> [UInt32] {
        var common = CommonAncestors(left, right)
        return common.finish(in: self)
    }

    /// Returns whether `a` is an ancestor of one of several versions; nil if `steps` steps do not decide it.
    func isAncestor(_ a: UInt32, of versions: [UInt32], within steps: Int) -> Bool? {
        let floor = rows[Int(a)].generation
        var stack = versions.filter { rows[Int($0)].generation > floor }, left = steps
        while let ordinal = stack.popLast() {
            Work.versions.count()
            guard left > 0 else { return nil }
            left -= 1
            let row = rows[Int(ordinal)]
            for predecessor in [row.second, row.first] where predecessor != History.none {
                if predecessor == a { return true }
                if rows[Int(predecessor)].generation > floor { stack.append(predecessor) }
            }
        }
        return false
    }

    /// Returns all versions reachable from the given ones, including these, each after its predecessors. Among equals the smaller ordinal
    /// comes first.
    func topologicalOrder(from starts: [UInt32]? = nil) -> [UInt32] {
        var members: [UInt32] = []
        if let starts {
            var seen = Set(starts)
            var stack = Array(seen)
            while let ordinal = stack.popLast() {
                members.append(ordinal)
                for predecessor in predecessors(ordinal) where seen.insert(predecessor).inserted { stack.append(predecessor) }
            }
        } else {
            members = liveOrdinals
        }
        return inTopologicalOrder(members)
    }

    var liveOrdinals: [UInt32] {
        var live: [UInt32] = []
        live.reserveCapacity(liveCount)
        for i in rows.indices where rows[i].state == .live { live.append(UInt32(truncatingIfNeeded: i)) }
        return live
    }

    /// Sorts predecessors first: by generation, which is higher than that of each predecessor. Versions of one generation are in canonical
    /// order.
    func inTopologicalOrder(_ members: [UInt32]) -> [UInt32] {
        members.sorted { a, b in
            let x = rows[Int(a)].generation, y = rows[Int(b)].generation
            return x != y ? x < y : isNewer(b, a)
        }
    }
}

/// A binary heap of ordinals, highest generation first.
package struct GenerationQueue {
    private var heap: [(ordinal: UInt32, generation: UInt32)] = []
    package init() {}

    private func before(_ i: Int, _ j: Int) -> Bool {
        heap[i].generation != heap[j].generation ? heap[i].generation > heap[j].generation : heap[i].ordinal > heap[j].ordinal
    }

    package var isEmpty: Bool { heap.isEmpty }
    /// The element that `pop` would remove.
    var first: UInt32? { heap.first?.ordinal }

    package mutating func push(_ ordinal: UInt32, _ generation: UInt32) {
        heap.append((ordinal, generation))
        var i = heap.count - 1
        while i > 0, before(i, (i - 1) / 2) { heap.swapAt(i, (i - 1) / 2); i = (i - 1) / 2 }
    }

    package mutating func pop() -> UInt32? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            var i = 0
            while true {
                var next = 2 * i + 1
                if next >= heap.count { break }
                if next + 1 < heap.count, before(next + 1, next) { next += 1 }
                if !before(next, i) { break }
                heap.swapAt(i, next)
                i = next
            }
        }
        return first.ordinal
    }
}
