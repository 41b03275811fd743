import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Parts of the state at a version: their values, also backwards, and their differences.
@Suite struct RangeTests {
    private static let ids = (0..<40).flatMap { group in (0..<60).map { "group \(group)/\($0)" } }

    private static func store(_ directory: TemporaryDirectory) throws -> (Store, [Version]) {
        var options = Store.Options()
        options.durability = .normal
        let store = try Store(path: directory.path + "/store", options: options)
        var versions = [try store.set(Dictionary(uniqueKeysWithValues: ids.map { ($0, "first") }), nil)]
        var random = SeededRandom(seed: 5)
        for step in 0..<60 {
            let changed = Array(Set((0..<(step % 8 == 0 ? 300 : 3)).compactMap { _ in ids.randomElement(using: &random) }))
            let base = step % 11 == 0 ? versions.randomElement(using: &random) : versions.last
            versions.append(
                try step % 5 == 2
                    ? store.set([:], base, remove: changed)
                    : store.set(Dictionary(uniqueKeysWithValues: changed.map { ($0, "\(step)") }), base))
        }
        return (store, versions)
    }
    private static let ranges: [IDRange] = [
        .all, .prefix(bytes("group 1")), .prefix(bytes("group 12/")), .prefix(bytes("none")), .prefix(bytes("group 3/7")),
        .range(from: bytes("group 10"), to: bytes("group 3")), .range(from: bytes("group 2/30"), to: nil),
        .range(from: nil, to: bytes("group 11/5")),
        .range(from: bytes("z"), to: bytes("a")),
    ]

    /// A query by prefix, bounds and neighbours returns the values that satisfy all of them.
    @Test func aRangeIsWhatSatisfiesAllThatIsGiven() throws {
        let texts = ["", "a", "b", "ba", "bb", "c"].map { bytes($0) } + [[0xFF], [0xFF, 0xFF], [0x62, 0xFF]]
        let named = texts.filter { !$0.isEmpty }
        func holds(_ range: IDRange, _ id: [UInt8]) -> Bool {
            let (low, high) = range.bounds
            return !id.lexicographicallyPrecedes(low) && (high.map { id.lexicographicallyPrecedes($0) } ?? true)
        }
        for prefix in texts {
            for from in texts {
                for to in texts {
                    let range = IDRange(prefix: prefix, from: from, to: to)
                    for id in named {
                        let isIn =
                            id.starts(with: prefix) && !id.lexicographicallyPrecedes(from)
                            && (to.isEmpty || id.lexicographicallyPrecedes(to))
                        #expect(holds(range, id) == isIn, "\(prefix) \(from) \(to) \(id)")
                    }
                }
            }
        }
        let ids = try ["a", "b", "ba", "bb", "c"].map { try ValueID($0) }
        for range in [IDRange.all, .prefix(bytes("b")), .range(from: bytes("b"), to: bytes("c"))] {
            for after in [nil] + ids.map(Optional.some) {
                for before in [nil] + ids.map(Optional.some) {
                    let narrow = range.narrowed(after: after, before: before)
                    for id in ids {
                        let isIn =
                            holds(range, id.bytes) && (after.map { $0.bytes.lexicographicallyPrecedes(id.bytes) } ?? true)
                            && (before.map { id.bytes.lexicographicallyPrecedes($0.bytes) } ?? true)
                        #expect(holds(narrow, id.bytes) == isIn)
                    }
                }
            }
        }
    }

    @Test func pagesBackwardsAreThoseForwardsTurnedRound() throws {
        let directory = TemporaryDirectory()
        let (store, versions) = try Self.store(directory)
        for version in [versions[0], versions[30], versions[60]] {
            for range in Self.ranges {
                let forwards = try store.references(at: version.id, in: range, limit: .max)
                for limit in [1_000, 7, 100_000] where limit > 7 || forwards.count < 200 {
                    var met: [Value.Reference] = [], before: ValueID?
                    while true {
                        let page = try store.batch(at: version.id, in: range, before: before, isBackwards: true, limit: limit)
                        if page.count == 0 { break }
                        #expect(page.count <= limit)
                        // Endless pages would return more values than there are.
                        try #require(met.count + page.count <= forwards.count, "\(range), \(limit)")
                        for row in 0..<page.count {
                            let value = try #require(try page.value(row, id: ValueID(unchecked: page.id(row))))
                            if limit == 7 { #expect(try store.value(value.id, at: version.id) == value) }
                            met.append(value.reference)
                        }
                        before = met.last?.id
                    }
                    #expect(met == forwards.reversed(), "\(range), \(limit)")
                }
                // Bounds at both ends, in either direction.
                guard forwards.count > 10 else { continue }
                let after = forwards[3].id, before = forwards[forwards.count - 4].id
                for isBackwards in [false, true] {
                    let page = try store.batch(
                        at: version.id, in: range, after: after, before: before, isBackwards: isBackwards, limit: .max, withData: false)
                    let ids = (0..<page.count).map { ValueID(unchecked: page.id($0)) },
                        expected = forwards[4..<forwards.count - 4].map(\.id)
                    #expect(ids == (isBackwards ? expected.reversed() : expected))
                }
            }
        }
    }

    @Test func differencesOfAPartAreThoseOfAllInIt() throws {
        let directory = TemporaryDirectory()
        let (store, versions) = try Self.store(directory)
        var random = SeededRandom(seed: 9)
        for round in 0..<40 {
            // The first rounds read recorded changes, the others maps.
            if round == 20 { for version in versions { _ = try store.count(at: version.id) } }
            let a = try #require(versions.randomElement(using: &random)).id, b = try #require(versions.randomElement(using: &random)).id
            let all = try store.differences(from: a, to: b)
            for range in Self.ranges {
                let (low, high) = range.bounds
                let expected = all.filter { change in
                    Bytes.compare(change.id.bytes, low) >= 0 && (high.map { Bytes.compare(change.id.bytes, $0) < 0 } ?? true)
                }
                if round % 3 == 0 { store.maps.cache.removeAll() }
                #expect(try store.differences(from: a, to: b, in: range) == expected, "\(range) in round \(round)")
            }
        }
    }

    #if DEBUG
    /// Two maps differ in half of their values, but little in one part. The differences of that part cost time in proportion to their
    /// number.
    @Test func differencesOfAPartCostWhatDiffersThere() throws {
        let store = try memoryStore()
        let first = try store.set(Dictionary(uniqueKeysWithValues: (0..<20_000).map { ("id \($0)", "1") }), nil)
        let second = try store.set(
            Dictionary(
                uniqueKeysWithValues: (0..<20_000).filter { $0 / 1_000 != 7 && $0 / 1_000 % 2 == 1 }.map { ("id \($0)", "2") } + [
                    ("id 7123", "2")
                ]), first)
        for version in [first, second] { _ = try store.count(at: version.id) }
        var met: [[Store.ChangeSummary]] = []
        let all = try MapWork.counting { met.append(try store.differences(from: first.id, to: second.id)) }
        let part = try MapWork.counting { met.append(try store.differences(from: first.id, to: second.id, in: .prefix(bytes("id 71")))) }
        #expect(try met[0].count > 9_000 && met[1].map(\.id) == [id("id 7123")])
        #expect(part.read < 300 && part.read < all.read / 20, "\(part) of \(all)")
    }
    #endif
}
