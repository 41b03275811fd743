import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Which JSON can be merged, how numbers are read, and canonical output.
@Suite("JSON that can be merged") struct JSONTreeTests {
    private func isMergeable(
        _ text: [UInt8]
    ) throws -> Bool {
        try text.withUnsafeBytes {
            try JSONTreeParser.parse($0, work: DocumentControl()) != nil
        }
    }
    private func isMergeable(_ text: String) throws -> Bool { try isMergeable(Array(text.utf8)) }

    @Test("texts that are JSON") func textsThatAreJSON() throws {
        for text in [
            "{}", "[]", " [ ] ", "[1,-0,0.5,1e5,1E-5,1.25e+10]", "{\"a\":{\"b\":[null,true,false]}}", "\"\"", "0",
            "[\"\\ud83d\\ude00\\u0000\\/\"]",
            "{\"\":1,\"a\":2}", "[\"\u{7f}\u{2028}\"]", "\n\t{\r\n}\n",
        ] { #expect(try isMergeable(text), "\(text)") }
    }

    @Test("texts that are not") func textsThatAreNot() throws {
        for text in [
            "", " ", "{", "[", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1 2]", "[1]]", "[01]", "[1.]", "[.5]",
            "[+1]", "[1e]", "[-]",
            "[tru]", "[nulL]", "['a']", "[\"a]", "[\"\\x\"]", "[\"\\u12\"]", "[\"\t\"]", "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}",
            "[\"\\ud800\"]",
            "[\"\\udc00\\ud800\"]", "\u{feff}[]", "[1]x", "[}", "{]",
        ] { #expect(try !isMergeable(text), "\(text)") }
        #expect(try !isMergeable([0x5B, 0x22, 0xFF, 0x22, 0x5D]))
        #expect(try !isMergeable([0x22, 0xED, 0xA0, 0x80, 0x22]))
    }

    @Test("many names twice") func manyNamesTwice() throws {
        let names = (0..<1_000).map { "\"n\(999 - $0)\":1" }
        #expect(try isMergeable("{" + names.joined(separator: ",") + "}"))
        #expect(try !isMergeable("{" + (names + ["\"n500\":2"]).joined(separator: ",") + "}"))
    }

    @Test("limits") func limits() throws {
        func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        #expect(try isMergeable(nested(128)))
        #expect(try !isMergeable(nested(129)))
        #expect(try isMergeable("[" + String(repeating: "9", count: 400) + "]"))
        #expect(try !isMergeable("[" + String(repeating: "9", count: 401) + "]"))
        #expect(try isMergeable("[0." + String(repeating: "0", count: 500) + "1]"))
        #expect(try isMergeable("[" + String(repeating: "9", count: 400) + "000]"))
        #expect(try isMergeable("[1e9999,1e-9999,0.1e-9998,0.00e9999]"))
        for number in ["10e9999", "123e9999", "0.1e-9999", "0e10000"] { #expect(try !isMergeable("[\(number)]"), "\(number)") }
        #expect(try !isMergeable("[1e10000]"))
        #expect(try !isMergeable("[1e-10000]"))
        #expect(try !isMergeable("[1e99999999999999999999999]"))
        var large = [UInt8](repeating: UInt8(ascii: " "), count: 64 << 20)
        large[0] = UInt8(ascii: "[")
        large[1] = UInt8(ascii: "]")
        #expect(try isMergeable(large))
        large.append(UInt8(ascii: " "))
        #expect(try !isMergeable(large))
    }

    @Test("every cut and every byte") func everyCutAndEveryByte() throws {
        let text = Array("{\"a\":[1,-2.5e3,\"x\\u00e9\\n\\ud83d\\ude00\",true,null],\"b\":{\"c\":{}}}".utf8)
        #expect(try isMergeable(text))
        for end in 0..<text.count { #expect(try !isMergeable(Array(text[..<end]))) }
        for i in text.indices {
            for byte in UInt8.min...UInt8.max {
                var other = text
                other[i] = byte
                _ = try isMergeable(other)
            }
        }
    }

    @Test("canonical output") func canonicalOutput() throws {
        let cases = [
            ("{ \"b\" : 1.0, \"a\" : [ 1e0 , -0 ] }", "{\"a\":[1e0,-0],\"b\":1.0}"),
            ("[\"\\/\\u0041\\u001F\\n\\\"\\\\\\b\"]", "[\"/A\\u001f\\n\\\"\\\\\\b\"]"),
            ("{\"\u{e000}\":1,\"\u{10000}\":2,\"a\":3}", "{\"a\":3,\"\u{e000}\":1,\"\u{10000}\":2}"),
        ]
        for (text, expected) in cases {
            let written = try Array(text.utf8).withUnsafeBytes { bytes in
                let parsed = try JSONTreeParser.parse(bytes, work: DocumentControl())
                let text = try #require(parsed)
                return try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: 0), in: DocumentValues([text], work: DocumentControl()))
            }
            #expect(String(decoding: written, as: UTF8.self) == expected)
        }
    }

    // MARK: Decimals

    private func decimal(_ text: String) throws -> JSONDecimal {
        let decimal = Array(text.utf8).withUnsafeBytes { JSONDecimal($0) }
        return try #require(decimal)
    }

    @Test("spellings") func spellings() throws {
        for (text, expected) in [
            ("1", "1"), ("-0", "0"), ("1.0", "1"), ("0.10", "0.1"), ("1e3", "1000"), ("1e20", "100000000000000000000"), ("1e21", "1e+21"),
            ("123e19", "1.23e+21"), ("0.000001", "0.000001"), ("0.0000001", "1e-7"), ("-12.5e-9", "-1.25e-8"), ("100e-2", "1"),
            ("9007199254740993", "9007199254740993"),
        ] { #expect(String(decoding: try decimal(text).spelling, as: UTF8.self) == expected) }
    }

    @Test("sums") func sums() throws {
        for (a, b, c, expected) in [
            ("0.1", "0.2", "-0.3", "0"), ("9007199254740993", "1", "0", "9007199254740994"), ("10", "0", "-12", "-2"),
            ("1e9999", "1e-9999", "-1e9999", "1e-9999"),
            ("1e9999", "1e-9999", "-1e-9999", "1e+9999"), ("999", "1", "0", "1000"), ("-1", "0.001", "0", "-0.999"),
        ] {
            let sum = JSONDecimal.sum(try decimal(a), try decimal(b), try decimal(c))
            #expect(sum.map { String(decoding: $0.spelling, as: UTF8.self) } == expected)
        }
        #expect(JSONDecimal.sum(try decimal("1e9999"), try decimal("1"), .zero) == nil)
        #expect(JSONDecimal.sum(try decimal("1e400"), try decimal("1"), .zero) == nil)
        #expect(JSONDecimal.sum(try decimal("1e399"), try decimal("1"), .zero) != nil)
    }
}
