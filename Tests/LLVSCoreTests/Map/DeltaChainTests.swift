import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Delta chains: lines of versions without maps of their own.
@Suite struct DeltaChainTests {
    @Test(arguments: 0..<5) func aLineAnswersAsTheMapsOfItsVersions(alphabet: Int) throws {
        let makeKey = MapTests.alphabets[alphabet].key
        for seed in Sample.seeds(usual: 1, deep: 3) {
            var random = SeededRandom(seed: seed)
            var node = try FlatMapTests.flatten(FlatMapTests.map(200, &random, alphabet: alphabet)).map { MapNode($0) }
            let lines = DeltaChains(MemoryAccount(total: 64 << 20))
            var view = lines.begin(MapCache.Slot(root: node), of: 7)
            var versions: [(ordinal: UInt32, node: MapNode?)] = [(7, node)]
            // Some of the changes are removals.
            var keys = MapTests.contents(node).keys.sorted { Bytes.compare($0, $1) < 0 }
            for step in UInt32(0)..<sample(usual: 200, deep: 300) {
                var changes: [[UInt8]: UInt32?] = [:]
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    if Bool.random(using: &random) { keys.append(makeKey(&random)) }
                    changes[keys.randomElement(using: &random) ?? makeKey(&random)] = .some(Bool.random(using: &random) ? nil : step)
                }
                let ordinal = 10 + step * 2
                append(ordinal, changes, to: view, of: lines)
                node = MapTests.apply(changes, to: node)
                versions.append((ordinal, node))
                view = try #require(lines.openView(ordinal))
            }
            for _ in 0..<sample(usual: 100, deep: 200) {
                guard let (ordinal, node) = versions.randomElement(using: &random) else { return }
                let view = try #require(lines.view(ordinal))
                let key = Bool.random(using: &random) ? makeKey(&random) : keys.randomElement(using: &random) ?? [0]
                #expect(
                    key.withUnsafeBytes { view.lookup($0)?.version } == key.withUnsafeBytes { node?.lookup($0)?.version },
                    "\(Sample.hint(seed)), version \(ordinal)")
                if ordinal % 7 == 0 {
                    let (root, from) = try view.map()
                    #expect(MapTests.contents(root) == MapTests.contents(node), "\(Sample.hint(seed)), version \(ordinal)")
                    // Later maps are built from the built one.
                    view.keep(MapCache.Slot(root: root, replay: from.slot.replay + from.changes))
                }
            }
            #expect(lines.view(9) == nil && lines.view(11) == nil)
        }
    }

    private func append(_ ordinal: UInt32, _ changes: [[UInt8]: UInt32?], to view: DeltaChains.View, of lines: DeltaChains) {
        var arena = KeyArena()
        for (key, version) in changes {
            key.withUnsafeBytes { arena.append($0, version.map { MapEntry(version: $0, size: 0, bodyOffset: 0) }) }
        }
        arena.withChanges(isSorted: false) { lines.append(ordinal, Array($0), to: view) }
    }

    @Test func onlyOneVersionGoesOnFromAnother() throws {
        let lines = DeltaChains(MemoryAccount(total: 64 << 20))
        let start = lines.begin(MapCache.Slot(), of: 1)
        append(2, [[1]: 2], to: start, of: lines)
        append(3, [[1]: 3], to: start, of: lines)
        #expect(lines.view(3) == nil)
        #expect([UInt8(1)].withUnsafeBytes { lines.view(2)?.lookup($0)?.version } == 2)
        #expect([UInt8(1)].withUnsafeBytes { start.lookup($0) } == nil, "an earlier lookup remains valid")
    }

    @Test func aLongHistoryOfSmallVersionsIsWhatWasSaved() throws {
        let store = try memoryStore()
        var random = SeededRandom(seed: 5)
        var head = try store.set(["0": "0"], nil)
        var model = ["0": "0@\(head.id)"], snapshots = [(head, model)]
        // Longer than one chain, so several follow each other. Now and then it continues from an older version.
        for step in 1..<8_600 {
            if step % 701 == 0, let (version, state) = snapshots.randomElement(using: &random) { (head, model) = (version, state) }
            let key = "\(Int.random(in: 0..<300, using: &random))"
            let isRemoval = step % 5 == 0, wasThere = model[key] != nil
            head = try isRemoval ? store.set([:], head, remove: [key]) : store.set([key: "\(step)"], head)
            model[key] = isRemoval ? nil : "\(step)@\(head.id)"
            if step % 97 == 0 {
                let recorded = try store.recordedChanges(madeIn: head.id).map(\.kind)
                #expect(recorded == (isRemoval ? wasThere ? [.remove] : [] : [wasThere ? .update : .insert]), "step \(step)")
                snapshots.append((head, model))
            }
        }
        for (version, model) in snapshots.shuffled(using: &random) { #expect(try store.state(version.id) == model) }
    }

    @Test func threadsGoOnFromTheSameVersionAtOnce() throws {
        let store = try memoryStore()
        let root = try store.set(["shared": "0"], nil)
        let lock = Lock()
        var heads = Array(repeating: root, count: 6)
        var states = Array(repeating: ["shared": "0@\(root.id)"], count: 6)
        let errors = Parallel.run(threads: 6, times: 300) { thread, turn in
            // Each thread has its own line, but every so often all continue from one version.
            let (base, state) = lock.withLock { turn % 100 == 50 ? (heads[0], states[0]) : (heads[thread], states[thread]) }
            let key = turn % 3 == 0 ? "shared" : "\(thread)-\(turn % 20)"
            let made = try store.set([key: "\(turn)"], base)
            var next = state
            next[key] = "\(turn)@\(made.id)"
            if turn % 10 == 0, try store.state(made.id) != next {
                throw StoreError(.internal, "thread \(thread), turn \(turn): the state differs from the saved one")
            }
            guard try store.recordedChanges(madeIn: made.id).first?.kind == (state[key] == nil ? .insert : .update) else {
                throw StoreError(.internal, "a label that is not true")
            }
            lock.withLock {
                heads[thread] = made; states[thread] = next
            }
        }
        #expect(errors.isEmpty, "\(errors)")
        for (head, state) in zip(heads, states) { #expect(try store.state(head.id) == state) }
    }

    /// If each map had its own copy of the ids, 4,000 bytes each, it would have 16 MiB.
    @Test func whatAChangeCostsDoesNotGrowWithTheLengthOfIDs() throws {
        let budget = 16 << 20, cache = MapCache(MemoryAccount(maps: budget), readers: ReadWriteLock())
        func key(_ i: Int) -> [UInt8] { Array("\(i &* 0x9E37_79B9 % 1_000_000_007)".utf8) + [UInt8](repeating: 0x2D, count: 4_000) }
        func changed(_ i: Int, _ version: UInt32, _ node: MapNode?) -> MapNode? {
            key(i).withUnsafeBytes {
                try? MapNode.applying([MapChange(key: $0, entry: MapEntry(version: version, size: 0, bodyOffset: 0))][...], to: node)
            }
        }
        var node: MapNode?
        for i in 0..<600 { node = changed(i, 0, node) }
        #expect(try #require(node).memory > 600 * 4_000)
        let all = Array(sequence(first: 0) { $0 + 1 }.prefix(3_000))
        var slot = cache.store(0, node, changes: 600, on: MapCache.Slot())
        for step in all {
            // Every third change adds an id; the others change one.
            let i = step % 3 == 2 ? 600 + step : step % 600
            let next = changed(i, UInt32(step), slot.root), cost = try #require(next).memory(beside: slot.root)
            #expect(cost < (step % 3 == 2 ? 4 * MapNode.leafBytes : 4_096), "step \(step): \(cost) bytes")
            slot = cache.store(UInt32(step + 1), next, changes: 1, on: slot)
        }
        // The total size of the cached maps, counting each node and each leaf's keys once.
        var met: Set<ObjectIdentifier> = []
        func memory(_ node: MapNode) -> Int {
            guard met.insert(ObjectIdentifier(node)).inserted else { return 0 }
            let keys = node.keysIdentity.map { met.insert($0).inserted } ?? true
            return node.ownMemory(withKeys: keys) + node.children.reduce(0) { $0 + memory($1) }
        }
        var kept = 0, bytes = 0
        for step in all {
            guard let slot = cache.slot(UInt32(step + 1)), let root = slot.root else { continue }
            kept += 1
            bytes += memory(root)
        }
        let newest = try #require(slot.root).memory
        #expect(kept > 20 && bytes < budget, "\(kept) maps, \(bytes) bytes, of which the newest has \(newest)")
    }

    @Test func aMapThatGrowsBySmallVersionsStaysWithinItsBudget() throws {
        let directory = TemporaryDirectory()
        var options = Store.Options()
        options.durability = .normal
        options.memoryBudget = 1 << 20
        let store = try Store(path: directory.path + "/store", options: options)
        var head: Version?
        var most = 0
        for step in 0..<1_000 {
            let ids = (0..<12).map { "\((step * 12 + $0) &* 0x9E37_79B9 % 1_000_000_007)" }
            head = try store.set(Dictionary(uniqueKeysWithValues: ids.map { ($0, "") }), head)
            if step % 20 == 0, let head { most = max(most, try store.maps.map(store.requireOrdinal(head.id))?.memory ?? 0) }
        }
        let id = try #require(head).id
        #expect(try store.count(at: id) == 12_000)
        #expect(most < options.memoryBudget * 3 / 4, "\(most) bytes of nodes")
        try store.close()
        #expect(try Store(path: directory.path + "/store", options: options).count(at: id) == 12_000)
    }
}
