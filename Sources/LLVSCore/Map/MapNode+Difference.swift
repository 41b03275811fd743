/// The keys that a comparison covers, in byte order: `low` inclusive, `high` exclusive, nil unbounded. Borrowed.
package struct KeyBounds {
    var low = UnsafeRawBufferPointer(start: nil, count: 0)
    var high: UnsafeRawBufferPointer?
    static var all: KeyBounds { KeyBounds() }

    var areOpen: Bool { low.isEmpty && high == nil }
    func hold(_ key: UnsafeRawBufferPointer) -> Bool { Bytes.compare(key, low) >= 0 && (high.map { Bytes.compare(key, $0) < 0 } ?? true) }

    /// Returns the node, or nil if all its keys are outside.
    func part(of node: MapNode?) -> MapNode? {
        guard let node, !areOpen, let (first, last) = node.reach else { return node }
        return KeyBounds.isBelow(last, low) || (high.map { Bytes.compare(first, $0) >= 0 } ?? false) ? nil : node
    }

    /// Returns whether all keys of the node are inside. May return false if that takes long to decide.
    func contain(_ node: MapNode) -> Bool {
        if areOpen { return true }
        guard let (first, last) = node.reach else { return false }
        return Bytes.compare(first, low) >= 0 && (high.map { KeyBounds.isBelow(last, $0) } ?? true)
    }

    /// Returns whether all keys with this beginning are below the bound.
    private static func isBelow(_ start: UnsafeRawBufferPointer, _ bound: UnsafeRawBufferPointer) -> Bool {
        Bytes.compare(start, bound) < 0 && !bound.starts(with: start)
    }
}

/// Comparing two maps.
extension MapNode {
    /// Bounds of the keys of the subtree: none is below the first, and none is above all keys that begin with the second. Nil if they are
    /// not in memory.
    fileprivate var reach: (UnsafeRawBufferPointer, UnsafeRawBufferPointer)? {
        if let flat {
            let prefix = flat.node(offset).prefix
            return (prefix, prefix)
        }
        if leaf == nil { return (prefix, prefix) }
        return count > 0 ? (key(0), key(count - 1)) : nil
    }

    /// Calls `body` for each key within the bounds whose reference differs, with both entries, in byte order, until it throws. If one map
    /// was made from the other, or both from a third, shared nodes are skipped, and the cost is O(differences × (key length + log n)). If
    /// they were made separately it is O(entries changed since).
    package static func forEachDifference(
        _ a: MapNode?, _ b: MapNode?, within bounds: KeyBounds = .all, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void
    ) rethrows {
        if bounds.areOpen { return try differences(a, b, bounds, body) }
        try differences(a, b, bounds) { if bounds.hold($0) { try body($0, $1, $2) } }
    }

    /// Works as `forEachDifference`, but may also pass keys outside of the bounds that share a leaf with keys inside.
    private static func differences(
        _ a: MapNode?, _ b: MapNode?, _ bounds: KeyBounds, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void
    ) rethrows {
        // The pairs still to be compared, the next one last. The stack is explicit, since maps may be 512 nodes deep.
        var stack = [(a, b)]
        while let pair = stack.popLast() {
            switch (bounds.part(of: pair.0), bounds.part(of: pair.1)) {
            case (nil, nil): continue
            case (let a?, nil): try a.forEachThrowing(bounds) { try body($0, $1, nil) }
            case (nil, let b?): try b.forEachThrowing(bounds) { try body($0, nil, $1) }
            case (let a?, let b?):
                MapWork.read()
                if a === b { continue }
                if bounds.contain(a) {
                    if isSame(a, b) { continue }
                    if let x = a.flat, let y = b.flat, a.offset == b.offset, x.hasNodes(of: y) {
                        try differencesOfSlots(a, x, y, body)
                        continue
                    }
                }
                let x = a.opened, y = b.opened
                if x.leaf == nil, y.leaf == nil {
                    let start = stack.count
                    withExtendedLifetime((x, y)) { appendParts(x, y, to: &stack) }
                    stack[start...].reverse()
                } else {
                    try withExtendedLifetime((x, y)) { try differencesByKey(x, y, bounds, body) }
                }
            }
        }
    }

    /// Returns whether two maps have the same contents. Costs as `forEachDifference` up to the first difference.
    static func haveSameContents(_ a: MapNode?, _ b: MapNode?) -> Bool {
        struct Found: Error {}
        guard (a?.count ?? 0) == (b?.count ?? 0) else { return false }
        do { try forEachDifference(a, b) { _, _, _ in throw Found() } } catch { return false }
        return true
    }

