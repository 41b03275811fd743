/// A list of values, each in four bytes: five bits for its tree, and its node.
struct ValueRefs {
    private static let nodeBits: UInt32 = 27
    private static let computed: UInt32 = 29, other: UInt32 = 30
    private static let none = UInt32.max

    private var words: [UInt32] = []
    /// Values of trees with larger numbers, which apps answered.
    private var others: [ValueRef] = []

    init() {}

    init(_ refs: some Sequence<ValueRef>) { for ref in refs { append(ref) } }

    /// The values of another list at some indexes. Reuses the memory of `places`.
    init(of all: ValueRefs, taking places: inout [UInt32]) {
        swap(&words, &places)
        others = all.others
        for i in words.indices { words[i] = all.words[Int(words[i])] }
    }

    var count: Int { words.count }
    mutating func reserve(_ count: Int) { words.reserveCapacity(count) }

    /// Removes all values. Retains a small buffer, unless it is shared.
    mutating func empty() {
        if words.capacity <= 16 { words.removeAll(keepingCapacity: true) } else { words = [] }
        if !others.isEmpty { others = [] }
    }

    @inline(__always)
    mutating func append(_ ref: ValueRef) {
        if ref.isAbsent {
            words.append(Self.none)
        } else if ref.isComputed {
            words.append(Self.computed << Self.nodeBits | ref.node)
        } else if ref.tree < Self.computed {
            words.append(ref.tree << Self.nodeBits | ref.node)
        } else {
            words.append(Self.other << Self.nodeBits | UInt32(truncatingIfNeeded: others.count))
            others.append(ref)
        }
    }

    @inline(__always)
    func isAbsent(_ i: Int) -> Bool { words[i] == Self.none }

    subscript(_ i: Int) -> ValueRef {
        let word = words[i], tree = word >> Self.nodeBits, node = word & (1 << Self.nodeBits - 1)
        if word == Self.none { return .absent }
        if tree < Self.computed { return ValueRef(tree: tree, node: node) }
        return tree == Self.computed ? ValueRef(tree: ValueRef.computedTree, node: node) : others[Int(node)]
    }
}
