/// A storage in one SQLite database in WAL mode, which several processes of one host may share.
///
///     records(seq, length, checksum, first, data)   one row a record; small ones with their bytes in `data`
///     chunks(seq, checksum, data)                   others in pieces of 64 KiB, in rows `first`, `first` + 1, ...
///     caches(name, checksum, data)
///
/// A batch is one transaction. Rows are only added, in the order in which transactions commit, so the new rows are those after the last
/// one seen. SQLite does not check what it reads, so every row has a checksum (CRC-32C). Not for network file systems: SQLite's locks do
/// not work there.
package final class SQLiteStorage: Storage, @unchecked Sendable {
    // Sendable: `writing` guards what is documented to be under it, `state` the rest.
    /// How a database is used.
    package struct Options: Sendable {
        /// Whether to create the database if there is none.
        package var create = true
        /// Whether to never write anything.
        package var readOnly = false
        /// What a power cut may take.
        package var durability = Durability.full
        /// The seconds to wait for other writers.
        package var busyTimeout: Double = 10
        /// The permissions of a new database, and thereby of its log, restricted by the process's umask.
        package var fileMode: UInt32 = 0o600
        /// Names versions in damage reports.
        package var inspector: RecordInspector?
        /// Options of a durable database, which is created if there is none, with a timeout of 10 seconds for other writers.
        package init() {}

        var patience: SQLiteConnection.Patience { SQLiteConnection.Patience(seconds: busyTimeout) }
    }

    package let description: String
    package let isReadOnly: Bool
    /// The log is written at each commit, and the database when the log is merged into it.
    package var watchedPlaces: [WatchedDirectory] {
        let name = String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...])
        return [WatchedDirectory(Paths.parent(of: path), names: { $0 == name || $0 == name + "-wal" })]
    }
    package let blobThreshold: Int? = nil
    package let blockShape = BlockShape.records(SQLiteStorage.chunkSize)

    static let applicationID: Int64 = 0x4C4C_5653
    static let format: Int64 = 1
    package static let chunkSize = 65_536

    package let path: String
    /// The path of its log, built once, since it is checked at each save.
    let logPath: String
    let options: Options
    let readers: SQLiteReaders

    /// Held while writing. Taken before `state`.
    let writing = Lock(.writing)
    /// Nil if the storage is read-only, or closed. Guarded by `writing`.
    var writer: SQLiteConnection?
    /// Whether a new connection replaces the writer before its next use: it took the log for read-only, or a sync of the log failed
    /// through another descriptor. Guarded by `writing`.
    var mustReconnect = false
    /// The current `synchronous` of the connection. Guarded by `writing`.
    var writesAreSynced = false
    /// Whether the names of the database and of its log are durable. Guarded by `writing`.
    var directoryIsDurable = false
    /// Whether a sync of the log failed, so that the system may have dropped bytes. Guarded by `writing`.
    var logSyncIsUncertain = false
    /// The size of the log at the last check, and whether it was truncated since it was opened. Guarded by `writing`.
    var logSize: UInt64 = 0
    var logWasCut = false
    /// A record, or a chunk of one, joined from its pieces. Guarded by `writing`.
    var scratch: [UInt8] = []

    /// Guards everything below. Held briefly.
    let state = Lock(.storage)
    var closed = false
    /// All rows up to this one were reported, or appended here.
    var lastSeen: Int64 = 0
    /// Rows after `lastSeen` that were appended here, ascending.
    var own: [ClosedRange<Int64>] = []
    var needsSync = false
    /// The database's files when it was opened. SQLite has each of them open while a connection exists.
    private var opened: [(path: String, identity: FileIdentity)] = []
    /// Rows that `scan` could not read, or that were damaged. SQLite also reports a failed read as damage, so they are read again each
    /// time: a medium may recover.
    var unreadable: Set<Int64> = []
    static let unreadableLimit = 1_000
    var memoryCaches: [String: [UInt8]?] = [:]
    var damageList: [StorageDamage] = []
    var damageSet: Set<StorageDamage> = []
    var counters = StorageStatistics()

    /// Opens the database at `path`, or creates one there.
    /// - Throws: `.notFound`, `.notAStore`, `.newerFormat`, `.permission`, `.noSpace`, `.readOnly`, `.busy`, `.io`.
    package init(path: String, options: Options = Options()) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument,
                "The path of a database is \(path.isEmpty ? "empty" : "not a path: it holds a NUL"). Give the path of a file.", path: path)
        }
        var path = System.absolute(Paths.withoutTrailingSlashes(path))
        // SQLite's other files are beside the target of a symbolic link, which another user may have put there.
        if options.create, !options.readOnly { try SQLiteStorage.checkOwner(path) }
        if (try? DirectoryEntry(path).status())?.isLink == true, let resolved = System.resolved(path) { path = resolved }
        self.path = path
        logPath = path + "-wal"
        self.options = options
        description = "the store in the database \(path)"
        isReadOnly = options.readOnly
        try SQLiteLibrary.checkProcess("Opening the database", path)
        try SQLiteStorage.checkFile(path, mayCreate: options.create && !options.readOnly)
        if options.readOnly {
            readers = try SQLiteStorage.openReadOnly(path, options.patience)
            opened = SQLiteConnection.files(path)
            return
        }
        // SQLite gives its log the permissions of the database.
        if options.create {
            try SQLiteStorage.checkOwner(path)
            try SQLiteNewDatabase.make(at: path, mode: options.fileMode, options.patience)
        }
        let connection = try SQLiteConnection(path, .write, options.patience)
        try SQLiteStorage.prepare(connection, create: options.create)
        writer = connection
        readers = SQLiteReaders(path, .read, options.patience)
        try setSynced(options.durability == .full)
        opened = SQLiteConnection.files(path)
        writing.withLock { noteLog() }
    }

    private static func checkOwner(_ path: String) throws {
        try SQLiteConnection.checkOwner(
            path, doing: "Opening the database",
            "If it is the one that you mean, require that it exists (must_exist; in Python create=False); else give")
    }

    /// The permissions for files that are created beside the database.
    package var fileSystem: FileSystem {
        var system = FileSystem()
        system.mode = options.fileMode
        return system
    }

    /// Throws if the files are not those that were opened: SQLite would continue with these and report success.
    /// - Complexity: a check of three files.
    package func checkPresence(_ doing: String) throws {
        for file in state.withLock({ opened }) where file.identity.isGone(from: file.path) {
            throw StoreError.gone(doing, description, path: file.path)
        }
    }

    package var damages: [StorageDamage] { state.withLock { damageList } }

    /// Bytes are written to the log first, and then copied to the database, so records can use half of the free space.
    package func room() -> StorageRoom? { System.room(path).map { StorageRoom(free: $0.free / 2, size: $0.size) } }

    package func statistics(_ control: PacedControl) throws -> StorageStatistics {
        var all = state.withLock { counters }
        for suffix in ["", "-wal"] { all.bytes &+= (try? System.status(path + suffix))?.size ?? 0 }
        return all
    }

    package func close(discarding: Bool) throws {
        if discarding {
            // Do not wait: another thread of the parent may have held the locks.
            if pthread_mutex_trylock(writing.raw) == 0 {
                writer?.leak()
                writer = nil
                writing.unlock()
            }
            readers.leak()
            if pthread_mutex_trylock(state.raw) == 0 {
                closed = true
                state.unlock()
            }
            return
        }
        if state.withLock({
            let was = closed; closed = true; return was
        }) {
            return
        }
        writing.withLock {
            readers.close()
            writer?.close()
            writer = nil
        }
    }

    func checkOpen() throws { if state.withLock({ closed }) { throw StorageRange.closed(description) } }

    /// Returns the connection for writing. Precondition: `writing` is held.
    func writable(_ doing: String) throws -> SQLiteConnection {
        try checkOpen()
        guard let writer else { throw StorageRange.readOnly(description) }
        try checkPresence(doing)
        // The reason why it could not be opened for writing (too many open files, permissions) may be gone.
        if writer.isReadOnly || mustReconnect, let again = try? SQLiteStorage.connected(path, options.patience), !again.isReadOnly {
            writer.close()
            self.writer = again
            writesAreSynced = false
            mustReconnect = false
            // The first connection for writing may have created the log.
            state.withLock { opened = SQLiteConnection.files(path) }
            return again
        }
        try checkLog(writer, doing)
        return writer
    }

    func remember(_ damage: StorageDamage) {
        let isNew = state.withLock {
            let isNew = damageSet.insert(damage).inserted
            if isNew { damageList.append(damage) }
            return isNew
        }
        if isNew { Log.write(.warning, "\(damage.file): \(damage.message)") }
    }

    /// Opens another connection for writing.
    private static func connected(_ path: String, _ patience: SQLiteConnection.Patience) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path, .write, patience)
        try setUp(connection)
        return connection
    }

    private static func setUp(_ connection: SQLiteConnection) throws {
        try connection.useLog(doing: "Setting up")
        try connection.run("PRAGMA journal_size_limit=16777216; PRAGMA synchronous=NORMAL", doing: "Setting up")
    }

    /// Sets whether commits wait for the disk. Precondition: `writing` is held, and no transaction is open.
    func setSynced(_ synced: Bool) throws {
        guard synced != writesAreSynced, let writer else { return }
        try writer.run(synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", doing: "Setting up")
        writesAreSynced = synced
    }

    // MARK: Opening

    private static func checkFile(_ path: String, mayCreate: Bool) throws {
        do throws(Errno) {
            let status = try System.status(path)
            guard status.isRegularFile else {
                throw Errno(EISDIR)
            }
            // SQLite takes a file that is shorter than its header for an empty database, whatever its content.
            guard status.size == 0 || status.size >= 100 else {
                throw Errno(EILSEQ)
            }
            // SQLite would delete the log then.
            if status.size == 0, let log = try? System.status(path + "-wal"), log.size > 0 {
                throw Errno(ENODATA)
            }
        } catch {
            switch error.code {
            case ENOENT:
                guard !mayCreate else { return }
                throw StoreError(
                    .notFound, "Opening the database \(path) failed: nothing is there. Check the path, or let the store be created.",
                    path: path, systemCode: error.code)
            case EILSEQ:
                throw StoreError(
                    .notAStore, "Opening the database \(path) failed: it is too short to be a database. Give another path.", path: path)
            case ENODATA:
                throw StoreError(
                    .damaged,
                    "Opening the database \(path) failed: it is empty, and its log is not: it was cut short. "
                        + "Restore a copy of it, or salvage the store into a new one.",
                    path: path)
            case EISDIR:
                throw StoreError(
                    .notAStore, "Opening the database \(path) failed: it is not a file. A store in SQLite is one file; give another path.",
                    path: path)
            default:
                throw StoreError.posix(error, doing: "Opening the database", path: path)
            }
        }
    }

    private static func openReadOnly(_ path: String, _ patience: SQLiteConnection.Patience) throws -> SQLiteReaders {
        do {
            let connection = try SQLiteConnection(path, .read, patience)
            try checkFormat(connection)
            return SQLiteReaders(path, .read, patience, first: connection)
        } catch let error as StoreError where [.io, .permission, .readOnly, .notFound].contains(error.code) {
            // On a read-only medium, a log cannot be shared. Without a log, there is nothing to share.
            if let log = try? System.status(path + "-wal"), log.size > 0 { throw error }
            let connection = try SQLiteConnection(path, .immutable, patience)
            try checkFormat(connection)
            return SQLiteReaders(path, .immutable, patience, first: connection)
        }
    }

    /// Throws unless the database is a store that this library can read.
    private static func checkFormat(_ connection: SQLiteConnection) throws {
        let application = try connection.integer("PRAGMA application_id", doing: "Opening the database")
        let format = try connection.integer("PRAGMA user_version", doing: "Opening the database")
        guard application == applicationID else {
            throw StoreError(
                .notAStore, "Opening the database \(connection.path) failed: it is another application's. Give another path.",
                path: connection.path)
        }
        guard format <= SQLiteStorage.format else {
            throw StoreError(
                .newerFormat,
                "Opening the database \(connection.path) failed: it has format \(format), and this version of the library knows formats up "
                    + "to \(SQLiteStorage.format). Use a newer version of the library.",
                path: connection.path)
        }
        guard format >= 1 else {
            throw StoreError(
                .notAStore, "Opening the database \(connection.path) failed: it has no format number. Give another path.",
                path: connection.path)
        }
        try checkSchema(connection)
    }

    /// Throws unless the schema has exactly the tables and the index with their original definitions. SQLite executes the text of
    /// definitions: with one changed letter a table can seem to be empty, and a trigger, a view, a check or a computed column runs
    /// another's code.
    private static func checkSchema(_ connection: SQLiteConnection) throws {
        var expected: Set<[String]> = [["index", SQLiteNewDatabase.index, "caches", ""]]
        for (name, sql) in SQLiteNewDatabase.tables { expected.insert(["table", name, name, sql]) }
        var pages: Set<Int64> = [1], isOurs = true
        do {
            try connection.query(
                "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master LIMIT 16", doing: "Opening the database",
                row: { row in
                    var texts = (0..<4).map { String(decoding: row.bytes($0), as: UTF8.self) }
                    // The format's documentation has them on several lines.
                    if texts[3].utf8.contains(UInt8(ascii: "\n")) {
                        texts[3] = texts[3].split { $0 == " " || $0 == "\n" }.joined(separator: " ")
                    }
                    isOurs = expected.remove(texts) != nil && pages.insert(row.integer(4)).inserted && isOurs
                    return true
                })
        } catch let error as StoreError where error.code == .tooLarge { isOurs = false }
        guard isOurs, expected.isEmpty else {
            throw StoreError(
                .notAStore,
                "Opening the database \(connection.path) failed: its tables, or its other definitions, are not those of a store: "
                    + "another program changed the database, or its definitions are damaged. Salvage the store into a new one.",
                path: connection.path)
        }
    }

    private static func isEmpty(_ connection: SQLiteConnection) throws -> Bool {
        try connection.integer("PRAGMA application_id", doing: "Opening the database") == 0
            && connection.integer("PRAGMA user_version", doing: "Opening the database") == 0
            && connection.integer("SELECT count(*) FROM sqlite_master", doing: "Opening the database") == 0
    }

    private static func prepare(_ connection: SQLiteConnection, create: Bool) throws {
        if try isEmpty(connection) {
            guard create else {
                throw StoreError(
                    .notFound, "Opening the database \(connection.path) failed: it is empty. Check the path, or let the store be created.",
                    path: connection.path)
            }
            try connection.useLog(doing: "Making the database")
            try connection.transaction(doing: "Making the database") {
                // Another process may have been faster.
                guard try isEmpty(connection) else { return }
                let numbers = "PRAGMA application_id=\(applicationID); PRAGMA user_version=\(format)"
                try connection.run(([numbers] + SQLiteNewDatabase.tables.map(\.1)).joined(separator: ";"), doing: "Making the database")
            }
            try StoreDirectory(Paths.parent(of: connection.path)).syncDirectory(Paths.parent(of: connection.path), FileSystem())
        }
        try checkFormat(connection)
        try setUp(connection)
    }
}
