import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Damage costs only what it hits, at any size. References between records are verified.
@Suite struct PartialDamageTests {
    static let value = StorageConformance.bytes(seed: 1, count: 100), other = StorageConformance.bytes(seed: 2, count: 100),
        large = StorageConformance.bytes(seed: 3, count: 150_000)

    enum Place: String, CaseIterable { case file, openFile, sqlite, host }

    final class Subject {
        let directory: String, place: Place, host = ArrayHost()
        var left: Store?
        init(_ directory: String, _ place: Place) { self.directory = directory; self.place = place }

        func open() throws -> Store {
            if place == .host {
                return try Store(
                    storage: CallbackStorage(inspector: Store.versionNamed, functions: host.functions), options: Store.Options())
            }
            return try DiskStore.open(place == .sqlite ? 1 : 0, directory, durability: place == .openFile ? .full : .normal)
        }
        /// Closes the store, or leaves it open, as a process does that still runs and syncs each version.
        func done(_ store: Store) throws { if place == .openFile { left = store } else { try store.close() } }
        func flip(_ bytes: [UInt8]) throws {
            guard place == .host else { return try LLVSTestHelpers.flip(bytes, in: directory) }
            for i in host.records.indices {
                guard
                    let at = (0...max(0, host.records[i].count - 16)).first(where: {
                        host.records[i][$0..<min($0 + 16, host.records[i].count)].elementsEqual(bytes[..<16])
                    })
                else { continue }
                host.records[i][at + 20] ^= 1
            }
        }
    }

    /// Version a has two values, and b, made on it, has another one with the bytes of the second.
    static func make(_ subject: Subject, withLarge: Bool) throws -> (VersionID, VersionID) {
        let store = try subject.open()
        var changes: [Value.Change] = [.insert(try id("damaged"), data: value), .insert(try id("whole"), data: other)]
        if withLarge { changes.append(.insert(try id("large"), data: large)) }
        let a = try store.makeVersion(basedOn: nil, changes: changes).id
        let b = try store.makeVersion(basedOn: a, changes: [.insert(id("later"), data: other)]).id
        _ = try store.makeVersion(basedOn: b, changes: [])
        try subject.done(store)
        return (a, b)
    }

