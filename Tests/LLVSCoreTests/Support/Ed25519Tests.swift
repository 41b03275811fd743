import LLVSCore
import Testing

@Suite("Ed25519") struct Ed25519Tests {
    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
    }

    /// RFC 8032, section 7.1: tests 1 to 3.
    @Test(arguments: [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "72",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "af82",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                + "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ])
    func vectors(seed: String, message: String, key: String, signature: String) throws {
        let curve = try Ed25519(for: "a test")
        #expect(try curve.publicKey(of: bytes(seed)) == bytes(key))
        #expect(try curve.sign(bytes(message), with: bytes(seed)) == bytes(signature))
        #expect(curve.verify(bytes(signature), of: bytes(message), by: bytes(key)))
        for bit in 0..<512 {
            var forged = bytes(signature)
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!curve.verify(forged, of: bytes(message), by: bytes(key)), "bit \(bit)")
        }
        #expect(!curve.verify(bytes(signature), of: bytes(message) + [0], by: bytes(key)))
        #expect(!curve.verify(bytes(signature) + [0], of: bytes(message), by: bytes(key)))
        #expect(!curve.verify([], of: bytes(message), by: bytes(key)))
    }

    /// S is smaller than the order of the group: another S of the same remainder is no signature.
    @Test func largeScalars() throws {
        let curve = try Ed25519(for: "a test"), seed = [UInt8](repeating: 7, count: 32)
        let order = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
        var signature = try curve.sign([1], with: seed), carry = 0
        for i in 0..<32 {
            let sum = Int(signature[32 + i]) + Int(order[i]) + carry
            signature[32 + i] = UInt8(sum & 255)
            carry = sum >> 8
        }
        #expect(try !curve.verify(signature, of: [1], by: curve.publicKey(of: seed)))
    }
}
