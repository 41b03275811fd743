import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Files of the packed layout as docs/pack-format.md describes them, tested with the vectors in Tests/Vectors/packs.
@Suite("Packs: the files") struct PackFormatTests {
    struct Files: Decodable {
        struct Vector: Decodable {
            let name: String, file: String, data: String
            let expect: Expected?
            let error: String?
        }
        struct Expected: Decodable {
            struct Version: Decodable {
                struct Blob: Decodable { let digest: String, size: UInt64, parts: [String] }
                let id: String, block: UInt32, offset: UInt32, length: UInt32, identity: String
                let predecessors: [String]?
                let blobs: [Blob]
            }
            let kind: UInt8, writer: String, first: UInt32, last: UInt32, link: String
            let blocks: [[Int]], versions: [Version]
            let replaces: [String]
            let problems: [String: String]?
            let content: String?
        }
        let store: String
        let vectors: [Vector]
    }
    struct Names: Decodable {
        struct Name: Decodable { let text: String, kind: UInt8, owner: String, first: UInt32, last: UInt32, id: String }
        let names: [Name], none: [String]
    }
    static let store = PackID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F)
    static let salt = PackID(high: 0x1011_1213_1415_1617, low: 0x1819_1A1B_1C1D_1E1F), writer: UInt64 = 0x2021_2223_2425_2627

    private func vectors<T: Decodable>(_ name: String, _ type: T.Type) throws -> T {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(type, from: Data(contentsOf: folder.appendingPathComponent("Vectors/packs/\(name).json")))
    }

    private func code(_ fault: PackFault) -> String {
        switch fault.kind {
        case .notThere: "not_there"
        case .damaged: "damaged"
        case .newer: "newer_format"
        case .tooLarge: "too_large"
        case .otherStore: "other_store"
        case .keyMissing: "key missing"
        }
    }

    @Test func names() throws {
        let names = try vectors("names", Names.self)
        #expect(names.names.count >= 5 && names.none.count > 15)
        for expected in names.names {
            let name = try #require(PackName(expected.text), "\(expected.text)")
            #expect(name.description == expected.text && name.kind.rawValue == expected.kind)
            #expect(name.first == expected.first && name.last == expected.last && hex(name.id.bytes) == expected.id)
            let owner = name.kind == .blob ? name.digest.bytes : name.kind == .root ? [] : PackID.bytes(of: name.writer)
            #expect(hex(owner) == expected.owner)
        }
        for text in names.none { #expect(PackName(text) == nil, "\(text)") }
    }

    @Test func goodFiles() throws {
        let files = try vectors("files", Files.self)
        #expect(files.vectors.count > 15)
        let store = try #require(PackID(unhex(files.store)))
        for vector in files.vectors {
            let expected = try #require(vector.expect), name = try #require(PackName(vector.file))
            let bytes = unhex(vector.data)
            let pack: PackFile
            do { pack = try PackFile(name, bytes, stores: [store], size: bytes.count) } catch let fault as PackFault {
                Issue.record("\(vector.name): \(fault.why)")
                continue
            }
            #expect(name.kind.rawValue == expected.kind && name.first == expected.first && name.last == expected.last, "\(vector.name)")
            #expect(hex(pack.index.link.bytes) == expected.link && hex(Array(pack.index.header[48..<56])) == expected.writer)
            #expect(pack.index.blocks.map { [$0.offset, $0.stored, $0.raw] } == expected.blocks, "\(vector.name)")
            #expect(pack.services.replaces.map(\.description).sorted() == expected.replaces.sorted(), "\(vector.name)")
            if let content = expected.content {
                var hash = LLVSCore.SHA256()
                try pack.forEachBlock { hash.update($0) }
                #expect(hex(hash.finish()) == content, "\(vector.name)")
            }
            try check(pack, expected, vector.name)
        }
    }

    private func check(_ pack: PackFile, _ expected: Files.Expected, _ name: String) throws {
        let engine = try Store(
            path: "",
            options: {
                var options = Store.Options(); options.storage = .memory; return options
            }())
        var problems: [String: String] = [:], found: [String] = []
        for entry in pack.index.versions {
            do {
                let raw = try pack.block(Int(entry.place.block))
                let version = expected.versions.first { $0.id == entry.id.description }
                let blobs = try raw.withUnsafeBytes { raw -> [BlobReference] in
                    let payload = try PackFile.payload(entry.place, PackRecordType.version, in: raw)
                    switch try PackedVersion.form(payload) {
                    case .outside(let blob): return [blob]
                    case .inside:
                        let (received, blobs) = try self.received(entry.id, payload)
                        let changes = try engine.sortedChanges(received)
                        guard engine.identityDigest(received.version, changes).first8 == entry.identity else {
                            throw PackFault.damaged("another version")
                        }
                        #expect(received.version.predecessors.map(\.description) == version?.predecessors, "\(name)")
                        return blobs
                    }
                }
                found.append(entry.id.description)
                #expect(version?.identity == hex(PackID.bytes(of: entry.identity)), "\(name)")
                #expect(version.map { [$0.block, $0.offset, $0.length] } == [entry.place.block, entry.place.offset, entry.place.length])
                #expect(blobs.map { hex($0.digest.bytes) } == version?.blobs.map(\.digest), "\(name)")
                #expect(blobs.map(\.size) == version?.blobs.map(\.size), "\(name)")
                #expect(blobs.map { $0.parts.map { hex($0.bytes) } } == version?.blobs.map(\.parts), "\(name)")
            } catch let fault as PackFault { problems[entry.id.description] = code(fault) }
        }
        #expect(found.sorted() == expected.versions.map(\.id).sorted(), "\(name)")
        #expect(problems == expected.problems ?? [:], "\(name)")
    }

    /// A version of form 0, with references in place of its blobs.
    private func received(_ id: VersionID, _ payload: UnsafeRawBufferPointer) throws -> (Store.ReceivedVersion, [BlobReference]) {
        let bytes = Array(payload)
        func read(_ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) {
            buffer.copyBytes(from: bytes[Int(offset)...].prefix(buffer.count))
        }
        let contents = try PackedVersion.contents(id, size: bytes.count, read)
        let received = try PackedVersion.received(contents, read, withBase: { _, _, _ in throw PackFault.damaged("no base") }) {
            .written(WrittenValue(blob: $0.blobID, size: Int($0.size), digest: $0.sha256))
        }
        return (received, contents.blobs.values.sorted { $0.digest < $1.digest })
    }

    @Test func badFiles() throws {
        let files = try vectors("refused", Files.self)
        #expect(files.vectors.count > 50)
        let store = try #require(PackID(unhex(files.store)))
        for vector in files.vectors {
            let name = try #require(PackName(vector.file))
            do {
                _ = try PackFile(name, unhex(vector.data), stores: [store])
                Issue.record("\(vector.name) is accepted")
            } catch let fault as PackFault { #expect(code(fault) == vector.error, "\(vector.name): \(fault.why)") }
        }
    }

    /// Two versions, and services of every kind.
    private func smallPack() throws -> MadePack {
        var pack = PackWriter(
            .init(kind: .base, store: Self.store, salt: Self.salt, writer: Self.writer, first: 1, last: 2))
        for vector in try vectors("files", Files.self).vectors where vector.name == "two versions, and what was seen" {
            let file = try PackFile(#require(PackName(vector.file)), unhex(vector.data), stores: [Self.store])
            for entry in file.index.versions {
                let raw = try file.block(Int(entry.place.block))
                let payload = try raw.withUnsafeBytes { Array(try PackFile.payload(entry.place, PackRecordType.version, in: $0)) }
                try pack.add(entry.id, identity: entry.identity, payload: payload)
            }
        }
        try pack.add(Self.services)
        return try pack.finish()
    }
    static let services: PackServices = {
        var services = PackServices()
        services.seen = [.init(writer: 9, number: 3, id: salt)]
        services.replaces = [PackName(kind: .log, writer: writer, first: 1, last: 1, id: salt)]
        services.covers = [.init(writer: 9, first: 1, last: 3)]
        services.notices = [.init(kind: 2, payload: PackID.bytes(of: writer))]
        return services
    }()

    @Test func whatIsWrittenIsReadBack() throws {
        let made = try smallPack(), pack = try PackFile(made.name, made.bytes, stores: [Self.store], size: made.size)
        #expect(pack.index.versions.count == 2 && pack.services == Self.services)
        #expect(PackName(made.name.description) == made.name)
    }

    /// Vectors whose blocks are not compressed are written byte for byte as they are.
    @Test func writesWhatPythonWrites() throws {
        var same = 0
        for vector in try vectors("files", Files.self).vectors {
            let name = try #require(PackName(vector.file)), bytes = unhex(vector.data)
            let pack = try PackFile(name, bytes, stores: [Self.store])
            guard pack.index.blocks.allSatisfy({ $0.stored == $0.raw }) else { continue }
            var copy = PackWriter(
                .init(
                    kind: name.kind, store: Self.store, salt: try #require(PackID(pack.index.header[32..<48])),
                    writer: pack.index.header[48..<56].reduce(0) { $0 << 8 | UInt64($1) }, first: name.first, last: name.last,
                    link: pack.index.link), deflates: false)
            if name.kind == .blob || name.kind == .root {
                try pack.forEachBlock { try copy.add(bare: $0) }
            }
            for entry in pack.index.versions.sorted(by: { ($0.place.block, $0.place.offset) < ($1.place.block, $1.place.offset) }) {
                let raw = try pack.block(Int(entry.place.block))
                let payload = try raw.withUnsafeBytes { Array(try PackFile.payload(entry.place, PackRecordType.version, in: $0)) }
                try copy.add(entry.id, identity: entry.identity, payload: payload)
            }
            try copy.add(pack.services)
            let made = try copy.finish()
            // The library does not write the unknown data that it skips.
            if made.bytes != bytes {
                #expect(vector.name.contains("ignorable"), "\(vector.name)")
                continue
            }
            #expect(made.name == name)
            same += 1
        }
        #expect(same >= 8, "\(same)")
    }

    @Test func eachFlippedBitIsNoticed() throws {
        let made = try smallPack()
        var bytes = made.bytes
        for bit in 0..<8 * bytes.count {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let forged = PackName(
                kind: .base, writer: Self.writer, first: 1, last: 2,
                id: try #require(PackID(bytes.withUnsafeBytes { LLVSCore.SHA256.digest($0) })))
            for name in [made.name, forged] {
                #expect(throws: PackFault.self, "bit \(bit)") { try PackFile(name, bytes, stores: [Self.store]) }
            }
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
    }

    @Test func eachTruncationIsNotThereYet() throws {
        let made = try smallPack(), bytes = made.bytes
        for size in 0..<bytes.count {
            do {
                _ = try PackFile(made.name, Array(bytes[..<size]), stores: [Self.store], size: bytes.count)
                Issue.record("\(size) bytes are accepted")
            } catch let fault as PackFault { #expect(fault.kind == .notThere) }
        }
    }

    @Test func theEndOfAPackIsEnough() throws {
        let made = try smallPack(), bytes = made.bytes
        let whole = try PackFile(made.name, bytes, stores: [Self.store]).index
        for count in 0...bytes.count {
            let stores = [Self.salt, Self.store]
            let index = try bytes.suffix(count).withUnsafeBytes { tail in
                do { return try PackIndex.read(made.name, size: bytes.count, tail: tail, stores: stores) } catch let fault as PackFault
                    where fault.kind == .notThere && count < PackFormat.trailerSize
                { return nil }
            }
            #expect((index != nil) == (count >= bytes.count - (whole.blocks.last.map { $0.offset + $0.size } ?? 64)), "\(count)")
            guard let index else { continue }
            #expect(index.versions == whole.versions && index.blocks == whole.blocks)
            let block = try #require(index.blocks.first)
            let raw = try bytes[block.offset..<block.offset + block.size].withUnsafeBytes { try PackFile.inflate(block, $0) }
            #expect(raw.count == block.raw)
        }
    }

    /// An attacker who can compute valid digests causes nothing but refusals.
    @Test func anyIndexIsReadOrRefused() throws {
        let made = try smallPack(), seed = Sample.seed ?? (Sample.isDeep ? UInt64.random(in: 0 ... .max) : 1)
        var random = SeededRandom(seed: seed)
        for round in 0..<sample(usual: 800, deep: 3_000) {
            var bytes = made.bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count - 160, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let at = Int(bytes.suffix(160).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
            var hash = LLVSCore.SHA256()
            hash.update(Array(bytes[..<64]))
            hash.update(Array(bytes[at..<bytes.count - 160]))
            hash.update(Array(bytes[(bytes.count - 160)..<bytes.count - 88]))
            bytes.replaceSubrange((bytes.count - 88)..<bytes.count - 56, with: hash.finish())
            var name = made.name
            name.id = try #require(PackID(bytes.withUnsafeBytes { LLVSCore.SHA256.digest($0) }))
            do { _ = try PackFile(name, bytes, stores: [Self.store]) } catch is PackFault {} catch {
                Issue.record("\(Sample.hint(seed)), round \(round): \(error)")
            }
        }
    }

    @Test func bombsAreRefused() throws {
        // A block that claims to have 4 MiB, and inflates to 4 MiB, is accepted. One that claims less is refused.
        let zeros = [UInt8](repeating: 0, count: 256 << 10)
        var pack = PackWriter(.init(kind: .blob, store: Self.store, salt: Self.salt, writer: 1, first: 0, last: 0, link: Self.salt))
        try zeros.withUnsafeBytes { try pack.add(bare: $0) }
        let made = try pack.finish(), block = try PackFile(made.name, made.bytes, stores: [Self.store]).index.blocks[0]
        #expect(block.stored < 2_000)
        var small = block
        small.raw = 4_096
        var bytes = Array(made.bytes[block.offset..<block.offset + block.size])
        bytes.replaceSubrange(5..<9, with: [0, 16, 0, 0])
        #expect(throws: PackFault.self) { try bytes.withUnsafeBytes { try PackFile.inflate(small, $0) } }
    }
}

private func hex(_ bytes: [UInt8]) -> String { bytes.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined() }

private func unhex(_ text: String) -> [UInt8] {
    let digits = text.utf8.map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
