/// The elements of an array, in their order.
struct ElementNodes {
    let count: Int
    private let first: UInt32
    /// Empty where each is of one word: then its place tells its node.
    private let list: [UInt32]

    /// None.
    init() { (count, first, list) = (0, 0, []) }

    /// The elements at these nodes.
    init(_ list: [UInt32]) { (count, first, self.list) = (list.count, 0, list) }

    init(_ tree: JSONTree, of array: UInt32) {
        let end = tree.next(array)
        first = array + JSONTree.containerSize
        var i = first, count = 0
        while i < end { i = tree.next(i); count += 1 }
        self.count = count
        list = Int(end - first) == count ? [] : tree.children(of: array, count: count)
    }

    @inline(__always)
    subscript(_ i: Int) -> UInt32 { list.isEmpty ? first + UInt32(truncatingIfNeeded: i) : list[i] }
}
