/// A JSON number as the keys of indexes represent it: `±d.ddd… × 10^exponent`.
package enum IndexNumber {
    static let digitLimit = 400
    static let exponentLimit = 9_999

    /// The parts of a lexeme.
    struct Parts {
        var isNegative: Bool
        /// The power of ten of the first nonzero digit; 0 for zero.
        var exponent: Int
        /// The number of digits from the first nonzero one, including zeros at the end.
        var written: Int
        /// The digits from the first to the last nonzero one; none for zero. Each 0 to 9.
        var digits: UnsafeBufferPointer<UInt8>
    }

    /// Calls `body` with the parts of a number as RFC 8259 spells it; nil for anything else.
    static func with<R>(_ lexeme: UnsafeRawBufferPointer, _ body: (Parts) -> R) -> R? {
        guard let spelling = JSONNumberSpelling(lexeme, at: 0), spelling.end == lexeme.count else { return nil }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(1, lexeme.count)) { digits in
            // Counts of digits: before the point, leading zeros, and stored ones; and the end of the last nonzero one.
            var before = 0, zeros = 0, count = 0, end = 0, isBehind = false
            for byte in lexeme {
                if byte | 0x20 == UInt8(ascii: "e") { break }
                if byte == UInt8(ascii: ".") { isBehind = true }
                guard byte >= 0x30, byte <= 0x39 else { continue }
                if !isBehind { before += 1 }
                if count == 0, byte == 0x30 { zeros += 1; continue }
                digits[count] = byte - 0x30
                count += 1
                if byte != 0x30 { end = count }
            }
            return body(
                Parts(
                    isNegative: lexeme[0] == UInt8(ascii: "-"), exponent: count == 0 ? 0 : spelling.exponent + before - 1 - zeros,
                    written: count, digits: UnsafeBufferPointer(rebasing: digits[..<end])))
        }
    }

    /// Returns whether JSON that contains the number has keys. Merging accepts slightly more: it counts neither zeros at the end as digits
    /// nor digits before the point as powers of ten.
    static func isWithinLimits(_ lexeme: UnsafeRawBufferPointer) -> Bool {
        if lexeme.count < 32, !lexeme.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) { return true }
        return with(lexeme) { abs($0.exponent) <= exponentLimit && $0.written <= digitLimit } ?? false
    }

    /// Appends the key part of a number that is within the limits.
    static func append(_ lexeme: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        _ = with(lexeme) { number in
            guard let first = number.digits.first, first > 0 else { out.append(IndexKey.Tag.zero); return }
            let flip: UInt8 = number.isNegative ? 0xFF : 0
            let exponent = UInt16(clamping: number.exponent + exponentLimit + 1)
            out.append(number.isNegative ? IndexKey.Tag.negative : IndexKey.Tag.positive)
            out.append(UInt8(exponent >> 8) ^ flip)
            out.append(UInt8(exponent & 0xFF) ^ flip)
            for i in stride(from: 0, to: number.digits.count, by: 2) {
                let second = i + 1 < number.digits.count ? number.digits[i + 1] : 0
                out.append((number.digits[i] * 10 + second + 1) ^ flip)
            }
            out.append(flip)
        }
    }
}
