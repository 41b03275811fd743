import Glibc
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSUpkeep

/// Records, snapshots and versions that no honest replica makes. Each is refused with its name, and does no harm to others.
@Suite struct HostileInputTests {
    @Test func aTableThatNamesAnIDManyTimesIsDamaged() throws {
        let many = try (0..<2_000).map { _ in Value.Change.insert(try id("same"), data: [1]) }
        let (store, _) = try hookedStore([
            try hostileRecord(plainVersion("many"), many),
            try hostileRecord(plainVersion("unsorted"), (0..<2_000).reversed().map { .insert(try id("k\($0)"), data: [1]) }),
            try hostileRecord(
                plainVersion("across"), (0..<128).map { .insert(try id(String(UnicodeScalar(UInt8(33 + $0 % 64)))), data: [1]) }),
            try hostileRecord(plainVersion("invalid"), [.insert(ValueID(unchecked: [0xFF, 0xFE]), data: [1])]),
            try hostileRecord(plainVersion("good"), [.insert(try id("k"), data: [1])]),
        ])
        for name in ["many", "unsorted", "across", "invalid"] {
            #expect(code { _ = try store.count(at: VersionID(name)) } == .damaged, "\(name)")
            #expect(code { _ = try store.changes(madeIn: VersionID(name)) } == .damaged, "\(name)")
        }
        #expect(code { _ = try store.value(.init(id: id("same"), version: VersionID("many"))) } == .damaged)
        #expect(try store.value(id("k"), at: VersionID("good"))?.data == [1])
        let report = try store.verify()
        #expect(report.damages.count == 4 && report.values >= 1)
    }

