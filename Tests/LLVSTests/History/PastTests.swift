import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Compares lookups in the past, for versions without maps in memory, with the maps.
@Suite struct PastTests {
    static let ids = (0..<60).map { "value \($0)" }

    /// Versions with branches, merges and removals; now and then one with many changes.
    static func fill(_ store: Store, _ count: Int, seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var tips: [Version] = [try store.set(Dictionary(uniqueKeysWithValues: ids.prefix(40).map { ($0, "first") }), nil)]
        for step in 0..<count {
            let at = Int.random(in: 0..<tips.count, using: &random)
            if step % 40 == 39, tips.count > 1 {
                let other = tips.remove(at: at == 0 ? 1 : 0), mine = tips.removeFirst()
                tips.insert(try store.merge(mine.id, with: other.id, arbiter: BuiltInArbiter.mostRecentChange), at: 0)
            } else {
                let changed = (0..<(step % 10 == 0 ? 5 : 1)).map { _ in ids.randomElement(using: &random) ?? "" }
                var values = Dictionary(changed.map { ($0, "\(step)") }) { $1 }
                if step % 150 == 70 { for i in 0..<1_100 { values["many \(i)"] = "\(step)" } }
                let made = try step % 7 == 3 ? store.set([:], tips[at], remove: Array(Set(changed))) : store.set(values, tips[at])
                if step % 20 == 5, tips.count < 5 { tips.append(made) } else { tips[at] = made }
            }
        }
    }

    /// Compares every id at every version.
    static func compare(_ store: Store, _ ids: [String] = ids + ["many 7", "none"], step: Int = 1) throws {
        let history = store.quietHistory
        let all = stride(from: 0, to: history.rows.count, by: step).map { UInt32($0) }.filter { history.rows[Int($0)].state == .live }
        var found: [[MapEntry?]] = []
        for ordinal in all {
            found.append(
                try ids.map { id in
                    store.maps.cache.removeAll()
                    guard
                        case .found(let entry) = try Array(id.utf8).withUnsafeBytes({
                            try store.maps.lookUpThroughHistory($0, from: ordinal)
                        })
                    else {
                        throw StoreError(.internal, "It was given up.")
                    }
                    return entry
                })
        }
        for (ordinal, entries) in zip(all, found) {
            let map = try store.maps.map(ordinal)
            for (id, entry) in zip(ids, entries) {
                let expected = Array(id.utf8).withUnsafeBytes { map?.lookup($0) }
                #expect(entry?.version == expected?.version, "\(id) at \(ordinal)")
                if let entry, let expected, entry.bodyOffset != 0, expected.bodyOffset != 0 {
                    #expect(entry.bodyOffset == expected.bodyOffset && entry.size == expected.size, "\(id) at \(ordinal)")
                }
            }
        }
    }

    @Test(arguments: Sample.seeds(from: 1, usual: 1, deep: 4)) func lookingBackFindsWhatMapsSay(seed: UInt64) throws {
        let directory = TemporaryDirectory()
        var options = Store.Options()
        options.durability = .normal
        let store = try Store(path: directory.path + "/store", options: options)
        try Self.fill(store, 300, seed: seed)
        try Self.compare(store, step: sample(usual: 2, deep: 1))
        // Later versions are walked first, and then added to the index.
        try Self.fill(store, 200, seed: seed + 100)
        try Self.compare(store, step: 7)
        try Self.fill(store, 1_100, seed: seed + 200)
        try Self.compare(store, step: 17)
        #expect(try #require(store.maps.keyHistory).end > 1_000)
        try store.close()
        // First from the caches, which know the ids, then from the records alone.
        let cached = try Store(path: directory.path + "/store", options: options)
        #expect(cached.quietHistory.ordinalsOfUnknownKeys(from: 0).isEmpty && cached.caches.versions > 1_000)
        try Self.compare(cached, step: 13)
        try cached.close()
        TemporaryDirectory.remove(directory.path + "/store/cache")
        let scanned = try Store(path: directory.path + "/store", options: options)
        try Self.compare(scanned, step: 13)
        #expect(scanned.quietHistory.ordinalsOfUnknownKeys(from: 0).isEmpty)
    }

