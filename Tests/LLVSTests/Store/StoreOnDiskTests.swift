import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Stores on a disk: reopened, opened twice, damaged, used by many threads.
@Suite struct StoreOnDiskTests {
    /// Neither a large value nor the caches recreate the directory.
    @Test(arguments: [0, 1]) func aDeletedStoreIsNotBroughtBack(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            var last: Version?
            for i in 0..<1_500 { last = try store.makeVersion(basedOn: last?.id, changes: [.insert(id("v \(i)"), data: [1])]) }
            try store.cachePut("mine", [1])
            for name in try System.names(in: directory) { TemporaryDirectory.remove(directory + "/" + name) }
            let error = #expect(throws: StoreError.self) {
                try store.makeVersion(basedOn: last?.id, changes: [.insert(id("large"), data: [UInt8](repeating: 7, count: 2_000_000))])
            }
            #expect(error?.code == .notFound)
            #expect(throws: StoreError.self) { try store.cachePut("mine", [2]) }
            #expect(throws: StoreError.self) { try store.reloadHistory() }
            try? store.close()
            #expect(try System.names(in: directory).isEmpty)
        }
    }

    @Test(arguments: [0, 1]) func everythingIsThereAgain(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let large = Filling.pattern(3_000_000), text = [UInt8](repeating: 0x61, count: 5_000)
            var a: Version?, b: Version?, m: Version?
            do {
                let store = try DiskStore.open(kind, directory, durability: .full)
                a = try store.makeVersion(
                    basedOn: nil,
                    changes: [
                        .insert(id("large"), data: large), .insert(id("text"), data: text), .insert(id("empty"), data: []),
                        .insert(id("e\u{301}"), data: [1]), .insert(id("\u{E9}"), data: [2]),
                    ])
                b = try store.makeVersion(
                    basedOn: a?.id, changes: [.remove(id("text")), .update(id("empty"), data: [3])],
                    metadata: Metadata([(bytes("by"), bytes("\"ann\""))]))
                let c = try store.makeVersion(
                    basedOn: a?.id, changes: (0..<5_000).map { .insert(try id("many \($0)"), data: bytes("\($0)")) })
                m = try store.merge(try #require(b).id, with: c.id, arbiter: BuiltInArbiter.mostRecentBranch)
                try store.close()
            }
            let version = try #require(m), older = try #require(a)
            let store = try DiskStore.open(kind, directory)
            #expect(try store.heads() == [version])
            #expect(try store.value(id("large"), at: version.id)?.data == large)
            #expect(try store.value(id("text"), at: version.id) == nil)
            #expect(try store.value(id("text"), at: older.id)?.data == text)
            #expect(try store.value(id("e\u{301}"), at: version.id)?.data == [1])
            #expect(try store.value(id("\u{E9}"), at: version.id)?.data == [2])
            #expect(try store.value(id("many 4999"), at: version.id)?.data == bytes("4999"))
            #expect(try store.value(id("empty"), at: version.id)?.data == [3])
            #expect(try store.version(try #require(b).id)?.metadata["by"] == bytes("\"ann\""))
            #expect(try store.count(at: version.id) == 5_004)
            #expect(try store.versions(of: id("empty")).count == 2)
            let report = try store.verify()
            #expect(report.isWhole && report.versions == 4 && report.values == 5_006)
            let reader = try DiskStore.open(kind, directory, readOnly: true)
            #expect(try reader.count(at: version.id) == 5_004)
            #expect(throws: StoreError.self) { try reader.makeVersion(basedOn: version.id, changes: []) }
            try reader.close()
            try store.close()
        }
    }

    @Test(arguments: [0, 1]) func handlesSeeEachOther(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let x = try DiskStore.open(kind, directory), y = try DiskStore.open(kind, directory)
            let a = try x.set(["k": "1"], nil)
            #expect(try y.text("k", a) == "1")
            let b = try y.set(["k": "2"], a), c = try x.set(["l": "3"], a)
            #expect(try x.reloadHistory() == 1 && y.reloadHistory() == 1)
            let p = try x.merge(b.id, with: c.id, arbiter: BuiltInArbiter.ours),
                q = try y.merge(b.id, with: c.id, arbiter: BuiltInArbiter.ours)
            #expect(p == q)
            try x.close()
            try y.close()
            let z = try DiskStore.open(kind, directory)
            #expect(try z.heads() == [p])
            #expect(try z.statistics().versions == 4 && z.verify().isWhole)
            try z.close()
        }
    }

    @Test(arguments: [0, 1]) func manyThreadsCommitReadAndMerge(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let stores = try (0..<2).map { _ in try DiskStore.open(kind, directory, durability: .full, budget: 1 << 20) }
            let root = try stores[0].set(["k": "root"], nil)
            _ = try stores[1].reloadHistory()
            let lock = Lock()
            nonisolated(unsafe) var made: [(VersionID, [String: String])] = []
            let failures = Parallel.run(threads: 8, times: 1) { thread, _ in
                var random = SeededRandom(seed: UInt64(thread))
                let store = stores[thread % 2]
                var head = root.id, state = ["k": "root"]
                for step in 0..<40 {
                    let key = "t\(thread) \(Int.random(in: 0..<9, using: &random))"
                    head = try store.makeVersion(basedOn: head, changes: [.insert(try id(key), data: bytes("\(step)"))]).id
                    state[key] = "\(step)"
                    lock.withLock { made.append((head, state)) }
                    let (other, expected) = lock.withLock { made[Int.random(in: 0..<made.count, using: &random)] }
                    let now = try store.state(other).mapValues { String($0.prefix { $0 != "@" }) }
                    if now != expected { throw StoreError(.internal, "thread \(thread) step \(step) read another state") }
                    if step % 13 == 12 { _ = try store.merge(head, with: other, arbiter: BuiltInArbiter.mostRecentChange) }
                }
            }
            #expect(failures.isEmpty, "\(failures.prefix(3))")
            for store in stores { try store.close() }
            let store = try DiskStore.open(kind, directory)
            for (version, expected) in made { #expect(try store.state(version).mapValues { String($0.prefix { $0 != "@" }) } == expected) }
            let head = try #require(try store.mergeHeads(into: root.id, arbiter: BuiltInArbiter.mostRecentChange))
            #expect(try store.headIDs() == [head.id] && store.verify().isWhole)
            try store.close()
        }
    }

    /// A test that does not depend on a machine's speed: a commit at `full` costs one sync, at `normal` none.
    @Test func aCommitCostsOneSyncOrNone() throws {
        try withTemporaryDirectory { directory in
            for (durability, syncs) in [(Durability.full, UInt64(10)), (.normal, 0)] {
                let store = try DiskStore.open(0, directory, durability: durability)
                var head = try store.set(["k": "0"], nil)
                let before = try store.statistics().storage.syncs
                for i in 1...10 { head = try store.set(["k": "\(i)"], head) }
                #expect(try store.statistics().storage.syncs - before == syncs)
                try store.close()
            }
        }
    }

    @Test func versionsWaitForTheirAncestors() throws {
        try withTemporaryDirectory { directory in
            // Two handles write two segments. Without one of them, the versions that build on it are pending.
            let x = try DiskStore.open(0, directory)
            let a = try x.set(["k": "1"], nil)
            let y = try DiskStore.open(0, directory)
            let b = try y.set(["k": "2"], a)
            try x.close()
            try y.close()
            let segments = try System.names(in: directory + "/store/segments").filter { $0.hasSuffix(".seg") }.sorted()
            #expect(segments.count == 2)
            for name in segments {
                let from = "\(directory)/store/segments/\(name)", aside = "\(directory)/\(name)"
                try System.rename(from, aside)
                let store = try DiskStore.open(0, directory)
                let known = try [a, b].filter { try store.contains($0.id) }.count
                let statistics = try store.statistics()
                #expect(UInt64(known) == statistics.versions && statistics.versions + statistics.pending == 1)
                try System.rename(aside, from)
                #expect(try store.value(id("k"), at: b.id)?.data == bytes("2"))
                #expect(try store.statistics().pending == 0)
                try store.close()
            }
        }
    }

    /// Any flipped byte in a small store is noticed or harmless; no read returns other data.
    @Test func flippedBytesAreNeverOtherData() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            var version = try store.set(["a": "1", "b": String(repeating: "x", count: 400)], nil)
            var states = [version.id: try store.state(version.id)]
            for i in 0..<3 {
                version = try store.set(["a": "\(i)"], version)
                states[version.id] = try store.state(version.id)
            }
            try store.close()
            let name = try #require(try System.names(in: directory + "/store/segments").first { $0.hasSuffix(".seg") })
            let path = "\(directory)/store/segments/\(name)"
            let whole = try readFile(path)
            for offset in stride(from: 0, to: whole.count, by: sample(usual: 2, deep: 1)) {
                var bytes = whole
                bytes[offset] ^= 0x40
                try writeFile(path, bytes)
                do {
                    let store = try DiskStore.open(0, directory)
                    for (id, state) in states where try store.contains(id) {
                        do { #expect(try store.state(id) == state, "byte \(offset)") } catch let error as StoreError {
                            #expect(error.code == .damaged, "byte \(offset): \(error)")
                        }
                    }
                    let lost = try states.keys.filter { try !store.contains($0) }
                    let report = try store.verify()
                    #expect(!report.isWhole || lost.isEmpty, "byte \(offset)")
                    try store.close()
                } catch let error as StoreError {
                    #expect([.damaged, .newerFormat].contains(error.code), "byte \(offset): \(error)")
                }
            }
        }
    }
}

