/// Upper-case hexadecimal, eight digits at a time.
enum Hex {
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

extension Bytes {
    /// Returns lower-case hexadecimal.
    package static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
