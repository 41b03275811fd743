import LLVSTestHelpers
import Testing

@testable import LLVSCore

@Suite struct JSONReaderTests {
    private func accepts(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { raw in
            var reader = JSONReader(raw)
            do { try reader.skip(); try reader.end(); return true } catch { return false }
        }
    }

    @Test(arguments: [
        "0", "-0", "1.5e+3", " [ ] ", "{}", "[1,2,[3,{\"a\":null}]]", "\"\\u00e9\\ud83d\\ude00\\/\"", "true", "false",
        "{\"a\":1,\"a\":2}", "[[],{},[]]", "\t\n\r 1E5 ",
    ])
    func acceptsWhatTheStandardAllows(_ text: String) { #expect(accepts(Array(text.utf8)), "\(text)") }

    @Test(arguments: [
        "", " ", "01", "+1", "1.", ".5", "1e", "1e+", "-", "[1,]", "[,1]", "[1 2]", "{\"a\":1,}", "{\"a\"}", "{a:1}", "{\"a\":}", "[", "{",
        "\"", "\"\\",
        "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\u{1}\"", "tru", "nul", "NaN", "Infinity", "1 2", "]", "[}", "{]", "'a'", "[1]]",
        "\u{FEFF}1", "{\"a\":1 \"b\":2}", "{,}",
    ])
    func refusesAllElse(_ text: String) { #expect(!accepts(Array(text.utf8)), "\(text)") }

    @Test func refusesInvalidUTF8() {
        #expect(!accepts([0x22, 0xC0, 0x80, 0x22]))
        #expect(!accepts([0x22, 0xED, 0xA0, 0x80, 0x22]))
    }

    @Test func nestingIsBoundedAndDoesNotRecurse() {
        func nested(_ depth: Int) -> [UInt8] { Array(repeating: 0x5B, count: depth) + Array(repeating: 0x5D, count: depth) }
        #expect(accepts(nested(JSONReader.depthLimit)))
        #expect(!accepts(nested(JSONReader.depthLimit + 1)))
        #expect(!accepts(Array(repeating: 0x5B, count: 5_000_000)))
    }

    @Test func truncationsAndChangedBytesNeverTrap() {
        let whole = Array(
            "{\"version\":{\"metadata\":[\"k\",{\"data\":\"IiI=\"}],\"timestamp\":1.5e3,\"x\":[true,null,\"\\u00e9\\\\\"]}}".utf8)
        #expect(accepts(whole))
        for end in 0..<whole.count { #expect(!accepts(Array(whole[..<end]))) }
        var random = SeededRandom(seed: 1)
        for _ in 0..<sample(usual: 4_000, deep: 20_000) {
            var bytes = whole
            for _ in 0..<Int(random.next() % 3 + 1) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            _ = accepts(bytes)
        }
    }

    @Test func doublesReadBackToTheSameBits() {
        func text(_ value: Double) -> [UInt8] { var out: [UInt8] = []; JSONNumber.append(value, to: &out); return out }
        func value(_ text: [UInt8]) -> Double? { text.withUnsafeBytes { JSONNumber.double($0) } }
        let table: [(Double, String)] = [
            (0, "0"), (-0.0, "-0"), (1, "1"), (816913493.4794178, "816913493.4794178"), (1e16, "1e16"), (1e-5, "1e-5"),
            (Double.leastNonzeroMagnitude, "5e-324"),
            (.greatestFiniteMagnitude, "1.7976931348623157e308"), (-0.1, "-0.1"), (9007199254740991, "9007199254740991"), (100, "100"),
            (0.3, "0.3"),
        ]
        for (number, expected) in table {
            #expect(String(decoding: text(number), as: UTF8.self) == expected)
            #expect(value(text(number))?.bitPattern == number.bitPattern)
        }
        var random = SeededRandom(seed: 2)
        for i in 0..<sample(usual: 10_000, deep: 50_000) {
            let number = i % 2 == 0 ? Double(bitPattern: random.next()) : 816_913_493 + Double(random.next() % 1_000_000_000) / 1_000_000
            guard number.isFinite else { continue }
            #expect(value(text(number))?.bitPattern == number.bitPattern, "\(number)")
            #expect(accepts(text(number)))
        }
        for bad in ["1e999", "-1e999"] { #expect(value(Array(bad.utf8)) == nil) }
        #expect(value(Array("00816913493.4794178000".utf8)) == 816913493.4794178)
    }

    @Test func wholeNumbersAreExactOrRefused() {
        func value(_ text: String) -> UInt64? { Array(text.utf8).withUnsafeBytes { JSONNumber.unsigned($0) } }
        #expect(value("18446744073709551615") == .max)
        #expect(value("135.0") == 135)
        #expect(value("1e3") == 1000)
        for bad in ["18446744073709551616", "-1", "1.5", "1e30", "99999999999999999999"] { #expect(value(bad) == nil, "\(bad)") }
    }
}
