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
        MapWork.read()
        if let flat { return flat.forEach(beneath: offset) { body($1, flat.slots[$0]) } }
        if leaf != nil {
            for i in 0..<count where !body(key(i), entry(i)) { return false }
            return true
        }
        for child in children where !child.forEach(body) { return false }
        return true
    }

    /// As `forEach`, from the first key that is not below `low` to the last below `high`.
    /// O(key length + log n + keys visited).
    @discardableResult
    func forEach(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        MapWork.read()
        if let flat { return flat.forEach(beneath: offset, from: low, to: high) { body($1, flat.slots[$0]) } }
        if leaf != nil {
            var i = search(low).index
            while i < count {
                let key = key(i)
                if let high, Bytes.compare(key, high) >= 0 { return false }
                if !body(key, entry(i)) { return false }
                i += 1
            }
            return true
        }
        for i in children.indices {
            switch MapNode.position(ofChildAt: symbols[i], of: prefix, from: low, to: high) {
            case .before: continue
            case .behind: return false
            case .within: if !children[i].forEach(body) { return false }
            case .across: if !children[i].forEach(from: low, to: high, body) { return false }
            }
        }
        return true
    }

    /// As `forEach(from:to:)`, from the last key that is below `high` back to the first that is not below `low`.
    @discardableResult
    func forEachBackwards(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, _ body: (UnsafeRawBufferPointer, MapEntry) -> Bool) -> Bool {
        MapWork.read()
        if let flat { return flat.forEachBackwards(beneath: offset, from: low, to: high) { body($1, flat.slots[$0]) } }
        if leaf != nil {
            let first = search(low).index
            var i = high.map { search($0).index } ?? count
            while i > first {
                i -= 1
                if !body(key(i), entry(i)) { return false }
            }
            return first == 0
        }
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        for i in children.indices.reversed() {
            switch MapNode.position(ofChildAt: symbols[i], of: prefix, from: low, to: high) {
            case .behind: continue
            case .before: return false
            case .within: if !children[i].forEachBackwards(from: none, to: nil, body) { return false }
            case .across: if !children[i].forEachBackwards(from: low, to: high, body) { return false }
            }
        }
        return true
    }

    /// How many keys are in the range. O(key length + log n).
    func count(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
        MapWork.read()
        if let flat { return flat.count(beneath: offset, from: low, to: high) }
        if leaf != nil {
            let first = search(low).index
            let last = high.map { search($0).index } ?? count
            return max(0, last - first)
        }
        var total = 0
        for i in children.indices {
            switch MapNode.position(ofChildAt: symbols[i], of: prefix, from: low, to: high) {
            case .before: continue
            case .behind: return total
            case .within: total += children[i].count
            case .across: total += children[i].count(from: low, to: high)
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
