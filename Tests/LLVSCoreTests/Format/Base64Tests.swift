import LLVSCore
import LLVSTestHelpers
import Testing

@Suite struct Base64Tests {
    private func decode(_ text: String) -> [UInt8]? { Array(text.utf8).withUnsafeBytes(Base64.decode) }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func vectorsOfTheStandard(_ plain: String, _ text: String) {
        #expect(String(decoding: Base64.encode(Array(plain.utf8)), as: UTF8.self) == text)
        #expect(decode(text) == Array(plain.utf8))
    }

    @Test(arguments: [
        "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm8-", "Zm8_", "Zm 8", "Zm8=\n", "Z=8=", "=Zm8", "Zm9vé", "Zg===",
    ])
    func refusesWhatIsNot(_ text: String) { #expect(decode(text) == nil, "\(text)") }

    @Test func roundTripsAllLengths() {
        var random = SeededRandom(seed: 3)
        for length in Array(0..<300) + [49_151, 49_152, 49_153, 200_000] {
            let data = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let text = Base64.encode(data)
            #expect(text.count == Base64.encodedSize(length))
            #expect(text.withUnsafeBytes(Base64.decode) == data)
        }
    }
}
