import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSDocuments

/// Hashes of values and ids are spread evenly, whatever ids an attacker chooses.
@Suite struct ValueDigestTests {
    @Test func wordsOfEachLengthHaveDigestsOfTheirOwn() throws {
        for length in 2...24 {
            var found: Set<UInt64> = []
            for i in 0..<200 {
                let word = Array(repeating: UInt8(ascii: "x"), count: length - 2) + [UInt8(i / 16), UInt8(i % 16)]
                word.withUnsafeBytes { bytes in
                    if let start = bytes.baseAddress { found.insert(ValueDigest.of(word: start, bytes.count, ValueDigest.seed)) }
                }
            }
            #expect(found.count == 200, "words of \(length) bytes")
        }
    }

    /// Ids that a caller chooses may have any bits.
    @Test func idsOfOneHalfFallIntoManyPlaces() throws {
        var places: Set<UInt64> = []
        for i in 0..<1_000 {
            let id = VersionID(high: UInt64(i) << 40, low: 0x9E37_79B9_7F4A_7C15)
            places.insert(OrdinalTable.hash(id) & 0xFFFF)
        }
        #expect(places.count > 500)
    }
}
