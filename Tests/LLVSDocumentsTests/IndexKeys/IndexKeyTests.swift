import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Tests/Vectors/index-keys.json, which the model in Tests/Python/keys computed: definitions, keys, and invalid keys.
@Suite("Keys of indexes") struct IndexKeyTests {
    /// The vectors, as docs/index-keys.md describes them.
    private struct Vectors: Decodable {
        struct Row: Decodable { var tuple, key: String }
        struct Order: Decodable {
            var name: String
            var fold: Bool
            var tuples: [Row]
        }
        struct Spellings: Decodable {
            var tuples: [String]
            var key: String
        }
        struct NoKey: Decodable {
            var name: String
            var parts: Int
            var fold: Bool
            var key: String
        }
        struct StoredValue: Decodable { var id, data: String }
        struct Keys: Decodable {
            var id: String
            var keys: [String]
            var why: String?
        }
        struct Definition: Decodable {
            var name, definition, digest: String
            var values: [Keys]
        }
        var format: Int
        var orders: [Order]
        var equal: [Spellings]
        var noKeys: [NoKey]
        var values: [StoredValue]
        var definitions: [Definition]
    }

    private func vectors() throws -> Vectors {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/index-keys.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(vectors.format == 1)
        return vectors
    }

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    private func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    private func key(_ tuple: [UInt8], folds: Bool) throws -> [UInt8] {
        try tuple.withUnsafeBytes { tuple in
            let parsed = try IndexQuestion.Tuple(tuple, named: "tuple")
            var out: [UInt8] = []
            parsed.withParts { IndexKey.append(key: $0, folds: folds, to: &out) }
            return out
        }
    }

    /// Encodes the tuple as the key, and decodes the key to the tuple.
    private func check(_ tuple: String, _ key: [UInt8], folds: Bool) throws {
        let tuple = Array(tuple.utf8)
        #expect(try self.key(tuple, folds: folds) == key, "\(String(decoding: tuple, as: UTF8.self).prefix(80))")
        let parsed = try tuple.withUnsafeBytes { try IndexQuestion.Tuple($0, named: "tuple") }
        let read = (key + [0x61]).withUnsafeBytes { IndexKey.read($0, parts: parsed.count, folds: folds) }
        #expect(read?.size == key.count)
        let size = (key + [0x61]).withUnsafeBytes { IndexKey.size($0, parts: parsed.count, folds: folds) }
        #expect(size == key.count)
        if let told = read?.tuple {
            #expect(try self.key(told, folds: folds) == key)
        } else {
            #expect(key.count == IndexKey.limit && key.last == IndexKey.cutMark)
        }
    }

