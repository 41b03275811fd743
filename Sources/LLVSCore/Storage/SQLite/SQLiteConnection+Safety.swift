import CSQLite

/// Restricts databases that another program may have made, and the files beside them, to holding bytes.
extension SQLiteConnection {
    /// Options of `sqlite3_db_config` by number, since the headers of an older SQLite lack some. A library that does not know an option
    /// ignores it.
    private static let switches: [(option: Int32, isOn: Int32)] = [
        (1010, 1), // DEFENSIVE: no SQL damages the file, writes to its schema or turns its log off
        (1017, 0), // TRUSTED_SCHEMA: nothing that the schema names is called
        (1003, 0), (1015, 0), // ENABLE_TRIGGER, ENABLE_VIEW
        (1005, 0), // ENABLE_LOAD_EXTENSION
        (1011, 0), // WRITABLE_SCHEMA
        (1013, 0), (1014, 0), // DQS_DML, DQS_DDL: text in double quotes is a name
    ]
    /// Limits of `sqlite3_limit`: far more than the statements of the library need.
    private static let limits: [(Int32, Int32)] = [
        (SQLITE_LIMIT_SQL_LENGTH, 10_000), (SQLITE_LIMIT_COLUMN, 100), (SQLITE_LIMIT_EXPR_DEPTH, 20), (SQLITE_LIMIT_COMPOUND_SELECT, 4),
        (SQLITE_LIMIT_VDBE_OP, 25_000), (SQLITE_LIMIT_FUNCTION_ARG, 8), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ]

    /// Call this before anything of the database is read.
    func makeSafe(isCopy: Bool) throws {
        if isCopy {
            // Files that another program could truncate must not be mapped, and the log is not merged into the copy.
            try run("PRAGMA locking_mode=EXCLUSIVE", doing: "Opening")
            _ = llvs_sqlite_configure(sqlite, handle, 1006, 1) // NO_CKPT_ON_CLOSE
        }
        for (option, isOn) in SQLiteConnection.switches { _ = llvs_sqlite_configure(sqlite, handle, option, isOn) }
        for (kind, most) in SQLiteConnection.limits { _ = sqlite.pointee.limit(handle, kind, most) }
        limitValues(to: isCopy ? min(SQLiteConnection.largestForeign, bytesOnDisk) : SQLiteConnection.largestValue)
        // If a mapped file is truncated, the process ends.
        try run("PRAGMA mmap_size=0; PRAGMA cell_size_check=ON", doing: "Opening")
    }

    /// Raises the limits for tables that a definition of the host creates, which bounds their needs.
    package func allowWideTables() {
        for (kind, most) in [
            (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_COLUMN, 200), (SQLITE_LIMIT_EXPR_DEPTH, 100), (SQLITE_LIMIT_VDBE_OP, 250_000),
            (SQLITE_LIMIT_VARIABLE_NUMBER, Int32(SQLiteConnection.mostParameters)),
        ] as [(Int32, Int32)] { _ = sqlite.pointee.limit(handle, kind, most) }
        limitValues(to: SQLiteConnection.largestRow)
    }
    /// The most parameters of one statement of a projection.
    package static let mostParameters = 512
    /// The approximate largest row of a projection's table.
    package static let largestRow = 900_000_000

    /// The largest record or chunk, with the overhead of its row.
    private static let largestValue = SQLiteStorage.chunkSize + 4_096
    /// The largest value in databases of another implementation.
    private static let largestForeign = 256 << 20

