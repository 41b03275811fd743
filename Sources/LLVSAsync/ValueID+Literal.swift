import LLVS

/// Ids as literals of strings.
extension ValueID: ExpressibleByStringLiteral {
    /// The id with this text: `let note: ValueID = "note/1"`. For text that the program computes, use `ValueID(_:)`, which throws.
    /// - Precondition: the literal has 1 to 4,096 bytes of UTF-8.
    public init(stringLiteral text: String) {
        precondition((1...Limits.valueIDSize).contains(text.utf8.count), "A literal of a value id has 1 to 4,096 bytes of UTF-8.")
        self.init(unchecked: Array(text.utf8))
    }
}
