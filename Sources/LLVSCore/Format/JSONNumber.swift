/// JSON numbers (RFC 8259, section 6): the shortest text that reads back to the same bits.
package enum JSONNumber {
    /// Appends a finite double: the fewest digits, no needless ".0", "+" or zeros in the exponent.
    /// `816913493.4794178`, `0`, `-0`, `1e16`, `5e-324`.
    package static func append(_ value: Double, to out: inout [UInt8]) {
        // Swift's description has the fewest digits that read back to the same bits.
        var text = value.description
        text.withUTF8 { digits in
            let e = digits.firstIndex(of: UInt8(ascii: "e")) ?? digits.count
            var mantissa = digits[..<e]
            if mantissa.count > 2, mantissa[e - 1] == UInt8(ascii: "0"), mantissa[e - 2] == UInt8(ascii: ".") {
                mantissa = mantissa.dropLast(2)
            }
            out.append(contentsOf: mantissa)
            guard e < digits.count else { return }
            out.append(UInt8(ascii: "e"))
            var exponent = digits[(e + 1)...]
            if exponent.first == UInt8(ascii: "-") { out.append(UInt8(ascii: "-")) }
            if exponent.first == UInt8(ascii: "-") || exponent.first == UInt8(ascii: "+") { exponent = exponent.dropFirst() }
            out.append(contentsOf: exponent.drop { $0 == UInt8(ascii: "0") })
        }
    }

    static func append(_ value: UInt64, to out: inout [UInt8]) {
        var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &digits) { buffer in
            var rest = value, i = buffer.count
            repeat {
                i -= 1
                buffer[i] = UInt8(truncatingIfNeeded: rest % 10) + 0x30
                rest /= 10
            } while rest > 0
            out.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[i...]))
        }
    }

    /// Returns whether the byte can be part of a number.
    static func canHold(_ b: UInt8) -> Bool {
        switch b {
        case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): true
        default: false
        }
    }

    /// Returns the end of the number that begins at `start`; nil if none does.
    static func end(of bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var i = start
        func digits() -> Bool {
            let first = i
            while i < bytes.count, bytes[i] >= 0x30, bytes[i] <= 0x39 { i += 1 }
            return i > first
        }
        if i < bytes.count, bytes[i] == UInt8(ascii: "-") { i += 1 }
        if i < bytes.count, bytes[i] == 0x30 { i += 1 } else if !digits() { return nil }
        if i < bytes.count, bytes[i] == UInt8(ascii: ".") {
            i += 1
            guard digits() else { return nil }
        }
        if i < bytes.count, bytes[i] | 0x20 == UInt8(ascii: "e") {
            i += 1
            if i < bytes.count, bytes[i] == UInt8(ascii: "+") || bytes[i] == UInt8(ascii: "-") { i += 1 }
            guard digits() else { return nil }
        }
        return i
    }

    /// Returns the double nearest to a number's text; nil if the number is beyond the range of doubles.
    package static func double(_ text: UnsafeRawBufferPointer) -> Double? {
        if let value = exactQuotient(text) { return value }
        guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else { return nil }
        return value
    }

    /// Returns the value of a number without exponent whose digits and power of ten are both exact doubles: one division is correctly
    /// rounded then (Clinger, 1990). Covers the usual timestamps, without making a string.
    private static func exactQuotient(_ text: UnsafeRawBufferPointer) -> Double? {
        var digits: UInt64 = 0, decimals = 0, point = false, negative = false
        guard text.count <= 20 else { return nil }
        for (i, b) in text.enumerated() {
            switch b {
            case 0x30...0x39:
                guard digits < 1 << 53 else { return nil }
                digits = digits * 10 + UInt64(b - 0x30)
                if point { decimals += 1 }
            case UInt8(ascii: "."): point = true
            case UInt8(ascii: "-") where i == 0: negative = true
            default: return nil
            }
        }
        guard digits <= 1 << 53, decimals < powersOfTen.count else { return nil }
        let value = Double(digits) / powersOfTen[decimals]
        return negative ? -value : value
    }
    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    ]

    /// Returns a whole number from 0 on, exactly (`135`, `135.0`); nil for anything else.
    static func unsigned(_ text: UnsafeRawBufferPointer) -> UInt64? {
        var value: UInt64 = 0
        for b in text {
            guard b >= 0x30, b <= 0x39 else { return double(text).flatMap { UInt64(exactly: $0) } }
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, stillTooLarge) = product.addingReportingOverflow(UInt64(b - 0x30))
            if tooLarge || stillTooLarge { return nil }
            value = sum
        }
        return value
    }
}
