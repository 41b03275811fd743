import LLVSTestSupport
import Testing
@testable import LLVS

/// Folding many heads gives what merging them one by one gives, and looks at the history once.
@Suite struct ManyHeadsTests {
    @Test func basesAreThoseOfTheWholeWalk() throws {
        for seed in UInt64(0)..<200 {
            var random = SeededRandom(seed: seed)
            let store = try memoryStore()
            var made: [Version] = []
            for i in 0..<30 {
                let base = made.isEmpty || Int.random(in: 0..<12, using: &random) == 0 ? nil : made.randomElement(using: &random)
                if let base, Int.random(in: 0..<3, using: &random) == 0, let other = made.randomElement(using: &random) {
                    made.append(try store.merge(base.id, with: other.id, arbiter: BuiltInArbiter.mostRecentChange))
                } else {
                    made.append(try store.set(["k\(i % 5)": "\(i)"], base))
                }
            }
            let ordinals = try made.map { try store.requireOrdinal($0.id) }
            store.lock.withRead {
                let dag = store.dag
                var merged = MergedAncestry()
                var parts: [UInt32] = []
                for _ in 0..<4 {
                    guard let part = ordinals.randomElement(using: &random) else { continue }
                    parts.append(part)
                    merged.add(part, in: dag)
                    for other in ordinals {
                        let isIn = parts.contains { $0 == other || dag.isAncestor(other, of: $0) }
                        #expect(merged.contains(other) == isIn)
                    }
                    let behind = ordinals.filter { dag.isAncestor(part, of: $0) }
                    #expect(dag.descendants(of: part, among: ordinals) == Set(behind))
                }
                let folded = Array(ordinals.shuffled(using: &random).prefix(12))
                var bases = FoldedBases(folded), found: [[UInt32]?]?
                while found == nil { found = bases.go(3, in: dag) }
                for (i, version) in folded.enumerated() {
                    let before = Array(folded[..<i]), isIn = before.contains { $0 == version || dag.isAncestor(version, of: $0) }
                    #expect(found?[i] == (isIn ? nil : dag.bestCommonAncestors(before, [version])), "seed \(seed), version \(i)")
                }
            }
        }
    }

    /// The same where more ancestors are met than are looked for at once: by one version, and by all together.
    @Test func basesOfManyAreThoseOfTheWholeWalk() throws {
        for seed in UInt64(0)..<6 {
            var random = SeededRandom(seed: seed)
            let store = try memoryStore()
            var lines = try (0..<100).map { try store.set(["k": "\($0)"], nil) }
            for i in 0..<200 {
                let at = lines.indices.randomElement(using: &random) ?? 0; lines[at] = try store.set(["k": "line \(i)"], lines[at])
            }
            var heads: [UInt32] = []
            for i in 0..<20 {
                var head = try store.set(["own": "\(i)"], lines.randomElement(using: &random))
                for _ in 0..<(i % 5 == 0 ? 150 : Int.random(in: 0..<10, using: &random)) {
                    guard let other = lines.randomElement(using: &random) else { continue }
                    head = try store.merge(head.id, with: other.id, arbiter: BuiltInArbiter.mostRecentChange)
                }
                heads.append(try store.requireOrdinal(store.set(["end": "\(i)"], head).id))
            }
            store.lock.withRead {
                var bases = FoldedBases(heads)
                let found = bases.finish(in: store.dag)
                for i in heads.indices {
                    #expect(found[i] == store.dag.bestCommonAncestors(Array(heads[..<i]), [heads[i]]), "seed \(seed), head \(i)")
                }
            }
        }
    }

