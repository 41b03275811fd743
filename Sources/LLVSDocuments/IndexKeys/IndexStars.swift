/// The structure of the stars in the pointers of an index. Pointers that are equal up to and including a star share it.
struct IndexStars: Sendable {
    /// A star.
    struct Star: Sendable {
        /// The star whose elements contain its container; nil: the value itself does. It has a lower number.
        let parent: Int?
        /// The path from there to the container.
        let path: [[UInt8]]
    }
    /// A part of the key.
    struct Part: Sendable {
        /// The star whose elements contain it; nil: the value itself does.
        let star: Int?
        /// The path from there to the scalar.
        let path: [[UInt8]]
    }

    let stars: [Star]
    let parts: [Part]

    init(_ on: [[IndexDefinition.IndexSegment]]) {
        var stars: [Star] = [], numbers: [[IndexDefinition.IndexSegment]: Int] = [:], parts: [Part] = []
        for pointer in on {
            var star: Int?, path: [[UInt8]] = []
            for (i, segment) in pointer.enumerated() {
                guard case .each = segment else {
                    if case .name(let name) = segment { path.append(name) }
                    continue
                }
                let whole = Array(pointer[...i])
                if let known = numbers[whole] {
                    star = known
                } else {
                    stars.append(Star(parent: star, path: path))
                    star = stars.count - 1
                    numbers[whole] = star
                }
                path = []
            }
            parts.append(Part(star: star, path: path))
        }
        self.stars = stars
        self.parts = parts
    }
}
