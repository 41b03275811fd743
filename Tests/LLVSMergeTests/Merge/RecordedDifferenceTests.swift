import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// Differences and merges that are computed from recorded changes equal those of the states, whatever the records claim.
@Suite struct RecordedDifferenceTests {
    /// Decides as a built-in arbiter does, but is shown all forks, as an arbiter of the host is.
    struct Wrapped: MergeArbiter {
        let arbiter: BuiltInArbiter
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { try arbiter.resolve(merge, in: store) }
    }

    /// Versions saved locally, received ones with any labels and timestamps, reverts and merges.
    static func randomHistory(_ store: Store, _ random: inout SeededRandom, versions count: Int) throws -> [VersionID] {
        var made: [VersionID] = []
        func pick() -> VersionID { made[max(0, made.count - 1 - Int.random(in: 0..<min(made.count, 6), using: &random))] }
        func key() throws -> ValueID { try id("k\(Int.random(in: 0..<8, using: &random))") }
        func text() -> [UInt8] { bytes("\(Int.random(in: 0..<4, using: &random))") }
        while made.count < count {
            let base = made.isEmpty || Int.random(in: 0..<40, using: &random) == 0 ? nil : pick()
            switch Int.random(in: 0..<8, using: &random) {
            case 0...3:
                var changes: [ValueID: Value.Change] = [:]
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    let id = try key()
                    changes[id] = Bool.random(using: &random) || Bool.random(using: &random) ? .insert(id, data: text()) : .remove(id)
                }
                made.append(try store.makeVersion(basedOn: base, changes: Array(changes.values)).id)
            case 4, 5:
                // As other implementations may record it: any label, removals of absent values, preserves of values that prevail anyway.
                var changes: [ValueID: Value.Change] = [:]
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    let id = try key()
                    switch Int.random(in: 0..<5, using: &random) {
                    case 0: changes[id] = .insert(id, data: text())
                    case 1: changes[id] = .update(id, data: text())
                    case 2: changes[id] = .remove(id)
                    case 3: changes[id] = .preserveRemoval(id)
                    default:
                        guard let base,
                            let stored = try store.versions(of: id).map(\.id).filter({ try $0 == base || store.isAncestor($0, of: base) })
                                .randomElement(using: &random)
                        else { continue }
                        changes[id] = .preserve(.init(id: id, version: stored))
                    }
                }
                let before = try base.flatMap { try store.version($0)?.timestamp } ?? 1_000
                let version = Version(
                    id: .random(), predecessors: base.map { [$0] } ?? [],
                    timestamp: before + Double(Int.random(in: -3...5, using: &random)), valueDataSize: 0, metadata: Metadata())
                guard case .added = try store.add([.init(version: version, changes: Array(changes.values))])[0] else {
                    throw StoreError(.internal, "refused")
                }
                made.append(version.id)
            case 6: if let base, let undone = try store.revert(pick(), at: base).version { made.append(undone.id) }
            default:
                if let base { made.append(try store.merge(base, with: pick(), arbiter: BuiltInArbiter.mostRecentChange).id) }
            }
        }
        return made
    }

    static func entries(_ store: Store, _ version: VersionID) throws -> [ValueID: VersionID] {
        Dictionary(uniqueKeysWithValues: try store.references(at: version, limit: .max).map { ($0.id, $0.version) })
    }
    static func expected(_ a: [ValueID: VersionID], _ b: [ValueID: VersionID]) -> [String] {
        Set(a.keys).union(b.keys).sorted().compactMap { id in
            a[id] == b[id] ? nil : "\(b[id] == nil ? "remove" : a[id] == nil ? "insert" : "update") \(id) \(b[id].map { "\($0)" } ?? "-")"
        }
    }
    static func told(_ changes: [Store.ChangeSummary]) -> [String] {
        changes.map { "\($0.kind) \($0.id) \($0.reference.map { "\($0.version)" } ?? "-")" }
    }

    @Test func differencesAreThoseOfTheStates() throws {
        for seed in Sample.seeds(usual: 6, deep: 24) {
            var random = SeededRandom(seed: seed)
            let folder = TemporaryDirectory()
            var options = Store.Options()
            options.durability = .normal
            var store = try Store(path: folder.path, options: options)
            let made = try Self.randomHistory(store, &random, versions: 40)
            if seed % 2 == 1 {
                try store.close()
                store = try Store(path: folder.path, options: options)
            }
            let states = try made.map { try Self.entries(store, $0) }
            for _ in 0..<150 {
                let i = Int.random(in: made.indices, using: &random), j = Int.random(in: made.indices, using: &random)
                // Sometimes the maps or the lists of changes are not in memory: then the labels count, or the records are read.
                switch Int.random(in: 0..<4, using: &random) {
                case 0: store.maps.cache.removeAll()
                case 1: store.maps.changeLists.removeAll()
                case 2: store.maps.cache.removeAll(); store.maps.changeLists.removeAll()
                default: break
                }
                let found = try store.differences(from: made[i], to: made[j])
                #expect(Self.told(found) == Self.expected(states[i], states[j]), "\(Sample.hint(seed)), \(i) to \(j)")
                for change in found {
                    if let reference = change.reference { #expect(try change.size == UInt64(store.value(reference)?.data.count ?? -1)) }
                }
            }
            try store.close()
        }
    }

    /// Returns the best common ancestors, found by their definition.
    static func bestCommonAncestors(_ a: UInt32, _ b: UInt32, _ store: Store) -> [UInt32] {
        store.lock.withRead {
            let dag = store.quietHistory, common = Set(dag.topologicalOrder(from: [a])).intersection(dag.topologicalOrder(from: [b]))
            return common.filter { one in !common.contains { dag.isAncestor(one, of: $0) } }.sorted(by: dag.isNewer)
        }
    }

    @Test func builtInArbitersDecideByTheSecondSideAsByAllForks() throws {
        var short = 0, settled = 0
        let seeds = Sample.seeds(from: 1_000, usual: 20, deep: 80)
        for seed in seeds {
            var random = SeededRandom(seed: seed)
            let store = try memoryStore()
            let made = try Self.randomHistory(store, &random, versions: 40)
            for _ in 0..<60 {
                let pair = try [made.randomElement(using: &random), made.randomElement(using: &random)].compactMap {
                    try $0.flatMap { try store.findOrdinal($0) }
                }
                let arbiter = [BuiltInArbiter.mostRecentBranch, .mostRecentChange, .ours, .theirs][Int.random(in: 0..<4, using: &random)]
                if Bool.random(using: &random) { store.maps.cache.removeAll() }
                func prepared(_ arbiter: any MergeArbiter) throws -> String {
                    switch try MergePreparation(store: store).prepareMerge(
                        pair[0], pair[1], arbiter: arbiter, metadata: Metadata([(bytes("a"), bytes("1"))]), relation: .any)
                    {
                    case .fastForward(let ordinal): return "\(ordinal)"
                    case .version(let version, let first, let second, let changes):
                        if version.metadata.isEmpty { settled += 1 }
                        return withExtendedLifetime(changes) {
                            "\(version) \(first) \(second) "
                                + changes.changes.map {
                                    "\($0.kind) \(ValueID(unchecked: $0.id)) \($0.storedVersion.map { "\($0)" } ?? "-")"
                                }.joined(separator: ", ")
                        }
                    }
                }
                #expect(try prepared(arbiter) == prepared(Wrapped(arbiter: arbiter)), "\(Sample.hint(seed))")
                let bases = store.lock.withRead { store.dag.bestCommonAncestors([pair[0]], [pair[1]]) }
                #expect(bases == Self.bestCommonAncestors(pair[0], pair[1], store), "\(Sample.hint(seed))")
                if bases.count == 1, !pair.contains(bases[0]) {
                    let first = store.lock.withRead { store.dag.isNewer(pair[0], pair[1]) } ? 0 : 1
                    if try store.changesOfSecond(pair[first], pair[1 - first], bases[0], arbiter, .first, MergedLine()) != nil {
                        short += 1
                    }
                }
            }
        }
        if Sample.seed == nil {
            #expect(short > 2 * seeds.count && settled > seeds.count / 5, "\(short) short ways, \(settled) settled")
        }
    }

    /// A line of versions that each save one value.
    static func line(_ store: Store, _ base: Version?, _ keys: [String], _ text: String) throws -> [Version] {
        var made: [Version] = []
        for key in keys { made.append(try store.set([key: text], made.last ?? base)) }
        return made
    }

    @Test func nothingIsReadOfWhatWasRecordedLately() throws {
        let storage = CountingStorage(MemoryStorage())
        let store = try Store(storage: storage, options: Store.Options())
        let all = try store.set(Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("k\($0)", "old") }), nil)
        let versions = try Self.line(store, all, (0..<50).map { "k\($0 * 7)" }, "new")
        let left = try Self.line(store, versions[49], (0..<20).map { "k\($0)" }, "left")
        let right = try Self.line(store, versions[49], (10..<30).map { "k\($0)" }, "wrong")
        store.maps.cache.removeAll()
        let before = storage.reads
        #expect(try store.differences(from: versions[39].id, to: versions[49].id).map(\.kind) == Array(repeating: .update, count: 10))
        #expect(store.maps.cache.count == 0, "a difference made a map")
        #expect(storage.reads == before)
        _ = try store.maps.map(store.requireOrdinal(left[19].id))
        // The header of the newer side's record is not read for its timestamp either.
        let made = storage.reads
        let merged = try store.merge(left[19].id, with: right[19].id, arbiter: BuiltInArbiter.mostRecentChange)
        #expect(storage.reads == made)
        #expect(try store.text("k15", merged) == "wrong" && store.text("k5", merged) == "left" && store.text("k25", merged) == "wrong")
        // The locations of preserved bytes are known: no table is searched for them.
        let ordinal = try store.requireOrdinal(merged.id)
        for key in ["k15", "k25"] {
            let entry = try bytes(key).withUnsafeBytes { try store.maps.map(ordinal)?.lookup($0) }
            #expect(entry.map { $0.bodyOffset > 0 && $0.size == 5 } == true)
        }
    }

    @Test func aMergeOfLinesMakesNoMap() throws {
        let store = try memoryStore()
        let all = try store.set(Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("k\($0)", "old") }), nil)
        let left = try Self.line(store, all, (0..<100).map { "k\($0)" }, "left"),
            right = try Self.line(store, all, (100..<250).map { "k\($0)" }, "right")
        store.maps.cache.removeAll()
        let merged = try store.merge(left[99].id, with: right[149].id, arbiter: BuiltInArbiter.mostRecentChange)
        let next = try store.set(["k3": "next"], merged)
        #expect(store.maps.cache.count == 0)
        #expect(
            try store.text("k3", next) == "next" && store.text("k4", next) == "left" && store.text("k160", next) == "right"
                && store.text("k300", next) == "old")
    }

    @Test func aDifferenceFromThePastMakesNoMap() throws {
        let store = try memoryStore()
        let all = try store.set(Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("k\($0)", "old") }), nil)
        let versions = try Self.line(store, all, (0..<6_000).map { "k\($0 % 500)" }, "new")
        store.maps.cache.removeAll()
        #expect(try store.differences(from: versions[999].id, to: versions[5_999].id).count == 500)
        #expect(store.maps.cache.count == 0)
        // If both maps are in memory, they are compared.
        let expected = try store.differences(from: versions[999].id, to: versions[5_999].id)
        for version in [versions[999], versions[5_999]] { _ = try store.maps.map(store.requireOrdinal(version.id)) }
        #expect(try store.differences(from: versions[999].id, to: versions[5_999].id) == expected)
    }

    @Test func whatWasStoredAnewDiffersAlsoWithTheSameBytes() throws {
        let store = try memoryStore()
        let one = try store.set(["a": "1", "b": "2"], nil), other = try store.set(["a": "1", "c": "3"], nil)
        #expect(
            try Self.told(store.differences(from: one.id, to: other.id)) == ["update a \(other.id)", "remove b -", "insert c \(other.id)"])
        let again = try store.set(["a": "1"], one)
        #expect(try Self.told(store.differences(from: one.id, to: again.id)) == ["update a \(again.id)"])
    }

    @Test func sameBytesAreNoConflict() throws {
        let store = try memoryStore()
        let base = try store.set(["a": "1", "b": "1", "c": "1"], nil)
        let left = try store.set(["a": "same", "b": "left"], base)
        let right = try store.set(["a": "same", "b": "four"], base, remove: ["c"])
        let merged = try store.merge(left.id, with: right.id, arbiter: BuiltInArbiter.ours)
        #expect(try store.state(merged.id) == ["a": "same@\(right.id)", "b": "left@\(left.id)"])
    }

    struct Preserving: MergeArbiter {
        let references: [Value.Reference]
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { references.map { .preserve($0) } }
    }

    /// A value that was changed and changed back is unchanged.
    @Test func whatTheSecondSideUndidIsTheBases() throws {
        let store = try memoryStore()
        let base = try store.set(["a": "1", "b": "1"], nil)
        let changed = try store.set(["a": "2"], base)
        // Only a merge preserves bytes of an ancestor; a revert stores the same bytes again.
        let other = try store.set(["b": "2"], base)
        let second = try store.merge(changed.id, with: other.id, arbiter: Preserving(references: [.init(id: id("a"), version: base.id)]))
        let first = try store.set(["a": "3"], base)
        let merged = try store.merge(first.id, with: second.id, arbiter: BuiltInArbiter.theirs)
        #expect(try store.text("a", merged) == "3" && store.text("b", merged) == "2")
    }
}

