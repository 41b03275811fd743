/// One side of Noise_XXpsk0_25519_ChaChaPoly_SHA256, which reads and writes the handshake's messages: docs/live-protocol.md, section 2.
///
///     initiator                 other side
///     write: psk, e          →  read
///     read                   ←  write: e, ee, s, es
///     write: s, se           →  read
struct NoiseHandshake {
    private enum Token { case psk, e, s, ee, es, se }
    private static let pattern: [[Token]] = [[.psk, .e], [.e, .ee, .s, .es], [.s, .se]]
    static let keySize = Crypto.keySize, tagSize = Crypto.tagSize
    private static let name = Array("Noise_XXpsk0_25519_ChaChaPoly_SHA256".utf8)

    private let crypto: Crypto
    private let isInitiator: Bool
    private let psk: Secret, identity: Secret, ephemeral: Secret
    private var chainingKey: Secret
    private var cipher: NoiseCipher?
    /// The handshake hash of all messages so far.
    private(set) var hash: [UInt8]
    private var theirEphemeral: [UInt8] = []
    /// The other side's device key, once it was received.
    private(set) var theirKey: [UInt8] = []
    private var step = 0
    var isDone: Bool { step == NoiseHandshake.pattern.count }
    /// Whether it is this side's turn to write.
    var isToWrite: Bool { !isDone && (step % 2 == 0) == isInitiator }

    /// A message does not decrypt: the secret or the store differs, or the bytes were changed.
    struct Refused: Error {}

    /// - Parameters:
    ///   - psk: the shared secret, 32 bytes.
    ///   - prologue: bytes that must be equal on both sides.
    ///   - identity: the secret half of the device key.
    ///   - ephemeral: the secret half of the key of this link, used once.
    init(_ crypto: Crypto, isInitiator: Bool, psk: Secret, prologue: [UInt8], identity: Secret, ephemeral: Secret) throws {
        self.crypto = crypto; self.isInitiator = isInitiator; self.psk = psk; self.identity = identity; self.ephemeral = ephemeral
        hash = NoiseHandshake.name.withUnsafeBytes { SHA256.digest($0) }
        chainingKey = try Secret(hash)
        mixHash(prologue)
    }

    private mutating func mixHash(_ data: [UInt8]) {
        var sum = SHA256()
        sum.update(hash)
        sum.update(data)
        hash = sum.finish()
    }

    /// Derives two or three secrets by the framework's HKDF.
    private func derive(_ material: Secret?, _ count: Int) throws -> [Secret] {
        let none: [UInt8] = []
        func hmac(_ key: Secret, _ data: [UInt8]) throws -> Secret {
            var made = try crypto.hmac(key, data)
            defer { Secret.wipe(&made) }
            return try Secret(made)
        }
        let temporary: Secret
        if let material {
            var made = try chainingKey.withBytes { key in try material.withBytes { try crypto.hmac(key, $0) } }
            defer { Secret.wipe(&made) }
            temporary = try Secret(made)
        } else {
            temporary = try hmac(chainingKey, none)
        }
        var outputs: [Secret] = []
        for number in 1...UInt8(count) {
            var input = outputs.last?.withBytes { Array($0) } ?? none
            defer { Secret.wipe(&input) }
            input.append(number)
            outputs.append(try hmac(temporary, input))
        }
        return outputs
    }

    private mutating func mixKey(_ material: Secret) throws {
        let made = try derive(material, 2)
        (chainingKey, cipher) = (made[0], NoiseCipher(crypto, made[1]))
    }

    private mutating func mixPSK() throws {
        let made = try derive(psk, 3)
        chainingKey = made[0]
        mixHash(made[1].withBytes { Array($0) })
        cipher = NoiseCipher(crypto, made[2])
    }

    private mutating func mixShared(_ mine: Secret, _ theirs: [UInt8]) throws {
        guard let secret = try crypto.shared(mine, theirs) else { throw Refused() }
        try mixKey(secret)
    }

    private mutating func mix(_ token: Token) throws {
        switch token {
        case .psk: try mixPSK()
        case .ee: try mixShared(ephemeral, theirEphemeral)
        case .es: try mixShared(isInitiator ? ephemeral : identity, isInitiator ? theirKey : theirEphemeral)
        case .se: try mixShared(isInitiator ? identity : ephemeral, isInitiator ? theirEphemeral : theirKey)
        case .e, .s: break
        }
    }