    /// Compares the slots of two maps with the same nodes of a persisted map.
    private static func differencesOfSlots(
        _ node: MapNode, _ x: FlatMap, _ y: FlatMap, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void
    ) rethrows {
        _ = try x.forEach(
            beneath: node.offset,
            where: { first, count in
                memcmp(x.slots + first, y.slots + first, count * MemoryLayout<MapEntry>.stride) != 0
            }
        ) { number, key in
            let (p, q) = (x.slots[number], y.slots[number])
            if !p.isSameReference(as: q) { try body(key, p, q) }
            return true
        }
    }

    private func forEachThrowing(_ bounds: KeyBounds, _ body: (UnsafeRawBufferPointer, MapEntry) throws -> Void) rethrows {
        var stack: [MapNode] = [], next: MapNode? = self
        while let node = next {
            MapWork.read()
            if let flat = node.flat {
                if bounds.contain(node) || flat.node(node.offset).isLeaf {
                    _ = try flat.forEach(beneath: node.offset) {
                        try body($1, flat.slots[$0]); return true
                    }
                } else {
                    for child in node.opened.children.reversed() { if let part = bounds.part(of: child) { stack.append(part) } }
                }
            } else if node.leaf != nil {
                for i in 0..<node.count { try body(node.key(i), node.entry(i)) }
            } else {
                for child in node.children.reversed() { if let part = bounds.part(of: child) { stack.append(part) } }
            }
            next = stack.popLast()
        }
    }

    /// Appends the pairs of parts to compare for two inner nodes, in byte order.
    private static func appendParts(_ a: MapNode, _ b: MapNode, to parts: inout [(MapNode?, MapNode?)]) {
        let shared = commonPrefix(a.prefix, b.prefix)
        if shared == a.prefix.count, shared == b.prefix.count {
            var i = 0, j = 0
            while i < a.symbols.count || j < b.symbols.count {
                let x = i < a.symbols.count ? a.symbols[i] : .max, y = j < b.symbols.count ? b.symbols[j] : .max
                parts.append((x <= y ? a.children[i] : nil, y <= x ? b.children[j] : nil))
                if x <= y { i += 1 }
                if y <= x { j += 1 }
            }
        } else if shared == a.prefix.count {
            partsBelow(a, b, UInt16(b.prefix[shared]) + 1) { parts.append(($0, $1)) }
        } else if shared == b.prefix.count {
            partsBelow(b, a, UInt16(a.prefix[shared]) + 1) { parts.append(($1, $0)) }
        } else {
            let isBefore = a.prefix[shared] < b.prefix[shared]
            parts.append(isBefore ? (a, nil) : (nil, b))
            parts.append(isBefore ? (nil, b) : (a, nil))
        }
    }

    /// All of `lower` is under one symbol of `upper`.
    private static func partsBelow(_ upper: MapNode, _ lower: MapNode, _ symbol: UInt16, _ pair: (MapNode?, MapNode?) -> Void) {
        var met = false
        for (at, child) in zip(upper.symbols, upper.children) {
            if !met, at > symbol { met = true; pair(nil, lower) }
            if at == symbol { met = true; pair(child, lower) } else { pair(child, nil) }
        }
        if !met { pair(nil, lower) }
    }

    /// Compares two nodes of which at least one is a leaf, by walking both. A leaf holds few keys, so further keys of the other node are
    /// differences.
    private static func differencesByKey(
        _ a: MapNode, _ b: MapNode, _ bounds: KeyBounds, _ body: (UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void
    ) rethrows {
        let (leaf, other, swapped) = a.leaf != nil ? (a, b, false) : (b, a, true)
        var i = 0
        func only(_ i: Int) throws { try swapped ? body(leaf.key(i), nil, leaf.entry(i)) : body(leaf.key(i), leaf.entry(i), nil) }
        do {
            try other.forEachThrowing(bounds) { key, entry in
                while i < leaf.count, Bytes.compare(leaf.key(i), key) < 0 { try only(i); i += 1 }
                if i < leaf.count, Bytes.equal(leaf.key(i), key) {
                    let mine = leaf.entry(i)
                    if !mine.isSameReference(as: entry) { try swapped ? body(key, entry, mine) : body(key, mine, entry) }
                    i += 1
                } else {
                    try swapped ? body(key, entry, nil) : body(key, nil, entry)
                }
            }
            while i < leaf.count { try only(i); i += 1 }
        }
    }
}
