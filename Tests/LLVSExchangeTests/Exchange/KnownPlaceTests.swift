import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange

/// What an exchange remembers of a place with single files: docs/exchanges.md, "Which store a place belongs to".
@Suite("Exchange: known places") struct KnownPlaceTests {
    private func id(_ n: Int) -> VersionID { VersionID(high: 1, low: UInt64(n)) }
    private func match(_ identity: PlaceIdentity, _ listed: [Int]) -> PlaceIdentity.Match { identity.match(listed.map(id)) {} }

    /// Versions of later exchanges identify a place better than versions of the first exchange.
    @Test func laterVersionsProveMore() {
        var place = PlaceIdentity()
        place.add((1...30).reversed().map(id), count: 30)
        #expect(place.first.count == PlaceIdentity.firstLimit && place.later.isEmpty)
        #expect(match(place, [30]) == .same && match(place, [1]) == .none && match(place, []) == .none)
        #expect(place.isDue(31) && !place.isDue(30) && !place.isDue(3))
        place.add((1...31).reversed().map(id), count: 31)
        // Versions of the first exchange never count as later ones, however many there were.
        #expect(place.later == [id(31)])
        #expect(match(place, [30, 99]) == .mayBe && match(place, [99, 31]) == .same && match(place, [99]) == .none)
    }

    /// There are few writes even over a long life. If a place is reset, some of the remembered versions are at the place at any time.
    @Test func someOfEachAgeAreKept() {
        var place = PlaceIdentity(), writes = 0
        for n in 1...100_000 where place.isDue(n) {
            place.add(stride(from: n, to: max(0, n - 20), by: -1).map(id), count: n)
            writes += 1
        }
        #expect(writes < 70, "\(writes)")
        #expect(place.later.count == PlaceIdentity.laterLimit)
        #expect(match(place, Array(1...10)) == .same && match(place, Array(1...99_000)) == .same)
    }

    /// A listing may be outdated. Then a few files are read by their names, but only those of versions that no other store has.
    @Test func whatCanBeReadIsThere() throws {
        var place = PlaceIdentity(), asked: [String] = []
        func canBeRead(_ there: [Int]) throws -> Bool {
            try place.canBeRead { names in
                asked = names
                return names.map { name in there.contains { id($0).description == name } ? .data([1]) : .missing }
            }
        }
        #expect(try !canBeRead([1]) && asked.isEmpty)
        place.add((1...9).reversed().map(id), count: 9)
        #expect(try canBeRead([1]) && canBeRead([9]) && !canBeRead([]) && asked.count == 4)
        place.add([10, 9].map(id), count: 10)
        #expect(try canBeRead([10]) && !canBeRead([1, 9]) && asked.count == 1)
        let error = StoreError(.permission, "No.")
        #expect(throws: StoreError.self) { try place.canBeRead { $0.map { _ in .unreadable(error) } } }
    }

    @Test func itIsReadAsItWasWritten() throws {
        var place = PlaceIdentity()
        place.add([id(1), try VersionID("a-name")], count: 7)
        place.add([id(9), id(8), id(1)], count: 9)
        #expect(place.later == [id(8), id(9)])
        #expect(PlaceIdentity(encoded: place.encoded) == place)
        // Data of a former format, and damaged data, is ignored.
        #expect(PlaceIdentity(encoded: [1]) == nil && PlaceIdentity(encoded: []) == nil)
        for n in 0..<place.encoded.count { #expect(PlaceIdentity(encoded: Array(place.encoded.prefix(n))) == nil) }
        for n in place.encoded.indices {
            var bytes = place.encoded
            bytes[n] ^= 0xFF
            _ = PlaceIdentity(encoded: bytes)
        }
    }
}
