/// Percent-encoding (RFC 3986, section 2.1).
package enum PercentCoding {
    /// Returns the decoded bytes of a text; nil if a % is not followed by two hexadecimal digits.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else { bytes.append(byte); continue }
            guard let high = rest.next().flatMap(value), let low = rest.next().flatMap(value) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Encodes all bytes except letters, digits, `-`, `.`, `_`, `~`, and the characters in `keeping`.
    package static func encode(_ text: String, keeping kept: String = "") -> String {
        encode(bytes: Array(text.utf8), keeping: kept)
    }
    /// Encodes bytes that may not be valid text, by the same rules.
    package static func encode(bytes: [UInt8], keeping kept: String = "") -> String {
        var encoded: [UInt8] = []
        for byte in bytes {
            if isUnreserved(byte) || kept.utf8.contains(byte) { encoded.append(byte); continue }
            encoded += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }
    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10 }
    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
