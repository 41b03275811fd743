import CLLVSShims
import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// The vectors of C2SP for files of age (CCTV), which are no part of this project. `LLVS_CONFORMANCE` names the folder of public test
/// inputs; by default it is `shared/conformance` beside the checkout.
enum AgeVectors {
    static let folder: URL = {
        let named = getenv("LLVS_CONFORMANCE").map { String(cString: $0) } ?? ""
        let base =
            named.isEmpty
            ? AgeTools.vectors.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appendingPathComponent("shared/conformance") : URL(fileURLWithPath: named)
        return base.appendingPathComponent("age-cctv")
    }()
    static let isThere = FileManager.default.fileExists(atPath: folder.path)
}

/// Files that need only implemented features are opened, and all others are refused. `Tests/Python/test_public_age.py` reads the same files
/// through the C interface.
@Suite("Encryption: the vectors of C2SP for age", .enabled(if: AgeVectors.isThere)) struct AgeVectorsTests {
    struct Vector {
        let name: String
        var fields: [(name: String, value: String)] = []
        var data: [UInt8] = []

        func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }
        var expect: String { values("expect").first ?? "" }
        var isArmored: Bool { !values("armored").isEmpty }
        /// Whether the file is for identities that are not implemented.
        var isHybrid: Bool { values("identity").contains { $0.hasPrefix("AGE-SECRET-KEY-PQ-") } }

        init(_ file: URL) throws {
            name = file.lastPathComponent
            let bytes = try [UInt8](Data(contentsOf: file))
            let end = try #require(bytes.indices.first { bytes[$0...].starts(with: [0x0A, 0x0A]) }, "\(file.path)")
            for line in String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\n") {
                let colon = try #require(line.range(of: ": "), "\(file.path)")
                fields.append((String(line[..<colon.lowerBound]), String(line[colon.upperBound...])))
            }
            data = Array(bytes[(end + 2)...])
            if values("compressed") == ["zlib"] { data = try Vector.inflated(data) }
        }

        /// A stream of zlib (RFC 1950) without its first 2 and last 4 bytes is a raw deflate stream.
        private static func inflated(_ data: [UInt8]) throws -> [UInt8] {
            let raw = Array(data.dropFirst(2).dropLast(4))
            let inflater = try #require(llvs_shim_inflater_make())
            defer { llvs_shim_inflater_free(inflater) }
            var out: [UInt8] = [], read = 0, done: Int32 = 0
            var piece = [UInt8](repeating: 0, count: 1 << 20)
            while done == 0 {
                var taken = 0
                let made = raw.withUnsafeBytes { from in
                    piece.withUnsafeMutableBytes { to in
                        llvs_shim_inflate_more(
                            inflater, from.baseAddress.map { $0 + read }, from.count - read, &taken, to.baseAddress, to.count, &done)
                    }
                }
                guard made >= 0, made > 0 || taken > 0 || done != 0 else { throw AgeFault.damaged("a vector does not inflate") }
                out += piece[..<Int(made)]
                read += taken
            }
            return out
        }
    }

    private func vectors() throws -> [Vector] {
        try FileManager.default.contentsOfDirectory(at: AgeVectors.folder, includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }.map(Vector.init)
    }
    private func hex(_ bytes: [UInt8]) -> String { bytes.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined() }

    /// Implemented vectors yield their plaintext, at once and piece by piece. All others are refused.
    @Test func whatIsImplementedIsOpenedAndAllElseIsRefused() throws {
        let crypto = try Crypto(for: "tests"), all = try vectors()
        #expect(all.count >= 143)
        var opened = 0
        for one in all {
            // Three files have 16 MiB and take long in a debug build. The usual run reads one of them.
            let isLarge = one.data.count > 1 << 20
            guard !isLarge || Sample.isDeep || one.name == "stream_257_chunks" else { continue }
            let identities = one.values("identity").compactMap { try? AgeIdentity($0, crypto) }
            if one.isHybrid { #expect(identities.count < one.values("identity").count, "\(one.name)") }
            var keys = try one.values("passphrase").map { AgeReader.Key.passphrase(try Secret($0)) }
            if !identities.isEmpty || keys.isEmpty { keys.append(.identities(identities)) }
            for key in keys {
                let atOnce = try fault { try AgeTools.plain(AgeReader.decrypt(one.data, key, crypto, limit: 1 << 26).plain) }
                let asItComes = isLarge && !Sample.isDeep ? atOnce : try fault { try read(one.data, key, crypto) }
                let isOurs = !one.isArmored && !one.isHybrid && one.values("passphrase").isEmpty
                guard isOurs, one.expect == "success" else {
                    #expect(atOnce.plain == nil && asItComes.plain == nil, "\(one.name)")
                    guard isOurs, let kind = atOnce.kind else { continue }
                    let kinds: [AgeFault.Kind] =
                        switch one.expect {
                        case "no match": [.wrongKey]
                        case "HMAC failure": [.damaged]
                        case "payload failure": [.damaged, .cutShort]
                        default: [.damaged, .cutShort, .foreign, .newer, .tooLarge]
                        }
                    #expect(kinds.contains(kind), "\(one.name): \(kind)")
                    continue
                }
                opened += 1
                let plain = try #require(atOnce.plain, "\(one.name)")
                #expect(one.values("payload") == [hex(LLVSCore.SHA256.digest(plain))], "\(one.name)")
                #expect(asItComes.plain == plain, "\(one.name)")
            }
        }
        #expect(opened >= 12)
    }

    private func fault(_ open: () throws -> [UInt8]) throws -> (plain: [UInt8]?, kind: AgeFault.Kind?) {
        do { return (try open(), nil) } catch let fault as AgeFault { return (nil, fault.kind) }
    }

    /// Reads a file in pieces, to its end.
    private func read(_ data: [UInt8], _ key: AgeReader.Key, _ crypto: Crypto) throws -> [UInt8] {
        var at = 0, given: [UInt8] = [], piece = [UInt8](repeating: 0, count: 50_000)
        var reader = try AgeReader(key, crypto) { buffer in
            let count = min(buffer.count, data.count - at)
            buffer.copyBytes(from: data[at..<at + count])
            at += count
            return count
        }
        while case let count = try piece.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0 { given += piece[..<count] }
        return given
    }
}
