import Testing

@testable import LLVSCore

@Suite struct HMACTests {
    /// Case 2 of RFC 4231, and a key longer than a block (case 6).
    @Test func codesAreThoseOfTheStandard() {
        let short = HMAC.of(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(Hex.text(of: short) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let long = HMAC.of(
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8), key: [UInt8](repeating: 0xAA, count: 131))
        #expect(Hex.text(of: long) == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    /// Every byte counts, whatever the others are: a signature cannot be guessed.
    @Test func codesAreEqualOnlyIfAllBytesAre() {
        #expect(HMAC.equal([1, 2, 3], [1, 2, 3]))
        #expect(!HMAC.equal([1, 2], [1, 2, 3]))
        var accepted = 0
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max where first != 0 || second != 0 {
                if HMAC.equal([0, 0], [first, second]) || HMAC.equal([first, second], [0, 0]) { accepted += 1 }
                if HMAC.equal([first, 0], [first ^ 1, second]) { accepted += 1 }
            }
        }
        #expect(accepted == 0)
    }
}
