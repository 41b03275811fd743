/// Containers in containers that have just one child on each of the three sides: members of one name, or elements that pairing pairs, since
/// they are known by all they are, and differ. What is merged is what is in the innermost.
final class MergeChain {
    /// The child of the innermost on the three sides.
    private(set) var base: UInt32
    private(set) var newer: UInt32
    private(set) var older: UInt32
    /// How many there are.
    private var count = 0

    private static let id = Array("id".utf8)

    /// Nil where the outermost have not got just one child. All three differ from each other.
    init?(_ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ values: DocumentValues) {
        guard !o.isAbsent else { return nil }
        let b = values.tree(o), p = values.tree(x), q = values.tree(y)
        var (i, j, k) = (o.node, x.node, y.node)
        (base, newer, older) = (i, j, k)
        while true {
            let kind = p.kind(j)
            guard kind == .array || kind == .object, b.kind(i) == kind, q.kind(k) == kind,
                let first = Self.only(b, i, kind), let second = Self.only(p, j, kind), let third = Self.only(q, k, kind) else { break }
            if kind == .object {
                guard Bytes.equal(b.name(of: first), p.name(of: second)), Bytes.equal(q.name(of: third), p.name(of: second)) else { break }
            } else {
                guard Self.isValue(b, first), Self.isValue(p, second), Self.isValue(q, third) else { break }
            }
            (i, j, k) = (first, second, third)
            count += 1
        }
        if count == 0 { return nil }
        (base, newer, older) = (i, j, k)
    }

    /// The only child.
    private static func only(_ tree: JSONTree, _ node: UInt32, _ kind: JSONKind) -> UInt32? {
        let end = tree.next(node), child = node + JSONTree.containerSize + (kind == .object ? JSONTree.nameSize : 0)
        return child < end && tree.next(child) == end ? child : nil
    }

    /// Whether an element is known by all it is.
    private static func isValue(_ tree: JSONTree, _ node: UInt32) -> Bool {
        guard tree.kind(node) == .object, let id = Self.id.withUnsafeBytes({ tree.member($0, of: node) }) else { return true }
        return tree.kind(id) != .string && tree.kind(id) != .number
    }

    /// Of each level, from the outermost on, the child in the base, and its name; an element of an array has none.
    func levels(of inputs: RecordDraft.Inputs, _ values: DocumentValues) -> [(name: ValueRef?, base: ValueRef)] {
        let p = values.tree(inputs.x)
        var (i, j) = (inputs.o.node, inputs.x.node), levels: [(name: ValueRef?, base: ValueRef)] = []
        levels.reserveCapacity(count)
        for _ in 0..<count {
            let kind = p.kind(j), size = JSONTree.containerSize + (kind == .object ? JSONTree.nameSize : 0)
            (i, j) = (i + size, j + size)
            let name = kind == .object ? ValueRef(tree: inputs.x.tree, node: p.nameNode(of: j)) : nil
            levels.append((name, ValueRef(tree: inputs.o.tree, node: i)))
        }
        return levels
    }

    /// The outermost with what came of the child of the innermost.
    func result(_ child: ValueRef, _ inputs: RecordDraft.Inputs, _ values: DocumentValues) -> ValueRef {
        // Nothing else is in either side.
        if child == ValueRef(tree: inputs.x.tree, node: newer) { return inputs.x }
        if child == ValueRef(tree: inputs.y.tree, node: older) { return inputs.y }
        return levels(of: inputs, values).reversed().reduce(child) { value, level in
            values.add(level.name.map { .object([($0, value)]) } ?? .array(ValueRefs(CollectionOfOne(value))))
        }
    }
}
