/// One page of the result of an index query: entries in the requested order.
public struct IndexPage: Sendable {
    /// Texts in a row, each followed by a NUL that its size does not count.
    public struct Column: Sendable {
        /// The bytes of all texts.
        public private(set) var bytes: [UInt8] = []
        /// The number of bytes of each text, without its NUL.
        public private(set) var sizes: [UInt64] = []

        mutating func append(_ text: some Collection<UInt8>) {
            bytes.append(contentsOf: text)
            bytes.append(0)
            sizes.append(UInt64(text.count))
        }

        /// Each text.
        public var texts: [[UInt8]] {
            var start = 0
            return sizes.map { size in
                defer { start += Int(size) + 1 }
                return Array(bytes[start..<start + Int(size)])
            }
        }
    }

    /// The number of entries that match, over all pages; nil if it was not requested.
    public internal(set) var total: UInt64?
    /// The ids of the values. A value with several keys may appear several times.
    public internal(set) var ids = Column()
    /// The tuples as JSON arrays, with strings as spelled in the values; empty if not requested.
    public internal(set) var keys = Column()
    /// The values, a row for each entry; nil if not requested.
    public internal(set) var values: ValueBatch?
    /// Where the next page begins; empty if this page is the last. Valid indefinitely, at this version and at others.
    public internal(set) var cursor: [UInt8] = []
    /// The number of entries.
    public var count: Int { ids.sizes.count }

    ///     cursor = 01 · first 8 bytes of the digest · key · id           of the last entry
    static let cursorDigest = 8
    static func cursorStart(_ definition: IndexDefinition) -> [UInt8] { [1] + definition.digest.prefix(cursorDigest) }
}
