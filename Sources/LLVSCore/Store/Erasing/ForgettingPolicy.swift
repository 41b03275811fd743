/// Whose orders to erase count on a device: docs/forgetting.md, "Who may erase". Pinned by the host, and stored beside the records.
struct ForgettingPolicy: Equatable {
    /// An order of another device counts when ...
    enum Mode: String {
        /// never.
        case nobody
        /// it is signed with a secret that the devices share.
        case members
        /// enough stewards signed it.
        case stewards
        /// it is in a version.
        case anyone
    }
    var mode = Mode.nobody
    /// The seconds from the first sight of an order of another device until it is followed.
    var delay: UInt64 = 0
    /// Derived from the secrets. Orders are signed with the first, and checked with all.
    var keys: [[UInt8]] = []
    /// The keys of those who sign, in the mode `stewards`.
    var stewards = Stewards()
    /// How often a policy was pinned on this device.
    var number: UInt64 = 0
    /// What is kept; nil: everything.
    var keep: KeepPolicy?
    /// The members that its JSON has.
    private var hasErase = false, hasKeep = false

    /// The most bytes of the JSON, the most secrets, and how many bytes each has.
    static let mostBytes = 65_536, mostKeys = 16, keySizes = 16...4_096
    /// The longest delay: ten years.
    static let mostDelay: UInt64 = 10 * 366 * 86_400

    /// The JSON of the policy, without the secrets.
    var json: [UInt8] {
        var members = delay > 0 ? ["\"delay\":\(delay)"] : []
        if mode == .stewards { members.append(stewards.keysMember) }
        members.append("\"mode\":\"\(mode.rawValue)\"")
        if mode == .stewards { members.append(stewards.needMembers) }
        let erase = "{\"erase\":{\(members.joined(separator: ","))}"
        return Array(erase.utf8) + (keep.map { Array(",\"keep\":".utf8) + $0.json } ?? []) + [UInt8(ascii: "}")]
    }

    init() {}

    /// - Throws: `.invalidArgument`, `.tooLarge`, `.unsupported`.
    init(json: [UInt8]) throws {
        guard json.count <= ForgettingPolicy.mostBytes else {
            throw StoreError(
                .tooLarge, "A policy has \(json.count) bytes; at most \(ForgettingPolicy.mostBytes) are allowed. Give a shorter one.")
        }
        do { try json.withUnsafeBytes { try read($0) } } catch let failure as JSONReader.Failure {
            throw ForgettingPolicy.invalid("is no valid JSON: \(failure.message)")
        }
    }

    /// Returns the policy with the members that another one has.
    /// - Throws: `.invalidArgument`.
    func replaced(by new: ForgettingPolicy, secrets: [[UInt8]]) throws -> ForgettingPolicy {
        var policy = self
        policy.number &+= 1
        if new.hasKeep { policy.keep = new.keep }
        (policy.hasErase, policy.hasKeep) = (true, policy.keep != nil)
        if new.hasErase {
            (policy.mode, policy.delay, policy.stewards) = (new.mode, new.delay, new.stewards)
            try policy.set(secrets)
        } else if !secrets.isEmpty {
            throw ForgettingPolicy.invalid("has secrets, which only \"erase\" uses")
        }
        return policy
    }
    private mutating func set(_ secrets: [[UInt8]]) throws {
        guard (mode == .members) == !secrets.isEmpty else {
            throw ForgettingPolicy.invalid(
                mode == .members
                    ? "of the mode \"members\" needs a secret that the devices share" : "has secrets, which only \"members\" uses")
        }
        guard secrets.count <= ForgettingPolicy.mostKeys, secrets.allSatisfy({ ForgettingPolicy.keySizes.contains($0.count) }) else {
            throw ForgettingPolicy.invalid("needs at most \(ForgettingPolicy.mostKeys) secrets, of 16 to 4,096 bytes each")
        }
        keys = secrets.map { HMAC.derive($0, info: "llvs forget 1") }
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer) throws {
        var reader = JSONReader(bytes)
        try reader.beginObject()
        while let key = try reader.nextMember() {
            for name: StaticString in ["cut", "private"] where try reader.equals(key, name) {
                throw StoreError(.unsupported, "A policy has the member \"\(name)\", which this library does not know yet. Leave it out.")
            }
            if try !hasKeep && reader.equals(key, "keep") {
                hasKeep = true
                keep = try reader.skipNull() ? nil : KeepPolicy(&reader)
            } else if try !hasErase && reader.equals(key, "erase") {
                hasErase = true
                try readErase(&reader)
            } else {
                throw try ForgettingPolicy.unknown(reader.string(key))
            }
        }
        try reader.end()
        guard hasErase || hasKeep else { throw ForgettingPolicy.invalid("has neither \"erase\" nor \"keep\"") }
    }

    private mutating func readErase(_ reader: inout JSONReader) throws {
        var said: [UInt8]?, hasDelay = false, hasStewards = false
        try reader.beginObject()
        while let key = try reader.nextMember() {
            if said == nil, try reader.equals(key, "mode") {
                said = try reader.string()
            } else if !hasDelay, try reader.equals(key, "delay") {
                hasDelay = true
                delay = try reader.unsigned()
            } else {
                guard try stewards.read(key, &reader) else { throw try ForgettingPolicy.unknown(reader.string(key)) }
                hasStewards = true
            }
        }
        let name = String(decoding: said ?? [], as: UTF8.self)
        guard let found = Mode(rawValue: name) else {
            throw ForgettingPolicy.invalid("has no \"mode\" of \"nobody\", \"members\", \"stewards\" and \"anyone\"")
        }
        mode = found
        guard mode == .stewards ? stewards.areValid : !hasStewards else {
            throw ForgettingPolicy.invalid(
                mode == .stewards
                    ? "of the mode \"stewards\" needs \"keys\", 1 to \(Stewards.most) public keys of Ed25519 in hexadecimal, each once, "
                        + "and may have \"need\", from 1 to their number"
                    : "has \"keys\", \"need\" or \"step\", which only \"stewards\" uses")
        }
        guard delay <= ForgettingPolicy.mostDelay else {
            throw ForgettingPolicy.invalid("has a delay of \(delay) seconds; at most \(ForgettingPolicy.mostDelay) are allowed")
        }
    }

