import CLLVSShims
import LLVSTestSupport
import Testing

@testable import LLVSCore

/// Digests by the processor's instructions, by libcrypto and in C. The ways that a machine lacks are not tried on it; C is everywhere.
@Suite(.serialized) struct SHA256Tests {
    private static func hex(_ bytes: [UInt8]) -> String { Hex.text(of: bytes) }
    /// Calls the closure with the number of each way that this machine has, and then uses the first of them again.
    private static func eachWay(_ body: (Int32) throws -> Void) rethrows {
        defer { _ = (0..<3).first { llvs_shim_sha256_by($0) == 1 } }
        for way in Int32(0)..<3 where llvs_shim_sha256_by(way) == 1 { try body(way) }
    }

    /// The examples of FIPS 180-4, and a million times "a".
    @Test func publishedDigests() {
        #expect(llvs_shim_sha256_by(2) == 1 && llvs_shim_sha256_by(3) == 0 && llvs_shim_sha256_by(-1) == 0)
        let long = [UInt8](repeating: 97, count: 1_000_000)
        Self.eachWay { way in
            for (text, digest) in [
                ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
                ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
                (
                    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
                ),
                (
                    "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
                ),
            ] { #expect(Self.hex(Array(text.utf8).withUnsafeBytes { LLVSCore.SHA256.digest($0) }) == digest, "way \(way): \(text)") }
            #expect(
                Self.hex(long.withUnsafeBytes { LLVSCore.SHA256.digest($0) })
                    == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "way \(way)")
        }
    }

    /// The digest of the digests of all sizes up to 999 bytes, which come in pieces. Python: sha256(b"".join(sha256(bytes((i * i * 7 + i) %
    /// 256 for i in range(n))).digest() for n in range(1000))).
    @Test func anyPieces() {
        let all = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 * $0 * 7 + $0) }
        Self.eachWay { way in
            var digests = LLVSCore.SHA256()
            for size in 0..<1_000 {
                var digest = LLVSCore.SHA256(), at = 0
                while at < size {
                    let piece = min(size - at, 1 + (size * 31 + at * 7) % 150)
                    digest.update(Array(all[at..<at + piece]))
                    at += piece
                }
                digests.update(digest.finish())
            }
            #expect(Self.hex(digests.finish()) == "a2bf8d5954d2a7d82bc5d99d01b572e9ad41b2572ed50552e20a6842fe635735", "way \(way)")
        }
    }
}
