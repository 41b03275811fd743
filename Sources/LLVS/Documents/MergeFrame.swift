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
    /// Of each child the node in each input, or `none`.
    var base: [UInt32] = []
    var newer: [UInt32] = []
    var older: [UInt32] = []
    private(set) var results: [ValueRef] = []
    /// What the value stands for where neither side has it.
    var stand: ValueRef?

    init(_ shape: Shape, _ inputs: RecordDraft.Inputs, _ place: DocumentMergeRun.Place) {
        self.shape = shape
        self.inputs = inputs
        self.place = place
    }

    var state: Int { inputs.state }
    var count: Int { base.count }
    var next: Int { results.count }
    func deliver(_ result: ValueRef) { results.append(result) }
    func reserve(_ count: Int) { results.reserveCapacity(count) }

    @inline(__always)
    private func ref(_ container: ValueRef, _ node: UInt32) -> ValueRef {
        node == Self.none ? .absent : ValueRef(tree: container.tree, node: node)
    }
    func o(_ i: Int) -> ValueRef { ref(inputs.o, base[i]) }
    func x(_ i: Int) -> ValueRef { ref(inputs.x, newer[i]) }
    func y(_ i: Int) -> ValueRef { ref(inputs.y, older[i]) }

    /// The name of a member: it stands before its value.
    func name(_ i: Int) -> ValueRef {
        let value = newer[i] != Self.none ? x(i) : older[i] != Self.none ? y(i) : o(i)
        return ValueRef(tree: value.tree, node: value.node &- 1)
    }

    /// Everything was delivered, and nobody asks for the children any more.
    func close() { (base, newer, older) = ([], [], []) }

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
            if !p.isSorted(x.node) {
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
            if i < left.count { look(p.text(left[i] - 1)) }
            if j < right.count { look(q.text(right[j] - 1)) }
            if k < middle.count { look(b.text(middle[k] - 1)) }
            var child = (o: Self.none, x: Self.none, y: Self.none)
            if i < left.count, Bytes.equal(p.text(left[i] - 1), least) { child.x = left[i]; i += 1 }
            if j < right.count, Bytes.equal(q.text(right[j] - 1), least) { child.y = right[j]; j += 1 }
            if k < middle.count, Bytes.equal(b.text(middle[k] - 1), least) { child.o = middle[k]; k += 1 }
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
