/// The names of members during parsing.
struct NameTexts {
    let words: UnsafeMutablePointer<UInt32>?
    let bytes: UnsafeRawPointer?
    let decoded: UnsafeMutableRawPointer?

    @inline(__always)
    subscript(_ name: UInt32) -> UnsafeRawBufferPointer {
        guard let words else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let word = words[Int(name)]
        guard let base = JSONCode.isEscaped(word >> 26) ? UnsafeRawPointer(decoded) : bytes else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base + Int(word & JSONTree.startMask), count: Int(words[Int(name) + 1]))
    }
}

/// Checks whether names are distinct.
struct DistinctNames {
    /// Each slot has the node of a name in the lower half and the upper half of its hash. An empty slot is 0, since a name is never node
    /// 0.
    private var slots: [UInt64] = []
    private var touched: UInt64 = 0
    /// The number of slots that are fetched at once, so that the cache misses overlap.
    private static let batch = 16

    /// Returns whether no two names of an object are equal.
    /// - Parameters:
    ///   - first: its first name; `end` is behind its last member.
    ///   - count: the number of its members.
    mutating func areDistinct(_ tree: JSONTree, from first: UInt32, to end: UInt32, count: Int, _ texts: NameTexts) -> Bool {
        var size = 16
        while size < 2 * count { size *= 2 }
        if slots.count < size { slots = [UInt64](repeating: 0, count: size) } else { for i in 0..<size { slots[i] = 0 } }
        let mask = size - 1, seed = ValueDigest.seed
        var seen: UInt64 = 0
        defer { touched = seen }
        return slots.withUnsafeMutableBufferPointer { slots in
            withUnsafeTemporaryAllocation(of: (name: UInt32, hash: UInt64).self, capacity: Self.batch) { some in
                var i = first
                while i < end {
                    var n = 0
                    while n < Self.batch, i < end {
                        let text = texts[i], hash = text.baseAddress.map { ValueDigest.of(word: $0, text.count, seed) } ?? 0
                        some[n] = (i, hash)
                        seen |= slots[Int(truncatingIfNeeded: hash) & mask]
                        n += 1
                        i = tree.next(i + JSONTree.nameSize)
                    }
                    for k in 0..<n {
                        let (name, hash) = some[k]
                        var slot = Int(truncatingIfNeeded: hash) & mask
                        while slots[slot] != 0 {
                            if slots[slot] >> 32 == hash >> 32, Bytes.equal(texts[UInt32(truncatingIfNeeded: slots[slot])], texts[name]) {
                                return false
                            }
                            slot = (slot + 1) & mask
                        }
                        slots[slot] = (hash & ~0xFFFF_FFFF) | UInt64(name)
                    }
                }
                return true
            }
        }
    }
}
