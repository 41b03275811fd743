import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Reading values through caches in memory returns the same bytes and never others, whatever happens to the files.
@Suite struct ReadPathTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store" }

    static func data(_ i: Int, _ size: Int = 100) -> [UInt8] { StorageConformance.bytes(seed: UInt64(i), count: size) }
    static func name(_ i: Int) -> String { "value \(i * 7_919 % 100_003)" }

    func open(_ kind: Int = 0, budget: Int = 64 << 20) throws -> (store: Store, storage: CountingStorage) {
        var options = Store.Options()
        options.durability = .normal
        options.memoryBudget = budget
        let base: any Storage = kind == 0 ? try FileStorage(path: path) : try SQLiteStorage(path: path + ".sqlite")
        let storage = CountingStorage(base)
        options.storage = .custom(storage)
        return (try Store(path: "", options: options), storage)
    }

    func fill(_ store: Store, _ count: Int, size: Int = 100) throws -> VersionID {
        try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(try id(Self.name($0)), data: Self.data($0, size)) }).id
    }

    func check(_ store: Store, _ version: VersionID, _ i: Int, size: Int = 100) throws {
        let data = Self.data(i, size)
        try id(Self.name(i)).bytes.withUnsafeBytes { raw in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, size), alignment: 1)
            defer { buffer.deallocate() }
            var asked: [Int] = []
            let fetched = try store.fetch(raw, at: version) {
                asked.append($0); return buffer.baseAddress
            }
            guard case .copied(size, version) = fetched, asked == [size],
                data.withUnsafeBytes({ Bytes.equal($0, UnsafeRawBufferPointer(rebasing: buffer[..<size])) })
            else {
                throw StoreError(.damaged, "value \(i) differs from the stored one")
            }
        }
    }

    // MARK: Memory

    @Test(arguments: [0, 1], [0, 100, 9_000, 70_000]) func whatWasReadIsNotAskedForAgain(kind: Int, size: Int) throws {
        let count = size > 1_000 ? 40 : 500
        var version: VersionID?
        do {
            let (store, _) = try open(kind)
            version = try fill(store, count, size: size)
            try store.close()
        }
        let head = try #require(version)
        let (store, storage) = try open(kind)
        for i in 0..<count { try check(store, head, i, size: size) }
        let reads = storage.reads
        #expect(reads > 0 && (size > 1_000 || reads < count / 2))
        for i in 0..<count { try check(store, head, i, size: size) }
        for i in 0..<count { #expect(try store.value(id(Self.name(i)), at: head)?.data == Self.data(i, size)) }
        #expect((storage.reads == reads) == (size <= 64 << 10), "\(storage.reads - reads) more")
        let isAbsent = try bytes("absent").withUnsafeBytes { try store.fetch($0, at: head) { _ in nil }.isAbsent }
        #expect(isAbsent)
        try store.close()
        #expect(code { try check(store, head, 1, size: size) } == .closed)
    }

    @Test(arguments: [0, 1]) func theBudgetIsKept(kind: Int) throws {
        let (store, _) = try open(kind, budget: 2 << 20)
        let head = try fill(store, 16_000)
        var random = SeededRandom(seed: 1)
        for i in 0..<8_000 {
            try check(store, head, Int(random.next() % 16_000))
            if i % 1_000 == 0 { #expect(store.records.blocks.memoryInUse <= store.records.blocks.memoryLimit) }
        }
        #expect(store.records.blocks.memoryInUse > 200 << 10 && store.records.blocks.memoryLimit <= 1 << 20)
        try store.close()
    }

    // MARK: Changes behind the reader's back

    @Test func theEndOfASegmentGrowsUnderABlock() throws {
        let (store, storage) = try open(), (other, _) = try open()
        var versions: [VersionID] = []
        for i in 0..<300 {
            versions.append(try store.makeVersion(basedOn: versions.last, changes: [.insert(try id("k"), data: Self.data(i))]).id)
            let read = storage.reads
            #expect(try store.value(id("k"), at: versions[i])?.data == Self.data(i))
            #expect(storage.reads <= read + 2)
            if i % 7 == 0 { #expect(try other.value(id("k"), at: versions[i])?.data == Self.data(i)) }
        }
        for (i, version) in versions.enumerated() {
            #expect(try store.value(id("k"), at: version)?.data == Self.data(i))
            #expect(try other.value(id("k"), at: version)?.data == Self.data(i))
        }
        try store.close()
        try other.close()
    }

    @Test func blocksThatWereReadTooEarlyAreReadAgain() throws {
        let (writer, _) = try open()
        let head = try fill(writer, 50)
        try writer.close()
        let (store, storage) = try open()
        _ = try store.count(at: head)
        // Simulates a read of the end of the block while it is being written.
        storage.meddleOnce { buffer in for i in buffer.indices { buffer[i] ^= 0x55 } }
        for i in 0..<50 { try check(store, head, i) }
        let reads = storage.reads
        for i in 0..<50 { try check(store, head, i) }
        #expect(storage.reads == reads, "the cached entry was never corrected")
        try store.close()
    }

    @Test func damageBehindTheBlocksIsFoundByVerify() throws {
        let (store, _) = try open()
        let head = try fill(store, 200)
        for i in 0..<200 { try check(store, head, i) }
        let name = try #require(try System.names(in: path + "/segments").first { $0.hasSuffix(".seg") })
        let file = path + "/segments/" + name
        var bytes = try readFile(file)
        let needle = Self.data(17)
        let at = try #require((0..<bytes.count - 100).first { bytes[$0..<$0 + 100].elementsEqual(needle) })
        bytes[at + 50] ^= 1
        try writeFile(file, bytes)
        // The block in memory is intact and may be used; the damage on the disk is reported.
        try check(store, head, 17)
        let report = try store.verifyRecords(OperationControl())
        #expect(!report.isWhole && report.damages.allSatisfy { $0.version == nil || $0.version == head })
        let (fresh, _) = try open()
        let isThere = try fresh.contains(head)
        #expect(!isThere || code { try check(fresh, head, 17) } == .damaged)
    }

    @Test func recordsThatCompactionMovedAreKeptInMemoryAgain() throws {
        var heads: [VersionID] = []
        for i in 0..<30 {
            let (store, _) = try open()
            heads.append(try store.makeVersion(basedOn: heads.last, changes: [.insert(try id(Self.name(i)), data: Self.data(i))]).id)
            try store.close()
        }
        let head = try #require(heads.last)
        let (store, storage) = try open()
        for i in 0..<15 { #expect(try store.value(id(Self.name(i)), at: head)?.data == Self.data(i)) }
        for _ in 0..<2 {
            var options = Store.Options()
            options.compaction = .onRequest
            options.compactionGrace = 0
            let compacting = try Store(path: path, options: options)
            _ = try compacting.compact()
            try compacting.close()
        }
        #expect(try System.names(in: path + "/segments").filter { $0.hasSuffix(".seg") }.count == 1)
        for _ in 0..<3 { for i in 0..<30 { #expect(try store.value(id(Self.name(i)), at: head)?.data == Self.data(i)) } }
        let reads = storage.reads
        for i in 0..<30 { #expect(try store.value(id(Self.name(i)), at: head)?.data == Self.data(i)) }
        #expect(storage.reads == reads)
        try store.close()
    }

    // MARK: Many at once

    @Test(arguments: [0, 1]) func manyReadWhileOthersSave(kind: Int) throws {
        let (store, _) = try open(kind, budget: 2 << 20)
        let first = try fill(store, 6_000)
        let heads = Lock()
        nonisolated(unsafe) var head = first
        let errors = Parallel.run(threads: 8, times: 600) { thread, turn in
            var random = SeededRandom(seed: UInt64(thread * 10_000 + turn))
            if thread == 0 {
                guard turn % 5 == 0 else { return }
                let next = try store.makeVersion(
                    basedOn: heads.withLock { head }, changes: [.update(try id(Self.name(6_000 + turn)), data: Self.data(turn))])
                heads.withLock { head = next.id }
            } else if turn % 10 == 0 {
                let at = heads.withLock { head }
                if try store.value(id(Self.name(6_000)), at: at)?.data != Self.data(0), at != first {
                    throw StoreError(.damaged, "a new value is not there")
                }
            } else {
                let i = Int(random.next() % 6_000)
                try check(store, first, i)
            }
        }
        #expect(errors.isEmpty, "\(errors)")
        #expect(store.records.blocks.memoryInUse <= store.records.blocks.memoryLimit)
        try store.close()
    }

    /// A value that cannot be copied from memory at once is still looked up only once.
    @Test func aSlowFetchAsksTheMapOnce() throws {
        #if DEBUG
        let (store, _) = try open()
        let head = try fill(store, 3, size: 10_000)
        let looks = try Work.mapLooks.counting { for i in 0..<3 { try check(store, head, i, size: 10_000) } }
        #expect(looks == 3)
        try store.close()
        #endif
    }

    @Test func mapsAreLetGoOfWhileTheyAreRead() throws {
        let store = try {
            var options = Store.Options(); options.storage = .memory; options.memoryBudget = 1 << 20;
            return try Store(path: "", options: options)
        }()
        var versions: [VersionID] = []
        for i in 0..<400 {
            versions.append(try store.makeVersion(basedOn: versions.last, changes: [.insert(try id("k"), data: bytes("\(i)"))]).id)
        }
        let all = versions
        let errors = Parallel.run(threads: 6, times: 1_500) { thread, turn in
            var random = SeededRandom(seed: UInt64(thread * 10_000 + turn))
            let i = thread == 0 ? 399 : Int(random.next() % 400)
            guard try store.value(id("k"), at: all[i])?.data == bytes("\(i)") else {
                throw StoreError(.damaged, "version \(i) has another value")
            }
        }
        #expect(errors.isEmpty, "\(errors)")
        #expect(store.maps.cache.count < 400)
        try store.close()
    }
}

extension Store.Fetched {
    var isAbsent: Bool { if case .absent = self { true } else { false } }
}
