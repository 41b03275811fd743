/// One of the segments that were compacted into another: which of its bytes the other one holds, and where. Its frames are unchanged,
/// except that each header names the new segment and the new offset. So a place in the old segment is a shifted place in the new one.
///
///     sources = count varint · source ...
///     source  = id 16 · (length of the file x 2 + 1 if it was sealed) varint · from varint · size varint · at varint
///
/// `at` counts from the end of the frame with the list. The sources of a source are listed after it, so that a process with an old place
/// finds it in one step.
struct CompactionSource: Equatable, Sendable {
    var id: RandomName
    /// The size of its file when it was compacted.
    var length: UInt64
    /// Whether it was sealed, so that nothing can have been added since.
    var sealed: Bool
    /// The range of its bytes that was copied: whole frames with records.
    var from: UInt64
    var size: UInt64
    var at: UInt64

    /// The prefix of the ids of compacted segments. Readers read these first and skip the segments that they replace. This is a hint
    /// only: other ids may have it by chance.
    static let namePrefix = "0000"

    /// Returns the id for a compaction of these segments. Two machines that compact the same segments create the same file.
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

    /// Nil if the bytes are not a valid list, or the list does not fit into `available` bytes of frames.
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

/// The description of a complete compacted segment.
struct CompactedSegment {
    let id: RandomName
    let created: Int64
    /// Where its frames with records begin and end.
    let data: UInt64
    let end: UInt64
    let sources: [CompactionSource]

    /// Returns nil if it is not a compacted segment, is not complete, or has an invalid list.
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

    /// The segments that were compacted into this one directly.
    var direct: [CompactionSource] {
        var reached: UInt64 = 0
        return sources.filter { source in
            guard source.at == reached, source.size > 0 else { return false }
            reached = source.at + source.size
            return true
        }
    }
}
