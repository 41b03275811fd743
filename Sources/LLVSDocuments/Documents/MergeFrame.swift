/// A container during its merge: its children, and their results so far.
final class MergeFrame {
    enum Shape {
        case object, tuple
        /// Nested containers, each with one differing child, merged as one.
        case chain(MergeChain)
        case list(ListAlignment)
        /// A list of few elements that no side moved, except paired ones (in bits), and whether all elements are their own keys.
        case elements(paired: UInt8, isOfPlain: Bool)
        case set(SetPlan)
    }

    static let none = UInt32.max

    @exclusivity(unchecked) private(set) var shape = Shape.object
    @exclusivity(unchecked) private(set) var inputs = RecordDraft.Inputs(o: .absent, x: .absent, y: .absent, state: RuleStates.none)
    @exclusivity(unchecked) private(set) var place = DocumentMergeRun.Place()
    /// For each child, its node in each input, or `none`. For lists, its place in each side.
    @exclusivity(unchecked) var base: [UInt32] = []
    @exclusivity(unchecked) var newer: [UInt32] = []
    @exclusivity(unchecked) var older: [UInt32] = []
    @exclusivity(unchecked) private var list: ListAlignment?
    /// The result of each child.
    @exclusivity(unchecked) private(set) var results = ValueRefs()
    /// The number of its own place, and its index among the frames of places, if records name places in it.
    @exclusivity(unchecked) var keptPlace: UInt32?
    /// The least size of the path of its place in bytes.
    @exclusivity(unchecked) var pathSize = 0
    @exclusivity(unchecked) var holder: UInt32?
    /// The stand-in for a value that neither side has.
    @exclusivity(unchecked) var stand: ValueRef?
    /// Whether the edit that created the value is undone, while later edits changed it. The value stays, but its counters lose their start.
    @exclusivity(unchecked) var givesBack = false
    /// Children that are known to differ on all three sides, in bits.
    @exclusivity(unchecked) private(set) var differing: UInt8 = 0

    /// Begins another container. Frames are reused, since there may be very many containers.
    func begin(_ shape: Shape, _ inputs: RecordDraft.Inputs, _ place: DocumentMergeRun.Place) {
        self.shape = shape
        self.inputs = inputs
        self.place = place
        (keptPlace, pathSize, holder, stand, givesBack, differing) = (nil, 0, nil, nil, false, 0)
        if case .list(let plan) = shape { list = plan } else { list = nil }
    }

    var isObject: Bool { if case .object = shape { true } else { false } }
    /// Whether it is a list.
    var isOfElements: Bool {
        switch shape {
        case .list, .elements: true
        default: false
        }
    }
    /// Whether it is a list in which every element is its own key.
    var isOfPlain: Bool {
        switch shape {
        case .list(let plan): plan.isOfPlain
        case .elements(_, let isOfPlain): isOfPlain
        default: false
        }
    }
    var state: Int { Int(inputs.state) }
    var count: Int { list?.keyCount ?? base.count }
    var next: Int { results.count }
    func reserve(_ count: Int) { results.reserve(count) }

    @inline(__always)
    func deliver(_ result: ValueRef) { results.append(result) }

    @inline(__always)
    func isAbsent(_ i: Int) -> Bool { results.isAbsent(i) }

    func result(_ i: Int) -> ValueRef { results[i] }

    /// Delivers the results of elements of a list that need no merge.
    func deliverTold(_ list: ListAlignment) { list.deliverTold(to: self, &results) }

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

    /// Returns a member of an object in the base, the newer or the older side.
    @inline(__always)
    func member(_ i: Int, _ side: Int) -> ValueRef {
        switch side {
        case 0: ref(inputs.o, base[i])
        case 1: ref(inputs.x, newer[i])
        case 2: ref(inputs.y, older[i])
        default: .absent
        }
    }

    /// Returns the name of a member, which precedes its value.
    func name(_ i: Int) -> ValueRef {
        let value = newer[i] != Self.none ? x(i) : older[i] != Self.none ? y(i) : o(i)
        return ValueRef(tree: value.tree, node: value.node &- JSONTree.nameSize)
    }

    /// Ends the frame for reuse. Retains small buffers.
    func end() {
        (shape, list, place) = (.object, nil, DocumentMergeRun.Place())
        func empty(_ nodes: inout [UInt32]) {
            if nodes.capacity <= 16 { nodes.removeAll(keepingCapacity: true) } else { nodes = [] }
        }
        empty(&base)
        empty(&newer)
        empty(&older)
        results.empty()
    }

    /// Releases the children. Every result was delivered, and no child will be read.
    func closeChildren() { (base, newer, older) = ([], [], []) }
    /// Releases the children and their results.
    func close() {
        closeChildren()
        results = ValueRefs()
    }

    /// Returns the name of a member from the side that has its result, so that adjacent bytes are copied at once.
    func name(_ i: Int, of result: ValueRef) -> ValueRef {
        if result.tree == inputs.y.tree && result.node == older[i] || result.tree == inputs.o.tree && result.node == base[i] {
            return ValueRef(tree: result.tree, node: result.node &- JSONTree.nameSize)
        }
        return name(i)
    }

    // MARK: Objects

