import LLVS
@testable import LLVSCore

/// Writes valid checksums where a decoder checks them. Otherwise nearly all changes of a fuzzer would be refused for their checksums, and
/// the code behind the checks would never run. An attacker who makes a file can do the same.
enum Repair {
    /// Repairs the checksums of a record: of its header, its pages and its bodies.
    static func record(_ bytes: inout [UInt8]) {
        guard bytes.count >= RecordHeader.preludeSize else { return }
        let tableOffset = RecordHeader.preludeSize + Int(integer(bytes, 4, UInt32.self))
        guard tableOffset <= bytes.count else { return }
        bytes[0] = RecordHeader.format
        var crc = checksum(bytes[0..<24])
        crc = checksum(bytes[RecordHeader.preludeSize..<tableOffset], from: crc)
        put(crc, &bytes, 24)

        guard case .whole(let header) = bytes.withUnsafeBytes({ RecordHeader.read($0, recordLength: UInt64($0.count)) }) else { return }
        var at = tableOffset
        for number in 0..<header.pageCount {
            guard at + 8 <= bytes.count else { return }
            let end = at + RecordTable.pageHeaderSize + Int(integer(bytes, at + 4, UInt32.self))
            guard end <= bytes.count else { return }
            put(checksum(bytes[at + 4..<end]), &bytes, at)
            bodies(of: number, at..<end, header, &bytes)
            at = end
        }
    }

    private static func bodies(of page: Int, _ range: Range<Int>, _ header: RecordHeader, _ bytes: inout [UInt8]) {
        var found: [(at: Int, size: Int, field: UInt32, id: [UInt8])] = []
        let table = Array(bytes[range])
        _ = try? table.withUnsafeBytes { raw in
            var needs: Int?
            return try RecordTable.readPage(raw, number: page, of: header, needs: &needs) { entry in
                let field = UInt32(entry.storedSize) | (entry.isDifference ? RecordTable.differenceBit : 0)
                if entry.bodyOffset > 0 { found.append((entry.bodyOffset, entry.storedSize, field, Array(entry.id))) }
            }
        }
        for (at, size, field, id) in found where size < bytes.count && at + RecordTable.bodyHeaderSize <= bytes.count - size {
            put(field, &bytes, at + 4)
            let stored = Array(bytes[at + RecordTable.bodyHeaderSize..<at + RecordTable.bodyHeaderSize + size])
            put(
                id.withUnsafeBytes { id in
                    stored.withUnsafeBytes { RecordTable.bodyChecksum(sizeField: field, id: id, version: header.id, stored: $0) }
                }, &bytes, at)
        }
    }

    /// Repairs the checksums, ids and offsets of a segment and of its records. Returns its id.
    static func segment(_ bytes: inout [UInt8]) -> RandomName? {
        guard bytes.count >= FrameFormat.segmentHeaderSize else { return nil }
        put(FrameFormat.segmentMagic, &bytes, 0)
        put(checksum(bytes[0..<60]), &bytes, 60)
        let id = bytes.withUnsafeBytes { RandomName(loading: $0, at: 16) }
        var at = FrameFormat.segmentHeaderSize
        while at + FrameFormat.frameHeaderSize <= bytes.count {
            let body = at + FrameFormat.frameHeaderSize
            guard let size = Int(exactly: integer(bytes, at + 32, UInt64.self)), size <= bytes.count - body else { break }
            put(FrameFormat.frameMagic, &bytes, at)
            bytes.withUnsafeMutableBytes { id.store(in: $0, at: at + 8) }
            put(UInt64(at), &bytes, at + 24)
            put(frameChecksum(kind: bytes[at + 4], body..<body + size, &bytes), &bytes, at + 40)
            put(checksum(bytes[at..<at + 44]), &bytes, at + 44)
            at = body + size
        }
        return id
    }

    private static func frameChecksum(kind: UInt8, _ body: Range<Int>, _ bytes: inout [UInt8]) -> UInt32 {
        guard kind == FrameFormat.Kind.batch.rawValue, body.count >= 4 else { return checksum(bytes[body]) }
        let count = Int(integer(bytes, body.lowerBound, UInt32.self)), table = 4 + count * FrameFormat.entrySize
        guard count <= FrameFormat.maxRecords, table <= body.count else { return checksum(bytes[body]) }
        var at = body.lowerBound + table
        for i in 0..<count {
            let entry = body.lowerBound + 4 + i * FrameFormat.entrySize
            guard let length = Int(exactly: integer(bytes, entry, UInt64.self)), length <= body.upperBound - at else { break }
            var record = Array(bytes[at..<at + length])
            Repair.record(&record)
            bytes.replaceSubrange(at..<at + length, with: record)
            put(checksum(record[...]), &bytes, entry + 8)
            at += length
        }
        return checksum(bytes[body.lowerBound..<body.lowerBound + table])
    }

    /// Repairs the checksums of a blob. Returns its id.
    static func blob(_ bytes: inout [UInt8]) -> RandomName? {
        guard bytes.count >= 64 else { return nil }
        put(UInt64(0x0A62_6C62_5356_4C4C), &bytes, 0)
        if let size = Int(exactly: integer(bytes, 32, UInt64.self)), size <= bytes.count {
            let blocks = (size + 65_535) / 65_536, data = 64 + 4 * blocks
            if data + size <= bytes.count {
                for i in 0..<blocks {
                    put(checksum(bytes[data + i * 65_536..<min(data + size, data + (i + 1) * 65_536)]), &bytes, 64 + 4 * i)
                }
                put(checksum(bytes[64..<data]), &bytes, 40)
            }
        }
        put(checksum(bytes[0..<60]), &bytes, 60)
        return bytes.withUnsafeBytes { RandomName(loading: $0, at: 16) }
    }

    /// A record in the envelope of a host's storage.
    static func envelope(_ record: [UInt8]) -> [UInt8] {
        var out = ByteWriter()
        out.integer(CallbackStorage.magic)
        out.integer(UInt32(1))
        out.integer(UInt64(record.count))
        out.integer(UInt32(0))
        out.integer(checksum(out.bytes[...]))
        var at = 0
        while at < record.count {
            let block = record[at..<min(record.count, at + CallbackStorage.blockSize)]
            out.integer(checksum(block))
            out.raw(Array(block))
            at += block.count
        }
        return out.bytes
    }

    static func checksum(_ bytes: ArraySlice<UInt8>, from: UInt32 = 0) -> UInt32 { bytes.withUnsafeBytes { Bytes.crc32c($0, from: from) } }
    static func integer<T: FixedWidthInteger>(_ bytes: [UInt8], _ at: Int, _: T.Type) -> T {
        bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: at, as: T.self)) }
    }
    static func put<T: FixedWidthInteger>(_ value: T, _ bytes: inout [UInt8], _ at: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: value.littleEndian, toByteOffset: at, as: T.self) }
    }
}
