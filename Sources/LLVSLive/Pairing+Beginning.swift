/// How a link begins: docs/live-protocol.md, section 1.
extension Pairing {
    /// Returns the public pairing of links for comparing digits.
    static func toCompare() throws -> Pairing {
        let key = Array("llvs compare 1".utf8).withUnsafeBytes { SHA256.digest($0) }
        return Pairing(storeID: [UInt8](repeating: 0, count: 16), liveKey: try Secret(key))
    }

    /// Returns whether a link with this beginning is for comparing digits: its initiator has no pairing yet.
    /// - Parameter beginning: at least 66 bytes.
    /// - Throws: `.unsupported` if there is no libcrypto.
    public static func isToCompare(beginning: UnsafeRawBufferPointer) throws -> Bool { try toCompare().matches(beginning: beginning) }

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
}
