/// Reads bytes of records by their places.
extension SQLiteStorage {
    package func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { (path, place.offset) }

    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try StorageRange.check(offset, buffer.count, within: place.length, of: description)
        try checkOpen()
        let number = Int64(bitPattern: place.offset)
        switch place.segment {
        case SQLiteStorage.inRecords:
            try readers.use {
                try copy(
                    $0, "SELECT checksum, data FROM records WHERE seq = ?1", number, expecting: place.length, from: offset, into: buffer)
            }
        case SQLiteStorage.inChunks:
            try readers.use { try copy(place, $0, from: offset, into: buffer) }
        default: throw StorageRange.unknownPlace(description)
        }
    }

    /// Copies a part of a record in chunks.
    func copy(_ place: RecordPlace, _ connection: SQLiteConnection, from offset: UInt64, into buffer: UnsafeMutableRawBufferPointer)
        throws
    {
        let size = UInt64(SQLiteStorage.chunkSize)
        var done = 0
        while done < buffer.count {
            let at = offset + UInt64(done)
            let chunk = at / size
            let length = min(size, place.length - chunk * size)
            let count = Int(min(length - at % size, UInt64(buffer.count - done)))
            let (seq, overflow) = Int64(bitPattern: place.offset).addingReportingOverflow(Int64(clamping: chunk))
            guard !overflow else { throw StorageRange.unknownPlace(description) }
            try copy(
                connection, "SELECT checksum, data FROM chunks WHERE seq = ?1", seq, expecting: length, from: at % size,
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count]))
            done += count
        }
    }

    /// Copies a part of a single row's bytes.
    /// - Parameter checked: whether all bytes of the row must match their checksum.
    func copy(
        _ connection: SQLiteConnection, _ sql: String, _ seq: Int64, expecting length: UInt64, from offset: UInt64,
        into buffer: UnsafeMutableRawBufferPointer, checked: Bool = false
    ) throws {
        var whole = false
        try connection.query(
            sql, doing: "Reading a version from", bind: { $0.bind(1, seq) },
            row: { row in
                let data = row.bytes(1)
                guard UInt64(data.count) == length, !checked || Int64(Bytes.crc32c(data)) == row.integer(0) else { return false }
                whole = true
                if buffer.count > 0, let to = buffer.baseAddress, let from = data.baseAddress {
                    memcpy(to, from + Int(offset), buffer.count)
                }
                return false
            })
        guard whole else {
            throw StoreError(
                .damaged,
                "A version in the database \(path) is damaged: row \(seq) is missing or does not match its checksum. "
                    + "Exchange with a store that has the version.",
                path: path)
        }
    }

    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw StorageRange.noBlobs(description) }
    package func hasBlob(_ id: BlobID) -> Bool { false }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        throw StorageRange.noBlobs(description)
    }
}
