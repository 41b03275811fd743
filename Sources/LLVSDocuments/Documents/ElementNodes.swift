/// The elements of an array, in their order.
struct ElementNodes {
    let count: Int
    private let first: UInt32
    /// The number of words of each element, if all have the same. Then the nodes are computed and not listed.
    private let size: UInt32
    private let list: [UInt32]

    /// Creates an empty list of elements.
    init() { (count, first, size, list) = (0, 0, 0, []) }

    /// The elements at the given nodes.
    init(_ list: [UInt32]) { (count, first, size, self.list) = (list.count, 0, 0, list) }

    init(_ tree: JSONTree, of array: UInt32) {
        let end = tree.next(array)
        first = array + JSONTree.containerSize
        var i = first, count = 0
        let size = first < end ? tree.next(first) - first : 0
        var areAlike = true
        while i < end {
            let next = tree.next(i)
            areAlike = areAlike && next - i == size
            i = next
            count += 1
        }
        self.count = count
        self.size = size
        list = areAlike ? [] : tree.children(of: array, count: count)
    }

    @inline(__always)
    subscript(_ i: Int) -> UInt32 { list.isEmpty ? first + size * UInt32(truncatingIfNeeded: i) : list[i] }
}
