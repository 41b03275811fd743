/// A flag for each token of a text, or element of a list.
struct TokenBits {
    /// The first 64 flags, so that few need no array.
    private var first: UInt64 = 0
    private var others: [UInt64] = []
    let count: Int

    /// Creates flags that are all clear.
    init(count: Int) {
        self.count = count
        if count > 64 { others = [UInt64](repeating: 0, count: (count - 1) / 64) }
    }

    /// 64 flags.
    @inline(__always)
    private subscript(word i: Int) -> UInt64 {
        get { i == 0 ? first : others[i - 1] }
        set { if i == 0 { first = newValue } else { others[i - 1] = newValue } }
    }

    @inline(__always)
    subscript(_ i: Int) -> Bool {
        get { self[word: i >> 6] >> UInt64(i & 63) & 1 != 0 }
        set { if newValue { self[word: i >> 6] |= 1 << UInt64(i & 63) } else { self[word: i >> 6] &= ~(1 << UInt64(i & 63)) } }
    }

    /// Sets all flags of a range.
    mutating func set(_ range: Range<Int>) {
        var i = range.lowerBound
        while i < range.upperBound {
            let bit = i & 63, size = min(64 - bit, range.upperBound - i)
            self[word: i >> 6] |= (size == 64 ? ~0 : (1 << UInt64(size)) - 1) << UInt64(bit)
            i += size
        }
    }

    /// The number of flags that are read at once: runs of one set are compared with runs of another, which may be much shorter.
    private static let stretch = 512

    /// Returns the length of the run of set flags from `start` on, up to some hundreds.
    func run(from start: Int) -> Int {
        var i = start
        let end = min(count, start + Self.stretch)
        while i < end {
            let size = min(64 - i & 63, end - i), set = min((~(self[word: i >> 6] >> UInt64(i & 63))).trailingZeroBitCount, size)
            i += set
            if set < size { break }
        }
        return i - start
    }

    /// Returns the length of the run of set flags before `end`, up to some hundreds.
    func run(before end: Int) -> Int {
        var i = end
        let start = max(0, end - Self.stretch)
        while i > start {
            let bit = (i - 1) & 63 + 1, size = min(bit, i - start)
            let set = min((~(self[word: (i - 1) >> 6] << UInt64(64 - bit))).leadingZeroBitCount, size)
            i -= set
            if set < size { break }
        }
        return end - i
    }
}
