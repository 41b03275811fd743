import LLVS

/// Ids as literals of strings.
extension ValueID: ExpressibleByStringLiteral {
    /// The id with this text: `let note: ValueID = "note/1"`. For text that the program computes, use `ValueID(_:)`, which throws.
    /// - Precondition: the literal has 1 to 4,096 bytes of UTF-8.
    ///   A `StaticString` is text of the source, so no text from outside comes here.
    public init(stringLiteral text: StaticString) {
        let bytes = text.withUTF8Buffer { Array($0) }
        precondition((1...Limits.valueIDSize).contains(bytes.count), "A literal of a value id has 1 to 4,096 bytes of UTF-8.")
        self.init(unchecked: bytes)
    }
}
