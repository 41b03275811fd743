/// The recipients of an encrypted stream of packs.
public struct PackRecipients: Sendable {
    let key: AgeWriter.Key
    /// The most recipients.
    public static let limit = 512

    /// - Parameter recipients: as `age-keygen` prints them: `age1...`.
    /// - Throws: `.invalidArgument` for an invalid one, `.unsupported` without libcrypto.
    public init(_ recipients: [String]) throws {
        _ = try Crypto(for: "a pack of versions")
        guard (1...PackRecipients.limit).contains(recipients.count) else {
            throw StoreError(
                .invalidArgument, "A pack is encrypted for 1 to \(PackRecipients.limit) recipients, not for \(recipients.count).")
        }
        key = .recipients(try recipients.map(AgeRecipient.init))
    }
    /// - Parameter passphrase: 1 to 1,024 bytes of UTF-8.
    /// - Throws: as above.
    public init(passphrase: UnsafeRawBufferPointer) throws {
        _ = try Crypto(for: "a pack of versions")
        let secret = try Secret(passphrase)
        try PassphraseFile.check(secret)
        key = .passphrase(secret)
    }
}

/// The keys that open an encrypted stream of packs. Secrets are copied into memory that is wiped.
public struct PackUnlocking: Sendable {
    let key: AgeReader.Key

    /// - Parameter identities: as `age-keygen` prints them: `AGE-SECRET-KEY-1...`.
    /// - Throws: `.invalidArgument` for an invalid one, `.unsupported` without libcrypto.
    public init(_ identities: [UnsafeRawBufferPointer]) throws {
        let crypto = try Crypto(for: "a pack of versions")
        key = .identities(try identities.map { try AgeIdentity(text: $0, crypto) })
    }
    /// - Parameter passphrase: 1 to 1,024 bytes of UTF-8.
    /// - Throws: as above.
    public init(passphrase: UnsafeRawBufferPointer) throws {
        _ = try Crypto(for: "a pack of versions")
        let secret = try Secret(passphrase)
        try PassphraseFile.check(secret)
        key = .passphrase(secret)
    }
}

/// Streams of packs as files of age: docs/encryption.md.
extension Store {
    /// Writes a pack as `writePack` does, encrypted: the whole stream is the plaintext of one file of age, in its binary form.
    /// - Parameters:
    ///   - have: heads of the other store, as for `writePack`.
    ///   - recipients: the recipients; nil: does not encrypt.
    ///   - control: as for `writePack`.
    ///   - write: receives the bytes, piece by piece.
    public func writePack(
        have: [VersionID] = [], for recipients: PackRecipients?, control: OperationControl = OperationControl(),
        _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> ExchangeResult {
        guard let recipients else { return try writePack(have: have, control: control, write) }
        let crypto = try Crypto(for: "a pack of versions")
        // The contents are not known yet, so the digest covers their inputs and the time.
        var digest = SHA256()
        digest.update(Array("\(System.now)".utf8))
        for id in try heads().map(\.id) + have { digest.update(Array(" \(id)".utf8)) }
        var writer = try AgeWriter(for: recipients.key, crypto, mixing: digest.finish())
        let result = try writePack(have: have, control: control) { try writer.append($0, write) }
        try writer.finish(write)
        return result
    }

    /// Reads an encrypted stream as `readPack` does. After a changed segment nothing more is read.
    /// - Parameters:
    ///   - unlocking: the keys; nil: the stream is not encrypted.
    ///   - control: as for `readPack`.
    ///   - read: returns the bytes, piece by piece, as for `readPack`.
    /// - Throws: as `readPack`, and `.wrongKey`.
    public func readPack(
        by unlocking: PackUnlocking?, control: OperationControl = OperationControl(),
        _ read: (UnsafeMutableRawBufferPointer) throws -> Int
    ) throws -> ExchangeResult {
        guard let unlocking else { return try readPack(control: control, read) }
        try checkWritable("Reading a pack")
        let crypto = try Crypto(for: "a pack of versions")
        do {
            return try withoutActuallyEscaping(read) { read in
                var reader = try AgeReader(unlocking.key, crypto, read)
                let result = try readPack(control: control) { try reader.read(into: $0) }
                // Reads to the end of the file, which shows that nothing was cut off.
                var spare: UInt8 = 0
                guard try withUnsafeMutableBytes(of: &spare, { try reader.read(into: $0) }) == 0 else {
                    throw AgeFault.damaged("something follows the end of what is in it")
                }
                return result
            }
        } catch let fault as AgeFault { throw fault.error("The pack") }
    }
}
