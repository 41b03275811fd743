/// Consecutive elements that all three sides have with equal bytes.
struct ListRun {
    /// The index of the first element on each side.
    var base: Int
    var newer: Int
    var older: Int
    var count: Int
}

/// Finds the elements that a list has in common on all sides without a lookup for each: most merged lists are long and little changed.
///
/// A run that is not found costs only time and memory: `ListAlignment` has the same result with and without runs.
struct ListRuns {
    /// The elements of one side.
    struct Elements {
        var tree: JSONTree
        var nodes: ElementNodes
    }

    /// Shorter runs are not worth it.
    private static let shortest = 8
    /// The longest distance over which the search compares all pairs.
    private static let nearby = 8
    /// The budget of pairs to compare: at first, and again for each element found in a run.
    private static let firstSteps = 4_096, stepsForEach = 8

    private let base: Elements
    private let work: DocumentControl

    static func find(_ base: Elements, _ newer: Elements, _ older: Elements, _ work: DocumentControl) throws -> [ListRun] {
        let runs = ListRuns(base: base, work: work)
        let left = try runs.common(newer), right = try runs.common(older)
        var found: [ListRun] = [], i = 0, j = 0
        while i < left.count, j < right.count {
            let start = max(left[i].base, right[j].base)
            let ends = (left[i].base + left[i].count, right[j].base + right[j].count)
            let count = min(ends.0, ends.1) - start
            if count >= shortest {
                let newer = left[i].side + start - left[i].base, older = right[j].side + start - right[j].base
                found.append(ListRun(base: start, newer: newer, older: older, count: count))
            }
            if ends.0 <= ends.1 { i += 1 } else { j += 1 }
        }
        return found
    }

    private typealias Stretch = (base: Int, side: Int, count: Int)

    /// Returns what the base and a side have in common, in the order of both.
    private func common(_ side: Elements) throws -> [Stretch] {
        var found: [Stretch] = [], end = (base: base.nodes.count, side: side.nodes.count)
        func isSame(_ i: Int, _ j: Int) -> Bool {
            let a = base.nodes[i], b = side.nodes[j]
            return base.tree.kind(a) == side.tree.kind(b) && Bytes.equal(base.tree.text(a), side.tree.text(b))
        }
        while end.base > 0, end.side > 0 {
            let count = same(before: end.base, end.side, side)
            if count == 0, !isSame(end.base - 1, end.side - 1) { break }
            end.base -= max(1, count)
            end.side -= max(1, count)
        }
        try work.done(base.nodes.count - end.base)
        let last: Stretch = (end.base, end.side, base.nodes.count - end.base)
        // If there is little in common, the search soon ends: each element found adds to the budget.
        var i = 0, j = 0, steps = Self.firstSteps + (end.base + end.side) / 2
        while i < end.base, j < end.side {
            let start = i
            while i < end.base, j < end.side {
                let count = min(same(from: i, j, side), end.base - i, end.side - j)
                if count == 0, !isSame(i, j) { break }
                i += max(1, count)
                j += max(1, count)
            }
            try work.done(2 * (i - start) + 1)
            if i - start >= Self.shortest {
                found.append((start, j - (i - start), i - start))
                steps += Self.stepsForEach * (i - start)
            } else {
                steps -= i - start + 1
            }
            guard i < end.base, j < end.side, steps > 0 else { break }
            (i, j) = try next(i, j, end, &steps, isSame)
        }
        if last.count > 0 { found.append(last) }
        return found
    }

    /// Returns how many elements from these on are equal, as far as the bytes of both texts are equal.
    private func same(from i: Int, _ j: Int, _ side: Elements) -> Int {
        let (p, q) = (base.tree, side.tree), start = p.start(base.nodes[i]), other = q.start(side.nodes[j])
        guard p.code(base.nodes[i]) == q.code(side.nodes[j]), !p.isEscaped(base.nodes[i]) else { return 0 }
        let end = start + Bytes.common(p.bytes, start, q.bytes, other)
        var count = 0
        while i + count < base.nodes.count, j + count < side.nodes.count {
            let a = base.nodes[i + count], b = side.nodes[j + count]
            guard p.code(a) == q.code(b) else { break }
            if p.isEscaped(a) {
                // Compare the decoded text.
                guard Bytes.equal(p.text(a), q.text(b)) else { break }
                count += 1
                continue
            }
            // The byte that ends a scalar must be equal, too.
            guard p.start(a) - start == q.start(b) - other, p.start(a) + p.length(a) < end,
                p.length(a) == q.length(b)
            else { break }
            count += 1
        }
        return count
    }

    /// Returns how many elements before the two are equal on both sides.
    private func same(before i: Int, _ j: Int, _ side: Elements) -> Int {
        let (p, q) = (base.tree, side.tree), a = base.nodes[i - 1], b = side.nodes[j - 1]
        let end = p.start(a) + p.length(a), other = q.start(b) + q.length(b)
        guard p.code(a) == q.code(b), !p.isEscaped(a) else { return 0 }
        let start = end - Bytes.common(p.bytes, before: end, q.bytes, before: other)
        var count = 0
        while count < i, count < j {
            let a = base.nodes[i - 1 - count], b = side.nodes[j - 1 - count]
            guard p.code(a) == q.code(b) else { break }
            if p.isEscaped(a) {
                guard Bytes.equal(p.text(a), q.text(b)) else { break }
                count += 1
                continue
            }
            guard end - p.start(a) == other - q.start(b), p.start(a) > start,
                p.length(a) == q.length(b)
            else { break }
            count += 1
        }
        return count
    }

    /// Returns where both continue with equal elements after a difference.
    private func next(
        _ i: Int, _ j: Int, _ end: (base: Int, side: Int), _ steps: inout Int, _ isSame: (Int, Int) -> Bool
    ) throws -> (Int, Int) {
        for far in 1...Self.nearby {
            for near in 0...far {
                steps -= 2
                if i + far < end.base, j + near < end.side, isSame(i + far, j + near) { return (i + far, j + near) }
                if i + near < end.base, j + far < end.side, isSame(i + near, j + far) { return (i + near, j + far) }
            }
        }
        // Many elements were inserted or removed.
        var far = Self.nearby + 1
        while steps > 0, i + far < end.base || j + far < end.side {
            if i + far < end.base, isSame(i + far, j) { return (i + far, j) }
            if j + far < end.side, isSame(i, j + far) { return (i, j + far) }
            far += 1
            steps -= 2
        }
        try work.done(2 * far)
        return (i + 1, j + 1)
    }
}