    @Test("keys are made from tuples, and tuples are read from keys") func tuples() throws {
        let vectors = try self.vectors()
        for order in vectors.orders {
            var before: [UInt8]?
            for row in order.tuples {
                let key = bytes(row.key)
                try check(row.tuple, key, folds: order.fold)
                if let before { #expect(Bytes.compare(before, key) <= 0, "\(order.name)") }
                before = key
            }
        }
        for spellings in vectors.equal {
            for tuple in spellings.tuples { try check(tuple, bytes(spellings.key), folds: false) }
        }
        #expect(vectors.orders.reduce(0) { $0 + $1.tuples.count } >= 88)
        #expect(vectors.equal.reduce(0) { $0 + $1.tuples.count } >= 12)
    }

    @Test("bytes that are no key are refused") func noKeys() throws {
        let vectors = try self.vectors()
        for row in vectors.noKeys {
            let read = bytes(row.key).withUnsafeBytes { IndexKey.read($0, parts: row.parts, folds: row.fold) }
            #expect(read == nil, "\(row.name)")
        }
        #expect(vectors.noKeys.count >= 15)
    }

    @Test("definitions give the keys of values") func definitions() throws {
        let vectors = try self.vectors()
        let values = Dictionary(uniqueKeysWithValues: vectors.values.map { ($0.id, Array($0.data.utf8)) })
        var count = 0
        for row in vectors.definitions {
            let definition = try Array(row.definition.utf8).withUnsafeBytes { try IndexDefinition($0) }
            #expect(hex(definition.digest) == row.digest, "\(row.name)")
            for expected in row.values {
                let id = Array(expected.id.utf8), data = try #require(values[expected.id])
                var keys: Set<[UInt8]> = []
                let why = try id.withUnsafeBytes { id in
                    try data.withUnsafeBytes { data in
                        try IndexTuples.absence(of: id, in: definition)
                            ?? IndexTuples.forEach(data, idSize: id.count, definition, DocumentControl()) {
                                var key: [UInt8] = []
                                IndexKey.append(key: $0, folds: definition.folds, to: &key)
                                keys.insert(key)
                            }
                    }
                }
                #expect(why?.rawValue == expected.why, "\(row.name): \(expected.id)")
                #expect(keys.sorted { Bytes.compare($0, $1) < 0 }.map(hex) == expected.keys, "\(row.name): \(expected.id)")
                count += 1
            }
        }
        #expect(count >= 168)
    }

    /// Scalars of the planes 3 to 16 do not fold; the usual run takes a sample of them.
    @Test("every scalar value folds as the table says") func folding() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/index-folding.txt")
        var table: [UInt32: String] = [:]
        for line in try String(contentsOf: file, encoding: .ascii).split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " "), bounds = words[0].split(separator: "-").compactMap { UInt32($0, radix: 16) }
            let result = String(String.UnicodeScalarView(words[1...].compactMap { UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }))
            for scalar in bounds[0]...bounds[bounds.count - 1] { table[scalar] = result }
        }
        var wrong: [UInt32] = []
        let scalars = Array(0..<UInt32(0x30000)) + stride(from: 0x30000, to: 0x110000, by: sample(usual: 251, deep: 1)) + table.keys
        for number in scalars {
            guard let scalar = Unicode.Scalar(number), number &- 0xAC00 >= 11_172 else { continue }
            let text = Array(String(scalar).utf8), folded = text.withUnsafeBytes { Folding.folded($0) }
            if folded != table[number].map({ Array($0.utf8) }) ?? text { wrong.append(number) }
        }
        #expect(wrong.isEmpty)
        #expect(String(decoding: Array("한".utf8).withUnsafeBytes { Folding.folded($0) }, as: UTF8.self).unicodeScalars.count == 3)
    }

    @Test(
        "JSON that can be merged and cannot be indexed",
        arguments: [
            "123e9999", "10e9999", "0.1e-9999", "1" + String(repeating: "0", count: 400),
        ])
    func limits(number: String) throws {
        let definition = try Array(#"{"prefix":"","on":["/a"]}"#.utf8).withUnsafeBytes { try IndexDefinition($0) }
        for text in ["{\"a\":1,\"b\":\(number)}", "{\"a\":\(number)}"] {
            let why = try Array(text.utf8).withUnsafeBytes {
                try IndexTuples.forEach($0, idSize: 0, definition, DocumentControl()) { _ in }
            }
            #expect(why == .notJSON)
        }
    }

    @Test("many choices are counted before they are made, and each container is visited once") func choices() throws {
        let definition = try Array(#"{"prefix":"","on":["/a/*","/b/*/c","/b/*/d/*"]}"#.utf8).withUnsafeBytes { try IndexDefinition($0) }
        func count(_ a: Int, _ b: Int, _ d: Int) throws -> (Int, IndexTuples.Absence?) {
            let list = { (n: Int) in "[" + (0..<n).map(String.init).joined(separator: ",") + "]" }
            let b = "[" + (0..<b).map { _ in "{\"c\":1,\"d\":\(list(d))}" }.joined(separator: ",") + "]"
            var n = 0
            // Large enough for this many keys.
            let rest = String(repeating: "x", count: 10_000)
            let why = try Array("{\"a\":\(list(a)),\"b\":\(b),\"rest\":\"\(rest)\"}".utf8).withUnsafeBytes {
                try IndexTuples.forEach($0, idSize: 0, definition, DocumentControl()) { _ in n += 1 }
            }
            return (n, why)
        }
        #expect(try count(10, 10, 100) == (10_000, nil))
        #expect(try count(10, 10, 101) == (0, .tooManyKeys))
        #expect(try count(1, 0, 0) == (1, nil))
        #expect(try count(0, 3, 2) == (0, .noFirstPart))
        #expect(try count(1, 200_000, 0) == (0, .tooManyKeys))
    }

    /// The bound of docs/index-keys.md, to the last byte: folded and not, in one star and in two.
    @Test(
        "keys take room in proportion to the value",
        arguments: [#"["/a/*","/b/*"]"#, #"["/b/*","/c","/a/*"]"#, #"["/c","/a/*","/b/*"],"text":"fold""#, #"["/c","/b/*"]"#], [0, 7, 900])
    func room(on: String, idSize: Int) throws {
        let definition = try Array("{\"prefix\":\"\",\"on\":\(on)}".utf8).withUnsafeBytes { try IndexDefinition($0) }
        let long = "\"\(String(repeating: "É", count: 300))\"", numbers = (1...300).map(String.init).joined(separator: ",")
        /// The size of a value's keys, their limit, and why there are none, for a value with this many other bytes.
        func keys(_ rest: Int) throws -> (size: Int, room: Int, why: IndexTuples.Absence?) {
            let rest = String(repeating: "x", count: rest)
            let data = Array("{\"a\":[1,\(long)],\"b\":[\(numbers)],\"c\":\(long),\"rest\":\"\(rest)\"}".utf8)
            var size = 0
            let why = try data.withUnsafeBytes {
                try IndexTuples.forEach($0, idSize: idSize, definition, DocumentControl()) { parts in
                    var key: [UInt8] = []
                    IndexKey.append(key: parts, folds: definition.folds, to: &key)
                    size += key.count + idSize + 32
                }
            }
            return (size, 16_384 + 64 * (data.count + idSize), why)
        }
        let large = try keys(100_000), none = try keys(0)
        #expect(large.why == nil && none.why == .tooManyKeys && none.size == 0)
        let least = (large.size - none.room + 63) / 64
        #expect(try keys(least).why == nil && keys(least - 1).why == .tooManyKeys, "\(least)")
    }

    @Test(
        "definitions that are none say where",
        arguments: [
            ("[]", ""), (#"{"on":["/a"]}"#, "/prefix"), (#"{"prefix":1,"on":["/a"]}"#, "/prefix"), (#"{"prefix":""}"#, "/on"),
            (#"{"prefix":"","on":[]}"#, "/on"), (#"{"prefix":"","on":["a"]}"#, "/on/0"), (#"{"prefix":"","on":["/a","/a"]}"#, "/on/1"),
            (#"{"prefix":"","on":["/**"]}"#, "/on/0"), (#"{"prefix":"","on":["/~3"]}"#, "/on/0"), (#"{"prefix":"","on":["/~"]}"#, "/on/0"),
            (#"{"prefix":"","on":["/a"],"text":"Fold"}"#, "/text"), (#"{"prefix":"","on":["/a"],"where":[]}"#, "/where"),
            (#"{"prefix":"","on":["/a"],"where":{"/*":1}}"#, "/where/~1*"), (#"{"prefix":"","on":["/a"],"where":{"/b":[]}}"#, "/where/~1b"),
            (#"{"prefix":"","on":["/a"],"where":{"/b":{"present":1}}}"#, "/where/~1b"), (#"{"prefix":"","on":["/a"],"o/n":1}"#, "/o~1n"),
            (#"{"prefix":"","on":["/a","/b","/c","/d","/e","/f","/g","/h","/i"]}"#, "/on"),
        ])
    func invalid(text: String, pointer: String) throws {
        do {
            _ = try Array(text.utf8).withUnsafeBytes { try IndexDefinition($0) }
            Issue.record("taken: \(text)")
        } catch let problem as InvalidIndex { #expect(problem.pointer == pointer) }
        let rules = Array("{\"merge\":1,\"indexes\":{\"good\":{\"prefix\":\"\",\"on\":[\"/a\"]},\"x\":\(text)}}".utf8)
        let declared = try rules.withUnsafeBytes { try IndexDeclarations($0) }
        #expect(declared.indexes.count == 1)
        #expect(declared.problems.map(\.pointer) == ["/indexes/x" + pointer])
        // A wrong declaration does not affect rules for merging, but is refused at registration.
        _ = try rules.withUnsafeBytes { try MergeSchema($0) }
        #expect(throws: InvalidRules.self) { try rules.withUnsafeBytes { _ = try SchemaRegistration.adding($0, to: nil) } }
    }
}
