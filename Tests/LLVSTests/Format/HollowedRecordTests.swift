import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// Records that are made anew with hollow changes.
@Suite struct HollowedRecordTests {
    /// All encodings, several pages, preserves, removals, differences, metadata.
    @Test(arguments: Sample.seeds(from: 1, usual: 4, deep: 60)) func allElseStaysAsItWas(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            var random = SeededRandom(seed: seed)
            let store = try DiskStore.open(0, directory)
            defer { try? store.close() }
            var texts = (0..<130).map { _ in Filling.words(Int.random(in: 0..<6_000, using: &random), 3) }
            func changes(_ every: Int) throws -> [Value.Change] {
                try texts.indices.filter { $0 % every == 0 }.map { i in
                    texts[i] += bytes("edit \(i)")
                    return .update(try id("v\(i)"), data: texts[i])
                }
            }
            let first = try store.makeVersion(
                basedOn: nil, changes: changes(1) + [.insert(id("vast"), data: Filling.words(1_200_000, 4))])
            let second = try store.makeVersion(
                basedOn: first.id, changes: changes(2) + [.remove(id("v1")), .update(id("vast"), data: Filling.words(1_100_000, 5))],
                metadata: Metadata([(bytes("by"), bytes("\"ann\""))]))
            let beside = try store.makeVersion(basedOn: first.id, changes: [.update(id("v3"), data: bytes("beside")), .remove(id("v5"))])
            let merged = try store.merge(second.id, with: beside.id, arbiter: BuiltInArbiter.mostRecentChange)
            for version in [first, second, beside, merged] {
                let place = store.place(of: try store.requireOrdinal(version.id)), old = try store.records.bytes(of: place)
                var values: [ValueID: [UInt8]] = [:], differences: Set<ValueID> = [], blobs: [ValueID: BlobID] = [:]
                try store.records.forEachChange(place) { entry, _ in
                    guard entry.kind == .insert || entry.kind == .update else { return }
                    let key = ValueID(unchecked: entry.id)
                    values[key] = try store.records.withValue(entry, in: place, of: version.id) { Array($0) }
                    if entry.isDifference { differences.insert(key) }
                    blobs[key] = entry.blob
                }
                // Without any change the bytes are the same.
                #expect(try HollowedRecord(old, hollow: [:]).bytes == old)
                let gone = Set(values.keys.sorted(by: <).filter { _ in Bool.random(using: &random) })
                let whole = differences.subtracting(gone).filter { _ in Bool.random(using: &random) }
                let hollow = Dictionary(uniqueKeysWithValues: gone.map { ($0, (values[$0] ?? []).withUnsafeBytes { SHA256.digest($0) }) })
                let made = try HollowedRecord(old, hollow: hollow, whole: values.filter { whole.contains($0.key) })
                #expect(Set(made.freed) == Set(gone.compactMap { blobs[$0] }))
                let new = try #require(
                    try store.withCommitLock { try made.bytes.withUnsafeBytes { try store.storage.append([RecordPieces($0)]) } }.first)
                let header = try store.records.header(new), before = try store.records.header(place)
                #expect(header.version == before.version && header.dependencies == before.dependencies && header.hasHollow == !gone.isEmpty)
                #expect(Set(header.blobs) == Set(before.blobs).subtracting(made.freed))
                #expect(try store.records.identityDigest(new) == store.records.identityDigest(place))
                #expect(try store.records.vouching(new).0 == .content)
                try store.records.forEachChange(new) { entry, _ in
                    let key = ValueID(unchecked: entry.id)
                    #expect(entry.isHollow == gone.contains(key))
                    guard let value = values[key], !entry.isHollow else { return }
                    #expect(entry.isDifference == (differences.contains(key) && !whole.contains(key)))
                    let now = try store.records.withValue(entry, in: new, of: version.id) { Array($0) }
                    #expect(now == value)
                }
            }
        }
    }
}
