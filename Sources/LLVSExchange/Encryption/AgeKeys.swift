/// The public half of an identity, `age1...`, for which files are encrypted.
struct AgeRecipient: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// 32 bytes.
    let bytes: [UInt8]
    static let prefix = "age"

    /// Nil if there are not 32 bytes.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Crypto.keySize else { return nil }
        self.bytes = bytes
    }
    /// - Throws: `.invalidArgument`.
    init(_ text: String) throws {
        let found = try Array(text.utf8).withUnsafeBytes { try Bech32.decode($0, prefix: AgeRecipient.prefix) }
        guard let found, let key = AgeRecipient(found.withBytes { Array($0) }), !text.utf8.contains(where: { $0 >= 0x41 && $0 <= 0x5A })
        else {
            throw StoreError(
                .invalidArgument,
                "\(AgeRecipient.shown(text)) is not a recipient of age. Give the public key that age-keygen prints: age1 and 58 "
                    + "characters.")
        }
        self = key
    }
    /// Shows the text only if it looks like a recipient, since it may be a secret passed in by mistake.
    private static func shown(_ text: String) -> String {
        text.utf8.count <= 80 && text.lowercased().hasPrefix("age1") ? "\"\(text)\"" : "The given text"
    }

    var description: String {
        let text = try? bytes.withUnsafeBytes { try Bech32.encode(AgeRecipient.prefix, $0) }
        return text?.withBytes { String(decoding: $0, as: UTF8.self) } ?? ""
    }
    static func < (a: AgeRecipient, b: AgeRecipient) -> Bool { Bytes.compare(a.bytes, b.bytes) < 0 }
}

/// An X25519 secret that opens files, `AGE-SECRET-KEY-1...`.
struct AgeIdentity: Sendable {
    /// 32 bytes.
    let secret: Secret
    let recipient: AgeRecipient
    static let prefix = "age-secret-key-"

    init(_ secret: Secret, _ crypto: Crypto) throws {
        guard secret.count == Crypto.keySize, let recipient = AgeRecipient(try crypto.publicKey(of: secret)) else {
            throw StoreError(.internal, "An identity has \(secret.count) bytes.")
        }
        self.secret = secret
        self.recipient = recipient
    }
    /// Generates an identity.
    init(_ crypto: Crypto) throws { try self.init(Secret.random(Crypto.keySize, crypto, "llvs identity", mixing: []), crypto) }

    /// - Parameter text: as `age-keygen` prints it.
    /// - Throws: `.invalidArgument`, without the text.
    init(text: UnsafeRawBufferPointer, _ crypto: Crypto) throws {
        guard let secret = try Bech32.decode(text, prefix: AgeIdentity.prefix) else {
            throw StoreError(
                .invalidArgument,
                "The given text is not an identity of age: AGE-SECRET-KEY-1 and 58 characters, in one case. Give the line that age-keygen "
                    + "prints, or the recovery key as it was shown.")
        }
        try self.init(secret, crypto)
    }
    init(_ text: String, _ crypto: Crypto) throws {
        var bytes = Array(text.utf8)
        defer { Secret.wipe(&bytes) }
        try self = bytes.withUnsafeBytes { try AgeIdentity(text: $0, crypto) }
    }

    /// `AGE-SECRET-KEY-1...`
    func text() throws -> Secret {
        let text = try secret.withBytes { try Bech32.encode(AgeIdentity.prefix, $0) }
        text.fill { for i in $0.indices where $0[i] >= 0x61 && $0[i] <= 0x7A { $0[i] -= 0x20 } }
        return text
    }
}
