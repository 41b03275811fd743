import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Large versions saved one after another: new ids are recognized without a map.
@Suite struct KnownIDsTests {
    private static func bytes(_ i: Int) -> [UInt8] { Array("\(UInt64(truncatingIfNeeded: i) &* 0x9E37_79B9_7F4A_7C15)".utf8) }

    @Test func aFilterHoldsWhatWasInserted() {
        let filter = IDFilter(most: 1 << 18)
        var inserted = 0
        while filter.reserve(5_000), inserted < 100_000 {
            for i in inserted..<inserted + 5_000 { Self.bytes(i).withUnsafeBytes { filter.insert($0) } }
            inserted += 5_000
        }
        #expect(inserted >= 100_000 && filter.memory <= 1 << 18)
        #expect((0..<inserted).allSatisfy { i in Self.bytes(i).withUnsafeBytes { filter.layersThatMayHold($0) != 0 } })
        // At most one absent id in a hundred is mistaken for a present one.
        let wrong = (inserted..<2 * inserted).count { i in Self.bytes(i).withUnsafeBytes { filter.layersThatMayHold($0) != 0 } }
        #expect(wrong < inserted / 100, "\(wrong) of \(inserted)")
    }

    @Test func aFilterKeepsToItsMemory() {
        let filter = IDFilter(most: 4_096)
        #expect(filter.reserve(2_000) && !filter.reserve(3_000) && filter.memory <= 4_096)
        #expect(!IDFilter(most: 0).reserve(1))
    }

    /// Enough changes for ids to be learned instead of looked up in a map.
    private static let size = MapPolicy.manyChanges + 4

    /// Random ids; some are those of earlier versions, and some are removed.
    private func change(_ state: inout [ValueID: UInt8], _ random: inout SeededRandom, _ batch: UInt8, again: Int, range: Int = 1 << 40)
        -> (given: [Value.Change], kinds: [ValueID: Value.Change.Kind])
    {
        var given: [ValueID: Value.Change] = [:], kinds: [ValueID: Value.Change.Kind] = [:]
        let known = again == 0 ? [] : state.keys.sorted()
        // At most half of the known ids, so that an unused one is soon found.
        let again = min(again, known.count / 2)
        while given.count < Self.size {
            let isAgain = given.count < again
            let id =
                isAgain
                ? known[Int.random(in: 0..<known.count, using: &random)]
                : ValueID(unchecked: Array("\(Int.random(in: 0..<range, using: &random))".utf8))
            guard given[id] == nil else { continue }
            if isAgain, given.count % 3 == 0 {
                given[id] = .remove(id)
                kinds[id] = .remove
            } else {
                // The label that is given does not matter: the recorded one is right.
                given[id] = .insert(id, data: [batch])
                kinds[id] = state[id] == nil ? .insert : .update
            }
        }
        for (id, kind) in kinds { state[id] = kind == .remove ? nil : batch }
        return (Array(given.values), kinds)
    }

    @Test(arguments: [0, 60, 4_000]) func whatIsRecordedIsTrue(again: Int) throws {
        var random = SeededRandom(seed: UInt64(again) + 5)
        var options = Store.Options()
        options.durability = .normal
        let directory = TemporaryDirectory()
        var state: [ValueID: UInt8] = [:], last: VersionID?
        for opening in 0..<2 {
            let store = try Store(path: directory.path + "/store", options: options)
            for batch in 0..<4 {
                let (given, kinds) = change(&state, &random, UInt8(opening * 4 + batch), again: again)
                last = try store.makeVersion(basedOn: last, changes: given).id
                let ordinal = try store.requireOrdinal(try #require(last))
                var recorded: [ValueID: Value.Change.Kind] = [:]
                try store.maps.readChanges(of: ordinal) { recorded[ValueID(unchecked: $0.key)] = $0.kind }
                #expect(recorded == kinds, "batch \(batch), opening \(opening)")
            }
            // The map of all values, which is written at once.
            let head = try #require(last)
            var read: [ValueID: UInt8] = [:]
            let root = try store.maps.map(try store.requireOrdinal(head))
            root?.forEach { key, entry in
                read[ValueID(unchecked: key)] = UInt8(truncatingIfNeeded: entry.version); return true
            }
            #expect(Set(read.keys) == Set(state.keys))
            for id in state.keys.sorted().prefix(500) { #expect(try store.value(id, at: head)?.data == [state[id] ?? 255]) }
            try store.close()
        }
    }

    /// A load costs in proportion to its own size: no map is made of the existing values, even if some ids must be looked up.
    @Test(arguments: [0, 300]) func noMapIsMadeForLoads(again: Int) throws {
        var random = SeededRandom(seed: 3)
        let store = try Store(
            path: "",
            options: {
                var o = Store.Options(); o.storage = .memory; return o
            }())
        var state: [ValueID: UInt8] = [:], last: VersionID?, costs: [MapWork.Counts] = []
        for batch in 0..<5 {
            let (given, _) = change(&state, &random, UInt8(batch), again: again)
            #if DEBUG
            costs.append(try MapWork.counting { last = try store.makeVersion(basedOn: last, changes: given).id })
            #endif
        }
        #expect(costs.allSatisfy { $0 == MapWork.Counts() }, "\(costs)")
    }
}
