import CSQLite

/// What keeps a database that somebody else made, and files that somebody put beside it, from doing more than holding bytes.
extension SQLiteConnection {
    /// Options of `sqlite3_db_config`, by their numbers: the headers of an older SQLite lack some. Which of them the library
    /// knows is for the library to say; those that it does not are of no use to it.
    private static let switches: [(option: Int32, isOn: Int32)] = [
        (1010, 1), // DEFENSIVE: no SQL damages the file, writes to its schema or turns its log off
        (1017, 0), // TRUSTED_SCHEMA: nothing that the schema names is called
        (1003, 0), (1015, 0), // ENABLE_TRIGGER, ENABLE_VIEW
        (1005, 0), // ENABLE_LOAD_EXTENSION
        (1011, 0), // WRITABLE_SCHEMA
        (1013, 0), (1014, 0), // DQS_DML, DQS_DDL: what is in double quotes is a name
    ]
    /// Of `sqlite3_limit`: far more than the statements of the library need.
    private static let limits: [(Int32, Int32)] = [
        (SQLITE_LIMIT_SQL_LENGTH, 10_000), (SQLITE_LIMIT_COLUMN, 100), (SQLITE_LIMIT_EXPR_DEPTH, 20), (SQLITE_LIMIT_COMPOUND_SELECT, 4),
        (SQLITE_LIMIT_VDBE_OP, 25_000), (SQLITE_LIMIT_FUNCTION_ARG, 8), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ]

    /// Before anything of the database is read.
    func makeSafe(isCopy: Bool) throws {
        if isCopy {
            // What others could cut short is not mapped, and the log is not put into the copy.
            try run("PRAGMA locking_mode=EXCLUSIVE", doing: "Opening")
            _ = llvs_sqlite_configure(sqlite, handle, 1006, 1) // NO_CKPT_ON_CLOSE
        }
        for (option, isOn) in SQLiteConnection.switches { _ = llvs_sqlite_configure(sqlite, handle, option, isOn) }
        for (kind, most) in SQLiteConnection.limits { _ = sqlite.pointee.limit(handle, kind, most) }
        limitValues(to: isCopy ? min(SQLiteConnection.largestForeign, bytesOnDisk) : SQLiteConnection.largestValue)
        // A mapped file that somebody cuts short ends the process.
        try run("PRAGMA mmap_size=0; PRAGMA cell_size_check=ON", doing: "Opening")
    }

    /// For tables that a definition of the host's makes: what they need is bounded by that.
    func allowWideTables() {
        for (kind, most) in [
            (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_COLUMN, 200), (SQLITE_LIMIT_EXPR_DEPTH, 100), (SQLITE_LIMIT_VDBE_OP, 250_000),
            (SQLITE_LIMIT_VARIABLE_NUMBER, Int32(SQLiteConnection.mostParameters)),
        ] as [(Int32, Int32)] { _ = sqlite.pointee.limit(handle, kind, most) }
        limitValues(to: SQLiteConnection.largestRow)
    }
    /// Of one statement of a projection.
    static let mostParameters = 512
    /// Of a table of a projection, about.
    static let largestRow = 900_000_000

    /// Of records and their chunks, with what a row has besides.
    private static let largestValue = SQLiteStorage.chunkSize + 4_096
    /// Of another implementation's databases.
    private static let largestForeign = 256 << 20

