/// Makes the map of a version from that of its first predecessor.
extension MapNode {
    typealias Pair = (key: UnsafeRawBufferPointer, entry: MapEntry)

    /// Returns the map with the changes applied; nil for the empty map. `changes` are sorted by key, each key once. O(changes × (key length
    /// + log n)); unchanged nodes are shared. Not recursive, since a map may be 512 nodes deep.
    /// - Parameter deepest: the length of a common prefix from which on there is one leaf; the same for all maps that are compared.
    /// - Throws: `.outOfMemory`.
    package static func applying(
        _ changes: ArraySlice<MapChange>, to node: MapNode?, deepest: Int = MapNode.deepestPrefix
    ) throws -> MapNode? {
        var stack: [Applying] = []
        switch try begin(changes, node, deepest) {
        case .made(let node): return node
        case .inner(let first): stack.append(first)
        }
        next: while var top = stack.popLast() {
            while let (changes, old) = top.takeNext() {
                switch try begin(changes, old, deepest) {
                case .made(let child): top.add(child)
                case .inner(let beneath):
                    stack.append(top)
                    stack.append(beneath)
                    continue next
                }
            }
            let made = top.finished()
            if stack.isEmpty { return made }
            stack[stack.count - 1].add(made)
        }
        return nil
    }

    private enum Begun {
        /// The node is finished; nil if it has no keys left.
        case made(MapNode?)
        /// An inner node, to be made after its children.
        case inner(Applying)
    }

    private static func begin(_ changes: ArraySlice<MapChange>, _ closed: MapNode?, _ deepest: Int) throws -> Begun {
        guard let closed else { return .made(try build(insertions(in: changes)[...], deepest: deepest)) }
        try Memory.check()
        guard let first = changes.first else { return .made(closed) }
        let node = closed.opened
        guard node.leaf != nil else { return node.beginInner(changes) }
        if changes.count == 1, let entry = first.entry {
            let (index, found) = node.search(first.key)
            if found || node.hasRoom(for: first.key.count) { return .made(node.leafSetting(first.key, entry, at: index, found: found)) }
        }
        return .made(try withExtendedLifetime(node) { try build(node.merging(changes)[...], deepest: deepest) })
    }

    /// An inner node under construction.
    private struct Applying {
        enum Way {
            /// A single change, in the child with that index.
            case path(Int)
            /// The changes are in several children, one group for each.
            case groups
            /// Some keys branch off above the node: a new node there gets the node as a child, under this symbol.
            case above(UInt16)
        }
        let node: MapNode
        let way: Way
        /// The length of the node's prefix that all keys share.
        let depth: Int
        /// The changes not yet applied.
        private var rest: ArraySlice<MapChange>
        /// The symbol of the last group of changes.
        private var symbol: UInt16 = 0
        /// The number of the node's children already visited.
        private var passed = 0
        private var isPlaced = false
        private var symbols = ContiguousArray<UInt16>(), children = ContiguousArray<MapNode>()
        /// The new child on a path.
        private var made: MapNode?

        init(_ node: MapNode, _ way: Way, depth: Int, _ changes: ArraySlice<MapChange>) {
            self.node = node; self.way = way; self.depth = depth; rest = changes
            if case .groups = way {
                symbols.reserveCapacity(node.symbols.count)
                children.reserveCapacity(node.symbols.count)
            }
        }

        /// Returns the next changes, and the child that they apply to; nil if none are left.
        mutating func takeNext() -> (ArraySlice<MapChange>, MapNode?)? {
            guard let first = rest.first else { return nil }
            if case .path(let i) = way {
                defer { rest = [] }
                return (rest, node.children[i])
            }
            symbol = MapNode.symbol(of: first.key, at: depth)
            let start = rest.startIndex
            var end = start + 1
            while end < rest.endIndex, MapNode.symbol(of: rest[end].key, at: depth) == symbol { end += 1 }
            let changes = rest[start..<end]
            rest = rest[end...]
            if case .above(let own) = way {
                if symbol >= own, !isPlaced {
                    isPlaced = true
                    if symbol == own { return (changes, node) }
                    symbols.append(own)
                    children.append(node)
                }
                return (changes, nil)
            }
            pass(below: symbol)
            guard passed < node.symbols.count, node.symbols[passed] == symbol else { return (changes, nil) }
            passed += 1
            return (changes, node.children[passed - 1])
        }

