extension Array {
    /// The number of elements that are sorted or merged between two checks.
    private static var stretch: Int { 16_384 }

    /// Returns the elements sorted, for lists of any length. O(n log n): stretches are sorted, and then merged.
    /// - Parameter look: called between stretches. It may throw to end the work.
    @_specialize(where Element == VersionID) // for exchanges, which are in another module
    package func sorted(by isBefore: (Element, Element) -> Bool, looking look: () throws -> Void) rethrows -> [Element] {
        var from: [Element] = []
        from.reserveCapacity(count)
        for start in stride(from: 0, to: count, by: Self.stretch) {
            if start > 0 { try look() }
            from += self[start..<Swift.min(count, start + Self.stretch)].sorted(by: isBefore)
        }
        var width = Self.stretch
        while width < count {
            var merged: [Element] = []
            merged.reserveCapacity(count)
            for start in stride(from: 0, to: count, by: 2 * width) {
                var i = start, j = Swift.min(count, start + width)
                let middle = j, end = Swift.min(count, start + 2 * width)
                while i < middle || j < end {
                    let isLeft = j == end || (i < middle && !isBefore(from[j], from[i]))
                    merged.append(from[isLeft ? i : j])
                    if isLeft { i += 1 } else { j += 1 }
                    if merged.count % Self.stretch == 0 { try look() }
                }
            }
            from = merged
            width *= 2
        }
        return from
    }
}
