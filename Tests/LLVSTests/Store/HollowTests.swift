import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSMerge
@testable import LLVSUpkeep

/// Stores in which values have no bytes: every call that reads such a value says so, no call reports it as damage, and all other values are
/// as before.
@Suite struct HollowTests {
    /// Which values become hollow.
    typealias Choice = (VersionID, ValueID) throws -> Bool

    /// Writes the records of a store into the storage of another, with hollow changes.
    /// - Parameter raw: whether records without hollow changes are copied as they are.
    static func write(_ source: Store, into target: Store, raw: Bool = false, hollow: Choice) throws {
        for version in try source.allVersionIDs().compactMap({ try source.version($0) }).sorted(by: { $0.timestamp < $1.timestamp }) {
            var kept: [WrittenValue] = []
            try source.changes(madeIn: version.id).withBorrowed { borrowed in
                let recorded = RecordChanges(
                    try borrowed.map { change in
                        var change = change
                        guard change.hasData, try hollow(version.id, ValueID(unchecked: change.id)) else { return change }
                        kept.append(WrittenValue(hollow: change.data.count, digest: SHA256.digest(change.data)))
                        change.data = UnsafeRawBufferPointer(start: nil, count: 0)
                        change.written = Unmanaged.passUnretained(kept[kept.count - 1])
                        return change
                    })
                if raw, kept.isEmpty {
                    let record = try source.records.bytes(of: source.place(of: source.requireOrdinal(version.id)))
                    _ = try record.withUnsafeBytes { bytes in try target.withCommitLock { try target.storage.append([RecordPieces(bytes)]) }
                    }
                    return
                }
                let encoder = RecordEncoder()
                try encoder.encode(
                    version, recorded, blobThreshold: target.storage.blobThreshold, storeBlob: target.storage.storeBlob(_:digest:))
                _ = try target.withCommitLock { try target.storage.append([encoder.pieces(recorded)]) }
            }
            withExtendedLifetime(kept) {}
        }
        try target.storage.sync()
    }

    /// Makes a store from another one with hollow changes, and opens it.
    static func store(_ kind: Int, _ directory: String, of source: Store, hollow: Choice) throws -> Store {
        let target = try DiskStore.open(kind, directory)
        try write(source, into: target, hollow: hollow)
        try target.close()
        return try DiskStore.open(kind, directory)
    }

    private static func code(_ body: () throws -> Void) -> StoreError? {
        do { try body() } catch { return error as? StoreError }
        return nil
    }
    private static func expectForgotten(_ key: String, _ version: VersionID, _ body: () throws -> Void) throws {
        let error = code(body), value = try id(key)
        #expect(error?.code == .forgotten && error?.valueID == value && error?.versionID == version.description, "\(error as Any)")
    }

    /// The sizes of the values: in a record, deflated, with a digest anyway, and in a file.
    static let sizes: [(String, Int)] = [("empty", 0), ("large", 70_000), ("note", 40), ("text", 5_000), ("vast", 1_100_000)]
    static func source() throws -> (store: Store, first: Version, last: Version) {
        let store = try Store.inMemory()
        var changes = try sizes.map { Value.Change.insert(try id($0.0), data: Filling.words($0.1, 5)) }
        changes += try (0..<70).map { .insert(try id("other \($0)"), data: bytes("\($0)")) }
        let first = try store.makeVersion(basedOn: nil, changes: changes)
        return (store, first, try store.makeVersion(basedOn: first.id, changes: [.update(id("other 1"), data: bytes("new"))]))
    }

