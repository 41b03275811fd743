import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// A damaged store is repaired from another one that has the same version.
@Suite struct RepairTests {
    /// A kind of damage: in the bytes of a value, or of the file of a blob.
    enum Damage: String, CaseIterable { case smallValue, valueInSealedRecord, table, blobBody, blobHeader, blobGone, blobIsDirectory }

    static let small = Filling.noise(1, 100), middle = Filling.noise(2, 200_000), large = Filling.noise(3, (1 << 20) + 50_000),
        other = Filling.noise(4, 300)

    static func blob(in directory: String) throws -> String {
        let folder = directory + "/store/blobs"
        return folder + "/" + (try #require(try System.names(in: folder).first { $0.hasSuffix(".blob") }))
    }

    static func damage(_ damage: Damage, _ directory: String) throws {
        switch damage {
        case .smallValue: try flip(small, in: directory)
        case .valueInSealedRecord: try flip(middle, in: directory)
        case .table: try flip(Array("a value whose id is long".utf8), in: directory)
        case .blobBody: try flip(large, in: directory)
        case .blobHeader: try flip(Array("LLVSblb\n".utf8), in: directory)
        case .blobGone: try System.unlink(blob(in: directory))
        case .blobIsDirectory:
            let path = try blob(in: directory)
            try System.unlink(path)
            try System.mkdir(path)
        }
    }

    static func make(_ store: Store) throws -> [VersionID] {
        let first = try store.makeVersion(
            basedOn: nil,
            changes: [
                .insert(id("small"), data: small), .insert(id("middle"), data: middle), .insert(id("large"), data: large),
                .insert(id("a value whose id is long"), data: other),
            ], metadata: Metadata([(bytes("by"), bytes("\"ann\""))]), id: VersionID("first"))
        // An id chosen by the caller: another device can make another version of it.
        return [first.id, try store.makeVersion(basedOn: first.id, changes: [.insert(id("later"), data: other)]).id]
    }

    static func isWhole(_ store: Store, _ versions: [VersionID]) throws -> Bool {
        let expected = ["small": small, "middle": middle, "large": large, "a value whose id is long": other]
        return try versions.allSatisfy { version in
            try expected.allSatisfy { name, data in
                let key = try id(name)
                let reader = try #require(try store.openValue(key, at: version))
                let read = try [UInt8](unsafeUninitializedCapacity: reader.size) { buffer, count in
                    count = try reader.read(at: 0, into: UnsafeMutableRawBufferPointer(buffer))
                }
                let value = try store.value(key, at: version)?.data
                return value.map { Bytes.compare($0, data) == 0 } == true && Bytes.compare(read, data) == 0
            } && store.values(at: version, in: .all, after: nil, limit: 10).first { $0.id == (try id("middle")) }?.data == middle
        }
    }

    @Test(arguments: [0, 1], Damage.allCases) func aRetrieveRepairsWhatReadingFoundDamaged(kind: Int, damage: Damage) throws {
        if kind == 1, damage.rawValue.hasPrefix("blob") { return }
        try withTemporaryDirectory { directory in
            let elsewhere = try Store.inMemory(), place = MemoryTransport(name: directory)
            defer { try? elsewhere.close() }
            var store = try DiskStore.open(kind, directory)
            let ids = try Self.make(store)
            _ = try Exchange(store: store, transport: place).send()
            #expect(try Exchange(store: elsewhere, transport: place).retrieve().versions == ids)
            try store.close()
            try Self.damage(damage, directory)

            store = try DiskStore.open(kind, directory)
            let beside = try DiskStore.open(kind, directory, readOnly: true)
            // If a blob is missing, or a small record is unreadable, the versions wait: any retrieve restores them.
            let isHere = try !store.allVersionIDs().isEmpty
            let exchange = Exchange(store: store, transport: place)
            if isHere {
                #expect(throws: StoreError.self) { _ = try Self.isWhole(store, ids) }
                let report = try exchange.retrieve()
                #expect(report.repaired == [ids[0]] && report.versions.isEmpty && report.problems.isEmpty)
            } else {
                #expect(try exchange.retrieve().versions == ids)
            }
            #expect(try Self.isWhole(store, ids))
            #expect(try exchange.retrieve(verifyKnown: true).repaired.isEmpty)
            try beside.reloadHistory()
            #expect(try Self.isWhole(beside, ids))
            for verified in [store, beside] { #expect(try verified.verify().damages.allSatisfy { $0.lost == .nothing }) }
            _ = try store.compact()
            #expect(try Self.isWhole(store, ids))
            try store.close()
            try beside.close()
            for _ in 0..<2 {
                let again = try DiskStore.open(kind, directory)
                #expect(try Self.isWhole(again, ids))
                #expect(try again.verify().damages.allSatisfy { $0.lost == .nothing })
                try again.close()
            }
            #expect(
                try Store.salvage(directory + (kind == 0 ? "/store" : "/store.sqlite"), kind, to: directory + "/salvaged") {
                    try Self.isWhole($0, ids)
                })
        }
    }

    @Test(arguments: [0, 1], Damage.allCases) func aVerificationMarksWhatTheNextRetrieveRepairs(kind: Int, damage: Damage) throws {
        if kind == 1, damage.rawValue.hasPrefix("blob") { return }
        try withTemporaryDirectory { directory in
            let place = MemoryTransport(name: directory)
            var store = try DiskStore.open(kind, directory)
            let ids = try Self.make(store)
            _ = try Exchange(store: store, transport: place).send()
            try store.close()
            try Self.damage(damage, directory)
            store = try DiskStore.open(kind, directory)
            let isHere = try !store.allVersionIDs().isEmpty
            let report = try store.verify()
            #expect(report.damages.contains { $0.lost != .nothing && $0.version == ids[0] })
            // One line for each damage, which names the value if one is lost.
            let value: [Damage: String] = [
                .smallValue: "small", .valueInSealedRecord: "middle", .blobBody: "large", .blobHeader: "large", .blobGone: "large",
                .blobIsDirectory: "large",
            ]
            if isHere || damage.rawValue.hasPrefix("blob"), let name = value[damage] {
                // A row of a database may hold bytes of several values.
                #expect(
                    try kind == 0 ? report.damages.map(\.value) == [id(name)] : report.damages.contains { try $0.value == id(name) },
                    "\(report.damages)")
                #expect(report.damages.allSatisfy { $0.lost == (isHere ? .value : .version) } && report.pending == (isHere ? 0 : 2))
                if damage.rawValue.hasPrefix("blob") {
                    #expect(try report.damages.map(\.file) == [damage == .blobGone ? report.damages[0].file : Self.blob(in: directory)])
                }
            } else {
                #expect(report.damages.map(\.lost) == [.version], "\(report.damages)")
            }
            let result = try Exchange(store: store, transport: place).retrieve()
            #expect(isHere ? result.repaired == [ids[0]] : result.versions == ids)
            #expect(try store.verify().damages.allSatisfy { $0.lost == .nothing })
            #expect(try Self.isWhole(store, ids))
            try store.close()
        }
    }

