import LLVS
@testable import LLVSCore

/// Version records that a storage of the host returns.
///
///     input = how u8 (bit 0: checksums as they come; bit 1: the parts are whole envelopes) · (size u16 · record) ...
enum RecordsTarget {
    static let target = FuzzTarget(name: "records", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte()
        var envelopes: [[UInt8]] = []
        while !input.isAtEnd, envelopes.count < 64 {
            var record = input.part()
            if how & 2 != 0 { envelopes.append(record); continue }
            if how & 1 == 0 { Repair.record(&record) }
            envelopes.append(Repair.envelope(record))
        }
        Examining.attempt {
            Examining.examine(try Store(storage: storage(envelopes), options: Examining.options()))
        }
    }

    /// A storage with the given envelopes, which also accepts additions.
    private static func storage(_ envelopes: [[UInt8]]) -> CallbackStorage {
        final class Rows { var all: [[UInt8]] = [] }
        let rows = Rows()
        rows.all = envelopes
        return CallbackStorage(
            functions: CallbackStorage.Functions(
                append: { records in
                    let first = rows.all.count
                    for record in records { rows.all.append(Array(record)) }
                    return (first..<rows.all.count).map { UInt64($0) }
                },
                list: { mark in
                    let from = min(Int(mark), rows.all.count)
                    return (
                        (from..<rows.all.count).map { CallbackStorage.Listed(place: UInt64($0), size: UInt64(rows.all[$0].count)) },
                        UInt64(rows.all.count)
                    )
                },
                read: { place, offset, buffer in
                    guard place < UInt64(rows.all.count) else { return 0 }
                    let row = rows.all[Int(place)]
                    guard let offset = Int(exactly: offset), offset <= row.count else { return 0 }
                    let count = min(buffer.count, row.count - offset)
                    row.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
                    return count
                }))
    }

    /// The record of a version, as the library writes it.
    static func record(_ version: Version, _ changes: [Value.Change]) throws -> [UInt8] {
        try changes.withBorrowed { borrowed in
            let changes = RecordChanges(borrowed)
            let encoder = RecordEncoder()
            try encoder.encode(version, changes, blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
            return try encoder.bytes(changes)
        }
    }

    /// Adds flags and extensions that readers may ignore.
    private static func extended(_ record: [UInt8]) -> [UInt8] {
        let extensions: [UInt8] = [1, 3, 7, 7, 7, 0x81, 1, 0]
        let size = record.withUnsafeBytes { FrameFormat.load($0, 4, UInt32.self) }
        var writer = ByteWriter(bytes: record)
        writer.bytes.insert(contentsOf: extensions, at: RecordHeader.preludeSize + Int(size))
        writer.bytes[1] = RecordHeader.hasExtensions | 0xE0
        writer.patch(size + UInt32(extensions.count), at: 4)
        return writer.bytes
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let records = try Examples.history().map { try record($0.version, $0.changes) }
        var whole: [UInt8] = [0]
        for record in records { whole += FuzzInput.part(record) }
        let envelopes = records.reduce(into: [UInt8(2)]) { $0 += FuzzInput.part(Repair.envelope($1)) }
        let extended = records.reduce(into: [UInt8(0)]) { $0 += FuzzInput.part(RecordsTarget.extended($1)) }
        return [
            FuzzTarget.Seed(name: "history", bytes: whole), FuzzTarget.Seed(name: "extended", bytes: extended),
            FuzzTarget.Seed(name: "envelopes", bytes: envelopes),
        ]
            + records.enumerated().map { FuzzTarget.Seed(name: "record-\($0)", bytes: [0] + FuzzInput.part($1)) }
    }
}
