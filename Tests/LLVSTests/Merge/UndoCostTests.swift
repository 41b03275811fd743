#if DEBUG
import LLVS
import LLVSTestSupport
import Testing
@testable import LLVSCoordinator
@testable import LLVSCore

/// The cost of undos, the device's own and forged ones, by the number of versions and values: in versions that are visited and values that
/// are merged inside.
@Suite struct UndoCostTests {
    private static let rules = "{\"merge\":1,\"ids\":{\"a\":\"auto\",\"v\":\"auto\"}}"

    private func counts(_ body: () throws -> Void) throws -> (versions: Int, merges: Int) {
        var merges = 0
        let versions = try Work.versions.counting { merges = try Work.merges.counting(body) }
        return (versions, merges)
    }

    /// Undos that each name an old version cost one walk together. If only merges lead to the old versions, 64 of them cost one walk.
    @Test(arguments: [false, true]) func forgedUndosOfOldVersions(isBehindMerges: Bool) throws {
        func cost(_ count: Int) throws -> Int {
            let store = try memoryStore()
            var head = try store.set([MergeSchema.valueID: Self.rules], nil), old: [Version] = []
            for i in 0..<count {
                let one = try store.set(["a\(i)": "{\"n\":\(i)}"], head)
                old.append(one)
                if isBehindMerges {
                    let beside = try store.set(["b": "{\"n\":\(i)}"], head)
                    head = try store.merge(beside.id, with: one.id, arbiter: RulesArbiter())
                } else {
                    head = one
                }
            }
            let mine = try store.set(["a0": "{\"n\":-1}"], head)
            for one in old {
                head = try store.makeVersion(
                    basedOn: head.id, changes: [.remove(ValueID("a\(one.id == old[0].id ? 0 : 1)"))],
                    metadata: Metadata([(UndoMarks.undoKey, UndoMarks.json([one.id]))]))
            }
            return try counts { _ = try store.merge(mine.id, with: head.id, arbiter: RulesArbiter()) }.versions
        }
        let few = try cost(64), many = try cost(256)
        #expect(many <= (isBehindMerges ? 8 : 5) * few, "\(few) versions are visited, of four times as many \(many)")
    }

    /// An undo of many values, beside as many saves of other devices that were merged one after the other. Each value is looked up a few
    /// times. (The other saves are older, so that a merge stores only what they changed.)
    @Test func anUndoOfManyValuesBesideManySaves() throws {
        func cost(_ count: Int) throws -> Int {
            var options = StoreCoordinator.Options()
            options.device = "a"
            let notes = try StoreCoordinator(store: memoryStore(), options: options), store = notes.store
            let ids = (0..<count).map { "v\($0)" }
            func save(_ text: String) throws {
                try notes.save(ids.map { .update(try ValueID($0), data: bytes(text)) })
            }
            _ = try notes.register(bytes(Self.rules))
            try save("{\"m\":0,\"n\":0}")
            let base = try #require(try store.version(notes.currentVersion))
            let others = try ids.map { try store.set([$0: "{\"m\":1,\"n\":0}"], base) }
            try save("{\"m\":0,\"n\":1}")
            for other in others {
                let merged = try store.merge(notes.currentVersion, with: other.id, arbiter: RulesArbiter())
                try notes.setCurrentVersion(merged.id)
            }
            var undone = 0
            let cost = try Work.undoneValues.counting { undone = try notes.undo().reverted.undone.count }
            #expect(undone == count)
            for id in ids {
                #expect(try notes.value(ValueID(id))?.data == bytes("{\"m\":1,\"n\":0}"))
            }
            return cost
        }
        let few = try cost(20), many = try cost(80)
        #expect(many <= 5 * few, "\(few) lookups, \(many) for four times as many values")
    }

    /// Without a merge in between, an undo visits each version since at most once.
    @Test func anUndoWithoutMerges() throws {
        var options = StoreCoordinator.Options()
        options.device = "a"
        let notes = try StoreCoordinator(store: memoryStore(), options: options), count = 200
        _ = try notes.register(bytes(Self.rules))
        try notes.save([.update(id("old"), data: bytes("{\"n\":1}"))])
        let old = notes.currentVersion
        for i in 0..<count { try notes.save([.update(id("x"), data: bytes("{\"n\":\(i)}"))]) }
        var undone: [ValueID] = []
        let cost = try counts { undone = try notes.revert(old).reverted.undone }.versions
        #expect(try undone == [id("old")])
        #expect(cost <= 4 * count, "\(cost) versions are visited, of \(count)")
    }

    /// In random histories, checks "is an ancestor of" for many pairs against a walk from each version.
    @Test func ancestorsOfManyPairs() throws {
        for seed in Sample.seeds(usual: 10, deep: 200) {
            var random = SeededRandom(seed: seed)
            let store = try memoryStore()
            var made: [Version] = [try store.makeVersion(basedOn: nil, changes: [])]
            for i in 0..<(20 + Int(seed % 5) * 60) {
                let first = made[max(0, made.count - Int.random(in: 1...12, using: &random)) % made.count]
                let second = made.randomElement(using: &random)
                let one = try store.set(["x": "\(i)"], first)
                made.append(one)
                guard Int.random(in: 0..<3, using: &random) == 0, let second, second.id != one.id else { continue }
                // The merge fails if one version is an ancestor of the other.
                let merged = try? store.merge(one.id, with: second.id, arbiter: BuiltInArbiter.mostRecentChange)
                if let merged { made.append(merged) }
            }
            let ordinals = try made.map { try store.requireOrdinal($0.id) }
            var pairs: [NamedAncestors.Pair] = []
            for _ in 0..<300 {
                guard let a = ordinals.randomElement(using: &random), let b = ordinals.randomElement(using: &random) else { continue }
                pairs.append(NamedAncestors.Pair(version: a, name: b))
            }
            let expected = pairs.filter { store.walk(AncestorSearch($0.name, of: $0.version)) }
            for steps in [7, Int.max] {
                var pass = NamedAncestors(pairs), found: [NamedAncestors.Pair]?
                while found == nil { found = store.lock.withRead { pass.go(steps, in: store.dag) } }
                #expect(found?.map { [$0.version, $0.name] } == expected.map { [$0.version, $0.name] }, "\(seed)")
            }
        }
    }
}
#endif
