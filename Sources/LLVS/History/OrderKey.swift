/// What a version is put in order by: by generation, so that it comes after its predecessors, then canonically.
struct OrderKey {
    let generation: UInt32
    let timestamp: Double
    let id: VersionID
    let ordinal: UInt32

    static func isBefore(_ a: OrderKey, _ b: OrderKey) -> Bool {
        if a.generation != b.generation { return a.generation < b.generation }
        return a.timestamp != b.timestamp ? a.timestamp < b.timestamp : a.id < b.id
    }
}

extension History {
    /// To be put in order when the lock is not held any more.
    func orderKeys(_ ordinals: [UInt32]) -> [OrderKey] {
        ordinals.map { OrderKey(generation: rows[Int($0)].generation, timestamp: rows[Int($0)].timestamp, id: id($0), ordinal: $0) }
    }
}

extension [OrderKey] {
    /// So many are sorted or merged between two looks.
    private static var stretch: Int { 16_384 }

    /// In order. O(n log n): stretches are sorted, and then merged.
    /// - Parameter look: called between stretches; what it throws ends the work.
    func sorted(looking look: () throws -> Void) rethrows -> [OrderKey] {
        var from: [OrderKey] = []
        from.reserveCapacity(count)
        for start in stride(from: 0, to: count, by: Self.stretch) {
            if start > 0 { try look() }
            from += self[start..<Swift.min(count, start + Self.stretch)].sorted(by: OrderKey.isBefore)
        }
        var width = Self.stretch
        while width < count {
            var merged: [OrderKey] = []
            merged.reserveCapacity(count)
            for start in stride(from: 0, to: count, by: 2 * width) {
                var i = start, j = Swift.min(count, start + width)
                let middle = j, end = Swift.min(count, start + 2 * width)
                while i < middle || j < end {
                    if j == end || (i < middle && !OrderKey.isBefore(from[j], from[i])) { merged.append(from[i]); i += 1 } else { merged.append(from[j]); j += 1 }
                    if merged.count % Self.stretch == 0 { try look() }
                }
            }
            from = merged
            width *= 2
        }
        return from
    }
}
