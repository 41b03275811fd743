import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

@Suite struct StoreTests {
    @Test func valuesPrevailUntilChanged() throws {
        let store = try memoryStore()
        let a = try store.set(["x": "1", "y": "2"], nil)
        let b = try store.set(["x": "3"], a, remove: ["y", "absent"])
        #expect(try store.text("x", a) == "1")
        #expect(try store.text("x", b) == "3")
        #expect(try store.text("y", b) == nil)
        #expect(try store.text("y", a) == "2")
        #expect(try store.changes(madeIn: b.id).map(\.kind) == [.update, .remove])
        #expect(try store.heads().map(\.id) == [b.id])
        #expect(try store.count(at: a.id) == 2)
        #expect(try store.versions(of: id("x")).map(\.id) == [b.id, a.id])
        #expect(try store.differences(from: b.id, to: a.id).map { "\($0.kind) \($0.id)" } == ["update x", "insert y"])
    }

    @Test func refusesWhatCannotBe() throws {
        let store = try memoryStore()
        func code(_ body: () throws -> Void) -> StoreError.Code? {
            do { try body(); return nil } catch { return (error as? StoreError)?.code }
        }
        let a = try store.set(["x": "1"], nil)
        #expect(code { _ = try store.makeVersion(basedOn: .random(), changes: []) } == .unknownPredecessor)
        #expect(code { _ = try store.value(id("x"), at: .random()) } == .unknownVersion)
        #expect(code { _ = try store.makeVersion(basedOn: a.id, changes: [.insert(id("x"), data: []), .remove(id("x"))]) } == .duplicateID)
        #expect(
            code { _ = try store.makeVersion(basedOn: a.id, changes: [.preserve(.init(id: id("q"), version: a.id))]) } == .invalidReference)
        #expect(code { _ = try store.set(["x": "2"], a, id: a.id) } == .versionMismatch)
        let named = try store.set(["x": "2"], a, id: VersionID("mine"))
        #expect(try store.set(["x": "2"], a, id: VersionID("mine")) == named)
        #expect(code { _ = try store.set([:], a, id: VersionID("MINE")) } == .invalidVersionID)
        #expect(try store.allVersionIDs().count == 2)
        try store.close()
        #expect(code { _ = try store.heads() } == .closed)
        try store.close()
    }

    /// A version with one predecessor stores bytes instead of preserving them. Other implementations relay it like this, and one id must
    /// not mean both.
    @Test(arguments: [10, 3 << 20]) func versionsWithOnePredecessorRecordBytes(_ size: Int) throws {
        let temporary = TemporaryFolder(), data = [UInt8](repeating: 7, count: size)
        for store in [try memoryStore(), try Store(path: temporary.path + "/store", options: Store.Options())] {
            let a = try store.makeVersion(basedOn: nil, changes: [.insert(id("x"), data: data), .insert(id("y"), data: [1])])
            let b = try store.makeVersion(basedOn: a.id, changes: [.update(id("x"), data: [2]), .remove(id("y"))])
            let back = try #require(try store.revert(b.id, at: b.id).version)
            let given = try store.makeVersion(
                basedOn: b.id, changes: [.preserve(.init(id: id("x"), version: a.id)), .preserve(.init(id: id("y"), version: a.id))])
            for version in [back, given] {
                #expect(try store.changes(madeIn: version.id) == [.update(id("x"), data: data), .insert(id("y"), data: [1])])
                #expect(try store.value(id("x"), at: version.id) == Value(id: id("x"), data: data, storedVersion: version.id))
                #expect(version.valueDataSize == UInt64(size + 1))
            }
            let gone = try store.makeVersion(
                basedOn: given.id, changes: [.preserveRemoval(id("x")), .preserve(.init(id: id("y"), version: given.id))])
            #expect(try store.changes(madeIn: gone.id) == [.remove(id("x"))])
            let root = try store.makeVersion(basedOn: nil, changes: [.preserve(.init(id: id("x"), version: a.id))])
            #expect(try store.changes(madeIn: root.id) == [.insert(id("x"), data: data)])
            #expect(try store.verify().damages.isEmpty)
        }
    }

    /// Metadata that crashes another implementation, or that it cannot name, is refused.
    @Test func metadataThatOthersCannotReadIsNotMade() throws {
        let store = try memoryStore(), base = try store.set(["x": "1"], nil), other = try store.set(["x": "2"], nil)
        for pairs in [
            [(Metadata.branchKey, Array("draft".utf8))], [(Metadata.branchKey, Array("[\"draft\"]".utf8))], [(Metadata.branchKey, [])],
            [([], [1])],
        ] as [[(key: [UInt8], value: [UInt8])]] {
            let metadata = try Metadata(pairs)
            for make in [
                { _ = try store.makeVersion(basedOn: base.id, changes: [], metadata: metadata) },
                { _ = try store.revert(base.id, at: base.id, metadata: metadata) },
                { _ = try store.merge(base.id, with: other.id, arbiter: BuiltInArbiter.mostRecentChange, metadata: metadata) },
                { _ = try store.mergeHeads(into: base.id, arbiter: BuiltInArbiter.mostRecentChange, metadata: metadata) },
            ] as [() throws -> Void] {
                #expect(throws: StoreError.self) { try make() }
            }
            // The metadata is accepted in a received version. That version has no branch.
            let version = Version(id: .random(), predecessors: [base.id], timestamp: 5, valueDataSize: 0, metadata: metadata)
            guard case .added = try store.add([.init(version: version, changes: [])])[0] else { Issue.record("not added"); continue }
            #expect(try store.version(version.id) == version && version.branch == nil)
        }
        #expect(try store.allVersionIDs().count == 6)
    }

    @Test func mergesThreeWays() throws {
        let store = try memoryStore()
        let base = try store.set(["same": "0", "mine": "0", "theirs": "0", "both": "0", "gone": "0", "fight": "0"], nil)
        let a = try store.set(["mine": "a", "both": "a", "new a": "a", "equal": "e"], base, remove: ["gone", "fight"])
        let b = try store.set(["theirs": "b", "both": "b", "new b": "b", "fight": "b", "equal": "e"], base, remove: ["gone"])
        struct Recorder: MergeArbiter {
            let seen: @Sendable (Merge) -> Void
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                seen(merge)
                return try BuiltInArbiter.mostRecentChange.resolve(merge, in: store)
            }
        }
        nonisolated(unsafe) var forks: [String] = []
        let m = try store.merge(
            a.id, with: b.id,
            arbiter: Recorder { merge in
                forks = merge.forks.map { "\($0.id) \($0.fork.kind) \($0.fork.side.map { "\($0)" } ?? "-")" }
            })
        #expect(
            forks == [
                "both twiceUpdated -", "fight removedAndUpdated second", "gone twiceRemoved -", "mine updated second",
                "new a inserted second", "new b inserted first", "theirs updated first",
            ])
        #expect(m.predecessors == [b.id, a.id])
        #expect(
            try store.state(m.id).mapValues { String($0.prefix(1)) } == [
                "same": "0", "mine": "a", "theirs": "b", "both": "b", "new a": "a", "new b": "b", "fight": "b", "equal": "e",
            ])
        #expect(try store.value(id("equal"), at: m.id)?.storedVersion == b.id)
        #expect(try store.merge(b.id, with: a.id, arbiter: BuiltInArbiter.mostRecentChange) == m)
        #expect(try store.merge(m.id, with: a.id, arbiter: BuiltInArbiter.ours) == m)
        #expect(try store.heads().map(\.id) == [m.id])
        #expect(throws: StoreError.self) { try store.merge(a.id, with: b.id, arbiter: Recorder2()) }
        let reverted = try store.revert(b.id, at: m.id), undone = try #require(reverted.version)
        // Equal changes of both sides are undone for both.
        #expect(reverted.undone.map(\.description) == ["both", "equal", "fight", "gone", "new b", "theirs"])
        #expect(reverted.superseded.isEmpty)
        #expect(try store.text("theirs", undone) == "0")
        #expect(try store.text("new b", undone) == nil)
        #expect(try store.text("mine", undone) == "a")
        #expect(try store.changes(madeIn: undone.id).allSatisfy { ![.preserve, .preserveRemoval].contains($0.kind) })
    }
    struct Recorder2: MergeArbiter { func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { [] } }

    @Test func headsFoldIntoOne() throws {
        let store = try memoryStore()
        let base = try store.set(["k": "0"], nil)
        var heads: [Version] = []
        for i in 0..<20 { heads.append(try store.set(["k": "\(i)", "own \(i)": "x"], base)) }
        let merged = try #require(try store.mergeHeads(into: heads[7].id, arbiter: BuiltInArbiter.mostRecentChange))
        #expect(try store.heads().map(\.id) == [merged.id])
        #expect(try store.text("k", merged) == "19")
        #expect(try store.count(at: merged.id) == 21)
        #expect(try store.mergeHeads(into: merged.id, arbiter: BuiltInArbiter.mostRecentChange) == nil)
        // An arbiter that fails halfway leaves nothing behind.
        let before = try store.allVersionIDs().count
        for i in 0..<3 { _ = try store.set(["k": "again \(i)"], merged) }
        struct Failing: MergeArbiter {
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                if merge.first.predecessors.count > 1 { throw StoreError(.user, "no") }
                return [.update(try ValueID("k"), data: [7])]
            }
        }
        #expect(throws: StoreError.self) { try store.mergeHeads(into: merged.id, arbiter: Failing()) }
        #expect(try store.allVersionIDs().count == before + 3)
        #expect(try store.heads().count == 3)
        // An arbiter that reads the result of the previous step.
        struct Reading: MergeArbiter {
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                try merge.forks.filter(\.fork.isConflicting).map { id, fork in
                    let x = try store.value(id, at: merge.first.id)?.data ?? [],
                        y = try fork.second.flatMap { try store.value($0) }?.data ?? []
                    return .update(id, data: x + y)
                }
            }
        }
        let all = try #require(try store.mergeHeads(into: merged.id, arbiter: Reading()))
        #expect(try store.text("k", all) == "again 2again 1again 0")
    }

    @Test func ladderOfCrissCrosses() throws {
        let store = try memoryStore()
        let root = try store.set(["k": "0", "l": "0"], nil)
        var a = try store.set(["k": "a"], root), b = try store.set(["l": "b"], root)
        for i in 0..<300 {
            let x = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.ours, metadata: Metadata([(bytes("s"), bytes("1"))]))
            let y = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.theirs, metadata: Metadata([(bytes("s"), bytes("2"))]))
            a = try store.set(["a\(i)": "1", "k": "a\(i)"], x)
            b = try store.set(["b\(i)": "1", "k": "b\(i)"], y)
        }
        #expect(try store.mergeBases(a.id, b.id).count == 2)
        let m = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange)
        #expect(try store.count(at: m.id) == 602)
    }

    @Test func randomHistoriesMatchAModel() throws {
        for seed in UInt64(0)..<20 {
            var random = SeededRandom(seed: seed)
            let store = try memoryStore()
            var states: [VersionID: [String: String]] = [:]
            var versions: [Version] = []
            for step in 0..<60 {
                let base = Int.random(in: 0..<20, using: &random) == 0 ? nil : versions.randomElement(using: &random)
                var state = base.flatMap { states[$0.id] } ?? [:]
                var changes: [Value.Change] = []
                var used: Set<String> = []
                for _ in 0..<Int.random(in: 0...5, using: &random) {
                    let key = "k\(Int.random(in: 0..<12, using: &random))"
                    guard used.insert(key).inserted else { continue }
                    if Bool.random(using: &random) {
                        state[key] = "\(step)"
                        changes.append(.insert(try id(key), data: bytes("\(step)")))
                    } else {
                        state[key] = nil
                        changes.append(.remove(try id(key)))
                    }
                }
                let version = try store.makeVersion(basedOn: base?.id, changes: changes)
                versions.append(version)
                states[version.id] = state
            }
            for version in versions.shuffled(using: &random) {
                // Now and then all maps are discarded and rebuilt from the records.
                if Int.random(in: 0..<4, using: &random) == 0 { store.maps.cache.removeAll() }
                let now = try store.state(version.id).mapValues { String($0.prefix { $0 != "@" }) }
                #expect(now == states[version.id], "seed \(seed)")
            }
            guard let x = versions.randomElement(using: &random), let y = versions.randomElement(using: &random) else { continue }
            var state = states[x.id] ?? [:]
            for change in try store.differences(from: x.id, to: y.id) {
                state[change.id.description] = try change.reference.flatMap { try store.value($0) }.map {
                    String(decoding: $0.data, as: UTF8.self)
                }
            }
            #expect(state == states[y.id], "seed \(seed)")
        }
    }
}
