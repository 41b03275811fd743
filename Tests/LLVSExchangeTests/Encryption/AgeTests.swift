import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Files of age, read and written as the tool `age` does.
@Suite("Encryption: files of age") struct AgeTests {
    struct Cases: Decodable {
        struct Case: Decodable { let name: String, expect: String, age: String, passphrase: String, plain: String }
        let identity: String, recipient: String, other: String, cases: [Case]
    }
    let crypto: Crypto
    init() throws { crypto = try Crypto(for: "tests") }

    private func name(_ kind: AgeFault.Kind) -> String {
        switch kind {
        case .foreign: "foreign"
        case .wrongKey: "wrong_key"
        case .damaged: "damaged"
        case .cutShort: "cut_short"
        case .tooLarge: "too_large"
        case .newer: "newer"
        }
    }
    private func hex(_ bytes: [UInt8]) -> String { bytes.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined() }
    private func open(_ bytes: [UInt8], _ key: AgeReader.Key) throws -> [UInt8] {
        AgeTools.plain(try AgeReader.decrypt(bytes, key, crypto, limit: 1 << 24).plain)
    }

    /// Good and bad files, made by a model in Python. The table says how `age` itself treats each, and the tool is run to confirm it.
    @Test func filesThatAModelMade() throws {
        let folder = TemporaryDirectory()
        #expect(try AgeTools.run(["python3", AgeTools.vectors.appendingPathComponent("cases.py").path, folder.path]) != nil)
        let file = { (name: String) in URL(fileURLWithPath: folder.path + "/" + name) }
        let cases = try JSONDecoder().decode(Cases.self, from: Data(contentsOf: file("cases.json")))
        let identity = try AgeIdentity(cases.identity, crypto)
        #expect(identity.recipient.description == cases.recipient)
        #expect(try AgeTools.plain(identity.text()) == Array(cases.identity.utf8))
        #expect(cases.cases.count > 90)
        for (number, one) in cases.cases.enumerated() {
            let bytes = try [UInt8](Data(contentsOf: file(one.name)))
            let key: AgeReader.Key = one.passphrase.isEmpty ? .identities([identity]) : .passphrase(try Secret(one.passphrase))
            var found = "ok"
            do {
                #expect(hex(LLVSCore.SHA256.digest(try open(bytes, key))) == one.plain, "\(one.name)")
            } catch let fault as AgeFault { found = name(fault.kind) }
            #expect(found == one.expect, "\(one.name)")
            // The usual run starts `age` for every fourth file, since each takes a process.
            guard Sample.isDeep || number % 4 == 0 else { continue }
            let tool =
                one.passphrase.isEmpty
                ? try AgeTools.open(bytes, identity, in: folder.path)
                : one.age == "ok" ? try AgeTools.open(bytes, passphrase: one.passphrase, in: folder.path) : nil
            #expect((tool != nil) == (one.age == "ok"), "\(one.name)")
            if let tool { #expect(hex(LLVSCore.SHA256.digest(tool)) == one.plain, "\(one.name)") }
        }
    }

    @Test func bothDirections() throws {
        let folder = TemporaryDirectory(), mine = try AgeIdentity(crypto), other = try AgeIdentity(crypto)
        let key = folder.path + "/made"
        #expect(try AgeTools.run(["age-keygen", "-o", key]) != nil)
        let text = try String(contentsOfFile: key, encoding: .utf8).split(separator: "\n").last.map(String.init) ?? ""
        let made = try AgeIdentity(text, crypto)
        let shown = try AgeTools.run(["age-keygen", "-y", key]).map { String(decoding: $0, as: UTF8.self) } ?? ""
        #expect(shown.split(separator: "\n").first.map(String.init) == made.recipient.description)
        #expect(try AgeRecipient(made.recipient.description) == made.recipient)

        for size in sample(usual: [0, 65_536, 65_537, 131_072], deep: [0, 1, 100, 65_535, 65_536, 65_537, 131_072, 300_000]) {
            let plain = AgeTools.bytes(size)
            let ours = try AgeWriter.encrypt(plain, for: .recipients([other.recipient, mine.recipient, made.recipient]), crypto)
            for identity in [mine, other, made] {
                #expect(try AgeTools.open(ours, identity, in: folder.path) == plain, "\(size)")
                #expect(try open(ours, .identities([identity])) == plain)
            }
            let file = folder.path + "/plain"
            try Data(plain).write(to: URL(fileURLWithPath: file))
            let theirs = try AgeTools.run(["age", "-r", other.recipient.description, "-r", mine.recipient.description, file])
            #expect(try open(#require(theirs), .identities([made, mine])) == plain, "\(size)")
        }
    }

    @Test func bothDirectionsByPassphrase() throws {
        let folder = TemporaryDirectory(), plain = AgeTools.bytes(1_000), passphrase = "räuber hotzenplotz"
        let ours = try AgeWriter.encrypt(plain, for: .passphrase(try Secret(passphrase)), crypto)
        #expect(ours.starts(with: Array("age-encryption.org/v1\n-> scrypt ".utf8)))
        #expect(String(decoding: ours.prefix(70), as: UTF8.self).contains(" 16\n"))
        #expect(try AgeTools.open(ours, passphrase: passphrase, in: folder.path) == plain)
        let file = folder.path + "/in", out = folder.path + "/out"
        try Data(plain).write(to: URL(fileURLWithPath: file))
        #expect(try AgeTools.run(passphrase: passphrase, ["age", "--passphrase", "-o", out, file]))
        let theirs = try [UInt8](Data(contentsOf: URL(fileURLWithPath: out)))
        #expect(try open(theirs, .passphrase(Secret(passphrase))) == plain)
    }

    @Test func anyByteThatIsChangedIsNoticed() throws {
        let identity = try AgeIdentity(crypto), plain = Array("some plain text".utf8)
        let good = try AgeWriter.encrypt(plain, for: .recipients([identity.recipient]), crypto)
        #expect(good.count == EncryptedPack.headSize + plain.count + 16)
        for i in good.indices {
            for bit in sample(usual: [i % 2 == 0 ? 1 : 0x80], deep: [1, 0x80] as [UInt8]) {
                var bad = good
                bad[i] ^= bit
                do {
                    _ = try open(bad, .identities([identity]))
                    Issue.record("byte \(i) was changed, and the file was opened")
                } catch let fault as AgeFault {
                    let kinds: [AgeFault.Kind] =
                        i < 22 ? [.foreign, .newer, .cutShort] : i < 168 ? [.damaged, .wrongKey, .cutShort] : [.damaged]
                    #expect(kinds.contains(fault.kind), "byte \(i): \(fault.kind)")
                }
            }
        }
    }

    @Test func aFileThatIsCutShortIsNoticed() throws {
        let identity = try AgeIdentity(crypto)
        let plain = AgeTools.bytes(65_600), first = AgeTools.bytes(65_536)
        let good = try AgeWriter.encrypt(plain, for: .recipients([identity.recipient]), crypto)
        let ends =
            Array(stride(from: 0, to: 200, by: sample(usual: 40, deep: 4))) + [
                5_000, 65_719, 65_720, 65_735, 65_736, 65_737, 65_751, 65_752, 65_753,
            ]
            + sample(usual: [20, 17, 16, 15, 1], deep: Array(1...20)).map { good.count - $0 }
        for end in ends {
            do {
                _ = try open(Array(good[..<end]), .identities([identity]))
                Issue.record("cut at \(end), and the file was opened")
            } catch let fault as AgeFault { #expect([.cutShort, .damaged].contains(fault.kind), "\(end)") }
            // Read as a stream: the bytes returned so far are right, and then the end is missing.
            var at = 0, given: [UInt8] = []
            #expect(throws: AgeFault.self) {
                var reader = try AgeReader(.identities([identity]), crypto) { buffer in
                    let count = min(buffer.count, end - at)
                    buffer.copyBytes(from: good[at..<at + count])
                    at += count
                    return count
                }
                var piece = [UInt8](repeating: 0, count: 50_000)
                while case let count = try piece.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0 {
                    given += piece[..<count]
                }
            }
            #expect(given.isEmpty || given == first)
        }
    }

    @Test func inPieces() throws {
        let identity = try AgeIdentity(crypto), plain = AgeTools.bytes(400_000)
        var random = TestRandom(state: 7), out: [UInt8] = [], at = 0
        var writer = try AgeWriter(for: .recipients([identity.recipient]), crypto, mixing: [])
        while at < plain.count {
            let end = min(plain.count, at + Int.random(in: 0...90_000, using: &random))
            try plain[at..<end].withUnsafeBytes { try writer.append($0) { out += Array($0) } }
            at = end
        }
        try writer.finish { out += Array($0) }
        #expect(try open(out, .identities([identity])) == plain)
        var position = 0, read: [UInt8] = []
        var reader = try AgeReader(.identities([identity]), crypto) { buffer in
            let count = min(buffer.count, out.count - position, Int.random(in: 1...5_000, using: &random))
            buffer.copyBytes(from: out[position..<position + count])
            position += count
            return count
        }
        var piece = [UInt8](repeating: 0, count: 70_001)
        while case let count = try piece.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0 { read += piece[..<count] }
        #expect(read == plain && reader.identity?.recipient == identity.recipient)
    }

    @Test func rangesAreSegments() throws {
        let identity = try AgeIdentity(crypto)
        var random = TestRandom(state: 3)
        for size in [0, 1, 65_536, 65_537, 131_072, 250_000] {
            let plain = AgeTools.bytes(size), file = try AgeWriter.encrypt(plain, for: .recipients([identity.recipient]), crypto)
            let header = try #require(try file.withUnsafeBytes { try AgeHeader.parse($0, isWhole: true) })
            let key = try header.fileKey([identity], crypto).key, start = header.size + 16
            let payload = try AgePayload(key, nonce: Array(file[header.size..<start]), crypto)
            #expect(AgePayload.plainSize(file.count - start) == size && AgePayload.sealedSize(size) == file.count - start)
            for i in 0..<60 {
                let a = i == 0 ? 0 : Int.random(in: 0...size, using: &random), b = i == 0 ? size : Int.random(in: 0...size, using: &random)
                let range = min(a, b)..<max(a, b)
                let place = try AgePayload.sealedRange(of: range, size: file.count - start)
                let sealed = Array(file[start + place.lowerBound..<start + place.upperBound])
                let found = try sealed.withUnsafeBytes { try payload.open(range, $0, size: file.count - start) }
                #expect(found == Array(plain[range]), "\(size): \(range)")
            }
            #expect(throws: AgeFault.self) { try AgePayload.sealedRange(of: 0..<size + 1, size: file.count - start) }
        }
        for size in [0, 15, 65_552 + 1, 65_552 + 16] { #expect(AgePayload.plainSize(size) == nil, "\(size)") }
    }

    @Test func keysAsText() throws {
        let identity = try AgeIdentity(crypto), recipient = identity.recipient.description
        let text = String(decoding: AgeTools.plain(try identity.text()), as: UTF8.self)
        #expect(try AgeIdentity(text.lowercased(), crypto).recipient == identity.recipient)
        var bad = [text + " ", " " + text, String(text.dropLast()), text.replacingOccurrences(of: "AGE", with: "AGf"), "", recipient]
        for i in 16..<text.utf8.count where i % 7 == 0 {
            var bytes = Array(text.utf8)
            bytes[i] = bytes[i] == UInt8(ascii: "Q") ? UInt8(ascii: "P") : UInt8(ascii: "Q")
            bad.append(String(decoding: bytes, as: UTF8.self))
        }
        for one in bad {
            do {
                _ = try AgeIdentity(one, crypto)
                Issue.record("\(one) was accepted as an identity")
            } catch let error as StoreError {
                #expect(error.code == .invalidArgument && (one.count < 9 || !error.message.contains(one.dropFirst(8).prefix(20))))
            }
        }
        let reversed = "age1" + String(recipient.dropFirst(4).reversed())
        for one in [text, recipient.uppercased(), recipient + "q", String(recipient.dropLast()), reversed] {
            do {
                _ = try AgeRecipient(one)
                Issue.record("\(one) was accepted as a recipient")
            } catch let error as StoreError { #expect(error.code == .invalidArgument && !error.message.contains(text)) }
        }
    }

    @Test func secretsArePrintedNowhere() throws {
        let identity = try AgeIdentity(crypto), secret = AgeTools.plain(identity.secret)
        let text = String(decoding: AgeTools.plain(try identity.text()), as: UTF8.self)
        var dumped = ""
        dump(identity, to: &dumped)
        for shown in ["\(identity)", String(reflecting: identity), "\(identity.secret)", dumped] {
            #expect(!shown.contains(text.dropFirst(16)) && !shown.contains("\(secret[0]), \(secret[1]), \(secret[2])"))
        }
    }

    /// The system's generator returns the same bytes for two different files.
    @Test func whatIsDrawnDependsOnWhatIsEncrypted() throws {
        let drawn = try Secret(AgeTools.bytes(32))
        let a = try drawn.withBytes { try crypto.hmac($0, $0) }
        #expect(a == AgeTools.plain(drawn).withUnsafeBytes { raw in (try? crypto.hmac(raw, raw)) ?? [] })
        let one = try Secret.random(16, crypto, "a", mixing: [1]), two = try Secret.random(16, crypto, "a", mixing: [1])
        #expect(AgeTools.plain(one) != AgeTools.plain(two) && one.count == 16)
    }

    /// RFC 4231 (HMAC, case 2) and RFC 5869 (HKDF, case 3).
    @Test func knownAnswers() throws {
        let tag = try crypto.hmac(try Secret("Jefe"), Array("what do ya want for nothing?".utf8))
        #expect(hex(tag) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let key = try crypto.derive(try Secret([UInt8](repeating: 0x0B, count: 22)), info: "")
        #expect(hex(AgeTools.plain(key)) == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d")
    }
}

extension LLVSCore.SHA256 {
    static func digest(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { digest($0) } }
}
