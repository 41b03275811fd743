/// Completes what SQLite does for a commit to survive a power cut.
///
/// At `full`, SQLite syncs the log with each commit, including what other processes left unsynced in it. But it assumes that the name of an
/// existing log is durable, even if a process at `normal` has just created it, and it ignores a failed sync of the directory. After a
/// failed sync of the log, it rewrites its own part, but not what other processes wrote before it, which the system may have dropped: then
/// the log would end there.
extension SQLiteStorage {
    private var log: String { path + "-wal" }

    /// Syncs the log. A commit at `full` syncs it as well. Commits of this process at `normal`, and commits of other processes, may not
    /// have.
    package func sync() throws {
        try checkOpen()
        guard !isReadOnly, state.withLock({ needsSync }) else { return }
        do {
            try writing.withLock { try settle(try writable("Syncing")) }
            // Opening the log beside SQLite is safe: its locks are only on the database and the shared memory.
            try posix("Syncing", log) { () throws(Errno) in
                do throws(Errno) {
                    let file = try OpenFile(DirectoryEntry(log), O_RDONLY)
                    state.withLock { needsSync = false }
                    try System.fdatasync(file.descriptor)
                    state.withLock { counters.syncs &+= 1 }
                } catch {
                    // Without a log, everything is in the database, and synced.
                    if error.code != ENOENT { throw error }
                }
            }
        } catch let error as StoreError where error.code != .closed {
            state.withLock { needsSync = true }
            // The system reports the failure to SQLite's descriptor of the log as well, at its next sync.
            writing.withLock { (logSyncIsUncertain, mustReconnect) = (true, true) }
            throw StoreError(
                .unknownOutcome,
                error.message
                    + " It is not known whether the last additions are stored and would survive a power cut. "
                    + "Making the same version again under its id is harmless.",
                path: log, systemCode: error.systemCode)
        }
    }

    /// Runs a transaction. If it fails, it is unknown which part of the log was synced. Precondition: `writing` is held.
    func appending<R>(to writer: SQLiteConnection, _ doing: String, _ body: () throws -> R) throws -> R {
        do { return try writer.transaction(doing: doing, body) } catch let error as StoreError {
            if error.code == .unknownOutcome || error.code == .io { logSyncIsUncertain = true }
            throw error
        }
    }

    /// Does what a synced commit needs in addition. Precondition: `writing` is held.
    func settle(_ writer: SQLiteConnection) throws {
        if !directoryIsDurable {
            let directory = Paths.parent(of: path)
            try StoreDirectory(directory).syncDirectory(directory, FileSystem())
            state.withLock { counters.syncs &+= 1 }
            directoryIsDurable = true
        }
        if logSyncIsUncertain {
            // While this process holds the write lock, no other writes, and the log is not restarted.
            try writer.transaction(doing: "Rewriting the log of") { try rewriteLog() }
            logSyncIsUncertain = false
        }
    }

    /// Writes the log's own bytes over it and syncs them. The system still has them, but regards them as written.
    private func rewriteLog() throws {
        try posix("Rewriting", log) { () throws(Errno) in
            let file: OpenFile
            do throws(Errno) { file = try OpenFile(DirectoryEntry(log), O_RDWR) } catch {
                if error.code == ENOENT { return }
                throw error
            }
            let system = FileSystem()
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            var at: UInt64 = 0
            while true {
                let count = try buffer.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: at) }
                if count == 0 { break }
                try buffer.borrowed { (b) throws(Errno) in
                    try system.write(file, UnsafeRawBufferPointer(rebasing: b[0..<count]), at: at)
                }
                at += UInt64(count)
            }
            try System.fdatasync(file.descriptor)
        }
    }
}
