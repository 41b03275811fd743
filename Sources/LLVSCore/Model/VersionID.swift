/// The name of a version: 1 to 128 of `[A-Za-z0-9_-]`; an upper-case UUID if made here.
///
/// Upper-case UUIDs, by far the most common, are held as their 16 bytes; others as text. Ordered by the bytes of the text.
public struct VersionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 16 bytes of an upper-case UUID, big-endian; zero if `text` is set.
    let high: UInt64
    let low: UInt64
    /// The text of any other id.
    package let text: String?

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
            throw StoreError(
                .invalidVersionID,
                "\"\(shown)\" cannot be a version id: those are 1 to \(Limits.versionIDSize) of the characters A-Z, a-z, 0-9, _ and -.",
                versionID: shown)
        }
        self = id
    }

    /// Nil if the bytes cannot be a version id.
    package init?(validating bytes: UnsafeRawBufferPointer) {
        if bytes.count == 36, let (high, low) = VersionID.parseUUID(bytes) {
            self.init(high: high, low: low)
            return
        }
        guard bytes.count >= 1, bytes.count <= Limits.versionIDSize else { return nil }
        for b in bytes {
            switch b {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                continue
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

    /// Makes a random UUID of 128 bits, six of which are fixed by its version and variant.
    init(randomHigh high: UInt64, low: UInt64) {
        self.init(high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    private static func parseUUID(_ bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64)? {
        let hyphen = UInt8(ascii: "-")
        func four(_ offset: Int) -> UInt64 { UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))) }
        guard bytes.count == 36, bytes[8] == hyphen, bytes[13] == hyphen, bytes[18] == hyphen, bytes[23] == hyphen,
            let a = Hex.word(of: four(0) | four(4) << 32), let b = Hex.word(of: four(9) | four(14) << 32),
            let c = Hex.word(of: four(19) | four(24) << 32), let d = Hex.word(of: four(28) | four(32) << 32)
        else { return nil }
        return (UInt64(a) << 32 | UInt64(b), UInt64(c) << 32 | UInt64(d))
    }

    /// Calls `body` with the ASCII bytes of the id.
    @inline(__always)
    public func withASCII<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        if var text { return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) } }
        return try withUnsafeTemporaryAllocation(byteCount: 36, alignment: 8) { buffer in
            // Stored in the words in which it will be read: a load that spans several recent stores has to wait for all of them.
            func put(_ word: UInt64, _ offset: Int) { buffer.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self) }
            let (a, b) = (Hex.digits(of: UInt32(truncatingIfNeeded: high >> 32)), Hex.digits(of: UInt32(truncatingIfNeeded: high)))
            let (c, d) = (Hex.digits(of: UInt32(truncatingIfNeeded: low >> 32)), Hex.digits(of: UInt32(truncatingIfNeeded: low)))
            put(a, 0)
            put(0x2D | (b & 0xFFFF_FFFF) << 8 | 0x2D << 40 | (b >> 32) << 48, 8)
            put(b >> 48 | 0x2D << 16 | (c & 0xFFFF_FFFF) << 24 | 0x2D << 56, 16)
            put(c >> 32 | d << 32, 24)
            buffer.storeBytes(of: UInt32(truncatingIfNeeded: d >> 32).littleEndian, toByteOffset: 32, as: UInt32.self)
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }

    /// Throws `.invalidVersionID` for an id that a new version must not have, since exchanges use it as a file name: a device name on some
    /// systems, or a name that programs read as an option. Versions that other devices made under such ids are accepted.
    func checkIsFileName() throws {
        guard let text else { return }
        let upper = text.uppercased()
        let isDevice =
            VersionID.devices.contains(upper)
            || (upper.utf8.count == 4 && (upper.hasPrefix("COM") || upper.hasPrefix("LPT")) && !upper.hasSuffix("0")
                && upper.utf8.last.map { $0 >= 0x30 && $0 <= 0x39 } == true)
        guard isDevice || text.utf8.first == UInt8(ascii: "-") else { return }
        let why = isDevice ? "it names a device on some systems" : "it begins with -, which programs take for an option"
        throw StoreError(
            .invalidVersionID,
            "A version cannot be made under the id \"\(text)\": it becomes a file name, and \(why). Give another id, or none.",
            versionID: text)
    }
    private static let devices: Set<String> = ["CON", "PRN", "AUX", "NUL"]

    public var description: String { text ?? withASCII { String(decoding: $0, as: UTF8.self) } }

    /// The id in upper case: two ids that differ by case only have equal folded forms.
    package var folded: VersionID {
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

extension VersionID {
    /// Nil if the text cannot be a version id.
    package init?(validating text: String) {
        var text = text
        guard let id = text.withUTF8({ VersionID(validating: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = id
    }
}
