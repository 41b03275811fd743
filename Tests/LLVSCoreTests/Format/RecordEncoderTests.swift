import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Records that are encoded in pieces equal those encoded as a whole.
@Suite struct RecordEncoderTests {
    /// Changes of all kinds, sorted; values that are empty, small, deflated or not, and large.
    static func changes(_ count: Int, _ random: inout SeededRandom) throws -> [Value.Change] {
        let stored = [try VersionID("one"), try VersionID("two"), VersionID.random()]
        return try (0..<count).map { i in
            let name = String(repeating: "k", count: Int(random.next() % 40)), number = String(10_000 + i)
            let id = try ValueID("\(number)\(name)")
            switch random.next() % 16 {
            case 0: return .remove(id)
            case 1: return .preserveRemoval(id)
            case 2: return .preserve(Value.Reference(id: id, version: stored[Int(random.next() % 3)]))
            case 3: return .update(id, data: [])
            case 4: return .insert(id, data: (0..<Int(random.next() % 3_000)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            case 5:
                return .insert(
                    id,
                    data: [UInt8](repeating: UInt8(truncatingIfNeeded: i), count: 2_000) + (0..<700).map { _ in UInt8(random.next() % 16) })
            case 6:
                return .update(id, data: (0..<Int(70_000 + random.next() % 9_000)).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) & 0x3F })
            default: return .insert(id, data: (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            }
        }
    }

    /// The record as a whole, and in pieces.
    private func encode(_ sizes: RecordEncoder.Sizes, _ changes: [Value.Change], blobThreshold: Int?) throws -> (
        bytes: [UInt8], pieces: Int, header: UInt32
    ) {
        var version = try plainVersion("version", ["before"])
        version.metadata = try Metadata([(bytes("key"), bytes("value"))])
        return try changes.withBorrowed { borrowed in
            let encoder = RecordEncoder(sizes)
            // Nothing remains of a record that the encoder made before.
            try encoder.encode(plainVersion("other"), RecordChanges(Array(borrowed.prefix(3))), blobThreshold: nil) { _, _ in
                BlobID(high: 0, low: 0)
            }
            let changes = RecordChanges(borrowed)
            try encoder.encode(version, changes, blobThreshold: blobThreshold) { data, _ in BlobID(high: 7, low: UInt64(data.count)) }
            let record = encoder.pieces(changes)
            var all: [UInt8] = [], count = 0
            try record.forEach {
                all.append(contentsOf: $0); count += 1
            }
            #expect(all.count == record.length)
            #expect(try record.bytes() == all, "asked again, it is another")
            #expect(try record.checksum() == all.withUnsafeBytes { Bytes.crc32c($0) })
            #expect(encoder.bodies.reduce(encoder.bodiesStart) { $0 + $1.sizeInRecord } == all.count)
            return (all, count, encoder.checksum)
        }
    }

    @Test(arguments: Sample.seeds(from: 1, usual: 7, deep: 20)) func piecesAreTheWhole(seed: UInt64) throws {
        // zlib deflates pieces, which yields other bytes than libdeflate for the whole.
        try DeflateTests.byZlib { try makePiecesAndTheWhole(seed) }
    }

    private func makePiecesAndTheWhole(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let changes = try Self.changes(Int(random.next() % 300), &random)
        let threshold = random.next() % 2 == 0 ? 1_500 : nil
        var all = RecordEncoder.Sizes()
        all.whole = 1 << 30; all.table = 1 << 30; all.deflated = 1 << 30
        let whole = try encode(all, changes, blobThreshold: threshold)
        #expect(whole.pieces == 1)
        var few = RecordEncoder.Sizes()
        few.piece = 1 + Int(random.next() % 3_000)
        few.largeValue = Int(random.next() % 300)
        few.whole = 0
        few.table = Int(random.next() % 5_000)
        few.deflated = Int(random.next() % 100_000)
        let made = try encode(few, changes, blobThreshold: threshold)
        #expect(made.bytes == whole.bytes, "\(Sample.hint(seed))")
        #expect(made.header == whole.header)
        #expect(try encode(RecordEncoder.Sizes(), changes, blobThreshold: threshold).bytes == whole.bytes, "\(Sample.hint(seed))")
    }

    /// No part of a record is larger than a piece, and only a large value is a piece by itself.
    @Test func piecesHaveTheirSize() throws {
        var sizes = RecordEncoder.Sizes()
        sizes.piece = 10_000; sizes.largeValue = 5_000; sizes.whole = 0; sizes.table = 0; sizes.deflated = 0
        let changes: [Value.Change] = try (0..<2_000).map {
            .insert(try id("value \(10_000 + $0)"), data: [UInt8](repeating: 1, count: 100))
        }
        let made = try encode(sizes, changes, blobThreshold: nil)
        #expect(made.bytes.count > 200_000)
        #expect(made.pieces <= 2 + made.bytes.count / 8_000)
    }

    /// If the caller's bytes change while they are stored, the call fails or stores the first state; it never traps.
    @Test(arguments: [
        (10, 100, 20, 100), (10, 100, 9, 100), (10, 100, 10, 70_000), (10, 70_000, 10, 100), (10, 2_000, 10, 0), (10, 0, 10, 2_000),
        (10, 2_000, 4_000, 1_000),
    ])
    func whatChangesMeanwhileIsRefused(id: Int, data: Int, laterID: Int, laterData: Int) throws {
        let memory = [UInt8](repeating: 0x61, count: 100_000)
        try withExtendedLifetime(memory) {
            func bytes(_ count: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.withUnsafeBytes { $0 }[..<count]) }
            for threshold in [nil, 50_000] {
                nonisolated(unsafe) var isLater = false
                let changes = RecordChanges(
                    BorrowedChanges(
                        count: 500,
                        bytes: { _ in
                            BorrowedChange.Bytes(kind: .insert, id: bytes(isLater ? laterID : id), data: bytes(isLater ? laterData : data))
                        }, storedVersion: { _ in nil }))
                var sizes = RecordEncoder.Sizes()
                sizes.whole = 0; sizes.table = 0; sizes.deflated = 0; sizes.piece = 1_000
                let encoder = RecordEncoder(sizes)
                try encoder.encode(plainVersion("version"), changes, blobThreshold: threshold) { _, _ in BlobID(high: 1, low: 2) }
                let whole = try encoder.bytes(changes)
                isLater = true
                var later: [UInt8]?
                #expect(code { later = try encoder.bytes(changes) } == (later == nil ? .invalidArgument : nil))
                #expect(later == nil || later?.count == whole.count)
            }
        }
    }

    /// If a record differs from what was announced, nothing of it is stored.
    @Test(arguments: [900_000, 1_100_000, 0]) func aRecordThatIsNotWholeIsNotStored(made: Int) throws {
        try withTemporaryDirectory { directory in
            let storage = try FileStorage(path: directory + "/store")
            let data = [UInt8](repeating: 7, count: 100_000)
            try StorageConformance.append(storage, [bytes("before")])
            data.withUnsafeBytes { piece in
                let record = RecordPieces(length: 1_000_000, checksum: 1) { sink in
                    for _ in 0..<made / piece.count { try sink(piece) }
                    if made == 0 { try sink(piece); throw StoreError(.busy, "It cannot go on.") }
                }
                #expect(code { _ = try storage.append([record]) } == (made == 0 ? .busy : .invalidArgument))
            }
            try StorageConformance.append(storage, [bytes("after")])
            try storage.close(discarding: false)
            let again = try FileStorage(path: directory + "/store")
            #expect(try Set(StorageConformance.scan(again)) == [bytes("before"), bytes("after")])
            #expect(again.damages.isEmpty)
            try again.close(discarding: false)
        }
    }
}

/// Ids are stored in the order of their bytes, whatever prefixes they share.
@Suite struct ChangeOrderTests {
    private func order(_ ids: [[UInt8]]) throws -> [[UInt8]] {
        try withExtendedLifetime(ids) {
            let none = UnsafeRawBufferPointer(start: nil, count: 0)
            let changes = BorrowedChanges(
                count: ids.count, bytes: { BorrowedChange.Bytes(kind: .remove, id: ids[$0].withUnsafeBytes { $0 }, data: none) },
                storedVersion: { _ in nil })
            return try ChangeOrder(checking: changes).sorted.map { Array($0.id) }
        }
    }