    @Test(arguments: [0, 1]) func readingSaysSo(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let (source, first, last) = try Self.source()
            let gone = Set(try Self.sizes.map { try id($0.0) })
            let store = try Self.store(kind, directory, of: source) { $0 == first.id && gone.contains($1) }
            defer { try? store.close() }
            #expect(try store.version(last.id) == source.version(last.id) && store.count(at: last.id) == 75)
            for (key, size) in Self.sizes {
                try Self.expectForgotten(key, first.id) { _ = try store.value(id(key), at: last.id) }
                try Self.expectForgotten(key, first.id) { _ = try store.value(Value.Reference(id: id(key), version: first.id)) }
                try Self.expectForgotten(key, first.id) {
                    _ = try id(key).bytes.withUnsafeBytes {
                        try store.fetch($0, at: last.id) { _ in
                            Issue.record("memory is asked for"); return nil
                        }
                    }
                }
                let reader = try #require(try store.openValue(id(key), at: last.id))
                #expect(reader.size == size && reader.storedVersion == first.id)
                guard size > 0 else { continue }
                try Self.expectForgotten(key, first.id) {
                    _ = try withUnsafeTemporaryAllocation(byteCount: 8, alignment: 1) { try reader.read(at: 0, into: $0) }
                }
            }
            #expect(try store.value(id("other 1"), at: last.id)?.data == bytes("new"))
            #expect(try store.changes(madeIn: last.id) == source.changes(madeIn: last.id))
            #expect(Self.code { _ = try store.changes(madeIn: first.id) }?.code == .forgotten)
            let told = try store.recordedChanges(madeIn: first.id).map { ($0.id, $0.size) },
                expected = try source.recordedChanges(madeIn: first.id)
            #expect(told.elementsEqual(expected.map { ($0.id, $0.size) }) { $0 == $1 })
        }
    }

    /// In a batch a hollow value affects no other value, whether or not a map already has its place.
    @Test(arguments: [0, 1], [true, false]) func batchesSaySoOfTheValueAlone(kind: Int, separated: Bool) throws {
        try withTemporaryDirectory { directory in
            let (source, first, last) = try Self.source()
            let gone = Set(try Self.sizes.map { try id($0.0) })
            let store = try Self.store(kind, directory, of: source) { $0 == first.id && gone.contains($1) }
            defer { try? store.close() }
            func expectRows(_ batch: ValueBatch) throws {
                #expect(batch.count == 75 && batch.presentCount == 75 && batch.hasForgotten)
                var at = 0
                for row in 0..<batch.count {
                    let key = ValueID(unchecked: batch.id(row))
                    #expect(batch.rows[row].isForgotten == gone.contains(key))
                    if gone.contains(key) {
                        #expect(batch.rows[row].data.isEmpty)
                        #expect(Self.code { _ = try batch.value(row, id: key) }?.code == .forgotten)
                    } else {
                        #expect(try batch.value(row, id: key) == source.value(key, at: last.id) && batch.rows[row].data.lowerBound == at)
                        at += batch.rows[row].data.count + (separated ? 1 : 0)
                    }
                }
            }
            try expectRows(store.batch(at: last.id, limit: 1_000, isSeparated: separated))
            let ids = try store.references(at: last.id, limit: 1_000).map(\.id)
            try expectRows(
                store.batch(at: last.id, isSeparated: separated) { sink in for id in ids { try id.bytes.withUnsafeBytes(sink) } })
        }
    }

    /// A map was made while the bytes were there, and the record that is read now has none.
    @Test(arguments: [0, 1], [true, false]) func batchesSaySoIfAMapIsOlder(kind: Int, separated: Bool) throws {
        try withTemporaryDirectory { directory in
            let (source, first, last) = try Self.source()
            let store = try Self.store(kind, directory, of: source) { _, _ in false }
            defer { try? store.close() }
            let before = try store.batch(at: last.id, limit: 1_000)
            let gone = Set(try ["empty", "note", "other 3", "text"].map { try id($0) })
            try Self.write(source, into: store) { $0 == first.id && gone.contains($1) }
            let ordinal = try store.requireOrdinal(first.id), place = try #require(try Self.hollowPlace(store, of: first.id))
            store.lock.withWrite { store.dag.move(ordinal, to: place, checksum: 0) }
            let batch = try store.batch(at: last.id, limit: 1_000, isSeparated: separated)
            #expect(batch.count == before.count && batch.presentCount == before.count)
            for row in 0..<batch.count {
                let key = ValueID(unchecked: batch.id(row))
                #expect(batch.rows[row].isForgotten == gone.contains(key), "\(key)")
                if !gone.contains(key) { #expect(try batch.value(row, id: key) == before.value(row, id: key), "\(key)") }
            }
            #expect(batch.rows.reduce(0) { $0 + $1.data.count + (separated ? 1 : 0) } == batch.data.count)
        }
    }

    private static func hollowPlace(_ store: Store, of id: VersionID) throws -> RecordPlace? {
        var found: RecordPlace?
        func look(_ record: ScannedRecord) throws {
            let header = try store.records.header(record.place)
            if header.id == id, header.hasHollow { found = record.place }
        }
        try store.storage.verify(OperationControl(), found: look, damage: { _ in })
        return found
    }

    // MARK: No damage

    @Test(arguments: [0, 1]) func verifyingCountsAndNamesNoDamage(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let (source, first, last) = try Self.source()
            let gone = Set(try Self.sizes.map { try id($0.0) })
            let store = try Self.store(kind, directory, of: source) { $0 == first.id && gone.contains($1) }
            let report = try store.verify()
            #expect(report.isComplete && report.versions == 2 && report.values == 71 && report.forgotten == 5, "\(report)")
            #expect(report.vouched == 2)
            // A retrieve that looks at everything brings nothing back.
            let place = MemoryTransport(name: directory)
            _ = try Exchange(store: source, transport: place).send()
            let result = try Exchange(store: store, transport: place).retrieve(verifyKnown: true)
            #expect(result.repaired.isEmpty && result.versions.isEmpty && result.problems.isEmpty)
            try Self.expectForgotten("note", first.id) { _ = try store.value(id("note"), at: last.id) }
            try store.close()
            let (salvage, salvaged) = try Self.salvage(kind, directory)
            defer { try? salvaged.close() }
            #expect(salvage.damages.isEmpty && salvage.versions == 2, "\(salvage)")
            #expect(try salvaged.version(last.id) == source.version(last.id) && salvaged.verify().forgotten == 5)
            #expect(try salvaged.value(id("other 7"), at: last.id)?.data == bytes("7"))
        }
    }

    private static func salvage(_ kind: Int, _ directory: String) throws -> (SalvageReport, Store) {
        var options = Store.Options()
        options.storage = DiskStore.kinds[kind].storage
        let report = try Salvage.run(
            directory + (kind == 0 ? "/store" : "/store.sqlite"), options, into: directory + "/salvaged", Store.Options())
        return (report, try Store(path: directory + "/salvaged"))
    }

    /// A repair of what is damaged leaves hollow what is hollow.
    @Test(arguments: [0, 1]) func repairingLeavesThemHollow(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let source = try Store.inMemory(), ids = try RepairTests.make(source), place = MemoryTransport(name: directory)
            _ = try Exchange(store: source, transport: place).send()
            let gone = Set(try ["large", "middle"].map { try id($0) })
            var store = try Self.store(kind, directory, of: source) { $0 == ids[0] && gone.contains($1) }
            try store.close()
            try RepairTests.damage(.smallValue, directory)
            store = try DiskStore.open(kind, directory)
            #expect(Self.code { _ = try store.value(id("small"), at: ids[1]) }?.code == .damaged)
            #expect(try Exchange(store: store, transport: place).retrieve().repaired == [ids[0]])
            for isAgain in [false, true] {
                if isAgain {
                    try store.close()
                    store = try DiskStore.open(kind, directory)
                }
                #expect(try store.value(id("small"), at: ids[1])?.data == RepairTests.small)
                for key in ["large", "middle"] {
                    try Self.expectForgotten(key, ids[0]) { _ = try store.value(id(key), at: ids[1]) }
                }
            }
            try store.close()
        }
    }

    /// Two records of a version count as the same, whatever bytes each lacks. The one that lacks fewer is read, in either order.
    @Test(arguments: [0, 1], [true, false]) func theRecordThatLacksLessIsRead(kind: Int, wholeFirst: Bool) throws {
        try withTemporaryDirectory { directory in
            let (source, first, last) = try Self.source()
            var store = try DiskStore.open(kind, directory)
            for isWhole in [wholeFirst, !wholeFirst] {
                try Self.write(source, into: store) { try !isWhole && $0 == first.id && $1 == id("note") }
            }
            try store.close()
            store = try DiskStore.open(kind, directory)
            defer { try? store.close() }
            #expect(try store.value(id("note"), at: last.id) == source.value(id("note"), at: last.id))
            let report = try store.verify()
            #expect(report.damages.isEmpty && report.forgotten == 0 && report.values == 76, "\(report)")
            #expect(store.lock.withRead { store.findings.damages.isEmpty })
        }
    }

    // MARK: Differences

    @Test(arguments: [0, 1]) func aDifferenceReadsAsItsBase(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let text = try DifferenceStoreTests.source(6), source = try DiskStore.open(0, directory)
            let writer = DifferenceStoreTests.Writer()
            try writer.write(text, into: source)
            try source.close()
            let whole = try DiskStore.open(0, directory)
            defer { try? whole.close() }
            let first = try #require(try whole.allVersionIDs().first { try whole.version($0)?.predecessors == [] })
            try System.mkdir(directory + "/hollow")
            let store = try DiskStore.open(kind, directory + "/hollow")
            try Self.write(whole, into: store, raw: true) { try $0 == first && $1 == id("note") }
            try store.close()
            let read = try DiskStore.open(kind, directory + "/hollow")
            defer { try? read.close() }
            var differences = 0
            for version in try whole.allVersionIDs() where version != first {
                guard writer.written[Value.Reference(id: try id("note"), version: version)]?.base != nil else { continue }
                differences += 1
                try Self.expectForgotten("note", first) { _ = try read.value(id("note"), at: version) }
            }
            #expect(differences == 5)
            let head = try #require(try read.headIDs().first)
            #expect(try read.value(id("small"), at: head)?.data == [1])
            let report = try read.verify()
            #expect(report.isComplete && report.forgotten == 6, "\(report)")
            // The next save finds no base, and is stored whole.
            let text2 = Filling.words(20_000, 9)
            let next = try read.makeVersion(basedOn: head, changes: [.update(id("note"), data: text2)])
            #expect(try read.value(id("note"), at: next.id)?.data == text2)
        }
    }

    // MARK: Merging

    private static func fork(_ rules: Bool, _ values: [String]) throws -> (Store, [Version]) {
        let store = try Store.inMemory()
        var first: [Value.Change] = [.insert(try id("d"), data: bytes(values[0])), .insert(try id("e"), data: bytes("e"))]
        if rules { first.append(.insert(try id(MergeSchema.valueID), data: bytes(#"{"merge":1,"ids":{"d":{"/n":"counter"}}}"#))) }
        let root = try store.makeVersion(basedOn: nil, changes: first)
        let a = try store.makeVersion(basedOn: root.id, changes: [.update(id("d"), data: bytes(values[1]))])
        let b = try store.makeVersion(
            basedOn: root.id, changes: [.update(id("d"), data: bytes(values[2])), .update(id("e"), data: bytes("f"))])
        return (store, [root, a, b])
    }

    /// Values that are merged as a whole need no bytes: the merge is the same without them.
    @Test(arguments: [0, 1, 2]) func wholesAreDecidedWithoutBytes(which: Int) throws {
        for values in [["0", "1", "2"], ["0", "1", "1"], ["0", "0", "2"], ["0", "1", "0"]] {
            try withTemporaryDirectory { directory in
                let (source, versions) = try Self.fork(false, values)
                let store = try Self.store(0, directory, of: source) { try $0 == versions[which].id && $1 == id("d") }
                defer { try? store.close() }
                let expected = try source.merge(versions[1].id, with: versions[2].id, arbiter: RulesArbiter())
                let merged = try store.merge(versions[1].id, with: versions[2].id, arbiter: RulesArbiter())
                #expect(merged == expected, "\(values) \(which)")
                #expect(try store.recordedChanges(madeIn: merged.id) == source.recordedChanges(madeIn: expected.id))
            }
        }
    }

    /// Rules need the bytes of the base and of both sides. If some are missing, the heads stay apart: nothing is decided in another way.
    /// Other heads are merged.
    @Test(arguments: [0, 1, 2]) func rulesWaitForTheirBytes(which: Int) throws {
        try withTemporaryDirectory { directory in
            let (source, versions) = try Self.fork(true, [#"{"n":1}"#, #"{"n":2}"#, #"{"n":3}"#])
            let third = try source.makeVersion(basedOn: versions[0].id, changes: [.insert(id("third"), data: bytes("3"))])
            let store = try Self.store(0, directory, of: source) { try $0 == versions[which].id && $1 == id("d") }
            defer { try? store.close() }
            try Self.expectForgotten("d", versions[which].id) {
                _ = try store.merge(versions[1].id, with: versions[2].id, arbiter: RulesArbiter())
            }
            let heads = Set(try store.headIDs())
            #expect(heads == Set([versions[1].id, versions[2].id, third.id]))
            // A head whose own value is gone is left out. If the base's value is gone, no heads can be merged.
            let merged = Self.code { _ = try store.mergeHeads(into: third.id, arbiter: RulesArbiter()) }
            let left = try store.headIDs()
            if which == 0 {
                #expect(merged?.code == .forgotten && left.count == 3)
            } else {
                #expect(merged == nil && left.contains(versions[which].id) && left.count == 2)
            }
            // Saving continues.
            let head = try #require(left.first)
            let next = try store.makeVersion(basedOn: head, changes: [.insert(id("more"), data: bytes("more"))])
            #expect(try store.value(id("more"), at: next.id)?.data == bytes("more"))
        }
    }

    /// A conflict cannot be reviewed if a merge of its value cannot be repeated. Others of the same merge are listed.
    @Test(arguments: [0, 1, 2]) func openConflictsLeaveThemOut(which: Int) throws {
        try withTemporaryDirectory { directory in
            let rules = #"{"merge":1,"ids":{"d":{"/n":"counter"},"e":{"/n":"counter"}}}"#
            let source = try Store.inMemory()
            func values(_ n: Int) throws -> [Value.Change] {
                try ["d", "e"].map { .update(try id($0), data: bytes("{\"a\":\(n)}")) }
            }
            let root = try source.makeVersion(
                basedOn: nil, changes: values(0) + [.insert(id(MergeSchema.valueID), data: bytes(rules))])
            let a = try source.makeVersion(basedOn: root.id, changes: values(1))
            let b = try source.makeVersion(basedOn: root.id, changes: values(2))
            let merged = try source.merge(a.id, with: b.id, arbiter: RulesArbiter())
            #expect(try source.openConflicts(at: merged.id).map(\.id) == ["d", "e"].map { try id($0) })
            let store = try Self.store(0, directory, of: source) { try $0 == [root, a, b][which].id && $1 == id("d") }
            defer { try? store.close() }
            #expect(try store.openConflicts(at: merged.id).map(\.id) == [id("e")])
            try Self.expectForgotten("d", [root, a, b][which].id) { _ = try store.explain(merged.id) }
        }
    }

    // MARK: Finding

    @Test(arguments: [false, true]) func anIndexHasNoKeysOfThem(wereThere: Bool) throws {
        try withTemporaryDirectory { directory in
            let source = try Store.inMemory()
            let first = try source.makeVersion(
                basedOn: nil, changes: (0..<200).map { .insert(try id("v\($0)"), data: bytes("{\"k\":\"\($0 % 10)\"}")) })
            let second = try source.makeVersion(
                basedOn: first.id, changes: [.update(id("v1"), data: bytes(#"{"k":"7"}"#)), .remove(id("v2"))])
            let gone = Set(try ["v1", "v2", "v3", "v13"].map { try id($0) })
            let store = try Self.store(0, directory, of: source) { !wereThere && $0 == first.id && gone.contains($1) }
            defer { try? store.close() }
            let index = try ValueIndex(store, Array(#"{"prefix":"v","on":["/k"]}"#.utf8).withUnsafeBytes { try IndexDefinition($0) })
            func count(_ version: Version) throws -> UInt64 {
                var question = IndexQuestion()
                question.wantsCount = true
                return try #require(index.find(question, at: version.id).total)
            }
            #expect(try count(first) == (wereThere ? 200 : 196))
            if wereThere {
                try Self.write(source, into: store) { $0 == first.id && gone.contains($1) }
                let ordinal = try store.requireOrdinal(first.id), place = try #require(try Self.hollowPlace(store, of: first.id))
                store.lock.withWrite { store.dag.move(ordinal, to: place, checksum: 0) }
            }
            // The index of the second version is not made from that of the first: it is no longer known which keys the old values had.
            #expect(try count(second) == 197)
            #expect(try wereThere || store.verify().damages.isEmpty)
        }
    }
}
