/// One page of what a question to an index found: entries in the order that was asked for.
public struct IndexPage: Sendable {
    /// Texts one behind the other, each with a NUL behind it that its size does not count.
    public struct Column: Sendable {
        /// All of them.
        public private(set) var bytes: [UInt8] = []
        /// How many bytes each has, without its NUL.
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

    /// How many entries the question is about, pages aside; nil where that was not asked.
    public internal(set) var total: UInt64?
    /// The ids of the values; of one with several keys perhaps several times.
    public internal(set) var ids = Column()
    /// The tuples as JSON arrays, strings as they are spelled in the values; empty where they were not asked for.
    public internal(set) var keys = Column()
    /// The values, a row for each entry; nil where they were not asked for.
    public internal(set) var values: ValueBatch?
    /// Where the next page begins; empty when this one is the last. It holds good for ever, at this version and at others.
    public internal(set) var cursor: [UInt8] = []
    /// How many entries there are.
    public var count: Int { ids.sizes.count }

    ///     cursor = 01 · first 8 bytes of the digest · key · id           of the last entry
    static let cursorDigest = 8
    static func cursorStart(_ definition: IndexDefinition) -> [UInt8] { [1] + definition.digest.prefix(cursorDigest) }
}