    @Test(arguments: Sample.seeds(from: 1, usual: 6, deep: 12)) func idsAreSortedByBytes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let prefix = [UInt8](repeating: 0x43, count: Int(random.next() % 20))
        let letters: [UInt8] = seed % 3 == 0 ? [0, 1] : seed % 3 == 1 ? [0x41, 0x42] : Array(0x20...0x7E)
        let longest = seed % 2 == 0 ? 12 : 40
        var ids: Set<[UInt8]> = []
        for _ in 0..<2_000 {
            // Runs of equal bytes make large groups of ids that share eight bytes, and the next eight, and so on.
            let run = [UInt8](repeating: letters[0], count: Int(random.next() % 4) * 7)
            ids.insert(
                prefix + run + (0...Int(random.next() % UInt64(longest))).map { _ in letters[Int(random.next() % UInt64(letters.count))] })
        }
        let shuffled = ids.shuffled(using: &random)
        let sorted = shuffled.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(try order(shuffled) == sorted, "seed \(seed)")
        #expect(try order(sorted) == sorted)
        #expect(try order(sorted.reversed()) == sorted)
    }

    @Test(arguments: [1, 2, 40, 1_000]) func anIDNamedTwiceIsFound(count: Int) throws {
        for name in ["x", "a long one that all of them begin with "] {
            let ids = (0..<count).map { bytes("\(name)\($0)") } + [bytes("\(name)0")]
            #expect(code { _ = try order(ids) } == .duplicateID)
            #expect(code { _ = try order(ids.reversed()) } == .duplicateID)
        }
    }

    /// Recorded labels are right whatever labels the caller gave, and changes without effect are dropped.
    @Test func changesInNoOrderAreLabelled() throws {
        let store = try memoryStore()
        let a = try store.makeVersion(basedOn: nil, changes: [.update(id("m"), data: [1]), .insert(id("c"), data: [2]), .remove(id("z"))])
        #expect(try store.changes(madeIn: a.id).map { "\($0.kind) \($0.id)" } == ["insert c", "insert m"])
        let b = try store.makeVersion(
            basedOn: a.id, changes: [.insert(id("m"), data: [3]), .remove(id("absent")), .update(id("a"), data: [4]), .remove(id("c"))])
        #expect(try store.changes(madeIn: b.id).map { "\($0.kind) \($0.id)" } == ["insert a", "remove c", "update m"])
    }
}
