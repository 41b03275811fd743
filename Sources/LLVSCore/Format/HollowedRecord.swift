/// Makes a record from another one of the same version: some of its changes become hollow, and some values that were differences become
/// whole. Everything else stays as it was, byte for byte: docs/format.md, "Making changes hollow".
struct HollowedRecord {
    /// The bytes of the record. The whole record is in memory while it is rewritten.
    private(set) var bytes: [UInt8] = []
    /// The blobs that the old record names and the new one does not.
    private(set) var freed: [BlobID] = []

    /// Makes the record.
    /// - Parameters:
    ///   - record: the bytes of the old record, which matches its checksums.
    ///   - hollow: the SHA-256 of each value that becomes hollow, by its id.
    ///   - whole: the bytes of each value that is a difference and becomes whole, by its id.
    /// - Throws: `.damaged` if the record does not have the form; `.outOfMemory`.
    init(_ record: [UInt8], hollow: [ValueID: [UInt8]], whole: [ValueID: [UInt8]] = [:]) throws {
        let damaged = StoreError(.damaged, "A record cannot be made anew without bytes of its values, because it is damaged.")
        try Memory.expect(2 * record.count, "Making a record anew")
        var reader = RecordReader(record, length: record.count)
        guard case .whole(let header) = try reader.header() else { throw damaged }
        var pages = ByteWriter(), page = ByteWriter(), bodies = ByteWriter(), starts: [UInt64] = [], added = 0, kept: [BlobID] = []
        func close(_ page: inout ByteWriter) {
            guard !page.bytes.isEmpty else { return }
            var framed = ByteWriter()
            framed.integer(UInt32(truncatingIfNeeded: page.bytes.count))
            framed.raw(page.bytes)
            starts.append(UInt64(pages.bytes.count))
            pages.integer(framed.bytes.withUnsafeBytes { Bytes.crc32c($0) })
            pages.raw(framed.bytes)
            page = ByteWriter()
        }
        let isWhole = try reader.forEachChange(header) { entry in
            if added % RecordTable.changesPerPage == 0 {
                close(&page)
                page.varint(UInt64(added / RecordTable.changesPerPage))
                page.varint(UInt64(bodies.bytes.count))
            }
            added += 1
            let id = ValueID(unchecked: entry.id), isValue = entry.kind == .insert || entry.kind == .update
            let digest = isValue ? hollow[id] ?? entry.digest.map { Array($0) } : nil, becomesHollow = isValue && hollow[id] != nil
            let value = isValue && !becomesHollow && entry.isDifference ? whole[id] : nil
            let isDifference = entry.isDifference && !becomesHollow && value == nil
            let encoding = becomesHollow ? RecordTable.Encoding.hollow : entry.encoding
            page.integer(
                entry.kind.rawValue | (isValue ? encoding.rawValue << 3 : 0) | (digest == nil ? 0 : 32) | (isDifference ? 128 : 0))
            page.varint(UInt64(entry.id.count))
            page.raw(entry.id)
            guard isValue else {
                if entry.kind == .preserve { page.varint(UInt64(entry.dependency)) }
                return
            }
            page.varint(UInt64(entry.size))
            if encoding == .deflate || isDifference { page.varint(UInt64(entry.storedSize)) }
            if let blob = entry.blob {
                if encoding == .blob {
                    page.blobID(blob)
                    kept.append(blob)
                } else {
                    freed.append(blob)
                }
            }
            if let digest { page.raw(digest) }
            if let value {
                let size = UInt32(truncatingIfNeeded: value.count)
                bodies.integer(
                    value.withUnsafeBytes { RecordTable.bodyChecksum(sizeField: size, id: entry.id, version: header.id, stored: $0) })
                bodies.integer(size)
                bodies.raw(value)
            } else if encoding == .raw || encoding == .deflate {
                let end = entry.bodyOffset + RecordTable.bodyHeaderSize + entry.storedSize
                guard end <= record.count else { throw damaged }
                bodies.bytes.append(contentsOf: record[entry.bodyOffset..<end])
            }
        }
        guard isWhole else { throw damaged }
        close(&page)
        if starts.count > 1 { for start in starts { pages.integer(start) } }
        let head = try record.withUnsafeBytes { try HollowedRecord.header($0, header, blobs: kept) ?? { throw damaged }() }
        var out = ByteWriter()
        let flags = record[1] | (hollow.isEmpty ? 0 : RecordHeader.hasHollowFlag)
        out.integer(UInt32(record[0]) | UInt32(flags) << 8)
        out.integer(UInt32(truncatingIfNeeded: head.count))
        out.integer(UInt64(pages.bytes.count))
        out.integer(UInt64(bodies.bytes.count))
        let checksum = head.withUnsafeBytes { head in Bytes.crc32c(head, from: out.bytes.withUnsafeBytes { Bytes.crc32c($0) }) }
        out.integer(checksum)
        bytes = out.bytes + head + pages.bytes + bodies.bytes
    }

    /// Returns the version header with another list of blobs; nil if it does not have the form.
    private static func header(_ record: UnsafeRawBufferPointer, _ header: RecordHeader, blobs: [BlobID]) -> [UInt8]? {
        guard header.tableOffset <= record.count, header.tableOffset >= RecordHeader.preludeSize else { return nil }
        let old = UnsafeRawBufferPointer(rebasing: record[RecordHeader.preludeSize..<header.tableOffset])
        var reader = ByteReader(old)
        guard reader.versionID() != nil, reader.varint() == UInt64(header.predecessors.count) else { return nil }
        for _ in header.predecessors where reader.versionID() == nil { return nil }
        guard reader.integer(UInt64.self) != nil, reader.varint() != nil, reader.varint() != nil, reader.varint() != nil,
            reader.varint() == UInt64(header.dependencies.count)
        else { return nil }
        for _ in header.dependencies where reader.versionID() == nil { return nil }
        let before = reader.position
        guard reader.varint() == UInt64(header.blobs.count) else { return nil }
        for _ in header.blobs where reader.blobID() == nil { return nil }
        var out = ByteWriter()
        out.raw(UnsafeRawBufferPointer(rebasing: old[..<before]))
        out.varint(UInt64(blobs.count))
        for blob in blobs { out.blobID(blob) }
        out.raw(UnsafeRawBufferPointer(rebasing: old[reader.position...]))
        return out.bytes
    }
}
