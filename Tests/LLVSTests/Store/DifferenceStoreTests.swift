import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Stores in which values are differences, written record by record. Everything that reads them gives the same bytes as for a store without
/// differences.
@Suite struct DifferenceStoreTests {
    /// Writes the records of a store's versions into another store's storage. The places of their differences are those of docs/format.md.
    final class Writer {
        struct Written {
            var place: Int
            var way: Int
            var body: Int
            var base: Value.Reference?
            var data: [UInt8]
        }
        var written: [Value.Reference: Written] = [:]
        /// The locations of the records.
        var places: [VersionID: RecordPlace] = [:]
        /// The number of values that are differences.
        var count = 0
        /// Changes a difference before it is written.
        var change: (inout [UInt8], Value.Reference) -> Void = { _, _ in }
        /// Chooses the base of a value, instead of the rule of docs/format.md.
        var link: ((Value.Reference, Writer) -> (on: Value.Reference, place: Int)?)?

        private func standsOn(_ key: ValueID, after first: VersionID, in source: Store) throws -> (on: Value.Reference, place: Int)? {
            guard let before = try source.reference(key, at: first), let last = written[before], last.place < Differencing.largestPlace
            else { return nil }
            let place = last.place + 1, wanted = Differencing.basePlace(of: place)
            var at = before
            while let found = written[at], found.place > wanted, let next = found.base { at = next }
            return (at, place)
        }

        func write(
            _ source: Store, into target: Store, only: (Version) -> Bool = { _ in true },
            whole: @escaping (Version) -> Bool = { _ in false }
        ) throws {
            for version in try source.allVersionIDs().compactMap({ try source.version($0) }).sorted(by: { $0.timestamp < $1.timestamp }) {
                guard only(version) else { continue }
                var new: [ValueID: Written] = [:]
                let changes = try source.changes(madeIn: version.id)
                try changes.withBorrowed { borrowed in
                    let encoder = RecordEncoder(), recorded = RecordChanges(Array(borrowed))
                    try encoder.encode(
                        version, recorded, blobThreshold: nil,
                        difference: { [self] _, key, data, _ in
                            let value = ValueID(unchecked: key), own = Value.Reference(id: value, version: version.id)
                            new[value] = Written(place: 0, way: 0, body: 0, data: Array(data))
                            guard !whole(version), let first = version.predecessors.first,
                                let (on, place) = try link.map({ $0(own, self) }) ?? standsOn(value, after: first, in: source),
                                let base = written[on]
                            else { return nil }
                            let difference = try base.data.withUnsafeBytes {
                                try ValueDifference.make(
                                    data, checksum: Bytes.crc32c(data), from: $0, checksum: Bytes.crc32c($0),
                                    link: .init(version: on.version, body: base.body, place: place, wayBefore: base.way), room: data.count)
                            }
                            guard var made = difference else { return nil }
                            let count = made.count
                            change(&made, own)
                            new[value]?.place = place
                            new[value]?.way = base.way + count
                            new[value]?.base = on
                            return (made, !on.version.hasContentForm)
                        }
                    ) { _, _ in BlobID(high: 0, low: 0) }
                    var at = encoder.bodiesStart
                    for (i, change) in borrowed.enumerated() {
                        let key = ValueID(unchecked: change.id)
                        if !encoder.bodies[i].isNone { new[key]?.body = at }
                        if encoder.bodies[i].isDifference { count += 1 }
                        at += encoder.bodies[i].sizeInRecord
                    }
                    places[version.id] = try target.withCommitLock { try target.storage.append([encoder.pieces(recorded)]).first }
                }
                for (key, value) in new { written[Value.Reference(id: key, version: version.id)] = value }
            }
            try target.storage.sync()
        }
    }

    /// A history of edits of a text, a table and a small value, with a branch and a merge.
    static func source(_ versions: Int = 40, size: Int = 20_000, named: Bool = false) throws -> Store {
        let store = try Store.inMemory()
        var random = SeededRandom(seed: 11)
        var note = Filling.words(size, 3), table = Filling.words(2_000, 4)
        var head = try store.makeVersion(
            basedOn: nil,
            changes: [.insert(id("note"), data: note), .insert(id("small"), data: [1]), .insert(id("table"), data: table)],
            id: named ? VersionID("v-0") : nil)
        var side: Version?
        for i in 1..<versions {
            note = Filling.edited(note, &random)
            let place = Int(random.next() % 1_900)
            table.replaceSubrange(place..<place + 5, with: Array("\(10_000 + i)".utf8))
            var changes: [Value.Change] = [.update(try id("note"), data: note)]
            if i % 3 == 0 { changes.append(.update(try id("table"), data: table)) }
            if i % 5 == 0 { changes.append(.insert(try id("other \(i)"), data: [UInt8](repeating: 7, count: i))) }
            let made = try store.makeVersion(basedOn: head.id, changes: changes, id: named && i % 2 == 0 ? VersionID("v-\(i)") : nil)
            if i == 10 {
                side = try store.makeVersion(basedOn: head.id, changes: [.update(id("table"), data: table + bytes("beside"))])
            }
            head = made
        }
        if let side { _ = try store.merge(head.id, with: side.id, arbiter: BuiltInArbiter.mostRecentChange) }
        return store
    }