/// The ring that holds the latest recorded changes.
@Suite struct ChangeListTests {
    private func change(_ key: String, _ ordinal: UInt32, _ arena: ByteArena) -> ChangeLists.Change {
        ChangeLists.Change(
            kind: .update,
            key: key.utf8.withContiguousStorageIfAvailable { arena.copy(UnsafeRawBufferPointer($0)) }
                ?? UnsafeRawBufferPointer(start: nil, count: 0),
            entry: MapEntry(version: ordinal, size: ordinal &* 3, bodyOffset: UInt64(ordinal) << 20),
            fingerprint: ordinal % 2 == 0 ? ordinal : nil)
    }
    private func found(_ lists: ChangeLists, _ ordinal: UInt32) -> [String]? {
        var out: [String] = []
        return lists.forEach(ordinal) { change in
            out.append(
                "\(change.kind) \(ValueID(unchecked: change.key)) "
                    + "\(change.entry.map { "\($0.version) \($0.size) \($0.bodyOffset)" } ?? "-") \(change.fingerprint ?? 1)"
            )
        } ? out : nil
    }

    @Test func keepsTheNewestWhole() {
        let lists = ChangeLists(capacity: 128 << 10), arena = ByteArena()
        var random = SeededRandom(seed: 4)
        var wanted: [UInt32: [String]] = [:]
        for ordinal in UInt32(0)..<5_000 {
            let changes = (0..<Int.random(in: 0...12, using: &random)).map { i in
                change("key \(ordinal) \(i)" + String(repeating: "x", count: Int.random(in: 0..<60, using: &random)), ordinal, arena)
            }
            lists.insert(ordinal, changes)
            wanted[ordinal] = changes.map {
                "update \(ValueID(unchecked: $0.key)) \(ordinal) \(ordinal &* 3) \(UInt64(ordinal) << 20) \($0.fingerprint ?? 1)"
            }
            let earlier = UInt32.random(in: 0...ordinal, using: &random)
            if let kept = found(lists, earlier) { #expect(kept == wanted[earlier]) } else { #expect(ordinal - earlier > 100) }
            #expect(found(lists, ordinal) == wanted[ordinal])
        }
        #expect(found(lists, 0) == nil)
        #expect((0..<5_000).filter { found(lists, UInt32($0)) != nil }.count > 200)
    }

    @Test func keepsNothingTooLarge() {
        let lists = ChangeLists(capacity: 64 << 10), arena = ByteArena()
        lists.insert(1, (0..<1_024).map { change("key \($0)", 1, arena) })
        #expect(found(lists, 1) == nil, "a list of half the ring")
        lists.insert(2, (0...1_024).map { change("\($0)", 2, arena) })
        #expect(found(lists, 2) == nil)
        lists.insert(3, [change("a", 3, arena), ChangeLists.Change(kind: .preserveRemoval, key: change("b", 3, arena).key)])
        #expect(found(lists, 3) == ["update a 3 9 3145728 1", "remove b - 1"])
        lists.insert(4, [change("a", 4, arena)])
        #expect(lists.fingerprint(4, change("a", 4, arena).key) == 4 && lists.fingerprint(4, change("b", 4, arena).key) == nil)
        lists.removeAll()
        #expect(found(lists, 3) == nil)
    }
}
