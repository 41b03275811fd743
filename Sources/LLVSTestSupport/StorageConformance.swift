import LLVS

/// What every storage must do, whatever it keeps its records in.
///
/// Runs without a test framework, so that a storage written elsewhere can be put through it too:
/// `StorageConformance.run { ... }` throws a `Failure` that names the check and what was wrong.
public enum StorageConformance {
    /// One place for a storage to be kept in, empty at first.
    public struct Subject {
        /// Opens a handle on it.
        public var open: (_ readOnly: Bool) throws -> any Storage
        /// What one handle stored, a handle opened after it was closed sees.
        public var isPersistent: Bool
        /// Several handles may be open at once, and see each other's records.
        public var isShared: Bool
        /// Can be opened read-only.
        public var opensReadOnly: Bool
        public init(isPersistent: Bool = true, isShared: Bool = true, opensReadOnly: Bool = true, open: @escaping (_ readOnly: Bool) throws -> any Storage) {
            self.open = open; self.isPersistent = isPersistent; self.isShared = isShared; self.opensReadOnly = opensReadOnly
        }
    }

    public struct Failure: Error, CustomStringConvertible {
        public let check: String
        public let message: String
        public var description: String { "storage conformance, \(check): \(message)" }
    }

    /// Runs all checks, each on a subject of its own.
    public static func run(make: () throws -> Subject) throws {
        for (name, check) in checks { try run(name, check, make) }
    }

    private static func run(_ name: String, _ check: (Subject) throws -> Void, _ make: () throws -> Subject) throws {
        do { try check(try make()) } catch let problem as Problem {
            throw Failure(check: name, message: problem.message)
        } catch {
            throw Failure(check: name, message: "an unexpected error was thrown: \(error)")
        }
    }

    private static let checks: [(String, @Sendable (Subject) throws -> Void)] = [
        ("a new storage is empty", emptiness),
        ("records are read back", roundTrip),
        ("what was appended is not scanned", ownRecordsAreNotScanned),
        ("ranges of a record are read", ranges),
        ("ranges that do not exist are refused", rangeErrors),
        ("empty and odd records", oddRecords),
        ("a record of many pieces", manyPieces),
        ("a batch of many records", largeBatch),
        ("a record of several MiB", largeRecord),
        ("10,000 small records", manyRecords),
        ("another handle opens and sees all", reopening),
        ("two handles see each other's records", sharing),
        ("large values are kept as blobs", blobs),
        ("caches are kept, replaced and deleted", caches),
        ("names of caches are checked", cacheNames),
        ("read-only", readOnly),
        ("verify reports every record and no damage", verifying),
        ("reading while appending, from several threads", concurrency),
        ("a closed storage refuses everything", closing),
    ]

    // MARK: Checks

    private static func emptiness(_ subject: Subject) throws {
        let storage = try subject.open(false)
        try expect(try scan(storage).isEmpty, "the first scan of an empty storage reports records")
        try expect(storage.damages.isEmpty, "an empty storage is damaged: \(storage.damages)")
        try expect(!storage.isReadOnly, "it says that it is read-only")
        try expect(!storage.description.isEmpty, "it has no description")
        try storage.sync()
        try expect(try append(storage, []).isEmpty, "appending no records returns places")
        try storage.close(discarding: false)
    }

    private static func roundTrip(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (1...20).map { bytes(seed: UInt64($0), count: $0 * 37) }
        var places = try append(storage, Array(records[0..<1]))
        places += try append(storage, Array(records[1..<20]))
        try expect(places.count == 20, "20 records got \(places.count) places")
        for (record, place) in zip(records, places) {
            try expect(place.length == UInt64(record.count), "a place says \(place.length) bytes for \(record.count)")
            try expect(try read(storage, place) == record, "a record of \(record.count) bytes is not read back")
        }
        try storage.sync()
        try storage.close(discarding: false)
    }

