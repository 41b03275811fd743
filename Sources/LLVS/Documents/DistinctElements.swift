/// Finds out whether any two of very many elements are equal. Most often none are: then two bits by digest tell that of most elements, and
/// only the others get into a table.
struct DistinctElements {
    /// Bits for each element: of so many elements one is met by chance.
    private static let bits = 16

    private let mask: UInt32
    /// By digest: whether an element was met, and whether a second one was.
    private var met: TokenBits, metAgain: TokenBits
    private var digests: [UInt32] = []
    /// The elements whose digests were met before.
    private var again: ElementKeys

    /// - Parameter count: how many elements there are at most.
    init(_ values: DocumentValues, atMost count: Int) throws {
        var size = 1 << 10
        while size < Self.bits * count, size < 1 << 31 { size *= 2 }
        try Memory.expect(size / 4 + 4 * count, "Merging a list")
        mask = UInt32(truncatingIfNeeded: size - 1)
        met = TokenBits(count: size)
        metAgain = TokenBits(count: size)
        digests.reserveCapacity(count)
        again = ElementKeys(values, declared: nil, usesID: true, atMost: 0)
    }

    /// Adds an element.
    /// - Parameter digest: of all it is.
    /// - Returns: false if it is known already that it equals one before.
    mutating func add(_ element: ValueRef, _ digest: UInt32) throws -> Bool {
        digests.append(digest)
        let place = Int(digest & mask)
        guard met[place] else {
            met[place] = true
            return true
        }
        metAgain[place] = true
        let count = again.count
        _ = try again.number(of: element)
        return again.count > count
    }

    /// Whether all elements differ, after all were added.
    /// - Parameters:
    ///   - places: of the elements, in the order in which they were added.
    ///   - element: the element at a place.
    func areDistinct(_ places: [Range<Int>], _ element: (Int) -> ValueRef) throws -> Bool {
        if again.count == 0 { return true }
        // Each element of the table is found once. If another one is found, it equals one of these.
        var found = 0, next = 0
        for range in places {
            for (digest, place) in zip(digests[next..<next + range.count], range) where metAgain[Int(digest & mask)] {
                if try again.find(like: element(place)).isKnown { found += 1 }
            }
            next += range.count
        }
        return found == again.count
    }
}
