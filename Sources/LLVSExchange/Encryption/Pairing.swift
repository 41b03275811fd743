import CLLVSShims

/// The secret that all devices share that exchange a store directly: docs/live-protocol.md, section 1.
public struct Pairing: Sendable {
    /// The number of bytes of a pairing.
    public static let size = 48
    package let storeID: [UInt8]
    package let liveKey: Secret

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

    /// - Parameter bytes: 48 bytes, as `random` drew them on one of the devices.
    /// - Throws: `.invalidArgument`.
    public init(_ bytes: [UInt8]) throws { self = try bytes.withUnsafeBytes { try Pairing($0) } }

    package init(storeID: [UInt8], liveKey: Secret) { self.storeID = storeID; self.liveKey = liveKey }

    /// The bytes that it was created from.
    package var bytes: [UInt8] { storeID + liveKey.withBytes { Array($0) } }

    package static func fillRandom(_ bytes: inout [UInt8]) throws {
        let error = bytes.withUnsafeMutableBytes { llvs_shim_random($0.baseAddress, $0.count) }
        guard error == 0 else {
            throw StoreError(.io, "The system has no random bytes: \(Errno(error)). Try again.", systemCode: error)
        }
    }
}
