/// An exact JSON number: its digits and a power of ten. Equal numbers are equal, however they were spelled.
package struct JSONDecimal: Equatable {
    /// The limits of numbers that can be merged: the number of significant digits, and the absolute value both of the written exponent
    /// and of the power of ten of the first digit.
    static let digitLimit = 400
    static let exponentLimit = 9_999

    package private(set) var negative = false
    /// The digits 0 to 9, most significant first, without zeros at either end; empty for zero.
    package private(set) var digits: [UInt8] = []
    /// The power of ten of the last digit; 0 for zero.
    package private(set) var exponent = 0

    package static let zero = JSONDecimal()

    private init() {}

    private init(negative: Bool, digits: [UInt8], exponent: Int) {
        var first = 0, end = digits.count
        while first < end, digits[first] == 0 { first += 1 }
        while end > first, digits[end - 1] == 0 { end -= 1 }
        guard first < end else { return }
        self.negative = negative
        self.digits = first == 0 && end == digits.count ? digits : Array(digits[first..<end])
        self.exponent = exponent + digits.count - end
    }

    /// Parses a number as RFC 8259 spells it; nil for anything else.
    package init?(_ lexeme: UnsafeRawBufferPointer) {
        guard let spelling = JSONNumberSpelling(lexeme, at: 0), spelling.end == lexeme.count else { return nil }
        var digits: [UInt8] = []
        digits.reserveCapacity(lexeme.count)
        for byte in lexeme {
            if byte | 0x20 == UInt8(ascii: "e") { break }
            if byte >= 0x30, byte <= 0x39 { digits.append(byte - 0x30) }
        }
        self.init(negative: lexeme.first == UInt8(ascii: "-"), digits: digits, exponent: spelling.exponent - spelling.fraction)
    }

    /// Returns whether an RFC 8259 number has only digits and perhaps a sign. Then no other such spelling is the same number, except `0`
    /// and `-0`.
    static func isWhole(_ lexeme: UnsafeRawBufferPointer) -> Bool {
        for byte in lexeme where byte < 0x30 || byte > 0x39 {
            guard byte == UInt8(ascii: "-") else { return false }
        }
        return true
    }

    /// Returns the value of an RFC 8259 number if it has only digits and perhaps a sign, at most 18 bytes.
    static func short(_ lexeme: UnsafeRawBufferPointer) -> Int64? {
        guard lexeme.count <= 18 else { return nil }
        var value: Int64 = 0, negative = false
        for byte in lexeme {
            if byte == UInt8(ascii: "-") { negative = true; continue }
            guard byte &- 0x30 <= 9 else { return nil }
            value = 10 * value + Int64(byte &- 0x30)
        }
        return negative ? -value : value
    }

    /// Returns whether a whole number is `0` or `-0`.
    static func isWholeZero(_ lexeme: UnsafeRawBufferPointer) -> Bool {
        lexeme.last == UInt8(ascii: "0") && (lexeme.count == 1 || lexeme.count == 2 && lexeme.first == UInt8(ascii: "-"))
    }

    /// A number of at most 18 digits, without memory of its own. Equal numbers are equal.
    struct Short: Equatable {
        var digits: UInt64 = 0
        var exponent = 0
        var negative = false

        /// Nil for a number of more digits. The bytes must be an RFC 8259 number.
        @inline(__always)
        init?(_ lexeme: UnsafeRawBufferPointer) {
            guard lexeme.count <= 40 else { return nil }
            var count = 0, zeros = 0, isFraction = false, i = 0
            while i < lexeme.count {
                let byte = lexeme[i]
                i += 1
                if byte == UInt8(ascii: "-") { negative = true; continue }
                if byte == UInt8(ascii: ".") { isFraction = true; continue }
                if byte | 0x20 == UInt8(ascii: "e") { break }
                if isFraction { exponent -= 1 }
                if byte == 0x30 {
                    if count > 0 { zeros += 1 }
                    continue
                }
                count += zeros + 1
                guard count <= 18 else { return nil }
                while zeros > 0 { digits *= 10; zeros -= 1 }
                digits = 10 * digits + UInt64(byte &- 0x30)
            }
            guard count > 0 else { self = Short(); return }
            exponent += zeros
            var power = 0, isBelow = false
            while i < lexeme.count {
                let byte = lexeme[i]
                i += 1
                if byte == UInt8(ascii: "-") {
                    isBelow = true
                } else if byte != UInt8(ascii: "+") {
                    guard power < 1_000_000 else { return nil }
                    power = 10 * power + Int(byte &- 0x30)
                }
            }
            exponent += isBelow ? -power : power
        }

        private init() {}
    }

    var isZero: Bool { digits.isEmpty }
    /// Whether JSON that can be merged may contain it.
    var isMergeable: Bool { digits.count <= Self.digitLimit && (isZero || abs(top - 1) <= Self.exponentLimit) }
    /// The power of ten just above the first digit.
    private var top: Int { exponent + digits.count }

    var negated: JSONDecimal {
        var other = self
        other.negative = !negative && !isZero
        return other
    }

    // MARK: Order

    /// Compares two numbers: below 0, 0 or above 0.
    static func compare(_ a: JSONDecimal, _ b: JSONDecimal) -> Int {
        if a.negative != b.negative { return a.negative ? -1 : 1 }
        return a.negative ? sizes(b, a) : sizes(a, b)
    }

    private static func sizes(_ a: JSONDecimal, _ b: JSONDecimal) -> Int {
        if a.isZero || b.isZero { return a.digits.count - b.digits.count }
        if a.top != b.top { return a.top < b.top ? -1 : 1 }
        for i in 0..<max(a.digits.count, b.digits.count) {
            let p = i < a.digits.count ? a.digits[i] : 0, q = i < b.digits.count ? b.digits[i] : 0
            if p != q { return p < q ? -1 : 1 }
        }
        return 0
    }

    // MARK: Sums

    /// Returns the sum of three numbers; nil if it has too many digits or is too large to be merged again.
    static func sum(_ a: JSONDecimal, _ b: JSONDecimal, _ c: JSONDecimal) -> JSONDecimal? {
        let terms = [a, b, c].filter { !$0.isZero }.sorted { $0.top > $1.top }
        guard terms.count == 3 else {
            guard terms.count == 2 else { return (terms.first ?? .zero).isMergeable ? terms.first ?? .zero : nil }
            return near(terms[0], terms[1]).flatMap { $0.isMergeable ? $0 : nil }
        }
        if let first = near(terms[0], terms[1]) {
            return near(first, terms[2]).flatMap { $0.isMergeable ? $0 : nil }
        }
        // The largest is so much larger that the sum has few digits only if the other two cancel out.
        return terms[1] == terms[2].negated && terms[0].isMergeable ? terms[0] : nil
    }

    /// Returns the exact sum of two numbers; nil if they are so far apart that it has more digits than can be merged.
    private static func near(_ a: JSONDecimal, _ b: JSONDecimal) -> JSONDecimal? {
        if a.isZero { return b }
        if b.isZero { return a }
        guard abs(a.top - b.top) <= 5 * digitLimit else { return nil }
        let low = min(a.exponent, b.exponent), high = max(a.top, b.top)
        let (larger, smaller) = sizes(a, b) >= 0 ? (a, b) : (b, a)
        var digits = [UInt8](repeating: 0, count: high - low + 1)
        let end = digits.count
        for (i, digit) in larger.digits.enumerated() { digits[end - (larger.top - low) + i] = digit }
        let place = end - (smaller.exponent - low)
        var carry: Int8 = 0, i = smaller.digits.count - 1, j = place - 1
        while j >= 0, i >= 0 || carry != 0 {
            let other = i >= 0 ? Int8(smaller.digits[i]) : 0
            var digit = Int8(digits[j]) + carry + (a.negative == b.negative ? other : -other)
            carry = 0
            if digit > 9 { digit -= 10; carry = 1 } else if digit < 0 { digit += 10; carry = -1 }
            digits[j] = UInt8(digit)
            i -= 1
            j -= 1
        }
        return JSONDecimal(negative: larger.negative, digits: digits, exponent: low)
    }

    // MARK: Spelling

    /// The shortest plain decimal, or with an exponent beyond 21 digits or six zeros after the point, as RFC 8785 spells numbers.
    var spelling: [UInt8] {
        guard !isZero else { return [0x30] }
        var text: [UInt8] = negative ? [UInt8(ascii: "-")] : []
        let ascii = digits.map { $0 + 0x30 }
        let point = top
        if ascii.count <= point, point <= 21 {
            text += ascii + [UInt8](repeating: 0x30, count: point - ascii.count)
        } else if point > 0, point <= 21 {
            text += ascii[..<point] + [UInt8(ascii: ".")] + ascii[point...]
        } else if point > -6, point <= 0 {
            text += [0x30, UInt8(ascii: ".")] + [UInt8](repeating: 0x30, count: -point) + ascii
        } else {
            text.append(ascii[0])
            if ascii.count > 1 { text += [UInt8(ascii: ".")] + ascii[1...] }
            text += Array((point > 0 ? "e+" : "e-").utf8) + Array(String(abs(point - 1)).utf8)
        }
        return text
    }
}

