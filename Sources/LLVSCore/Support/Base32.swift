/// The base32 of RFC 4648 in lower case, without padding, for fields of names.
package enum Base32 {
    private static let digits = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
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

    /// Returns the `size` bytes of a field; nil if it has another length, an invalid character, or remaining bits that are not zero.
    package static func decode(_ field: some Collection<UInt8>, size: Int) -> [UInt8]? {
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
