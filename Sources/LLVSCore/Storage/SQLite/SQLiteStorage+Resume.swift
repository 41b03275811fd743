/// Continues where an earlier process stopped reading.
///
///     mark = seq varint · length varint · checksum varint      of the last row that was reported or appended
///
/// Rows are only added, in the order of `seq`, so later rows follow that row. The mark is in the same database, and exists only if the
/// rows before it do. The row is checked all the same, in case another program has put other rows there.
extension SQLiteStorage {
    package func scanMark() -> [UInt8]? {
        guard let last = state.withLock({ closed || !damageList.isEmpty || !unreadable.isEmpty || lastSeen == 0 ? nil : lastSeen }),
            let row = try? identity(of: last)
        else { return nil }
        var mark = ByteWriter()
        mark.varint(UInt64(clamping: last))
        mark.varint(UInt64(bitPattern: row.length))
        mark.varint(UInt64(bitPattern: row.checksum))
        return mark.bytes
    }

    package func resume(_ mark: [UInt8]) -> [UInt32]? {
        let read = mark.withUnsafeBytes { raw -> (last: UInt64, length: UInt64, checksum: UInt64)? in
            var reader = ByteReader(raw)
            guard let last = reader.varint(), let length = reader.varint(), let checksum = reader.varint(), reader.remaining == 0 else {
                return nil
            }
            return (last, length, checksum)
        }
        guard let read, let last = Int64(exactly: read.last), last > 0, let row = try? identity(of: last),
            row == (Int64(bitPattern: read.length), Int64(bitPattern: read.checksum))
        else { return nil }
        return state.withLock {
            guard !closed, lastSeen == 0 else { return nil }
            lastSeen = last
            // Other processes may have left them unsynced.
            needsSync = !isReadOnly
            return [SQLiteStorage.inRecords, SQLiteStorage.inChunks]
        }
    }

    package func forgetResumed() {
        state.withLock {
            lastSeen = 0
            needsSync = false
        }
    }

    /// Returns what identifies a row besides its number; nil if there is no such row.
    private func identity(of seq: Int64) throws -> (length: Int64, checksum: Int64)? {
        try readers.use { connection in
            var found: (length: Int64, checksum: Int64)?
            try connection.query(
                "SELECT length, checksum FROM records WHERE seq = ?1", doing: "Checking for a version in", bind: { $0.bind(1, seq) },
                row: {
                    found = ($0.integer(0), $0.integer(1))
                    return false
                })
            return found
        }
    }
}
