import LLVS
@testable import LLVSExchange

/// Files with keys, and encrypted files, of an encrypted remote or from a host.
///
///     input = how u8 · ...
///     how 0: a file of age, as it comes
///         1: what follows the header of one: nonce and segments
///         2: the first line of a ring; the target adds the tag
///         3: the plaintext of a ring, as it comes
///         4: identities, recipients and names of files, as text
enum KeysTarget {
    static let target = FuzzTarget(name: "keys", run: run, seeds: seeds)
    private static let limit = 1 << 20

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 5, rest = input.rest()
        Examining.attempt {
            let crypto = try Crypto(for: "fuzzing"), identity = try identity(crypto)
            do {
                switch how {
                case 0: try open(rest, identity, crypto)
                case 1: try open(AgeHeader.make(fileKey(), for: [identity.recipient], crypto, mixing: []) + rest, identity, crypto)
                case 2: try ring(rest + [0x0A] + tag(rest, identity, crypto), crypto)
                case 3: try ring(rest, crypto)
                default: try text(rest, crypto)
                }
            } catch let fault as AgeFault { throw fault.error("The file") }
        }
    }

    private static func identity(_ crypto: Crypto) throws -> AgeIdentity {
        try AgeIdentity(Secret([UInt8](repeating: 0x42, count: 32)), crypto)
    }
    private static func fileKey() throws -> Secret { try Secret([UInt8](repeating: 7, count: AgeHeader.fileKeySize)) }

    private static func open(_ file: [UInt8], _ identity: AgeIdentity, _ crypto: Crypto) throws {
        let plain = try AgeReader.decrypt(file, .identities([identity]), crypto, limit: limit).plain
        // Reading a file by ranges gives the same as reading it in one piece.
        guard let header = try file.withUnsafeBytes({ try AgeHeader.parse($0, isWhole: true) }) else { fail("a header is gone") }
        let start = header.size + AgePayload.nonceSize, size = file.count - start
        let payload = try AgePayload(header.fileKey([identity], crypto).key, nonce: Array(file[header.size..<start]), crypto)
        let range = plain.count / 3..<plain.count, place = try AgePayload.sealedRange(of: range, size: size)
        let part = try file[(start + place.lowerBound)..<(start + place.upperBound)].withUnsafeBytes {
            try payload.open(range, $0, size: size)
        }
        require(plain.withBytes { Array($0[range]) } == part, "a range holds something else")
    }

    private static func tag(_ line: [UInt8], _ identity: AgeIdentity, _ crypto: Crypto) throws -> [UInt8] {
        let epoch = try KeyEpoch(number: 1, identity: identity, made: "", why: "", crypto)
        let tag = try crypto.hmac(epoch.macKey, line)
        let hex = tag.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
        return Array("\(identity.recipient) \(hex)\n".utf8)
    }

    private static func ring(_ plain: [UInt8], _ crypto: Crypto) throws {
        let ring = try KeyRing(Secret(plain), crypto)
        // A ring that was read is written and read again.
        let made = try KeyRing(store: ring.store, epochs: ring.epochs, members: ring.members, removed: ring.removed)
        let again = try KeyRing(made.encoded(crypto), crypto)
        require(again.members == made.members && again.removed == made.removed && again.store == made.store, "a ring changed its members")
        require(again.epochs.map(\.recipient) == ring.epochs.map(\.recipient), "a ring changed its epochs")
    }

    private static func text(_ bytes: [UInt8], _ crypto: Crypto) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        if let name = KeyFileName(text) { require(name.description == text, "a name has two forms") }
        if let recipient = try? AgeRecipient(text) { require(recipient.description == text, "a recipient has two forms") }
        if let identity = try? AgeIdentity(text, crypto) {
            let written = try identity.text().withBytes { String(decoding: $0, as: UTF8.self) }
            require(written == text || written.lowercased() == text, "an identity has two forms")
        }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let crypto = try Crypto(for: "fuzzing"), identity = try identity(crypto)
        let epoch = try KeyEpoch(number: 1, identity: identity, made: "2026-11-22T20:00:00Z", why: "created", crypto)
        let member = KeyMember(name: "phone", kind: .device, recipient: identity.recipient, added: "2026-11-22T20:00:00Z")
        let ring = try KeyRing(store: PackID(high: 1, low: 2), epochs: [epoch], members: [member], removed: [identity.recipient])
        let plain = try ring.encoded(crypto).withBytes { Array($0) }
        let file = try AgeWriter.encrypt(plain, for: .recipients([identity.recipient]), crypto)
        let payload = try AgePayload(fileKey(), nonce: [UInt8](repeating: 0, count: AgePayload.nonceSize), crypto)
        var sealed = [UInt8](repeating: 0, count: 5 + Crypto.tagSize)
        try sealed.withUnsafeMutableBytes { out in try Array("plain".utf8).withUnsafeBytes { try payload.seal(0, true, $0, into: out) } }
        return [
            FuzzTarget.Seed(name: "file", bytes: [0] + file),
            FuzzTarget.Seed(name: "payload", bytes: [1] + [UInt8](repeating: 0, count: AgePayload.nonceSize) + sealed),
            FuzzTarget.Seed(name: "ring", bytes: [2] + plain.prefix { $0 != 0x0A }),
            FuzzTarget.Seed(name: "tags", bytes: [3] + plain),
            FuzzTarget.Seed(name: "recipient", bytes: [4] + Array(identity.recipient.description.utf8)),
            FuzzTarget.Seed(name: "identity", bytes: [4] + (try identity.text().withBytes { Array($0) })),
            FuzzTarget.Seed(name: "name", bytes: [4] + Array(KeyFileName.ring(epoch: 3, id: PackID(high: 1, low: 2)).description.utf8)),
        ]
    }
}
