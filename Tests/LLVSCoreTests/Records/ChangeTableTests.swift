import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Looking up ids in the table of changes of a record.
@Suite struct ChangeTableTests {
    /// Ids, every other one of which is recorded.
    static func ids(_ count: Int, padding: Int = 0) throws -> [ValueID] {
        try (0..<count).map { try ValueID("k" + String(String(100_000 + $0).dropFirst()) + String(repeating: "x", count: padding)) }
    }

    static func make(_ storage: any Storage, _ ids: [ValueID]) throws -> (store: Store, version: VersionID, place: RecordPlace) {
        let store = try Store(storage: storage, options: Store.Options())
        let changes = ids.enumerated().compactMap { $0 % 2 == 0 ? nil : Value.Change.insert($1, data: bytes("\($0)")) }
        let version = try store.makeVersion(basedOn: nil, changes: changes).id
        return (store, version, store.place(of: try store.requireOrdinal(version)))
    }

    @Test func findsWhatIsThereInAnyOrder() throws {
        for (count, padding) in [(1, 0), (2, 0), (100, 0), (127, 0), (128, 0), (129, 0), (1_000, 0), (2_000, 0), (300, 4_000)] {
            let ids = try Self.ids(count, padding: padding)
            let (store, _, place) = try Self.make(MemoryStorage(), ids)
            var random = SeededRandom(seed: UInt64(count))
            let orders = [
                Array(ids.indices), ids.indices.reversed(), ids.indices.shuffled(using: &random), ids.indices.filter { $0 % 97 < 3 },
            ]
            for isAnew in [false, true] {
                let table = try ChangeTable(place, anew: isAnew, in: store.records)
                for order in orders {
                    for i in order {
                        let size = try ids[i].bytes.withUnsafeBytes { try table.find($0, in: store.records).map { $0.size } }
                        #expect(size == (i % 2 == 0 ? nil : "\(i)".utf8.count), "\(i) of \(count)")
                    }
                }
            }
        }
    }

    /// If unchecked bytes mislead the search, the result is right or an error.
    @Test func isNotLedAstray() throws {
        let storage = CountingStorage(MemoryStorage()), ids = try Self.ids(4_000)
        let (store, _, place) = try Self.make(storage, ids)
        var random = SeededRandom(seed: 3)
        var found = 0, refused = 0
        for round in 0..<2_000 {
            let i = Int.random(in: ids.indices, using: &random), bits = UInt8.random(in: 1...255, using: &random),
                at = Int.random(in: 0..<10, using: &random)
            var left = round % 3 == 0 ? 1 : 3
            storage.meddleWithRecords { _, buffer in
                // The beginning of a page: a digit of its first id is changed.
                guard buffer.count == RecordTable.firstIDSize, left > 0 else { return }
                left -= 1
                for j in buffer.indices where buffer[j] == UInt8(ascii: "k") && j + 5 < buffer.count {
                    if at < 5 { buffer[j + 1 + at] = UInt8(ascii: "0") + bits % 10 } else { buffer[j - 1 - at % 5] ^= bits }
                    break
                }
            }
            defer { storage.meddleWithRecords(nil) }
            do {
                let size = try ids[i].bytes.withUnsafeBytes { try store.records.findChange(place, $0)?.body.size }
                #expect(size == (i % 2 == 0 ? nil : "\(i)".utf8.count), "\(i)")
                found += 1
            } catch let error as StoreError {
                #expect(error.code == .damaged)
                refused += 1
            }
        }
        #expect(found > 500, "\(found) found, \(refused) refused")
    }

    /// A page is used only if all of it is intact.
    @Test func damagedPagesAreRefused() throws {
        let storage = CountingStorage(MemoryStorage()), ids = try Self.ids(1_000)
        let (store, _, place) = try Self.make(storage, ids)
        storage.meddleWithRecords { offset, buffer in
            if offset > 0, buffer.count > RecordTable.firstIDSize { buffer[buffer.count - 3] ^= 1 }
        }
        #expect(code { _ = try ids[501].bytes.withUnsafeBytes { try store.records.findChange(place, $0) } } == .damaged)
        storage.meddleWithRecords(nil)
        #expect(try ids[501].bytes.withUnsafeBytes { try store.records.findChange(place, $0)?.kind } == .insert)
    }
}
