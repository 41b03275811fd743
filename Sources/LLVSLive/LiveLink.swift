/// The bytes of a link: turns received bytes into frames and frames into bytes to send. Encrypted with the keys of the handshake.
/// docs/live-protocol.md, section 2.
struct LiveLink {
    static let selectorSize = 16
    /// The number of bytes before the first answer: the selector and message 1.
    static let beginning = selectorSize + 2 + Crypto.keySize + Crypto.tagSize
    static let messageLimit = 65_535, handshakeLimit = 1_024
    static let purpose = "Direct connections"

    private var handshake: NoiseHandshake
    private let pairing: Pairing
    private let crypto: Crypto
    private var sending: NoiseCipher?
    private var receiving: NoiseCipher?
    private var needsSelector: Bool
    /// Received bytes that are not a whole message yet.
    private var incoming: [UInt8] = []
    private var at = 0
    /// Decrypted bytes that are not a whole frame yet.
    private var plain: [UInt8] = []
    private var plainAt = 0
    /// Bytes to send, from `outgoingAt` on. Small reads do not move the remaining bytes each time.
    private var outgoing: [UInt8] = []
    private var outgoingAt = 0
    /// The number of bytes to send.
    var outgoingCount: Int { outgoing.count - outgoingAt }

    var isOpen: Bool { sending != nil }
    var hash: [UInt8] { handshake.hash }
    var theirKey: [UInt8] { handshake.theirKey }
    /// Returns a code that proves knowledge of some bytes to devices of the same pairing, and reveals nothing to others.
    func mac(_ bytes: [UInt8]) throws -> [UInt8] { try crypto.hmac(pairing.liveKey, bytes) }

    init(_ pairing: Pairing, identity: Secret, isInitiator: Bool) throws {
        crypto = try Crypto(for: LiveLink.purpose)
        self.pairing = pairing
        let ephemeral = try Secret.random(Crypto.keySize, crypto, "llvs live ephemeral", mixing: crypto.publicKey(of: identity))
        handshake = try NoiseHandshake(
            crypto, isInitiator: isInitiator, psk: pairing.liveKey, prologue: pairing.prologue, identity: identity, ephemeral: ephemeral)
        needsSelector = !isInitiator
        guard isInitiator else { return }
        let message = try handshake.write()
        outgoing = try pairing.selector(crypto, Array(message.prefix(Crypto.keySize)))
        put(message)
    }

    private mutating func put(_ message: [UInt8]) {
        outgoing.append(UInt8(truncatingIfNeeded: message.count))
        outgoing.append(UInt8(truncatingIfNeeded: message.count >> 8))
        outgoing += message
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        try Memory.grow(&incoming, by: bytes.count, "Reading from a peer")
        incoming.append(contentsOf: bytes)
    }

    /// Returns the next frame without its size, or nil if more bytes are needed.
    /// - Throws: `LiveFault`, `NoiseHandshake.Refused`.
    mutating func next() throws -> [UInt8]? {
        while true {
            if let frame = try nextFrame() { return frame }
            guard try readMessage() else { return nil }
        }
    }

    private mutating func nextFrame() throws -> [UInt8]? {
        guard plain.count - plainAt >= 4 else { return nil }
        let size = (0..<4).reduce(0) { $0 | Int(plain[plainAt + $1]) << (8 * $1) }
        guard size >= 1, size <= LiveFrame.limit else { throw LiveFault(.bound, "a frame has \(size) bytes") }
        guard plain.count - plainAt - 4 >= size else { return nil }
        let frame = Array(plain[plainAt + 4..<plainAt + 4 + size])
        plainAt += 4 + size
        if plainAt == plain.count || plainAt > 1 << 20 {
            plain.removeFirst(plainAt)
            plainAt = 0
        }
        return frame
    }

    /// A message of a paired device does not decrypt: it was changed on the way.
    struct Altered: Error {}

    /// Reads one message. Returns false if none is complete.
    private mutating func readMessage() throws -> Bool {
        if needsSelector {
            guard incoming.count - at >= LiveLink.selectorSize + 2 + Crypto.keySize else { return false }
            let beginning = Array(incoming[at..<at + LiveLink.selectorSize + 2 + Crypto.keySize])
            guard Crypto.equal(try pairing.selector(crypto, Array(beginning.suffix(Crypto.keySize))), Array(beginning.prefix(16))) else {
                throw NoiseHandshake.Refused()
            }
            needsSelector = false
            at += LiveLink.selectorSize
        }
        guard incoming.count - at >= 2 else { return false }
        let size = Int(incoming[at]) | Int(incoming[at + 1]) << 8
        guard isOpen || size <= LiveLink.handshakeLimit else { throw NoiseHandshake.Refused() }
        guard incoming.count - at - 2 >= size else { return false }
        let message = Array(incoming[at + 2..<at + 2 + size])
        at += 2 + size
        if at == incoming.count || at > 1 << 18 {
            incoming.removeFirst(at)
            at = 0
        }
        if isOpen {
            guard let opened = try receiving?.open(message) else { throw Altered() }
            plain += opened
            return true
        }
        _ = try handshake.read(message)
        if handshake.isToWrite { put(try handshake.write()) }
        if handshake.isDone {
            let ciphers = try handshake.split()
            (sending, receiving) = (ciphers.sending, ciphers.receiving)
        }
        return true
    }

    /// Appends a frame to the bytes to send.
    mutating func send(_ frame: [UInt8]) throws {
        let size = UInt32(truncatingIfNeeded: frame.count)
        let all = (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) } + frame
        var from = 0
        while from < all.count {
            let to = min(all.count, from + LiveLink.messageLimit - Crypto.tagSize)
            guard let sealed = try sending?.seal(Array(all[from..<to])) else {
                throw StoreError(.internal, "A frame is sent before the handshake is done.")
            }
            put(sealed)
            from = to
        }
    }

    /// Moves bytes to send into a buffer, as far as there is room. Returns their number.
    mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, outgoingCount), end = outgoingAt + count
        guard count > 0 else { return 0 }
        outgoing.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[outgoingAt..<end])) }
        outgoingAt = end
        if outgoingAt == outgoing.count || outgoingAt > 1 << 20 {
            outgoing.removeFirst(outgoingAt)
            outgoingAt = 0
        }
        return count
    }
}

/// Why a link ends, as reported to the other side: docs/live-protocol.md, section 7.
struct LiveFault: Error {
    enum Code: UInt16 {
        case frame = 1, bound, pending, version, newer, store, key
    }
    let code: Code
    /// A clause without a full stop: "a frame has 0 bytes".
    let why: String
    var version: VersionID?
    init(_ code: Code, _ why: String, version: VersionID? = nil) { self.code = code; self.why = why; self.version = version }
}