/// Where an RFC 8259 number ends, and what is needed to compare it.
struct JSONNumberSpelling {
    /// The index after its last character.
    private(set) var end: Int
    /// The number of digits after the point.
    private(set) var fraction = 0
    /// The written exponent, clamped to a million either way.
    private(set) var exponent = 0
    /// The number of significant digits: from the first to the last that is not zero.
    private(set) var significant = 0
    /// The power of ten of the first digit that is not zero; 0 if there is none.
    private(set) var magnitude = 0

    /// Nil if no number begins at `start`.
    @inline(__always)
    init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
        var i = start
        let n = bytes.count
        if i < n, bytes[i] == UInt8(ascii: "-") { i += 1 }
        guard i < n else { return nil }
        var zeros = 0, digits = 0, first = 0
        if bytes[i] == 0x30 {
            i += 1
        } else {
            first = i
            guard bytes[i] > 0x30, bytes[i] <= 0x39 else { return nil }
            while i < n, bytes[i] >= 0x30, bytes[i] <= 0x39 {
                if bytes[i] == 0x30 { zeros += 1 } else { digits += zeros + 1; zeros = 0 }
                i += 1
            }
            first = i - first - 1
        }
        if i < n, bytes[i] == UInt8(ascii: ".") {
            i += 1
            let point = i
            while i < n, bytes[i] >= 0x30, bytes[i] <= 0x39 {
                if bytes[i] != 0x30 {
                    if digits == 0 { first = -zeros - 1 }
                    digits += (digits > 0 ? zeros : 0) + 1
                    zeros = 0
                } else {
                    zeros += 1
                }
                i += 1
            }
            guard i > point else { return nil }
            fraction = i - point
        }
        if i < n, bytes[i] | 0x20 == UInt8(ascii: "e") {
            i += 1
            var negative = false
            if i < n, bytes[i] == UInt8(ascii: "+") || bytes[i] == UInt8(ascii: "-") { negative = bytes[i] == UInt8(ascii: "-"); i += 1 }
            let begin = i
            while i < n, bytes[i] >= 0x30, bytes[i] <= 0x39 { exponent = min(1_000_000, 10 * exponent + Int(bytes[i] - 0x30)); i += 1 }
            guard i > begin else { return nil }
            if negative { exponent = -exponent }
        }
        significant = digits
        magnitude = digits == 0 ? 0 : first + exponent
        end = i
    }
}