    private static func invalid(_ what: String) -> StoreError {
        StoreError(.invalidArgument, "A policy of forgetting \(what). An example: {\"erase\":{\"mode\":\"anyone\"}}.")
    }
    private static func unknown(_ name: [UInt8]) -> StoreError {
        let text = PrintableText.escaping(String(decoding: name.prefix(100), as: UTF8.self))
        return invalid("has the member \"\(text)\", which is unknown, or there for the second time")
    }
    // MARK: As a line of the note

    private static let word = Array("policy".utf8)

    /// Empty if none was pinned.
    var line: [UInt8] {
        guard number > 0 else { return [] }
        let texts = keys.isEmpty ? "-" : keys.map { Hex.text(of: $0) }.joined(separator: ",")
        let head: [UInt8] = ForgettingPolicy.word + Array(" \(number) \(texts) ".utf8)
        return head + json + [UInt8(ascii: "\n")]
    }
    init?(line: ArraySlice<UInt8>) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 3)
        guard words.count == 4, words[0].elementsEqual(ForgettingPolicy.word),
            let number = UInt64(String(decoding: words[1], as: UTF8.self)), number > 0
        else { return nil }
        do { try Array(words[3]).withUnsafeBytes { try read($0) } } catch { return nil }
        self.number = number
        keys = words[2].split(separator: UInt8(ascii: ",")).compactMap { Hex.bytes(spelledBy: Array($0)) }.filter { $0.count == 32 }
    }

    // MARK: Signatures

    /// The bytes that are signed, for an order without `by`.
    static func signed(_ json: [UInt8]) -> [UInt8] {
        Array("llvs erase 1".utf8) + [0] + json.withUnsafeBytes { SHA256.digest($0) }
    }
    /// The name of a key in `by`.
    private static func name(of key: [UInt8]) -> String { Hex.text(of: Array(key.withUnsafeBytes { SHA256.digest($0) }.prefix(8))) }

    /// Returns an order of this device, signed if the policy has keys.
    func signed(_ json: [UInt8]) -> [UInt8] {
        guard let key = keys.first, json.first == UInt8(ascii: "{") else { return json }
        let signature = Hex.text(of: HMAC.of(ForgettingPolicy.signed(json), key: key))
        return Array("{\"by\":[{\"key\":\"\(ForgettingPolicy.name(of: key))\",\"signature\":\"\(signature)\"}],".utf8) + json.dropFirst()
    }

    /// Returns whether an order may replace the stewards by these.
    func allowsReplacing(by new: Stewards) -> Bool { mode == .stewards && new.step == stewards.step &+ 1 }

    /// Returns whether an order of another device counts on this one.
    /// - Throws: `.unsupported` if stewards sign and there is no libcrypto.
    func allows(_ json: [UInt8]) throws -> Bool {
        switch mode {
        case .nobody: return false
        case .anyone: return true
        case .members:
            guard let (rest, signatures) = EraseOrder.signatures(json) else { return false }
            let signed = ForgettingPolicy.signed(rest)
            return keys.contains { key in
                let expected = HMAC.of(signed, key: key)
                return signatures.contains { HMAC.equal($0.signature, expected) }
            }
        case .stewards: return try stewards.signers(of: json).count >= stewards.need
        }
    }
}

extension EraseOrder {
    /// Returns an order without its member `by`, and the signatures in that with their keys; nil if it has none.
    static func signatures(_ json: [UInt8]) -> (rest: [UInt8], signatures: [(key: [UInt8], signature: [UInt8])])? {
        var start: Int?, end: Int?, signatures: [(key: [UInt8], signature: [UInt8])] = []
        do {
            try json.withUnsafeBytes { bytes in
                var reader = JSONReader(bytes)
                try reader.beginObject()
                while let key = try reader.nextMember() {
                    // In canonical JSON another member follows at once.
                    if start != nil, end == nil { end = key.start - 1 }
                    guard try reader.equals(key, "by") else { try reader.skip(); continue }
                    guard start == nil else { throw reader.failure("a second member \"by\"") }
                    start = key.start - 1
                    try reader.beginArray()
                    while try reader.nextElement() {
                        var by: [UInt8] = [], signature: [UInt8]?
                        try reader.beginObject()
                        while let key = try reader.nextMember() {
                            if try reader.equals(key, "signature") {
                                signature = Hex.bytes(spelledBy: try reader.string())
                            } else if try reader.equals(key, "key") {
                                by = Hex.bytes(spelledBy: try reader.string()) ?? []
                            } else {
                                try reader.skip()
                            }
                        }
                        if let signature { signatures.append((by, signature)) }
                    }
                }
                try reader.end()
            }
        } catch { return nil }
        guard let start, let end, start < end, end <= json.count else { return nil }
        return (Array(json[..<start] + json[end...]), signatures)
    }
}
