/// The name of a version: 1 to 128 of `[A-Za-z0-9_-]`; an upper-case UUID when made here.
///
/// Upper-case UUIDs, by far the most common, are kept as their 16 bytes; others as text. Ordered by
/// the bytes of the text.
public struct VersionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 16 bytes of an upper-case UUID, big-endian; zero when `text` is set.
    let high: UInt64
    let low: UInt64
    /// The text of any other id.
    let text: String?

    init(high: UInt64, low: UInt64) { self.high = high; self.low = low; text = nil }

    /// - Throws: `.invalidVersionID`.
    public init(_ id: String) throws {
        var copy = id
        self = try copy.withUTF8 { try VersionID(ascii: UnsafeRawBufferPointer($0)) }
    }

    /// - Throws: `.invalidVersionID`.
    public init(ascii bytes: UnsafeRawBufferPointer) throws {
        guard let id = VersionID(validating: bytes) else {
            let shown = String(decoding: bytes.prefix(140), as: UTF8.self)
            throw StoreError(.invalidVersionID, "\"\(shown)\" cannot be a version id: those are 1 to \(Limits.versionIDSize) of the characters A-Z, a-z, 0-9, _ and -.", versionID: shown)
        }
        self = id
    }

    /// Nil when the bytes cannot be a version id.
    init?(validating bytes: UnsafeRawBufferPointer) {
        if bytes.count == 36, let (high, low) = VersionID.parseUUID(bytes) {
            self.init(high: high, low: low)
            return
        }
        guard bytes.count >= 1, bytes.count <= Limits.versionIDSize else { return nil }
        for b in bytes {
            switch b {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                 UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"): continue
            default: return nil
            }
        }
        self.init(text: String(decoding: bytes, as: UTF8.self))
    }

    private init(text: String) { high = 0; low = 0; self.text = text }

    /// A new random upper-case UUID (version 4, RFC 9562).
    public static func random() -> VersionID {
        var generator = SystemRandomNumberGenerator()
        return VersionID(randomHigh: generator.next(), low: generator.next())
    }

    /// Of 128 random bits, six of which say that it is such a UUID.
    init(randomHigh high: UInt64, low: UInt64) {
        self.init(high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    private static func parseUUID(_ bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64)? {
        var high: UInt64 = 0, low: UInt64 = 0
        var digits = 0
        for i in 0..<36 {
            let b = bytes[i]
            if i == 8 || i == 13 || i == 18 || i == 23 {
                guard b == UInt8(ascii: "-") else { return nil }
                continue
            }
            let nibble: UInt8
            switch b {
            case 0x30...0x39: nibble = b - 0x30
            case 0x41...0x46: nibble = b - 0x37
            default: return nil
            }
            if digits < 16 { high = high << 4 | UInt64(nibble) } else { low = low << 4 | UInt64(nibble) }
            digits += 1
        }
        return (high, low)
    }

    /// Calls with the ASCII bytes of the id.
    public func withASCII<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        if var text { return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) } }
        return try withUnsafeTemporaryAllocation(byteCount: 36, alignment: 1) { buffer in
            var k = 0
            for i in 0..<36 {
                if i == 8 || i == 13 || i == 18 || i == 23 { buffer[i] = UInt8(ascii: "-"); continue }
                let word = k < 16 ? high : low
                let nibble = UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (k & 15))) & 15
                buffer[i] = nibble < 10 ? nibble + 0x30 : nibble + 0x37
                k += 1
            }
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }

    public var description: String { text ?? withASCII { String(decoding: $0, as: UTF8.self) } }

    /// The id with its letters in one case: two ids that differ by case only have equal folded forms.
    var folded: VersionID {
        guard let text else { return self }
        let upper = text.utf8.map { b in b >= 0x61 && b <= 0x7A ? b - 0x20 : b }
        return upper.withUnsafeBytes { VersionID(validating: $0) } ?? self
    }

    public static func == (a: VersionID, b: VersionID) -> Bool { a.high == b.high && a.low == b.low && a.text == b.text }
    public func hash(into hasher: inout Hasher) {
        if let text { hasher.combine(text) } else { hasher.combine(high); hasher.combine(low) }
    }
    public static func < (a: VersionID, b: VersionID) -> Bool {
        if a.text == nil, b.text == nil { return a.high != b.high ? a.high < b.high : a.low < b.low }
        return a.withASCII { x in b.withASCII { y in Bytes.compare(x, y) < 0 } }
    }
}