        /// Adds the result of the last group of changes.
        mutating func add(_ child: MapNode?) {
            if case .path = way { made = child; return }
            guard let child else { return }
            symbols.append(symbol)
            children.append(child)
        }

        /// Takes over unchanged children.
        private mutating func pass(below symbol: UInt16) {
            let start = passed
            while passed < node.symbols.count, node.symbols[passed] < symbol { passed += 1 }
            guard passed > start else { return }
            symbols.append(contentsOf: node.symbols[start..<passed])
            children.append(contentsOf: node.children[start..<passed])
        }

        mutating func finished() -> MapNode? {
            switch way {
            case .path(let i): return finishedPath(i)
            case .groups: pass(below: .max)
            case .above(let own):
                if !isPlaced {
                    symbols.append(own)
                    children.append(node)
                }
            }
            return MapNode.assemble(UnsafeRawBufferPointer(rebasing: node.prefix[0..<depth]), symbols, children)
        }

        private mutating func finishedPath(_ i: Int) -> MapNode? {
            let old = node.children[i]
            if made === old { return node }
            children = node.children
            guard let made else {
                symbols = ContiguousArray(node.symbols)
                symbols.remove(at: i)
                children.remove(at: i)
                return MapNode.assemble(node.prefix, symbols, children)
            }
            children[i] = made
            // The node did not fit a leaf before. If it has as many keys as before, it need not be checked again.
            if made.count >= old.count { return MapNode(prefix: node.prefix, symbols: node.symbols, children: children) }
            return MapNode.assemble(node.prefix, ContiguousArray(node.symbols), children)
        }
    }

    private static func insertions(in changes: ArraySlice<MapChange>) -> [Pair] {
        changes.compactMap { change in change.entry.map { (change.key, $0) } }
    }

    /// Returns the entries of a leaf with the changes applied, in order.
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

    private func beginInner(_ changes: ArraySlice<MapChange>) -> Begun {
        // The length of this node's prefix that the new keys share.
        var depth = prefix.count
        for change in changes where change.entry != nil {
            depth = min(depth, MapNode.commonPrefix(prefix, change.key))
        }
        if depth == prefix.count, changes.count == 1, let change = changes.first {
            // The common case: one path, no regrouping.
            guard change.key.count >= depth, change.entry != nil || sharesPrefix(change.key) else { return .made(self) }
            if let i = childIndex(MapNode.symbol(of: change.key, at: depth)) {
                return .inner(Applying(self, .path(i), depth: depth, changes))
            }
            if change.entry == nil { return .made(self) }
        }
        return .inner(
            Applying(self, depth < prefix.count ? .above(UInt16(prefix[depth]) + 1) : .groups, depth: depth, relevant(changes, at: depth)))
    }

    private func sharesPrefix(_ key: UnsafeRawBufferPointer) -> Bool {
        key.count >= prefix.count && MapNode.commonPrefix(prefix, key) == prefix.count
    }

    /// Returns the changes without removals of keys that this node cannot hold.
    private func relevant(_ changes: ArraySlice<MapChange>, at depth: Int) -> ArraySlice<MapChange> {
        guard changes.contains(where: { $0.entry == nil && MapNode.commonPrefix(prefix, $0.key) < depth }) else { return changes }
        return changes.filter { $0.entry != nil || MapNode.commonPrefix(prefix, $0.key) >= depth }[...]
    }