    @Test(arguments: Place.allCases, [false, true]) func aDamagedValueCostsTheValue(place: Place, withLarge: Bool) throws {
        try withTemporaryDirectory { directory in
            let subject = Subject(directory, place), (a, b) = try Self.make(subject, withLarge: withLarge)
            let elsewhere = try Store.inMemory(), memory = MemoryTransport(name: directory)
            let before = try subject.left ?? subject.open()
            _ = try Exchange(store: before, transport: memory).send()
            _ = try Exchange(store: elsewhere, transport: memory).retrieve()
            if place != .openFile { try before.close() }
            try subject.flip(Self.value)

            let store = try subject.open()
            #expect(try store.allVersionIDs().count == 3)
            #expect(code { _ = try store.value(id("damaged"), at: b) } == .damaged)
            #expect(try store.value(id("whole"), at: b)?.data == Self.other && store.value(id("later"), at: b)?.data == Self.other)
            if withLarge { #expect(try store.value(id("large"), at: b)?.data == Self.large) }
            let report = try store.verify()
            let lost = report.damages.filter { $0.lost != .nothing }
            let lostValue = try id("damaged")
            #expect(lost.map(\.lost) == [.value] && lost.map(\.version) == [a] && lost.map(\.value) == [lostValue], "\(report)")
            #expect(report.versions == 3 && report.pending == 0)
            // A retrieve restores it, and does not touch the rest.
            #expect(try Exchange(store: store, transport: memory).retrieve().repaired == [a])
            #expect(try store.value(id("damaged"), at: b)?.data == Self.value)
            #expect(try store.verify().damages.allSatisfy { $0.lost == .nothing })
            try store.close()
            try subject.left?.close()
            let again = try subject.open()
            #expect(try again.value(id("damaged"), at: b)?.data == Self.value)
            #expect(try again.verify().damages.allSatisfy { $0.lost == .nothing })
            try again.close()
        }
    }

    /// A retrieve brings the value back without an earlier read or verification, too.
    @Test(arguments: Place.allCases) func theNextRetrieveBringsItBack(place: Place) throws {
        try withTemporaryDirectory { directory in
            let subject = Subject(directory, place), (a, b) = try Self.make(subject, withLarge: false)
            let before = try subject.left ?? subject.open(), memory = MemoryTransport(name: directory)
            _ = try Exchange(store: before, transport: memory).send()
            if place != .openFile { try before.close() }
            try subject.flip(Self.value)
            let store = try subject.open()
            #expect(try Exchange(store: store, transport: memory).retrieve().repaired == [a])
            #expect(try store.value(id("damaged"), at: b)?.data == Self.value)
            try store.close()
            try subject.left?.close()
        }
    }

    /// An unsynced frame may be torn by a power cut: no part of an incomplete batch counts.
    @Test func aFrameThatMayBeTornCountsAsAWhole() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            let a = try store.makeVersion(basedOn: nil, changes: [.insert(id("damaged"), data: Self.value)]).id
            let b = try store.set(["x": "1"], store.version(a))
            try flip(Self.value, in: directory)
            let reader = try DiskStore.open(0, directory, readOnly: true)
            #expect(try reader.allVersionIDs().isEmpty && !reader.contains(b.id) && reader.statistics().pending == 1)
            try reader.close()
            try store.close()
        }
    }

    /// A batch with one damaged record: the other records are used, and so are the intact parts of the damaged one.
    @Test(arguments: [true, false]) func recordsOfABatchCountOneByOne(headerIsDamaged: Bool) throws {
        try withTemporaryDirectory { directory in
            let storage = try FileStorage(path: directory + "/store")
            let text = "a value that is looked for, and that is not deflated"
            try StorageConformance.append(
                storage,
                [
                    hostileRecord(plainVersion("a"), [.insert(id("k"), data: [1])]),
                    hostileRecord(plainVersion("the-damaged-one", ["a"]), [.insert(id("l"), data: bytes(text))]),
                    hostileRecord(plainVersion("c", ["a"]), [.insert(id("m"), data: [3])]),
                ])
            try storage.close(discarding: false)
            try flip(bytes(headerIsDamaged ? "the-damaged-one" : text), in: directory + "/store/segments", at: 3)
            let store = try DiskStore.open(0, directory)
            #expect(try store.allVersionIDs().count == (headerIsDamaged ? 2 : 3))
            let report = try store.verify()
            #expect(report.damages.map(\.lost) == [headerIsDamaged ? .version : .value])
            try store.close()
        }
    }

    /// The directory of a table has no checksum of its own. Its claims are verified, and a wrong directory is reported.
    @Test func aDamagedDirectoryIsDamage() throws {
        try withTemporaryDirectory { directory in
            let record = try hostileRecord(plainVersion("v"), (0..<200).map { .insert(try id("k\($0)"), data: [1]) })
            let header = try record.withUnsafeBytes { b -> RecordHeader in
                guard case .whole(let header) = RecordHeader.read(b, recordLength: UInt64(b.count)) else {
                    throw StoreError(.internal, "no header")
                }
                return header
            }
            var wrong = record
            wrong[header.bodiesOffset - 8] ^= 1
            let (store, _) = try hookedStore([wrong])
            #expect(try store.verify().damages.map(\.lost) == [.version])
            #expect(throws: StoreError.self) { _ = try store.changes(madeIn: VersionID("v")) }
        }
    }

    // MARK: Blobs

    /// A blob has the bytes of another, and every checksum is right. The digest reveals that they belong to another value.
    @Test func aBlobIsBoundToItsValue() throws {
        try withTemporaryDirectory { directory in
            let x = Filling.noise(7, 1_500_000), y = Filling.noise(8, 1_500_000), memory = MemoryTransport(name: directory)
            var store = try DiskStore.open(0, directory)
            let a = try store.makeVersion(basedOn: nil, changes: [.insert(id("x"), data: x), .insert(id("y"), data: y)]).id
            _ = try Exchange(store: store, transport: memory).send()
            try store.close()
            let folder = directory + "/store/blobs/", names = try System.names(in: folder)
            let header = RandomName(hex: names[0].dropLast(5)), other = try readFile(folder + names[1])
            let isX = try readFile(folder + names[0]).suffix(100).elementsEqual(x.suffix(100)), mine = isX ? x : y, name = isX ? "x" : "y",
                key = try id(name)
            #expect(try readFile(folder + names[0])[44..<60].elementsEqual(mine.withUnsafeBytes { SHA256.digest($0) }.prefix(16)))
            func write(_ blob: [UInt8], telling digest: Bool) throws {
                var blob = blob
                blob.withUnsafeMutableBytes { b in
                    header?.store(in: b, at: 16)
                    if !digest { for i in 44..<60 { b[i] = 0 } }
                    b.storeBytes(
                        of: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<60])).littleEndian, toByteOffset: 60, as: UInt32.self)
                }
                try writeFile(folder + names[0], blob)
            }
            let own = try readFile(folder + names[0])
            try write(other, telling: true)
            store = try DiskStore.open(0, directory)
            #expect(code { _ = try store.value(id(name), at: a) } == .damaged)
            var some = [UInt8](repeating: 0, count: 10)
            #expect(
                code { _ = try some.withUnsafeMutableBytes { try store.openValue(id(name), at: a)?.read(at: 0, into: $0) } }
                    == .damaged)
            #expect(try store.verify().damages.map(\.value) == [key])
            #expect(try Exchange(store: store, transport: memory).retrieve().repaired == [a])
            #expect(try store.value(id(name), at: a)?.data == mine && store.verify().isWhole)
            try store.close()
            // A blob without a digest, as former versions wrote them, is read. A verification checks all its bytes.
            try write(own, telling: false)
            store = try DiskStore.open(0, directory)
            #expect(try store.value(id(name), at: a)?.data == mine && store.verify().isWhole)
            try store.close()
            try write(other, telling: false)
            store = try DiskStore.open(0, directory)
            #expect(try store.verify().damages.map(\.value) == [key])
            try store.close()
        }
    }

    /// Even a small value has a digest if it is in a blob.
    @Test func aValueInABlobAlwaysHasADigest() throws {
        let encoder = RecordEncoder()
        try [Value.Change.insert(id("k"), data: [1, 2, 3])].withBorrowed { borrowed in
            let changes = RecordChanges(borrowed)
            var given: [UInt8] = []
            try encoder.encode(plainVersion("v"), changes, blobThreshold: 1) {
                given = $1; return BlobID(high: 1, low: 2)
            }
            var digest: [UInt8]?
            try encoder.bytes(changes).withUnsafeBytes { b in
                var reader = RecordReader(b)
                guard case .whole(let header) = try reader.header() else { return }
                _ = try reader.forEachChange(header) { digest = $0.digest.map { Array($0) } }
            }
            #expect(digest == ([1, 2, 3] as [UInt8]).withUnsafeBytes { SHA256.digest($0) } && digest == given)
        }
    }

    // MARK: Records that contradict themselves or others

    @Test func aPreserveOfAnIDThatWasNeverStoredIsReported() throws {
        let (store, _) = try hookedStore([
            hostileRecord(plainVersion("a"), [.insert(id("stored"), data: [1])]),
            hostileRecord(plainVersion("b", ["a"]), [.remove(id("stored"))]),
            hostileRecord(plainVersion("c", ["a"]), []),
            hostileRecord(
                plainVersion("m", ["b", "c"]),
                [
                    .preserve(.init(id: id("never"), version: VersionID("a"))), .preserve(.init(id: id("stored"), version: VersionID("a"))),
                ]),
            hostileRecord(plainVersion("n", ["b", "c"]), [.preserve(.init(id: id("stored"), version: VersionID("b")))]),
        ])
        #expect(code { _ = try store.value(id("never"), at: VersionID("m")) } == .damaged)
        let report = try store.verify()
        #expect(
            try Set(report.damages.map(\.version)) == [VersionID("m"), VersionID("n")] && report.damages.map(\.value).contains(id("never")))
        #expect(report.damages.count == 2 && report.damages.allSatisfy { $0.lost == .value && $0.message.contains("stored no such value") })
    }

    @Test func aPreserveOfNoAncestorIsReported() throws {
        let (store, _) = try hookedStore([
            hostileRecord(plainVersion("a"), []),
            hostileRecord(plainVersion("b", ["a"]), [.insert(id("k"), data: [1])]),
            hostileRecord(plainVersion("c", ["a"]), [.insert(id("k"), data: [2])]),
            hostileRecord(plainVersion("d", ["a"]), []),
            hostileRecord(plainVersion("e", ["d"]), [.insert(id("own"), data: [3])]),
            // b is an ancestor of the first predecessor of m. c is an ancestor of neither predecessor of n.
            hostileRecord(plainVersion("m", ["b", "d"]), [.preserve(.init(id: id("k"), version: VersionID("b")))]),
            hostileRecord(
                plainVersion("n", ["m", "e"]),
                [
                    .preserve(.init(id: id("k"), version: VersionID("c"))), .preserve(.init(id: id("own"), version: VersionID("e"))),
                ]),
        ])
        #expect(try store.value(id("k"), at: VersionID("n"))?.data == [2])
        let report = try store.verify()
        #expect(
            try report.damages.map(\.version) == [VersionID("n")] && report.damages[0].value == id("k")
                && report.damages[0].lost == .nothing)
        #expect(report.damages[0].message.contains("not among its ancestors"))
    }

    @Test func wrongChecksumsOfValueBytesAreReported() throws {
        var version = try plainVersion("v"), right = try plainVersion("w")
        version.valueDataSize = 7
        right.valueDataSize = 3
        let (store, _) = try hookedStore([
            hostileRecord(version, [.insert(id("k"), data: [1, 2, 3])], summing: false),
            hostileRecord(right, [.insert(id("k"), data: [1, 2, 3])], summing: false),
        ])
        let report = try store.verify()
        #expect(report.versions == 2 && report.values == 2)
        #expect(
            report.damages.map(\.version) == [version.id] && report.damages[0].lost == .nothing
                && report.damages[0].message.contains("7 bytes"))
        var empty = try plainVersion("empty")
        empty.valueDataSize = 1
        #expect(try hookedStore([hostileRecord(empty, [], summing: false)]).0.verify().damages.count == 1)
    }

    @Test(arguments: FormatGrowthTests.Place.allCases) func nothingElseCountsAsTheEmptyRoot(place: FormatGrowthTests.Place) throws {
        let root = EmptyRoot.version
        var later = root, named = root, grown = root
        later.timestamp = 1
        named.metadata["by"] = bytes("\"ann\"")
        grown.predecessors = [try VersionID("a")]
        let wrong = [
            try hostileRecord(later, []), try hostileRecord(named, []), try hostileRecord(grown, []),
            try hostileRecord(root, [.insert(id("k"), data: [1])]),
            try hostileRecord(root, [.remove(id("k"))]),
        ]
        for record in wrong {
            try withTemporaryDirectory { directory in
                let child = Version(
                    id: try VersionID("child"), predecessors: [EmptyRoot.id], timestamp: 2, valueDataSize: 0, metadata: Metadata())
                let records = [try hostileRecord(plainVersion("a"), []), record, try hostileRecord(child, [.insert(id("l"), data: [2])])]
                let host = ArrayHost()
                var store = try FormatGrowthTests.store(place, directory, records, host)
                #expect(try store.allVersionIDs() == [VersionID("a")] && store.statistics().pending == 1)
                let report = try store.verify()
                #expect(
                    report.damages.count == 1 && report.damages[0].lost == .version && report.damages[0].message.contains("the empty root"))
                try store.close()
                guard place == .file else { return }
                // The right empty root admits the versions that build on it.
                let storage = try FileStorage(path: directory + "/store")
                try StorageConformance.append(storage, [hostileRecord(root, [])])
                try storage.close(discarding: false)
                store = try DiskStore.open(0, directory)
                #expect(try store.value(id("l"), at: child.id)?.data == [2] && store.value(id("k"), at: child.id) == nil)
                try store.close()
                #expect(try Salvage.run(directory + "/store", into: directory + "/salvaged").versions == 3)
            }
        }
    }
}
