import Foundation
import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// An encrypted remote as an earlier library wrote it: `Tests/Vectors/packs/encrypted.json`. If this fails, the format has changed.
@Suite("Packed: an encrypted remote of before") struct FrozenEncryptedTests {
    private struct Frozen: Decodable {
        struct Large: Decodable { let id: String, size: Int }
        let passphrase: String, identity: String, files: [String: String], versions: [String], values: [String: String], large: Large
    }
    private let frozen: Frozen

    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/packs/encrypted.json")
        frozen = try JSONDecoder().decode(Frozen.self, from: Data(contentsOf: file))
    }

    @Test(arguments: [false, true]) func eachKindOfFileIsOpened(byPassphrase: Bool) throws {
        let place = MemoryPlace()
        for (name, text) in frozen.files { place.put(name, Array(try #require(Data(base64Encoded: text)))) }
        let keys =
            byPassphrase
            ? try Array(frozen.passphrase.utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0) }
            : try Array(frozen.identity.utf8).withUnsafeBytes { try RemoteKeys(identities: [$0], recipients: []) }
        for kind in [PackKind.root, .log, .base, .blob] { #expect(!place.names(kind).isEmpty, "\(kind)") }
        let device = try PackedDevice(place, keys: keys)
        #expect(try device.exchange.retrieve().problems.isEmpty)
        #expect(Set(device.ids.map(\.description)) == Set(frozen.versions))
        let last = try VersionID(#require(frozen.versions.last))
        for (id, text) in frozen.values {
            let data = try #require(try device.store.value(ValueID(id), at: last)?.data)
            #expect(data.map { String(format: "%02x", $0) }.joined() == text, "\(id)")
        }
        let large = (0..<frozen.large.size).map { UInt8(truncatingIfNeeded: $0) }
        #expect(try device.store.value(ValueID(frozen.large.id), at: last)?.data == large)
        // Each file was needed, and each is a pack as this library writes it: the device has nothing to heal and sends nothing.
        let before = place.files
        #expect(try device.exchange.send().versions.isEmpty && place.files == before)
    }
}
