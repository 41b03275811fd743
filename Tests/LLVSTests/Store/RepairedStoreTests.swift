import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Whatever could undo a repair: caches, other handles, compactions, copies, hostile files.
@Suite struct RepairedStoreTests {
    typealias Damage = RepairTests.Damage

    /// A closed, damaged store, and a place with all its versions.
    static func damaged(_ kind: Int, _ directory: String, _ damages: Damage..., more: Int = 0) throws -> (
        place: MemoryTransport, ids: [VersionID]
    ) {
        let place = MemoryTransport(name: directory), store = try DiskStore.open(kind, directory)
        var ids = try RepairTests.make(store)
        for i in 0..<more { ids.append(try store.makeVersion(basedOn: ids.last, changes: [.insert(id("more \(i)"), data: [1])]).id) }
        _ = try Exchange(store: store, transport: place).send()
        try store.close()
        for damage in damages { try RepairTests.damage(damage, directory) }
        return (place, ids)
    }

    static func repaired(_ store: Store, _ place: MemoryTransport) throws -> [VersionID] {
        try Exchange(store: store, transport: place).retrieve(verifyKnown: true).repaired
    }

    /// The last version has all the values.
    static func expectWhole(_ kind: Int, _ directory: String, _ ids: [VersionID]) throws {
        let store = try DiskStore.open(kind, directory)
        defer { try? store.close() }
        #expect(try RepairTests.isWhole(store, [ids[0], ids[1], ids[ids.count - 1]]))
        #expect(try store.allVersionIDs().count == ids.count)
        let report = try store.verify()
        #expect(report.damages.allSatisfy { $0.lost == .nothing } && report.pending == 0, "\(report.damages)")
    }

    /// A database has no files of caches that could be restored.
    @Test(arguments: [(0, "renewed"), (0, "lost"), (0, "put back"), (1, "renewed"), (1, "opened between")])
    func cachesOfBeforeTheRepairDoNoHarm(kind: Int, what: String) throws {
        try withTemporaryDirectory { directory in
            let (place, ids) = try Self.damaged(kind, directory, .valueInSealedRecord, more: 1_050)
            if kind == 0 { try copyFiles(directory + "/store/cache", directory + "/cache before") }
            var store = try DiskStore.open(kind, directory)
            #expect(store.caches.rows > 1_000)
            #expect(try Self.repaired(store, place) == [ids[0]])
            #expect(try RepairTests.isWhole(store, [ids[0], ids[1_000]]))
            try store.close()
            if kind == 0, what != "renewed" {
                if what == "lost" {
                    for name in try System.names(in: directory + "/store/cache") { try System.unlink(directory + "/store/cache/" + name) }
                } else {
                    try copyFiles(directory + "/cache before", directory + "/store/cache")
                }
            }
            if what != "renewed" { try Self.expectWhole(kind, directory, ids) }
            // The caches record the repair by now, so the two records are not compared again.
            store = try DiskStore.open(kind, directory)
            #expect(store.caches.rows > 1_000 && store.findings.damages.isEmpty)
            #expect(try Self.repaired(store, place).isEmpty)
            try store.close()
            try Self.expectWhole(kind, directory, ids)
        }
    }