    static func expectSame(_ store: Store, as source: Store) throws {
        let ids = try source.allVersionIDs()
        #expect(try Set(store.allVersionIDs()) == Set(ids))
        for version in ids.shuffled() {
            let values = try source.values(at: version, limit: 1_000)
            #expect(try store.values(at: version, limit: 1_000) == values)
            #expect(try store.changes(madeIn: version) == source.changes(madeIn: version))
            for value in values {
                #expect(try store.value(value.id, at: version) == value)
                let reader = try #require(try store.openValue(value.id, at: version))
                let half = value.data.count / 2
                let part = try [UInt8](unsafeUninitializedCapacity: 100) { buffer, count in
                    count = try reader.read(at: half, into: UnsafeMutableRawBufferPointer(buffer))
                }
                #expect(part == Array(value.data[half...].prefix(100)))
                var fetched: [UInt8] = []
                try value.id.bytes.withUnsafeBytes { raw in
                    fetched = try [UInt8](unsafeUninitializedCapacity: value.data.count) { buffer, count in
                        _ = try store.fetch(raw, at: version) { $0 == value.data.count ? UnsafeMutableRawPointer(buffer.baseAddress) : nil }
                        count = value.data.count
                    }
                }
                #expect(fetched == value.data)
            }
            let place = store.place(of: try store.requireOrdinal(version))
            let own = source.place(of: try source.requireOrdinal(version))
            #expect(try store.records.identityDigest(place) == source.records.identityDigest(own))
        }
    }

