import Testing
@testable import LLVS

@Suite struct ModelTests {
    @Test func versionIDsKeepTheirText() throws {
        for text in ["A", "a_b-9", "1C227BD7-33B2-4C90-B042-F1C952ED3183", "1c227bd7-33b2-4c90-b042-f1c952ed3183", String(repeating: "z", count: 128)] {
            #expect(try VersionID(text).description == text)
        }
        for text in ["", "a/b", "é", "a b", "..", String(repeating: "z", count: 129), "a\u{0}"] {
            #expect(throws: StoreError.self) { try VersionID(text) }
        }
    }
    @Test func versionIDsAreOrderedByBytes() throws {
        let texts = ["-", "0", "1C227BD7-33B2-4C90-B042-F1C952ED3183", "1C227BD7-33B2-4C90-B042-F1C952ED3184", "1c227bd7-33b2-4c90-b042-f1c952ed3183", "A", "B", "_", "a"]
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
