import LLVSTestHelpers
import Testing

@testable import LLVSCore

@Suite struct ModelTests {
    @Test func versionIDsAreUpperCaseUUIDsOrText() throws {
        var random = SeededRandom(seed: 1)
        for i in 0..<200 {
            let id = i < 2 ? VersionID(high: i == 0 ? 0 : .max, low: i == 0 ? 0 : .max) : VersionID(high: random.next(), low: random.next())
            func digits(_ number: UInt64, _ count: Int) -> String {
                String(String(number, radix: 16, uppercase: true).reversed() + "0000000000000000").prefix(count).reversed().map(String.init)
                    .joined()
            }
            let high = digits(id.high, 16), low = digits(id.low, 16)
            func part(_ text: String, _ from: Int, _ count: Int) -> String { String(text.dropFirst(from).prefix(count)) }
            let text = "\(part(high, 0, 8))-\(part(high, 8, 4))-\(part(high, 12, 4))-\(part(low, 0, 4))-\(part(low, 4, 12))"
            #expect(id.description == text)
            let read = try VersionID(text)
            #expect(read == id && read.text == nil)
        }
        // Any other character makes the id a text, or invalid.
        let uuid = Array("01234567-89AB-4DEF-A765-43210FEDCBA9".utf8)
        for place in uuid.indices {
            for byte in UInt8.min...UInt8.max where byte != uuid[place] {
                var changed = uuid
                changed[place] = byte
                let isDash = [8, 13, 18, 23].contains(place)
                let isDigit = (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte)
                let isAllowed = isDigit || (0x47...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x5F
                let id = changed.withUnsafeBytes { VersionID(validating: $0) }
                #expect((id != nil) == isAllowed && (id != nil && id?.text == nil) == (isDigit && !isDash), "\(byte) at \(place)")
                if let id { #expect(Array(id.description.utf8) == changed) }
            }
        }
    }

    @Test func versionIDsKeepTheirText() throws {
        for text in [
            "A", "a_b-9", "1C227BD7-33B2-4C90-B042-F1C952ED3183", "1c227bd7-33b2-4c90-b042-f1c952ed3183",
            String(repeating: "z", count: 128),
        ] {
            #expect(try VersionID(text).description == text)
        }
        for text in ["", "a/b", "é", "a b", "..", String(repeating: "z", count: 129), "a\u{0}"] {
            #expect(throws: StoreError.self) { try VersionID(text) }
        }
    }
    @Test func versionIDsAreOrderedByBytes() throws {
        let texts = [
            "-", "0", "1C227BD7-33B2-4C90-B042-F1C952ED3183", "1C227BD7-33B2-4C90-B042-F1C952ED3184",
            "1c227bd7-33b2-4c90-b042-f1c952ed3183", "A", "B", "_", "a",
        ]
        #expect(try texts.map { try VersionID($0) }.sorted().map(\.description) == texts)
        #expect(try VersionID(texts[2]).folded == VersionID(texts[4]).folded)
    }
    @Test func valueIDsAreComparedByBytes() throws {
        #expect(try ValueID("\u{E9}") != ValueID("e\u{301}"))
        #expect(throws: StoreError.self) { try ValueID("") }
        #expect(throws: StoreError.self) { try ValueID(utf8: [0xC0, 0x80]) }
        #expect(throws: StoreError.self) { try ValueID(utf8: [0xED, 0xA0, 0x80]) }
        #expect(throws: StoreError.self) { try ValueID(utf8: [UInt8](repeating: 0x61, count: 4097)) }
        _ = try ValueID(utf8: [0, 0xF4, 0x8F, 0xBF, 0xBF])
    }
    @Test func checksumAndDigestMatchTheirStandards() {
        Array("123456789".utf8).withUnsafeBytes { #expect(Bytes.crc32c($0) == 0xE306_9283) }
        Array("abc".utf8).withUnsafeBytes { #expect(SHA256.digest($0).prefix(4) == [0xBA, 0x78, 0x16, 0xBF]) }
    }
}