    @Test func foldingIsMergingOneByOne() throws {
        for seed in UInt64(300)..<360 {
            var random = SeededRandom(seed: seed)
            let one = try memoryStore(), other = try memoryStore()
            _ = try RecordedDifferenceTests.randomHistory(one, &random, versions: 30)
            let trunk = try one.allVersionIDs()
            for i in 0..<6 { _ = try one.set(["b\(i % 4)": "\(i)"], one.version(trunk[Int.random(in: trunk.indices, using: &random)])) }
            try ConvergenceTests.exchange(one, other)
            let heads = try one.heads()
            guard heads.count > 1 else { continue }
            let arbiter = [BuiltInArbiter.mostRecentBranch, .mostRecentChange][Int(seed % 2)]
            let into = heads[Int.random(in: heads.indices, using: &random)]
            let folded = try one.mergeHeads(into: into.id, arbiter: arbiter)
            // Those of equal states first, each group newest down.
            var groups: [(state: [String: [UInt8]], heads: [Version])] = []
            for head in heads {
                let state = try Dictionary(
                    uniqueKeysWithValues: one.references(at: head.id, limit: .max).map {
                        ($0.id.description, try one.value($0.id, at: head.id)?.data ?? [])
                    })
                if let i = groups.firstIndex(where: { $0.state == state }) {
                    groups[i].heads.append(head)
                } else {
                    groups.append((state, [head]))
                }
            }
            // One state needs no merge.
            if groups.count == 1 {
                #expect(try folded == (heads[0].id == into.id ? nil : heads[0]) && one.headIDs().count == heads.count, "seed \(seed)")
                continue
            }
            func fold(_ versions: [Version]) throws -> Version {
                try versions.dropFirst().reduce(versions[0]) {
                    try other.merge($0.id, with: $1.id, arbiter: RecordedDifferenceTests.Wrapped(arbiter: arbiter))
                }
            }
            let result = try fold(
                groups.map { try fold($0.heads) }.sorted { ($0.timestamp, $0.id.description) > ($1.timestamp, $1.id.description) })
            #expect(folded == result, "seed \(seed)")
            #expect(try one.headIDs() == [result.id])
            #expect(try one.state(result.id) == other.state(result.id))
            one.maps.cache.removeAll()
            one.maps.changeLists.removeAll()
            #expect(try one.state(result.id) == other.state(result.id))
        }
    }

    /// An arbiter that stores bytes: what it stored is read again while the fold goes on, and afterwards.
    private struct Joining: MergeArbiter {
        var padding = 0
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            // By way of the maps, those of steps that are not stored yet, too.
            _ = try store.count(at: merge.first.id)
            return try merge.forks.filter(\.fork.isConflicting).map { id, fork in
                let parts = try [merge.first, merge.second].compactMap { try store.value(id, at: $0.id)?.data }
                return .update(id, data: Array(parts.joined(separator: [UInt8(ascii: "+")])) + [UInt8](repeating: 0, count: padding))
            }
        }
    }

    @Test func foldsWhatArbitersStore() throws {
        let store = try memoryStore()
        let base = try store.set(["x": "0", "y": "0"], nil)
        for i in 1...5 { _ = try store.set(["x": "\(i)", "y\(i)": "1"], base) }
        let folded = try #require(try store.mergeHeads(into: base.id, arbiter: Joining()))
        #expect(try store.text("x", folded) == "5+4+3+2+1")
        let state = try store.state(folded.id)
        #expect(state.count == 7)
        store.maps.cache.removeAll()
        store.maps.changeLists.removeAll()
        #expect(try store.state(folded.id) == state)
    }

    /// A large value lies in the record of a step while the fold goes on, and in a file of its own afterwards.
    @Test func foldsLargeValuesThatArbitersStore() throws {
        let folder = TemporaryDirectory()
        let store = try Store(path: folder.path)
        let base = try store.set(["x": "0", "y": "0"], nil)
        for i in 1...4 { _ = try store.set(i < 3 ? ["y\(i)": "1"] : ["x": "\(i)"], base) }
        let folded = try #require(try store.mergeHeads(into: base.id, arbiter: Joining(padding: 2 << 20)))
        #expect(try store.value(id("x"), at: folded.id)?.data == bytes("4+3") + [UInt8](repeating: 0, count: 2 << 20))
        #expect(try store.state(folded.id).count == 4)
        try store.close()
    }

    @Test func costsByTheHeadsAlone() throws {
        func reads(heads: Int) throws -> Int {
            let storage = CountingStorage(MemoryStorage())
            let store = try Store(storage: storage, options: Store.Options())
            var trunk = try store.set(Dictionary(uniqueKeysWithValues: (0..<200).map { ("k\($0)", "old") }), nil)
            for i in 0..<heads {
                trunk = try store.set(["k\(i % 200)": "\(i)"], trunk)
                _ = try store.set(["n\(i)": "1"], trunk)
            }
            let before = storage.reads
            let result = try #require(try store.mergeHeads(into: trunk.id, arbiter: BuiltInArbiter.mostRecentChange))
            let after = storage.reads
            #expect(try store.count(at: result.id) == 200 + heads && store.headIDs() == [result.id])
            return after - before
        }
        let few = try reads(heads: 40), many = try reads(heads: 160)
        #expect(many <= 4 * few + 16, "\(few) reads for 40 heads, \(many) for 160")
    }
}
