import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Tests digests that a service reports: docs/pack-format.md, sections 6 and 9.
@Suite("Packed: digests of services") struct PackedDigestTests {
    private static func md5(_ bytes: [UInt8]) -> RemoteDigest? {
        guard let crypto = try? Crypto(for: "tests"), let digest = crypto.md5(bytes) else { return nil }
        return RemoteDigest(hex: Hex.text(of: digest).uppercased())
    }
    private static func sha1(_ bytes: [UInt8]) -> RemoteDigest? {
        var hash = SHA1()
        bytes.withUnsafeBytes { hash.update($0) }
        return RemoteDigest(hex: Hex.text(of: hash.finish()))
    }
    private static func sha256(_ bytes: [UInt8]) -> RemoteDigest? { RemoteDigest(hex: Hex.text(of: SHA256.digest(bytes))) }

    /// Sends until eight packs are merged. Returns the last exchange's requests for merged packs.
    private func merge(_ device: PackedDevice) throws -> [String] {
        var asked: [String] = []
        for n in 0..<3 {
            try device.save("\(n)")
            asked = try device.exchangeOnce()
        }
        return asked.filter { $0.contains("pack1/base") }
    }

    /// A merged pack is not read back if the service reports the right digest.
    @Test(arguments: [0, 1, 2]) func whatHasTheRightDigestIsNotReadBack(kind: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2), digest = [Self.md5, Self.sha1, Self.sha256][kind]
        a.files.digest = { _, bytes in digest(bytes) }
        let asked = try merge(a)
        #expect(asked.count == 2 && asked[0].hasPrefix("publish") && asked[1] == "list pack1/base", "\(asked)")
        place.clock += 10
        try a.exchangeOnce()
        #expect(place.names(.log).count == 1, "the replaced packs are deleted")
    }

    /// If the digest is of something else, missing or invalid, the file is read, as if its bytes were wrong.
    @Test func whatHasAnotherDigestIsReadBack() throws {
        let others: [(String, [UInt8]) -> RemoteDigest?] = [
            { _, bytes in Self.md5(bytes + [0]) }, { _, _ in nil }, { _, _ in RemoteDigest(hex: "0123456789abcdef0123456789abcdef-2") },
        ]
        for other in others {
            let a = try PackedDevice(MemoryPlace(), fanIn: 2)
            a.files.digest = other
            #expect(try merge(a).contains { $0.hasPrefix("read pack1/base") } && a.files.place.names(.base).count == 1)
        }
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        a.files.digest = { _, bytes in Self.md5(bytes) }
        a.files.published = { name in
            guard name.hasPrefix("pack1/base"), var bytes = place.files[name] else { return }
            bytes[bytes.count / 2] ^= 1
            place.files[name] = bytes
        }
        let all = try merge(a).count { $0.hasPrefix("read") }
        #expect(all == 1)
        place.clock += 1_000
        try a.exchangeOnce()
        #expect(place.versions() == a.ids && a.ids.count == 3 && place.names(.log).count == 3, "nothing is deleted for it")
    }

    /// An answer is lost. The size alone proves nothing if the service reports digests.
    @Test func whatWasSentWithoutAnAnswerIsLookedAt() throws {
        for isRight in [true, false] {
            let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
            a.files.digest = { _, bytes in Self.md5(bytes) }
            try a.save("first")
            try a.exchangeOnce()
            try a.save("second")
            a.files.published = { name in
                if !isRight, var bytes = place.files[name] {
                    bytes[100] ^= 1
                    place.files[name] = bytes
                }
                throw MemoryFiles.lost
            }
            a.files.asked = []
            if isRight { _ = try a.exchange.send() } else { #expect(throws: StoreError.self) { try a.exchange.send() } }
            a.files.published = { _ in }
            #expect(a.files.asked.contains { $0.hasPrefix("read") } == !isRight, "\(a.files.asked)")
            try a.exchangeOnce()
            try b.exchangeOnce()
            #expect(b.ids == a.ids && b.ids.count == 2)
        }
    }
}