    /// Sets the limit of values and rows that are read or written: SQLite believes the size that a row claims, and follows overflow pages
    /// in a loop up to that size.
    private func limitValues(to bytes: Int) {
        _ = sqlite.pointee.limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: min(bytes, 1_000_000_000)))
    }

    /// Runs `body` with a limit up to the size of the database's files.
    func withLargeValues<R>(_ bytes: Int? = nil, _ body: () throws -> R) rethrows -> R {
        limitValues(to: bytes.map { $0 + 4_096 } ?? bytesOnDisk)
        defer { limitValues(to: SQLiteConnection.largestValue) }
        return try body()
    }

    /// Rebuilds the database from its rows, through a temporary file.
    func rebuild(doing: String) throws {
        // VACUUM attaches the temporary file.
        _ = sqlite.pointee.limit(handle, SQLITE_LIMIT_ATTACHED, 1)
        defer { _ = sqlite.pointee.limit(handle, SQLITE_LIMIT_ATTACHED, 0) }
        try withLargeValues { try run("VACUUM", doing: doing) }
    }

    /// The approximate number of bytes that the existing files can hold, whatever length they claim. (File systems may compress them.)
    private var bytesOnDisk: Int {
        let there = System.allocated(file) &+ System.allocated(file + "-wal")
        return Int(clamping: there.multipliedReportingOverflow(by: 64).overflow ? .max : 64 &* there) &+ (1 << 20)
    }

    /// Throws if there are files beside the database that SQLite would take for its own, but must not.
    ///
    /// A rollback journal can name a file, which SQLite deletes. The shared memory is mapped: any user who may write to it can end the
    /// process by truncating it.
    ///
    /// No file that is written may have another name (hard link), since the other file would be written, too. Readers also write to the
    /// shared memory.
    static func checkBeside(_ path: String, _ mode: Mode) throws {
        let database = DirectoryEntry(path)
        try checkJournal(database)
        func beside(_ suffix: String) -> DirectoryEntry { database.folder.place(database.name + suffix) }
        let owner = try? database.status()
        if mode == .write, let owner {
            try checkNames(
                owner, path, of: path, "Give the store a file of its own: copy the file, and put the copy in its place (cp, mv).")
        }
        for file in ["-wal", "-shm"].map(beside) {
            guard let status = try? file.status() else { continue }
            guard status.isRegularFile else {
                throw StoreError(
                    .notAStore,
                    "Opening the database \(path) failed: \(file), which should be a file of SQLite, is "
                        + "\(status.isLink ? "a symbolic link, which is not followed" : "no file"). Move it away.",
                    path: file.path)
            }
            if mode == .write || mode == .read && file.name.hasSuffix("-shm") {
                try checkNames(
                    status, file.path, of: path,
                    "Close all programs that use the database, and put a copy of the file in its place (cp, mv); -shm can be removed.")
            }
            guard let owner else { continue }
            let othersMay = status.permissions & 0o022 & ~owner.permissions != 0
            let isOurs = [UInt32(geteuid()), 0, owner.owner].contains(status.owner) || owner.permissions & 0o022 != 0
            guard isOurs, !othersMay else {
                throw StoreError(
                    .permission,
                    "Opening the database \(path) failed: \(file) may be written by users who may not write the database. "
                        + "They could end this process. Close all programs that use the database. "
                        + "Then remove the file if it is -shm; if it is -wal, change its owner and permissions (chown, chmod).",
                    path: file.path)
            }
        }
    }

    /// Checks the owner of a database. In a folder where all users may create files, it may be a database that another user put there to
    /// read what is stored, or a link to one.
    /// - Parameter advice: what to do, up to "a path in a folder of your own".
    /// - Throws: `.permission` if it belongs neither to this process's user nor to the owner of the folder, who could do anything.
    package static func checkOwner(_ path: String, doing: String, _ advice: String) throws {
        let entry = DirectoryEntry(path)
        guard let status = try? entry.status(), let folder = try? System.status(Paths.parent(of: path)) else { return }
        guard folder.permissions & 0o002 != 0, ![UInt32(geteuid()), folder.owner].contains(status.owner) else { return }
        throw StoreError(
            .permission,
            "\(doing) \(path) failed: any user may create files in that folder, and this one belongs to another user "
                + "(number \(status.owner)), who could read what is stored in it. \(advice) a path in a folder of your own.",
            path: path)
    }

    /// Waits while another program holds a lease on one of the files, as file servers do. SQLite would wait without checking for
    /// cancellation, as long as the system lets it (45 s on Linux).
    /// - Throws: `.busy` if that takes too long.
    static func awaitLeases(_ path: String, _ mode: Mode, _ patience: Patience) throws {
        var waited: Int32 = 0, pause: Int32 = 1
        while let file = OpenDatabases.leased(path, forWriting: mode == .write) {
            guard waited < patience.milliseconds else {
                throw StoreError(
                    .busy,
                    "Opening the database \(path) failed: another program has held a lease on \(file) (F_SETLEASE) for longer than the "
                        + "busy time-out of \(patience.description). End that program, try again, or allow more.",
                    path: file, systemCode: EWOULDBLOCK)
            }
            try Waiting.look()
            usleep(UInt32(pause) * 1_000)
            waited &+= pause
            pause = min(pause * 2, SQLiteWatch.longestPause)
        }
    }

    private static func checkNames(_ status: System.Status, _ file: String, of path: String, _ advice: String) throws {
        guard status.names > 1 else { return }
        throw StoreError(
            .permission,
            "Opening the database \(path) failed: \(file) has \(status.names) names (hard links), and what is written to it would change "
                + "it under all of them. \(advice)",
            path: file)
    }

    package static func checkJournal(_ database: DirectoryEntry) throws {
        let path = database.path, journal = database.folder.place(database.name + "-journal")
        if (try? journal.status()) != nil {
            throw StoreError(
                .notAStore,
                "Opening the database \(path) failed: \(journal) is beside it. SQLite would undo writes by it, and delete a file that "
                    + "it names. A store in SQLite has no such file. If another program is writing to the database, let it end. "
                    + "Otherwise move the file away; if the database is damaged then, salvage the store into a new one.",
                path: journal.path)
        }
    }

    /// Runs `body`. Meanwhile SQLite checks `control`, also while it waits.
    package func watched<R>(by control: PacedControl, _ body: () throws -> R) throws -> R { try Waiting.looking(at: control, body) }
}

