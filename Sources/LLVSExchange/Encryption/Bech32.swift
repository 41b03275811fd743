/// Bech32 (BIP 173) without its limit on lengths, for 32 bytes: the text form of keys of age.
enum Bech32 {
    private static let digits = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
    /// Characters after the prefix and its "1": 52 for 32 bytes, and 6 of the checksum.
    private static let bodySize = 58

    /// Returns the text in lower case.
    static func encode(_ prefix: String, _ bytes: UnsafeRawBufferPointer) throws -> Secret {
        let text = try Secret(capacity: prefix.utf8.count + 1 + bodySize)
        try text.append(prefix + "1")
        var sum = Checksum(Array(prefix.utf8)), word: UInt32 = 0, bits: UInt32 = 0
        func put(_ value: UInt32) throws { try text.append(CollectionOfOne(digits[Int(value & 31)])) }
        for byte in bytes {
            word = (word << 8 | UInt32(byte)) & 0xFFF
            bits += 8
            while bits >= 5 {
                bits -= 5
                sum.add(word >> bits & 31)
                try put(word >> bits)
            }
        }
        if bits > 0 {
            sum.add(word << (5 - bits) & 31)
            try put(word << (5 - bits))
        }
        for value in sum.finish() { try put(value) }
        return text
    }

    /// Returns the 32 bytes of a text in one case; nil if it is invalid, has another prefix, or has a wrong checksum.
    static func decode(_ text: UnsafeRawBufferPointer, prefix: String) throws -> Secret? {
        let expected = Array(prefix.utf8) + [UInt8(ascii: "1")]
        guard text.count == expected.count + bodySize else { return nil }
        let hasUpper = text.contains { $0 >= 0x41 && $0 <= 0x5A }, hasLower = text.contains { $0 >= 0x61 && $0 <= 0x7A }
        guard !(hasUpper && hasLower), zip(text, expected).allSatisfy({ lower($0) == $1 }) else { return nil }
        let out = try Secret(capacity: Crypto.keySize)
        var sum = Checksum(Array(prefix.utf8)), word: UInt32 = 0, bits: UInt32 = 0
        for (i, byte) in text[expected.count...].enumerated() {
            guard let value = digits.firstIndex(of: lower(byte)).map({ UInt32($0) }) else { return nil }
            sum.add(value)
            guard i < bodySize - 6 else { continue }
            word = (word << 5 | value) & 0xFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                try out.append(CollectionOfOne(UInt8(truncatingIfNeeded: word >> bits)))
            }
        }
        guard sum.isRight, out.count == Crypto.keySize, word & (1 << bits - 1) == 0 else { return nil }
        return out
    }

    private static func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte + 0x20 : byte }

    /// A checksum that detects up to four wrong characters.
    private struct Checksum {
        private var state: UInt32 = 1
        init(_ prefix: [UInt8]) {
            for byte in prefix { add(UInt32(byte) >> 5) }
            add(0)
            for byte in prefix { add(UInt32(byte) & 31) }
        }
        mutating func add(_ value: UInt32) {
            let top = state >> 25
            state = (state & 0x1FF_FFFF) << 5 ^ value
            for (i, factor) in [UInt32(0x3B6A_57B2), 0x2650_8E6D, 0x1EA1_19FA, 0x3D42_33DD, 0x2A14_62B3].enumerated()
            where top >> UInt32(i) & 1 == 1 { state ^= factor }
        }
        var isRight: Bool { state == 1 }
        mutating func finish() -> [UInt32] {
            for _ in 0..<6 { add(0) }
            return (0..<6).map { (state ^ 1) >> (25 - 5 * UInt32($0)) & 31 }
        }
    }
}
