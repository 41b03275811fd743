/// The queue of a walk back through history: the highest generation first, among equal ones the newest.
///
/// So a version comes after all its descendants in the walk, however often it was pushed, with everything that was pushed about it.
struct WalkQueue {
    private struct Element {
        var ordinal: UInt32
        var generation: UInt32
        var isHidden: Bool
    }
    private var heap: ContiguousArray<Element> = []
    /// Elements that are not hidden.
    private var visible = 0

    /// Whether all versions that can still be reached are hidden.
    var isDone: Bool { visible == 0 }

    /// - Parameter isHidden: leaves out the version and its ancestors.
    mutating func push(_ ordinal: UInt32, isHidden: Bool, in history: History) {
        heap.append(Element(ordinal: ordinal, generation: history.rows[Int(ordinal)].generation, isHidden: isHidden))
        if !isHidden { visible += 1 }
        var i = heap.count - 1
        while i > 0, isBefore(i, (i - 1) / 2, history) {
            heap.swapAt(i, (i - 1) / 2)
            i = (i - 1) / 2
        }
    }

    /// Returns the next version, once, and whether it is hidden; pushes its predecessors.
    mutating func next(in history: History) -> (ordinal: UInt32, isHidden: Bool)? {
        guard var next = pop(history) else { return nil }
        Work.versions.count()
        while let again = heap.first, again.ordinal == next.ordinal {
            _ = pop(history)
            next.isHidden = next.isHidden || again.isHidden
        }
        let row = history.rows[Int(next.ordinal)]
        if row.first != History.none { push(row.first, isHidden: next.isHidden, in: history) }
        if row.second != History.none { push(row.second, isHidden: next.isHidden, in: history) }
        return (next.ordinal, next.isHidden)
    }

    private mutating func pop(_ history: History) -> Element? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !first.isHidden { visible -= 1 }
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var i = 0
        while true {
            var next = 2 * i + 1
            if next >= heap.count { break }
            if next + 1 < heap.count, isBefore(next + 1, next, history) { next += 1 }
            if !isBefore(next, i, history) { break }
            heap.swapAt(i, next)
            i = next
        }
        return first
    }

    private func isBefore(_ i: Int, _ j: Int, _ history: History) -> Bool {
        let x = heap[i], y = heap[j]
        if x.generation != y.generation { return x.generation > y.generation }
        return x.ordinal != y.ordinal && history.isNewer(x.ordinal, y.ordinal)
    }
}
