#if DEBUG
import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
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

    /// Undos that each name the one before, and of which none concerns the value to merge: each is visited once, or twice.
    @Test(arguments: [false, true]) func forgedChainsOfUndos(concerns: Bool) throws {
        func cost(_ count: Int) throws -> Int {
            let store = try memoryStore(), rules = try store.set([MergeSchema.valueID: Self.rules], nil)
            let base = try store.set(["v": "{\"n\":0}", "w": "{\"n\":0}"], rules), mine = try store.set(["v": "{\"n\":1}"], base)
            var old = try store.set([concerns ? "v" : "w": "{\"m\":1}"], base), head = old
            for i in 0..<count {
                head = try store.makeVersion(
                    basedOn: head.id, changes: [.update(ValueID("w"), data: bytes("{\"n\":\(i)}"))],
                    metadata: Metadata([(UndoMarks.undoKey, UndoMarks.json([old.id]))]))
                old = head
            }
            let late = try store.set(["v": "{\"m\":2}"], head)
            head = try store.makeVersion(
                basedOn: late.id, changes: [.update(ValueID("v"), data: bytes("{\"n\":0}"))],
                metadata: Metadata([(UndoMarks.undoKey, UndoMarks.json([late.id]))]))
            return try Work.undoneSteps.counting { _ = try store.merge(mine.id, with: head.id, arbiter: RulesArbiter()) }
        }
        let few = try cost(50), many = try cost(200)
        #expect(few > 50 && many <= 5 * few, "\(few) versions are visited, of four times as many \(many)")
    }

    /// An undo of many values, beside as many saves of others that were merged one after the other. Each value is looked up a few times,
    /// and only versions that concern it are considered for it. (The others are older, so that a merge stores only what they changed; or
    /// they know the undone save, and this device saves between them.)
    @Test func anUndoOfManyValuesBesideManySaves() throws {
        func cost(_ count: Int, alternating: Bool) throws -> (lookups: Int, steps: Int) {
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
            let done = notes.currentVersion
            for (i, other) in others.enumerated() {
                var other = other
                if alternating {
                    let now = try #require(try store.version(notes.currentVersion))
                    other = try store.set([ids[i]: "{\"m\":1,\"n\":1}"], now)
                    try notes.save([.update(id("w"), data: bytes("\(i)"))])
                }
                let merged = try store.merge(notes.currentVersion, with: other.id, arbiter: RulesArbiter())
                try notes.setCurrentVersion(merged.id)
            }
            var undone = 0, steps = 0
            let lookups = try Work.undoneValues.counting {
                steps = try Work.undoneSteps.counting { undone = try notes.revert(done).reverted.undone.count }
            }
            #expect(undone == count)
            for id in ids {
                #expect(try notes.value(ValueID(id))?.data == bytes("{\"m\":1,\"n\":0}"))
            }
            return (lookups, steps)
        }
        for alternating in [false, true] {
            let few = try cost(20, alternating: alternating), many = try cost(80, alternating: alternating)
            #expect(many.lookups <= 5 * few.lookups, "\(few) lookups and steps, \(many) for four times as many values")
            #expect(many.steps <= 5 * few.steps, "\(few) lookups and steps, \(many) for four times as many values")
        }
    }

    /// Beyond the bound of work, undone saves are not considered: for undos that each lead to an older version, and for merges that each
    /// walk back over all others.
    @Test(arguments: [false, true]) func tooMuchWork(byMerges: Bool) throws {
        let store = try memoryStore(), count = 300
        let rules = try store.set([MergeSchema.valueID: Self.rules], nil)
        var head = try store.set(["v": "{\"n\":-1}"], rules), undone = head
        for i in 0..<count {
            if byMerges {
                let other = try store.set(["v": "{\"m\(i)\":1}"], rules)
                head = try store.merge(head.id, with: other.id, arbiter: RulesArbiter())
            } else {
                let next = try store.set(["v": "{\"n\":\(i)}"], head)
                head = try store.makeVersion(
                    basedOn: next.id, changes: [.update(ValueID("v"), data: bytes("{}"))],
                    metadata: Metadata([(UndoMarks.undoKey, UndoMarks.json([undone.id]))]))
                undone = next
            }
        }
        let beside = try store.set(["v": "{\"z\":1}"], rules)
        head = try store.merge(head.id, with: beside.id, arbiter: RulesArbiter())
        func find(_ limit: Int) throws -> UndoneEdits? {
            let control = OperationControl().paced(.reading, doing: "a test"), at = try store.requireOrdinal(head.id)
            return try UndoneEdits.undoing([store.requireOrdinal(undone.id)], at: at, in: store, control, limit: limit)
        }
        #expect(try find(1_000_000) != nil && find(0) == nil)
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
