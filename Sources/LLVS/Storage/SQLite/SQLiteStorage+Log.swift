/// Whether the log is as long as what SQLite believes to be in it. SQLite does not look: it goes on behind what somebody cut off, and
/// says that all is well, until the database is opened again and nothing is found.
extension SQLiteStorage {
    /// Bytes of a frame of the log besides its page, and of the log's header: https://www.sqlite.org/fileformat2.html#walformat
    private static let frameHeader: Int64 = 24, logHeader: Int64 = 32

    /// Throws when the log was cut short since this storage last looked. Under `writing`, outside of a transaction.
    func checkLog(_ writer: SQLiteConnection, _ doing: String) throws {
        if logWasCut { throw cut(doing) }
        guard let size = logSizeOnDisk else { return }
        if size < logSize, try isCut(writer, Int64(clamping: size), doing) {
            logWasCut = true
            throw cut(doing)
        }
        logSize = size
    }

    /// What was just committed is in the log. Under `writing`.
    func noteLog() { logSize = logSizeOnDisk ?? logSize }

    /// Nil when the system does not tell: a medium that fails says so by the save itself.
    private var logSizeOnDisk: UInt64? {
        do throws(Errno) { return try System.status(logPath).size } catch { return error.code == ENOENT ? 0 : nil }
    }

    /// A log may become shorter when all of it is in the database: the database is asked how much it has there.
    private func isCut(_ writer: SQLiteConnection, _ size: Int64, _ doing: String) throws -> Bool {
        let page = try writer.integer("PRAGMA page_size", doing: doing)
        var frames: Int64 = 0
        do {
            try writer.query(
                "PRAGMA wal_checkpoint(PASSIVE)", doing: doing,
                row: {
                    frames = $0.integer(1); return false
                })
        } catch let error as StoreError where error.code == .io || error.code == .damaged {
            // What it looked for is not there.
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
