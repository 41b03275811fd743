/// The levels on which the last differences between containers of two inputs were found.
struct KnownDifference {
    struct Level {
        var node: UInt32
        var other: UInt32
    }

    /// The levels of the last difference, outermost first, and the end of the outermost. `inner`: the levels of the last difference
    /// inside one of those.
    private var outer: [Level] = [], inner: [Level] = []
    private var end: UInt32 = 0
    /// The last container that was too large to compare in few steps.
    var tooMuch: (node: UInt32, end: UInt32) = (0, 0)

    mutating func add(_ levels: [Level], end: UInt32) {
        if let first = outer.first, levels[0].node > first.node, levels[0].node < self.end {
            inner = levels
        } else {
            (outer, inner) = (levels, [])
            self.end = end
        }
    }

    /// Where a level was last found in each array. Merging queries one level after the other.
    private var outerPlace = 0, innerPlace = 0

    mutating func contains(_ node: UInt32, _ other: UInt32) -> Bool {
        Self.contains(outer, node, other, &outerPlace) || Self.contains(inner, node, other, &innerPlace)
    }

    private static func contains(_ levels: [Level], _ node: UInt32, _ other: UInt32, _ place: inout Int) -> Bool {
        var low = 0, high = levels.count
        for i in place..<max(place, min(place + 2, high)) where levels[i].node == node {
            place = i
            return levels[i].other == other
        }
        while low < high {
            let middle = (low + high) / 2
            if levels[middle].node < node { low = middle + 1 } else { high = middle }
        }
        guard low < levels.count, levels[low].node == node else { return false }
        place = low
        return levels[low].other == other
    }

    /// Returns whether it is the container that is known to be too large, or most of it.
    func isTooMuch(_ node: UInt32, _ end: UInt32) -> Bool {
        node >= tooMuch.node && end <= tooMuch.end && 2 * (end - node) >= tooMuch.end - tooMuch.node
    }
}

/// A range in which two texts were found to be equal, so that nested containers are not compared again on each level.
struct AlikeTexts {
    /// The shift of the other text, and the range of the first text in which both are equal.
    private var shift = Int.min, from = 0, to = 0
    private static let piece = 1 << 10

    /// Returns whether two containers of equal size, which begin at these places of their texts, have the same bytes.
    /// - Returns: also how many bytes were compared.
    mutating func areSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, _ start: Int, _ other: Int) -> (Bool, compared: Int) {
        if other - start == shift, start >= from, start < to { return (start + a.count <= to, 0) }
        guard let p = a.baseAddress, let q = b.baseAddress else { return (a.count == b.count, 0) }
        var same = 0
        while same + Self.piece <= a.count, memcmp(p + same, q + same, Self.piece) == 0 { same += Self.piece }
        same += Bytes.common(UnsafeRawBufferPointer(rebasing: a[same...].prefix(Self.piece)), 0, b, same)
        (shift, from, to) = (other - start, start, start + same)
        return (same == a.count, same)
    }
}
