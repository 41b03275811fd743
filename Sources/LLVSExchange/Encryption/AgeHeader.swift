/// The header of a file of age, version 1 (age-encryption.org/v1): the recipients, and for each the wrapped key of the payload.
///
///     age-encryption.org/v1
///     -> X25519 <base64 of 32 bytes>        a stanza for each recipient, or only one:
///     <base64 of 32 bytes>                  -> scrypt <base64 of 16 bytes> <work factor>
///     --- <base64 of 32 bytes>              HMAC of all before the space
struct AgeHeader {
    enum Stanza: Equatable {
        case x25519(share: [UInt8], body: [UInt8])
        case scrypt(salt: [UInt8], work: Int, body: [UInt8])
        /// A kind that this library does not know: another recipient's.
        case other
    }
    private(set) var stanzas: [Stanza] = []
    /// Bytes in all.
    private(set) var size = 0
    /// The bytes covered by the HMAC, and the HMAC.
    private var signed: [UInt8] = []
    private var mac: [UInt8] = []

    static let magic = Array("age-encryption.org/v1".utf8)
    /// The most bytes of a header, and the most stanzas; more are refused.
    static let sizeLimit = 64 << 10, stanzasLimit = 512
    static let fileKeySize = 16
    private static let bodySize = fileKeySize + Crypto.tagSize
    static let saltSize = 16
    /// The work factors of scrypt that are accepted, and the one that is written: 64 MiB and a fifth of a second.
    static let workRead = 14...18, workWritten = 16

    // MARK: Reading

    /// Parses the header at the beginning of a file.
    /// - Parameter isWhole: whether these bytes are the whole file.
    /// - Returns: nil if more of the file is needed.
    /// - Throws: `AgeFault`.
    static func parse(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) throws -> AgeHeader? {
        var lines = Lines(bytes)
        do {
            let start = try lines.next()
            guard start.elementsEqual(magic) else {
                let known = magic.dropLast(1)
                if start.starts(with: known), start.count > known.count, start.dropFirst(known.count).allSatisfy({ $0 &- 0x30 < 10 }) {
                    throw AgeFault(kind: .newer, why: "it has a newer format of age")
                }
                throw AgeFault.foreign
            }
            var header = AgeHeader()
            while try header.read(&lines) {}
            header.size = lines.position
            guard !header.stanzas.isEmpty else { throw AgeFault.damaged("its header has no recipient") }
            let hasPassphrase = header.stanzas.contains { if case .scrypt = $0 { true } else { false } }
            guard !hasPassphrase || header.stanzas.count == 1 else {
                throw AgeFault.damaged("its header has a passphrase and other recipients")
            }
            return header
        } catch is Lines.Short {
            guard bytes.prefix(magic.count).elementsEqual(magic.prefix(bytes.count)) else { throw AgeFault.foreign }
            guard bytes.count <= sizeLimit else { throw AgeFault.tooLarge("its header has more than \(sizeLimit) bytes") }
            guard !isWhole else { throw AgeFault.cutShort }
            return nil
        }
    }

