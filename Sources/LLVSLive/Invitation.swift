/// A code of 26 digits that people pass on, by which a device gets the pairing from another device. Valid for one connection.
/// docs/live-protocol.md, section 1.
public struct Invitation: Sendable {
    /// The number of random bytes in a code.
    static let size = 16
    private static let digitCount = 26, groupSize = 5
    /// The digits of Crockford's base 32, none of which is mistaken for another: https://www.crockford.com/base32.html
    private static let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// The key material of the invitation's link, in place of a pairing.
    let pairing: Pairing

    /// Draws a new code: `"1GT4K-…"`.
    /// - Throws: `.io` if the system gives no random bytes.
    public static func random() throws -> String {
        var bytes = [UInt8](repeating: 0, count: size)
        defer { Secret.wipe(&bytes) }
        try Pairing.fillRandom(&bytes)
        return text(bytes)
    }

    /// - Parameter text: the code. Hyphens, spaces and case make no difference, and O is read as 0, I and L as 1.
    /// - Throws: `.invalidArgument`, which does not repeat the code; `.unsupported` if there is no libcrypto.
    public init(_ text: String) throws {
        guard var bytes = Invitation.bytes(text) else {
            throw StoreError(
                .invalidArgument,
                "The code of an invitation has \(Invitation.digitCount) digits and letters, but no U. Give it as it was made.")
        }
        defer { Secret.wipe(&bytes) }
        let crypto = try Crypto(for: LiveLink.purpose), secret = try Secret(bytes)
        let id = try crypto.derive(secret, info: "llvs invitation id")
        pairing = Pairing(
            storeID: id.withBytes { Array($0.prefix(16)) }, liveKey: try crypto.derive(secret, info: "llvs invitation key"))
    }

    /// Returns the digits for some bytes. The first digit has three bits.
    static func text(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        for place in 0..<digitCount {
            if place > 0, place % groupSize == 0, place < digitCount - 1 { out.append(UInt8(ascii: "-")) }
            let first = place * 5 - 2
            var digit = 0
            for bit in first..<first + 5 {
                digit <<= 1
                if bit >= 0 { digit |= Int(bytes[bit / 8] >> UInt8(7 - bit % 8)) & 1 }
            }
            out.append(digits[digit])
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Returns the bytes of a code, or nil if the text is not a code.
    static func bytes(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: size), bit = -2
        for character in text.utf8 where character != UInt8(ascii: "-") && character != UInt8(ascii: " ") {
            guard bit < size * 8, let digit = value(character) else { return nil }
            for shift in (0..<5).reversed() {
                let isSet = digit >> shift & 1 == 1
                if bit >= 0 { bytes[bit / 8] |= isSet ? 1 << UInt8(7 - bit % 8) : 0 } else if isSet { return nil }
                bit += 1
            }
        }
        return bit == size * 8 ? bytes : nil
    }

    private static func value(_ character: UInt8) -> Int? {
        let upper = character >= UInt8(ascii: "a") && character <= UInt8(ascii: "z") ? character - 32 : character
        switch upper {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        default: return digits.firstIndex(of: upper)
        }
    }

    /// Returns whether a link with this beginning is from the device that has this code; see `Pairing.matches`.
    /// - Parameter beginning: at least 66 bytes.
    /// - Throws: `.unsupported` if there is no libcrypto.
    public func matches(beginning: UnsafeRawBufferPointer) throws -> Bool { try pairing.matches(beginning: beginning) }
}
