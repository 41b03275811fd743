/// The bytes of segments. All integers are little-endian; all checksums CRC-32C.
///
///     segment = header frame* [seal]
///
///     segment header, 64 bytes           frame header, 48 bytes
///      0  8  magic "LLVSseg\n"            0  4  magic A7 'L' 'V' 'F'
///      8  4  format, 1                    4  1  kind: 1 batch, 2 seal, 3 sources
///     12  4  zero                         5  1  marks: bit 0: everything before was synced
///     16 16  segment id                   6  2  zero
///                                         8 16  segment id
///     32  8  created, ns since 1970      24  8  own offset in the segment
///     40  8  machine, 0 if not known     32  8  bytes of the body, which follows
///     48  8  boot, 0 if not known        40  4  checksum of the table (else: of the body)
///     56  4  zero                        44  4  checksum of bytes 0..<44
///     60  4  checksum of bytes 0..<60
///
/// Readers may skip unknown kinds from 128 on.
///
///     body of a batch = table records    table = count:4 (length:8 checksum:4) * count
///     body of a seal  = frames:8 records:8
///     body of sources: see `CompactionSource`; the first frame of a segment that others were compacted into
///
/// The table has the checksums of the records. So a frame is checked by its table and its records, each read once, and bit rot in a
/// sealed segment costs one record instead of a batch. The segment id and the offset in the frame header prevent bytes inside values (a
/// store within a store) from being taken for frames.
enum FrameFormat {
    static let format: UInt32 = 1
    static let segmentHeaderSize = 64
    static let frameHeaderSize = 48
    static let entrySize = 12
    static let sealSize = frameHeaderSize + 16
    /// The most records in one batch: limits the memory for a table.
    static let maxRecords = 1 << 20

    static let magicFirstByte: UInt8 = 0xA7
    static let frameMagic: UInt32 = 0x4656_4CA7
    static let segmentMagic: UInt64 = 0x0A67_6573_5356_4C4C

    enum Kind: UInt8 { case batch = 1, seal = 2, sources = 3 }
    /// Readers may skip unknown kinds from this one on.
    static let ignorableKinds: UInt8 = 128
    /// A mark: everything before the frame was synced before the frame was written.
    static let isBehindSynced: UInt8 = 1
    /// The most bytes in the body of a frame of sources: limits the memory for it.
    static let maxSourcesSize: UInt64 = 64 << 20

    struct SegmentHeader {
        var format: UInt32
        var id: RandomName
        var created: Int64
        var writer: WriterMachine
    }

    static func storeSegmentHeader(in b: UnsafeMutableRawBufferPointer, id: RandomName, created: Int64, writer: WriterMachine) {
        b.storeBytes(of: segmentMagic.littleEndian, toByteOffset: 0, as: UInt64.self)
        b.storeBytes(of: format.littleEndian, toByteOffset: 8, as: UInt32.self)
        b.storeBytes(of: 0, toByteOffset: 12, as: UInt32.self)
        id.store(in: b, at: 16)
        b.storeBytes(of: created.littleEndian, toByteOffset: 32, as: Int64.self)
        b.storeBytes(of: writer.machine.littleEndian, toByteOffset: 40, as: UInt64.self)
        b.storeBytes(of: writer.boot.littleEndian, toByteOffset: 48, as: UInt64.self)
        b.storeBytes(of: 0, toByteOffset: 56, as: UInt32.self)
        let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<60]))
        b.storeBytes(of: crc.littleEndian, toByteOffset: 60, as: UInt32.self)
    }

    /// Returns nil if the bytes are not a complete segment header, of any format.
    static func segmentHeader(_ b: UnsafeRawBufferPointer) -> SegmentHeader? {
        guard b.count >= segmentHeaderSize, load(b, 0, UInt64.self) == segmentMagic,
            load(b, 60, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<60]))
        else { return nil }
        return SegmentHeader(
            format: load(b, 8, UInt32.self), id: RandomName(loading: b, at: 16), created: load(b, 32, Int64.self),
            writer: WriterMachine(machine: load(b, 40, UInt64.self), boot: load(b, 48, UInt64.self)))
    }

    struct FrameHeader {
        var kind: UInt8
        var marks: UInt8
        var bodySize: UInt64
        var tableChecksum: UInt32
    }

    static func storeFrameHeader(
        in b: UnsafeMutableRawBufferPointer, at start: Int, kind: Kind, marks: UInt8 = 0, id: RandomName, offset: UInt64, bodySize: UInt64,
        tableChecksum: UInt32
    ) {
        b.storeBytes(of: frameMagic.littleEndian, toByteOffset: start, as: UInt32.self)
        b.storeBytes(of: (UInt32(kind.rawValue) | UInt32(marks) << 8).littleEndian, toByteOffset: start + 4, as: UInt32.self)
        id.store(in: b, at: start + 8)
        b.storeBytes(of: offset.littleEndian, toByteOffset: start + 24, as: UInt64.self)
        b.storeBytes(of: bodySize.littleEndian, toByteOffset: start + 32, as: UInt64.self)
        b.storeBytes(of: tableChecksum.littleEndian, toByteOffset: start + 40, as: UInt32.self)
        let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[start..<start + 44]))
        b.storeBytes(of: crc.littleEndian, toByteOffset: start + 44, as: UInt32.self)
    }

    /// Returns nil if the bytes are not a frame header of that segment at that offset (nil: at any).
    static func frameHeader(_ b: UnsafeRawBufferPointer, id: RandomName, offset: UInt64?) -> FrameHeader? {
        guard b.count >= frameHeaderSize, load(b, 0, UInt32.self) == frameMagic,
            RandomName(loading: b, at: 8) == id, offset == nil || load(b, 24, UInt64.self) == offset,
            load(b, 44, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<44]))
        else { return nil }
        return FrameHeader(kind: b[4], marks: b[5], bodySize: load(b, 32, UInt64.self), tableChecksum: load(b, 40, UInt32.self))
    }

    static func storeSeal(in b: UnsafeMutableRawBufferPointer, id: RandomName, offset: UInt64, frames: UInt64, records: UInt64) {
        b.storeBytes(of: frames.littleEndian, toByteOffset: frameHeaderSize, as: UInt64.self)
        b.storeBytes(of: records.littleEndian, toByteOffset: frameHeaderSize + 8, as: UInt64.self)
        let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[frameHeaderSize..<sealSize]))
        storeFrameHeader(in: b, at: 0, kind: .seal, id: id, offset: offset, bodySize: 16, tableChecksum: crc)
    }

    /// Returns whether the bytes are the seal of that segment at that offset (nil: at any).
    static func isSeal(_ b: UnsafeRawBufferPointer, id: RandomName, offset: UInt64?) -> Bool {
        guard b.count >= sealSize, let header = frameHeader(b, id: id, offset: offset), header.kind == Kind.seal.rawValue,
            header.bodySize == 16
        else { return false }
        return header.tableChecksum == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[frameHeaderSize..<sealSize]))
    }

    @inline(__always)
    static func storeEntry(in b: UnsafeMutableRawBufferPointer, at start: Int, length: UInt64, checksum: UInt32) {
        b.storeBytes(of: length.littleEndian, toByteOffset: start, as: UInt64.self)
        b.storeBytes(of: checksum.littleEndian, toByteOffset: start + 8, as: UInt32.self)
    }

    @inline(__always)
    static func load<T: FixedWidthInteger>(_ b: UnsafeRawBufferPointer, _ offset: Int, _: T.Type) -> T {
        T(littleEndian: b.loadUnaligned(fromByteOffset: offset, as: T.self))
    }
}