    @Test func idsOfOneHashAreDistinguished() throws {
        let store = try memoryStore()
        // Two ids with the same CRC-32C.
        let a: [UInt8] = Array("collision 0000000000".utf8)
        guard let b = Self.other(of: a) else { Issue.record("no second id of the same hash"); return }
        #expect(a != b && a.withUnsafeBytes { History.keyHash($0) } == b.withUnsafeBytes { History.keyHash($0) })
        var head: Version?
        let (x, y) = (String(decoding: a, as: UTF8.self), String(decoding: b, as: UTF8.self))
        for step in 0..<40 { head = try store.set([step % 3 == 0 ? x : y: "\(step)"], head) }
        try Self.compare(store, [x, y])
        #expect(try store.versions(of: ValueID(x)).count == 14)
    }

    /// Another string of the same length and CRC-32C; only its last digits differ.
    static func other(of text: [UInt8]) -> [UInt8]? {
        let wanted = text.withUnsafeBytes { History.keyHash($0) }
        var seen: [UInt32: [UInt8]] = [:]
        // Two groups of characters with 18 variable bits each. The checksum is linear, so that differences add up.
        func variants(_ at: Int) -> [[UInt8]] {
            (0..<(1 << 18)).map { bits in
                var copy = text
                for i in 0..<9 where bits >> (i * 2) & 3 != 0 { copy[at + i] ^= UInt8(bits >> (i * 2) & 3) }
                return copy
            }
        }
        for one in variants(2) { seen[one.withUnsafeBytes { History.keyHash($0) } ^ wanted] = one }
        for two in variants(11) {
            guard two != text, let one = seen[two.withUnsafeBytes { History.keyHash($0) } ^ wanted] else { continue }
            return zip(zip(one, two), text).map { $0.0 ^ $0.1 ^ $1 }
        }
        return nil
    }

    @Test func readingHereAndThereMakesNoMaps() throws {
        let directory = TemporaryDirectory()
        var options = Store.Options()
        options.durability = .normal
        let store = try Store(path: directory.path + "/store", options: options)
        var versions = [try store.set(Dictionary(uniqueKeysWithValues: Self.ids.map { ($0, "first") }), nil)]
        for step in 0..<3_000 { versions.append(try store.set([Self.ids[step % 60]: "\(step)"], versions[step])) }
        try store.close()
        let reopened = try Store(path: directory.path + "/store", options: options)
        var random = SeededRandom(seed: 3)
        for _ in 0..<500 {
            let at = Int.random(in: 100..<2_900, using: &random)
            let value = try #require(try reopened.value(id(Self.ids[at % 60]), at: versions[at].id))
            #expect(value.data == Array("\(at - 60)".utf8) && value.storedVersion == versions[at - 59].id)
        }
        #expect(reopened.maps.cache.count <= 1)
        // Many reads at one version build its map.
        for step in 0..<6_000 { _ = try reopened.value(id(Self.ids[step % 60]), at: versions[1_000].id) }
        #expect(reopened.maps.slot(try reopened.requireOrdinal(versions[1_000].id)) != nil)
    }

    @Test func aDamagedRecordMattersToItsOwnValuesOnly() throws {
        let store = try memoryStore()
        var head = try store.set(["a": "0", "b": "0"], nil)
        for step in 1..<50 { head = try store.set(["a": "\(step)"], head) }
        // The hashes of the versions are known, so only the requested version is read.
        let index = try store.maps.keyHistoryIndex()
        let ordinal = try store.requireOrdinal(head.id), hash = try id("b").bytes.withUnsafeBytes { History.keyHash($0) }
        guard case .version(let found) = index.nearest(hash, at: min(ordinal, index.end - 1), in: store.quietHistory) else {
            Issue.record("nothing found"); return
        }
        #expect(store.quietHistory.rows[Int(found)].first == History.none)
    }
}
