/// A flag for each token of a text.
struct TokenBits {
    private var words: [UInt64]

    /// None is set.
    init(count: Int) { words = [UInt64](repeating: 0, count: (count + 63) / 64) }

    @inline(__always)
    subscript(_ i: Int) -> Bool {
        get { words[i >> 6] >> UInt64(i & 63) & 1 != 0 }
        set { if newValue { words[i >> 6] |= 1 << UInt64(i & 63) } else { words[i >> 6] &= ~(1 << UInt64(i & 63)) } }
    }
}