    @Test func aDeflatedValueThatClaimsMoreThanDeflateCanHoldIsDamaged() throws {
        // Found by fuzzing: a few bytes could claim any size, and that much memory was reserved.
        func read(size: Int, stored: Int) throws -> Int? {
            var page = ByteWriter()
            page.integer(UInt64(0))
            page.varint(0)
            page.varint(0)
            page.raw([Value.Change.Kind.insert.rawValue | RecordTable.Encoding.deflate.rawValue << 3, 1, UInt8(ascii: "k")])
            page.varint(UInt64(size))
            page.varint(UInt64(stored))
            page.patch(UInt32(page.bytes.count - RecordTable.pageHeaderSize), at: 4)
            page.patch(page.bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[4...])) }, at: 0)
            let version = try plainVersion("v")
            let header = RecordHeader(
                id: version.id, predecessors: [], timestamp: 1, valueDataSize: UInt64(size), changeCount: 1, pageCount: 1, dependencies: [],
                blobs: [],
                metadata: Metadata(), tableOffset: 100, tableSize: page.bytes.count, bodiesSize: stored + RecordTable.bodyHeaderSize,
                checksum: 0)
            return try page.bytes.withUnsafeBytes { raw in
                var needs: Int?
                return try RecordTable.readPage(raw, number: 0, of: header, needs: &needs) { _ in }?.size
            }
        }
        #expect(try read(size: 1_033_032, stored: 1_000) == nil)
        #expect(try read(size: Limits.valueSize, stored: 20) == nil)
        #expect(try read(size: 1_032_000, stored: 1_000) != nil)
        // A map from a forged cache may claim a wrong size too.
        let version = try VersionID("v"), stored = [UInt8](repeating: 7, count: 1_000)
        for (size, isTaken) in [(1_000, true), (1_032_000, true), (1_033_032, false), (Int(UInt32.max - 1), false)] {
            var body = ByteWriter()
            body.integer(
                Array("k".utf8).withUnsafeBytes { k in
                    stored.withUnsafeBytes { RecordTable.bodyChecksum(sizeField: 1_000, id: k, version: version, stored: $0) }
                })
            body.integer(UInt32(1_000))
            body.raw(stored)
            let taken = Array("k".utf8).withUnsafeBytes { k in
                body.bytes.withUnsafeBytes { RecordTable.body($0, size: size, id: k, version: version) != nil }
            }
            #expect(taken == isTaken, "\(size)")
        }
        for (size, isVoid) in [(Limits.valueSize, false), (Limits.valueSize + 1, true), (Int(MapEntry.unknownSize), false)] {
            var builder = FlatMapBuilder(MemoryCacheWriter(), expected: 1)
            try Array("k".utf8).withUnsafeBytes { try builder.append($0, MapEntry(version: 0, size: UInt32(size), bodyOffset: 1)) }
            let bytes = try #require(try builder.finish(RandomName(high: 1, low: 2)))
            #expect((FlatMap(bytes, versionLimit: 1) == nil) == isVoid, "\(size)")
        }
        // The most compressible value is stored and read.
        let store = try memoryStore(), zeros = [UInt8](repeating: 0, count: 20_000_000)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(try id("k"), data: zeros)])
        #expect(try store.value(id("k"), at: made.id)?.data == zeros)
        #expect(try store.verify().isWhole)
    }

    @Test func aRecordReadBackMustBeOfTheVersionAskedFor() throws {
        let a = try plainVersion("a"), b = try plainVersion("b", timestamp: 2), otherA = try plainVersion("a", timestamp: 3)
        let (store, _) = try hookedStore(
            try [a, b, otherA].map { try hostileRecord($0, [.insert(try id("k"), data: Array($0.id.description.utf8))], summing: false) })
        #expect(try store.version(a.id) == a && store.version(b.id) == b)
        let asked = try #require(store.quietHistory.ordinal(of: a.id)), own = store.quietHistory.rows[Int(asked)]
        let other = store.quietHistory.rows[Int(try #require(store.quietHistory.ordinal(of: b.id)))]
        // What a forged cache of the history may claim: the location and checksum of another version's record, its location alone, or its
        // checksum alone.
        for (place, checksum) in [(other.place, other.checksum), (other.place, own.checksum), (own.place, other.checksum)] {
            store.lock.withWrite { store.dag.publish(asked, place: place, checksum: checksum) }
            #expect(code { _ = try store.version(a.id) } == .damaged)
            #expect(code { _ = try store.heads() } == .damaged)
            #expect(try store.version(b.id) == b)
            guard place == other.place else { continue }
            #expect(code { _ = try store.value(id("k"), at: a.id) } == .damaged)
        }
        store.lock.withWrite { store.dag.publish(asked, place: own.place, checksum: own.checksum) }
        #expect(try store.version(a.id) == a)
    }

    @Test func aBlobShorterThanItsRecordClaimsIsDamagedBeforeThereIsMemoryForTheClaim() throws {
        let folder = TemporaryFolder(), name = try id("k"), size = 8_000_000
        func open() throws -> (Store, CountingStorage) {
            let storage = CountingStorage(try FileStorage(path: folder.path + "/store"))
            return (try Store(storage: storage, options: Store.Options()), storage)
        }
        let (writer, _) = try open()
        let version = try writer.makeVersion(basedOn: nil, changes: [.insert(name, data: [UInt8](repeating: 7, count: size))]).id
        try writer.close()
        // Another blob under its name: valid, but with only one byte.
        let blob = "store/blobs/" + (try #require(try folder.names("store/blobs").first))
        var bytes = Array(try #require(folder.read(blob)).prefix(BlobDirectory.headerSize)), table = ByteWriter(), patch = ByteWriter()
        table.integer([7].withUnsafeBytes { Bytes.crc32c($0) })
        patch.integer(UInt64(1))
        patch.integer(table.bytes.withUnsafeBytes { Bytes.crc32c($0) })
        bytes.replaceSubrange(32..<44, with: patch.bytes)
        var sum = ByteWriter()
        sum.integer(bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[..<60])) })
        bytes.replaceSubrange(60..<64, with: sum.bytes)
        try folder.write(blob, bytes + table.bytes + [7])

        let (store, storage) = try open()
        let read = storage.bytesRead
        #expect(code { _ = try store.value(name, at: version) } == .damaged)
        #expect(code { _ = try store.changes(madeIn: version) } == .damaged)
        #expect(
            code {
                _ = try name.bytes.withUnsafeBytes {
                    try store.fetch($0, at: version) { _ in
                        Issue.record("memory was asked for"); return nil
                    }
                }
            } == .damaged)
        #expect(storage.bytesRead - read < size / 2, "\(storage.bytesRead - read) bytes were asked for")
        #expect(try !store.verify().isWhole)
        try store.close()
    }

    @Test func aStoreThatCannotBeOpenedLeavesNothingOpen() throws {
        // Found by fuzzing: the connections to the database stayed open.
        let folder = TemporaryFolder(), path = folder.path + "/store.sqlite"
        var options = Store.Options()
        options.storage = .sqlite
        try Store(path: path, options: options).close()
        // A database with differently defined tables is no store.
        let connection = try SQLiteConnection(path, .write)
        try connection.run("ALTER TABLE records ADD COLUMN other", doing: "Testing")
        connection.close()
        func open() throws -> Int {
            try fileNames(in: "/proc/self/fd").count { name in
                var target = [CChar](repeating: 0, count: 4096)
                let size = readlink("/proc/self/fd/" + name, &target, target.count)
                return size > 0 && String(decoding: target[..<size].map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix(folder.path)
            }
        }
        for _ in 0..<3 { #expect(code { _ = try Store(path: path, options: options) } != nil) }
        #expect(try open() == 0)
    }

    @Test func aHistoryOfNoVersionsThatNamesACheckpointIsVoid() throws {
        // Found by fuzzing: the history ended the process.
        let persisted = PersistedMap(id: RandomName(high: 1, low: 2), base: 0, versionLimit: 0)
        let index = HistoryIndex.encode(History(), persisted, mark: [])
        #expect(try HistoryIndex.decode(index) { _ in [] } == nil)
        #expect(try HistoryIndex.decode(HistoryIndex.encode(History(), nil, mark: [])) { _ in [] } != nil)
        [0, 0].withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var reader = ByteReader(bytes)
            #expect(reader.count(atMost: -1) == nil)
        }
    }

    @Test func metadataThatIsNotSortedIsDamaged() throws {
        // As many short keys as fit, in descending order: inserting them one by one would take hours.
        var body = ByteWriter()
        let count = 400_000
        body.varint(UInt64(count))
        for i in 0..<count {
            let key = Array(String(9_999_999 - i).utf8)
            body.varint(UInt64(key.count)); body.raw(key); body.varint(0)
        }
        let empty = try hostileRecord(plainVersion("odd"), [])
        var record = Array(empty[..<(empty.count - 1)]) + body.bytes
        var writer = ByteWriter(bytes: record)
        writer.patch(UInt32(record.count - RecordHeader.preludeSize), at: 4)
        let crc = writer.bytes.withUnsafeBytes {
            Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[28...]), from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[..<24])))
        }
        writer.patch(crc, at: 24)
        record = writer.bytes
        let odd = record
        expectEnd {
            let (store, _) = try hookedStore([odd])
            #expect(try !store.contains(VersionID("odd")))
            #expect(try store.statistics().damaged == 1)
        }
        expectEnd {
            let pairs = (0..<count).map { (key: Array(String(9_999_999 - $0).utf8), value: [UInt8]()) }
            let kept = try Metadata(pairs).entries.count
            #expect(kept == count)
        }
        #expect(try Metadata([([1], [1]), ([0x61], [2]), ([1], [3])]).entries.map(\.value) == [[3], [2]])
    }

    @Test func ofThreeRecordsOfOneVersionTheSmallestPrevailsWhateverTheOrder() throws {
        let records = try (0..<3).map { try hostileRecord(plainVersion("v"), [.insert(try id("k"), data: [UInt8($0)])]) }
        var seen: Set<[UInt8]> = []
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (store, _) = try hookedStore(order.map { records[$0] })
            seen.insert(try #require(try store.value(id("k"), at: VersionID("v"))).data)
        }
        #expect(seen.count == 1)
    }

    @Test func longRowsOfMergesAreMergedInTime() throws {
        try HostileCostTests.isLinear(1_500) { height in try Self.mergeOfRows(height) }
    }

    /// Merges two sides that consist of merges alone, each of its predecessor and the one before. Returns how many versions the merge
    /// visits.
    private static func mergeOfRows(_ height: Int) throws -> Int {
        var versions = [Store.ReceivedVersion(version: try plainVersion("base"), changes: [.insert(try id("k"), data: [0])])]
        for side in ["l", "r"] {
            var before = ["base"]
            for i in 0..<height {
                let name = "\(side)\(i)"
                let predecessors = i == 0 ? ["base"] : [before[0], before[1]]
                versions.append(
                    .init(
                        version: try plainVersion(name, predecessors, timestamp: Double(i + 2)),
                        changes: i == 0 ? [.update(try id("k"), data: Array(side.utf8))] : []))
                before = [name, before[0]]
            }
        }
        let store = try memoryStore()
        for case .problem(let error) in try store.add(versions) { throw error }
        let l = try VersionID("l\(height - 1)"), r = try VersionID("r\(height - 1)")
        let looked = try Work.versions.counting { _ = try store.merge(l, with: r, arbiter: BuiltInArbiter.mostRecentBranch) }
        #expect(try store.headIDs().count == 1)
        #expect(looked >= height, "the cost is counted")
        return looked
    }

    @Test func theEmptyRootIsWhatItIs() throws {
        let store = try memoryStore()
        expectEnd {
            #expect(code { try store.makeVersion(basedOn: EmptyRoot.id, changes: [], id: EmptyRoot.id) } == .versionMismatch)
        }
        #expect(
            code { try store.makeVersion(basedOn: nil, changes: [.insert(id("k"), data: [])], id: EmptyRoot.id) } == .versionMismatch)
        let forged = try store.add([
            .init(version: Version(id: EmptyRoot.id, predecessors: [], timestamp: 5, valueDataSize: 0, metadata: Metadata()), changes: [])
        ])
        guard case .problem(let error) = forged[0] else { Issue.record("a forged empty root was accepted"); return }
        #expect(error.code == .contentMismatch)
        #expect(try store.allVersionIDs().isEmpty)
        _ = try store.makeVersion(basedOn: EmptyRoot.id, changes: [])
        #expect(try store.allVersionIDs().count == 2)
    }

    @Test func aBatchMayNameAVersionTwice() throws {
        let store = try memoryStore()
        func received(_ name: String, _ data: UInt8) throws -> Store.ReceivedVersion {
            .init(version: try plainVersion(name), changes: [.insert(try id("k"), data: [data])])
        }
        let results = try store.add([received("a", 1), received("a", 1), received("a", 2), received("A", 1), received("b", 1)])
        let names = results.map { result -> String in
            switch result {
            case .added: "added"
            case .alreadyPresent: "present"
            case .repaired: "repaired"
            case .problem(let error): error.code == .versionMismatch ? "mismatch" : "\(error)"
            }
        }
        #expect(names == ["added", "present", "mismatch", "added", "added"])
        #expect(try store.allVersionIDs().count == 3)
        #expect(try store.verify().isWhole)
    }

    @Test func anIndexToImportThatNamesEachNodeManyTimesEnds() throws {
        let temporary = TemporaryFolder(), path = temporary.path
        func write(_ folder: String, _ name: String, _ text: String) throws {
            var made = path
            for part in folder.split(separator: "/") { made += "/" + part; mkdir(made, 0o700) }
            try temporary.write("\(folder)/\(name)", text)
        }
        func node(_ key: String, _ children: String) throws {
            try write("maps/__llvs_values/\(key)/V", "1.json", "{\"children\":{\(children)}}")
        }
        func names(_ key: String) -> String {
            "\"nodes\":[" + (0..<100).map { _ in "{\"key\":\"\(key)\",\"version\":\"V1\"}" }.joined(separator: ",") + "]"
        }
        mkdir(path + "/versions", 0o700)
        try temporary.write("versions/V1.json", "{\"identifier\":\"V1\",\"timestamp\":1}")
        try node("__/llvs_root", names("a"))
        for (key, next) in zip("abcdefghijk", "bcdefghijkl") { try node(String(key), names(String(next))) }
        try node("l", "\"values\":[{\"valueReference\":{\"valueId\":\"x\",\"storedVersionId\":\"V1\"}}]")
        try write("values/x/V", "1.json", "bytes")
        expectEnd {
            let store = try memoryStore()
            let result = try StoreImporter.importStore(at: path, into: store)
            let ids = try store.allVersionIDs().count, value = try store.value(id("x"), at: VersionID("V1"))?.data
            #expect(ids == 1 && value == Array("bytes".utf8), "\(result.problems)")
        }
    }

    @Test func aSnapshotThatClaimsTheMostVersionsIsSurvived() throws {
        let area = "hostile \(VersionID.random())"
        var options = StoreCoordinator.Options()
        options.snapshotPolicy = .auto
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store, options: options)
        let transport = MemoryTransport(name: area)
        try coordinator.attach(Exchange(store: store, transport: transport), name: "shared")
        try coordinator.save([.insert(id("k"), data: [1])])
        var manifest = SnapshotManifest(snapshotID: VersionID.random().description, createdAt: -1e300, latestVersionID: "x")
        manifest.versionCount = .max
        try transport.writeSnapshotFile("manifest.json", manifest.encoded())
        try coordinator.exchange()
    }

    @Test func pendingVersionsComeOnceAllIsHere() throws {
        func record(_ name: String, _ predecessors: [String], _ changes: [Value.Change] = []) throws -> [UInt8] {
            try hostileRecord(plainVersion(name, predecessors), changes)
        }
        let (store, storage) = try hookedStore([
            try record("x", ["y"]), try record("y", ["x"]), // a cycle
            try record("self", [], [.preserve(.init(id: id("k"), version: VersionID("self")))]),
            try record("m", ["p", "q"]), try record("m", ["p", "q"]), try record("child", ["m"]),
            try record("later", ["p"], [.preserve(.init(id: id("k"), version: VersionID("child")))]),
        ])
        #expect(try store.allVersionIDs().isEmpty && store.statistics().pending == 6)
        storage.inject(try record("q", []))
        #expect(try store.reloadHistory() == 1)
        storage.inject(try record("p", []))
        #expect(try store.reloadHistory() == 4)
        #expect(try store.statistics().pending == 3)
        #expect(try store.headIDs().map(\.description).sorted() == ["later"] || store.headIDs().count == 2)
        #expect(code { _ = try store.value(id("k"), at: VersionID("later")) } == .damaged)
    }

    @Test func whatWaitsForAVersionComesWhenItIsMadeHere() throws {
        let (store, storage) = try hookedStore()
        storage.inject(try hostileRecord(plainVersion("child", ["mine"], timestamp: 2), []))
        storage.inject(try hostileRecord(plainVersion("of-root", [EmptyRoot.id.description]), []))
        try store.reloadHistory()
        #expect(try store.statistics().pending == 2)
        nonisolated(unsafe) var told: [VersionID] = []
        let observation = store.observeVersions { told += $0 }
        defer { observation.cancel() }
        _ = try store.makeVersion(basedOn: nil, changes: [], id: VersionID("mine"))
        #expect(try store.contains(VersionID("child")))
        _ = try store.makeVersion(basedOn: EmptyRoot.id, changes: [])
        #expect(try store.contains(VersionID("of-root")))
        #expect(try store.statistics().pending == 0)
        #expect(try told.contains(VersionID("child")) && told.contains(VersionID("of-root")))
    }

    /// While a pending version is admitted, it is in neither list. A lookup at that moment finds it.
    @Test func whatIsBeingLetInIsFound() throws {
        let (store, storage) = try hookedStore(), child = try VersionID("child")
        let large = try Value.Change.insert(id("large"), data: [UInt8](repeating: 1, count: 100))
        storage.inject(try hostileRecord(plainVersion("child", ["mine"], timestamp: 2), [large], blobThreshold: 10))
        try store.reloadHistory()
        #expect(try store.statistics().pending == 1)
        nonisolated(unsafe) var found: [Bool] = []
        nonisolated(unsafe) var isAsking = false
        storage.isThere = { _ in
            guard !isAsking else { return true }
            isAsking = true
            found.append((try? store.version(child)) != nil)
            return true
        }
        _ = try store.makeVersion(basedOn: nil, changes: [], id: VersionID("mine"))
        #expect(found == [true])
        #expect(try store.contains(child) && store.statistics().pending == 0)
    }

    @Test func timestampsAtTheirExtremes() throws {
        let store = try memoryStore()
        for (i, time) in [
            Double.greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, -0.0, 0, .leastNormalMagnitude,
        ].enumerated() {
            let version = Version(id: try VersionID("v\(i)"), predecessors: [], timestamp: time, valueDataSize: 0, metadata: Metadata())
            let file = InterchangeEncoder.version(version)
            let again = try InterchangeDecoder.version(file, name: version.id)
            #expect(again.timestamp.bitPattern == time.bitPattern)
            guard case .added = try store.add([.init(version: version, changes: [.insert(try id("k"), data: [UInt8(i)])])])[0] else {
                Issue.record("\(time)"); continue
            }
            let next = try store.makeVersion(basedOn: version.id, changes: [])
            #expect(next.timestamp.isFinite && next.timestamp >= time)
        }
        _ = try store.mergeHeads(into: VersionID("v0"), arbiter: BuiltInArbiter.mostRecentChange)
        #expect(try store.headIDs().count == 1)
        #expect(try store.value(id("k"), at: store.headIDs()[0])?.data == [0])
    }

    @Test func valuesAtEveryThreshold() throws {
        let directory = TemporaryDirectory()
        let sizes = [0, 1, 255, 256, 257, 65_535, 65_536, 65_537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]
        var random = SeededRandom(seed: 7)
        let noise = (0..<(1 << 20) + 1).map { _ in UInt8(truncatingIfNeeded: random.next() as UInt64) },
            zeros = [UInt8](repeating: 0, count: noise.count)
        try withExtendedLifetime(directory) {
            var version: VersionID?
            do {
                let store = try Store(path: directory.path + "/s")
                version = try store.makeVersion(
                    basedOn: nil,
                    changes: sizes.flatMap {
                        [.insert(try id("n\($0)"), data: Array(noise[..<$0])), .insert(try id("z\($0)"), data: Array(zeros[..<$0]))]
                    }
                ).id
                try store.close()
            }
            let store = try Store(path: directory.path + "/s")
            let at = try #require(version)
            for size in sizes {
                #expect(try store.value(id("n\(size)"), at: at)?.data == Array(noise[..<size]))
                #expect(try store.value(id("z\(size)"), at: at)?.data == Array(zeros[..<size]))
            }
            #expect(try store.verify().isWhole)
        }
    }

    @Test func longIDsWithASharedPrefix() throws {
        var random = SeededRandom(seed: 11)
        let store = try memoryStore()
        var model: [ValueID: UInt8] = [:]
        var at: VersionID?
        let stem = [UInt8](repeating: 0x61, count: 512)
        for round in UInt8(0)..<20 {
            var changes: [ValueID: Value.Change] = [:]
            for _ in 0..<60 {
                // Ids with shared prefixes of any length, beyond the depth of nodes, up to the longest id.
                let shared = Int.random(in: 0...512, using: &random)
                var text = Array(stem[..<shared]) + [UInt8(0x61 + Int.random(in: 0..<3, using: &random))]
                if Bool.random(using: &random) { text += [UInt8](repeating: 0x62, count: 4_096 - text.count) }
                let key = try ValueID(utf8: text)
                if model[key] != nil, Int.random(in: 0..<3, using: &random) == 0 {
                    changes[key] = .remove(key)
                } else {
                    changes[key] = .insert(key, data: [round])
                }
            }
            at = try store.makeVersion(basedOn: at, changes: Array(changes.values)).id
            for (key, change) in changes { model[key] = change.kind == .remove ? nil : round }
            let version = try #require(at)
            #expect(try store.count(at: version) == model.count)
            let all = try store.values(at: version, limit: .max)
            #expect(all.map(\.id) == model.keys.sorted())
            #expect(all.allSatisfy { model[$0.id] == $0.data.first })
            let bound = Array(model.keys.randomElement(using: &random)?.bytes ?? []),
                other = Array(stem[..<Int.random(in: 0...512, using: &random)])
            for (low, high) in [(bound, other), (other, bound)] {
                let expected = model.keys.filter { Bytes.compare($0.bytes, low) >= 0 && Bytes.compare($0.bytes, high) < 0 }.sorted()
                #expect(try store.count(at: version, in: .range(from: low, to: high)) == expected.count)
                #expect(try store.references(at: version, in: .range(from: low, to: high), limit: .max).map(\.id) == expected)
                let prefixed = model.keys.filter { $0.bytes.starts(with: low) }.sorted()
                #expect(try store.references(at: version, in: .prefix(low), limit: .max).map(\.id) == prefixed)
            }
        }
    }
}
