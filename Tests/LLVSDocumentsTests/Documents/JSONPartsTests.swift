import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Finding parts of a text without a tree gives the same parts as the tree. Both accept the same texts as JSON.
@Suite("Parts of JSON") struct JSONPartsTests {
    private static let pointers = [
        "", "/a", "/b", "/b/c", "/b/c/d", "/a/0", "/a/1", "/a/1/a", "/a/01", "/é", "/a~1b", "/long name of a member",
        "/long name of a membes", "/",
    ]
    private static func path(_ pointer: String) -> [[UInt8]] {
        pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map {
            Array($0.replacing("~1", with: "/").replacing("~0", with: "~").utf8)
        }
    }

    private static let texts = [
        #"{"a":[1,{"a":-2.5e3}],"b":{"c":{"d":"x"}}}"#, #" { "b" : { "c" : [ ] , "d" : { } } , "a" : "é\n\ud83d\ude00" } "#,
        #"{"é":true,"a/b":false,"":null}"#, #"[1,2]"#, "7", "-0", "\"x\"", "\"\\u0041\"", "null", "true", "[]", "{}", "[[[]],{}]",
        #"{"long name of a member":1,"long name of a membes":"2","long name":3}"#, #"{"a":123456789012345678901234567890,"b":1e400}"#,
        #"{"a":0.1,"b":{"c":1,"d":2,"c2":3}}"#, #"{"a":[[],1],"b":[]}"#, "{\"b\":{\"c\":{\"d\":[\"\u{7f}\u{2028}\"]}}}",
    ]

    /// Compares the parts of a text with its tree. Returns the outcome for the parts.
    @discardableResult
    private func compare(_ text: [UInt8], _ parts: JSONParts) throws -> JSONParts.Outcome {
        try text.withUnsafeBytes { bytes in
            let outcome = parts.find(in: bytes)
            guard let parsed = try JSONTreeParser.parse(bytes, work: DocumentControl()) else {
                #expect(outcome != .found, "\(String(decoding: text, as: UTF8.self))")
                return outcome
            }
            #expect(outcome != .notJSON, "\(String(decoding: text, as: UTF8.self))")
            guard outcome == .found else { return outcome }
            let tree = parsed.tree
            for (i, pointer) in Self.pointers.enumerated() {
                let part = parts[i], node = tree.find(Self.path(pointer), from: 0)
                let place = "\(pointer) of \(String(decoding: text, as: UTF8.self))"
                guard let node else {
                    #expect(part.kind == .missing, "\(place)")
                    continue
                }
                let kinds: [JSONKind: JSONParts.Part.Kind] = [
                    .null: .null, .number: .number, .string: .string, .array: .container, .object: .container,
                ]
                #expect(part.kind == kinds[tree.kind(node)] ?? (tree.bool(node) ? .yes : .no), "\(place)")
                #expect(part.isEscaped == tree.isEscaped(node), "\(place)")
                guard part.start <= part.end, part.end <= text.count else { Issue.record("\(place)"); continue }
                guard part.isEscaped else {
                    #expect(Array(text[part.start..<part.end]) == Array(tree.text(node)), "\(place)")
                    continue
                }
                var position = part.start - 1
                #expect(JSONString.read(bytes, at: &position) == Array(tree.text(node)) && position == part.end + 1, "\(place)")
            }
            return outcome
        }
    }
    private let parts = JSONParts(JSONPartsTests.pointers.map(JSONPartsTests.path))

