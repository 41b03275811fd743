/// A container that is being merged: what is in it, and what came of that so far.
final class MergeFrame {
    enum Shape {
        case object, tuple
        case list(ListAlignment)
        case set(SetPlan)
    }

    static let none = UInt32.max

    let shape: Shape
    let inputs: RecordDraft.Inputs
    let place: DocumentMergeRun.Place
    /// Of each child the node in each input, or `none`; of lists its place in each side.
    var base: [UInt32] = []
    var newer: [UInt32] = []
    var older: [UInt32] = []
    private let list: ListAlignment?
    /// What came of each child: five bits for its tree, and its node.
    private var results: [UInt32] = []
    /// What came of trees with larger numbers, which apps answered.
    private var others: [ValueRef] = []
    private static let nodeBits: UInt32 = 27
    private static let computed: UInt32 = 29, other: UInt32 = 30
    /// What the value stands for where neither side has it.
    var stand: ValueRef?

    init(_ shape: Shape, _ inputs: RecordDraft.Inputs, _ place: DocumentMergeRun.Place) {
        self.shape = shape
        self.inputs = inputs
        self.place = place
        if case .list(let plan) = shape { list = plan } else { list = nil }
    }

    var state: Int { inputs.state }
    var count: Int { list?.keyCount ?? base.count }
    var next: Int { results.count }
    func reserve(_ count: Int) { results.reserveCapacity(count) }

    @inline(__always)
    func deliver(_ result: ValueRef) { results.append(result.isAbsent ? Self.none : packed(result)) }

    private func packed(_ result: ValueRef) -> UInt32 {
        if result.isComputed { return Self.computed << Self.nodeBits | result.node }
        guard result.tree < Self.computed else {
            others.append(result)
            return Self.other << Self.nodeBits | UInt32(truncatingIfNeeded: others.count - 1)
        }
        return result.tree << Self.nodeBits | result.node
    }

    @inline(__always)
    func isAbsent(_ i: Int) -> Bool { results[i] == Self.none }

    func result(_ i: Int) -> ValueRef {
        let word = results[i], tree = word >> Self.nodeBits, node = word & (1 << Self.nodeBits - 1)
        if word == Self.none { return .absent }
        if tree < Self.computed { return ValueRef(tree: tree, node: node) }
        return tree == Self.computed ? ValueRef(tree: ValueRef.computedTree, node: node) : others[Int(node)]
    }

    @inline(__always)
    private func ref(_ container: ValueRef, _ node: UInt32) -> ValueRef {
        node == Self.none ? .absent : ValueRef(tree: container.tree, node: node)
    }
    func o(_ i: Int) -> ValueRef {
        guard let list else { return ref(inputs.o, base[i]) }
        return i < list.base.count ? ValueRef(tree: inputs.o.tree, node: list.base[i]) : .absent
    }
    func x(_ i: Int) -> ValueRef {
        guard let list else { return ref(inputs.x, newer[i]) }
        return newer[i] == Self.none ? .absent : ValueRef(tree: inputs.x.tree, node: list.newer[Int(newer[i])])
    }
    func y(_ i: Int) -> ValueRef {
        guard let list else { return ref(inputs.y, older[i]) }
        return older[i] == Self.none ? .absent : ValueRef(tree: inputs.y.tree, node: list.older[Int(older[i])])
    }

    /// The name of a member: it stands before its value.
    func name(_ i: Int) -> ValueRef {
        let value = newer[i] != Self.none ? x(i) : older[i] != Self.none ? y(i) : o(i)
        return ValueRef(tree: value.tree, node: value.node &- JSONTree.nameSize)
    }

    /// Everything was delivered, and nobody asks for the children any more.
    func closeChildren() { (base, newer, older) = ([], [], []) }
    /// Nor for what came of them.
    func close() {
        closeChildren()
        (results, others) = ([], [])
    }

    // MARK: Objects

    /// The union of the members of all three, in the order of their names.
    func openMembers(_ values: DocumentValues) throws {
        let (o, x, y) = (inputs.o, inputs.x, inputs.y)
        let p = values.tree(x), q = values.tree(y)
        let hasBase = values.isKind(o, .object), b = hasBase ? values.tree(o) : p
        var left = p.children(of: x.node), right = q.children(of: y.node), middle = hasBase ? b.children(of: o.node) : []
        let agree = MemberOrder.agrees(left, p, right, q) && (!hasBase || MemberOrder.agrees(left, p, middle, b))
        if agree {
            // All three have the same names in the same order, as most often: that order is found once.
            if !p.isSorted(x.node), left.count <= 8 {
                for i in left.indices.dropFirst() {
                    var j = i
                    while j > 0, Bytes.compare(p.name(of: left[j - 1]), p.name(of: left[j])) > 0 {
                        left.swapAt(j - 1, j)
                        right.swapAt(j - 1, j)
                        if hasBase { middle.swapAt(j - 1, j) }
                        j -= 1
                    }
                }
            } else if !p.isSorted(x.node) {
                let order = try MemberOrder.order(of: left, in: p, values.work)
                left = order.map { left[Int($0)] }
                right = order.map { right[Int($0)] }
                if hasBase { middle = order.map { middle[Int($0)] } }
            }
            (newer, older) = (left, right)
            base = hasBase ? middle : [UInt32](repeating: Self.none, count: left.count)
            results.reserveCapacity(count)
            return
        }
        try Memory.expect(32 * (left.count + right.count + middle.count), "Merging an object")
        if !p.isSorted(x.node) { try MemberOrder.sort(&left, in: p, values.work) }
        if !q.isSorted(y.node) { try MemberOrder.sort(&right, in: q, values.work) }
        if hasBase, !b.isSorted(o.node) { try MemberOrder.sort(&middle, in: b, values.work) }
        var i = 0, j = 0, k = 0
        while i < left.count || j < right.count || k < middle.count {
            var least = UnsafeRawBufferPointer(start: nil, count: 0), found = false
            func look(_ name: UnsafeRawBufferPointer) {
                if !found || Bytes.compare(name, least) < 0 { least = name }
                found = true
            }
            if i < left.count { look(p.name(of: left[i])) }
            if j < right.count { look(q.name(of: right[j])) }
            if k < middle.count { look(b.name(of: middle[k])) }
            var child = (o: Self.none, x: Self.none, y: Self.none)
            if i < left.count, Bytes.equal(p.name(of: left[i]), least) { child.x = left[i]; i += 1 }
            if j < right.count, Bytes.equal(q.name(of: right[j]), least) { child.y = right[j]; j += 1 }
            if k < middle.count, Bytes.equal(b.name(of: middle[k]), least) { child.o = middle[k]; k += 1 }
            base.append(child.o)
            newer.append(child.x)
            older.append(child.y)
        }
        try values.work.done(count)
        results.reserveCapacity(count)
    }

    // MARK: Tuples

    func openSlots(_ values: DocumentValues) {
        newer = values.tree(inputs.x).children(of: inputs.x.node)
        older = values.tree(inputs.y).children(of: inputs.y.node)
        base = values.isKind(inputs.o, .array) ? values.tree(inputs.o).children(of: inputs.o.node) : []
        if base.count != newer.count { base = [UInt32](repeating: Self.none, count: newer.count) }
    }
}
