/// What maps take in memory.
extension MapNode {
    /// What objects and allocations take beside their contents, about.
    static let leafOverhead = 208, innerOverhead = 208, flatOverhead = 128

    /// Bytes of memory of this map that another does not share: of one that this one was made from, or that was made from
    /// the same. O(nodes that differ, and their children).
    func memory(beside other: MapNode?) -> Int {
        guard let other else { return memory }
        if self === other { return 0 }
        var size = 0, stack = [(self, other)]
        while let (node, other) = stack.popLast() {
            guard !node.children.isEmpty, !other.children.isEmpty, node.prefix.count == other.prefix.count else {
                size += node.memory
                if node.leaf != nil, let keys = node.keys, keys === other.keys { size -= keys.size }
                continue
            }
            size += node.innerMemory
            // What both share is not looked at: most of it is in no cache of the processor.
            node.children.withUnsafeBufferPointer { children in
                other.children.withUnsafeBufferPointer { others in
                    var j = 0
                    for i in children.indices {
                        let symbol = node.symbols[i]
                        while j < others.count, other.symbols[j] < symbol { j += 1 }
                        guard j < others.count, other.symbols[j] == symbol else {
                            size += children[i].memory
                            continue
                        }
                        if children[i] !== others[j] { stack.append((children[i], others[j])) }
                    }
                }
            }
        }
        return size
    }

    /// What an inner node takes without what is beneath.
    private var innerMemory: Int { MapNode.innerMemory(prefix: prefix.count, symbols: symbols.count) }
    static func innerMemory(prefix: Int, symbols: Int) -> Int { innerOverhead + prefix + 10 * symbols }

    /// Which keys a leaf has, shared with others or not, and what it takes with and without them; for tests.
    var keysIdentity: ObjectIdentifier? { keys.map { ObjectIdentifier($0) } }
    func ownMemory(withKeys: Bool) -> Int { memory - children.reduce(0) { $0 + $1.memory } - (withKeys ? 0 : keys?.size ?? 0) }

    /// Bytes of all keys beneath, when that is no more than go into a leaf; nil when it is more, or may be.
    var fewKeyBytes: Int? {
        guard count <= MapNode.leafCapacity else { return nil }
        let size: Int
        if let flat {
            let node = flat.node(offset)
            guard node.isLeaf else { return nil }
            size = node.count * node.prefixCount + node.end(node.count - 1)
        } else {
            guard leaf != nil else { return nil }
            size = keySize
        }
        return size <= MapNode.leafBytes ? size : nil
    }
}