    @Test("as the tree has them") func asTheTreeHasThem() throws {
        for text in Self.texts { #expect(try compare(Array(text.utf8), parts) == .found, "\(text)") }
    }

    @Test("every cut and every byte") func everyCutAndEveryByte() throws {
        for text in Self.texts {
            let text = Array(text.utf8)
            for end in 0..<text.count { try compare(Array(text[..<end]), parts) }
            for i in text.indices {
                for byte in Array("\"\\{}[],:0-.eEtn/ \t\u{0}\u{1f}".utf8) + [0x80, 0xC3, 0xFF] {
                    var other = text
                    other[i] = byte
                    try compare(other, parts)
                    other[i] = text[i]
                    other.insert(byte, at: i)
                    try compare(other, parts)
                }
            }
        }
    }

    @Test("text that is not JSON") func whatIsNoJSON() throws {
        for text in [
            "", " ", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[-]", "[tru]", "[nulL]", "[\"a]", "[\"\\x\"]", "[\"\t\"]",
            "{\"a\":1,\"a\":2}", "{\"long name of a member\":1,\"b\":2,\"long name of a member\":2}", "{\"\":1,\"\":2}",
            "{\"long name 1\":1,\"long name 2\":2,\"long name 2\":3}", "{\"long name 1\":1,\"long name 3\":2,\"long name 1\":3}",
            "[\"\\ud800\"]", "\u{feff}[]", "[1]x", "[}", "{]", "[1 2]", "{\"a\" 1}", "[1e10000]", "{\"b\":{\"c\":1,\"d\":{},\"c\":2}}",
        ] { #expect(try compare(Array(text.utf8), parts) == .notJSON, "\(text)") }
        #expect(try compare([0x22, 0xED, 0xA0, 0x80, 0x22], parts) == .notJSON)
        // The same name in two objects is allowed.
        #expect(try compare(Array(#"{"a":[{"a":1},{"a":2}],"b":{"a":3}}"#.utf8), parts) == .found)
    }

    @Test("values that need the tree") func whatTheTreeHasToSay() throws {
        func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        func members(_ count: Int) -> String { "{" + (0..<count).map { "\"n\($0)\":1" }.joined(separator: ",") + "}" }
        for (text, outcome) in [
            (nested(64), JSONParts.Outcome.found), (nested(65), .unsure), (nested(129), .unsure),
            (members(32), .found), (members(33), .unsure),
            // Sorted names may be more.
            ("{" + (100..<200).map { "\"n\($0)\":1" }.joined(separator: ",") + "}", .found),
            ("{" + (100..<200).map { "\"long name \($0)\":1" }.joined(separator: ",") + ",\"a\":1}", .unsure),
            ("{" + (100..<200).map { "\"long name \($0)\":1" }.joined(separator: ",") + ",\"long name 199\":1}", .unsure),
            (#"{"\u0061":1}"#, .unsure), (#"{"a":1,"\u0061":1}"#, .unsure),
            ("[" + Array(repeating: members(30), count: 100).joined(separator: ",") + "]", .found),
        ] { #expect(try compare(Array(text.utf8), parts) == outcome, "\(text.prefix(40))") }
        // Names in nested objects, all of which are open.
        var deep = "1"
        for i in 0..<20 { deep = String(members(30).dropLast()) + ",\"x\(i)\":" + deep + "}" }
        #expect(try compare(Array(deep.utf8), parts) == .unsure)
        var large = [UInt8](repeating: UInt8(ascii: " "), count: 1 << 18)
        (large[0], large[1]) = (UInt8(ascii: "["), UInt8(ascii: "]"))
        #expect(try compare(large, parts) == .found)
        #expect(try compare(large + [0x20], parts) == .unsure)
    }

    /// Random documents, some with random changed bytes.
    @Test(arguments: 0..<8 as Range<UInt64>) func randomDocuments(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), found = 0
        let names = ["a", "b", "c", "d", "é", "a/b", "", "long name of a member", "long name of a membes"]
        func value(_ depth: Int) -> String {
            switch Int.random(in: 0..<(depth < 5 ? 9 : 6), using: &random) {
            case 0: return "\(Int.random(in: -100_000...100_000, using: &random))"
            case 1: return "\(Double.random(in: -1...1, using: &random))"
            case 2: return ["true", "false", "null"].randomElement(using: &random) ?? ""
            case 3: return "\"\(names.randomElement(using: &random) ?? "")\""
            case 4: return #""a\n\u00e9\\\"b""#
            case 5: return "[]"
            case 6: return "[" + (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth + 1) }.joined(separator: " , ") + "]"
            default:
                let chosen = names.shuffled(using: &random).prefix(Int.random(in: 0..<6, using: &random))
                return "{" + chosen.map { "\"\($0)\" : \(value(depth + 1))" }.joined(separator: ",") + "}"
            }
        }
        let count = sample(usual: 500, deep: 2_000)
        for _ in 0..<count {
            var text = Array(value(0).utf8)
            if try compare(text, parts) == .found { found += 1 }
            for _ in 0..<4 where !text.isEmpty {
                text[Int.random(in: text.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                try compare(text, parts)
            }
        }
        #expect(found == count)
    }
}
