/// Parses strings: their bytes stay in the text, or are decoded apart if they have escapes.
extension JSONTreeParser {
    mutating func string(isName: Bool) throws -> Bool {
        let start = position + 1, i = Self.plainEnd(of: bytes, from: start)
        guard i < bytes.count, bytes[i] >= 0x20 else { return false }
        if bytes[i] == UInt8(ascii: "\"") {
            if !isName, i - start <= JSONCode.longestString {
                try add(JSONCode.shortString + UInt32(truncatingIfNeeded: i - start), from: start)
            } else {
                try add(JSONCode.string, from: start, length: i - start)
            }
            position = i + 1
            return true
        }
        return try escapedString(start)
    }

    /// Returns the offset of the first quote, backslash or control from `start` on, or the end if there is none. Reads eight bytes at a
    /// time.
    @inline(__always)
    static func plainEnd(of bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var i = start
        while i + 8 <= bytes.count {
            let found = special(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: i, as: UInt64.self)))
            if found != 0 { return i + found.trailingZeroBitCount >> 3 }
            i += 8
        }
        while i < bytes.count, bytes[i] != UInt8(ascii: "\""), bytes[i] != UInt8(ascii: "\\"), bytes[i] >= 0x20 { i += 1 }
        return i
    }

    /// Returns a word with the high bit of each byte that is a quote, a backslash or below 0x20. Only the lowest one is certain.
    @inline(__always)
    static func special(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101, highs: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22), backslash = word ^ (ones &* 0x5C)
        let hits = ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | ((word &- ones &* 0x20) & ~word)
        return hits & highs
    }

    /// Decoded strings are never longer than their spelling, and memory that is not written to costs nothing.
    mutating func decodedRoom() throws -> UnsafeMutableRawPointer? {
        if decoded == nil { decoded = try Memory.allocate(bytes.count, "Reading JSON").baseAddress }
        return decoded
    }

    private mutating func escapedString(_ start: Int) throws -> Bool {
        guard let decoded = try decodedRoom(), let base = bytes.baseAddress else { return false }
        let first = decodedCount
        var i = start, canonical = true
        while i < bytes.count {
            let run = i
            i = Self.plainEnd(of: bytes, from: i)
            if i > run {
                memcpy(decoded + decodedCount, base + run, i - run)
                decodedCount += i - run
            }
            guard i < bytes.count else { return false }
            if bytes[i] == UInt8(ascii: "\"") {
                try add(canonical ? JSONCode.escapedCanonical : JSONCode.escaped, from: first, length: decodedCount - first)
                if !canonical { top.canonical = false }
                position = i + 1
                return true
            }
            guard bytes[i] == UInt8(ascii: "\\") else { return false }
            i += 1
            let escape = i
            guard let scalar = JSONString.escape(bytes, at: &i) else { return false }
            if canonical {
                canonical = CanonicalText.isMandatory(scalar, UnsafeRawBufferPointer(rebasing: bytes[escape..<i]))
            }
            func put(_ unit: UInt32) {
                decoded.storeBytes(of: UInt8(truncatingIfNeeded: unit), toByteOffset: decodedCount, as: UInt8.self)
                decodedCount += 1
            }
            let value = scalar.value
            if value < 0x80 { put(value); continue }
            if value < 0x800 {
                put(0xC0 | value >> 6)
            } else {
                if value < 0x1_0000 {
                    put(0xE0 | value >> 12)
                } else {
                    put(0xF0 | value >> 18)
                    put(0x80 | value >> 12 & 0x3F)
                }
                put(0x80 | value >> 6 & 0x3F)
            }
            put(0x80 | value & 0x3F)
        }
        return false
    }
}
