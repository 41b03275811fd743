import CLLVSShims

/// A change on its way into a record. Pointers are borrowed for the call.
struct RecordChange {
    var kind: Value.Change.Kind
    var id: UnsafeRawBufferPointer
    var data = UnsafeRawBufferPointer(start: nil, count: 0)
    /// For preserve.
    var storedVersion: VersionID?

    var hasData: Bool { kind == .insert || kind == .update }
}

/// Makes a record from a version and its changes.
///
/// Values are not copied: `withPieces` points at the caller's bytes, so that a large version costs its
/// table only. One encoder makes one record at a time and can be used again, keeping its buffers.
struct RecordEncoder {
    /// Where the bytes of a change went.
    struct Body {
        /// Of the body, from the start of the record; 0 when it has none there.
        var offset = 0
        /// Of the deflated bytes in `deflated`; -1 when they are stored as they are.
        var deflatedOffset = -1
        var storedSize = 0
    }

    private var head = ByteWriter()
    private var bodyHeaders = ByteWriter()
    private var deflated: [UInt8] = []
    private(set) var bodies: [Body] = []
    /// The checksum of the header prepared last.
    private(set) var checksum: UInt32 = 0
    private var blobs: [BlobID?] = []
    /// Bytes that its buffers keep, about.
    var memory: Int { head.bytes.capacity + bodyHeaders.bytes.capacity + deflated.capacity + bodies.capacity * 24 + blobs.capacity * 17 }

