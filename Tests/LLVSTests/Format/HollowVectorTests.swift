import Foundation
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange

/// Records with hollow changes: Tests/Vectors/hollow.json.
struct HollowVectorTests {
    private struct Vectors: Decodable {
        struct Change: Decodable {
            var id: String
            var size: Int
            var hollow: Bool
            var value: String?
        }
        struct Vector: Decodable {
            var name: String
            var record: String
            var refused: String?
            var changes: [Change]?
            var identity: String?
            var sum_is_right: Bool?
        }
        var format: Int
        var vectors: [Vector]
    }

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8), values = digits.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        return stride(from: 0, to: digits.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    /// Packs have hollow records as others, and whoever reads them decides what to take.
    @Test func packsHaveThem() throws {
        for vector in try read() where vector.refused == nil {
            let record = bytes(vector.record)
            var payload = ByteWriter()
            payload.bytes.append(0)
            payload.varint(UInt64(record.count))
            payload.raw(record)
            payload.varint(0)
            let isMarked = record[1] & RecordHeader.hasHollowFlag != 0
            let header = try PackedVersion.contents(VersionID("hollow"), payload.bytes).header
            #expect(header.hasHollow == isMarked, "\(vector.name)")
        }
    }

    private func read() throws -> [Vectors.Vector] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/hollow.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(vectors.format == 1 && vectors.vectors.count > 20)
        return vectors.vectors
    }

    @Test func vectors() throws {
        for vector in try read() {
            let record = bytes(vector.record)
            var reader = RecordReader(record, length: record.count)
            guard case .whole(let header) = try reader.header() else { Issue.record("\(vector.name): its header"); continue }
            var found: [(String, Int, Bool)] = []
            let isWhole = try reader.forEachChange(header) {
                found.append((String(decoding: $0.id, as: UTF8.self), $0.size, $0.isHollow))
            }
            #expect(isWhole == (vector.refused == nil), "\(vector.name)")
            guard let changes = vector.changes else { continue }
            #expect(found.elementsEqual(changes.map { ($0.id, $0.size, $0.hollow) }) { $0 == $1 }, "\(vector.name)")
            let store = try Store.inMemory()
            let place = try #require(
                try store.withCommitLock { try record.withUnsafeBytes { try store.storage.append([RecordPieces($0)]) } }.first)
            #expect(try store.admit([PendingVersions.Record(place: place, header: header)]) == [header.id])
            #expect(try store.records.identityDigest(place) == vector.identity.map(bytes), "\(vector.name)")
            for change in changes {
                do {
                    let value = try store.value(ValueID(change.id), at: header.id)
                    #expect(!change.hollow && value?.data == change.value.map(bytes), "\(vector.name)")
                } catch StoreError.forgotten { #expect(change.hollow, "\(vector.name)") }
            }
            #expect(try store.verify().damages.isEmpty == vector.sum_is_right, "\(vector.name)")
        }
    }
}
