import LLVS
@testable import LLVSCore
@testable import LLVSDocuments
@testable import LLVSMerge

/// Definitions and declarations of indexes, definitions of projections, and files of indexes.
///
///     input = which u8 · ...    0: a definition of an index    1: rules that declare indexes    2: a definition of a projection
///                               3: a definition and a file of its index; the target adds the checksum    4: one as it comes
///                               5: a document, in which a scan must find what its tree has
enum IndexesTarget {
    static let target = FuzzTarget(name: "indexes", run: run, seeds: seeds)
    private static let definition = #"{"on":["/a","/b/*"],"prefix":"v/","text":"fold","where":{"/c":true}}"#

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let which = input.byte() % 6, rest = input.rest()
        Examining.attempt {
            switch which {
            case 0: try index(rest)
            case 1:
                let found = try rest.withUnsafeBytes { try IndexDeclarations($0) }
                for definition in found.indexes.values { try index(definition.text) }
            case 2: try projection(rest)
            case 3:
                let definition = try read(Array(definition.utf8))
                var head = ByteWriter()
                head.raw(Array("LLVSIDX2".utf8))
                head.varint(UInt64(definition.text.count))
                head.raw(definition.text + rest)
                head.integer(head.bytes.withUnsafeBytes { Bytes.crc32c($0) })
                try file(head.bytes)
            case 4: try file(rest)
            default: for definition in inOnePass { try document(rest, definition) }
            }
        }
    }

    private static let inOnePass = [
        #"{"on":["/a","/b/c"],"prefix":""}"#, #"{"on":["/a"],"prefix":"","text":"fold","where":{"/b":{"present":true},"/c":1}}"#,
    ].compactMap { try? read(Array($0.utf8)) }

    private static func document(_ bytes: [UInt8], _ definition: IndexDefinition) throws {
        guard let scan = IndexScan(definition) else { fail("no document is read in one pass") }
        func key(_ parts: some Collection<IndexPart>) -> [UInt8] {
            var key: [UInt8] = []
            IndexKey.append(key: parts, folds: definition.folds, to: &key)
            return key
        }
        try bytes.withUnsafeBytes { data in
            var expected: [[UInt8]] = []
            _ = try IndexTuples.forEach(data, idSize: 0, definition, DocumentControl()) { expected.append(key($0)) }
            switch scan.read(data) {
            case .unsure: break
            case .absent: require(expected.isEmpty, "one pass finds no key, and the tree one")
            case .found: require(expected == [key(scan.tuple)], "one pass finds another key than the tree")
            }
        }
    }

    private static func read(_ json: [UInt8]) throws -> IndexDefinition { try json.withUnsafeBytes { try IndexDefinition($0) } }

    /// A definition has one canonical form, which means the same.
    private static func index(_ json: [UInt8]) throws {
        let found: IndexDefinition
        do { found = try read(json) } catch is InvalidIndex { return }
        guard let again = try? read(found.text) else { fail("the one form of a definition is none") }
        require(again.text == found.text && again.digest == found.digest, "a definition has two forms")
    }

    private static func projection(_ json: [UInt8]) throws {
        let found = try json.withUnsafeBytes { try ProjectionDefinition($0) }
        guard let again = try? found.text.withUnsafeBytes({ try ProjectionDefinition($0) }) else {
            fail("the one form of a definition is none")
        }
        require(again.text == found.text && again.digest == found.digest, "a definition has two forms")
    }

    /// A file that was read is written and read again.
    private static func file(_ bytes: [UInt8]) throws {
        guard let definition = IndexFile.definition(of: bytes), let found = try IndexFile(bytes, definition, .none) else { return }
        let tree = IndexCache.Tree(definition.digest, 0, found.root, values: found.values)
        guard let written = try IndexFile.bytes(of: tree, definition, found.version, found.checksum) else { return }
        guard let again = try IndexFile(written, definition, .none) else { fail("a file that was just written is void") }
        require(again.version == found.version && again.checksum == found.checksum && again.values == found.values, "its head is lost")
        require(MapNode.haveSameContents(again.root, found.root), "its entries are others")
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let text = Array(definition.utf8), definition = try read(text)
        let rules = Array(#"{"merge":1,"indexes":{"by-a":{"prefix":"v/","on":["/a"]},"none":{"on":1}}}"#.utf8)
        let projection = Array(
            #"{"tables":[{"name":"t","prefix":"v/","columns":[{"name":"a","pointer":"/a","type":"text"}],"search":["a"]}]}"#.utf8)
        let store = try Examining.memoryStore()
        let changes: [Value.Change] = try (0..<8).map {
            .insert(try ValueID("v/\($0)"), data: Array(#"{"a":\#($0),"b":["x","Äpfel \#($0)"],"c":true}"#.utf8))
        }
        let version = try store.makeVersion(basedOn: nil, changes: changes)
        let tree = try IndexProvider.of(store).tree(definition, store.requireOrdinal(version.id), in: store, .none)
        guard let file = try IndexFile.bytes(of: tree, definition, version.id, 7) else { fail("no file is made") }
        let head = 8 + 1 + definition.text.count
        return [
            FuzzTarget.Seed(name: "definition", bytes: [0] + text), FuzzTarget.Seed(name: "declarations", bytes: [1] + rules),
            FuzzTarget.Seed(name: "projection", bytes: [2] + projection),
            FuzzTarget.Seed(name: "document", bytes: [5] + Array(#"{"b":{"c":-1.5},"a":"Äpfel","c":1,"d":[{"a":"\u00e9"}, null]}"#.utf8)),
            FuzzTarget.Seed(name: "entries", bytes: [3] + file[head..<(file.count - 4)]), FuzzTarget.Seed(name: "file", bytes: [4] + file),
        ]
    }
}
