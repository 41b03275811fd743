/// One of the segments that were compacted into another: which of its bytes that one holds, and where. Its frames
/// stand there as they stood, but for the header of each, which names the segment and its own offset. So a place
/// in the old segment is a place in the new one, shifted.
///
///     sources = count varint · source ...
///     source  = id 16 · (length of the file x 2 + 1 if it was sealed) varint · from varint · size varint · at varint
///
/// `at` counts from the end of the frame that holds the list. What a compacted segment had itself been compacted from
/// is listed behind it, so that whoever knew a place long ago finds it in one step.
struct CompactionSource: Equatable, Sendable {
    var id: RandomName
    /// Bytes of its file when it was compacted.
    var length: UInt64
    /// Nothing can have been added to it since.
    var sealed: Bool
    /// The range of its bytes that was taken: whole frames that hold records.
    var from: UInt64
    var size: UInt64
    var at: UInt64

    /// Segments made by compacting have ids that begin so, so that a reader may look at them first and pass over those
    /// that they stand for. A hint only: others may by chance.
    static let namePrefix = "0000"

    /// The id of what these are compacted into: two machines that compact the same segments make the same file.
    static func id(compacting inputs: [(id: RandomName, length: UInt64)]) -> RandomName {
        var text = ByteWriter()
        text.raw(Array("llvs compaction 1".utf8) + [0])
        for input in inputs.sorted(by: { $0.id < $1.id }) {
            text.blobID(BlobID(high: input.id.high, low: input.id.low))
            text.integer(input.length)
        }
        let digest = text.bytes.withUnsafeBytes { SHA256.digest($0) }
        return ([0, 0] + digest).withUnsafeBytes { RandomName(loading: $0, at: 0) }
    }

    static func encode(_ sources: [CompactionSource]) -> [UInt8] {
        var out = ByteWriter()
        out.bytes.reserveCapacity(10 + sources.count * 28)
        out.varint(UInt64(sources.count))
        for source in sources {
            out.blobID(BlobID(high: source.id.high, low: source.id.low))
            out.varint(source.length << 1 | (source.sealed ? 1 : 0))
            out.varint(source.from)
            out.varint(source.size)
            out.varint(source.at)
        }
        return out.bytes
    }

    /// Nil when the bytes are no such list, or one that does not fit into `available` bytes of frames.
    static func decode(_ bytes: UnsafeRawBufferPointer, available: UInt64) -> [CompactionSource]? {
        var reader = ByteReader(bytes)
        guard let count = reader.count(atMost: bytes.count / 20) else { return nil }
        var sources: [CompactionSource] = []
        sources.reserveCapacity(count)
        for _ in 0..<count {
            guard let id = reader.blobID(), let length = reader.varint(), let from = reader.varint(), let size = reader.varint(),
                let at = reader.varint(),
                from >= UInt64(FrameFormat.segmentHeaderSize), from <= length >> 1, size <= length >> 1 - from, at <= available,
                size <= available - at
            else { return nil }
            sources.append(
                CompactionSource(id: RandomName(id), length: length >> 1, sealed: length & 1 == 1, from: from, size: size, at: at))
        }
        return reader.remaining == 0 ? sources : nil
    }
}

/// What a whole segment made by compacting says of itself.
struct CompactedSegment {
    let id: RandomName
    let created: Int64
    /// Where its frames of records begin and end.
    let data: UInt64
    let end: UInt64
    let sources: [CompactionSource]

    /// Nil: it is none, or not wholly here, or its list cannot be trusted.
    static func read(_ file: OpenFile, name: String, size: UInt64) throws(Errno) -> CompactedSegment? {
        let headers = FrameFormat.segmentHeaderSize + FrameFormat.frameHeaderSize
        let sealSize = UInt64(FrameFormat.sealSize)
        guard size >= UInt64(headers) + sealSize else { return nil }
        var bytes = [UInt8](repeating: 0, count: headers)
        let found = try bytes.filled { (b) throws(Errno) -> (id: RandomName, created: Int64, listSize: Int, checksum: UInt32)? in
            guard try System.pread(file.descriptor, b, at: 0) == b.count, let header = FrameFormat.segmentHeader(UnsafeRawBufferPointer(b)),
                header.format == FrameFormat.format, header.id == RandomName(hex: name.dropLast(4)),
                let frame = FrameFormat.frameHeader(
                    UnsafeRawBufferPointer(rebasing: b[FrameFormat.segmentHeaderSize...]), id: header.id,
                    offset: UInt64(FrameFormat.segmentHeaderSize)),
                frame.kind == FrameFormat.Kind.sources.rawValue, frame.bodySize <= FrameFormat.maxSourcesSize,
                frame.bodySize <= size - sealSize - UInt64(headers)
            else { return nil }
            return (header.id, header.created, Int(frame.bodySize), frame.tableChecksum)
        }
        guard let found, try SegmentFile.isSealed(file, found.id, size) else { return nil }
        let data = UInt64(headers + found.listSize), end = size - sealSize
        var list = [UInt8](repeating: 0, count: found.listSize)
        let sources = try list.filled { (b) throws(Errno) -> [CompactionSource]? in
            guard try System.pread(file.descriptor, b, at: UInt64(headers)) == b.count,
                Bytes.crc32c(UnsafeRawBufferPointer(b)) == found.checksum
            else { return nil }
            return CompactionSource.decode(UnsafeRawBufferPointer(b), available: end - data)
        }
        guard let sources else { return nil }
        return CompactedSegment(id: found.id, created: found.created, data: data, end: end, sources: sources)
    }

    /// Those that were compacted into this one, without what they had been compacted from.
    var direct: [CompactionSource] {
        var reached: UInt64 = 0
        return sources.filter { source in
            guard source.at == reached, source.size > 0 else { return false }
            reached = source.at + source.size
            return true
        }
    }
}
