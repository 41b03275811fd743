/// Lists of a few elements that no side moved, inserted or removed. There may be very many, so they are merged without the tables that
/// longer lists need.
enum ShortLists {
    static let most = 4

    /// The key of an element.
    enum Known {
        /// The element itself, in the base, and its index.
        case value(ValueRef, place: Int)
        /// The element's `id`, and the number of elements before it with the same `id`.
        case id(ValueRef, occurrence: Int)
    }

    private static let name = Array("id".utf8)

    /// Returns the `id` of an element; nil if it has none, and is its own key.
    static func id(of element: ValueRef, _ values: DocumentValues) -> ValueRef? {
        let tree = values.tree(element)
        guard tree.kind(element.node) == .object, let id = name.withUnsafeBytes({ tree.member($0, of: element.node) }) else { return nil }
        return tree.kind(id) == .string || tree.kind(id) == .number ? ValueRef(tree: element.tree, node: id) : nil
    }

    /// - Parameters:
    ///   - element: an element of the base.
    ///   - place: its index in its list.
    static func known(_ element: ValueRef, at place: Int, in list: UInt32, _ values: DocumentValues) throws -> Known {
        guard let id = id(of: element, values) else { return .value(element, place: place) }
        // The key is reported in the spelling of the first element.
        let tree = values.tree(element)
        var first: ValueRef?, occurrence = 0, other = list + JSONTree.containerSize
        while other < element.node {
            if let its = Self.id(of: ValueRef(tree: element.tree, node: other), values), try values.same(its, id) {
                first = first ?? its
                occurrence += 1
            }
            other = tree.next(other)
        }
        return .id(first ?? id, occurrence: occurrence)
    }

    /// Returns whether every element of a list is its own key.
    static func isPlain(_ list: ValueRef, _ values: DocumentValues) throws -> Bool {
        let tree = values.tree(list), end = tree.next(list.node)
        var i = list.node + JSONTree.containerSize, count = 0
        while i < end {
            if id(of: ValueRef(tree: list.tree, node: i), values) != nil { return false }
            i = tree.next(i)
            count += 1
        }
        try values.work.done(count)
        return true
    }

    /// Returns whether all three are arrays of plain values.
    static func areRows(_ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ values: DocumentValues) throws -> Bool {
        for row in [o, x, y] { guard values.isKind(row, .array), try isPlain(row, values) else { return false } }
        return true
    }

    /// Returns whether three lists are short, equally long, and have at each place the same key or elements to pair: elements without a
    /// key, gone from both sides, and replaced by elements that are nowhere else. Excludes lists of plain values with equal elements,
    /// since those are merged by place.
    /// - Returns: the paired elements, in bits, and whether every element is its own key; nil if the lists are not such lists.
    static func aligned(
        _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ values: DocumentValues
    ) throws -> (paired: UInt8, isOfPlain: Bool)? {
        let b = values.tree(o), p = values.tree(x), q = values.tree(y)
        let ends = (b.next(o.node), p.next(x.node), q.next(y.node)), first = JSONTree.containerSize
        var (i, j, k) = (o.node + first, x.node + first, y.node + first), count = 0
        // The paired elements, in bits. The kinds of the elements so far, while each has another kind that is the same on all sides.
        var paired: UInt8 = 0, kinds: UInt8 = 0, areTold = true, isOfPlain = true
        while j < ends.1 {
            guard i < ends.0, k < ends.2, count < most else { return nil }
            let before = ValueRef(tree: o.tree, node: i), one = ValueRef(tree: x.tree, node: j), other = ValueRef(tree: y.tree, node: k)
            let ids = (id(of: before, values), id(of: one, values), id(of: other, values))
            if let id = ids.0 {
                isOfPlain = false
                guard let newer = ids.1, let older = ids.2, try values.same(newer, id), try values.same(older, id) else { return nil }
            } else {
                guard ids.1 == nil, ids.2 == nil else { return nil }
                let stays = try (values.same(one, before), values.same(other, before))
                guard stays.0 == stays.1 else { return nil }
                if !stays.0 { paired |= 1 << UInt8(count) }
            }
            let kind = b.kind(i), bit: UInt8 = 1 << kind.rawValue
            areTold = areTold && kinds & bit == 0 && p.kind(j) == kind && q.kind(k) == kind
            kinds |= bit
            // (Since every kind occurs once, no other element can be equal.)
            if areTold, paired >> UInt8(count) & 1 != 0, try values.same(one, other) { return nil }
            (i, j, k) = (b.next(i), p.next(j), q.next(k))
            count += 1
        }
        guard i == ends.0, k == ends.2 else { return nil }
        // (Paired elements are known to differ from the base's.)
        guard paired != 0 else { return (0, isOfPlain) }
        if areTold { return (paired, isOfPlain) }
        let areAlone =
            try areApart(o, x, paired, values, known: true) && areApart(o, y, paired, values, known: true)
            && areApart(x, y, paired, values, known: false)
        guard areAlone else { return nil }
        guard isOfPlain else { return try areDistinct(o, values, among: paired) ? (paired, false) : nil }
        return try areDistinct(o, values) && areDistinct(x, values) && areDistinct(y, values) ? (paired, true) : nil
    }

    /// Returns whether no paired element of one list is in the other, and vice versa.
    /// - Parameter known: whether elements at the same place are known to differ. Then they are not compared.
    private static func areApart(
        _ a: ValueRef, _ b: ValueRef, _ paired: UInt8, _ values: DocumentValues, known: Bool
    ) throws -> Bool {
        let p = values.tree(a), q = values.tree(b), end = p.next(a.node), otherEnd = q.next(b.node)
        var i = a.node + JSONTree.containerSize, bit: UInt8 = 1
        while i < end {
            var j = b.node + JSONTree.containerSize, other: UInt8 = 1
            while j < otherEnd {
                // Most differ in their kind.
                if paired & (bit | other) != 0, !(known && bit == other), p.kind(i) == q.kind(j),
                    try values.same(ValueRef(tree: a.tree, node: i), ValueRef(tree: b.tree, node: j))
                {
                    return false
                }
                j = q.next(j)
                other <<= 1
            }
            i = p.next(i)
            bit <<= 1
        }
        return true
    }

    /// Returns whether no two elements of a list are equal.
    /// - Parameter some: only among these elements, in bits; nil for all.
    static func areDistinct(_ list: ValueRef, _ values: DocumentValues, among some: UInt8? = nil) throws -> Bool {
        let tree = values.tree(list), end = tree.next(list.node)
        var i = list.node + JSONTree.containerSize, bit: UInt8 = 1
        while i < end {
            var j = tree.next(i), other = bit << 1
            while j < end {
                let areAmong = some.map { $0 & bit != 0 && $0 & other != 0 } ?? true
                if areAmong, tree.kind(i) == tree.kind(j),
                    try values.same(ValueRef(tree: list.tree, node: i), ValueRef(tree: list.tree, node: j))
                {
                    return false
                }
                j = tree.next(j)
                other <<= 1
            }
            i = tree.next(i)
            bit <<= 1
        }
        return true
    }
}
