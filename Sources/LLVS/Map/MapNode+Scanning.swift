/// Which ids an enumeration covers, in byte order.
public enum IDRange: Sendable, Hashable {
    case all
    case prefix([UInt8])
    /// From inclusive, to exclusive; nil is open.
    case range(from: [UInt8]?, to: [UInt8]?)

    /// The range as bounds in byte order: `low` inclusive, `high` exclusive, nil open.
    var bounds: (low: [UInt8], high: [UInt8]?) {
        switch self {
        case .all: return ([], nil)
        case .range(let from, let to): return (from ?? [], to)
        case .prefix(let prefix):
            var high = prefix
            while let last = high.last {
                if last < 0xFF { high[high.count - 1] = last + 1; return (prefix, high) }
                high.removeLast()
            }
            return (prefix, nil)
        }
    }
}

/// Reading a map in byte order.
extension MapNode {
    /// Calls with each key and entry in byte order until `body` answers false. Returns whether it went through.
    /// Keys are good during the call.
    @discardableResult
    func forEach(_ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        // Explicit stacks, here and below: maps may be 512 nodes deep.
        var stack = [self]
        while let node = stack.popLast() {
            MapWork.read()
            if let flat = node.flat {
                guard flat.forEach(beneath: node.offset, { body($1, flat.slots[$0]) }) else { return false }
            } else if node.leaf != nil {
                for i in 0..<node.count where !body(node.key(i), node.entry(i)) { return false }
            } else {
                stack.append(contentsOf: node.children.reversed())
            }
        }
        return true
    }

    /// As `forEach`, from the first key that is not below `low` to the last below `high`.
    /// O(key length + log n + keys visited).
    @discardableResult
    func forEach(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        var stack = [PartOfRange.across(self)]
        while let part = stack.popLast() {
            switch part {
            case .end: return false
            case .whole(let node): if !node.forEach(body) { return false }
            case .across(let node):
                MapWork.read()
                if let flat = node.flat {
                    guard flat.forEach(beneath: node.offset, from: low, to: high, { body($1, flat.slots[$0]) }) else { return false }
                } else if node.leaf != nil {
                    var i = node.search(low).index
                    while i < node.count {
                        let key = node.key(i)
                        if let high, Bytes.compare(key, high) >= 0 { return false }
                        if !body(key, node.entry(i)) { return false }
                        i += 1
                    }
                } else {
                    let start = stack.count
                    children: for i in node.children.indices {
                        switch MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: low, to: high) {
                        case .before: continue
                        case .behind: stack.append(.end); break children
                        case .within: stack.append(.whole(node.children[i]))
                        case .across: stack.append(.across(node.children[i]))
                        }
                    }
                    stack[start...].reverse()
                }
            }
        }
        return true
    }

    /// As `forEach(from:to:)`, from the last key that is below `high` back to the first that is not below `low`.
    @discardableResult
    func forEachBackwards(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var stack = [PartOfRange.across(self)]
        while let part = stack.popLast() {
            let node: MapNode, from: UnsafeRawBufferPointer, to: UnsafeRawBufferPointer?
            switch part {
            case .end: return false
            case .whole(let whole): (node, from, to) = (whole, none, nil)
            case .across(let across): (node, from, to) = (across, low, high)
            }
            MapWork.read()
            if let flat = node.flat {
                guard flat.forEachBackwards(beneath: node.offset, from: from, to: to, { body($1, flat.slots[$0]) }) else { return false }
            } else if node.leaf != nil {
                let first = node.search(from).index
                var i = to.map { node.search($0).index } ?? node.count
                while i > first {
                    i -= 1
                    if !body(node.key(i), node.entry(i)) { return false }
                }
                if first > 0 { return false }
            } else {
                let start = stack.count
                children: for i in node.children.indices.reversed() {
                    switch MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: from, to: to) {
                    case .behind: continue
                    case .before: stack.append(.end); break children
                    case .within: stack.append(.whole(node.children[i]))
                    case .across: stack.append(.across(node.children[i]))
                    }
                }
                stack[start...].reverse()
            }
        }
        return true
    }

    /// What is still to be looked at of a range, the next one last.
    private enum PartOfRange {
        case whole(MapNode)
        /// A bound goes through it, perhaps.
        case across(MapNode)
        /// The range ends here.
        case end
    }

    /// How many keys are in the range. O(key length + log n).
    func count(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
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

    /// Where the keys that begin with a node's prefix and the symbol of a child lie to the range.
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

    /// -1: all keys of the child are below `bound`; 1: all are at or above; 0: it may go through them.
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