    /// Returns an inner node, or the node that the rules of the shape require instead.
    fileprivate static func assemble(
        _ prefix: UnsafeRawBufferPointer, _ symbols: ContiguousArray<UInt16>, _ children: ContiguousArray<MapNode>
    ) -> MapNode? {
        guard children.count > 1 else { return children.first }
        guard fitIntoLeaf(children) else { return MapNode(prefix: prefix, symbols: symbols, children: children) }
        var pairs: [Pair] = []
        // There are few keys, so children in a persisted map are leaves. Opened leaves keep their keys in place.
        let leaves = children.map(\.opened)
        for leaf in leaves {
            leaf.forEach { key, entry in
                pairs.append((key, entry)); return true
            }
        }
        return withExtendedLifetime(leaves) { MapNode(leaf: pairs) }
    }

    /// Returns whether the subtrees of some nodes must form one leaf.
    static func fitIntoLeaf(_ nodes: ContiguousArray<MapNode>) -> Bool {
        guard nodes.reduce(0, { $0 + $1.count }) <= leafCapacity else { return false }
        var bytes = 0
        for node in nodes {
            guard let size = node.fewKeyBytes else { return false }
            bytes += size
        }
        return bytes <= leafBytes
    }

    /// Returns the tree of sorted pairs; nil if there are none.
    static func build(_ pairs: ArraySlice<Pair>, deepest: Int = MapNode.deepestPrefix) throws -> MapNode? {
        if pairs.isEmpty { return nil }
        var stack: [Building] = []
        switch try Building.begin(pairs, deepest) {
        case .leaf(let leaf): return leaf
        case .inner(let first): stack.append(first)
        }
        next: while var top = stack.popLast() {
            while let group = top.takeNext() {
                switch try Building.begin(group, deepest) {
                case .leaf(let leaf): top.children.append(leaf)
                case .inner(let beneath):
                    stack.append(top)
                    stack.append(beneath)
                    continue next
                }
            }
            let made = MapNode(prefix: top.prefix, symbols: top.symbols, children: top.children)
            if stack.isEmpty { return made }
            stack[stack.count - 1].children.append(made)
        }
        return nil
    }

    /// An inner node that is being built from sorted pairs.
    private struct Building {
        let pairs: ArraySlice<Pair>
        let prefix: UnsafeRawBufferPointer
        private var start: Int
        private(set) var symbols = ContiguousArray<UInt16>()
        var children = ContiguousArray<MapNode>()

        enum Begun { case leaf(MapNode), inner(Building) }

        static func begin(_ pairs: ArraySlice<Pair>, _ deepest: Int) throws -> Begun {
            try Memory.check()
            if pairs.count <= leafCapacity, pairs.reduce(0, { $0 + $1.key.count }) <= leafBytes { return .leaf(MapNode(leaf: pairs)) }
            guard let first = pairs.first, let last = pairs.last else { return .leaf(MapNode(leaf: pairs)) }
            let depth = commonPrefix(first.key, last.key)
            if depth >= deepest { return .leaf(MapNode(leaf: pairs)) }
            return .inner(Building(pairs: pairs, prefix: UnsafeRawBufferPointer(rebasing: first.key[0..<depth]), start: pairs.startIndex))
        }

        private init(pairs: ArraySlice<Pair>, prefix: UnsafeRawBufferPointer, start: Int) {
            self.pairs = pairs; self.prefix = prefix; self.start = start
        }

        /// Returns the pairs of the next child; nil if none are left.
        mutating func takeNext() -> ArraySlice<Pair>? {
            guard start < pairs.endIndex else { return nil }
            let symbol = MapNode.symbol(of: pairs[start].key, at: prefix.count)
            var end = start + 1
            while end < pairs.endIndex, MapNode.symbol(of: pairs[end].key, at: prefix.count) == symbol { end += 1 }
            defer { start = end }
            symbols.append(symbol)
            return pairs[start..<end]
        }
    }
}
