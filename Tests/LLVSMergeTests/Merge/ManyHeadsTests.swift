import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// Folding many heads gives the same result as merging them one by one, and visits the history once.
@Suite struct ManyHeadsTests {
    @Test func basesAreThoseOfTheWholeWalk() throws {
        for seed in Sample.seeds(usual: 40, deep: 200) {
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
                let dag = store.quietHistory
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
                    #expect(found?[i] == (isIn ? nil : dag.bestCommonAncestors(before, [version])), "\(Sample.hint(seed)), version \(i)")
                }
            }
        }
    }

    /// The common ancestors are also right if there are more than one search can find at once: for one version, and for all together.
    @Test func basesOfManyAreThoseOfTheWholeWalk() throws {
        for seed in Sample.seeds(usual: 2, deep: 6) {
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
                let found = bases.finish(in: store.quietHistory)
                for i in heads.indices {
                    #expect(
                        found[i] == store.quietHistory.bestCommonAncestors(Array(heads[..<i]), [heads[i]]),
                        "\(Sample.hint(seed)), head \(i)")
                }
            }
        }
    }

    @Test func foldingIsMergingOneByOne() throws {
        for seed in Sample.seeds(from: 300, usual: 16, deep: 60) {
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
            // Heads with equal states are merged first, each group from the newest down.
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
            // Heads with one state need no merge.
            if groups.count == 1 {
                #expect(
                    try folded == (heads[0].id == into.id ? nil : heads[0]) && one.headIDs().count == heads.count, "\(Sample.hint(seed))")
                continue
            }
            func fold(_ versions: [Version]) throws -> Version {
                try versions.dropFirst().reduce(versions[0]) {
                    try other.merge($0.id, with: $1.id, arbiter: RecordedDifferenceTests.Wrapped(arbiter: arbiter))
                }
            }
            let result = try fold(
                groups.map { try fold($0.heads) }.sorted { ($0.timestamp, $0.id.description) > ($1.timestamp, $1.id.description) })
            #expect(folded == result, "\(Sample.hint(seed))")
            #expect(try one.headIDs() == [result.id])
            #expect(try one.state(result.id) == other.state(result.id))
            one.maps.cache.removeAll()
            one.maps.changeLists.removeAll()
            #expect(try one.state(result.id) == other.state(result.id))
        }
    }

    /// Heads on a few lines that were merged with each other. They have any changes that a peer may record, and arbitrary times. What the
    /// fold caches for one head must be right for the next one.
    @Test func foldingHeadsOnLinesIsMergingOneByOne() throws {
        let keys = try (0..<6).map { try id("k\($0)") }
        for seed in Sample.seeds(usual: 60, deep: 400) {
            var random = SeededRandom(seed: seed)
            let one = try memoryStore(), other = try memoryStore()
            var all: [Store.ReceivedVersion] = [], stored: [[VersionID]] = Array(repeating: [], count: keys.count)
            let spread = [0.0, 3, 40][Int(seed / 2 % 3)]
            func make(_ predecessors: [VersionID], atMost most: Int) throws -> VersionID {
                let made = try VersionID("v\(all.count)")
                var changes: [Value.Change] = []
                for (i, key) in keys.enumerated().shuffled(using: &random).prefix(Int.random(in: 0...most, using: &random)) {
                    switch Int.random(in: 0..<7, using: &random) {
                    case 0: changes.append(.remove(key))
                    case 1 where predecessors.count == 2: changes.append(.preserveRemoval(key))
                    case 2 where predecessors.count == 2 && !stored[i].isEmpty:
                        // A preserve of a version that is no ancestor makes a version that is pending for ever, and is no head.
                        if let version = stored[i].randomElement(using: &random) {
                            changes.append(.preserve(.init(id: key, version: version)))
                        }
                    default:
                        changes.append(.update(key, data: bytes("\(Int.random(in: 0..<3, using: &random))")))
                        stored[i].append(made)
                    }
                }
                let time = Double(all.count) + Double.random(in: -1...1, using: &random) * spread
                all.append(
                    Store.ReceivedVersion(
                        version: Version(
                            id: made, predecessors: predecessors, timestamp: time, valueDataSize: 0, metadata: Metadata()),
                        changes: changes))
                return made
            }
            let root = try make([], atMost: 6)
            var lines: [[VersionID]] = []
            for _ in 0..<Int.random(in: 2...3, using: &random) {
                var line = [try make([root], atMost: 2)]
                for _ in 0..<Int.random(in: 0..<12, using: &random) {
                    let isMerge = Int.random(in: 0..<12, using: &random) == 0
                    let beside = lines.last?.randomElement(using: &random)
                    line.append(try make([line[line.count - 1]] + (isMerge ? [beside].compactMap(\.self) : []), atMost: 2))
                }
                lines.append(line)
            }
            for _ in 0..<Int.random(in: 3...14, using: &random) {
                var ends = lines.shuffled(using: &random).compactMap { $0.randomElement(using: &random) }
                var head = ends.removeLast()
                for end in ends where Int.random(in: 0..<5, using: &random) > 0 { head = try make([head, end], atMost: 2) }
                if Int.random(in: 0..<4, using: &random) == 0 { head = try make([head], atMost: 1) }
            }
            _ = try one.add(all)
            try ConvergenceTests.exchange(one, other)
            let heads = try one.heads()
            guard heads.count > 1 else { continue }
            let arbiter: BuiltInArbiter = [.mostRecentBranch, .mostRecentChange][Int(seed % 2)]
            let ordinals = try heads.map { try one.requireOrdinal($0.id) }
            let groups = try one.equalStates.groupedByState(ordinals).map { $0.map { one.versionID($0) } }
            guard groups.count > 1 else { continue }
            func fold(_ versions: [VersionID]) throws -> VersionID {
                try versions.dropFirst().reduce(versions[0]) {
                    try other.merge($0, with: $1, arbiter: RecordedDifferenceTests.Wrapped(arbiter: arbiter)).id
                }
            }
            let joined = try groups.map(fold).map { try #require(try other.version($0)) }
            let result = try fold(
                joined.sorted { ($0.timestamp, $0.id.description) > ($1.timestamp, $1.id.description) }.map(\.id))
            let folded = try one.mergeHeads(into: heads[Int.random(in: heads.indices, using: &random)].id, arbiter: arbiter)
            #expect(folded?.id == result, "\(Sample.hint(seed))")
            #expect(try one.state(result) == other.state(result), "\(Sample.hint(seed))")
        }
    }

    /// An arbiter that stores bytes, which are read during the fold and afterwards.
    private struct Joining: MergeArbiter {
        var padding = 0
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            // Through the maps, also those of steps that are not stored yet.
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

    /// During the fold, a large value is in the record of a step; afterwards it is in a file of its own.
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