    /// Computes the union of the members of all three, in the order of their names.
    func openMembers(_ values: DocumentValues) throws {
        let (o, x, y) = (inputs.o, inputs.x, inputs.y)
        let p = values.tree(x), q = values.tree(y)
        let hasBase = values.isKind(o, .object), b = hasBase ? values.tree(o) : p
        var left = p.children(of: x.node), right = q.children(of: y.node), middle = hasBase ? b.children(of: o.node) : []
        let agree = MemberOrder.agrees(left, p, right, q) && (!hasBase || MemberOrder.agrees(left, p, middle, b))
        if agree {
            // Mostly, all three have the same names in the same order. Then sort once.
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
        // Words of the names at the offset where any two begin to differ.
        var offset = Int.max, example: UnsafeRawBufferPointer?
        for (tree, ref, members) in [(p, x, left), (q, y, right), (b, o, middle)] {
            guard let first = members.first, let last = members.last else { continue }
            // The members are sorted, so the common prefix of the first and the last name is common to all.
            let alike =
                tree.isSorted(ref.node)
                ? MemberOrder.common(tree.name(of: first), tree.name(of: last)) : MemberOrder.shared(members[...], in: tree)
            offset = min(offset, alike)
            offset = example.map { min(offset, MemberOrder.common(tree.name(of: first), $0)) } ?? offset
            example = tree.name(of: first)
        }
        func ordered(_ members: inout [UInt32], _ ref: ValueRef, _ tree: JSONTree) throws -> [MemberOrder.Named] {
            var named = MemberOrder.named(members[...], in: tree, from: offset, notesSizes: true)
            members = []
            if !named.isEmpty, !tree.isSorted(ref.node) { try MemberOrder.sort(&named, offset, in: tree, values.work) }
            return named
        }
        let xs = try ordered(&left, x, p), ys = try ordered(&right, y, q), os = try ordered(&middle, o, b)
        let most = max(xs.count, ys.count, os.count)
        base.reserveCapacity(most)
        newer.reserveCapacity(most)
        older.reserveCapacity(most)
        /// Compares two names: below 0, 0 or above 0.
        func compare(_ a: MemberOrder.Named, _ s: JSONTree, _ b: MemberOrder.Named, _ t: JSONTree) -> Int {
            if a.word != b.word { return a.word < b.word ? -1 : 1 }
            // The words of short names have the whole rest, padded with zeros.
            if max(a.note, b.note) <= offset &+ 8 { return Int(a.note) - Int(b.note) }
            return Bytes.compare(s.name(of: a.node), t.name(of: b.node))
        }
        var i = 0, j = 0, k = 0
        while i < xs.count || j < ys.count || k < os.count {
            // The least name: the sides that have it, in bits, and its member on one of these sides.
            var have = 0, least = MemberOrder.Named(word: 0, node: 0, note: 0), tree = p
            if i < xs.count { (have, least) = (1, xs[i]) }
            if j < ys.count {
                let order = have == 0 ? -1 : compare(ys[j], q, least, tree)
                if order < 0 { (have, least, tree) = (2, ys[j], q) } else if order == 0 { have |= 2 }
            }
            if k < os.count {
                let order = have == 0 ? -1 : compare(os[k], b, least, tree)
                if order < 0 { (have, least, tree) = (4, os[k], b) } else if order == 0 { have |= 4 }
            }
            newer.append(have & 1 != 0 ? xs[i].node : Self.none)
            older.append(have & 2 != 0 ? ys[j].node : Self.none)
            base.append(have & 4 != 0 ? os[k].node : Self.none)
            i += have & 1
            j += have >> 1 & 1
            k += have >> 2
        }
        try values.work.done(count)
        results.reserve(count)
    }

    /// Returns the side that has exactly the results, so that its bytes are written.
    func sideThatStands(_ values: DocumentValues) -> ValueRef? {
        func stands(_ side: ValueRef, _ nodes: [UInt32]) -> Bool {
            nodes.indices.allSatisfy { values.areWrittenAlike(results[$0], ref(side, nodes[$0])) }
        }
        return stands(inputs.x, newer) ? inputs.x : stands(inputs.y, older) ? inputs.y : nil
    }

    func isKnownToDiffer(_ i: Int) -> Bool { differing != 0 && i < 8 && differing >> UInt8(i) & 1 != 0 }

    func open(_ chain: MergeChain) {
        differing = 1
        (base, newer, older) = ([chain.base], [chain.newer], [chain.older])
    }

    // MARK: Short lists

    /// - Parameter differing: the paired elements, in bits.
    func openElements(_ values: DocumentValues, differing: UInt8) {
        self.differing = differing
        values.tree(inputs.o).appendChildren(of: inputs.o.node, to: &base)
        values.tree(inputs.x).appendChildren(of: inputs.x.node, to: &newer)
        values.tree(inputs.y).appendChildren(of: inputs.y.node, to: &older)
    }

    /// The elements of the result.
    var elements: ValueRefs {
        for i in 0..<results.count where results.isAbsent(i) {
            return ValueRefs((0..<results.count).lazy.filter { !self.results.isAbsent($0) }.map { self.results[$0] })
        }
        return results
    }

    // MARK: Tuples

    func openSlots(_ values: DocumentValues) {
        newer = values.tree(inputs.x).children(of: inputs.x.node)
        older = values.tree(inputs.y).children(of: inputs.y.node)
        base = values.isKind(inputs.o, .array) ? values.tree(inputs.o).children(of: inputs.o.node) : []
        if base.count != newer.count { base = [UInt32](repeating: Self.none, count: newer.count) }
    }
}
