import CLLVSShims

/// What all devices that exchange a store directly share, and nobody else has: docs/live-protocol.md, section 1.
public struct Pairing: Sendable {
    /// Bytes of a pairing.
    public static let size = 48
    let storeID: [UInt8]
    let liveKey: Secret

    /// Draws a new one, for the first device. The others get its bytes.
    /// - Throws: `.io` when the system gives no random bytes.
    public static func random() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: size)
        try fillRandom(&bytes)
        return bytes
    }

    /// - Parameter bytes: 48, as `random` drew them on one of the devices.
    /// - Throws: `.invalidArgument`.
    public init(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count == Pairing.size else {
            throw StoreError(.invalidArgument, "A pairing has \(Pairing.size) bytes, and was given with \(bytes.count). Give all of it.")
        }
        storeID = Array(bytes[..<16])
        liveKey = try Secret(UnsafeRawBufferPointer(rebasing: bytes[16...]))
    }

    init(storeID: [UInt8], liveKey: Secret) { self.storeID = storeID; self.liveKey = liveKey }

    /// Known to everybody: what a link is made with whose digits people compare.
    static func toCompare() throws -> Pairing {
        let key = Array("llvs compare 1".utf8).withUnsafeBytes { SHA256.digest($0) }
        return Pairing(storeID: [UInt8](repeating: 0, count: 16), liveKey: try Secret(key))
    }

    /// Whether a link begins with these bytes whose digits people are to compare: who makes it has no pairing yet.
    /// - Parameter beginning: 66 bytes, or more.
    /// - Throws: `.unsupported` when there is no libcrypto.
    public static func isToCompare(beginning: UnsafeRawBufferPointer) throws -> Bool { try toCompare().matches(beginning: beginning) }

    /// The bytes that it was made from.
    var bytes: [UInt8] { storeID + liveKey.withBytes { Array($0) } }

    /// The selector, 16 bytes, which the initiator sends first, and by which the other side finds the pairing.
    func selector(_ crypto: Crypto, _ ephemeralKey: [UInt8]) throws -> [UInt8] { Array(try crypto.hmac(liveKey, ephemeralKey).prefix(16)) }

    var prologue: [UInt8] { Array("llvs live 1".utf8) + storeID.withUnsafeBytes { SHA256.digest($0) } }

    /// Whether a link that begins with these bytes is of devices that share this pairing: for whoever listens for several stores.
    /// - Parameter beginning: 66 bytes, or more.
    /// - Returns: false also when there are fewer.
    /// - Throws: `.unsupported` when there is no libcrypto.
    public func matches(beginning: UnsafeRawBufferPointer) throws -> Bool {
        guard beginning.count >= LiveLink.beginning else { return false }
        let start = LiveLink.selectorSize + 2
        return try Crypto.equal(
            selector(Crypto(for: LiveLink.purpose), Array(beginning[start..<start + Crypto.keySize])),
            Array(beginning[..<LiveLink.selectorSize]))
    }

    static func fillRandom(_ bytes: inout [UInt8]) throws {
        let error = bytes.withUnsafeMutableBytes { llvs_shim_random($0.baseAddress, $0.count) }
        guard error == 0 else {
            throw StoreError(.io, "The system gave no random bytes: \(Errno(error)). Try again.", systemCode: error)
        }
    }
}
