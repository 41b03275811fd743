/// A walk over the DAG in steps, so that between two steps other threads can take the store's lock, or stop the walk. Its findings stay
/// valid between steps: rows are only added, and those of stored versions do not change.
package protocol HistoryPass {
    associatedtype Outcome
    /// Visits about `steps` more versions. Returns the outcome, or nil if not finished.
    mutating func go(_ steps: Int, in dag: History) -> Outcome?
}

extension HistoryPass {
    /// Runs it to its end at once.
    mutating func finish(in dag: History) -> Outcome {
        while true { if let outcome = go(.max, in: dag) { return outcome } }
    }
}

/// Finds whether a version is an ancestor of another: reachable by going back at least one step.
package struct AncestorSearch: HistoryPass {
    let ancestor: UInt32
    private let descendant: UInt32
    /// The position of the walk while each version has one predecessor; nil after its end, or after a merge.
    private var line: UInt32?
    private var seen: Set<UInt32> = [], stack: [UInt32] = []

    package init(_ ancestor: UInt32, of descendant: UInt32) { self.ancestor = ancestor; self.descendant = descendant; line = descendant }

    package mutating func go(_ steps: Int, in dag: History) -> Bool? {
        if ancestor == descendant { return false }
        let floor = dag.rows[Int(ancestor)].generation
        var left = steps
        // While versions have one predecessor, no set of visited ones is needed.
        while var at = line {
            if left <= 0 { return nil }
            left -= 1
            Work.versions.count()
            guard dag.rows[Int(at)].second == History.none else {
                line = nil
                stack = [at]
                break
            }
            at = dag.rows[Int(at)].first
            if at == ancestor { return true }
            if at == History.none || dag.rows[Int(at)].generation <= floor { return false }
            line = at
        }
        while let ordinal = stack.popLast() {
            if left <= 0 { stack.append(ordinal); return nil }
            left -= 1
            Work.versions.count()
            let row = dag.rows[Int(ordinal)]
            for predecessor in [row.second, row.first] where predecessor != History.none {
                if predecessor == ancestor { return true }
                if dag.rows[Int(predecessor)].generation > floor, seen.insert(predecessor).inserted { stack.append(predecessor) }
            }
        }
        return false
    }
}

/// The sides that reach a version, as far as the walk by generation has found.
private struct Side: OptionSet {
    let rawValue: UInt8
    static let left = Side(rawValue: 1), right = Side(rawValue: 2), stale = Side(rawValue: 4)
    static let both: Side = [.left, .right]
}

/// Finds all best common ancestors of two sets of versions: common ancestors (or members of both) that are not ancestors of another common
/// ancestor. Newest first in canonical order.
///
/// Source: git's paint-down-to-common (commit-reach.c), walked by generation: when a version is dequeued, all its descendants in the walk
/// have been, so the first common ones met are the best.
package struct CommonAncestors: HistoryPass {
    private var left: [UInt32], right: [UInt32]
    private var isOnLines: Bool
    private var marks: [UInt32: Side] = [:]
    private var queue = GenerationQueue()
    /// Numbers of queue entries that are not stale: reached from the left alone, from the right alone, and from both.
    private var open = (left: 0, right: 0, both: 0)
    private var found: [UInt32] = []

    package init(_ left: [UInt32], _ right: [UInt32]) {
        self.left = left; self.right = right
        isOnLines = left.count == 1 && right.count == 1
    }

    package mutating func go(_ steps: Int, in dag: History) -> [UInt32]? {
        var budget = steps
        if isOnLines {
            // While versions have one predecessor, the version with the higher generation steps back until the two meet. So no step skips
            // the other version, or an ancestor of it.
            while left[0] != right[0] {
                if budget <= 0 { return nil }
                budget -= 1
                Work.versions.count()
                let leftIsHigher = dag.rows[Int(left[0])].generation >= dag.rows[Int(right[0])].generation
                let row = dag.rows[Int(leftIsHigher ? left[0] : right[0])]
                guard row.first != History.none, row.second == History.none else { isOnLines = false; break }
                if leftIsHigher { left[0] = row.first } else { right[0] = row.first }
            }
            if isOnLines { return left }
        }
        if marks.isEmpty {
            for ordinal in left { paint(ordinal, .left, dag) }
            for ordinal in right { paint(ordinal, .right, dag) }
        }
        // If all remaining entries of one side are ancestors of those found, the sides cannot meet in a better one.
        while open.both > 0 || open.left > 0 && open.right > 0, let ordinal = queue.first {
            if budget <= 0 { return nil }
            budget -= 1
            _ = queue.pop()
            Work.versions.count()
            var side = marks[ordinal] ?? []
            count(side, -1)
            if side.isSuperset(of: .both), !side.contains(.stale) { found.append(ordinal); side.insert(.stale) }
            let row = dag.rows[Int(ordinal)]
            for predecessor in [row.first, row.second] where predecessor != History.none { paint(predecessor, side, dag) }
        }
        return found.sorted(by: dag.isNewer)
    }

    private mutating func paint(_ ordinal: UInt32, _ side: Side, _ dag: History) {
        let old = marks[ordinal]
        let new = (old ?? []).union(side)
        if let old, old == new { return }
        marks[ordinal] = new
        if old == nil { queue.push(ordinal, dag.rows[Int(ordinal)].generation) }
        if let old { count(old, -1) }
        count(new, 1)
    }

    private mutating func count(_ side: Side, _ more: Int) {
        if side.contains(.stale) { return }
        if side == .both {
            open.both += more
        } else if side == .left {
            open.left += more
        } else if side == .right {
            open.right += more
        }
    }
}

