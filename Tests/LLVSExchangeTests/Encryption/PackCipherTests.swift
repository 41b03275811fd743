import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Packs as encrypted remotes store them.
@Suite("Encryption: packs") struct PackCipherTests {
    let crypto: Crypto, store = PackID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F)
    let clock = KeyClock(now: { 1_795_000_000 }, wait: { _ in })
    init() throws { crypto = try Crypto(for: "tests") }

    private func keys(_ place: MemoryKeyDirectory = MemoryKeyDirectory()) throws -> (StoreKeys, AgeIdentity) {
        let identity = try AgeIdentity(crypto)
        let member = KeyMember(name: "a", kind: .device, recipient: identity.recipient, added: "")
        return (
            try StoreKeys.create(
                in: place, store: store, passphrase: nil, members: [member], hasRecovery: false, clock, crypto
            ).keys, identity
        )
    }
    private func part(_ size: Int, digest: PackID = .random()) throws -> MadePack {
        try AgeTools.bytes(size).withUnsafeBytes {
            try PackWriter.blobPart(store: store, salt: .random(), writer: 7, digest: digest, part: 0, $0)
        }
    }

    @Test func sealedAndOpened() throws {
        let folder = TemporaryDirectory(), (keys, _) = try keys(), cipher = PackCipher(keys, crypto)
        for size in [1, 1_000, 400_000] {
            let made = try part(size), sealed = try cipher.seal(made), bytes = sealed.bytes
            #expect(sealed.name.id == PackID(LLVSCore.SHA256.digest(bytes)) && sealed.name.id != made.name.id && sealed.size == bytes.count)
            #expect(try cipher.seal(made).name.id != sealed.name.id)
            let (name, plain, epoch) = try cipher.open(sealed.name, bytes)
            #expect(epoch.number == 1 && plain == made.bytes && name == made.name)
            let file = try PackFile(name, plain, stores: [store])
            var content: [UInt8] = []
            try file.forEachBlock { content += Array($0) }
            #expect(content == AgeTools.bytes(size))
            // Another reader, written after docs/encryption.md: the tag is an HMAC of the digest in the trailer.
            let opened = try #require(try AgeTools.open(bytes, keys.current.identity, in: folder.path)), trailer = opened.suffix(160)
            #expect(opened.dropLast(160).elementsEqual(made.bytes.dropLast(160)))
            let tag = try crypto.hmac(keys.current.macKey, Array(trailer.dropFirst(72).prefix(32)))
            #expect(Array(trailer.dropFirst(104).prefix(32)) == tag)
        }
    }

    @Test func theEndAloneIsRead() throws {
        let (keys, _) = try keys(), cipher = PackCipher(keys, crypto)
        let made = try part(700_000), sealed = try cipher.seal(made), bytes = sealed.bytes
        let file = try EncryptedPack(sealed.name, size: bytes.count, head: Array(bytes[..<EncryptedPack.headSize]), cipher)
        #expect(file.plainSize == made.size)
        let wanted = made.size - 4_096..<made.size, place = try file.sealedRange(of: wanted)
        #expect(place.upperBound == bytes.count && place.count <= 2 * AgePayload.sealedSize)
        var tail = try file.open(wanted, Array(bytes[place]))
        try file.check(&tail)
        let header = Array(made.bytes[..<64])
        let found = try tail.withUnsafeBytes {
            try PackIndex.read(sealed.name, size: file.plainSize, tail: $0, stores: [store], header: header)
        }
        let index = try #require(found)
        #expect(index.blocks.count == 3)
        let block = index.blocks[1], range = block.offset..<block.offset + block.size
        let stored = try file.open(range, Array(bytes[file.sealedRange(of: range)]))
        #expect(try stored.withUnsafeBytes { try PackFile.inflate(block, $0) } == Array(AgeTools.bytes(700_000)[262_144..<524_288]))
        #expect(throws: PackFault.self) { try EncryptedPack(sealed.name, size: bytes.count, head: Array(bytes[..<100]), cipher) }
        #expect(throws: PackFault.self) { try file.sealedRange(of: 0..<made.size + 1) }
    }

    @Test func anyByteThatIsChangedIsNoticed() throws {
        let (keys, _) = try keys(), cipher = PackCipher(keys, crypto), sealed = try cipher.seal(try part(40)), good = sealed.bytes
        for i in good.indices {
            var bad = good, name = sealed.name
            bad[i] ^= 0x10
            #expect(throws: PackFault.self, "\(i)") { try cipher.open(name, bad) }
            // With a name that fits.
            name.id = try #require(PackID(LLVSCore.SHA256.digest(bad)))
            do {
                _ = try cipher.open(name, bad)
                Issue.record("byte \(i)")
            } catch let fault as PackFault {
                #expect([.damaged, .newer, .notThere].contains(fault.kind), "\(i)")
            } catch let error as StoreError { #expect(error.code == .keyMissing && i < 168, "\(i)") }
        }
        for end in stride(from: 0, to: good.count, by: sample(usual: 5, deep: 1)) {
            var name = sealed.name
            name.id = try #require(PackID(LLVSCore.SHA256.digest(Array(good[..<end]))))
            #expect(throws: PackFault.self, "\(end)") { try cipher.open(name, Array(good[..<end])) }
        }
    }

    /// An attacker who only knows the recipient of the epoch can encrypt to it.
    @Test func whoDoesNotKnowTheKeysWritesNothing() throws {
        let place = MemoryKeyDirectory(), (keys, member) = try keys(place), cipher = PackCipher(keys, crypto), made = try part(40)
        func named(_ bytes: [UInt8]) -> PackName {
            var name = made.name
            name.id = PackID(LLVSCore.SHA256.digest(bytes))!
            return name
        }
        func fault(_ bytes: [UInt8]) -> PackFault.Kind? {
            do { _ = try cipher.open(named(bytes), bytes); return nil } catch { return (error as? PackFault)?.kind }
        }
        // Packs that are unencrypted, encrypted without a tag, or encrypted with the tag of another epoch.
        #expect(fault(made.bytes) == .damaged)
        #expect(fault(try AgeWriter.encrypt(made.bytes, for: .recipients([keys.current.recipient]), crypto)) == .damaged)
        let next = try keys.rotating("regular", in: place, clock, crypto)
        let old = try PackCipher(keys, crypto).seal(made).bytes
        let inside = AgeTools.plain(try AgeReader.decrypt(old, .identities([keys.current.identity]), crypto, limit: 1 << 20).plain)
        let moved = try AgeWriter.encrypt(inside, for: .recipients([next.current.recipient]), crypto)
        do {
            _ = try PackCipher(next, crypto).open(named(moved), moved)
            Issue.record("a tag of another epoch was accepted")
        } catch let fault as PackFault { #expect(fault.kind == .damaged) }
        // Packs of older epochs are read. For a future epoch the key is missing.
        #expect(try PackCipher(next, crypto).open(named(old), old).epoch.number == 1)
        let new = try PackCipher(next, crypto).seal(made)
        do {
            _ = try cipher.open(new.name, new.bytes)
            Issue.record("an epoch that is not known was read")
        } catch let error as StoreError { #expect(error.code == .keyMissing) }
        let seen = try StoreKeys.open(place, stores: [store], StoreKeys.Unlocking(identities: [member]), crypto)
        #expect(try PackCipher(seen, crypto).open(new.name, new.bytes).epoch.number == 2)
    }

    @Test func blobsAreNamedByTheKey() throws {
        let place = MemoryKeyDirectory(), (keys, _) = try keys(place), digest = AgeTools.bytes(32)
        let one = try PackCipher(keys, crypto).blobDigest(digest)
        #expect(try PackCipher(keys, crypto).blobDigest(digest) == one && one != PackID(digest))
        #expect(one == PackID(try crypto.hmac(keys.current.nameKey, digest)))
        let next = try keys.rotating("regular", in: place, clock, crypto)
        #expect(try PackCipher(next, crypto).blobDigest(digest) != one)
        #expect(try PackCipher(next, crypto).blobDigest(digest, in: keys.current) == one)
    }
}
