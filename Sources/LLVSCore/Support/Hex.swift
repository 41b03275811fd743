/// Hexadecimal: texts of bytes in lower case, and the upper-case digits of ids, eight at a time.
package enum Hex {
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Returns the number that eight digits spell, with the first digit in the lowest byte; nil if one is not of 0-9 and A-F.
    @inline(__always)
    static func word(of digits: UInt64) -> UInt32? {
        // Letters are 0x41 to 0x46 and have bit 6. The low halves of letters count from 1.
        let values = (digits & 0x0F0F_0F0F_0F0F_0F0F) &+ (digits >> 6 & ones) &* 9
        // If a byte is not a digit, it differs from the spelling of its value.
        guard values & 0xF0F0_F0F0_F0F0_F0F0 == 0, spelt(values) == digits else { return nil }
        var word = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        word = (word | word >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: word | word >> 16).byteSwapped
    }

    /// Returns the eight digits of a number, the first in the lowest byte.
    @inline(__always)
    static func digits(of number: UInt32) -> UInt64 {
        var spread = UInt64(number.byteSwapped)
        spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
        spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
        return spelt((spread >> 4 | spread << 8) & 0x0F0F_0F0F_0F0F_0F0F)
    }

    /// Returns the digits for the values 0 to 15 in each byte.
    @inline(__always)
    private static func spelt(_ values: UInt64) -> UInt64 {
        let letters = (values &+ 6 &* ones) >> 4 & ones
        return values &+ 0x30 &* ones &+ letters &* 7
    }
}

extension Hex {
    /// Returns bytes in lower-case hexadecimal.
    package static func text(of bytes: [UInt8]) -> String { String(decoding: utf8(of: bytes), as: UTF8.self) }

    /// Returns bytes in lower-case hexadecimal, as UTF-8.
    package static func utf8(of bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        append(bytes, to: &text)
        return text
    }

    /// Appends bytes in lower-case hexadecimal, as UTF-8.
    static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
    }

    /// Returns the bytes that digits of either case spell; nil if other characters are among them, or their number is odd.
    static func bytes(spelledBy digits: [UInt8]) -> [UInt8]? {
        func value(_ digit: UInt8) -> UInt8? {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - 0x30
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - 0x57
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - 0x37
            default: nil
            }
        }
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for i in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[i]), let low = value(digits[i + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
