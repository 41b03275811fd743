import CCrypto

extension SharedLibrary {
    #if canImport(Darwin)
    private static let cryptoFile = "libcrypto.3.dylib"
    #else
    private static let cryptoFile = "libcrypto.so.3"
    #endif
    /// Returns the description of libcrypto (OpenSSL 3).
    package static func libcrypto(purpose: String, spared: String) -> SharedLibrary {
        SharedLibrary(
            name: "libcrypto", file: cryptoFile, packages: "Debian's package libssl3, Fedora's openssl-libs, Alpine's libcrypto3",
            purpose: purpose, spared: spared)
    }
}

/// Signatures with Ed25519 (RFC 8032), by the system's libcrypto, which is opened when stewards are first used.
package struct Ed25519: @unchecked Sendable {
    // Sendable: the table is filled once, before its address is shared.
    private let table: UnsafePointer<llvs_crypto>

    package static let keySize = 32
    package static let signatureSize = 64
    private static let library = SharedLibrary.libcrypto(
        purpose: "Signatures of stewards for", spared: "Orders to erase of the device itself, of members and of anyone need no libcrypto.")

    /// - Parameter what: what has the signatures, for messages.
    /// - Throws: `.unsupported` if there is no libcrypto, or if it is older than 3.0.
    package init(for what: String) throws {
        table = try Ed25519.library.functions(for: what) { llvs_crypto_open($0, $1, $2) }
    }

    /// Returns the public key of a seed.
    package func publicKey(of seed: [UInt8]) throws -> [UInt8] {
        guard seed.count == Ed25519.keySize else { throw Ed25519.wrongSeed }
        return try made(Ed25519.keySize) { out in
            seed.withUnsafeBufferPointer { seed in seed.baseAddress.map { llvs_crypto_ed25519_public(table, $0, out) } ?? 0 }
        }
    }
    package func sign(_ data: [UInt8], with seed: [UInt8]) throws -> [UInt8] {
        guard seed.count == Ed25519.keySize else { throw Ed25519.wrongSeed }
        return try made(Ed25519.signatureSize) { out in
            seed.withUnsafeBufferPointer { seed in
                data.withUnsafeBytes { data in
                    seed.baseAddress.map { llvs_crypto_ed25519_sign(table, $0, data.baseAddress, data.count, out) } ?? 0
                }
            }
        }
    }
    /// Returns whether a signature of the data is right under a public key.
    package func verify(_ signature: [UInt8], of data: [UInt8], by key: [UInt8]) -> Bool {
        guard signature.count == Ed25519.signatureSize, key.count == Ed25519.keySize else { return false }
        return signature.withUnsafeBufferPointer { signature in
            key.withUnsafeBufferPointer { key in
                data.withUnsafeBytes { data in
                    guard let signature = signature.baseAddress, let key = key.baseAddress else { return false }
                    return llvs_crypto_ed25519_verify(table, key, data.baseAddress, data.count, signature) == 1
                }
            }
        }
    }

    private func made(_ size: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Int32) throws -> [UInt8] {
        var out = [UInt8](repeating: 0, count: size)
        guard out.withUnsafeMutableBufferPointer({ $0.baseAddress.map(body) ?? 0 }) == 1 else {
            throw StoreError(.outOfMemory, "A signature failed: libcrypto refused to compute, most likely for lack of memory. Free some.")
        }
        return out
    }
    private static let wrongSeed = StoreError(
        .invalidArgument, "The key of a steward is not a seed of \(keySize) bytes. Give the private key of Ed25519 as RFC 8032 has it.")
}
