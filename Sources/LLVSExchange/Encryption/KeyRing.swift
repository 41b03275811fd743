/// The keys of one epoch: an identity, for which packs are encrypted, and the keys derived from it.
struct KeyEpoch: Sendable {
    /// From 1.
    let number: UInt32
    let identity: AgeIdentity
    /// When it was made and why, for display.
    let made: String, why: String
    /// The key of tags which show that a member wrote a file.
    let macKey: Secret
    /// The key that derives the names of blobs.
    let nameKey: Secret
    /// The key for direct connections of the members.
    let liveKey: Secret

    init(number: UInt32, identity: AgeIdentity, made: String, why: String, _ crypto: Crypto) throws {
        self.number = number; self.identity = identity; self.made = made; self.why = why
        macKey = try crypto.derive(identity.secret, info: "llvs mac 1")
        nameKey = try crypto.derive(identity.secret, info: "llvs name 1")
        liveKey = try crypto.derive(identity.secret, info: "llvs live 1")
    }
    var recipient: AgeRecipient { identity.recipient }
}

/// A member who can open a ring.
struct KeyMember: Hashable, Sendable {
    enum Kind: String, Sendable { case passphrase, recovery, device, host }
    /// For display.
    var name: String
    var kind: Kind
    var recipient: AgeRecipient
    /// For display.
    var added: String
}

/// The contents of a ring: docs/encryption.md, section 5.
struct KeyRing: Sendable {
    /// The store id of the root with which it was made.
    var store: PackID
    /// Sorted by number, then by recipient. Only the last one has the highest number.
    var epochs: [KeyEpoch]
    var members: [KeyMember]
    /// The former members.
    var removed: [AgeRecipient]
    /// Members of earlier epochs that lack the newest one, as far as its maker knew. A device that opens only this ring reports them.
    var lacking: [KeyMember]
    /// The first line, and the tags over it, of a ring that was read.
    private var line: Secret?
    private var tags: [AgeRecipient: [UInt8]] = [:]

    /// The most bytes of the plaintext, and of the file.
    static let sizeLimit = 1 << 20, fileLimit = 2 << 20
    static let epochsLimit = 1_024, membersLimit = 500, removedLimit = 4_096, nameLimit = 256, lackingLimit = 64
    /// The most epochs of competing keys that are joined: a ring holds few epochs, and a former member can make many.
    static let joinedLimit = 64

    init(store: PackID, epochs: [KeyEpoch], members: [KeyMember], removed: [AgeRecipient], lacking: [KeyMember] = []) throws {
        self.store = store
        self.epochs = epochs.sorted { ($0.number, $0.recipient) < ($1.number, $1.recipient) }
        self.members = members.sorted { $0.recipient < $1.recipient }
        self.removed = removed.sorted()
        let known = Set(members.map(\.recipient)).union(removed)
        self.lacking = Array(lacking.filter { !known.contains($0.recipient) }.prefix(KeyRing.lackingLimit))
        guard epochs.count <= KeyRing.epochsLimit, !epochs.isEmpty, members.count <= KeyRing.membersLimit,
            removed.count <= KeyRing.removedLimit
        else {
            throw StoreError(
                .tooLarge,
                "A ring of keys holds \(KeyRing.epochsLimit) epochs, \(KeyRing.membersLimit) members and "
                    + "\(KeyRing.removedLimit) former ones at most. Begin a new remote.")
        }
        guard !members.isEmpty else {
            throw StoreError(.invalidArgument, "No member could open these keys. Give a passphrase, or ask for a recovery key.")
        }
        for member in members where member.name.utf8.count > KeyRing.nameLimit {
            throw StoreError(
                .invalidArgument, "The name of a member has \(member.name.utf8.count) bytes; give at most \(KeyRing.nameLimit).")
        }
    }

    var newest: KeyEpoch? { epochs.last }
    func holds(_ epoch: KeyEpoch) -> Bool { epochs.contains { $0.recipient == epoch.recipient } }

    /// Returns whether a holder of the epoch's keys made this ring.
    func isVouched(by epoch: KeyEpoch, _ crypto: Crypto) throws -> Bool {
        guard let line, let tag = tags[epoch.recipient] else { return false }
        return try line.withBytes { line in
            try epoch.macKey.withBytes { Crypto.equal(try crypto.hmac($0, line), tag) }
        }
    }