/// A walk by generation back from two versions. It ends when nothing in the queue is reached from one of them alone. Neither version may be
/// an ancestor of the other. The cost is bounded by the versions between the two and their bases, whatever their shape.
private struct SidesWalk {
    private let a: UInt32, b: UInt32
    private var marks: [UInt32: Side] = [:]
    private var queue = GenerationQueue()
    /// The number of queue entries that one side alone reaches, as far as known.
    private var open = 0
    private(set) var visited = 0

    init(_ a: UInt32, _ b: UInt32) { self.a = a; self.b = b }

    /// Visits about `steps` more versions.
    /// - Parameter visit: called for each version that one side alone reaches; false ends the walk.
    /// - Returns: whether all were visited; false if `visit` ended the walk; nil if not finished.
    mutating func go(_ steps: Int, in dag: History, _ visit: (UInt32, History.Row, Side) -> Bool) -> Bool? {
        if marks.isEmpty {
            paint(a, .left, dag)
            paint(b, .right, dag)
        }
        var budget = steps
        while open > 0, let ordinal = queue.first {
            if budget <= 0 { return nil }
            budget -= 1
            _ = queue.pop()
            visited += 1
            Work.versions.count()
            let side = marks[ordinal] ?? .both
            let row = dag.rows[Int(ordinal)]
            if side != .both {
                open -= 1
                guard visit(ordinal, row, side) else { return false }
            }
            for predecessor in [row.first, row.second] where predecessor != History.none { paint(predecessor, side, dag) }
        }
        return true
    }

    private mutating func paint(_ ordinal: UInt32, _ side: Side, _ dag: History) {
        let old = marks[ordinal]
        let new = (old ?? []).union(side)
        if let old, old == new { return }
        marks[ordinal] = new
        if old == nil { queue.push(ordinal, dag.rows[Int(ordinal)].generation) }
        if old == nil, new != .both { open += 1 }
        if old != nil, new == .both { open -= 1 }
    }
}

/// Finds whether every version reachable from exactly one of the two is a merge. Neither may be an ancestor of the other. (For the steps
/// of a fold use `SettledSteps`.)
package struct MergesOnly: HistoryPass {
    private let a: UInt32, b: UInt32
    private var walk: SidesWalk

    package init(_ a: UInt32, _ b: UInt32) { self.a = a; self.b = b; walk = SidesWalk(a, b) }

    package mutating func go(_ steps: Int, in dag: History) -> Bool? {
        // Usually one of the two versions is no merge, and no walk is needed.
        if dag.rows[Int(a)].second == History.none || dag.rows[Int(b)].second == History.none { return false }
        return walk.go(steps, in: dag) { _, row, _ in row.second != History.none }
    }
}

/// Finds the undos and redos reachable from exactly one of two versions, and whether merges are. Neither may be an ancestor of the other.
package struct UndosApart: HistoryPass {
    /// The undos and redos of each side, and whether it alone has merges.
    package struct Found {
        package var left: [UInt32] = [], right: [UInt32] = []
        /// All versions of the second side alone, if they are collected.
        package var all: [UInt32] = []
        package var mergesLeft = false, mergesRight = false
        /// The number of versions that were visited.
        package var visited = 0
    }

    private var walk: SidesWalk
    private var found = Found()
    private let collects: Bool

    package init(_ a: UInt32, _ b: UInt32, collecting collects: Bool = false) { walk = SidesWalk(a, b); self.collects = collects }

    package mutating func go(_ steps: Int, in dag: History) -> Found? {
        var found = found
        self.found = Found()
        let isOver = walk.go(steps, in: dag) { ordinal, row, side in
            let isMerge = row.second != History.none, undoes = row.traits.contains(.undoes)
            if side == .left {
                if undoes { found.left.append(ordinal) }
                found.mergesLeft = found.mergesLeft || isMerge
            } else {
                if undoes { found.right.append(ordinal) }
                if collects { found.all.append(ordinal) }
                found.mergesRight = found.mergesRight || isMerge
            }
            return true
        }
        found.visited = walk.visited
        self.found = found
        return isOver == nil ? nil : found
    }
}