    @Test func verifyingAnExchangeRepairsWithoutAsking() throws {
        try withTemporaryDirectory { directory in
            let place = MemoryTransport(name: directory)
            var store = try DiskStore.open(0, directory)
            let ids = try Self.make(store)
            _ = try Exchange(store: store, transport: place).send()
            try store.close()
            try Self.damage(.valueInSealedRecord, directory)
            try Self.damage(.blobBody, directory)
            store = try DiskStore.open(0, directory)
            let exchange = Exchange(store: store, transport: place)
            #expect(try exchange.retrieve().repaired.isEmpty)
            #expect(try exchange.retrieve(verifyKnown: true).repaired == [ids[0]])
            #expect(try Self.isWhole(store, ids))
            try store.close()
        }
    }

    /// Whole parts remain, and contents that another device made under the id do not replace the lost ones.
    @Test(arguments: ["small", "middle", "large", "metadata", "removed"]) func aDamagedVersionIsNotRepairedWithAnother(_ what: String)
        throws
    {
        try withTemporaryDirectory { directory in
            let hostile = try Store.inMemory(), place = MemoryTransport(name: directory)
            var store = try DiskStore.open(0, directory)
            let first = try Self.make(store)[0]
            try store.close()
            var changes: [Value.Change] = [
                .insert(try id("small"), data: what == "small" ? Filling.noise(9, 100) : Self.small),
                .insert(try id("middle"), data: what == "middle" ? Filling.noise(9, 200_000) : Self.middle),
                .insert(try id("large"), data: what == "large" ? Filling.noise(9, Self.large.count) : Self.large),
                .insert(try id("a value whose id is long"), data: Self.other),
            ]
            if what == "removed" { changes.removeLast() }
            store = try DiskStore.open(0, directory)
            var version = try #require(try store.version(first))
            try store.close()
            if what == "metadata" { version.metadata = Metadata() }
            #expect(try hostile.add([.init(version: version, changes: changes)]).count == 1)
            _ = try Exchange(store: hostile, transport: place).send()

            try Self.damage(.valueInSealedRecord, directory)
            store = try DiskStore.open(0, directory)
            let before = try store.verify()
            let result = try Exchange(store: store, transport: place).retrieve()
            #expect(result.repaired.isEmpty && result.problems.map(\.error.code) == [.versionMismatch])
            #expect(try store.value(id("small"), at: first)?.data == Self.small)
            #expect(try store.value(id("large"), at: first)?.data == Self.large)
            #expect(throws: StoreError.self) { try store.value(id("middle"), at: first) }
            #expect(try store.verify().damages == before.damages)
            try store.close()
        }
    }

    /// The layout of the record that repairs may differ from that of the record from which a map was made.
    @Test(arguments: [0, 1]) func aValueIsFoundWhereItsRecordSaysWhateverAMapSays(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            let first = try Self.make(store)[0]
            for (name, data) in [("small", Self.small), ("middle", Self.middle)] {
                let key = try id(name)
                try key.bytes.withUnsafeBytes { raw in
                    let located = try #require(try store.locate(raw, at: first))
                    // The other record may also have been longer.
                    for beside in [24, located.place.length] {
                        var wrong = located.entry
                        wrong.bodyOffset += beside
                        #expect(try store.records.withBody(located.place, wrong, id: raw, stored: first) { Array($0) } == data)
                        #expect(
                            try store.records.withLargeBody(located.place, wrong, id: raw, stored: first) { body in
                                var out = [UInt8](repeating: 0, count: data.count)
                                try out.withUnsafeMutableBytes { try body.read(whole: $0) }
                                return out
                            } == data)
                    }
                }
            }
            try store.close()
        }
    }
}

extension Store {
    /// Salvages a store, opens the result and evaluates the given condition on it.
    static func salvage(_ path: String, _ kind: Int, to target: String, _ ask: (Store) throws -> Bool) throws -> Bool {
        var options = Store.Options()
        options.storage = DiskStore.kinds[kind].storage
        _ = try Salvage.run(path, options, into: target)
        let store = try Store(path: target)
        defer { try? store.close() }
        return try ask(store)
    }
}