    // MARK: Writing

    /// Returns the plaintext: a line of JSON, and for each epoch a line with an HMAC over it under the epoch's MAC key.
    func encoded(_ crypto: Crypto) throws -> Secret {
        let line = try Secret(capacity: KeyRing.sizeLimit)
        try line.append("{\"format\":1,\"store\":\"\(store)\",\"epochs\":[")
        for (i, epoch) in epochs.enumerated() {
            try line.append("\(i > 0 ? "," : ""){\"number\":\(epoch.number),\"identity\":\"")
            try epoch.identity.text().withBytes { try line.append($0) }
            try line.append("\",\"made\":")
            try line.append(JSONString.encode(epoch.made))
            try line.append(",\"why\":")
            try line.append(JSONString.encode(epoch.why))
            try line.append("}")
        }
        func append(_ members: [KeyMember]) throws {
            for (i, member) in members.enumerated() {
                try line.append("\(i > 0 ? "," : ""){\"name\":")
                try line.append(JSONString.encode(member.name))
                try line.append(",\"kind\":\"\(member.kind.rawValue)\",\"recipient\":\"\(member.recipient)\",\"added\":")
                try line.append(JSONString.encode(member.added))
                try line.append("}")
            }
        }
        try line.append("],\"members\":[")
        try append(members)
        try line.append("],\"removed\":[" + removed.map { "\"\($0)\"" }.joined(separator: ",") + "]")
        if !lacking.isEmpty {
            try line.append(",\"lacking\":[")
            try append(lacking)
            try line.append("]")
        }
        try line.append("}")
        let whole = try Secret(capacity: KeyRing.sizeLimit)
        try line.withBytes { line in
            try whole.append(line)
            try whole.append("\n")
            for epoch in epochs {
                let tag = try epoch.macKey.withBytes { try crypto.hmac($0, line) }
                try whole.append("\(epoch.recipient) \(Hex.text(of: tag))\n")
            }
        }
        return whole
    }

    // MARK: Reading

    /// - Throws: `AgeFault`.
    init(_ plain: Secret, _ crypto: Crypto) throws {
        store = .zero; epochs = []; members = []; removed = []; lacking = []
        try plain.withBytes { bytes in
            guard let end = bytes.firstIndex(of: 0x0A) else { throw AgeFault.damaged("its keys have no tags") }
            let first = UnsafeRawBufferPointer(rebasing: bytes[..<end])
            line = try Secret(first)
            for line in bytes[(end + 1)...].split(separator: 0x0A) {
                let words = line.split(separator: 0x20)
                guard words.count == 2, tags.count < KeyRing.epochsLimit, let tag = KeyRing.bytes(of: words[1]),
                    let recipient = try? AgeRecipient(String(decoding: words[0], as: UTF8.self))
                else { throw AgeFault.damaged("a tag of its keys has another form") }
                tags[recipient] = tag
            }
            do { try parse(first, crypto) } catch is JSONReader.Failure { throw AgeFault.damaged("its keys are not JSON of their form") }
        }
        guard let newest = epochs.last, !members.isEmpty, epochs.dropLast().last?.number != newest.number,
            Set(epochs.map(\.recipient)).count == epochs.count, Set(members.map(\.recipient)).count == members.count
        else { throw AgeFault.damaged("its keys are not complete") }
        // Each number is the next one after an epoch that the ring holds as well. A joined ring with a higher one would leave few numbers.
        guard Int(newest.number) <= epochs.count else { throw AgeFault.damaged("the number of its newest epoch is too high") }
        guard try isVouched(by: newest, crypto) else { throw AgeFault.damaged("its keys were not made by a holder of them") }
    }

