/// What SQLite leaves undone for a commit to survive a power cut.
///
/// At `full` it syncs the log with each commit, and with it what others left unsynced there. But it takes a log that
/// is there for one whose name is on the medium, also when a process at `normal` has just made it, and does not
/// look whether the sync of the directory worked. And after a sync of the log that failed it writes its own part
/// anew, but not what others wrote before it, which the system may have dropped by then: without that, the log ends there.
extension SQLiteStorage {
    private var log: String { path + "-wal" }

    /// The log is synced by every commit at `full`; what others left unsynced there, or we at `normal`, is synced here.
    public func sync() throws {
        try checkOpen()
        guard !isReadOnly, state.withLock({ needsSync }) else { return }
        do {
            try writing.withLock { try settle(try writable("Syncing")) }
            // Opening the log beside SQLite is safe: its locks are on the database and the shared memory alone.
            try posix("Syncing", log) { () throws(Errno) in
                do throws(Errno) {
                    let file = try OpenFile(DirectoryEntry(log), O_RDONLY)
                    state.withLock { needsSync = false }
                    try System.fdatasync(file.descriptor)
                    state.withLock { counters.syncs &+= 1 }
                } catch {
                    // Without a log everything is in the database, synced.
                    if error.code != ENOENT { throw error }
                }
            }
        } catch let error as StoreError where error.code != .closed {
            state.withLock { needsSync = true }
            writing.withLock { logSyncIsUncertain = true }
            throw StoreError(
                .unknownOutcome,
                error.message
                    + " Whether what was added last is stored, and would survive a power cut, is not known. "
                    + "Making the same version again under its id is harmless.",
                path: log, systemCode: error.systemCode)
        }
    }

    /// A transaction after whose failure it is uncertain what of the log was synced. Under `writing`.
    func appending<R>(to writer: SQLiteConnection, _ doing: String, _ body: () throws -> R) throws -> R {
        do { return try writer.transaction(doing: doing, body) } catch let error as StoreError {
            if error.code == .unknownOutcome || error.code == .io { logSyncIsUncertain = true }
            throw error
        }
    }

    /// Makes certain of what a synced commit is not enough for. Under `writing`.
    func settle(_ writer: SQLiteConnection) throws {
        if !directoryIsDurable {
            let directory = Paths.parent(of: path)
            try StoreDirectory(directory).syncDirectory(directory, FileSystem())
            state.withLock { counters.syncs &+= 1 }
            directoryIsDurable = true
        }
        if logSyncIsUncertain {
            // As long as we may write nobody else does, and the log is not begun anew.
            try writer.transaction(doing: "Writing anew the log of") { try rewriteLog() }
            logSyncIsUncertain = false
        }
    }

    /// Writes the log's own bytes over it, and syncs that: the system has them still, and takes them for written.
    private func rewriteLog() throws {
        try posix("Writing anew", log) { () throws(Errno) in
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
