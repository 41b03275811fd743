/// Numbers the few words of some lines: the same number for equal bytes. It is reused, so that it allocates little.
///
/// `TextTokens` does the same for whole texts.
struct WordNumbers {
    private let seed = ValueDigest.seed
    /// The words by their numbers. Their bytes must stay while this is used.
    private(set) var words: [UnsafeRawBufferPointer] = []
    /// Numbers in a hash table; `.max` is a free slot.
    private var slots: [UInt32] = []
    private var mask = 0

    /// Forgets all words.
    /// - Parameter count: at least as many as will be numbered.
    mutating func begin(_ count: Int) {
        var size = 8
        while size < 2 * count { size *= 2 }
        words.removeAll(keepingCapacity: true)
        slots.removeAll(keepingCapacity: true)
        slots.append(contentsOf: repeatElement(.max, count: size))
        mask = size - 1
    }

    /// Returns the number of a word that is not empty.
    mutating func number(_ word: UnsafeRawBufferPointer) -> UInt32 {
        guard let start = word.baseAddress else { return .max }
        var i = Int(truncatingIfNeeded: ValueDigest.of(word: start, word.count, seed)) & mask
        while slots[i] != .max {
            if Bytes.equal(words[Int(slots[i])], word) { return slots[i] }
            i = (i + 1) & mask
        }
        slots[i] = UInt32(truncatingIfNeeded: words.count)
        words.append(word)
        return slots[i]
    }
}