    private static func bytes(of hex: some Collection<UInt8>) -> [UInt8]? {
        guard hex.count == 64 else { return nil }
        var out: [UInt8] = [], high: UInt8?
        for digit in hex {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x57
            default: return nil
            }
            if let first = high { out.append(first << 4 | value); high = nil } else { high = value }
        }
        return out
    }

    private mutating func parse(_ bytes: UnsafeRawBufferPointer, _ crypto: Crypto) throws {
        var json = KeyJSON(bytes), store: PackID?
        try json.members { name, json in
            switch name {
            case "format": try json.checkFormat()
            case "store": store = try json.storeID()
            case "epochs":
                try json.elements(atMost: KeyRing.epochsLimit) { json in
                    var number: UInt32?, identity: AgeIdentity?, made = "", why = ""
                    try json.members { name, json in
                        switch name {
                        case "number": number = try json.number()
                        case "identity": identity = try json.identity(crypto)
                        case "made": made = try json.text()
                        case "why": why = try json.text()
                        default: try json.skip()
                        }
                    }
                    guard let number, let identity else { throw AgeFault.damaged("an epoch of its keys is not complete") }
                    epochs.append(try KeyEpoch(number: number, identity: identity, made: made, why: why, crypto))
                }
            case "members": members = try json.keyMembers(atMost: KeyRing.membersLimit)
            case "lacking": lacking = try json.keyMembers(atMost: KeyRing.membersLimit)
            case "removed": try json.elements(atMost: KeyRing.removedLimit) { removed.append(try $0.recipient()) }
            default: try json.skip()
            }
        }
        try json.end()
        guard let store else { throw AgeFault.damaged("its keys name no store") }
        self.store = store
        epochs.sort { ($0.number, $0.recipient) < ($1.number, $1.recipient) }
    }
}

/// Reads the JSON of key files, without copying secrets.
struct KeyJSON {
    private var reader: JSONReader
    init(_ bytes: UnsafeRawBufferPointer) { reader = JSONReader(bytes) }

    mutating func members(_ body: (String, inout KeyJSON) throws -> Void) throws {
        try reader.beginObject()
        while let name = try reader.nextMember() { try body(String(decoding: try reader.slice(name), as: UTF8.self), &self) }
    }
    mutating func elements(atMost limit: Int, _ body: (inout KeyJSON) throws -> Void) throws {
        try reader.beginArray()
        var count = 0
        while try reader.nextElement() {
            count += 1
            guard count <= limit else { throw AgeFault.tooLarge("a list of its keys has more than \(limit) entries") }
            try body(&self)
        }
    }
    mutating func keyMembers(atMost limit: Int) throws -> [KeyMember] {
        var members: [KeyMember] = []
        try elements(atMost: limit) { json in
            var recipient: AgeRecipient?, kind: KeyMember.Kind?, title = "", added = ""
            try json.members { name, json in
                switch name {
                case "recipient": recipient = try json.recipient()
                case "kind": kind = KeyMember.Kind(rawValue: try json.text())
                case "name": title = try json.text()
                case "added": added = try json.text()
                default: try json.skip()
                }
            }
            guard let recipient else { throw AgeFault.damaged("a member of its keys is not complete") }
            // An unknown kind has an identity, as a device has.
            members.append(KeyMember(name: title, kind: kind ?? .device, recipient: recipient, added: added))
        }
        return members
    }
    mutating func checkFormat() throws {
        guard try reader.unsigned() <= 1 else { throw AgeFault(kind: .newer, why: "its keys are of a newer format") }
    }
    mutating func number() throws -> UInt32 {
        guard let number = UInt32(exactly: try reader.unsigned()), number > 0 else { throw AgeFault.damaged("an epoch has no number") }
        return number
    }
    mutating func storeID() throws -> PackID {
        guard let bytes = Base32.decode(try reader.string(), size: PackID.size), let id = PackID(bytes) else {
            throw AgeFault.damaged("its keys name no store")
        }
        return id
    }
    mutating func text() throws -> String {
        let text = try reader.string()
        guard text.count <= KeyRing.nameLimit else { throw AgeFault.tooLarge("a text of its keys has \(text.count) bytes") }
        return String(decoding: text, as: UTF8.self)
    }
    mutating func identity(_ crypto: Crypto) throws -> AgeIdentity {
        let text = try reader.text()
        do { return try AgeIdentity(text: reader.slice(text), crypto) } catch let error as StoreError where error.code == .invalidArgument {
            throw AgeFault.damaged("an identity of its keys is not valid")
        }
    }
    mutating func recipient() throws -> AgeRecipient {
        do { return try AgeRecipient(text()) } catch let error as StoreError where error.code == .invalidArgument {
            throw AgeFault.damaged("a recipient of its keys is not valid")
        }
    }
    mutating func skip() throws { try reader.skip() }
    mutating func end() throws { try reader.end() }
}