    /// Prepares the record of `version`. `changes` are sorted by id bytes and valid. `blobThreshold` and
    /// `storeBlob` are the storage's.
    mutating func encode(
        _ version: Version, _ changes: [RecordChange], blobThreshold: Int?, storeBlob: (UnsafeRawBufferPointer) throws -> BlobID
    ) throws {
        head.bytes.removeAll(keepingCapacity: true)
        bodyHeaders.bytes.removeAll(keepingCapacity: true)
        deflated.removeAll(keepingCapacity: true)
        bodies.removeAll(keepingCapacity: true)
        blobs.removeAll(keepingCapacity: true)

        var dependencies: [VersionID] = []
        var dependencyIndex: [VersionID: Int] = [:]
        var blobList: [BlobID] = []
        for change in changes {
            if change.kind == .preserve, let stored = change.storedVersion, dependencyIndex[stored] == nil {
                dependencyIndex[stored] = dependencies.count
                dependencies.append(stored)
            }
            if change.hasData, let blobThreshold, change.data.count > blobThreshold {
                let blob = try storeBlob(change.data)
                blobs.append(blob)
                blobList.append(blob)
            } else {
                blobs.append(nil)
            }
        }

        writeHeader(version, changes, dependencies, blobList)
        let tableStart = head.bytes.count
        let bodiesSize = writeTable(version.id, changes, dependencyIndex)
        head.patch(UInt64(head.bytes.count - tableStart), at: 8)
        head.patch(UInt64(bodiesSize), at: 16)
        for i in bodies.indices where bodies[i].offset != 0 { bodies[i].offset += head.bytes.count - 1 }
        checksum = head.bytes.withUnsafeBytes { bytes in
            Bytes.crc32c(
                UnsafeRawBufferPointer(rebasing: bytes[RecordHeader.preludeSize..<tableStart]),
                from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[0..<24])))
        }
        head.patch(checksum, at: 24)
    }

    private mutating func writeHeader(_ version: Version, _ changes: [RecordChange], _ dependencies: [VersionID], _ blobList: [BlobID]) {
        head.bytes.append(contentsOf: [RecordHeader.format, 0, 0, 0])
        head.integer(UInt32(0))
        head.integer(UInt64(0))
        head.integer(UInt64(0))
        head.integer(UInt32(0))
        head.versionID(version.id)
        head.varint(UInt64(version.predecessors.count))
        for predecessor in version.predecessors { head.versionID(predecessor) }
        head.integer(version.timestamp.bitPattern)
        head.varint(version.valueDataSize)
        head.varint(UInt64(changes.count))
        head.varint(UInt64(RecordTable.pages(forChanges: changes.count)))
        head.varint(UInt64(dependencies.count))
        for dependency in dependencies { head.versionID(dependency) }
        head.varint(UInt64(blobList.count))
        for blob in blobList { head.blobID(blob) }
        head.varint(UInt64(version.metadata.entries.count))
        for entry in version.metadata.entries {
            head.varint(UInt64(entry.key.count))
            head.raw(entry.key)
            head.varint(UInt64(entry.value.count))
            head.raw(entry.value)
        }
        head.patch(UInt32(truncatingIfNeeded: head.bytes.count - RecordHeader.preludeSize), at: 4)
    }

    /// Returns the size of the bodies. Body offsets are counted from 1, within the bodies, until the table's size is known.
    private mutating func writeTable(_ version: VersionID, _ changes: [RecordChange], _ dependencyIndex: [VersionID: Int]) -> Int {
        let tableStart = head.bytes.count
        var directory: [UInt64] = []
        var bodiesSize = 0
        var i = 0
        while i < changes.count {
            let pageStart = head.bytes.count
            directory.append(UInt64(pageStart - tableStart))
            head.integer(UInt32(0))
            head.integer(UInt32(0))
            head.varint(UInt64(directory.count - 1))
            head.varint(UInt64(bodiesSize))
            let end = min(changes.count, i + RecordTable.changesPerPage)
            while i < end {
                writeEntry(version, changes[i], blobs[i], dependencyIndex, &bodiesSize)
                i += 1
            }
            head.patch(UInt32(truncatingIfNeeded: head.bytes.count - pageStart - RecordTable.pageHeaderSize), at: pageStart + 4)
            let checksum = head.bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[(pageStart + 4)...])) }
            head.patch(checksum, at: pageStart)
        }
        if directory.count > 1 { for offset in directory { head.integer(offset) } }
        return bodiesSize
    }

    private mutating func writeEntry(
        _ version: VersionID, _ change: RecordChange, _ blob: BlobID?, _ dependencyIndex: [VersionID: Int], _ bodiesSize: inout Int
    ) {
        var body = Body()
        var tag = change.kind.rawValue
        var stored = change.data
        if change.hasData {
            if blob != nil {
                tag |= RecordTable.Encoding.blob.rawValue << 3
            } else {
                if change.data.count > RecordTable.deflateThreshold, let start = deflate(change.data) {
                    tag |= RecordTable.Encoding.deflate.rawValue << 3
                    body.deflatedOffset = start
                    body.storedSize = deflated.count - start
                } else {
                    body.storedSize = change.data.count
                }
                body.offset = 1 + bodiesSize
                bodiesSize += RecordTable.bodyHeaderSize + body.storedSize
            }
            if change.data.count > RecordTable.digestThreshold { tag |= 32 }
        }
        head.bytes.append(tag)
        head.varint(UInt64(change.id.count))
        head.raw(change.id)
        if change.hasData {
            head.varint(UInt64(change.data.count))
            if body.deflatedOffset >= 0 { head.varint(UInt64(body.storedSize)) }
            if let blob { head.blobID(blob) }
            if change.data.count > RecordTable.digestThreshold { head.raw(SHA256.digest(change.data)) }
            if blob == nil {
                let sizeField = UInt32(truncatingIfNeeded: body.storedSize)
                let checksum: UInt32
                if body.deflatedOffset >= 0 {
                    checksum = deflated.withUnsafeBytes {
                        stored = UnsafeRawBufferPointer(rebasing: $0[body.deflatedOffset...])
                        return RecordTable.bodyChecksum(sizeField: sizeField, id: change.id, version: version, stored: stored)
                    }
                } else {
                    checksum = RecordTable.bodyChecksum(sizeField: sizeField, id: change.id, version: version, stored: stored)
                }
                bodyHeaders.integer(checksum)
                bodyHeaders.integer(sizeField)
            }
        } else if change.kind == .preserve {
            head.varint(UInt64(change.storedVersion.flatMap { dependencyIndex[$0] } ?? 0))
        }
        bodies.append(body)
    }

    /// Appends the deflated bytes to `deflated` and answers where; nil when that would not be smaller.
    private mutating func deflate(_ data: UnsafeRawBufferPointer) -> Int? {
        guard let source = data.baseAddress else { return nil }
        let start = deflated.count
        let room = data.count - 1
        deflated.append(contentsOf: repeatElement(0, count: room))
        let size = deflated.withUnsafeMutableBytes { out in
            out.baseAddress.map { llvs_shim_deflate(source, data.count, $0 + start, room) } ?? 0
        }
        deflated.removeLast(room - size)
        return size > 0 ? start : nil
    }

    /// Calls with the pieces of the record prepared last; `changes` are those that it was made from.
    func withPieces<R>(_ changes: [RecordChange], _ call: (RecordPieces) throws -> R) rethrows -> R {
        try head.bytes.withUnsafeBytes { head in
            try bodyHeaders.bytes.withUnsafeBytes { headers in
                try deflated.withUnsafeBytes { deflated in
                    var pieces: [UnsafeRawBufferPointer] = []
                    pieces.reserveCapacity(1 + 2 * changes.count)
                    pieces.append(head)
                    var at = 0
                    for i in changes.indices where bodies[i].offset != 0 {
                        pieces.append(UnsafeRawBufferPointer(rebasing: headers[at..<at + RecordTable.bodyHeaderSize]))
                        at += RecordTable.bodyHeaderSize
                        let body = bodies[i]
                        if body.storedSize == 0 { continue }
                        pieces.append(body.deflatedOffset >= 0
                            ? UnsafeRawBufferPointer(rebasing: deflated[body.deflatedOffset..<body.deflatedOffset + body.storedSize])
                            : changes[i].data)
                    }
                    return try call(RecordPieces(pieces))
                }
            }
        }
    }

    /// The record prepared last, as one run of bytes.
    func bytes(_ changes: [RecordChange]) -> [UInt8] {
        withPieces(changes) { record in
            var out: [UInt8] = []
            out.reserveCapacity(record.length)
            for piece in record.pieces { out.append(contentsOf: piece) }
            return out
        }
    }
}
