/// The memory of maps.
extension MapNode {
    /// The approximate bytes of objects and allocations besides their contents.
    static let leafOverhead = 208, innerOverhead = 208, flatOverhead = 128

    /// Returns the bytes of this map that it does not share with another from which it was made, or that has the same origin. O(nodes that
    /// differ, and their children).
    package func memory(beside other: MapNode?) -> Int {
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
            // Shared nodes are not read: most of them are in no cache of the processor.
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

    /// The bytes of an inner node without its subtree.
    private var innerMemory: Int { MapNode.innerMemory(prefix: prefix.count, symbols: symbols.count) }
    static func innerMemory(prefix: Int, symbols: Int) -> Int { innerOverhead + prefix + 10 * symbols }

    /// Identifies the keys of a leaf, and returns its memory with and without them; for tests.
    var keysIdentity: ObjectIdentifier? { keys.map { ObjectIdentifier($0) } }
    func ownMemory(withKeys: Bool) -> Int { memory - children.reduce(0) { $0 + $1.memory } - (withKeys ? 0 : keys?.size ?? 0) }

    /// The bytes of all keys of the subtree if they fit a leaf; nil if they do not or may not.
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
