/// Eight upper-case hexadecimal digits at once: ids of versions are written and read with each version and value.
///
/// The digits are the bytes of a word, the first one lowest.
enum HexDigits {
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    @inline(__always)
    static func text(_ number: UInt32) -> UInt64 {
        var x = UInt64(number)
        x = (x << 16 | x) & 0x0000_FFFF_0000_FFFF
        x = (x << 8 | x) & 0x00FF_00FF_00FF_00FF
        x = (x << 4 | x) & 0x0F0F_0F0F_0F0F_0F0F
        return text(ofNibbles: x.byteSwapped)
    }

    /// Each byte is below 16: from ten on, letters, which are seven places behind the digits.
    @inline(__always)
    private static func text(ofNibbles x: UInt64) -> UInt64 { x &+ ones &* 0x30 &+ ((x &+ ones &* 6) >> 4 & ones) &* 7 }

    /// Nil when they are not all digits, or some are lower-case.
    @inline(__always)
    static func number(_ text: UInt64) -> UInt32? {
        let letters = text >> 6 & ones
        var x = (text & (ones &* 0x0F)) &+ letters &* 9
        guard x & (ones &* 0xF0) == 0, self.text(ofNibbles: x) == text else { return nil }
        x = x.byteSwapped
        x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF
        x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: x | x >> 16)
    }
}
