import LLVSCore
import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSMerge

@Suite struct IndexFileTests {
    private let directory = TemporaryDirectory()

    private func definition(_ text: String) throws -> IndexDefinition {
        try Array(text.utf8).withUnsafeBytes { try IndexDefinition($0) }
    }

    /// A store with 300 values, an index over them with a file, and its tree.
    private func indexed(_ definition: IndexDefinition) throws -> (store: Store, tree: IndexCache.Tree, name: String) {
        let store = try Store(path: directory.path + "/store")
        let changes: [Value.Change] = try (0..<300).map { .insert(try id("v\($0)"), data: Array(#"{"a":\#($0)}"#.utf8)) }
        let version = try store.makeVersion(basedOn: nil, changes: changes)
        let tree = try IndexProvider.of(store).tree(definition, store.requireOrdinal(version.id), in: store, .none)
        #expect(tree.root?.count == 300)
        return (store, tree, IndexFile.name(definition.digest))
    }

    @Test func aFileThatSaysOtherThanTheValuesIsFoundByVerifying() throws {
        let definition = try definition(#"{"prefix":"v","on":["/a"]}"#), (store, tree, name) = try indexed(definition)
        defer { try? store.close() }
        let bytes = try #require(try store.storage.cacheGet(name)), file = try #require(try IndexFile(bytes, definition, .none))
        #expect(try store.verify().isWhole)
        #expect(try store.storage.cacheGet(name) != nil)
        var first: [UInt8] = []
        tree.root?.forEach { key, _ in
            first = Array(key); return false
        }
        // The file claims one entry less, and one more.
        for (key, entry) in [(first, nil), (first + [0x31], IndexMaking.slot)] as [([UInt8], MapEntry?)] {
            let root = try key.withUnsafeBytes { try MapNode.applying([MapChange(key: $0, entry: entry)], to: tree.root) }
            let lie = IndexCache.Tree(definition.digest, tree.ordinal, root, values: tree.values)
            try store.storage.cachePut(name, try #require(try IndexFile.bytes(of: lie, definition, file.version, file.checksum)))
            let report = try store.verify()
            #expect(report.damages.count == 1 && report.damages.allSatisfy { $0.lost == .nothing && $0.version == file.version })
            #expect(try store.storage.cacheGet(name) == nil)
            #expect(try store.verify().isWhole)
        }
    }

    /// Long entries that share nearly all their bytes, so a file of some KB could take any amount of memory.
    @Test func aSmallFileDoesNotTakeMuchMemory() throws {
        let definition = try definition(#"{"prefix":"v","on":["/a"]}"#), store = try memoryStore()
        let text = String(repeating: "a", count: 1_000)
        let version = try store.makeVersion(
            basedOn: nil, changes: [.insert(try id("v"), data: Array(#"{"a":"\#(text)"}"#.utf8))])
        let tree = try IndexProvider.of(store).tree(definition, store.requireOrdinal(version.id), in: store, .none)
        var first: [UInt8] = []
        tree.root?.forEach { key, _ in
            first = Array(key); return false
        }
        #expect(first.count > 1_000)

        func file(_ entries: [[UInt8]]) -> [UInt8] { self.file(entries, definition, version.id) }
        let many = (0..<5_000).map { first + Array(String(1_000_000 + $0).utf8) }
        #expect(try IndexFile(file(Array(many[..<20])), definition, .none)?.root?.count == 20)
        #expect(try IndexFile(file(many), definition, .none) == nil)
        // Invalid entries: no key, and a key without an id.
        #expect(try IndexFile(file([first]), definition, .none)?.root?.count == 1)
        #expect(try IndexFile(file([[0xFF, 1]]), definition, .none) == nil)
        #expect(try IndexFile(file([Array(first.dropLast())]), definition, .none) == nil)
    }

    /// Makes a file of arbitrary entries.
    private func file(_ entries: [[UInt8]], _ definition: IndexDefinition, _ version: VersionID) -> [UInt8] {
        var out = ByteWriter()
        out.raw(Array("LLVSIDX2".utf8))
        out.varint(UInt64(definition.text.count))
        out.raw(definition.text)
        out.versionID(version)
        out.integer(UInt32(7))
        out.varint(UInt64(entries.count))
        out.varint(UInt64(entries.count))
        var last: [UInt8] = []
        for entry in entries {
            let shared = zip(last, entry).prefix { $0 == $1 }.count
            out.varint(UInt64(shared))
            out.varint(UInt64(entry.count - shared))
            out.raw(Array(entry[shared...]))
            last = entry
        }
        out.integer(out.bytes.withUnsafeBytes { Bytes.crc32c($0) })
        return out.bytes
    }

    /// A valid key with an id that the index cannot contain: without its prefix, or a value of the store's own.
    @Test func entriesThatNoIndexHas() throws {
        for (text, prefix) in [(#"{"prefix":"v","on":["/a"]}"#, "v"), (#"{"prefix":"","on":["/a"]}"#, "")] {
            let definition = try definition(text), store = try memoryStore()
            let version = try store.makeVersion(basedOn: nil, changes: [.insert(try id("v"), data: Array(#"{"a":1}"#.utf8))])
            let tree = try IndexProvider.of(store).tree(definition, store.requireOrdinal(version.id), in: store, .none)
            var first: [UInt8] = []
            tree.root?.forEach { key, _ in
                first = Array(key); return false
            }
            let key = Array(first.dropLast()), reserved = Array(IndexDefinition.reserved)
            func isTaken(_ id: [UInt8]) throws -> Bool { try IndexFile(file([key + id], definition, version.id), definition, .none) != nil }
            #expect(try isTaken(Array("v".utf8)) && isTaken(Array("vw".utf8)))
            #expect(try isTaken(Array("w".utf8)) == prefix.isEmpty)
            #expect(try !isTaken(reserved) && !isTaken(reserved + [0x31]))
            #expect(try !isTaken([]), "a key alone")
        }
    }

    @Test func otherBytesAreNoIndex() throws {
        let definition = try definition(#"{"prefix":"v","on":["/a"]}"#), (store, tree, name) = try indexed(definition)
        defer { try? store.close() }
        let bytes = try #require(try store.storage.cacheGet(name))
        #expect(IndexFile.definition(of: bytes)?.digest == definition.digest)
        #expect(try IndexFile(bytes, try self.definition(#"{"prefix":"v","on":["/b"]}"#), .none) == nil)
        for i in stride(from: 0, to: bytes.count, by: 7) {
            var changed = bytes
            changed[i] ^= 0x20
            #expect(try IndexFile(changed, definition, .none) == nil, "byte \(i)")
            #expect(try IndexFile(Array(bytes[..<i]), definition, .none) == nil, "cut at \(i)")
        }
        withExtendedLifetime(tree) {}
    }
}
