/// Walks over the DAG. All use explicit stacks and touch only what lies between the versions asked about;
/// generations order the walks, never timestamps.
extension History {
    /// Whether `a` is reachable from `b` by going back at least one step.
    func isAncestor(_ a: UInt32, of b: UInt32) -> Bool {
        if a == b { return false }
        let floor = rows[Int(a)].generation
        // A line of one predecessor each, which is walked without remembering it.
        var b = b
        while rows[Int(b)].second == History.none {
            b = rows[Int(b)].first
            if b == a { return true }
            if b == History.none || rows[Int(b)].generation <= floor { return false }
        }
        var seen: Set<UInt32> = []
        var stack = [b]
        while let ordinal = stack.popLast() {
            let row = rows[Int(ordinal)]
            for predecessor in [row.second, row.first] where predecessor != History.none {
                if predecessor == a { return true }
                if rows[Int(predecessor)].generation > floor, seen.insert(predecessor).inserted { stack.append(predecessor) }
            }
        }
        return false
    }

    private struct Side: OptionSet {
        let rawValue: UInt8
        static let left = Side(rawValue: 1), right = Side(rawValue: 2), stale = Side(rawValue: 4)
    }

    /// All best common ancestors of two sets of versions: common ancestors (or members of both) that are not
    /// ancestors of another common ancestor. Newest first in canonical order.
    ///
    /// Source: git's paint-down-to-common (commit-reach.c), walked by generation: when a version is taken all
    /// its descendants in the walk have been, so the first common ones met are the best.
    func bestCommonAncestors(_ left: [UInt32], _ right: [UInt32]) -> [UInt32] {
        guard left.count == 1, right.count == 1 else { return bestCommonAncestorsInGeneral(left, right) }
        // Lines of one predecessor each, back to where they meet or part: the higher goes back, so none is passed that is
        // an ancestor of the other, or the other itself.
        var x = left[0], y = right[0]
        while x != y {
            let xIsHigher = rows[Int(x)].generation >= rows[Int(y)].generation, row = rows[Int(xIsHigher ? x : y)]
            guard row.first != History.none, row.second == History.none else { return bestCommonAncestorsInGeneral([x], [y]) }
            if xIsHigher { x = row.first } else { y = row.first }
        }
        return [x]
    }

    private func bestCommonAncestorsInGeneral(_ left: [UInt32], _ right: [UInt32]) -> [UInt32] {
        var marks: [UInt32: Side] = [:]
        var queue = GenerationQueue()
        var open = 0  // entries of the queue that are not stale
        func paint(_ ordinal: UInt32, _ side: Side) {
            let old = marks[ordinal]
            let new = (old ?? []).union(side)
            if let old, old == new { return }
            marks[ordinal] = new
            if old == nil {
                queue.push(ordinal, rows[Int(ordinal)].generation)
                if !new.contains(.stale) { open += 1 }
            } else if new.contains(.stale), let old, !old.contains(.stale) {
                open -= 1
            }
        }
        for ordinal in left { paint(ordinal, .left) }
        for ordinal in right { paint(ordinal, .right) }
        var found: [UInt32] = []
        while open > 0, let ordinal = queue.pop() {
            var side = marks[ordinal] ?? []
            if !side.contains(.stale) {
                open -= 1
                if side.contains([.left, .right]) { found.append(ordinal); side.insert(.stale) }
            }
            let row = rows[Int(ordinal)]
            for predecessor in [row.first, row.second] where predecessor != History.none { paint(predecessor, side) }
        }
        return found.sorted(by: isNewer)
    }

    /// Whether every version that can be reached from exactly one of the two, of which none is an ancestor of the
    /// other, is a merge. Walked by generation as above, so that it costs by what lies between the two and their
    /// bases, whatever their shape.
    func holdMergesOnly(_ a: UInt32, _ b: UInt32) -> Bool {
        if rows[Int(a)].second == History.none || rows[Int(b)].second == History.none { return false }
        let both: Side = [.left, .right]
        var marks: [UInt32: Side] = [:]
        var queue = GenerationQueue()
        var open = 0  // entries of the queue that one side alone reaches, as far as is known
        func paint(_ ordinal: UInt32, _ side: Side) {
            let old = marks[ordinal]
            let new = (old ?? []).union(side)
            if let old, old == new { return }
            marks[ordinal] = new
            if old == nil { queue.push(ordinal, rows[Int(ordinal)].generation) }
            if old == nil, new != both { open += 1 }
            if old != nil, new == both { open -= 1 }
        }
        paint(a, .left)
        paint(b, .right)
        while open > 0, let ordinal = queue.pop() {
            let side = marks[ordinal] ?? both
            let row = rows[Int(ordinal)]
            if side != both {
                open -= 1
                guard row.second != History.none else { return false }
            }
            for predecessor in [row.first, row.second] where predecessor != History.none { paint(predecessor, side) }
        }
        return true
    }

    /// All versions that can be reached from the given ones, these included: every version after all its
    /// predecessors (predecessors first). Among equals the smaller ordinal first.
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
            members.reserveCapacity(liveCount)
            for i in rows.indices where rows[i].state == .live { members.append(UInt32(truncatingIfNeeded: i)) }
        }
        return inTopologicalOrder(members)
    }

    /// Predecessors first. A version's generation is above those of all its predecessors; among equal ones, canonical order.
    func inTopologicalOrder(_ members: [UInt32]) -> [UInt32] {
        members.sorted { a, b in
            let x = rows[Int(a)].generation, y = rows[Int(b)].generation
            return x != y ? x < y : isNewer(b, a)
        }
    }
}

/// A binary heap of ordinals, highest generation first.
struct GenerationQueue {
    private var heap: [(ordinal: UInt32, generation: UInt32)] = []

    private func before(_ i: Int, _ j: Int) -> Bool {
        heap[i].generation != heap[j].generation ? heap[i].generation > heap[j].generation : heap[i].ordinal > heap[j].ordinal
    }

    var isEmpty: Bool { heap.isEmpty }

    mutating func push(_ ordinal: UInt32, _ generation: UInt32) {
        heap.append((ordinal, generation))
        var i = heap.count - 1
        while i > 0, before(i, (i - 1) / 2) { heap.swapAt(i, (i - 1) / 2); i = (i - 1) / 2 }
    }

    mutating func pop() -> UInt32? {
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
