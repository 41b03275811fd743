import CCrypto

/// The system's libcrypto (OpenSSL 3), opened when the first key or encrypted file is used. Stores and exchanges without encryption do not
/// need it. Its results are either not secret or in memory that is wiped (`Secret`).
package struct Crypto: @unchecked Sendable {
    // Sendable: the table is filled once, before its address is shared.
    private let table: UnsafePointer<llvs_crypto>

    package static let keySize = 32
    package static let tagSize = 16
    static let nonceSize = 12

    private static let library = SharedLibrary.libcrypto(
        purpose: "Encryption for", spared: "What is not encrypted needs no libcrypto.")

    /// - Parameter what: the object to encrypt or decrypt, for messages.
    /// - Throws: `.unsupported` if there is no libcrypto, or if it is older than 3.0.
    package init(for what: String) throws {
        table = try Crypto.library.functions(for: what) { llvs_crypto_open($0, $1, $2) }
    }

    /// Returns the public half of a secret.
    package func publicKey(of secret: Secret) throws -> [UInt8] {
        try made { out in secret.withBytes { with($0) { llvs_crypto_x25519_public(table, $0, out) } } }
    }

    /// Returns the secret shared with a peer's public half; nil if that is invalid.
    package func shared(_ secret: Secret, _ peer: [UInt8]) throws -> Secret? {
        guard peer.count == Crypto.keySize else { return nil }
        let out = try Secret(size: Crypto.keySize)
        let isRight = out.fill { out in
            secret.withBytes { mine in
                peer.withUnsafeBytes { theirs in
                    with(mine) { mine in with(theirs) { theirs in with(out) { llvs_crypto_x25519(table, mine, theirs, $0) } } }
                }
            }
        }
        return isRight == 1 ? out : nil
    }

    package func hmac(_ key: Secret, _ data: [UInt8]) throws -> [UInt8] {
        try key.withBytes { key in try data.withUnsafeBytes { try hmac(key, $0) } }
    }
    package func hmac(_ key: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer) throws -> [UInt8] {
        try made { llvs_crypto_hmac(table, key.baseAddress, key.count, data.baseAddress, data.count, $0) }
    }

    /// Returns MD5, which protects nothing; nil if the system forbids it (FIPS).
    package func md5(_ data: [UInt8]) -> [UInt8]? {
        var out = [UInt8](repeating: 0, count: llvs_crypto_md5_size)
        let isRight = out.withUnsafeMutableBufferPointer { out in
            data.withUnsafeBytes { data in out.baseAddress.map { llvs_crypto_md5(table, data.baseAddress, data.count, $0) } ?? 0 }
        }
        return isRight == 1 ? out : nil
    }

    /// Returns the first block of HKDF-SHA-256.
    package func derive(_ secret: Secret, salt: [UInt8] = [], info: String) throws -> Secret {
        let out = try Secret(size: Crypto.keySize), info = Array(info.utf8)
        let isRight = out.fill { out in
            secret.withBytes { secret in
                salt.withUnsafeBytes { salt in
                    info.withUnsafeBytes { info in
                        with(out) {
                            llvs_crypto_hkdf(
                                table, secret.baseAddress, secret.count, salt.baseAddress, salt.count, info.baseAddress, info.count, $0)
                        }
                    }
                }
            }
        }
        guard isRight == 1 else { throw Crypto.failure }
        return out
    }

    /// Derives a key from a passphrase.
    /// - Parameter work: the binary logarithm of the cost, checked before; takes 2^work KiB of memory.
    func scrypt(_ passphrase: Secret, salt: [UInt8], work: Int) throws -> Secret {
        try Memory.expect(1 << (work + 10), "Unlocking with a passphrase")
        let out = try Secret(size: Crypto.keySize)
        let isRight = out.fill { out in
            passphrase.withBytes { passphrase in
                salt.withUnsafeBytes { salt in
                    with(out) { out in
                        guard let from = salt.baseAddress else { return 0 }
                        return llvs_crypto_scrypt(
                            table, passphrase.baseAddress, passphrase.count, from, salt.count, UInt32(truncatingIfNeeded: work), out)
                    }
                }
            }
        }
        guard isRight == 1 else {
            throw StoreError(
                .outOfMemory, "Unlocking with a passphrase needs \(1 << max(0, work - 10)) MiB of memory for a moment. Free some.")
        }
        return out
    }

    /// Writes the encryption of `data`, and the tag: 16 more bytes.
    /// - Parameter also: additional authenticated data.
    package func seal(
        _ key: Secret, nonce: [UInt8], also: [UInt8] = [], _ data: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) throws {
        guard nonce.count == Crypto.nonceSize, out.count >= data.count + Crypto.tagSize else { throw Crypto.failure }
        let isRight = key.withBytes { key in
            nonce.withUnsafeBytes { nonce in
                also.withUnsafeBytes { also in
                    with(key) { key in
                        with(nonce) { nonce in
                            out.baseAddress.map {
                                llvs_crypto_seal(table, key, nonce, also.baseAddress, also.count, data.baseAddress, data.count, $0)
                            } ?? 0
                        }
                    }
                }
            }
        }
        guard isRight == 1 else { throw Crypto.failure }
    }

    /// Writes the decryption of `data`: 16 bytes fewer. False if the data was changed, or the key is wrong.
    /// - Parameter also: additional authenticated data, as for `seal`.
    package func unseal(
        _ key: Secret, nonce: [UInt8], also: [UInt8] = [], _ data: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard nonce.count == Crypto.nonceSize, data.count >= Crypto.tagSize, out.count >= data.count - Crypto.tagSize,
            let from = data.baseAddress
        else { return false }
        return key.withBytes { key in
            nonce.withUnsafeBytes { nonce in
                also.withUnsafeBytes { also in
                    with(key) { key in
                        with(nonce) { nonce in
                            out.baseAddress.map {
                                llvs_crypto_unseal(table, key, nonce, also.baseAddress, also.count, from, data.count, $0)
                            } ?? 0
                        }
                    }
                }
            }
        } == 1
    }

    /// Returns whether both are equal, in constant time.
    package static func equal(_ a: [UInt8], _ b: [UInt8]) -> Bool { HMAC.equal(a, b) }

    /// Returns an ECDSA signature over P-256 and SHA-256, in DER. Nil if the key is not a private one for P-256, in PEM without a
    /// passphrase.
    package func sign(_ data: [UInt8], with pem: Secret) -> [UInt8]? {
        var out = [UInt8](repeating: 0, count: llvs_crypto_signature_size), size = 0
        let isRight = out.withUnsafeMutableBufferPointer { out in
            pem.withBytes { pem in
                data.withUnsafeBytes { data in
                    guard let out = out.baseAddress, let key = pem.baseAddress, let from = data.baseAddress else { return 0 as Int32 }
                    return llvs_crypto_sign_p256(table, key, pem.count, from, data.count, out, &size)
                }
            }
        }
        return isRight == 1 ? Array(out.prefix(size)) : nil
    }

    private func made(_ body: (UnsafeMutablePointer<UInt8>) -> Int32) throws -> [UInt8] {
        var out = [UInt8](repeating: 0, count: Crypto.keySize)
        let isRight = out.withUnsafeMutableBufferPointer { $0.baseAddress.map(body) ?? 0 }
        guard isRight == 1 else { throw Crypto.failure }
        return out
    }
    private func with(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafePointer<UInt8>) -> Int32) -> Int32 {
        bytes.count > 0 ? bytes.assumingMemoryBound(to: UInt8.self).baseAddress.map(body) ?? 0 : 0
    }
    private func with(_ bytes: UnsafeMutableRawBufferPointer, _ body: (UnsafeMutablePointer<UInt8>) -> Int32) -> Int32 {
        bytes.assumingMemoryBound(to: UInt8.self).baseAddress.map(body) ?? 0
    }
    private static let failure = StoreError(
        .outOfMemory, "Encryption failed: libcrypto refused to compute, most likely for lack of memory. Free some, and try again.")
}
