import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// A single pass through a document gives the same as its tree, or reports that it is unsure.
@Suite("Documents in one pass") struct IndexScanTests {
    private static let definitions = [
        #"{"prefix":"","on":["/a"]}"#, #"{"prefix":"","on":["/a","/b/c"]}"#, #"{"prefix":"","on":["/longer-name","/longer-named"]}"#,
        #"{"prefix":"","on":[""]}"#, #"{"prefix":"","on":["/a/0"]}"#, #"{"prefix":"","on":["/b","/b/c/d",""],"text":"fold"}"#,
        #"{"prefix":"","on":["/a"],"where":{"/b":{"present":true},"/c":1.0,"/é":"ü"}}"#,
        #"{"prefix":"","on":["/"],"where":{"/a/b":{"present":false},"/c":null,"/b":false}}"#,
    ]

    private static func definition(_ json: String) throws -> IndexDefinition {
        try Array(json.utf8).withUnsafeBytes { try IndexDefinition($0) }
    }

    private static func key(_ parts: some Collection<IndexPart>, _ definition: IndexDefinition) -> [UInt8] {
        var key: [UInt8] = []
        IndexKey.append(key: parts, folds: definition.folds, to: &key)
        return key
    }

    /// Returns whether the scan was sure and found something.
    @discardableResult
    private static func check(_ text: [UInt8], _ scan: IndexScan, _ definition: IndexDefinition) throws -> (sure: Bool, found: Bool) {
        try text.withUnsafeBytes { data in
            var expected: [[UInt8]] = []
            _ = try IndexTuples.forEach(data, idSize: 0, definition, DocumentControl()) { expected.append(key($0, definition)) }
            // Computed only for a failure.
            var about: Comment {
                "\(String(decoding: text.prefix(300), as: UTF8.self)) by \(String(decoding: definition.text, as: UTF8.self))"
            }
            switch scan.read(data) {
            case .unsure: return (false, false)
            case .absent: #expect(expected.isEmpty, about)
            case .found: #expect(expected == [key(scan.tuple, definition)], about)
            }
            return (true, !expected.isEmpty)
        }
    }

