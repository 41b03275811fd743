import CLLVSShims

/// HMAC with SHA-256 (RFC 2104), for what must work without libcrypto.
package enum HMAC {
    /// The block size of SHA-256 in bytes.
    private static let block = 64

    /// Returns the authentication code of the data under a key, 32 bytes.
    package static func of(_ data: [UInt8], key: [UInt8]) -> [UInt8] {
        let short = key.count > block ? digest(key) : key
        let padded = short + [UInt8](repeating: 0, count: block - short.count)
        return digest(padded.map { $0 ^ 0x5C } + digest(padded.map { $0 ^ 0x36 } + data))
    }
    private static func digest(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { SHA256.digest($0) } }

    /// Returns the first block of HKDF-SHA-256 without a salt (RFC 5869).
    static func derive(_ secret: [UInt8], info: String) -> [UInt8] {
        of(Array(info.utf8) + [1], key: of(secret, key: [UInt8](repeating: 0, count: 32)))
    }

    /// Returns whether two codes are equal, in a time that depends on their sizes alone.
    package static func equal(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        guard a.count == b.count else { return false }
        return a.withUnsafeBytes { a in b.withUnsafeBytes { b in llvs_shim_equal(a.baseAddress, b.baseAddress, a.count) == 1 } }
    }
}
