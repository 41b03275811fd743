/// Checks whether any two of very many elements are equal. Mostly none are: then two bits by digest prove this for most elements, and
/// only the others get into a table.
struct DistinctElements {
    /// The bits of the table for each element: about one element in 16 collides by chance.
    private static let bits = 16

    private let mask: UInt32
    /// By digest: whether one element had it, and whether a second one had it.
    private var met: TokenBits, metAgain: TokenBits
    private var digests: [UInt32] = []
    /// The elements whose digests occurred before.
    private var again: ElementKeys

    /// - Parameter count: the maximum number of elements.
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
    /// - Parameter digest: the digest of the whole element.
    /// - Returns: false if it is certain already that an earlier element is equal.
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

    /// Returns whether all elements differ. Call it after all were added.
    /// - Parameters:
    ///   - places: the places of the elements, in the order in which they were added.
    ///   - element: returns the element at a place.
    func areDistinct(_ places: [Range<Int>], _ element: (Int) -> ValueRef) throws -> Bool {
        if again.count == 0 { return true }
        // Each element of the table is found once. A further find is an element that equals one of them.
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
