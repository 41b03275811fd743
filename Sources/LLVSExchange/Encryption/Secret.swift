import CCrypto
import CLLVSShims

/// Secret bytes in memory that is wiped after the last use. The memory never grows, so no copies are left behind. Never printed.
package final class Secret: @unchecked Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    // Sendable: written only by its creator, before it is shared.
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count: Int

    /// Allocates this many zero bytes.
    /// - Throws: `.outOfMemory`.
    init(size: Int) throws {
        memory = try Memory.allocate(size, "A secret")
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        count = size
    }
    package convenience init(_ bytes: UnsafeRawBufferPointer) throws {
        try self.init(size: bytes.count)
        memory.copyMemory(from: bytes)
    }
    package convenience init(_ bytes: [UInt8]) throws {
        try self.init(size: bytes.count)
        bytes.withUnsafeBytes { memory.copyMemory(from: $0) }
    }
    /// UTF-8.
    package convenience init(_ text: String) throws { try self.init(Array(text.utf8)) }

    /// Allocates an empty secret with this capacity: see `append`.
    init(capacity: Int) throws {
        memory = try Memory.allocate(capacity, "A secret")
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        count = 0
    }
    deinit {
        llvs_crypto_wipe(memory.baseAddress, memory.count)
        Memory.release(memory)
    }

    /// Appends bytes, up to the capacity.
    func append(_ bytes: some Collection<UInt8>) throws {
        guard bytes.count <= memory.count - count else { throw StoreError(.tooLarge, "A file with keys gets too large.") }
        for byte in bytes {
            memory[count] = byte
            count += 1
        }
    }
    func append(_ text: String) throws { try append(text.utf8) }

    package func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(rebasing: memory[0..<count])) }
    }
    /// Fills the bytes; only for the creator.
    func fill<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(self) { try body(UnsafeMutableRawBufferPointer(rebasing: memory[0..<count])) }
    }

    /// Returns bytes from the system's generator, mixed with a digest of the data to encrypt. A virtual machine restored from an old state
    /// may draw the same random bytes twice, but then not for two different files.
    /// - Parameter mixing: that digest, or other bytes unique to this call; `label` precedes it.
    package static func random(_ size: Int, _ crypto: Crypto, _ label: String, mixing digest: [UInt8]) throws -> Secret {
        let drawn = try Secret(size: Crypto.keySize)
        let error = drawn.fill { llvs_shim_random($0.baseAddress, $0.count) }
        guard error == 0 else {
            throw StoreError(.io, "The system has no random bytes: \(Errno(error)). Nothing was encrypted; try again.", systemCode: error)
        }
        var mixed = try crypto.hmac(drawn, Array(label.utf8) + digest)
        defer { Secret.wipe(&mixed) }
        guard size <= mixed.count else { throw StoreError(.internal, "\(size) random bytes are drawn at once.") }
        return try mixed.withUnsafeBytes { try Secret(UnsafeRawBufferPointer(rebasing: $0[..<size])) }
    }

    /// Overwrites secret bytes with zeros.
    package static func wipe(_ bytes: inout [UInt8]) { bytes.withUnsafeMutableBytes { llvs_crypto_wipe($0.baseAddress, $0.count) } }

    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