    @Test("usual documents are read") func usual() throws {
        let wanted: [(String, String, found: Bool)] = [
            (#"{"a":"x","n":[1,{"a":2}],"b":{"c":-1.50}}"#, #"{"prefix":"","on":["/a","/b/c"]}"#, true),
            (#" { "z" : true , "a" : "\u00e9 is left alone" , "b" : null } "#, #"{"prefix":"","on":["/b"]}"#, true),
            (#"{"b":{"a":1},"a":{"b":2}}"#, #"{"prefix":"","on":["/a"]}"#, false),
            (#"{"lastName":"Müller","firstName":"Ann","done":false}"#, #"{"prefix":"","on":["/lastName"],"where":{"/done":false}}"#, true),
            (#"{"lastName":"Müller","firstName":"Ann","done":true}"#, #"{"prefix":"","on":["/lastName"],"where":{"/done":false}}"#, false),
            (#"{"a":1,"b":null}"#, #"{"prefix":"","on":["/a"],"where":{"/b":{"present":true}}}"#, true),
            (#"{"a":1,"c":null}"#, #"{"prefix":"","on":["/a"],"where":{"/b":{"present":true}}}"#, false),
            (#"{"a":1,"b":[]}"#, #"{"prefix":"","on":["/a"],"where":{"/b":{"present":false}}}"#, false),
            (#""text""#, #"{"prefix":"","on":[""]}"#, true), ("{}", #"{"prefix":"","on":["/a"]}"#, false),
        ]
        for (text, json, found) in wanted {
            let definition = try Self.definition(json), scan = try #require(IndexScan(definition))
            #expect(try Self.check(Array(text.utf8), scan, definition) == (true, found), "\(text)")
        }
        #expect(try IndexScan(Self.definition(#"{"prefix":"","on":["/a/*"]}"#)) == nil)
    }

    @Test("unusual ones have the keys of their trees") func unusual() throws {
        let unusual = [
            "", " ", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1 \"b\":2}", "{\"a\":1}x", "{\"a\":01}", "{\"a\":1.}",
            "{\"a\":-}", "{\"a\":1e5}", "{\"a\":1e99999}", "{\"a\":tru}", "{\"a\":\"\\x\"}", "{\"a\":\"\t\"}", "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "{\"b\":1,\"a\":2,\"b\":3}", "{\"z\":{\"b\":1,\"a\":2,\"b\":3},\"a\":1}", "{\"a\":[1,2}", "{\"a\":[1,2]]",
            "{\"a\":[,1]}", "{\"a\":[1,]}",
            "{\"a\":\"\\ud800\",\"b\":1}", "{\"b\":\"\\ud800\",\"a\":1}", "{\"longer-named\":1,\"longer-name\":2,\"longer-nam\":3}",
            "{\"longer-name\":1,\"longer-names\":2,\"longer-name\":3}", "{\"longer-names\":1,\"longer-name\":2,\"longer-names\":3}",
            "{\"a\":[5,6]}", "{\"\":1}", "{\"\":1,\"\":2}", "{\"a\":" + String(repeating: "9", count: 500) + "}",
            "{\"a\":0." + String(repeating: "0", count: 40) + "1}", String(repeating: "[", count: 130) + String(repeating: "]", count: 130),
            String(repeating: "[", count: 40) + String(repeating: "]", count: 40), "\u{feff}{\"a\":1}", "nullx", "-0", "\"a", "[1,2] ",
            "{" + (0..<300).map { "\"n\($0)\":1" }.joined(separator: ",") + ",\"a\":1}",
            "{" + (0..<40).map { "\"n\(40 - $0)\":1" }.joined(separator: ",") + ",\"n3\":1,\"a\":1}",
        ]
        for json in Self.definitions {
            let definition = try Self.definition(json), scan = try #require(IndexScan(definition))
            for text in unusual { try Self.check(Array(text.utf8), scan, definition) }
            try Self.check([0x7B, 0x22, 0x61, 0x22, 0x3A, 0x22, 0xFF, 0x22, 0x7D], scan, definition)
            try Self.check(Array("{\"a\":1}\u{0}".utf8), scan, definition)
        }
    }

    @Test("random ones, and the same with bytes that are others", arguments: 0..<4 as Range<UInt64>) func random(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), sure = 0, found = 0
        let names = ["a", "b", "c", "d", "", "é", "longer-name", "longer-named", "0", "\\u0061"]
        func value(_ depth: Int) -> String {
            let space = [" ", "\n", "", "", "", ""].randomElement(using: &random) ?? ""
            switch Int.random(in: 0..<(depth > 3 ? 8 : 11), using: &random) {
            case 0: return "null"
            case 1: return "true"
            case 2: return "false" + space
            case 3: return "\(Int.random(in: -1_000...1_000, using: &random))"
            case 4: return "1.0"
            case 5: return ["0.125", "-0", "1e3", "10.50", "9007199254740993"].randomElement(using: &random) ?? ""
            case 6: return "\"ü\"" + space
            case 7:
                let texts = ["\"\"", "\"plain text that is longer\"", "\"\\n\"", "\"\\u00e9\"", "\"\\\\\"", "\"Straße \\\"\""]
                return texts.randomElement(using: &random) ?? ""
            case 8:
                return "[" + (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth + 1) }.joined(separator: ",") + "]" + space
            default:
                var members = names.shuffled(using: &random).prefix(Int.random(in: 0..<8, using: &random)).map { "\"\($0)\":\(space)" }
                if Bool.random(using: &random) { members.sort() }
                if Int.random(in: 0..<12, using: &random) == 0, let first = members.first { members.append(first) }
                return "{" + members.map { $0 + value(depth + 1) }.joined(separator: "," + space) + "}"
            }
        }
        let definitions = try Self.definitions.map { try Self.definition($0) }, scans = definitions.compactMap { IndexScan($0) }
        #expect(scans.count == definitions.count)
        let count = sample(usual: 700, deep: 2_000)
        for _ in 0..<count {
            var text = Array(value(0).utf8)
            for turn in 0..<3 {
                for (definition, scan) in zip(definitions, scans) {
                    let told = try Self.check(text, scan, definition)
                    if turn == 0, told.sure { sure += 1 }
                    if turn == 0, told.found { found += 1 }
                }
                guard !text.isEmpty else { break }
                let at = Int.random(in: text.indices, using: &random)
                if Bool.random(using: &random) { text.remove(at: at) } else { text[at] = UInt8.random(in: 0...255, using: &random) }
            }
        }
        #expect(sure > 4 * count && found > count / 4, "\(sure) were read, and \(found) found")
    }
}
