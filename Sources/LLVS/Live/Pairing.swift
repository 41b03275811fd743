import CLLVSShims

/// The secret that all devices share that exchange a store directly: docs/live-protocol.md, section 1.
public struct Pairing: Sendable {
    /// The number of bytes of a pairing.
    public static let size = 48
    let storeID: [UInt8]
    let liveKey: Secret

    /// Draws a new pairing on the first device. The other devices need its bytes.
    /// - Throws: `.io` if the system gives no random bytes.
    public static func random() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: size)
        try fillRandom(&bytes)
        return bytes
    }

    /// - Parameter bytes: 48 bytes, as `random` drew them on one of the devices.
    /// - Throws: `.invalidArgument`.
    public init(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count == Pairing.size else {
            throw StoreError(.invalidArgument, "A pairing has \(Pairing.size) bytes, and was given with \(bytes.count). Give all of it.")
        }
        storeID = Array(bytes[..<16])
        liveKey = try Secret(UnsafeRawBufferPointer(rebasing: bytes[16...]))
    }

    init(storeID: [UInt8], liveKey: Secret) { self.storeID = storeID; self.liveKey = liveKey }

    /// Returns the public pairing of links for comparing digits.
    static func toCompare() throws -> Pairing {
        let key = Array("llvs compare 1".utf8).withUnsafeBytes { SHA256.digest($0) }
        return Pairing(storeID: [UInt8](repeating: 0, count: 16), liveKey: try Secret(key))
    }

    /// Returns whether a link with this beginning is for comparing digits: its initiator has no pairing yet.
    /// - Parameter beginning: at least 66 bytes.
    /// - Throws: `.unsupported` if there is no libcrypto.
    public static func isToCompare(beginning: UnsafeRawBufferPointer) throws -> Bool { try toCompare().matches(beginning: beginning) }

    /// The bytes that it was created from.
    var bytes: [UInt8] { storeID + liveKey.withBytes { Array($0) } }

    /// Returns the selector, 16 bytes, which the initiator sends first. The other side finds the pairing by it.
    func selector(_ crypto: Crypto, _ ephemeralKey: [UInt8]) throws -> [UInt8] { Array(try crypto.hmac(liveKey, ephemeralKey).prefix(16)) }

    var prologue: [UInt8] { Array("llvs live 1".utf8) + storeID.withUnsafeBytes { SHA256.digest($0) } }

    /// Returns whether a link with this beginning is from a device that has this pairing. For programs that listen for several stores.
    /// - Parameter beginning: at least 66 bytes.
    /// - Returns: false also for fewer bytes.
    /// - Throws: `.unsupported` if there is no libcrypto.
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
            throw StoreError(.io, "The system has no random bytes: \(Errno(error)). Try again.", systemCode: error)
        }
    }
}
