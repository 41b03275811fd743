/// Writes the strings of merged values, with the escapes that JSON demands and no others.
package enum CanonicalText {
    package static func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        var run = 0
        for i in 0..<text.count {
            let byte = text[i]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            if i > run { out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run..<i])) }
            run = i + 1
            out.append(UInt8(ascii: "\\"))
            if let letter = letter(byte) {
                out.append(letter)
            } else {
                out.append(UInt8(ascii: "u"))
                out.append(0x30)
                out.append(0x30)
                out.append(digit(byte >> 4))
                out.append(digit(byte & 15))
            }
        }
        if run < text.count { out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run...])) }
        out.append(UInt8(ascii: "\""))
    }

    /// Returns whether `append` would write `escape` after a backslash for the scalar.
    static func isMandatory(_ scalar: Unicode.Scalar, _ escape: UnsafeRawBufferPointer) -> Bool {
        guard scalar.isASCII else { return false }
        let byte = UInt8(truncatingIfNeeded: scalar.value)
        if let letter = letter(byte) { return escape.count == 1 && escape.first == letter }
        return byte < 0x20 && escape.count == 5 && escape[0] == UInt8(ascii: "u") && escape[3] == digit(byte >> 4)
            && escape[4] == digit(byte & 15)
    }

    private static func letter(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x09: UInt8(ascii: "t")
        case 0x0A: UInt8(ascii: "n")
        case 0x0C: UInt8(ascii: "f")
        case 0x0D: UInt8(ascii: "r")
        default: nil
        }
    }

    private static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? nibble + 0x30 : nibble + 0x57 }
}
