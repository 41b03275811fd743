/// Copies an intact record from a damaged store into a new one.
struct SalvageCopy {
    let source: Store
    let target: Store
    let account: SalvageAccount
    /// How many bytes are read at once.
    private static let pieceSize = 1 << 20

    /// Appends the record, and admits its version to the history, or leaves it pending. Does nothing if its values take more than the
    /// account has.
    /// - Throws: errors of reading and writing.
    func copy(_ record: SalvageIndex.Record, _ control: OperationControl) throws {
        // The base of a difference may be damaged, or be copied later, so values are written whole.
        let isCopied = record.header.blobs.isEmpty && !record.header.hasDifferences
        guard isCopied || account.admits(record, hasBlobs: target.storage.blobThreshold != nil) else { return }
        let place = try isCopied ? copyAsItIs(record.place, control) : copyAnew(record, control)
        let header = try target.records.header(place)
        _ = try target.admit([PendingVersions.Record(place: place, header: header)])
    }

    /// Appends a record that this library cannot read.
    /// - Throws: errors of reading and writing.
    func copyUnread(_ place: RecordPlace, _ control: OperationControl) throws { _ = try copyAsItIs(place, control) }

    private func append(_ record: RecordPieces) throws -> RecordPlace {
        let places = try target.withCommitLock { try target.storage.append([record]) }
        guard let place = places.first else { throw StoreError(.internal, "A storage returned no place for a record.") }
        return place
    }

    /// Copies the same bytes. A large record is read twice: once for its checksum.
    private func copyAsItIs(_ place: RecordPlace, _ control: OperationControl) throws -> RecordPlace {
        guard let length = Int(exactly: place.length) else { throw source.records.damaged(place, "has a size that no record has") }
        if length <= SalvageCopy.pieceSize {
            let bytes = try read(place, 0, length)
            return try bytes.withUnsafeBytes { try append(RecordPieces($0)) }
        }
        func forEachPiece(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
            var at = 0
            while at < length {
                try control.check(.adding, 0, of: 0, doing: "Salvaging \(source.description)")
                let piece = try read(place, at, min(SalvageCopy.pieceSize, length - at))
                try piece.withUnsafeBytes(sink)
                at += piece.count
            }
        }
        var checksum: UInt32 = 0
        try forEachPiece { checksum = Bytes.crc32c($0, from: checksum) }
        return try withoutActuallyEscaping(forEachPiece) { forEachPiece in
            try append(RecordPieces(length: length, checksum: checksum, pieces: forEachPiece))
        }
    }

    private func read(_ place: RecordPlace, _ offset: Int, _ count: Int) throws -> [UInt8] {
        try Memory.expect(count, "Copying a version")
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            try source.records.read(
                place, at: UInt64(offset), into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<count]))
            filled = count
        }
    }

    /// Rewrites the record. Its large values are written to blobs again, one by one, if the new storage has blobs.
    private func copyAnew(_ record: SalvageIndex.Record, _ control: OperationControl) throws -> RecordPlace {
        var ids: [[UInt8]] = [], values: [[UInt8]] = [], written: [WrittenValue] = []
        var changes: [(kind: Value.Change.Kind, stored: VersionID?, value: Int?, written: Int?)] = []
        try source.records.forEachChange(record.place) { entry, header in
            try Memory.check()
            ids.append(Array(entry.id))
            guard entry.kind == .insert || entry.kind == .update else {
                changes.append((entry.kind, entry.kind == .preserve ? header.dependencies[entry.dependency] : nil, nil, nil))
                return
            }
            if entry.isHollow, let digest = entry.digest {
                written.append(WrittenValue(hollow: entry.size, digest: Array(digest)))
                changes.append((entry.kind, nil, nil, written.count - 1))
            } else if entry.blob != nil, let threshold = target.storage.blobThreshold, entry.size > threshold {
                written.append(try blob(entry, record, control))
                changes.append((entry.kind, nil, nil, written.count - 1))
            } else {
                values.append(
                    try source.records.withValue(entry, in: record.place, of: header.id) { try Memory.copy($0, "Copying a version") })
                changes.append((entry.kind, nil, values.count - 1, nil))
            }
        }
        return try withExtendedLifetime((ids, values, written)) {
            let list = changes.enumerated().map { i, change in
                var borrowed = BorrowedChange(kind: change.kind, id: ids[i].withUnsafeBytes { $0 }, storedVersion: change.stored)
                if let value = change.value { borrowed.data = values[value].withUnsafeBytes { $0 } }
                if let value = change.written { borrowed.written = Unmanaged.passUnretained(written[value]) }
                return borrowed
            }
            let encoder = RecordEncoder(), recorded = RecordChanges(list)
            try encoder.encode(
                record.header.version, recorded, blobThreshold: target.storage.blobThreshold, storeBlob: target.storage.storeBlob(_:digest:)
            )
            return try append(encoder.pieces(recorded))
        }
    }

    private func blob(_ entry: RecordTable.Entry, _ record: SalvageIndex.Record, _ control: OperationControl) throws -> WrittenValue {
        let name = SalvageAccount.CopiedBlob(entry)
        if let copy = name.flatMap({ account.copies[$0] }) { return copy }
        let writer = try target.storage.blobWriter(size: entry.size)
        let copy = try source.records.withValue(entry, in: record.place, of: record.header.id) { bytes in
            var at = 0
            while at < bytes.count {
                try control.check(.adding, 0, of: 0, doing: "Salvaging \(source.description)")
                let end = min(bytes.count, at + SalvageCopy.pieceSize)
                try writer.append(UnsafeRawBufferPointer(rebasing: bytes[at..<end]))
                at = end
            }
            let digest = SHA256.digest(bytes)
            return WrittenValue(blob: try writer.finish(digest: digest), size: bytes.count, digest: digest)
        }
        if let name { account.copies[name] = copy }
        return copy
    }
}
