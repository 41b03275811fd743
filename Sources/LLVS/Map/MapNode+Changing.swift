/// Making the map of a version from that of its first predecessor.
extension MapNode {
    typealias Pair = (key: UnsafeRawBufferPointer, entry: MapEntry)

    /// The map with the changes applied; nil for the empty map. `changes` are sorted by key, each key once.
    /// O(changes × (key length + log n)); what is not touched is shared.
    /// - Throws: `.outOfMemory`.
    static func applying(_ changes: ArraySlice<MapChange>, to node: MapNode?) throws -> MapNode? {
        guard let closed = node else { return try build(insertions(in: changes)[...]) }
        try Memory.check()
        guard let first = changes.first else { return closed }
        let node = closed.opened
        if node.leaf != nil {
            if changes.count == 1, let entry = first.entry {
                let (index, found) = node.search(first.key)
                if found || node.hasRoom(for: first.key.count) { return node.leafSetting(first.key, entry, at: index, found: found) }
            }
            return try withExtendedLifetime(node) { try build(node.merging(changes)[...]) }
        }
        return try node.applyingToInner(changes)
    }

    private static func insertions(in changes: ArraySlice<MapChange>) -> [Pair] {
        changes.compactMap { change in change.entry.map { (change.key, $0) } }
    }

    /// The entries of a leaf with the changes applied, in order.
    private func merging(_ changes: ArraySlice<MapChange>) -> [Pair] {
        var out: [Pair] = []
        out.reserveCapacity(count + changes.count)
        var i = 0
        for change in changes {
            while i < count, Bytes.compare(key(i), change.key) < 0 { out.append((key(i), entry(i))); i += 1 }
            if i < count, Bytes.equal(key(i), change.key) { i += 1 }
            if let entry = change.entry { out.append((change.key, entry)) }
        }
        while i < count { out.append((key(i), entry(i))); i += 1 }
        return out
    }

    private func applyingToInner(_ changes: ArraySlice<MapChange>) throws -> MapNode? {
        // How much of this node's prefix the new keys share.
        var depth = prefix.count
        for change in changes where change.entry != nil {
            depth = min(depth, MapNode.commonPrefix(prefix, change.key))
        }
        var symbols = ContiguousArray<UInt16>(), children = ContiguousArray<MapNode>()
        if depth < prefix.count {
            // Some branch off above: a new node there, with this one as one of its children.
            let own = UInt16(prefix[depth]) + 1
            var placed = false
            func place() {
                placed = true
                symbols.append(own)
                children.append(self)
            }
            try forEachGroup(changes, at: depth) { symbol, group in
                if !placed, symbol > own { place() }
                if symbol == own {
                    placed = true
                    if let child = try MapNode.applying(group, to: self) { symbols.append(symbol); children.append(child) }
                } else if let child = try MapNode.build(MapNode.insertions(in: group)[...]) {
                    symbols.append(symbol)
                    children.append(child)
                }
            }
            if !placed { place() }
            return MapNode.assemble(UnsafeRawBufferPointer(rebasing: prefix[0..<depth]), symbols, children)
        }
        if changes.count == 1, let change = changes.first {
            // The common case: one path, no regrouping.
            guard change.key.count >= depth, change.entry != nil || sharesPrefix(change.key) else { return self }
            let symbol = MapNode.symbol(of: change.key, at: depth)
            if let i = childIndex(symbol) {
                let old = self.children[i], new = try MapNode.applying(changes, to: old)
                if new === old { return self }
                children = self.children
                guard let new else {
                    symbols = ContiguousArray(self.symbols)
                    symbols.remove(at: i)
                    children.remove(at: i)
                    return MapNode.assemble(prefix, symbols, children)
                }
                children[i] = new
                // Where no key goes, what did not fit into a leaf does not now.
                if new.count >= old.count { return MapNode(prefix: prefix, symbols: self.symbols, children: children) }
                return MapNode.assemble(prefix, ContiguousArray(self.symbols), children)
            }
            if change.entry == nil { return self }
        }
        var i = 0
        try forEachGroup(changes, at: depth) { symbol, group in
            while i < self.symbols.count, self.symbols[i] < symbol {
                symbols.append(self.symbols[i])
                children.append(self.children[i])
                i += 1
            }
            var old: MapNode?
            if i < self.symbols.count, self.symbols[i] == symbol { old = self.children[i]; i += 1 }
            if let child = try MapNode.applying(group, to: old) { symbols.append(symbol); children.append(child) }
        }
        while i < self.symbols.count {
            symbols.append(self.symbols[i])
            children.append(self.children[i])
            i += 1
        }
        return MapNode.assemble(prefix, symbols, children)
    }

