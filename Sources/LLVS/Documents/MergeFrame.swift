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
    /// What came of each child.
    private(set) var results = ValueRefs()
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
    func reserve(_ count: Int) { results.reserve(count) }

    @inline(__always)
    func deliver(_ result: ValueRef) { results.append(result) }

    @inline(__always)
    func isAbsent(_ i: Int) -> Bool { results.isAbsent(i) }

    func result(_ i: Int) -> ValueRef { results[i] }

    /// Delivers what came of elements of a list from the next one on, as far as where they are tells it: those of one value are the same
    /// on all sides, so what one side removed is gone, and what it added is there.
    func deliverTold(_ list: ListAlignment) {
        let count = count
        while results.count < count, list.isTold(results.count) {
            let i = results.count, isBoth = newer[i] != Self.none && older[i] != Self.none
            if i < list.base.count { deliver(isBoth ? y(i) : .absent) } else { deliver(newer[i] != Self.none ? x(i) : y(i)) }
        }
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
        results = ValueRefs()
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
            results.reserve(count)
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
        results.reserve(count)
    }

    // MARK: Tuples

    func openSlots(_ values: DocumentValues) {
        newer = values.tree(inputs.x).children(of: inputs.x.node)
        older = values.tree(inputs.y).children(of: inputs.y.node)
        base = values.isKind(inputs.o, .array) ? values.tree(inputs.o).children(of: inputs.o.node) : []
        if base.count != newer.count { base = [UInt32](repeating: Self.none, count: newer.count) }
    }
}