    @Test(arguments: [0, 1], [false, true]) func allThatReadsGivesTheSame(kind: Int, named: Bool) throws {
        try withTemporaryDirectory { directory in
            let source = try Self.source(named: named)
            let writer = Writer()
            var store = try DiskStore.open(kind, directory)
            try writer.write(source, into: store)
            #expect(writer.count > 40)
            try store.close()
            for _ in 0..<2 {
                store = try DiskStore.open(kind, directory)
                try Self.expectSame(store, as: source)
                let report = try store.verify()
                #expect(report.damages.isEmpty && report.pending == 0)
                _ = try store.compact()
                try store.close()
            }
            // A pack holds whole values, and a store without the versions accepts it.
            store = try DiskStore.open(kind, directory)
            let place = MemoryTransport(name: directory), other = try Store.inMemory()
            _ = try Exchange(store: store, transport: place).send()
            _ = try Exchange(store: other, transport: place).retrieve()
            try Self.expectSame(other, as: source)
            try store.close()
            #expect(
                try Store.salvage(directory + (kind == 0 ? "/store" : "/store.sqlite"), kind, to: directory + "/salvaged") {
                    try Self.expectSame($0, as: source)
                    return true
                })
        }
    }

    /// The union of a store with differences and one without.
    @Test(arguments: [false, true]) func aUnionWithAStoreWithoutAny(isWholeFirst: Bool) throws {
        try withTemporaryDirectory { directory in
            let source = try Self.source(20)
            for (i, isWhole) in [isWholeFirst, !isWholeFirst].enumerated() {
                let folder = directory + "/\(i)"
                try System.mkdir(folder)
                let store = try DiskStore.open(0, folder)
                let writer = Writer()
                try writer.write(source, into: store, whole: { _ in isWhole })
                #expect((writer.count > 0) == !isWhole)
                try store.close()
            }
            for name in try System.names(in: directory + "/1/store/segments") where name.hasSuffix(".seg") {
                try writeFile(directory + "/0/store/segments/" + name, readFile(directory + "/1/store/segments/" + name))
            }
            let cache = directory + "/0/store/cache"
            for name in (try? System.names(in: cache)) ?? [] { try? System.unlink(cache + "/" + name) }
            for _ in 0..<2 {
                let store = try DiskStore.open(0, directory + "/0")
                try Self.expectSame(store, as: source)
                #expect(try store.verify().damages.isEmpty)
                try store.close()
            }
        }
    }

    /// Whichever bit is changed, a read returns the right bytes or an error.
    @Test func noDamageGivesAnotherValue() throws {
        try withTemporaryDirectory { directory in
            let source = try Self.source(16, size: 3_000)
            let writer = Writer()
            var store = try DiskStore.open(0, directory)
            try writer.write(source, into: store)
            try store.close()
            let segments = directory + "/store/segments/"
            let path = segments + (try #require(try System.names(in: segments).first { $0.hasSuffix(".seg") }))
            let file = try readFile(path), cache = directory + "/store/cache"
            var random = SeededRandom(seed: 5), failed = 0
            let expected = try source.allVersionIDs().flatMap { version in
                try source.values(at: version, limit: 100).map { (version, $0) }
            }
            for _ in 0..<(Sample.isDeep ? 4_000 : 150) {
                var damaged = file
                damaged[64 + Int(random.next() % UInt64(file.count - 64))] ^= 1 << UInt8(random.next() % 8)
                try writeFile(path, damaged)
                for name in (try? System.names(in: cache)) ?? [] { try? System.unlink(cache + "/" + name) }
                store = try DiskStore.open(0, directory, readOnly: true)
                for (version, value) in expected {
                    do {
                        let found = try store.value(value.id, at: version)
                        #expect(found == value)
                    } catch let error as StoreError {
                        failed += 1
                        #expect([.damaged, .unknownVersion, .newerFormat].contains(error.code), "\(error)")
                    }
                }
                try store.close()
            }
            #expect(failed > 0)
        }
    }

    /// The error names the value and the version that stored its base. Restoring that version repairs everything.
    @Test(arguments: [0, 1]) func aDamagedBaseIsReportedAndRepaired(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let source = try Self.source(12)
            let ids = try source.allVersionIDs().compactMap { try source.version($0) }.sorted(by: { $0.timestamp < $1.timestamp }).map(\.id)
            let elsewhere = try Store.inMemory(), place = MemoryTransport(name: directory)
            let writer = Writer()
            var store = try DiskStore.open(kind, directory)
            try writer.write(source, into: store)
            try store.close()
            store = try DiskStore.open(kind, directory)
            _ = try Exchange(store: store, transport: place).send()
            _ = try Exchange(store: elsewhere, transport: place).retrieve()
            // The body of the first note, which is stored whole.
            let first = store.place(of: try store.requireOrdinal(ids[0])), note = try id("note")
            let stored: [UInt8] = try note.bytes.withUnsafeBytes { raw in
                let found = try #require(try store.records.findChange(first, raw))
                return try [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
                    try store.records.read(first, at: UInt64(found.body.bodyOffset + 100), into: UnsafeMutableRawBufferPointer(buffer))
                    count = 64
                }
            }
            try store.close()
            try flip(stored, in: directory)
            store = try DiskStore.open(kind, directory)
            var error: StoreError?
            do { _ = try store.value(note, at: ids[5]) } catch let thrown as StoreError { error = thrown }
            #expect(error?.code == .damaged && error?.valueID == note && error?.versionID == ids[0].description)
            #expect(error?.message.contains("\(ids[5])") == true && error?.message.contains("\(ids[0])") == true)
            #expect(try store.value(id("table"), at: ids[5]) == source.value(id("table"), at: ids[5]))
            #expect(try store.damagedVersions() == [ids[0]])
            let report = try store.verify()
            #expect(report.damages.contains { $0.lost == .value && $0.version == ids[0] && $0.value == note })
            // All notes up to the last depend on it.
            let lost = report.damages.filter { $0.lost == .value }
            #expect(Set(lost.compactMap(\.version)).count == 12)
            #expect(lost.filter { $0.causedBy == ids[0] && $0.version != ids[0] }.count == 11)
            #expect(lost.filter { $0.causedBy == nil }.map(\.version) == [ids[0]])
            // Only that version is requested.
            #expect(try store.damagedVersions() == [ids[0]])
            #expect(try Exchange(store: store, transport: place).retrieve().repaired == [ids[0]])
            try Self.expectSame(store, as: source)
            #expect(try store.verify().damages.allSatisfy { $0.lost == .nothing })
            try store.close()
        }
    }

    /// Salvage reads every record of the base's version before it gives up a value.
    @Test func salvageFindsTheBaseInAnyRecord() throws {
        try withTemporaryDirectory { directory in
            let source = try Self.source(8)
            let store = try DiskStore.open(0, directory)
            let firstID = try source.allVersionIDs().compactMap { try source.version($0) }.min { $0.timestamp < $1.timestamp }
            let writer = Writer()
            try writer.write(source, into: store)
            let place = try #require(writer.places[firstID?.id ?? EmptyRoot.id])
            let offset = Int(place.offset)
            // A second copy of the same record.
            try writer.write(source, into: store, only: { $0.id == firstID?.id })
            try store.close()
            let segments = directory + "/store/segments/"
            let path = segments + (try #require(try System.names(in: segments).first { $0.hasSuffix(".seg") }))
            var file = try readFile(path)
            file[offset + Int(place.length) - 500] ^= 1
            try writeFile(path, file)
            #expect(
                try Store.salvage(directory + "/store", 0, to: directory + "/salvaged") {
                    try Self.expectSame($0, as: source)
                    return true
                })
        }
    }

    // MARK: What no writer makes

    /// Writes the store with the writer, opens it, and reads the last note.
    private func lastNote(_ source: Store, _ writer: Writer) throws -> Result<Value?, StoreError> {
        var result: Result<Value?, StoreError>?
        try withTemporaryDirectory { directory in
            var store = try DiskStore.open(0, directory)
            try writer.write(source, into: store)
            try store.close()
            store = try DiskStore.open(0, directory)
            let last = try #require(try source.allVersionIDs().compactMap { try source.version($0) }.max { $0.timestamp < $1.timestamp })
            do { result = .success(try store.value(id("note"), at: last.id)) } catch let error as StoreError { result = .failure(error) }
            try store.close()
        }
        return try #require(result)
    }

    /// A line of versions whose notes each have the previous one as their base.
    private func line(_ count: Int, size: Int = 3_000) throws -> Store {
        let store = try Store.inMemory()
        var note = Filling.words(size, 3)
        var head = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: note)])
        for i in 1..<count {
            note[i] ^= 1
            head = try store.makeVersion(basedOn: head.id, changes: [.update(id("note"), data: note)])
        }
        return store
    }

    private func before(_ own: Value.Reference, _ source: Store) -> Value.Reference? {
        (try? source.version(own.version)?.predecessors.first.flatMap { try source.reference(own.id, at: $0) }) ?? nil
    }

    @Test func sixteenStepsAreReadAndNoMore() throws {
        for count in [17, 18] {
            let source = try line(count)
            let writer = Writer()
            writer.link = { own, writer in before(own, source).map { ($0, (writer.written[$0]?.place ?? 0) + 1) } }
            let found = try lastNote(source, writer)
            switch found {
            case .success(let value): #expect(count == 17 && value?.data.count == 3_000)
            case .failure(let error): #expect(count == 18 && error.code == .damaged)
            }
        }
    }

    /// Each base is within the limits of the next value, but beyond those of the last one. A save on the last version reads no further back
    /// than a reader would.
    @Test func aSaveReadsNoWayBeyondTheLimits() throws {
        let source = try Store.inMemory(), key = try id("note")
        var all: [(VersionID, [UInt8])] = []
        for size in [1_200_000, 300_000, 70_000, 2_000] {
            let data = Array(Filling.words(1_200_000, 3).prefix(size))
            all.append(
                (
                    try source.makeVersion(
                        basedOn: all.last?.0, changes: [all.isEmpty ? .insert(key, data: data) : .update(key, data: data)]
                    ).id, data
                ))
        }
        try withTemporaryDirectory { directory in
            var store = try DiskStore.open(0, directory)
            let writer = Writer()
            writer.link = { own, writer in before(own, source).map { ($0, (writer.written[$0]?.place ?? 0) + 1) } }
            try writer.write(source, into: store)
            #expect(writer.count == 3)
            try store.close()
            store = try DiskStore.open(0, directory)
            #expect(code { _ = try store.value(key, at: all[3].0) } == .damaged)
            let data = all[3].1 + [1]
            let made = try store.makeVersion(basedOn: all[3].0, changes: [.update(key, data: data)]).id
            #expect(try store.value(key, at: made)?.data == data)
            let checksum = all[0].1.withUnsafeBytes { Bytes.crc32c($0) }
            #expect(key.bytes.withUnsafeBytes { store.records.bases.find(all[0].0, $0, size: all[0].1.count, checksum: checksum) } == nil)
            try store.close()
        }
    }

    /// A version that was lost and received again may have another place than when the differences to its values were made.
    @Test func placesNeedNotFallOnTheWay() throws {
        let source = try line(4)
        let writer = Writer()
        writer.link = { own, _ in before(own, source).map { ($0, 7) } }
        guard case .success(let value) = try lastNote(source, writer) else { Issue.record("It was not read."); return }
        #expect(value?.data.count == 3_000)
    }

    @Test func aDifferenceOfANewerKindIsReported() throws {
        let source = try line(2)
        let writer = Writer()
        writer.change = { stored, _ in stored[0] = 2 }
        guard case .failure(let error) = try lastNote(source, writer) else { Issue.record("It was read."); return }
        #expect(error.code == .newerFormat)
    }

    @Test func aMissingBaseIsReported() throws {
        let source = try line(2)
        let writer = Writer()
        // The id of the base's version follows kind, place and way.
        writer.change = { stored, _ in stored[8] ^= 1 }
        guard case .failure(let error) = try lastNote(source, writer) else { Issue.record("It was read."); return }
        #expect(error.code == .damaged)
    }
}
