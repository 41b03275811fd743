import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Tests data of newer versions of the library: ignorable data is skipped; critical data only makes its record or frame unreadable, and is
/// preserved.
@Suite struct FormatGrowthTests {
    /// A record with flags, and with extensions after its metadata.
    static func extended(
        _ record: [UInt8], flags: UInt8 = 0, more: UInt16 = 0, format: UInt8 = 1, _ extensions: [(tag: UInt64, bytes: [UInt8])] = []
    ) -> [UInt8] {
        let size = Int(record.withUnsafeBytes { FrameFormat.load($0, 4, UInt32.self) }), end = RecordHeader.preludeSize + size
        var area = ByteWriter()
        for (tag, bytes) in extensions { area.varint(tag); area.varint(UInt64(bytes.count)); area.raw(bytes) }
        var out = ByteWriter(bytes: Array(record[..<end]) + area.bytes + Array(record[end...]))
        out.bytes[0] = format
        out.bytes[1] = flags | (extensions.isEmpty ? 0 : RecordHeader.hasExtensions)
        out.bytes[2] = UInt8(truncatingIfNeeded: more)
        out.bytes[3] = UInt8(truncatingIfNeeded: more >> 8)
        out.patch(UInt32(size + area.bytes.count), at: 4)
        let header = end + area.bytes.count
        out.patch(
            out.bytes.withUnsafeBytes {
                Bytes.crc32c(
                    UnsafeRawBufferPointer(rebasing: $0[28..<header]), from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[..<24])))
            }, at: 24)
        return out.bytes
    }

    enum Place: String, CaseIterable { case file, sqlite, host, memory }

    /// A store with the given records, each of them appended on its own.
    static func store(_ place: Place, _ directory: String, _ records: [[UInt8]], _ host: ArrayHost) throws -> Store {
        var options = Store.Options()
        options.compactionGrace = 0
        let storage: any Storage
        switch place {
        case .memory: return try hookedStore(records).0
        case .file: storage = try FileStorage(path: directory + "/store")
        case .sqlite: storage = try SQLiteStorage(path: directory + "/store.sqlite"); options.storage = .sqlite
        case .host: storage = CallbackStorage(functions: host.functions)
        }
        for record in records { try StorageConformance.append(storage, [record]) }
        try storage.close(discarding: false)
        if place == .host { return try Store(storage: CallbackStorage(functions: host.functions), options: options) }
        return try Store(path: directory + (place == .file ? "/store" : "/store.sqlite"), options: options)
    }

    static func raw(_ store: Store, _ id: VersionID) throws -> [UInt8] {
        let place = store.place(of: try store.requireOrdinal(id))
        return try [UInt8](unsafeUninitializedCapacity: Int(place.length)) { buffer, count in
            try store.records.read(
                place, at: 0, into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<Int(place.length)]))
            count = Int(place.length)
        }
    }

    /// The records of a version a, of b on it, and of c on b.
    static func line(_ change: ([UInt8]) -> [UInt8]) throws -> [[UInt8]] {
        [
            try hostileRecord(plainVersion("a"), [.insert(id("k"), data: bytes("1"))]),
            change(try hostileRecord(plainVersion("b", ["a"], timestamp: 2), [.update(id("k"), data: bytes("2"))])),
            try hostileRecord(plainVersion("c", ["b"], timestamp: 3), [.insert(id("l"), data: bytes("3"))]),
        ]
    }

    @Test(arguments: Place.allCases) func whatCanBeIgnoredIs(place: Place) throws {
        try withTemporaryDirectory { directory in
            let host = ArrayHost(), b = try VersionID("b"), c = try VersionID("c")
            let records = try Self.line { Self.extended($0, flags: 0xE0, [(3, bytes("an extension")), (5, []), (1_000_001, [0, 1, 2])]) }
            let store = try Self.store(place, directory, records, host)
            #expect(try store.allVersionIDs().count == 3 && store.statistics().damaged == 0)
            #expect(try store.value(id("k"), at: c)?.data == bytes("2") && store.changes(madeIn: b).map(\.kind) == [.update])
            #expect(try store.verify().isComplete)
            #expect(try Self.raw(store, b) == records[1])
            // The digest of a version does not cover ignorable data.
            let (plain, _) = try hookedStore(Self.line { $0 })
            #expect(try store.identityDigest(of: b) == plain.identityDigest(of: b))
            // An exchange carries the version without the extension.
            let other = try Store.inMemory(), memory = MemoryTransport(name: directory)
            #expect(try Exchange(store: store, transport: memory).send().problems.isEmpty)
            #expect(try Exchange(store: other, transport: memory).retrieve().versions.count == 3)
            #expect(try other.value(id("k"), at: c)?.data == bytes("2"))
            // The other direction works, too: both are the same version.
            _ = try Exchange(store: other, transport: memory).send()
            #expect(try Exchange(store: store, transport: memory).retrieve().problems.isEmpty)
            _ = try store.compact()
            #expect(try store.value(id("k"), at: b)?.data == bytes("2") && Self.raw(store, b) == records[1])
            try store.close()
            guard place == .file || place == .sqlite else { return }
            var options = Store.Options()
            options.storage = place == .file ? .file : .sqlite
            let path = directory + (place == .file ? "/store" : "/store.sqlite")
            let again = try Store(path: path, options: options)
            #expect(try again.value(id("k"), at: c)?.data == bytes("2") && Self.raw(again, b) == records[1])
            try again.close()
            #expect(try Salvage.run(path, options, into: directory + "/salvaged").isWhole)
            let salvaged = try Store(path: directory + "/salvaged")
            #expect(try salvaged.value(id("k"), at: c)?.data == bytes("2") && Self.raw(salvaged, b) == records[1])
            try salvaged.close()
        }
    }

    enum Critical: String, CaseIterable { case flag, moreFlags, tag, format }

    @Test(arguments: Place.allCases, Critical.allCases) func whatIsCriticalCostsItselfAloneAndIsNotLost(place: Place, critical: Critical)
        throws
    {
        try withTemporaryDirectory { directory in
            let host = ArrayHost(), a = try VersionID("a"), b = try VersionID("b"), c = try VersionID("c")
            let records = try Self.line { record in
                switch critical {
                case .flag: Self.extended(record, flags: 0x08)
                case .moreFlags: Self.extended(record, more: 0x100)
                case .tag: Self.extended(record, [(1, [7]), (2, [1, 2, 3])])
                case .format: Self.extended(record, format: 2)
                }
            }
            func check(_ store: Store) throws {
                #expect(try store.allVersionIDs() == [a] && store.value(id("k"), at: a)?.data == bytes("1"))
                #expect(code { _ = try store.value(id("k"), at: b) } == .newerFormat)
                #expect(code { _ = try store.changes(madeIn: b) } == .newerFormat)
                #expect(code { _ = try store.makeVersion(basedOn: b, changes: []) } == .newerFormat)
                #expect(code { _ = try store.value(id("k"), at: c) } == .unknownVersion)
                let report = try store.verify()
                #expect(report.pending == 1 && report.unfinished.isEmpty)
                #expect(
                    report.damages.map(\.version) == [b]
                        && report.damages.allSatisfy { $0.lost == .version && $0.message.contains("newer version of the library") })
            }
            let store = try Self.store(place, directory, records, host)
            try check(store)
            _ = try store.compact()
            try check(store)
            try store.close()
            guard place == .file || place == .sqlite else { return }
            var options = Store.Options()
            options.storage = place == .file ? .file : .sqlite
            let path = directory + (place == .file ? "/store" : "/store.sqlite")
            let again = try Store(path: path, options: options)
            try check(again)
            try again.close()
            let report = try Salvage.run(path, options, into: directory + "/salvaged")
            #expect(
                report.versions == 1 && report.damages.contains { $0.version == b && $0.message.contains("newer version of the library") })
            let salvaged = try Store(path: directory + "/salvaged")
            // The version made from c builds on a.
            let made = try #require(report.made.first)
            #expect(try report.made.count == 1 && !made.isComplete && salvaged.value(id("k"), at: made.version)?.data == bytes("1"))
            #expect(code { _ = try salvaged.value(id("k"), at: b) } == .newerFormat)
            var found = 0
            try salvaged.storage.verify(
                OperationControl(), found: { if $0.prefix.elementsEqual(records[1]) { found += 1 } }, damage: { _ in })
            #expect(found == 1)
            // A device that has the version sends it in a readable form.
            let other = try hookedStore(Self.line { $0 }).0, memory = MemoryTransport(name: directory)
            _ = try Exchange(store: other, transport: memory).send()
            #expect(try Exchange(store: salvaged, transport: memory).retrieve().problems.isEmpty)
            #expect(try salvaged.value(id("k"), at: c)?.data == bytes("2"))
            try salvaged.close()
        }
    }

    @Test func extensionsAreInOrderAndInTheArea() throws {
        let record = try hostileRecord(plainVersion("v"), [.insert(id("k"), data: [1])])
        for (extensions, isTaken) in [
            ([(1, [])], true), ([(1, [1]), (3, [])], true), ([(3, []), (1, [])], false), ([(1, []), (1, [])], false),
        ] as [([(UInt64, [UInt8])], Bool)] {
            let (store, _) = try hookedStore([Self.extended(record, extensions)])
            #expect(try store.contains(VersionID("v")) == isTaken)
        }
        // Without its flag nothing may follow the metadata; with it, extensions fill the rest of the header.
        var cut = Self.extended(record, [(1, [1, 2, 3])])
        cut[1] = 0
        #expect(try !hookedStore([Self.extended(cut)]).0.contains(VersionID("v")))
        let torn = Self.extended(record, [(1, [1, 2, 3])]), size = Int(torn[4]) + 28
        var short = Array(torn[..<(size - 1)]) + Array(torn[size...])
        short[4] -= 1
        #expect(try !hookedStore([Self.extended(short, flags: RecordHeader.hasExtensions)]).0.contains(VersionID("v")))
    }

    /// Bit 6 of a tag marks data that readers may ignore.
    @Test func anIgnorableBitOfATagIsPassedOver() throws {
        var record = try hostileRecord(plainVersion("v"), [.insert(id("k"), data: [1])])
        let table = Int(record[4]) + 28, size = Int(record[8])
        // checksum, size, page number, offset of the first body, tag
        for (bit, isTaken) in [(UInt8(0x40), true), (0x80, false)] {
            record[table + 10] = 1 | bit
            var writer = ByteWriter(bytes: record)
            writer.patch(
                record.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[(table + 4)..<(table + size)])) }, at: table)
            let (store, _) = try hookedStore([writer.bytes])
            #expect((try? store.value(id("k"), at: VersionID("v"))?.data) == (isTaken ? [1] : nil))
        }
    }

    // MARK: Frames

    /// A segment of a, b and c, with frames of one kind before, between and after them.
    static func segment(_ kind: UInt8, sealed: Bool, in directory: String, damagingBodyOf damaged: Int? = nil) throws -> String {
        let storage = try FileStorage(path: directory + "/store")
        try storage.close(discarding: false)
        let id = RandomName(high: 1 << 60, low: 2), path = directory + "/store/segments/" + id.hex + ".seg"
        var all = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize)
        all.withUnsafeMutableBytes { FrameFormat.storeSegmentHeader(in: $0, id: id, created: 5, writer: .unknown) }
        var frames: UInt64 = 0, extra = 0
        func add(_ kind: UInt8, _ body: [UInt8], covering count: Int, isDamaged: Bool = false) {
            var head = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
            head.withUnsafeMutableBytes { b in
                FrameFormat.storeFrameHeader(
                    in: b, at: 0, kind: .batch, id: id, offset: UInt64(all.count), bodySize: UInt64(body.count),
                    tableChecksum: body.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[..<count])) })
                b[4] = kind
                b.storeBytes(of: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<44])).littleEndian, toByteOffset: 44, as: UInt32.self)
            }
            var body = body
            if isDamaged { body[body.count / 2] ^= 1 }
            all += head + body
            frames += 1
        }
        func addUnknown() {
            add(
                kind, StorageConformance.bytes(seed: UInt64(extra), count: 1_000_000 * (extra % 2) + 100),
                covering: 1_000_000 * (extra % 2) + 100, isDamaged: damaged == extra)
            extra += 1
        }
        for record in try line({ $0 }) {
            addUnknown()
            var body = ByteWriter()
            body.integer(UInt32(1))
            body.integer(UInt64(record.count))
            body.integer(record.withUnsafeBytes { Bytes.crc32c($0) })
            add(1, body.bytes + record, covering: 16)
        }
        addUnknown()
        if sealed {
            var seal = [UInt8](repeating: 0, count: FrameFormat.sealSize)
            seal.withUnsafeMutableBytes { FrameFormat.storeSeal(in: $0, id: id, offset: UInt64(all.count), frames: frames, records: 3) }
            all += seal
        }
        try writeFile(path, all)
        return path
    }

    @Test(arguments: [true, false], [128 as UInt8, 200, 255]) func ignorableFramesAreNoDamageAndNoTail(sealed: Bool, kind: UInt8) throws {
        try withTemporaryDirectory { directory in
            let path = try Self.segment(kind, sealed: sealed, in: directory), before = try readFile(path)
            let store = try DiskStore.open(0, directory)
            #expect(try store.value(id("k"), at: VersionID("c"))?.data == bytes("2") && store.statistics().damaged == 0)
            let report = try store.verify()
            #expect(report.isWhole && report.versions == 3 && report.unfinished.isEmpty == sealed)
            // The whole file was read: nothing at its end looks unfinished.
            if !sealed { #expect(report.unfinished.map(\.offset) == [UInt64(before.count)]) }
            // Unknown frames are neither compacted nor removed.
            _ = try store.set(["x": "1"], nil)
            _ = try store.compact()
            try store.close()
            #expect(try readFile(path) == before)
            #expect(try Salvage.run(directory + "/store", into: directory + "/salvaged").versions == 4)
        }
    }

    @Test(arguments: [true, false]) func criticalFramesAreReported(sealed: Bool) throws {
        try withTemporaryDirectory { directory in
            let path = try Self.segment(77, sealed: sealed, in: directory), before = try readFile(path)
            let store = try DiskStore.open(0, directory)
            #expect(try store.value(id("k"), at: VersionID("c"))?.data == bytes("2") && store.statistics().damaged == 4)
            let report = try store.verify()
            #expect(
                report.versions == 3 && report.damages.count == 4
                    && report.damages.allSatisfy { $0.message.contains("newer version of the library") })
            _ = try store.compact()
            try store.close()
            #expect(try readFile(path) == before)
        }
    }

    /// A damaged frame of an unknown kind affects no known frame.
    @Test(arguments: [true, false]) func damagedFramesThatAreIgnorable(sealed: Bool) throws {
        try withTemporaryDirectory { directory in
            _ = try Self.segment(200, sealed: sealed, in: directory, damagingBodyOf: 1)
            let store = try DiskStore.open(0, directory)
            #expect(try store.value(id("k"), at: VersionID("c"))?.data == bytes("2") && store.statistics().damaged == 1)
            let report = try store.verify()
            #expect(report.versions == 3 && report.damages.count == 1 && (report.damages[0].lost == .nothing) == sealed)
            try store.close()
        }
    }

    // MARK: The marker

    @Test func theMarkerHasAGrammar() throws {
        let whole = [
            ("LLVS store\nformat 1\n", true), ("LLVS store\nformat 1\nmore\u{0}\n", true), ("LLVS store\nformat +1\n", false),
            ("LLVS store\nformat 01\n", false),
            ("LLVS store\r\nformat 1\r\n", false), ("LLVS store\nformat 1", false), ("LLVS store\nformat 0\n", false),
            ("LLVS store\nformat  1\n", false), ("", false),
        ]
        for (text, isWhole) in whole {
            try withTemporaryDirectory { directory in
                let store = try DiskStore.open(0, directory)
                let version = try store.set(["k": "1"], nil)
                try store.close()
                try writeFile(directory + "/store/llvs-store", bytes(text))
                let again = try DiskStore.open(0, directory)
                #expect(try again.text("k", version) == "1")
                #expect(try again.verify().damages.map(\.lost) == (isWhole ? [] : [.nothing]), "\(text.debugDescription)")
                try again.close()
            }
        }
        // Any larger number is refused.
        for number in ["2", "10", "99999999999999999999999999"] {
            try withTemporaryDirectory { directory in
                try DiskStore.open(0, directory).close()
                try writeFile(directory + "/store/llvs-store", bytes("LLVS store\nformat \(number)\n"))
                #expect(code { _ = try DiskStore.open(0, directory) } == .newerFormat)
            }
        }
    }
}
