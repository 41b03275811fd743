/// The credentials that open an encrypted remote, or create a new one: docs/encryption.md. Secrets are copied into memory that is wiped,
/// and never printed.
public struct RemoteKeys: Sendable, CustomStringConvertible, CustomReflectable {
    var passphrase: Secret?
    let identities: [AgeIdentity]
    /// Further members of a remote created with these.
    let recipients: [AgeRecipient]

    /// - Parameters:
    ///   - passphrase: 1 to 1,024 bytes of UTF-8; nil or empty: none.
    ///   - identities: as `age-keygen` prints them: `AGE-SECRET-KEY-1...`.
    ///   - recipients: further members of a remote created with these: `age1...`.
    /// - Throws: `.invalidArgument` for invalid ones, and for recipients alone, which open nothing; `.unsupported` without libcrypto.
    public init(passphrase: UnsafeRawBufferPointer? = nil, identities: [UnsafeRawBufferPointer] = [], recipients: [String] = []) throws {
        let crypto = try RemoteKeys.crypto()
        guard (passphrase?.count ?? 0) > 0 || !identities.isEmpty else {
            throw StoreError(
                .invalidArgument,
                "An encrypted place is opened with a passphrase or an identity, and neither is given. Recipients only add holders of "
                    + "the keys. Give a passphrase, or the identity of this device.")
        }
        guard identities.count <= PackRecipients.limit, recipients.count <= KeyRing.membersLimit / 2 else {
            throw StoreError(.invalidArgument, "\(identities.count) identities and \(recipients.count) recipients are too many.")
        }
        if let passphrase, !passphrase.isEmpty {
            let secret = try Secret(passphrase)
            try PassphraseFile.check(secret)
            self.passphrase = secret
        } else {
            self.passphrase = nil
        }
        self.identities = try identities.map { try AgeIdentity(text: $0, crypto) }
        self.recipients = try recipients.map(AgeRecipient.init)
    }

    public var description: String { "(keys)" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    static func crypto() throws -> Crypto { try Crypto(for: "an exchange that is encrypted") }
    var unlocking: StoreKeys.Unlocking { StoreKeys.Unlocking(passphrase: passphrase, identities: identities) }

    /// Returns the members of a remote that is created with these keys, without the member of the passphrase.
    func members(_ clock: KeyClock) -> [KeyMember] {
        var all: [KeyMember] = [], known: Set<AgeRecipient> = []
        for recipient in identities.map(\.recipient) + recipients where known.insert(recipient).inserted {
            all.append(KeyMember(name: "", kind: .device, recipient: recipient, added: clock.text()))
        }
        return all
    }
}
