/// Sixteen bytes that identify something in the packed layout: a pack, a store, a salt, the content of a blob.
package struct PackID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first eight bytes, in big-endian order.
    let high: UInt64
    /// The last eight bytes.
    let low: UInt64

    init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
    /// The first sixteen bytes; nil if there are fewer.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count >= PackID.size else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for (i, byte) in bytes.prefix(PackID.size).enumerated() {
            if i < 8 { words.0 = words.0 << 8 | UInt64(byte) } else { words.1 = words.1 << 8 | UInt64(byte) }
        }
        self.init(high: words.0, low: words.1)
    }
    package static let size = 16
    package static let zero = PackID(high: 0, low: 0)

    /// Returns an id of random bits from the system.
    package static func random() -> PackID {
        var generator = SystemRandomNumberGenerator()
        return PackID(high: generator.next(), low: generator.next())
    }

    package var bytes: [UInt8] { PackID.bytes(of: high) + PackID.bytes(of: low) }
    static func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) } }
    /// The id in names of files.
    package var description: String { Base32.encode(bytes) }

    package static func < (a: PackID, b: PackID) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
}