/// Makes SQLite check the control of the running call (`Waiting`): every few thousand steps of a statement, and while it waits for other
/// connections.
final class SQLiteWatch {
    /// Milliseconds between two checks.
    static let longestPause: Int32 = 20
    /// Steps of SQLite between two checks.
    private static let steps: Int32 = 4_000
    private var waited: Int32 = 0
    private var patience: Int32 = 0
    /// The error by which a statement was ended.
    private var failure: StoreError?
    /// SQLite's result for the first value that could not be bound since a statement last ran.
    private var bindingFailure: Int32?
    /// Whether the running statement changes nothing. During a statement that changes something, the host is not called: if it forked at
    /// that point, SQLite would roll back the transaction in the child, in the shared memory of the log that the parent uses. Cancelling
    /// still works.
    var isReading = false

    /// The connection removes both hooks before it is closed.
    func attach(to connection: SQLiteConnection) {
        patience = connection.patience.milliseconds
        let own = Unmanaged.passUnretained(self).toOpaque()
        connection.sqlite.pointee.progress_handler(
            connection.handle, SQLiteWatch.steps,
            { watch in
                watch.map { Unmanaged<SQLiteWatch>.fromOpaque($0).takeUnretainedValue().isOverWithin() ? 1 : 0 } ?? 0
            }, own)
        _ = connection.sqlite.pointee.busy_handler(
            connection.handle,
            { watch, times in
                watch.map { Unmanaged<SQLiteWatch>.fromOpaque($0).takeUnretainedValue().wait(times) ? 1 : 0 } ?? 0
            }, own)
    }

    /// Returns and clears the failure, which belongs to one statement.
    func takeFailure() -> StoreError? {
        defer { failure = nil }
        return failure
    }

    func noteBindingFailure(_ result: Int32) { if bindingFailure == nil { bindingFailure = result } }

    func takeBindingFailure() -> Int32? {
        defer { bindingFailure = nil }
        return bindingFailure
    }

    private func isOver(_ look: () throws -> Void = Waiting.look) -> Bool {
        if failure != nil { return true }
        do { try look(); return false } catch { failure = StoreError.of(error); return true }
    }

    /// Called within a statement.
    private func isOverWithin() -> Bool { isOver(isReading ? Waiting.look : Waiting.lookQuietly) }

    /// Returns whether to try again. `times` is 0 at the beginning of a wait.
    private func wait(_ times: Int32) -> Bool {
        if times == 0 { waited = 0 }
        guard waited < patience, !isOver() else { return false }
        let pause = min(max(1, times), SQLiteWatch.longestPause, patience - waited)
        usleep(UInt32(pause) * 1_000)
        waited += pause
        return true
    }
}
