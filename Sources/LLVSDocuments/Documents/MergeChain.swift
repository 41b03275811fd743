/// Nested containers that are equal on all three sides except for one child each: members of one name, elements of one `id`, or paired
/// elements without a key that differ. Only the innermost child is merged.
///
/// A chain does not descend into rows that are picked, nor into lists that are merged by place.
final class MergeChain {
    /// The child of the innermost container on the three sides.
    private(set) var base: UInt32
    private(set) var newer: UInt32
    private(set) var older: UInt32
    /// For each level, from the outermost on, the index of the child that differs.
    private var steps: [UInt8] = []

    /// Containers with more children are merged in frames of their own.
    private static let most = 8

    /// A step down from one level to the next.
    enum Step {
        case name(ValueRef)
        case element(ShortLists.Known)
    }

    /// One child on the three sides.
    private typealias Nodes = (base: UInt32, newer: UInt32, older: UInt32)

    /// Returns nil unless each of the two outermost containers has exactly one child that differs. Precondition: all three sides differ,
    /// and no rule applies inside them.
    static func found(_ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ values: DocumentValues) throws -> MergeChain? {
        guard !o.isAbsent else { return nil }
        let trees = (o.tree, x.tree, y.tree)
        // A single level is merged like any other container. (There may be very many containers that are no chain: nothing is allocated
        // for these.)
        guard let first = try differing((o.node, x.node, y.node), trees, values),
            let second = try differing(first.child, trees, values)
        else { return nil }
        return try MergeChain([first.place, second.place], second.child, trees, values)
    }

    private init(_ first: [UInt8], _ child: Nodes, _ trees: (UInt32, UInt32, UInt32), _ values: DocumentValues) throws {
        (base, newer, older) = child
        steps.reserveCapacity(16)
        steps += first
        while let (place, child) = try Self.differing((base, newer, older), trees, values) {
            steps.append(place)
            (base, newer, older) = child
        }
    }

    /// Returns the only child that is not the same on all sides; nil if several differ, or they are not the same child.
    private static func differing(
        _ nodes: Nodes, _ trees: (UInt32, UInt32, UInt32), _ values: DocumentValues
    ) throws -> (place: UInt8, child: Nodes)? {
        func ref(_ tree: UInt32, _ node: UInt32) -> ValueRef { ValueRef(tree: tree, node: node) }
        let b = values.tree(ref(trees.0, 0)), p = values.tree(ref(trees.1, 0)), q = values.tree(ref(trees.2, 0))
        let kind = p.kind(nodes.newer)
        guard kind == .array || kind == .object, b.kind(nodes.base) == kind, q.kind(nodes.older) == kind else { return nil }
        let size = kind == .object ? JSONTree.nameSize : 0, first = JSONTree.containerSize
        let ends = (b.next(nodes.base), p.next(nodes.newer), q.next(nodes.older))
        var (i, j, k) = (nodes.base + first, nodes.newer + first, nodes.older + first)
        // One container need not be compared: if nothing else differs, the difference is in it.
        var found: (place: UInt8, child: Nodes)?, unknown: (place: UInt8, child: Nodes)?, count: UInt8 = 0
        func areSame(_ child: Nodes) throws -> Bool {
            try values.same(ref(trees.1, child.newer), ref(trees.0, child.base))
                && values.same(ref(trees.2, child.older), ref(trees.0, child.base))
        }
        while j < ends.1 {
            guard i < ends.0, k < ends.2, count < most else { return nil }
            if size > 0 { guard Bytes.equal(b.text(i), p.text(j)), Bytes.equal(q.text(k), p.text(j)) else { return nil } }
            let child: Nodes = (i + size, j + size, k + size)
            if unknown == nil, JSONCode.isContainer(p.code(child.newer)) {
                unknown = (count, child)
            } else if try !areSame(child) {
                guard found == nil else { return nil }
                found = (count, child)
            }
            count += 1
            (i, j, k) = (b.next(child.base), p.next(child.newer), q.next(child.older))
        }
        guard i == ends.0, k == ends.2 else { return nil }
        if found == nil { found = unknown } else if let unknown { guard try areSame(unknown.child) else { return nil } }
        guard let found else { return nil }
        if kind == .array, try !areOneElement(found.child, trees, beside: nodes, values) { return nil }
        return found
    }

    /// Returns whether the differing elements are one element: they have the same `id`, or they are paired because none of them occurs
    /// elsewhere.
    private static func areOneElement(
        _ child: Nodes, _ trees: (UInt32, UInt32, UInt32), beside lists: Nodes, _ values: DocumentValues
    ) throws -> Bool {
        let o = ValueRef(tree: trees.0, node: child.base), x = ValueRef(tree: trees.1, node: child.newer)
        let y = ValueRef(tree: trees.2, node: child.older)
        let base = ShortLists.id(of: o, values), newer = ShortLists.id(of: x, values), older = ShortLists.id(of: y, values)
        if let base, let newer, let older { return try values.same(newer, base) && values.same(older, base) }
        guard base == nil, newer == nil, older == nil else { return false }
        guard try isAlone(o, in: lists.base, values), try isAlone(x, in: lists.newer, values), try isAlone(y, in: lists.older, values)
        else { return false }
        let list = ValueRef(tree: trees.0, node: lists.base)
        guard try ShortLists.isPlain(list, values) else { return true }
        return try ShortLists.areDistinct(list, values) && !ShortLists.areRows(o, x, y, values)
    }

