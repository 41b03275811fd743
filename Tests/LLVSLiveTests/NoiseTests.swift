import Foundation
import LLVSExchange
import Testing

@testable import LLVSLive

/// The handshake of direct connections, against the published vectors of its pattern.
@Suite("Live: the handshake") struct NoiseTests {
    private static func vectors() throws -> [[String: [UInt8]]] {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: tests.appendingPathComponent("Live/noise_vectors.txt"), encoding: .utf8)
        return text.components(separatedBy: "\n\n").dropFirst().map { block in
            var vector: [String: [UInt8]] = [:]
            for line in block.split(separator: "\n") {
                let parts = line.split(separator: "=", omittingEmptySubsequences: false)
                guard parts[0] != "handshake" else { continue }
                let digits = Array(parts[1].utf8)
                vector[String(parts[0])] = stride(from: 0, to: digits.count, by: 2).map {
                    UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16) ?? 0
                }
            }
            return vector
        }
    }

    private func sides(_ vector: [String: [UInt8]], psk: [UInt8]? = nil, prologue: [UInt8] = []) throws -> [NoiseHandshake] {
        let crypto = try Crypto(for: "tests")
        return try [(true, "init"), (false, "resp")].map { isInitiator, name in
            try NoiseHandshake(
                crypto, isInitiator: isInitiator, psk: Secret(psk ?? #require(vector["preshared_key"])), prologue: prologue,
                identity: Secret(#require(vector["\(name)_static"])), ephemeral: Secret(#require(vector["gen_\(name)_ephemeral"])))
        }
    }

    @Test func publishedVectors() throws {
        let vectors = try NoiseTests.vectors()
        #expect(vectors.count == 2)
        for vector in vectors {
            var sides = try sides(vector)
            for number in 0..<3 {
                let payload = try #require(vector["msg_\(number)_payload"])
                let message = try sides[number % 2].write(payload)
                #expect(message == vector["msg_\(number)_ciphertext"])
                #expect(try sides[1 - number % 2].read(message) == payload)
            }
            #expect(sides[0].hash == sides[1].hash && sides[0].isDone && sides[1].isDone)
            var (sends, receives) = try sides[0].split(), (answers, hears) = try sides[1].split()
            let first = try #require(vector["msg_3_payload"]), second = try #require(vector["msg_4_payload"])
            let sealed = try sends.seal(first), answer = try answers.seal(second)
            #expect(sealed == vector["msg_3_ciphertext"] && answer == vector["msg_4_ciphertext"])
            #expect(try hears.open(sealed) == first && receives.open(answer) == second)
        }
    }

    @Test func otherSecretsStoresAndBitsAreRefused() throws {
        let vector = try #require(try NoiseTests.vectors().first)
        var writer = try sides(vector)[0]
        let message = try writer.write()
        func refuses(_ message: [UInt8], psk: [UInt8]? = nil, prologue: [UInt8] = []) throws {
            var reader = try sides(vector, psk: psk, prologue: prologue)[1]
            #expect(throws: NoiseHandshake.Refused.self) { try reader.read(message) }
        }
        try refuses(message, psk: [UInt8](repeating: 0, count: 32))
        try refuses(message, prologue: [1])
        for bit in 0..<8 * message.count {
            var changed = message
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            try refuses(changed)
        }
        for count in 0..<message.count { try refuses(Array(message.prefix(count))) }
        // A key of low order.
        try refuses([UInt8](repeating: 0, count: 48))
    }

    @Test func keysAreRenewed() throws {
        let crypto = try Crypto(for: "tests"), key = try Secret([UInt8](repeating: 7, count: 32))
        var sends = NoiseCipher(crypto, key, renewal: 3), hears = NoiseCipher(crypto, key, renewal: 3), never = NoiseCipher(crypto, key)
        for number in 0..<10 {
            let sealed = try sends.seal([1, 2]), plain = try never.seal([1, 2])
            #expect(try hears.open(sealed) == [1, 2])
            #expect((sealed == plain) == (number < 3))
        }
    }
}
