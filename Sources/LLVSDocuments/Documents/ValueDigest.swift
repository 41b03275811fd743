/// Digests by which equal values are found. Never part of a result, and different in every process.
enum ValueDigest {
    /// Callers that compute many digests read this value once, since reading it costs as much as a digest.
    static let seed = UInt64.random(in: 1...UInt64.max)

    @inline(__always)
    static func mix(_ a: UInt64, _ b: UInt64, _ seed: UInt64) -> UInt64 {
        let product = (a ^ 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: b ^ seed)
        return product.high ^ product.low
    }

    @inline(__always)
    static func of(_ bytes: UnsafeRawBufferPointer, _ seed: UInt64) -> UInt64 {
        var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count)
        guard let base = bytes.baseAddress else { return mix(hash, 1, seed) }
        var i = 0
        while i + 8 <= bytes.count {
            hash = mix(hash, base.loadUnaligned(fromByteOffset: i, as: UInt64.self), seed)
            i += 8
        }
        var last: UInt64 = 0
        while i < bytes.count { last = last << 8 | UInt64(bytes[i]); i += 1 }
        return mix(mix(hash, last, seed), 0xA076_1D64_78BD_642F, seed)
    }

    /// Returns the digest of a short word, given the seed.
    @inline(__always)
    static func of(word start: UnsafeRawPointer, _ count: Int, _ seed: UInt64) -> UInt64 {
        // Overlapping bytes count twice, which does no harm.
        func eight(_ at: Int) -> UInt64 { start.loadUnaligned(fromByteOffset: at, as: UInt64.self) }
        func four(_ at: Int) -> UInt64 { UInt64(start.loadUnaligned(fromByteOffset: at, as: UInt32.self)) }
        func one(_ at: Int) -> UInt64 { UInt64(start.load(fromByteOffset: at, as: UInt8.self)) }
        if count > 16 { return of(UnsafeRawBufferPointer(start: start, count: count), seed) }
        // (The seed as a factor would be multiplied as 0.)
        if count > 8 { return mix(mix(eight(0), UInt64(count), seed) ^ eight(count - 8), 0xA076_1D64_78BD_642F, seed) }
        if count >= 4 { return mix(four(0) << 32 | four(count - 4), UInt64(count), seed) }
        guard count > 0 else { return 0 }
        return mix(one(0) << 16 | one(count / 2) << 8 | one(count - 1), UInt64(count), seed)
    }

    /// Returns the value of a number of 2 to 16 digits without its trailing zeros, and the number of these.
    @inline(__always)
    private static func whole(_ lexeme: UnsafeRawBufferPointer) -> (digits: UInt64, exponent: Int)? {
        guard let base = lexeme.baseAddress else { return nil }
        // The digits before the last eight, then those eight at once.
        var value: UInt64 = 0, i = 0
        let size = lexeme.count, first = max(0, size - 8)
        while i < first {
            let digit = base.load(fromByteOffset: i, as: UInt8.self) &- 0x30
            guard digit <= 9 else { return nil }
            value = 10 * value + UInt64(digit)
            i += 1
        }
        var word: UInt64 = 0
        if size >= 8 {
            word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: first, as: UInt64.self))
        } else {
            word = 0x3030_3030_3030_3030
            while i < size { word = word >> 8 | UInt64(base.load(fromByteOffset: i, as: UInt8.self)) << 56; i += 1 }
        }
        guard word & 0xF0F0_F0F0_F0F0_F0F0 == 0x3030_3030_3030_3030,
            (word &+ 0x0606_0606_0606_0606) & 0xF0F0_F0F0_F0F0_F0F0 == 0x3030_3030_3030_3030
        else { return nil }
        word &= 0x0F0F_0F0F_0F0F_0F0F
        word = (word &* 2561) >> 8 & 0x00FF_00FF_00FF_00FF
        word = (word &* 6_553_601) >> 16 & 0x0000_FFFF_0000_FFFF
        word = (word &* 42_949_672_960_001) >> 32
        value = 100_000_000 * value + word
        guard value > 0 else { return nil }
        var zeros = 0
        while value % 10 == 0 { value /= 10; zeros += 1 }
        return (value, zeros)
    }

    static func of(number lexeme: UnsafeRawBufferPointer, _ seed: UInt64) -> UInt64 {
        if lexeme.count == 1 { return mix(mix(UInt64(lexeme[0] &- 0x30), 0, seed), 5, seed) }
        if lexeme.count <= 16, let (digits, exponent) = whole(lexeme) {
            return mix(mix(digits, UInt64(bitPattern: Int64(exponent)), seed), 5, seed)
        }
        // Most numbers have few digits.
        if let short = JSONDecimal.Short(lexeme) {
            return mix(mix(short.digits, UInt64(bitPattern: Int64(short.exponent)), seed), short.negative ? 3 : 5, seed)
        }
        let decimal = JSONDecimal(lexeme) ?? .zero
        let sign: UInt64 = decimal.negative ? 3 : 5, exponent = UInt64(bitPattern: Int64(decimal.exponent))
        // (A number of few digits may be written with very many zeros.)
        if decimal.digits.count <= 18 {
            return mix(mix(decimal.digits.reduce(0) { 10 * $0 + UInt64($1) }, exponent, seed), sign, seed)
        }
        return mix(mix(decimal.digits.withUnsafeBytes { of($0, seed) }, exponent, seed), sign, seed)
    }
}
