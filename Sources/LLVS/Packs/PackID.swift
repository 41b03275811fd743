/// Sixteen bytes that name something in the packed layout: a pack, a store, a salt, the contents of a blob.
struct PackID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first eight bytes, high byte first.
    let high: UInt64
    /// The last eight bytes.
    let low: UInt64

    init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
    /// The first sixteen bytes; nil when there are fewer.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count >= PackID.size else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for (i, byte) in bytes.prefix(PackID.size).enumerated() {
            if i < 8 { words.0 = words.0 << 8 | UInt64(byte) } else { words.1 = words.1 << 8 | UInt64(byte) }
        }
        self.init(high: words.0, low: words.1)
    }
    static let size = 16
    static let zero = PackID(high: 0, low: 0)

    /// Of random bits from the system.
    static func random() -> PackID {
        var generator = SystemRandomNumberGenerator()
        return PackID(high: generator.next(), low: generator.next())
    }

    var bytes: [UInt8] { PackID.bytes(of: high) + PackID.bytes(of: low) }
    static func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) } }
    /// As names of files have it.
    var description: String { Base32.encode(bytes) }

    static func < (a: PackID, b: PackID) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
}

/// The base32 of RFC 4648 in lower case, without padding: fields of names.
enum Base32 {
    private static let digits = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = [], word: UInt32 = 0, bits: UInt32 = 0
        for byte in bytes {
            word = word << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(digits[Int(word >> bits & 31)])
            }
            word &= 0xFF
        }
        if bits > 0 { text.append(digits[Int(word << (5 - bits) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The `size` bytes of a field; nil when it is of another length, has another character, or bits are left over that are not zero.
    static func decode(_ field: some Collection<UInt8>, size: Int) -> [UInt8]? {
        guard field.count == (8 * size + 4) / 5 else { return nil }
        var bytes: [UInt8] = [], word: UInt32 = 0, bits: UInt32 = 0
        for character in field {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = character - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): digit = character - UInt8(ascii: "2") + 26
            default: return nil
            }
            word = (word << 5 | UInt32(digit)) & 0xFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: word >> bits))
            }
        }
        return bytes.count == size && word & (1 << bits - 1) == 0 ? bytes : nil
    }
}
