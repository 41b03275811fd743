import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Fetching many values at once gives the same as fetching each of them alone.
@Suite struct BatchTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store" }

    static func data(_ i: Int, _ round: Int = 0) -> [UInt8] {
        let size = [0, 1, 100, 100, 100, 300, 5_000, 9_000][i % 8]
        // Every other value is compressible.
        return i % 2 == 0
            ? StorageConformance.bytes(seed: UInt64(i + round * 100_000), count: size)
            : Filling.runs(of: 50, count: size, from: UInt8(truncatingIfNeeded: i ^ round))
    }
    static func name(_ i: Int) -> String { "value \(i * 7_919 % 100_003)" }

    func open(_ kind: Int) throws -> (store: Store, storage: CountingStorage) {
        var options = Store.Options()
        options.durability = .normal
        let base: any Storage =
            switch kind {
            case 0: try FileStorage(path: path)
            case 1: try SQLiteStorage(path: path + ".sqlite")
            default: MemoryStorage()
            }
        let storage = CountingStorage(base)
        options.storage = .custom(storage)
        return (try Store(path: "", options: options), storage)
    }

    /// A load, some updates and removals, large values, and a merge that preserves values of both sides.
    func fill(_ store: Store, _ count: Int) throws -> VersionID {
        var head = try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(try id(Self.name($0)), data: Self.data($0)) }).id
        for round in 1..<40 {
            let i = round * 37 % count
            head = try store.makeVersion(
                basedOn: head,
                changes: [round % 5 == 0 ? .remove(try id(Self.name(i))) : .update(try id(Self.name(i)), data: Self.data(i, round))]
            ).id
        }
        head = try store.makeVersion(
            basedOn: head,
            changes: [
                .insert(try id("value 5 large"), data: StorageConformance.bytes(seed: 1, count: 300_000)),
                .insert(try id("value 6 larger"), data: StorageConformance.bytes(seed: 2, count: 1_500_000)),
            ]
        ).id
        let one = try store.makeVersion(
            basedOn: head, changes: try (0..<30).map { .insert(try id("value 7 a \($0)"), data: Self.data($0, 50)) }
        ).id
        let other = try store.makeVersion(
            basedOn: head, changes: try (0..<30).map { .insert(try id("value 8 b \($0)"), data: Self.data($0, 60)) }
        ).id
        return try store.merge(one, with: other, arbiter: BuiltInArbiter.mostRecentChange).id
    }

    func expected(_ store: Store, at version: VersionID, _ count: Int) throws -> [Value] {
        var names = (0..<count).map { Self.name($0) } + ["value 5 large", "value 6 larger"]
        for i in 0..<30 { names += ["value 7 a \(i)", "value 8 b \(i)"] }
        return try names.compactMap { try store.value(id($0), at: version) }.sorted { $0.id < $1.id }
    }

    func values(_ batch: ValueBatch) throws -> [Value] {
        try (0..<batch.count).compactMap { try batch.value($0, id: ValueID(unchecked: batch.id($0))) }
    }

    @Test(arguments: 0..<3) func aBatchIsWhatItsValuesAre(kind: Int) throws {
        let count = 1_200
        let (store, _) = try open(kind)
        let head = try fill(store, count)
        let all = try expected(store, at: head, count)
        #expect(try all.count > count && all.count == store.count(at: head))
        #expect(try values(store.batch(at: head, limit: .max)) == all)
        for limit in [1, 7, 1_023, 1_024, 1_025, all.count - 1, all.count] {
            #expect(try values(store.batch(at: head, limit: limit)) == Array(all.prefix(limit)), "limit \(limit)")
            let behind = all[all.count - 50].id
            #expect(try values(store.batch(at: head, after: behind, limit: limit)) == Array(all.suffix(49).prefix(limit)))
        }
        let some = all.filter { $0.id.bytes.starts(with: Array("value 7".utf8)) }
        #expect(try values(store.batch(at: head, in: .prefix(Array("value 7".utf8)), limit: 1_000)) == some)
        let without = try store.batch(at: head, limit: .max, withData: false)
        #expect(!without.hasData && without.data.isEmpty && without.presentCount == all.count)
        #expect(try store.references(at: head, limit: .max) == all.map(\.reference))

        // Values by their ids, in any order; some ids are repeated, and some do not exist.
        var asked = try (0..<1_500).map { i in try id(i % 10 == 3 ? "none \(i)" : Self.name(i * 11 % count)) }
        asked += all.suffix(70).map(\.id)
        let found = try store.values(asked, at: head)
        #expect(found.count == asked.count)
        for (id, value) in zip(asked, found) { #expect(try value == store.value(id, at: head) && value?.id ?? id == id) }
        #expect(found.contains { $0 == nil })

        let batch = try store.batch(all.map(\.reference) + [Value.Reference(id: try id("none"), version: head)])
        #expect(try values(batch) == all && batch.count == all.count + 1 && batch.rows.last?.version == nil)
        try store.close()
        #expect(code { _ = try store.batch(at: head, limit: 1) } == .closed)
    }

    @Test func aPageEndsWithTheValueThatReachesTheLimitOfBytes() throws {
        let (store, _) = try open(0)
        let head = try fill(store, 1_500)
        let all = try expected(store, at: head, 1_500)
        // The map lacks the sizes of values that a merge preserved.
        for start in [0, 700, all.count - 90] {
            let after = start == 0 ? nil : all[start - 1].id
            for limit in [1, 100, 5_000, 100_000, 3_000_000] {
                var bytes = 0
                let fitting = all[start...].prefix { value in
                    defer { bytes += value.data.count }; return bytes < limit
                }
                #expect(
                    try values(store.batch(at: head, after: after, limit: .max, byteLimit: limit)) == Array(fitting), "\(start), \(limit)")
            }
        }
        try store.close()
    }

    @Test func bytesLieAsTheyWereAskedFor() throws {
        let (store, _) = try open(0)
        let head = try store.makeVersion(
            basedOn: nil,
            changes: [.insert(try id("a"), data: [1, 2]), .insert(try id("b\0c"), data: []), .insert(try id("d"), data: [3])]
        ).id
        let apart = try store.batch(at: head, limit: 10), joined = try store.batch(at: head, limit: 10, isSeparated: false)
        #expect(Array(apart.ids) == Array("a\0b\0c\0d\0".utf8) && Array(apart.data) == [1, 2, 0, 0, 3, 0])
        #expect(Array(joined.ids) == Array(apart.ids) && Array(joined.data) == [1, 2, 3])
        #expect(Array(joined.versions) == Array("\(head)\0".utf8) && joined.versionCount == 1 && joined.version(0) == 0..<36)
        try store.close()
    }

    @Test func neighboursAreReadTogetherAndOnce() throws {
        let count = 20_000
        var heads: [VersionID] = []
        do {
            let (store, _) = try open(0)
            heads.append(
                try store.makeVersion(
                    basedOn: nil, changes: (0..<count).map { .insert(try id(Self.name($0)), data: Filling.noise(UInt64($0), 100)) }
                ).id)
            try store.close()
        }
        let head = try #require(heads.last)
        let (store, storage) = try open(0)
        _ = try store.count(at: head)
        let before = storage.reads
        var read = 0, last: ValueID?
        while case let page = try store.values(at: head, after: last, limit: 1_000), let end = page.last {
            (read, last) = (read + page.count, end.id)
        }
        #expect(read == count)
        // 20 pages of 110 KiB, each of them one run.
        #expect(storage.reads - before <= 2 * 20, "\(storage.reads - before) reads")
        let once = storage.reads
        #expect(try store.values(at: head, limit: .max).count == count)
        #expect(storage.reads == once, "the read values were not cached")
        try store.close()
    }

    @Test func damageIsReadAgainAndThenReported() throws {
        let (writer, _) = try open(0)
        let head = try fill(writer, 300)
        let all = try expected(writer, at: head, 300)
        try writer.close()
        let (store, storage) = try open(0)
        _ = try store.count(at: head)
        storage.meddleOnce { buffer in for i in buffer.indices { buffer[i] ^= 0x55 } }
        #expect(try values(store.batch(at: head, limit: .max)) == all)
        #expect(try values(store.batch(at: head, limit: .max)) == all)
        try store.close()

        let needle = try #require(all.first { $0.data.count == 100 && $0.data.first != $0.data.last }).data
        for name in try System.names(in: path + "/segments") where name.hasSuffix(".seg") {
            let file = path + "/segments/" + name
            var bytes = try readFile(file)
            for at in 0..<max(0, bytes.count - 100) where bytes[at..<at + 100].elementsEqual(needle) { bytes[at + 50] ^= 1 }
            try writeFile(file, bytes)
        }
        let (broken, _) = try open(0)
        let isThere = try broken.contains(head)
        #expect(!isThere || code { _ = try broken.batch(at: head, limit: .max) } == .damaged)
    }

    @Test func descriptorsAreNotClosedUnderTheirReaders() throws {
        var versions: [(VersionID, Int)] = []
        for i in 0..<12 {
            let store = try Store(path: path)
            let changes: [Value.Change] = [.insert(try id("k"), data: Filling.noise(UInt64(i), 100))]
            versions.append((try store.makeVersion(basedOn: nil, changes: changes).id, i))
            try store.close()
        }
        var options = FileStorage.Options()
        options.openFiles = 2
        var opening = Store.Options()
        opening.storage = .custom(try FileStorage(path: path, options: options))
        opening.memoryBudget = 1
        let store = try Store(path: "", options: opening)
        let all = versions, key = Array("k".utf8)
        let errors = Parallel.run(threads: 4, times: 2_000) { thread, turn in
            var random = SeededRandom(seed: UInt64(thread * 10_000 + turn))
            let (version, i) = all[Int(random.next() % 12)]
            let data = try store.value(ValueID(utf8: key), at: version)?.data
            guard data == Filling.noise(UInt64(i), 100) else { throw StoreError(.damaged, "other bytes") }
        }
        #expect(errors.isEmpty, "\(errors)")
        try store.close()
    }
}
