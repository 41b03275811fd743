/// Checks whether the log is as long as SQLite assumes. SQLite does not check: if the log was truncated, it appends after the gap and
/// reports success, until the database is opened again and nothing is found.
extension SQLiteStorage {
    /// The bytes of a frame of the log besides its page, and of the log's header: https://www.sqlite.org/fileformat2.html#walformat
    private static let frameHeader: Int64 = 24, logHeader: Int64 = 32

    /// Throws if the log was truncated since the last check. Precondition: `writing` is held, and no transaction is open.
    func checkLog(_ writer: SQLiteConnection, _ doing: String) throws {
        if logWasCut { throw cut(doing) }
        guard let size = logSizeOnDisk else { return }
        if size < logSize, try isCut(writer, Int64(clamping: size), doing) {
            logWasCut = true
            throw cut(doing)
        }
        logSize = size
    }

    /// Records the log's size after a commit. Precondition: `writing` is held.
    func noteLog() { logSize = logSizeOnDisk ?? logSize }

    /// Nil if the system does not report it: a failing medium makes the save itself fail.
    private var logSizeOnDisk: UInt64? {
        do throws(Errno) { return try System.status(logPath).size } catch { return error.code == ENOENT ? 0 : nil }
    }

    /// Returns whether the log was truncated. It may become shorter once all of it is in the database, so the database is asked how much
    /// it has.
    private func isCut(_ writer: SQLiteConnection, _ size: Int64, _ doing: String) throws -> Bool {
        // Another process can write the log, or truncate it after a checkpoint, between the two looks.
        var size = size
        for _ in 0..<3 {
            guard try isShort(writer, size, doing) else { return false }
            size = Int64(clamping: logSizeOnDisk ?? .max)
        }
        return try isShort(writer, size, doing)
    }
    private func isShort(_ writer: SQLiteConnection, _ size: Int64, _ doing: String) throws -> Bool {
        let page = try writer.integer("PRAGMA page_size", doing: doing)
        var frames: Int64 = 0
        do {
            try writer.query(
                "PRAGMA wal_checkpoint(PASSIVE)", doing: doing,
                row: {
                    frames = $0.integer(1); return false
                })
        } catch let error as StoreError where error.code == .io || error.code == .damaged {
            // The page that it searched for is missing.
            return true
        }
        guard frames > 0, page > 0, frames <= Int64(UInt32.max), page <= 65_536 else { return false }
        return size < SQLiteStorage.logHeader + frames * (SQLiteStorage.frameHeader + page)
    }

    private func cut(_ doing: String) -> StoreError {
        StoreError(
            .damaged,
            "\(doing) \(description) failed: \(logPath) was cut short while the store was open, and with it versions that were stored "
                + "before. Save what this process still reads (a snapshot, an exchange), close the store in all programs, and open it "
                + "again.",
            path: logPath)
    }
}
