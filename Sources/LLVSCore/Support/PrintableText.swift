/// Makes text safe to show and log, whatever names it contains.
///
/// Ids, paths and names of files may contain any character, and are part of messages. A line break would forge a line of a log, an escape
/// byte controls a terminal, a NUL ends the message for C, and characters that change the text direction hide its meaning. All messages
/// of errors, of damage and of the log pass through here once; separate fields have the exact bytes.
package enum PrintableText {
    /// Returns the text with control characters, line separators and direction marks escaped: `
    /// `, `\x1B`, `\u{202E}`.
    /// - Complexity: O(size of the text). Nothing is copied if there are none.
    package static func escaping(_ text: String) -> String {
        let isPlain: Bool? = text.utf8.withContiguousStorageIfAvailable { bytes in
            !bytes.contains { $0 < 0x20 || $0 == 0x7F || $0 == 0xC2 || $0 == 0xD8 || $0 == 0xE2 }
        }
        if isPlain == true { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x09: result += "\\t"
            case 0x0A: result += "\\n"
            case 0x0D: result += "\\r"
            case 0..<0x20, 0x7F: result += "\\x" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16, uppercase: true)
            case 0x80..<0xA0, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
                result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension String {
    /// Returns whether `part` occurs in it, byte for byte. (The standard library's own search is in the module of regular expressions,
    /// with which the shared library is not shipped.) O(length · length of `part`).
    package func contains(text part: String) -> Bool {
        utf8.indices.contains { utf8[$0...].starts(with: part.utf8) }
    }
}
