/// JSON strings (RFC 8259, section 7) as bytes: the part of JSON that both metadata and the interchange layout use.
@usableFromInline
package enum JSONString {
    /// Appends `text` (UTF-8) in quotes: escapes `"`, `\` and controls, and nothing else.
    package static func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        for b in text {
            switch b {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(UInt8(ascii: "\\")); out.append(b)
            case 0x0A: out.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "n")])
            case 0x0D: out.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "r")])
            case 0x09: out.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "t")])
            case 0x00..<0x20:
                out.append(contentsOf: Array("\\u00".utf8))
                for nibble in [b >> 4, b & 15] { out.append(nibble < 10 ? nibble + 0x30 : nibble + 0x57) }
            default: out.append(b)
            }
        }
        out.append(UInt8(ascii: "\""))
    }

    package static func encode(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        Array(text.utf8).withUnsafeBytes { append($0, to: &out) }
        return out
    }

    /// Reads a string whose opening quote is at `position`, and moves `position` after the closing one. Returns nil if it is not a
    /// string, has an invalid escape, a raw control or a lone surrogate, or is not UTF-8.
    package static func read(_ bytes: UnsafeRawBufferPointer, at position: inout Int) -> [UInt8]? {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return nil }
        var i = position + 1
        var out: [UInt8] = []
        while i < bytes.count {
            var run = i
            while run < bytes.count, bytes[run] != UInt8(ascii: "\""), bytes[run] != UInt8(ascii: "\\"), bytes[run] >= 0x20 { run += 1 }
            if run > i { out.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[i..<run])); i = run }
            guard i < bytes.count else { return nil }
            switch bytes[i] {
            case UInt8(ascii: "\""):
                position = i + 1
                return out.withUnsafeBytes(Bytes.isValidUTF8) ? out : nil
            case UInt8(ascii: "\\"):
                i += 1
                guard let scalar = escape(bytes, at: &i) else { return nil }
                if scalar.isASCII {
                    out.append(UInt8(truncatingIfNeeded: scalar.value))
                } else {
                    out.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
                }
            default: return nil
            }
        }
        return nil
    }

    /// Decodes the escape after a backslash at `position`, and moves `position` after it, by at most 11 bytes. Returns nil for an invalid
    /// escape or a lone surrogate.
    package static func escape(_ bytes: UnsafeRawBufferPointer, at position: inout Int) -> Unicode.Scalar? {
        guard position < bytes.count else { return nil }
        position += 1
        switch bytes[position - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard var scalar = hex4(bytes, at: position) else { return nil }
            position += 4
            if scalar >= 0xD800, scalar < 0xDC00 {
                guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u"),
                    let second = hex4(bytes, at: position + 2), second >= 0xDC00, second < 0xE000
                else { return nil }
                scalar = 0x10000 + (scalar - 0xD800) << 10 + (second - 0xDC00)
                position += 6
            }
            return Unicode.Scalar(scalar)
        default: return nil
        }
    }

    /// Decodes all of `bytes` as one JSON string. White space around it is allowed.
    static func decode(_ bytes: [UInt8]) -> String? {
        bytes.withUnsafeBytes { raw in
            var i = 0
            while i < raw.count, isSpace(raw[i]) { i += 1 }
            guard let text = read(raw, at: &i) else { return nil }
            while i < raw.count, isSpace(raw[i]) { i += 1 }
            return i == raw.count ? String(decoding: text, as: UTF8.self) : nil
        }
    }

    /// Returns whether a byte is white space in JSON.
    @inlinable package static func isSpace(_ b: UInt8) -> Bool { b == 0x20 || b == 0x0A || b == 0x0D || b == 0x09 }

    private static func hex4(_ bytes: UnsafeRawBufferPointer, at start: Int) -> UInt32? {
        guard start + 4 <= bytes.count else { return nil }
        var value: UInt32 = 0
        for i in start..<start + 4 {
            let b = bytes[i]
            switch b {
            case 0x30...0x39: value = value << 4 | UInt32(b - 0x30)
            case 0x41...0x46: value = value << 4 | UInt32(b - 0x37)
            case 0x61...0x66: value = value << 4 | UInt32(b - 0x57)
            default: return nil
            }
        }
        return value
    }
}