    /// Reads one stanza; false after the last line.
    private mutating func read(_ lines: inout Lines) throws -> Bool {
        let begin = lines.position, line = try lines.next()
        if line.starts(with: Array("---".utf8)) {
            guard line.dropFirst(3).first == 0x20, let mac = AgeBase64.decode(line.dropFirst(4), size: 32) else {
                throw AgeFault.damaged("the last line of its header has another form")
            }
            self.mac = mac
            signed = lines.taken(upTo: begin + 3)
            return false
        }
        guard line.starts(with: Array("-> ".utf8)) else { throw AgeFault.damaged("a line of its header has another form") }
        let words = line.dropFirst(3).split(separator: 0x20, omittingEmptySubsequences: false)
        guard let kind = words.first, words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (33...126).contains($0) } }) else {
            throw AgeFault.damaged("a line of its header has another form")
        }
        var body: [UInt8] = [], isLast = false
        while !isLast {
            let line = try lines.next()
            guard line.count <= AgeBase64.lineSize, let part = AgeBase64.decode(line) else {
                throw AgeFault.damaged("a part of its header is not base64")
            }
            body += part
            isLast = line.count < AgeBase64.lineSize
        }
        guard stanzas.count < AgeHeader.stanzasLimit else {
            throw AgeFault.tooLarge("its header is for more than \(AgeHeader.stanzasLimit) recipients")
        }
        stanzas.append(try AgeHeader.stanza(Array(kind), words.dropFirst(), body))
        return true
    }

    private static func stanza(_ kind: [UInt8], _ words: ArraySlice<Slice<UnsafeRawBufferPointer>>, _ body: [UInt8]) throws -> Stanza {
        switch String(decoding: kind, as: UTF8.self) {
        case "X25519":
            guard words.count == 1, let word = words.first, let share = AgeBase64.decode(word, size: Crypto.keySize), body.count == bodySize
            else { throw AgeFault.damaged("a recipient in its header has another form") }
            return .x25519(share: share, body: body)
        case "scrypt":
            guard words.count == 2, let first = words.first, let last = words.last, let salt = AgeBase64.decode(first, size: saltSize),
                body.count == bodySize, last.first != 0x30, last.allSatisfy({ $0 &- 0x30 < 10 }),
                let work = Int(String(decoding: last, as: UTF8.self))
            else { throw AgeFault.damaged("the passphrase in its header has another form") }
            guard workRead.contains(work) else {
                throw AgeFault.tooLarge(
                    "its passphrase has the work factor \(work), and those of \(workRead.lowerBound) to \(workRead.upperBound) are read")
            }
            return .scrypt(salt: salt, work: work, body: body)
        default: return .other
        }
    }

    /// Splits the beginning of a file into lines.
    private struct Lines {
        struct Short: Error {}
        private let bytes: UnsafeRawBufferPointer
        private(set) var position = 0
        init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        /// Returns the next line without its end.
        mutating func next() throws -> Slice<UnsafeRawBufferPointer> {
            let end = min(bytes.count, AgeHeader.sizeLimit)
            guard let at = bytes[position..<end].firstIndex(of: 0x0A) else {
                if bytes.count > AgeHeader.sizeLimit, position > 0 {
                    throw AgeFault.tooLarge("its header has more than \(AgeHeader.sizeLimit) bytes")
                }
                throw Short()
            }
            defer { position = at + 1 }
            return bytes[position..<at]
        }
        func taken(upTo end: Int) -> [UInt8] { Array(bytes[0..<min(end, bytes.count)]) }
    }

    // MARK: Keys

    var isForPassphrase: Bool { if case .scrypt? = stanzas.first { true } else { false } }

    /// Returns the key of the file, unwrapped by one of the identities.
    /// - Throws: `AgeFault`.
    func fileKey(_ identities: [AgeIdentity], _ crypto: Crypto) throws -> (key: Secret, identity: AgeIdentity) {
        for stanza in stanzas {
            guard case .x25519(let share, let body) = stanza else { continue }
            for identity in identities {
                guard let shared = try crypto.shared(identity.secret, share) else {
                    throw AgeFault.damaged("a recipient in its header is not valid")
                }
                let key = try AgeHeader.wrapKey(shared, share, identity.recipient, crypto)
                guard let fileKey = try AgeHeader.unwrap(body, key, crypto) else { continue }
                try check(fileKey, crypto)
                return (fileKey, identity)
            }
        }
        throw isForPassphrase ? AgeFault(kind: .wrongKey, why: "it is encrypted with a passphrase") : AgeFault.wrongKey
    }

    /// - Throws: `AgeFault`; `.outOfMemory`.
    func fileKey(passphrase: Secret, _ crypto: Crypto) throws -> Secret {
        guard case .scrypt(let salt, let work, let body)? = stanzas.first else {
            throw AgeFault(kind: .wrongKey, why: "it is not encrypted with a passphrase, but for identities")
        }
        let key = try crypto.scrypt(passphrase, salt: AgeHeader.scryptLabel + salt, work: work)
        guard let fileKey = try AgeHeader.unwrap(body, key, crypto) else { throw AgeFault.wrongPassphrase }
        try check(fileKey, crypto)
        return fileKey
    }

    private func check(_ fileKey: Secret, _ crypto: Crypto) throws {
        guard Crypto.equal(try AgeHeader.mac(signed, fileKey, crypto), mac) else { throw AgeFault.damaged("its header was changed") }
    }
    private static func mac(_ signed: [UInt8], _ fileKey: Secret, _ crypto: Crypto) throws -> [UInt8] {
        try crypto.hmac(crypto.derive(fileKey, info: "header"), signed)
    }
    private static func wrapKey(_ shared: Secret, _ share: [UInt8], _ recipient: AgeRecipient, _ crypto: Crypto) throws -> Secret {
        try crypto.derive(shared, salt: share + recipient.bytes, info: "age-encryption.org/v1/X25519")
    }
    private static func unwrap(_ body: [UInt8], _ key: Secret, _ crypto: Crypto) throws -> Secret? {
        let out = try Secret(size: fileKeySize)
        return body.withUnsafeBytes { body in out.fill { crypto.unseal(key, nonce: zeros, body, into: $0) } } ? out : nil
    }
    private static let zeros = [UInt8](repeating: 0, count: Crypto.nonceSize)
    private static let scryptLabel = Array("age-encryption.org/v1/scrypt".utf8)

    // MARK: Writing

    /// Makes the header of a file for recipients.
    /// - Parameter digest: the digest of the file, or other bytes unique to it.
    static func make(_ fileKey: Secret, for recipients: [AgeRecipient], _ crypto: Crypto, mixing digest: [UInt8]) throws -> [UInt8] {
        guard !recipients.isEmpty, recipients.count <= stanzasLimit else {
            throw StoreError(.invalidArgument, "A file is encrypted for 1 to \(stanzasLimit) recipients, not for \(recipients.count).")
        }
        var stanzas: [UInt8] = []
        for recipient in recipients {
            let once = try AgeIdentity(Secret.random(Crypto.keySize, crypto, "llvs age share", mixing: recipient.bytes + digest), crypto)
            guard let shared = try crypto.shared(once.secret, recipient.bytes) else {
                throw StoreError(.invalidArgument, "\(recipient) is not a recipient: no identity belongs to it.")
            }
            let key = try wrapKey(shared, once.recipient.bytes, recipient, crypto)
            stanzas += Array("-> X25519 ".utf8) + AgeBase64.encode(once.recipient.bytes) + [0x0A]
            stanzas += try wrapped(fileKey, key, crypto)
        }
        return try finish(stanzas, fileKey, crypto)
    }

    /// Makes the header of a file for a passphrase.
    static func make(_ fileKey: Secret, passphrase: Secret, _ crypto: Crypto, mixing digest: [UInt8]) throws -> [UInt8] {
        let salt = try Secret.random(saltSize, crypto, "llvs age salt", mixing: digest).withBytes { Array($0) }
        let key = try crypto.scrypt(passphrase, salt: scryptLabel + salt, work: workWritten)
        let line = Array("-> scrypt ".utf8) + AgeBase64.encode(salt) + Array(" \(workWritten)\n".utf8)
        return try finish(line + wrapped(fileKey, key, crypto), fileKey, crypto)
    }

    private static func wrapped(_ fileKey: Secret, _ key: Secret, _ crypto: Crypto) throws -> [UInt8] {
        var body = [UInt8](repeating: 0, count: bodySize)
        try body.withUnsafeMutableBytes { out in try fileKey.withBytes { try crypto.seal(key, nonce: zeros, $0, into: out) } }
        return AgeBase64.encode(body) + [0x0A]
    }
    private static func finish(_ stanzas: [UInt8], _ fileKey: Secret, _ crypto: Crypto) throws -> [UInt8] {
        let signed = magic + [0x0A] + stanzas + Array("---".utf8)
        return try signed + [0x20] + AgeBase64.encode(mac(signed, fileKey, crypto)) + [0x0A]
    }
}

/// Base64 as in headers of age: unpadded, and with one form for each text.
enum AgeBase64 {
    /// The characters of a line of a stanza's body; the last line is shorter.
    static let lineSize = 64

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text = Base64.encode(bytes)
        while text.last == UInt8(ascii: "=") { text.removeLast() }
        return text
    }
    static func decode(_ text: some Collection<UInt8>, size: Int? = nil) -> [UInt8]? {
        guard !text.contains(UInt8(ascii: "=")), text.count % 4 != 1 else { return nil }
        let padded = Array(text) + [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
        guard let bytes = padded.withUnsafeBytes(Base64.decode), size ?? bytes.count == bytes.count else { return nil }
        return bytes
    }
}
