import CCrypto
import CLLVSShims

/// Bytes that are secret: in memory of their own, which is wiped when nobody uses them any more. Its size never changes, so no copy is left
/// behind anywhere. It prints as nothing.
final class Secret: @unchecked Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    // Sendable: it is written only by whoever makes it, before others have it.
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count: Int

    /// Room for so many bytes, zero.
    /// - Throws: `.outOfMemory`.
    init(size: Int) throws {
        memory = try Memory.allocate(size, "A secret")
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        count = size
    }
    convenience init(_ bytes: UnsafeRawBufferPointer) throws {
        try self.init(size: bytes.count)
        memory.copyMemory(from: bytes)
    }
    convenience init(_ bytes: [UInt8]) throws {
        try self.init(size: bytes.count)
        bytes.withUnsafeBytes { memory.copyMemory(from: $0) }
    }
    /// UTF-8.
    convenience init(_ text: String) throws { try self.init(Array(text.utf8)) }

    /// Nothing yet, with room for so much: see `append`.
    init(capacity: Int) throws {
        memory = try Memory.allocate(capacity, "A secret")
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        count = 0
    }
    deinit {
        llvs_crypto_wipe(memory.baseAddress, memory.count)
        Memory.release(memory)
    }

    /// Adds to the end, as far as there was made room.
    func append(_ bytes: some Collection<UInt8>) throws {
        guard bytes.count <= memory.count - count else { throw StoreError(.tooLarge, "A file with keys gets too large.") }
        for byte in bytes {
            memory[count] = byte
            count += 1
        }
    }
    func append(_ text: String) throws { try append(text.utf8) }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(rebasing: memory[0..<count])) }
    }
    /// For whoever just made it.
    func fill<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(self) { try body(UnsafeMutableRawBufferPointer(rebasing: memory[0..<count])) }
    }

    /// From the system's generator, mixed with what is being encrypted: a virtual machine that goes on from an old state may draw the same
    /// random bytes twice, but not for two different files.
    /// - Parameter mixing: the digest of that, or what else sets this call apart; a label in front.
    static func random(_ size: Int, _ crypto: Crypto, _ label: String, mixing digest: [UInt8]) throws -> Secret {
        let drawn = try Secret(size: Crypto.keySize)
        let error = drawn.fill { llvs_shim_random($0.baseAddress, $0.count) }
        guard error == 0 else {
            throw StoreError(.io, "The system gave no random bytes: \(Errno(error)). Nothing was encrypted; try again.", systemCode: error)
        }
        var mixed = try crypto.hmac(drawn, Array(label.utf8) + digest)
        defer { Secret.wipe(&mixed) }
        guard size <= mixed.count else { throw StoreError(.internal, "\(size) random bytes are drawn at once.") }
        return try mixed.withUnsafeBytes { try Secret(UnsafeRawBufferPointer(rebasing: $0[..<size])) }
    }

    /// Zeros in the place of bytes that were a secret.
    static func wipe(_ bytes: inout [UInt8]) { bytes.withUnsafeMutableBytes { llvs_crypto_wipe($0.baseAddress, $0.count) } }

    var description: String { "(secret)" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