    /// Returns whether no other element of the list equals the element. (All other elements are the same on all sides.)
    private static func isAlone(_ element: ValueRef, in list: UInt32, _ values: DocumentValues) throws -> Bool {
        let tree = values.tree(element), end = tree.next(list)
        var i = list + JSONTree.containerSize
        while i < end {
            if i != element.node, try values.same(ValueRef(tree: element.tree, node: i), element) { return false }
            i = tree.next(i)
        }
        return true
    }

    // MARK: The result

    /// Returns the step from a container to its child at an index, and the child's nodes in the base and the newer side.
    private func step(
        _ number: UInt8, _ o: ValueRef, _ x: ValueRef, _ values: DocumentValues
    ) throws -> (step: Step, base: ValueRef, newer: ValueRef) {
        let b = values.tree(o), p = values.tree(x)
        let size = p.kind(x.node) == .object ? JSONTree.nameSize : 0
        var i = o.node + JSONTree.containerSize + size, j = x.node + JSONTree.containerSize + size
        for _ in 0..<number { (i, j) = (b.next(i) + size, p.next(j) + size) }
        let base = ValueRef(tree: o.tree, node: i), newer = ValueRef(tree: x.tree, node: j)
        if size > 0 { return (.name(ValueRef(tree: x.tree, node: p.nameNode(of: j))), base, newer) }
        return (.element(try ShortLists.known(base, at: Int(number), in: o.node, values)), base, newer)
    }

    /// Returns the steps from the outermost container to the innermost child.
    func steps(of inputs: RecordDraft.Inputs, _ values: DocumentValues) throws -> [Step] {
        var (o, x) = (inputs.o, inputs.x), all: [Step] = []
        all.reserveCapacity(steps.count)
        for number in steps {
            let step = try step(number, o, x, values)
            all.append(step.step)
            (o, x) = (step.base, step.newer)
        }
        return all
    }

    /// Returns the outermost container with the result of the innermost child. Everything else is the older side's.
    func result(_ child: ValueRef, _ inputs: RecordDraft.Inputs, _ values: DocumentValues) -> ValueRef {
        if child == ValueRef(tree: inputs.y.tree, node: older) { return inputs.y }
        let p = values.tree(inputs.x), q = values.tree(inputs.y)
        var levels: [(newer: UInt32, older: UInt32)] = [], (j, k) = (inputs.x.node, inputs.y.node)
        levels.reserveCapacity(steps.count)
        for number in steps {
            levels.append((j, k))
            let size = p.kind(j) == .object ? JSONTree.nameSize : 0
            (j, k) = (j + JSONTree.containerSize + size, k + JSONTree.containerSize + size)
            for _ in 0..<number { (j, k) = (p.next(j) + size, q.next(k) + size) }
        }
        var value = child, level = levels.count
        // Levels that are written alike on both sides become the newer side's container as a whole.
        if child == ValueRef(tree: inputs.x.tree, node: newer) {
            while level > 0, areWrittenAlike(level - 1, levels[level - 1], p, q) { level -= 1 }
            value = level == levels.count ? child : ValueRef(tree: inputs.x.tree, node: levels[level].newer)
        }
        while level > 0 {
            level -= 1
            value = values.add(computed(value, at: steps[level], ValueRef(tree: inputs.y.tree, node: levels[level].older), values))
        }
        return value
    }

    /// Returns whether all children except the differing one have the same bytes on both sides.
    private func areWrittenAlike(_ level: Int, _ nodes: (newer: UInt32, older: UInt32), _ p: JSONTree, _ q: JSONTree) -> Bool {
        let size = p.kind(nodes.newer) == .object ? JSONTree.nameSize : 0, end = p.next(nodes.newer)
        var (j, k) = (nodes.newer + JSONTree.containerSize, nodes.older + JSONTree.containerSize), number: UInt8 = 0
        while j < end {
            let (one, other) = (j + size, k + size)
            guard number == steps[level] || p.kind(one) == q.kind(other) && Bytes.equal(p.text(one), q.text(other)) else { return false }
            (j, k) = (p.next(one), q.next(other))
            number += 1
        }
        return true
    }

    /// Returns a container of the older side with another child.
    private func computed(_ child: ValueRef, at number: UInt8, _ container: ValueRef, _ values: DocumentValues) -> ComputedValue {
        let tree = values.tree(container), end = tree.next(container.node)
        let isObject = tree.kind(container.node) == .object, size = isObject ? JSONTree.nameSize : 0
        var k = container.node + JSONTree.containerSize, i: UInt8 = 0
        var elements = ValueRefs(), members: [(name: ValueRef, value: ValueRef)] = []
        while k < end {
            let node = k + size, value = i == number ? child : ValueRef(tree: container.tree, node: node)
            if !isObject {
                if !value.isAbsent { elements.append(value) }
            } else if !value.isAbsent {
                members.append((ValueRef(tree: container.tree, node: k), value))
                // There are few members.
                var at = members.count - 1
                while at > 0, Bytes.compare(values.text(members[at - 1].name), values.text(members[at].name)) > 0 {
                    members.swapAt(at - 1, at)
                    at -= 1
                }
            }
            k = tree.next(node)
            i += 1
        }
        return isObject ? .object(members) : .array(elements)
    }
}