    private func sharesPrefix(_ key: UnsafeRawBufferPointer) -> Bool {
        key.count >= prefix.count && MapNode.commonPrefix(prefix, key) == prefix.count
    }

    /// Calls once per symbol at `depth`, with the changes that have it; drops removals of keys that this
    /// node cannot hold.
    private func forEachGroup(_ changes: ArraySlice<MapChange>, at depth: Int, _ body: (UInt16, ArraySlice<MapChange>) throws -> Void) rethrows {
        let relevant: ArraySlice<MapChange>
        if changes.contains(where: { $0.entry == nil && MapNode.commonPrefix(prefix, $0.key) < depth }) {
            relevant = changes.filter { $0.entry != nil || MapNode.commonPrefix(prefix, $0.key) >= depth }[...]
        } else {
            relevant = changes
        }
        var start = relevant.startIndex
        while start < relevant.endIndex {
            let symbol = MapNode.symbol(of: relevant[start].key, at: depth)
            var end = start + 1
            while end < relevant.endIndex, MapNode.symbol(of: relevant[end].key, at: depth) == symbol { end += 1 }
            try body(symbol, relevant[start..<end])
            start = end
        }
    }

    /// An inner node, or what the rules of the shape want instead.
    private static func assemble(_ prefix: UnsafeRawBufferPointer, _ symbols: ContiguousArray<UInt16>, _ children: ContiguousArray<MapNode>) -> MapNode? {
        guard children.count > 1 else { return children.first }
        guard fitIntoLeaf(children) else { return MapNode(prefix: prefix, symbols: symbols, children: children) }
        var pairs: [Pair] = []
        // Few keys: children that lie in a checkpoint are leaves, and opening them keeps their keys in place.
        let leaves = children.map(\.opened)
        for leaf in leaves { leaf.forEach { key, entry in pairs.append((key, entry)); return true } }
        return withExtendedLifetime(leaves) { MapNode(leaf: pairs) }
    }

    /// Whether all that is beneath some nodes is to be one leaf.
    static func fitIntoLeaf(_ nodes: ContiguousArray<MapNode>) -> Bool {
        guard nodes.reduce(0, { $0 + $1.count }) <= leafCapacity else { return false }
        var bytes = 0
        for node in nodes {
            guard let size = node.fewKeyBytes else { return false }
            bytes += size
        }
        return bytes <= leafBytes
    }

    /// The tree of sorted pairs; nil when there are none.
    static func build(_ pairs: ArraySlice<Pair>) throws -> MapNode? {
        guard let first = pairs.first, let last = pairs.last else { return nil }
        try Memory.check()
        if pairs.count <= leafCapacity, pairs.reduce(0, { $0 + $1.key.count }) <= leafBytes { return MapNode(leaf: pairs) }
        let depth = commonPrefix(first.key, last.key)
        if depth >= deepestPrefix { return MapNode(leaf: pairs) }
        var symbols = ContiguousArray<UInt16>(), children = ContiguousArray<MapNode>()
        var start = pairs.startIndex
        while start < pairs.endIndex {
            let symbol = MapNode.symbol(of: pairs[start].key, at: depth)
            var end = start + 1
            while end < pairs.endIndex, MapNode.symbol(of: pairs[end].key, at: depth) == symbol { end += 1 }
            if let child = try build(pairs[start..<end]) { symbols.append(symbol); children.append(child) }
            start = end
        }
        return MapNode(prefix: UnsafeRawBufferPointer(rebasing: first.key[0..<depth]), symbols: symbols, children: children)
    }
}