/// The caches beside the records are never needed, and never trusted without checks.
@Suite struct StoreCacheTests {
    /// A store with enough versions for caches. Returns the contents at some of them.
    static func fill(_ directory: String, kind: Int = 0) throws -> [VersionID: [String: String]] {
        let store = try DiskStore.open(kind, directory)
        var states: [VersionID: [String: String]] = [:]
        var head = try store.set(Dictionary(uniqueKeysWithValues: (0..<300).map { ("key \($0)", "first") }), nil)
        let side = try store.makeVersion(basedOn: head.id, changes: [.insert(id("side"), data: bytes("s"))], id: VersionID("side_branch-1"))
        for i in 0..<1_500 {
            head = try store.set(["key \(i % 300)": "\(i)"], head, remove: i % 7 == 0 ? ["key \((i + 50) % 300)"] : [])
            if i % 500 == 0 { states[head.id] = try store.state(head.id) }
        }
        head = try store.merge(head.id, with: side.id, arbiter: BuiltInArbiter.mostRecentChange)
        states[head.id] = try store.state(head.id)
        states[side.id] = try store.state(side.id)
        try store.close()
        return states
    }

    static func check(_ directory: String, _ states: [VersionID: [String: String]], fromCache: Bool?, kind: Int = 0) throws {
        let store = try DiskStore.open(kind, directory)
        if let fromCache { #expect((store.caches.versions > 0) == fromCache) }
        for (id, state) in states { #expect(try store.state(id) == state) }
        #expect(try store.statistics().versions == 1_503 + UInt64(states.count - 5))
        try store.close()
    }

    @Test func aStoreOpensFromItsCachesWithoutThemAndWithWrongOnes() throws {
        try withTemporaryDirectory { directory in
            var states = try Self.fill(directory)
            try Self.check(directory, states, fromCache: true)
            let caches = "\(directory)/store/cache"
            let names = try System.names(in: caches).filter { !$0.hasPrefix(".") }
            #expect(names.count == 2)
            // Any flipped byte is detected, and everything is read from the records.
            for name in names {
                let whole = try readFile("\(caches)/\(name)")
                for offset in stride(from: 0, to: whole.count, by: max(1, whole.count / sample(usual: 6, deep: 12))) {
                    var bytes = whole
                    bytes[offset] ^= 0x10
                    try writeFile("\(caches)/\(name)", bytes)
                    try Self.check(directory, states, fromCache: nil)
                }
                try writeFile("\(caches)/\(name)", Array(whole.prefix(whole.count / 2)))
                try Self.check(directory, states, fromCache: nil)
                try writeFile("\(caches)/\(name)", whole)
            }
            try Self.check(directory, states, fromCache: true)
            // Versions that others add later come after those in the caches.
            let store = try DiskStore.open(0, directory)
            let more = try store.set(["more": "1"], store.mostRecentHead())
            states[more.id] = try store.state(more.id)
            try store.close()
            try Self.check(directory, states, fromCache: true)
            // A segment has disappeared, so the caches are void.
            let segments = try System.names(in: directory + "/store/segments").filter { $0.hasSuffix(".seg") }
            #expect(segments.count == 2)
            for name in segments {
                let path = "\(directory)/store/segments/\(name)"
                try System.rename(path, "\(directory)/\(name)")
                let store = try DiskStore.open(0, directory)
                let statistics = try store.statistics()
                #expect(statistics.versions + statistics.pending < 1_504 && (store.caches.versions == 0 || statistics.versions == 1_503))
                try store.close()
                try System.rename("\(directory)/\(name)", path)
            }
            TemporaryDirectory.remove(caches)
            try Self.check(directory, states, fromCache: false)
        }
    }

    /// An index with a valid mark and invalid rows. The storage has continued after the mark by then.
    @Test func anIndexThatIsVoidOnlyInTheEndHidesNothing() throws {
        try withTemporaryDirectory { directory in
            let states = try Self.fill(directory)
            let store = try DiskStore.open(0, directory)
            let mark = try #require(store.storage.scanMark())
            let index = try #require(
                HistoryIndex.encode(store.quietHistory, nil, mark: mark) { RecordPlace(segment: 99, offset: $0.offset, length: $0.length) })
            try store.storage.cachePut("history", index)
            try store.close()
            try Self.check(directory, states, fromCache: false)
        }
    }

    /// In a database the caches are beside the records, and the last row determines where to continue.
    @Test func aDatabaseOpensFromItsHistoryUnlessItsRowsAreOthers() throws {
        try withTemporaryDirectory { directory in
            var states = try Self.fill(directory, kind: 1)
            try Self.check(directory, states, fromCache: true, kind: 1)
            // Versions that others add later come after those in the caches, also while the store is open.
            let store = try DiskStore.open(1, directory), other = try DiskStore.open(1, directory)
            #expect(store.caches.versions > 0)
            let more = try other.set(["more": "1"], other.mostRecentHead())
            states[more.id] = try other.state(more.id)
            #expect(try store.reloadHistory() == 1 && store.state(more.id) == states[more.id])
            try other.close()
            try store.close()
            try Self.check(directory, states, fromCache: true, kind: 1)
            let path = directory + "/store.sqlite", whole = try readFile(path)
            func change(_ sql: String) throws {
                try writeFile(path, whole)
                let connection = try SQLiteConnection(path, .write)
                try connection.run(sql, doing: "Changing")
                connection.close()
            }
            let known = "(SELECT max(seq) - 1 FROM records)"
            // The row that the mark names has changed, or has disappeared together with all later rows.
            try change("UPDATE records SET checksum = checksum + 1 WHERE seq = \(known)")
            let damaged = try DiskStore.open(1, directory)
            #expect(damaged.caches.versions == 0 && !damaged.storage.damages.isEmpty)
            try damaged.close()
            try change("DELETE FROM records WHERE seq >= \(known)")
            let shorter = try DiskStore.open(1, directory)
            #expect(try shorter.caches.versions == 0 && shorter.statistics().versions == UInt64(1_503 - 1))
            try shorter.close()
            // A history that is inconsistent, after the storage has continued beyond it.
            try change("DELETE FROM caches WHERE name <> 'history'")
            try Self.check(directory, states, fromCache: true, kind: 1)
            let again = try DiskStore.open(1, directory)
            let mark = try #require(again.storage.scanMark())
            try again.storage.cachePut(
                "history",
                HistoryIndex.encode(again.quietHistory, nil, mark: mark) { RecordPlace(segment: 99, offset: $0.offset, length: $0.length) })
            try again.close()
            try Self.check(directory, states, fromCache: false, kind: 1)
        }
    }
}