    private static func ownRecordsAreNotScanned(_ subject: Subject) throws {
        let storage = try subject.open(false)
        _ = try scan(storage)
        try append(storage, [bytes(seed: 1, count: 10)])
        try append(storage, [bytes(seed: 2, count: 10), bytes(seed: 3, count: 10)])
        try expect(try scan(storage).isEmpty, "records that were appended here are reported by scan")
        try storage.close(discarding: false)
    }

    private static func ranges(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 7, count: 300_000)
        let place = try append(storage, [bytes(seed: 6, count: 10), record, bytes(seed: 8, count: 10)])[1]
        for (offset, count) in [(0, 0), (0, 1), (0, 300_000), (299_999, 1), (300_000, 0), (65_535, 2), (65_536, 65_536), (1, 299_998), (100_000, 150_000)] {
            try expect(try read(storage, place, offset, count) == Array(record[offset..<offset + count]), "bytes \(offset) ..< \(offset + count) are not read back")
        }
        try storage.close(discarding: false)
    }

    private static func rangeErrors(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let place = try append(storage, [bytes(seed: 1, count: 100)])[0]
        for (offset, count) in [(0, 101), (100, 1), (101, 0), (Int.max, 1), (1, 100)] as [(Int, Int)] {
            try expectError([.damaged, .invalidArgument], "reading \(min(count, 200)) bytes at \(offset) of a record of 100") { _ = try read(storage, place, offset, count) }
        }
        var unknown = place
        unknown.segment = 4_000_000
        if unknown.segment != place.segment {
            try expectError([.damaged, .invalidArgument], "reading at a place that does not exist") { _ = try read(storage, unknown, 0, 1) }
        }
        try expect(try read(storage, place).count == 100, "the storage cannot be used after a refused read")
        try storage.close(discarding: false)
    }

    private static func oddRecords(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records: [[UInt8]] = [[], [0], [0xA7, 0x4C, 0x56, 0x46], [UInt8](repeating: 0, count: 5000), [], [0xFF]]
        let places = try append(storage, records)
        try expect(try append(storage, [[]]).first?.length == 0, "an empty record has a length")
        for (record, place) in zip(records, places) { try expect(try read(storage, place) == record, "the record \(record.prefix(4)) is not read back") }
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(try scan(again) == records + [[]], "odd records are not found again")
            try again.close(discarding: false)
        }
    }

    private static func manyPieces(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 3, count: 500_000)
        let place = try record.withUnsafeBytes { all in
            var pieces: [UnsafeRawBufferPointer] = [UnsafeRawBufferPointer(start: nil, count: 0)]
            var at = 0
            var random = SeededRandom(seed: 5)
            while at < all.count {
                let count = min(all.count - at, Int(random.next() % 7) == 0 ? 150_000 : Int(random.next() % 90))
                pieces.append(UnsafeRawBufferPointer(rebasing: all[at..<at + count]))
                at += count
            }
            return try storage.append([RecordPieces(pieces)])
        }
        try expect(place.count == 1, "one record got \(place.count) places")
        try expect(try read(storage, place[0]) == record, "a record of many pieces is not read back")
        try storage.close(discarding: false)
    }

    private static func largeBatch(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<5000).map { bytes(seed: UInt64($0), count: $0 % 200) }
        let places = try append(storage, records)
        for i in stride(from: 0, to: 5000, by: 97) { try expect(try read(storage, places[i]) == records[i], "record \(i) of 5,000 is not read back") }
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(try scan(again) == records, "a batch of 5,000 is not found again in order")
            try again.close(discarding: false)
        }
    }

    private static func largeRecord(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 9, count: 5 << 20)
        let small = bytes(seed: 10, count: 100)
        let places = try append(storage, [small, record, small])
        try expect(try read(storage, places[1]) == record, "a record of 5 MiB is not read back")
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            var found: [(RecordPlace, [UInt8])] = []
            try again.scan { found.append(($0.place, Array($0.prefix))) }
            try expect(found.count == 3, "\(found.count) records are found for 3")
            try expect(found[1].0.length == UInt64(record.count), "the record of 5 MiB is found with \(found[1].0.length) bytes")
            try expect(found[1].1.count >= ScannedRecord.prefixSize && found[1].1.elementsEqual(record.prefix(found[1].1.count)), "its first bytes are not those stored, or too few")
            try expect(try read(again, found[1].0) == record, "it is not read back at the place found")
            try expect(try read(again, found[1].0, 3_000_001, 70_000) == Array(record[3_000_001..<3_070_001]), "a range of it is not read back at the place found")
            try again.close(discarding: false)
        }
    }

    private static func manyRecords(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<10_000).map { bytes(seed: UInt64($0), count: 40 + $0 % 60) }
        for record in records { try append(storage, [record]) }
        try storage.sync()
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            try expect(Set(try scan(again)) == Set(records), "10,000 records are not all found again")
            try expect(try scan(again).isEmpty, "a second scan reports them again")
            try again.close(discarding: false)
        }
    }

    private static func reopening(_ subject: Subject) throws {
        guard subject.isPersistent else { return }
        var stored: Set<[UInt8]> = []
        for round in 0..<5 {
            let storage = try subject.open(false)
            try expect(Set(try scan(storage)) == stored, "in round \(round) not all records are found")
            let new = (0..<3).map { bytes(seed: UInt64(round * 10 + $0), count: 50 + round) }
            try append(storage, new)
            stored.formUnion(new)
            try storage.close(discarding: round % 2 == 1)
        }
    }

    private static func sharing(_ subject: Subject) throws {
        guard subject.isShared else { return }
        let a = try subject.open(false), b = try subject.open(false)
        _ = try scan(a)
        _ = try scan(b)
        for round in 0..<10 {
            let one = bytes(seed: UInt64(round), count: 100), two = (0..<3).map { bytes(seed: UInt64(100 + round * 3 + $0), count: 100) }
            try append(a, [one])
            try append(b, two)
            try expect(try scan(b) == [one], "round \(round): the second handle does not see exactly what the first appended")
            try expect(try scan(a) == two, "round \(round): the first handle does not see exactly what the second appended")
            try expect(try scan(a).isEmpty && scan(b).isEmpty, "round \(round): records are reported twice")
            try a.sync()
        }
        try a.close(discarding: false)
        try append(b, [[1]])
        try b.close(discarding: false)
        if subject.isPersistent {
            let c = try subject.open(false)
            try expect(try scan(c).count == 41, "not all of 41 records are found by a third handle")
            try c.close(discarding: false)
        }
    }

    private static func blobs(_ subject: Subject) throws {
        let storage = try subject.open(false)
        guard let threshold = storage.blobThreshold else {
            try expect(!storage.hasBlob(BlobID(high: 1, low: 2)), "a storage without blobs has one")
            try [UInt8](repeating: 0, count: 10).withUnsafeBytes { data in
                try expectError([.unsupported], "storing a blob") { _ = try storage.storeBlob(data) }
            }
            return try storage.close(discarding: false)
        }
        for count in [0, 1, 65_536, 65_537, threshold + 1, 3_000_000] {
            let data = bytes(seed: UInt64(count), count: count)
            let id = try data.withUnsafeBytes { try storage.storeBlob($0) }
            try expect(storage.hasBlob(id), "a blob of \(count) bytes is not there")
            for (offset, length) in [(0, count), (0, min(1, count)), (count / 2, count / 3), (max(0, count - 10), min(10, count)), (min(65_530, count), max(0, min(20, count - 65_530)))] {
                var out = [UInt8](repeating: 0, count: length)
                try out.withUnsafeMutableBytes { try storage.readBlob(id, at: UInt64(offset), into: $0) }
                try expect(out == Array(data[offset..<offset + length]), "bytes \(offset) ..< \(offset + length) of a blob of \(count) are not read back")
            }
            var over = [UInt8](repeating: 0, count: count + 1)
            try expectError([.damaged, .invalidArgument], "reading beyond the end of a blob") { try over.withUnsafeMutableBytes { try storage.readBlob(id, at: 0, into: $0) } }
        }
        try expect(!storage.hasBlob(BlobID(high: 1, low: 2)), "a blob that was never stored is there")
        try storage.sync()
        try storage.close(discarding: false)
    }

    private static func caches(_ subject: Subject) throws {
        let storage = try subject.open(false)
        try expect(try storage.cacheGet("index") == nil, "a cache that was never put is there")
        let large = bytes(seed: 4, count: 200_000)
        try storage.cachePut("index", [1, 2, 3])
        try storage.cachePut("a.b-c_9", large)
        try expect(try storage.cacheGet("index") == [1, 2, 3], "a cache is not read back")
        try storage.cachePut("index", [])
        try expect(try storage.cacheGet("index") == [], "a cache is not replaced")
        try expect(try storage.cacheGet("a.b-c_9") == large, "a cache of 200,000 bytes is not read back")
        try storage.cacheDelete("index")
        try storage.cacheDelete("index")
        try expect(try storage.cacheGet("index") == nil, "a cache is there after it was deleted")
        try storage.close(discarding: false)
        if subject.isPersistent {
            let again = try subject.open(false)
            let kept = try again.cacheGet("a.b-c_9")
            try expect(kept == nil || kept == large, "a cache is changed after reopening")
            try again.close(discarding: false)
        }
    }

    private static func cacheNames(_ subject: Subject) throws {
        let storage = try subject.open(false)
        for name in ["", "A", "a/b", "é", "a b", String(repeating: "x", count: 101), "a\u{0}"] {
            try expectError([.invalidArgument], "a cache named \"\(name)\"") { try storage.cachePut(name, [1]) }
            try expectError([.invalidArgument], "a cache named \"\(name)\"") { _ = try storage.cacheGet(name) }
        }
        for name in [".", "..", "-", String(repeating: "x", count: 100)] {
            try storage.cachePut(name, [7])
            try expect(try storage.cacheGet(name) == [7], "a cache named \"\(name)\" is not read back")
        }
        try storage.close(discarding: false)
    }

    private static func readOnly(_ subject: Subject) throws {
        guard subject.opensReadOnly else { return }
        let writer = try subject.open(false)
        let records = [bytes(seed: 1, count: 10), bytes(seed: 2, count: 20)]
        try append(writer, records)
        try writer.close(discarding: false)
        let reader = try subject.open(true)
        try expect(reader.isReadOnly, "it does not say that it is read-only")
        try expect(try scan(reader) == records, "not all records are found")
        try expectError([.readOnly], "appending") { try append(reader, [[1]]) }
        try reader.sync()
        try reader.cachePut("x", [1])
        try expect(try reader.cacheGet("x") == [1], "a cache is not kept in memory")
        try reader.close(discarding: false)
    }

    private static func verifying(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let records = (0..<50).map { bytes(seed: UInt64($0), count: $0 * 3000) }
        try append(storage, Array(records[0..<25]))
        for record in records[25...] { try append(storage, [record]) }
        var found: [(RecordPlace, [UInt8])] = [], damage: [StorageDamage] = []
        try storage.verify(OperationControl(), found: { found.append(($0.place, Array($0.prefix))) }, damage: { if $0.lost != .unfinished { damage.append($0) } })
        try expect(damage.isEmpty, "a sound storage is reported as damaged: \(damage)")
        try expect(found.count == 50, "\(found.count) records are reported for 50")
        for (place, prefix) in found {
            let record = try read(storage, place)
            try expect(records.contains(record) && record.starts(with: prefix), "a record is reported that was not stored")
        }
        let token = CancelToken()
        token.cancel()
        try expectError([.cancelled], "verifying after it was cancelled") {
            try storage.verify(OperationControl(token: token), found: { _ in }, damage: { _ in })
        }
        try storage.close(discarding: false)
    }

    private static func concurrency(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let record = bytes(seed: 77, count: 70_000)
        let place = try append(storage, [record])[0]
        let failures = Parallel.run(threads: 4, times: 200) { thread, turn in
            if thread == 0 { try append(storage, [[UInt8(truncatingIfNeeded: turn)]]) }
            if thread == 1, turn % 20 == 0 { try storage.sync() }
            let offset = (turn * 331) % 60_000
            guard try read(storage, place, offset, 500) == Array(record[offset..<offset + 500]) else { throw Problem(message: "wrong bytes") }
        }
        try expect(failures.isEmpty, "threads met errors: \(failures.prefix(3))")
        try storage.close(discarding: false)
    }

    private static func closing(_ subject: Subject) throws {
        let storage = try subject.open(false)
        let place = try append(storage, [[1, 2, 3]])[0]
        try storage.close(discarding: false)
        try storage.close(discarding: false)
        try expectError([.closed], "append") { try append(storage, [[1]]) }
        try expectError([.closed], "sync") { try storage.sync() }
        try expectError([.closed], "scan") { _ = try scan(storage) }
        try expectError([.closed], "read") { _ = try read(storage, place) }
        try expectError([.closed], "cacheGet") { _ = try storage.cacheGet("x") }
        try expectError([.closed], "cachePut") { try storage.cachePut("x", [1]) }
        try expectError([.closed], "cacheDelete") { try storage.cacheDelete("x") }
        try expectError([.closed], "verify") { try storage.verify(OperationControl(), found: { _ in }, damage: { _ in }) }
        if storage.blobThreshold != nil { try expectError([.closed], "storeBlob") { _ = try [1, 2].withUnsafeBytes { try storage.storeBlob($0) } } }
    }

    // MARK: Tools

    private struct Problem: Error { let message: String }

    private static func expect(_ holds: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String) throws {
        if try !holds() { throw Problem(message: message()) }
    }

    private static func expectError(_ codes: [StoreError.Code], _ what: String, _ body: () throws -> Void) throws {
        do { try body() } catch let error as StoreError {
            guard codes.contains(error.code) else { throw Problem(message: "\(what) threw the code \(error.code.rawValue), not one of \(codes.map(\.rawValue)): \(error)") }
            return
        }
        throw Problem(message: "\(what) was not refused")
    }

    /// Appends whole byte arrays.
    @discardableResult
    public static func append(_ storage: any Storage, _ records: [[UInt8]]) throws -> [RecordPlace] {
        // One allocation that stays where it is, since the pieces point into it.
        let all = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, records.reduce(0) { $0 + $1.count }), alignment: 1)
        defer { all.deallocate() }
        var at = 0
        let pieces = records.map { record in
            let part = UnsafeMutableRawBufferPointer(rebasing: all[at..<at + record.count])
            part.copyBytes(from: record)
            at += record.count
            return RecordPieces([UnsafeRawBufferPointer(part)])
        }
        return try storage.append(pieces)
    }

    /// The records that a scan reports, read whole.
    public static func scan(_ storage: any Storage) throws -> [[UInt8]] {
        var places: [RecordPlace] = []
        try storage.scan { places.append($0.place) }
        return try places.map { try read(storage, $0) }
    }

    public static func read(_ storage: any Storage, _ place: RecordPlace) throws -> [UInt8] { try read(storage, place, 0, Int(place.length)) }

    public static func read(_ storage: any Storage, _ place: RecordPlace, _ offset: Int, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { try storage.read(place, at: UInt64(offset), into: $0) }
        return bytes
    }

    /// Bytes that depend on the seed.
    public static func bytes(seed: UInt64, count: Int) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            let word = random.next()
            for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}
