/// Reads a map in byte order.
extension MapNode {
    /// Calls `body` with each key and entry in byte order until it returns false. Returns whether it reached the end. Keys are valid during
    /// the call.
    @discardableResult
    package func forEach(_ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        return walk(from: none, to: nil, isWithin: true, isBackwards: false, body)
    }

    /// Calls `body` with each key and entry within a range, from `low` inclusive to `high` exclusive (nil is unbounded). O(key length + log
    /// n + keys visited).
    @discardableResult
    package func forEach(
        from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool
    )
        -> Bool
    {
        walk(from: low, to: high, isWithin: false, isBackwards: false, body)
    }

    /// The same as `forEach(from:to:)`, backwards: from the last key below `high` to the first not below `low`.
    @discardableResult
    package func forEachBackwards(
        from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool
    ) -> Bool {
        walk(from: low, to: high, isWithin: false, isBackwards: true, body)
    }

    /// - Parameter isWithin: whether the whole node is within the range.
    private func walk(
        from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, isWithin: Bool, isBackwards: Bool,
        _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool
    ) -> Bool {
        MapWork.read()
        guard isInner else { return walkHere(from: low, to: high, isWithin: isWithin, isBackwards: isBackwards, body) }
        // The stack, here and below, is explicit, since maps may be 512 nodes deep. It holds the ancestors, which retain their children,
        // and the index of the next child. A range within few nodes allocates nothing, since such walks are frequent.
        return ShortStack<Step>.run { above in
            walk(
                Step(node: .passUnretained(self), next: 0, isWithin: isWithin), &above, from: low, to: high, isBackwards: isBackwards, body)
        }
    }

    /// The position of a walk.
    private struct Step: BitwiseCopyable {
        let node: Unmanaged<MapNode>
        var next: Int
        let isWithin: Bool
    }

    private func walk(
        _ first: Step, _ above: inout ShortStack<Step>, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?,
        isBackwards: Bool,
        _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool
    ) -> Bool {
        var at = first
        walk: while true {
            let node = at.node.takeUnretainedValue(), count = node.children.count
            while at.next < count {
                let i = isBackwards ? count - 1 - at.next : at.next
                at.next += 1
                switch at.isWithin ? .within : MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: low, to: high) {
                case .before: if isBackwards { return false }
                case .behind: if !isBackwards { return false }
                case let position:
                    let child = node.children[i]
                    MapWork.read()
                    guard child.isInner else {
                        guard child.walkHere(from: low, to: high, isWithin: position == .within, isBackwards: isBackwards, body) else {
                            return false
                        }
                        continue
                    }
                    if at.next < count { above.push(at) }
                    at = Step(node: .passUnretained(child), next: 0, isWithin: position == .within)
                    continue walk
                }
            }
            guard let last = above.pop() else { return true }
            at = last
        }
    }

    /// Whether its children are nodes in memory.
    private var isInner: Bool { leaf == nil && flat == nil }

    /// Walks a leaf, or a node in a persisted map.
    private func walkHere(
        from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, isWithin: Bool, isBackwards: Bool,
        _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool
    ) -> Bool {
        if let flat {
            if isWithin, !isBackwards { return flat.forEach(beneath: offset) { body($1, flat.slots[$0]) } }
            let low = isWithin ? UnsafeRawBufferPointer(start: nil, count: 0) : low, high = isWithin ? nil : high
            return isBackwards
                ? flat.forEachBackwards(beneath: offset, from: low, to: high) { body($1, flat.slots[$0]) }
                : flat.forEach(beneath: offset, from: low, to: high) { body($1, flat.slots[$0]) }
        }
        let first = isWithin ? 0 : search(low).index, end = isWithin ? count : high.map { search($0).index } ?? count
        for step in 0..<max(0, end - first) {
            let i = isBackwards ? end - 1 - step : first + step
            if !body(key(i), entry(i)) { return false }
        }
        return isBackwards ? first == 0 : end == count
    }

    /// Returns the number of keys in the range. O(key length + log n).
    package func count(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
        var stack = [self], total = 0
        while let node = stack.popLast() {
            MapWork.read()
            if let flat = node.flat {
                total += flat.count(beneath: node.offset, from: low, to: high)
            } else if node.leaf != nil {
                let first = node.search(low).index
                let last = high.map { node.search($0).index } ?? node.count
                total += max(0, last - first)
            } else {
                children: for i in node.children.indices {
                    switch MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: low, to: high) {
                    case .before: continue
                    case .behind: break children
                    case .within: total += node.children[i].count
                    case .across: stack.append(node.children[i])
                    }
                }
            }
        }
        return total
    }

    enum Position { case before, within, across, behind }

    /// Returns where the keys of a child lie relative to the range. They begin with the node's prefix and the child's symbol.
    static func position(
        ofChildAt symbol: UInt16, of prefix: UnsafeRawBufferPointer, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?
    ) -> Position {
        let atLow = order(ofChildAt: symbol, of: prefix, to: low)
        if atLow < 0 { return .before }
        if let high {
            let atHigh = order(ofChildAt: symbol, of: prefix, to: high)
            if atHigh > 0 { return .behind }
            if atHigh == 0 { return .across }
        }
        return atLow > 0 ? .within : .across
    }

    /// -1: all keys of the child are below `bound`; 1: all are at or above; 0: it may be among them.
    private static func order(ofChildAt symbol: UInt16, of prefix: UnsafeRawBufferPointer, to bound: UnsafeRawBufferPointer) -> Int {
        let shared = commonPrefix(prefix, bound)
        if shared < prefix.count {
            if shared == bound.count { return 1 }
            return prefix[shared] < bound[shared] ? -1 : 1
        }
        let other = MapNode.symbol(of: bound, at: prefix.count)
        if symbol < other { return -1 }
        if symbol > other { return 1 }
        return symbol == 0 ? 1 : 0
    }
}
