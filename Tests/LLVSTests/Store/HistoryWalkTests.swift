import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Walks through history with conditions, compared with a check of every version.
@Suite struct HistoryWalkTests {
    /// The expected result of a query, found without indexes.
    private static func expected(_ store: Store, _ query: HistoryQuery) throws -> [HistoryWalk.Step] {
        func reachable(_ starts: [VersionID]) throws -> Set<VersionID> {
            var seen = Set(starts), stack = starts
            while let id = stack.popLast() {
                for predecessor in try #require(try store.version(id)).predecessors where seen.insert(predecessor).inserted {
                    stack.append(predecessor)
                }
            }
            return seen
        }
        let from = query.from.isEmpty ? nil : try reachable(query.from), hidden = try reachable(query.hiding)
        return try store.history().compactMap { id in
            guard from?.contains(id) ?? true, !hidden.contains(id) else { return nil }
            let version = try #require(try store.version(id))
            if let branch = query.branch, version.branch != branch { return nil }
            let changes = try store.recordedChanges(madeIn: id)
            if !query.prefix.isEmpty, !changes.contains(where: { $0.id.bytes.starts(with: query.prefix) }) { return nil }
            guard let value = query.value else { return HistoryWalk.Step(version: id, kind: nil) }
            return changes.first { $0.id == value }.map { HistoryWalk.Step(version: id, kind: $0.kind) }
        }
    }

    private static func given(_ store: Store, _ query: HistoryQuery, page: Int = 7) throws -> [HistoryWalk.Step] {
        let walk = try store.walk(query)
        var steps: [HistoryWalk.Step] = []
        while true {
            let next = try walk.next(page)
            if next.isEmpty { return steps }
            steps += next
        }
    }

    @Test(arguments: UInt64(1)...3) func allConditionsTogether(seed: UInt64) throws {
        let directory = TemporaryDirectory()
        var options = Store.Options()
        options.durability = .normal
        var store = try Store(path: directory.path + "/store", options: options)
        try PastTests.fill(store, 260, seed: seed)
        let all = try store.allVersionIDs()
        for (i, id) in all.enumerated() where i % 9 == 4 {
            try store.makeVersion(
                basedOn: id, changes: [.update(ValueID(PastTests.ids[i % 60]), data: [1])],
                metadata: Metadata([(bytes("__llvs_branch"), bytes(i % 2 == 0 ? "\"draft\"" : "\"other\""))]))
        }
        var random = SeededRandom(seed: seed)
        let rounds = sample(usual: 24, deep: 60)
        for round in 0..<rounds {
            if round == rounds / 2 {
                // Continue from the records, or from the caches.
                try store.close()
                if seed == 2 { TemporaryDirectory.remove(directory.path + "/store/cache") }
                store = try Store(path: directory.path + "/store", options: options)
            }
            let known = try store.allVersionIDs()
            func some(_ most: Int) -> [VersionID] {
                (0..<Int.random(in: 0...most, using: &random)).compactMap { _ in known.randomElement(using: &random) }
            }
            var query = HistoryQuery(from: some(2), hiding: some(2))
            if round % 5 == 0 { query.branch = "draft" }
            switch round % 4 {
            case 1: query.value = try ValueID(PastTests.ids.randomElement(using: &random) ?? "")
            case 2: query.prefix = Array(["value 1", "many 10", "v", "none", "many 99"].randomElement(using: &random)?.utf8 ?? "".utf8)
            case 3:
                (query.value, query.from, query.hiding) = (
                    try ValueID(["many 7", "none", "value 3", "many 1099"].randomElement(using: &random) ?? ""), [], []
                )
            default: break
            }
            let expected = try Self.expected(store, query), page = Int.random(in: 1...40, using: &random)
            #expect(try Self.given(store, query, page: page) == expected, "round \(round): \(query)")
        }
    }

    @Test func eachKindOfChangeIsReported() throws {
        let store = try memoryStore()
        let x = try ValueID("x")
        let inserted = try store.set(["x": "1", "y": "1"], nil)
        let updated = try store.set(["x": "2"], inserted)
        let elsewhere = try store.set(["y": "2"], updated)
        let removed = try store.set([:], updated, remove: ["x"])
        // The newer side is first and has the value unchanged. The removal comes from the other side.
        let newer = try store.set(["z": "1"], elsewhere)
        let merged = try store.merge(removed.id, with: newer.id, arbiter: BuiltInArbiter.mostRecentChange)
        let again = try store.set(["x": "3"], merged), beside = try store.set(["z": "2"], try store.set(["z": "3"], merged))
        let second = try store.merge(again.id, with: beside.id, arbiter: BuiltInArbiter.mostRecentChange)
        let walk = try Self.given(store, HistoryQuery(value: x))
        #expect(
            walk == [
                .init(version: second.id, kind: .preserve), .init(version: again.id, kind: .insert),
                .init(version: merged.id, kind: .preserveRemoval),
                .init(version: removed.id, kind: .remove), .init(version: updated.id, kind: .update),
                .init(version: inserted.id, kind: .insert),
            ])
        #expect(try store.versions(of: x).map(\.id) == [again.id, updated.id, inserted.id])
        let undone = try #require(try store.revert(again.id, at: second.id).version)
        #expect(try Self.given(store, HistoryQuery(hiding: [second.id], value: x)) == [.init(version: undone.id, kind: .remove)])
        #expect(throws: StoreError.self) { try store.walk(HistoryQuery(from: [try VersionID("none")])) }
        #expect(throws: StoreError.self) { try store.walk(HistoryQuery(hiding: [try VersionID("none")], value: x)) }
        #expect(try Self.given(store, HistoryQuery(from: [EmptyRoot.id])).isEmpty)
        #expect(try Self.given(store, HistoryQuery(hiding: [EmptyRoot.id])).count == 11)
    }

    @Test func aWalkSeesTheHistoryAsItWas() throws {
        let store = try memoryStore()
        var tip = try store.set(["x": "0"], nil), made = [tip.id]
        for i in 1..<20 { tip = try store.set(["x": "\(i)"], tip); made.append(tip.id) }
        let all = try store.walk(), ofValue = try store.walk(HistoryQuery(value: ValueID("x")))
        #expect(try all.next(5).map(\.version) == made.suffix(5).reversed() && ofValue.next(5).map(\.version) == made.suffix(5).reversed())
        for i in 0..<20 { tip = try store.set(["x": "later \(i)"], tip) }
        #expect(
            try all.next(.max).map(\.version) == made.prefix(15).reversed()
                && ofValue.next(.max).map(\.version) == made.prefix(15).reversed())
        #expect(try all.next(5).isEmpty && ofValue.next(5).isEmpty)
        try store.close()
        #expect(throws: StoreError.self) { try all.next(5) }
    }

    /// Finding out who removed one of many values takes time in proportion to the result, not to the number of versions. (Reading all
    /// changes takes as many reads as there are versions.)
    @Test func oneValuesHistoryCostsWhatItReturns() throws {
        let storage = CountingStorage(MemoryStorage())
        let store = try Store(storage: storage, options: Store.Options())
        var tip = try store.set(["rare": "1"], nil)
        for i in 0..<3_000 {
            tip = try i == 1_500 ? store.set([:], tip, remove: ["rare"]) : store.set(["id \(i % 100)": "\(i)"], tip)
        }
        _ = try store.maps.keyHistoryIndex()
        let before = storage.reads
        let rare = try ValueID("rare")
        let steps = try Self.given(store, HistoryQuery(value: rare))
        #expect(steps.map(\.kind) == [.remove, .insert])
        #expect(storage.reads - before <= 8)
        #if DEBUG
        // One page of the versions that a device with half of them lacks.
        let behind = try store.history()[1_400]
        #expect(try Work.versions.counting { _ = try store.walk(HistoryQuery(hiding: [behind])).next(.max) } <= 1_402)
        #expect(try Work.versions.counting { _ = try store.walk().next(10) } == 10)
        #expect(try Work.versions.counting { _ = try Self.given(store, HistoryQuery(value: rare)) } == 0)
        #endif
    }

    @Test func longWalksCanBeStoppedAndGoneOnWith() throws {
        let store = try memoryStore()
        var tip = try store.set(["x": "0"], nil)
        for i in 1..<2_000 { tip = try store.set(["x": "\(i)"], tip) }
        for query in [HistoryQuery(value: try ValueID("x")), HistoryQuery(prefix: Array("x".utf8)), HistoryQuery()] {
            let token = CancelToken()
            let walk = try store.walk(query)
            let calls = Calls()
            let stopping = OperationControl(
                progress: { progress in
                    #expect(progress.stage == .reading)
                    if calls.count() == 4 { token.cancel() }
                    return true
                }, token: token)
            var steps: [HistoryWalk.Step] = []
            #expect(throws: StoreError.self) {
                while true {
                    let next = try walk.next(1_000, control: stopping)
                    steps += next
                    if next.isEmpty { return }
                }
            }
            while true {
                let next = try walk.next(300)
                if next.isEmpty { break }
                steps += next
            }
            #expect(try steps.map(\.version) == store.history())
        }
        let token = CancelToken()
        token.cancel()
        #expect(throws: StoreError.self) { try store.walk(HistoryQuery(value: ValueID("x")), control: OperationControl(token: token)) }
    }

    private final class Calls: @unchecked Sendable {
        private let lock = Lock()
        private var number = 0
        func count() -> Int {
            lock.withLock {
                number += 1; return number
            }
        }
    }
}