    private mutating func seal(_ data: [UInt8]) throws -> [UInt8] {
        let sealed = try cipher?.seal(data, also: hash) ?? data
        mixHash(sealed)
        return sealed
    }

    private mutating func open(_ data: [UInt8]) throws -> [UInt8] {
        guard cipher != nil else {
            mixHash(data)
            return data
        }
        guard let opened = try cipher?.open(data, also: hash) else { throw Refused() }
        mixHash(data)
        return opened
    }

    /// Writes the next message. It must be this side's turn.
    mutating func write(_ payload: [UInt8] = []) throws -> [UInt8] {
        guard isToWrite else { throw StoreError(.internal, "A handshake is written out of turn.") }
        var message: [UInt8] = []
        for token in NoiseHandshake.pattern[step] {
            switch token {
            case .e:
                let key = try crypto.publicKey(of: ephemeral)
                message += key
                mixHash(key)
                try mixKey(Secret(key))
            case .s: message += try seal(crypto.publicKey(of: identity))
            default: try mix(token)
            }
        }
        message += try seal(payload)
        step += 1
        return message
    }

    /// Reads the other side's next message, and returns its payload.
    /// - Throws: `Refused`.
    mutating func read(_ message: [UInt8]) throws -> [UInt8] {
        guard !isDone, !isToWrite else { throw Refused() }
        var rest = message[...]
        func take(_ count: Int) throws -> [UInt8] {
            guard rest.count >= count else { throw Refused() }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        for token in NoiseHandshake.pattern[step] {
            switch token {
            case .e:
                theirEphemeral = try take(NoiseHandshake.keySize)
                mixHash(theirEphemeral)
                try mixKey(Secret(theirEphemeral))
            case .s: theirKey = try open(take(NoiseHandshake.keySize + NoiseHandshake.tagSize))
            default: try mix(token)
            }
        }
        let payload = try open(Array(rest))
        step += 1
        return payload
    }

    /// Returns the ciphers for sending and receiving after the handshake.
    func split() throws -> (sending: NoiseCipher, receiving: NoiseCipher) {
        let made = try derive(nil, 2)
        let first = NoiseCipher(crypto, made[0]), second = NoiseCipher(crypto, made[1])
        return isInitiator ? (first, second) : (second, first)
    }
}

/// A key and the number of the next message that it is used for.
struct NoiseCipher {
    private let crypto: Crypto
    private var key: Secret
    private(set) var number: UInt64 = 0
    /// The number of messages after which the key is renewed.
    private let renewal: UInt64

    init(_ crypto: Crypto, _ key: Secret, renewal: UInt64 = 1 << 20) { self.crypto = crypto; self.key = key; self.renewal = renewal }

    private static func nonce(_ number: UInt64) -> [UInt8] {
        [0, 0, 0, 0] + (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }

    mutating func seal(_ data: [UInt8], also: [UInt8] = []) throws -> [UInt8] {
        var out = [UInt8](repeating: 0, count: data.count + Crypto.tagSize)
        try data.withUnsafeBytes { data in
            try out.withUnsafeMutableBytes { try crypto.seal(key, nonce: NoiseCipher.nonce(number), also: also, data, into: $0) }
        }
        try step()
        return out
    }

    /// Decrypts a message. Returns nil if it does not decrypt.
    mutating func open(_ data: [UInt8], also: [UInt8] = []) throws -> [UInt8]? {
        guard data.count >= Crypto.tagSize else { return nil }
        // One byte more, so that an empty message has memory, too.
        var out = [UInt8](repeating: 0, count: data.count - Crypto.tagSize + 1)
        let isRight = data.withUnsafeBytes { data in
            out.withUnsafeMutableBytes { crypto.unseal(key, nonce: NoiseCipher.nonce(number), also: also, data, into: $0) }
        }
        guard isRight else { return nil }
        out.removeLast()
        try step()
        return out
    }

    private mutating func step() throws {
        number += 1
        guard number % renewal == 0 else { return }
        let zeros = [UInt8](repeating: 0, count: Crypto.keySize)
        var out = [UInt8](repeating: 0, count: Crypto.keySize + Crypto.tagSize)
        defer { Secret.wipe(&out) }
        try zeros.withUnsafeBytes { zeros in
            try out.withUnsafeMutableBytes { try crypto.seal(key, nonce: NoiseCipher.nonce(.max), zeros, into: $0) }
        }
        key = try out.withUnsafeBytes { try Secret(UnsafeRawBufferPointer(rebasing: $0[..<Crypto.keySize])) }
    }
}
