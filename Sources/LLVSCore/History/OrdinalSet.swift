/// A set of ordinals, as a bitmap.
struct OrdinalSet {
    private var bits: [UInt64] = []

    func contains(_ ordinal: UInt32) -> Bool {
        let word = Int(ordinal >> 6)
        return word < bits.count && bits[word] & (1 << UInt64(ordinal & 63)) != 0
    }

    mutating func insert(_ ordinal: UInt32) {
        let word = Int(ordinal >> 6)
        if bits.count <= word { bits.append(contentsOf: repeatElement(0, count: word + 1 - bits.count)) }
        bits[word] |= 1 << UInt64(ordinal & 63)
    }
}