    @Test(arguments: [0, 1]) func manyRepairAtOnceWhileOthersCompact(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let (place, ids) =
                kind == 0
                ? try Self.damaged(kind, directory, .valueInSealedRecord, .blobBody)
                : try Self.damaged(kind, directory, .valueInSealedRecord)
            let stores = try (0..<4).map { _ in try DiskStore.open(kind, directory) }
            let failures = Parallel.run(threads: 4, times: 6) { thread, turn in
                if thread == 3 || turn % 3 == 2 { _ = try stores[thread].compact() } else { _ = try Self.repaired(stores[thread], place) }
                _ = try stores[thread].verify()
            }
            #expect(failures.isEmpty, "\(failures)")
            for store in stores {
                try store.reloadHistory()
                #expect(try RepairTests.isWhole(store, ids))
                try store.close()
            }
            try Self.expectWhole(kind, directory, ids)
        }
    }

    /// Damage in a segment that was compacted from others, while these still exist and after they were deleted.
    @Test(arguments: [0.0, 900]) func whatWasFoldedIsRepaired(grace: Double) throws {
        try withTemporaryDirectory { directory in
            var options = Store.Options()
            options.compactionGrace = grace
            let place = MemoryTransport(name: directory), path = directory + "/store"
            var store = try Store(path: path, options: options)
            var ids = try RepairTests.make(store)
            for i in 0..<3 {
                try store.close()
                store = try Store(path: path, options: options)
                ids.append(try store.makeVersion(basedOn: ids.last, changes: [.insert(id("part \(i)"), data: [1])]).id)
            }
            _ = try Exchange(store: store, transport: place).send()
            try store.close()
            store = try Store(path: path, options: options)
            _ = try store.compact()
            if grace == 0 { _ = try store.compact() }
            try store.close()
            try RepairTests.damage(.valueInSealedRecord, directory)
            store = try Store(path: path, options: options)
            _ = try Self.repaired(store, place)
            #expect(try RepairTests.isWhole(store, ids))
            _ = try store.compact()
            #expect(try RepairTests.isWhole(store, ids))
            try store.close()
            try Self.expectWhole(0, directory, ids)
        }
    }

    @Test func aUnionWithARepairedCopyIsRepaired() throws {
        try withTemporaryDirectory { directory in
            try System.mkdir(directory + "/a")
            try System.mkdir(directory + "/b")
            let (place, ids) = try Self.damaged(0, directory + "/a", .valueInSealedRecord)
            try copyFiles(directory + "/a/store", directory + "/b/store")
            let open = try DiskStore.open(0, directory + "/a")
            let store = try DiskStore.open(0, directory + "/b")
            #expect(try Self.repaired(store, place) == [ids[0]])
            try store.close()
            #expect(throws: StoreError.self) { _ = try RepairTests.isWhole(open, ids) }
            for (from, to) in [("b", "a"), ("a", "b")] {
                try copyFiles(directory + "/\(from)/store", directory + "/\(to)/store", replacing: false)
            }
            // Handles that were open see it too.
            try open.reloadHistory()
            #expect(try RepairTests.isWhole(open, ids))
            try open.close()
            for name in ["a", "b"] { try Self.expectWhole(0, directory + "/" + name, ids) }
        }
    }

    /// A reader in the middle of a large value continues with the repaired one.
    @Test func aLargeValueIsReadOnWhileItIsReplaced() throws {
        try withTemporaryDirectory { directory in
            let (place, ids) = try Self.damaged(0, directory)
            let path = try RepairTests.blob(in: directory)
            var bytes = try readFile(path)
            bytes[bytes.count - 1_000] ^= 1
            try writeFile(path, bytes)
            let store = try DiskStore.open(0, directory), beside = try DiskStore.open(0, directory, readOnly: true)
            let reader = try #require(try beside.openValue(id("large"), at: ids[0]))
            let size = RepairTests.large.count / 2
            var half = [UInt8](repeating: 0, count: size)
            #expect(
                try half.withUnsafeMutableBytes { try reader.read(at: 0, into: $0) } == half.count
                    && half[...] == RepairTests.large[..<size])
            #expect(throws: StoreError.self) { try half.withUnsafeMutableBytes { try reader.read(at: size, into: $0) } }
            #expect(try Self.repaired(store, place) == [ids[0]])
            #expect(
                try half.withUnsafeMutableBytes { try reader.read(at: size, into: $0) } == half.count
                    && half[...] == RepairTests.large[size...])
            try beside.close()
            try store.close()
            try Self.expectWhole(0, directory, ids)
        }
    }

    /// A damaged table loses its contents, but the number of changes and the sum of their sizes remain known.
    @Test(arguments: [0, 1], ["more", "longer"]) func withoutTheTableOtherVersionsAreFoundByTheirSizes(kind: Int, what: String) throws {
        try withTemporaryDirectory { directory in
            let (_, ids) = try Self.damaged(kind, directory)
            var store = try DiskStore.open(kind, directory)
            let version = try #require(try store.version(ids[0]))
            try store.close()
            try RepairTests.damage(.table, directory)
            store = try DiskStore.open(kind, directory)
            // If the first bytes of a record are lost, its existence is unknown.
            guard try store.contains(ids[0]) else { return try store.close() }
            let hostile = try Store.inMemory(), place = MemoryTransport(name: directory + "hostile")
            var changes: [Value.Change] = [
                .insert(try id("small"), data: what == "longer" ? Filling.noise(9, 101) : RepairTests.small),
                .insert(try id("middle"), data: RepairTests.middle),
                .insert(try id("large"), data: RepairTests.large), .insert(try id("a value whose id is long"), data: RepairTests.other),
            ]
            if what == "more" { changes.append(.insert(try id("more"), data: [])) }
            _ = try hostile.add([.init(version: version, changes: changes)])
            _ = try Exchange(store: hostile, transport: place).send()
            let result = try Exchange(store: store, transport: place).retrieve(verifyKnown: true)
            #expect(
                result.repaired.isEmpty && result.versions.isEmpty && result.problems.map(\.error.code) == [.versionMismatch], "\(result)")
            try store.close()
        }
    }

    /// The cached history knows everything that a lost header said, except metadata other than the branch.
    @Test func withoutAHeaderTheHistoryIdentifiesTheRecord() throws {
        try withTemporaryDirectory { directory in
            let (place, ids) = try Self.damaged(0, directory, more: 1_050)
            var store = try DiskStore.open(0, directory)
            let version = try #require(try store.version(ids[0]))
            try store.close()
            try flip(bytes("\"ann\""), in: directory + "/store/segments", at: 1)
            store = try DiskStore.open(0, directory)
            #expect(throws: StoreError.self) { try store.version(ids[0]) }
            let changes: [Value.Change] = [
                .insert(try id("small"), data: RepairTests.small), .insert(try id("middle"), data: RepairTests.middle),
                .insert(try id("large"), data: RepairTests.large), .insert(try id("a value whose id is long"), data: RepairTests.other),
            ]
            var others = [version, version]
            others[0].timestamp += 1
            others[1].metadata = try Metadata([(bytes("by"), bytes("\"ann\"")), (Metadata.branchKey, bytes("\"main\""))])
            for other in others {
                let hostile = try Store.inMemory(),
                    theirs = MemoryTransport(name: directory + " \(other.metadata.entries.count) \(other.timestamp)")
                _ = try hostile.add([.init(version: other, changes: changes)])
                _ = try Exchange(store: hostile, transport: theirs).send()
                let result = try Exchange(store: store, transport: theirs).retrieve()
                #expect(result.repaired.isEmpty && result.problems.map(\.error.code) == [.versionMismatch], "\(result)")
            }
            #expect(try Exchange(store: store, transport: place).retrieve().repaired == [ids[0]])
            for _ in 0..<2 {
                #expect(try store.version(ids[0])?.metadata == version.metadata && store.allVersionIDs().count == ids.count)
                #expect(try RepairTests.isWhole(store, [ids[0], ids[1_000]]))
                // The store can no longer determine that the damaged bytes belonged to this version.
                #expect(try store.verify().damages.allSatisfy { $0.lost == .nothing || $0.version == nil })
                try store.close()
                store = try DiskStore.open(0, directory)
            }
            try store.close()
        }
    }

    /// A version that cannot be repaired does not prevent others from being received.
    @Test func aFolderWithFilesInThePlaceOfAValueIsAProblemOfThatVersion() throws {
        try withTemporaryDirectory { directory in
            let (place, ids) = try Self.damaged(0, directory)
            let path = try RepairTests.blob(in: directory), store = try DiskStore.open(0, directory)
            try System.unlink(path)
            try System.mkdir(path)
            try writeFile(path + "/note", [1])
            let elsewhere = try Store.inMemory()
            _ = try Exchange(store: elsewhere, transport: place).retrieve()
            let next = try elsewhere.makeVersion(basedOn: ids[1], changes: [.insert(id("next"), data: [2])]).id
            _ = try Exchange(store: elsewhere, transport: place).send()
            // This is reported although the handle may have the former file open.
            #expect(try store.verify().damages.map(\.value) == [id("large")])
            let exchange = Exchange(store: store, transport: place)
            let result = try exchange.retrieve()
            #expect(result.versions == [next] && result.repaired.isEmpty)
            #expect(
                result.problems.map(\.name) == [ids[0].description]
                    && result.problems.allSatisfy { $0.error.code == .damaged && $0.error.message.contains("Move it away") },
                "\(result.problems)")
            #expect(try readFile(path + "/note") == [1])
            try System.unlink(path + "/note")
            #expect(try exchange.retrieve().repaired == [ids[0]])
            try store.close()
            try Self.expectWhole(0, directory, ids + [next])
        }
    }
}
