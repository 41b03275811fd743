/// Encrypts a stream into a file of age, in its binary form, with one segment of 64 KiB in memory.
struct AgeWriter {
    private let payload: AgePayload
    private var plain: Secret
    private var filled = 0
    private var number = 0
    private var sealed: [UInt8]
    /// The header and nonce, until they were written.
    private var head: [UInt8]

    /// The recipients.
    enum Key {
        case recipients([AgeRecipient])
        case passphrase(Secret)
    }

    /// - Parameter digest: the digest of the plaintext if known, otherwise other unique bytes. It is mixed into random numbers.
    init(for key: Key, _ crypto: Crypto, mixing digest: [UInt8]) throws {
        let fileKey = try Secret.random(AgeHeader.fileKeySize, crypto, "llvs age file", mixing: digest)
        let nonce = try Secret.random(AgePayload.nonceSize, crypto, "llvs age nonce", mixing: digest).withBytes { Array($0) }
        switch key {
        case .recipients(let recipients): head = try AgeHeader.make(fileKey, for: recipients, crypto, mixing: digest)
        case .passphrase(let passphrase): head = try AgeHeader.make(fileKey, passphrase: passphrase, crypto, mixing: digest)
        }
        head += nonce
        payload = try AgePayload(fileKey, nonce: nonce, crypto)
        plain = try Secret(size: AgePayload.segmentSize)
        sealed = [UInt8](repeating: 0, count: AgePayload.sealedSize)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        var at = 0
        while at < bytes.count {
            // A full segment is not written yet: it may be the last.
            if filled == AgePayload.segmentSize { try flush(false, write) }
            let count = min(AgePayload.segmentSize - filled, bytes.count - at)
            plain.fill {
                UnsafeMutableRawBufferPointer(rebasing: $0[filled..<filled + count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[at..<at + count]))
            }
            filled += count
            at += count
        }
    }

    /// Writes the end of the file, without which it is invalid. Nothing may follow.
    mutating func finish(_ write: (UnsafeRawBufferPointer) throws -> Void) throws { try flush(true, write) }

    private mutating func flush(_ isLast: Bool, _ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        if !head.isEmpty {
            try head.withUnsafeBytes(write)
            head = []
        }
        let count = filled
        try sealed.withUnsafeMutableBytes { out in
            try plain.withBytes { try payload.seal(number, isLast, UnsafeRawBufferPointer(rebasing: $0[..<count]), into: out) }
        }
        try sealed.withUnsafeBytes { try write(UnsafeRawBufferPointer(rebasing: $0[..<(count + Crypto.tagSize)])) }
        filled = 0
        number += 1
    }

    /// Encrypts a whole file, whose digest is known.
    static func encrypt(_ pieces: [UnsafeRawBufferPointer], for key: Key, _ crypto: Crypto) throws -> [UInt8] {
        var digest = SHA256()
        for piece in pieces { digest.update(piece) }
        var writer = try AgeWriter(for: key, crypto, mixing: digest.finish())
        let size = pieces.reduce(0) { $0 + $1.count }
        var out: [UInt8] = []
        let whole = writer.head.count + AgePayload.sealedSize(size)
        try Memory.expect(whole, "Encrypting a file")
        out.reserveCapacity(whole)
        for piece in pieces { try writer.append(piece) { out.append(contentsOf: $0) } }
        try writer.finish { out.append(contentsOf: $0) }
        return out
    }
    static func encrypt(_ bytes: [UInt8], for key: Key, _ crypto: Crypto) throws -> [UInt8] {
        try bytes.withUnsafeBytes { try encrypt([$0], for: key, crypto) }
    }
    static func encrypt(_ secret: Secret, for key: Key, _ crypto: Crypto) throws -> [UInt8] {
        try secret.withBytes { try encrypt([$0], for: key, crypto) }
    }
}