    /// Values, and rows, of more bytes are neither read nor written: SQLite believes a row what it claims, and follows pages that lead
    /// to themselves as far as that goes.
    private func limitValues(to bytes: Int) {
        _ = sqlite.pointee.limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: min(bytes, 1_000_000_000)))
    }

    /// Runs `body`, in which values may have as many bytes as the database can have for them.
    func withLargeValues<R>(_ bytes: Int? = nil, _ body: () throws -> R) rethrows -> R {
        limitValues(to: bytes.map { $0 + 4_096 } ?? bytesOnDisk)
        defer { limitValues(to: SQLiteConnection.largestValue) }
        return try body()
    }

    /// About so many bytes can be in the files that are there, however long they claim to be; file systems may compress them.
    private var bytesOnDisk: Int {
        let there = System.allocated(file) &+ System.allocated(file + "-wal")
        return Int(clamping: there.multipliedReportingOverflow(by: 64).overflow ? .max : 64 &* there) &+ (1 << 20)
    }

    /// Throws when files lie beside the database that SQLite would take for its own, and are not.
    ///
    /// A rollback journal can name a file, which SQLite deletes. The shared memory is mapped: whoever may write to it ends the process by
    /// cutting it short.
    ///
    /// None of the files that are written may have a further name (hard link): what is written here would be written there. To the shared
    /// memory those who read write, too.
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
                    "Opening the database \(path) failed: \(file) may be written by others than those who may write the database. "
                        + "They could end this process. Close all programs that use the database; "
                        + "then remove that file where it is -shm, and where it is -wal take it from who owns it (chown, chmod).",
                    path: file.path)
            }
        }
    }

    /// Where anybody may make files, what is there may be a database that somebody laid there to read what is put in, or a link to one.
    /// - Parameter advice: what to do, up to "a path in a folder of your own".
    /// - Throws: `.permission` where it belongs to neither this process's user nor the owner of the folder, who could do anything.
    static func checkOwner(_ path: String, doing: String, _ advice: String) throws {
        let entry = DirectoryEntry(path)
        guard let status = try? entry.status(), let folder = try? System.status(Paths.parent(of: path)) else { return }
        guard folder.permissions & 0o002 != 0, ![UInt32(geteuid()), folder.owner].contains(status.owner) else { return }
        throw StoreError(
            .permission,
            "\(doing) \(path) failed: everybody may make files in that folder, and this one belongs to another user "
                + "(number \(status.owner)), who would read what is put in. \(advice) a path in a folder of your own.",
            path: path)
    }

    /// Waits while another program holds a lease on one of the files, as file servers do. SQLite would wait for it without looking at
    /// anything, for as long as the system lets it (45 s on Linux).
    /// - Throws: `.busy` when that takes too long.
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

    static func checkJournal(_ database: DirectoryEntry) throws {
        let path = database.path, journal = database.folder.place(database.name + "-journal")
        if (try? journal.status()) != nil {
            throw StoreError(
                .notAStore,
                "Opening the database \(path) failed: \(journal) lies beside it, by which SQLite would undo writes, and delete a file that "
                    + "it names. A store in SQLite has none. If another program is writing to the database, let it end; "
                    + "else move that file away, and salvage the store into a new one where the database is damaged then.",
                path: journal.path)
        }
    }

    /// Runs `body`; meanwhile what SQLite does and waits for looks at `control`.
    func watched<R>(by control: PacedControl, _ body: () throws -> R) throws -> R { try Waiting.looking(at: control, body) }
}

/// Has SQLite look at the control of the call that runs (`Waiting`): every few thousand steps of a statement, and while it waits for
/// others.
final class SQLiteWatch {
    /// Milliseconds between two looks.
    static let longestPause: Int32 = 20
    /// Steps of SQLite between two looks.
    private static let steps: Int32 = 4_000
    private var waited: Int32 = 0
    private var patience: Int32 = 0
    /// Why a statement was ended.
    private var failure: StoreError?
    /// SQLite's result for the first value that could not be bound since a statement last ran.
    private var bindingFailure: Int32?
    /// Whether the statement that runs changes nothing. From within one that does the host is not called: should it fork there, SQLite
    /// would undo the transaction in the child, in the shared memory of the log that its parent goes on with. Cancelling reaches it all
    /// the same.
    var isReading = false

    /// The connection lets go of both before it is gone.
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

    /// The failure, which counts for one statement.
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

    /// Within a statement.
    private func isOverWithin() -> Bool { isOver(isReading ? Waiting.look : Waiting.lookQuietly) }

    /// Whether to try again. The first time of a wait `times` is 0.
    private func wait(_ times: Int32) -> Bool {
        if times == 0 { waited = 0 }
        guard waited < patience, !isOver() else { return false }
        let pause = min(max(1, times), SQLiteWatch.longestPause, patience - waited)
        usleep(UInt32(pause) * 1_000)
        waited += pause
        return true
    }
}
