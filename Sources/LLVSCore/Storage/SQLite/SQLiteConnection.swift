import CSQLite

/// One connection to a database and its prepared statements. Used by one thread at a time.
package final class SQLiteConnection {
    /// The path in messages.
    package let path: String
    /// The path of the opened file.
    let file: String
    package let sqlite: SQLite
    private(set) var handle: OpaquePointer?
    private var statements: [String: OpaquePointer] = [:]

    /// `copy`: a private copy, for reading. Its log is read without a `-shm`.
    package enum Mode { case write, read, immutable, copy }
    /// Its entries in `OpenDatabases`.
    private var files: [FileIdentity] = []
    private var isInside = true

    /// How long to wait for other connections.
    package struct Patience {
        let milliseconds: Int32
        /// At most three weeks. At least a millisecond if it is not zero.
        package init(seconds: Double) {
            milliseconds = seconds > 0 ? Int32(min(max(1, (seconds * 1_000).rounded()), 2_000_000_000)) : 0
        }
        static let standard = Patience(seconds: 10)
        var description: String { milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000) s" : "\(milliseconds) ms" }
    }
    let patience: Patience
    /// Checks the control of the running call while SQLite works or waits.
    let watch = SQLiteWatch()

    /// - Throws: `.unsupported` if there is no usable SQLite; `.notFound`, `.notAStore`, `.permission`, ... according to the system.
    /// - Parameter of: the original's path in messages, if this is a copy.
    package init(_ path: String, _ mode: Mode, _ patience: Patience = .standard, of original: String? = nil) throws {
        self.patience = patience
        self.path = original ?? path
        file = path
        try SQLiteLibrary.enter(path)
        do { sqlite = try SQLiteLibrary.functions(for: path) } catch {
            SQLiteLibrary.leave()
            throw error
        }
        try SQLiteConnection.checkBeside(path, mode)
        if mode != .copy { try SQLiteConnection.awaitLeases(path, mode, patience) }
        var name = path
        var flags = SQLITE_OPEN_NOMUTEX
        switch mode {
        case .copy: flags |= SQLITE_OPEN_READWRITE | SQLiteConnection.noFollow
        case .write: flags |= SQLITE_OPEN_READWRITE
        case .read: flags |= SQLITE_OPEN_READONLY
        case .immutable:
            flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            name = "file:" + SQLiteConnection.escaped(path) + "?immutable=1"
        }
        // A path that begins with "file:" would be taken for a URI if the host's SQLite is built so.
        if mode != .immutable, !name.hasPrefix("/") { name = "./" + name }
        noteFile(path)
        let result = sqlite.pointee.open_v2(name, &handle, flags, nil)
        guard result == SQLITE_OK, handle != nil else {
            let failure = error("Opening", result)
            close()
            throw failure
        }
        // The file may have been replaced just now.
        noteFile(path)
        _ = sqlite.pointee.extended_result_codes(handle, 1)
        watch.attach(to: self)
        do { try makeSafe(isCopy: mode == .copy) } catch {
            close()
            throw error
        }
    }
    /// Returns the files of a database with their identities. SQLite has each of them open while a connection exists.
    package static func files(_ path: String) -> [(path: String, identity: FileIdentity)] {
        ["", "-wal", "-shm"].compactMap { suffix in FileIdentity(path + suffix).map { (path + suffix, $0) } }
    }

    private func noteFile(_ path: String) {
        guard let file = FileIdentity(path), !files.contains(file) else { return }
        OpenDatabases.add(file, path)
        files.append(file)
    }
    /// SQLITE_OPEN_NOFOLLOW, which older headers lack: SQLite from 3.31 on refuses a symbolic link anywhere in the path.
    private static let noFollow: Int32 = 0x0100_0000

    deinit { close() }

    package func close() {
        for statement in statements.values { _ = sqlite.pointee.finalize(statement) }
        statements = [:]
        if let handle { _ = sqlite.pointee.close_v2(handle) }
        handle = nil
        files.forEach(OpenDatabases.remove)
        files = []
        if isInside { SQLiteLibrary.leave() }
        isInside = false
    }

    /// After a fork, leaves everything open: the parent's locks and write-ahead log must not be touched.
    package func leak() {
        statements = [:]
        handle = nil
        files = []
        isInside = false
    }

    /// Whether SQLite could open the file only for reading, although it was to be opened for writing. SQLite reports no error in this case,
    /// whatever the reason, and the connection stays read-only.
    var isReadOnly: Bool { sqlite.pointee.db_readonly(handle, "main") == 1 }

    /// Runs statements whose results are not needed.
    package func run(_ sql: String, doing: String) throws {
        let result = sqlite.pointee.exec(handle, sql, nil, nil, nil)
        if result != SQLITE_OK { throw error(doing, result) }
    }

    /// Switches the database to WAL mode. While another process does the same or closes the database, SQLite refuses at once, whatever
    /// its timeout.
    package func useLog(doing: String) throws {
        var waited: Int32 = 0, pause: Int32 = 1
        while true {
            let result = sqlite.pointee.exec(handle, "PRAGMA journal_mode=WAL", nil, nil, nil)
            if result == SQLITE_OK { return }
            guard result & 0xFF == SQLITE_BUSY, waited < patience.milliseconds else { throw error(doing, result) }
            try Waiting.look()
            usleep(UInt32(pause) * 1_000)
            waited &+= pause
            pause = min(pause * 2, SQLiteWatch.longestPause)
        }
    }

    /// Runs the statement once with the values that `bind` binds, and calls `row` with each row until it returns false.
    package func query(
        _ sql: String, doing: String, bind: (SQLiteStatement) -> Void = { _ in }, row: (SQLiteStatement) throws -> Bool = { _ in true }
    ) throws {
        let statement = try prepared(sql, doing: doing)
        defer { finish(statement) }
        bind(statement)
        while true {
            let result = step(statement)
            if result == SQLITE_DONE { return }
            guard result == SQLITE_ROW else { throw error(doing, result) }
            if try !row(statement) { return }
        }
    }

    /// Returns a statement without results, to be run many times. Valid as long as the connection.
    package func statement(_ sql: String, doing: String) throws -> SQLiteStatement { try prepared(sql, doing: doing) }

    /// Runs it once with the values that `bind` binds.
    package func run(_ statement: SQLiteStatement, doing: String, bind: (SQLiteStatement) -> Void) throws {
        bind(statement)
        let result = step(statement)
        defer { finish(statement) }
        guard result == SQLITE_DONE || result == SQLITE_ROW else { throw error(doing, result) }
    }

    private func step(_ statement: SQLiteStatement) -> Int32 {
        if let failed = watch.takeBindingFailure() { return failed }
        watch.isReading = sqlite.pointee.stmt_readonly(statement.handle) != 0
        defer { watch.isReading = false }
        return sqlite.pointee.step(statement.handle)
    }

    private func finish(_ statement: SQLiteStatement) {
        // In a forked child, the transaction and the files belong to the parent.
        guard !SQLiteLibrary.isForked else { return }
        _ = sqlite.pointee.reset(statement.handle)
        _ = sqlite.pointee.clear_bindings(statement.handle)
    }

    package func integer(_ sql: String, doing: String) throws -> Int64 {
        var value: Int64 = 0
        try query(
            sql, doing: doing,
            row: {
                value = $0.integer(0); return false
            })
        return value
    }

    private func prepared(_ sql: String, doing: String) throws -> SQLiteStatement {
        if let known = statements[sql] { return SQLiteStatement(sqlite: sqlite, watch: watch, handle: known) }
        var statement: OpaquePointer?
        let result = sqlite.pointee.prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard result == SQLITE_OK, let statement else { throw error(doing, result) }
        statements[sql] = statement
        return SQLiteStatement(sqlite: sqlite, watch: watch, handle: statement)
    }

    private func rollBack(_ doing: String) {
        if !SQLiteLibrary.isForked { try? query("ROLLBACK", doing: doing) }
    }

    /// Runs `body` in a transaction that takes the write lock at once.
    package func transaction<R>(doing: String, _ body: () throws -> R) throws -> R {
        try query("BEGIN IMMEDIATE", doing: doing)
        let result: R
        do {
            result = try body()
        } catch {
            rollBack(doing)
            throw error
        }
        do {
            try query("COMMIT", doing: doing)
        } catch var failure as StoreError {
            rollBack(doing)
            if failure.code == .io {
                // The log's bytes may be on the disk although its sync failed.
                failure.code = .unknownOutcome
                failure.message +=
                    " It is not known whether it was stored: check after the next reload, or store it again under the same version id."
            }
            throw failure
        }
        return result
    }

    /// Returns the error for a result code.
    func error(_ doing: String, _ result: Int32) -> StoreError {
        if let stopped = watch.takeFailure() { return stopped }
        let code: StoreError.Code
        let advice: String
        switch result & 0xFF {
        case SQLITE_FULL: code = .noSpace; advice = "Make room and try again; nothing stored before is affected."
        case SQLITE_READONLY:
            code = .readOnly; advice = "Check the permissions of the file and of its directory, or open the store read-only."
        case SQLITE_BUSY, SQLITE_LOCKED:
            code = .busy;
            advice =
                "Another process or connection has kept the database locked for longer than the busy time-out of \(patience.description); "
                + "try again, or allow more."
        case SQLITE_CORRUPT:
            code = .damaged;
            advice =
                "The file's structure is damaged. Verify the store, and retrieve from a store that has the versions, or salvage it into a "
                + "new one."
        case SQLITE_NOTADB:
            code = .notAStore; advice = "The file is not an SQLite database, or is damaged at its beginning. Give another path."
        case SQLITE_PERM, SQLITE_AUTH: code = .permission; advice = "Check the permissions of the file and of its directory."
        case SQLITE_NOMEM: code = .outOfMemory; advice = "The system is short of memory: free some, and try again."
        case SQLITE_TOOBIG:
            code = .damaged;
            advice =
                "A row claims to be larger than any that the library writes. Salvage the store into a new one, or retrieve what is missing."
        case SQLITE_CANTOPEN:
            return cannotOpen(doing, result)
        case SQLITE_IOERR where result != SQLiteConnection.syncFailed && [EFBIG, EDQUOT, ENOSPC].contains(systemCode(result)):
            code = .noSpace;
            advice = "Make room (or raise the quota or the limit on file sizes) and try again; nothing stored before is affected."
        default: code = .io; advice = "Check the medium, and try again."
        }
        return StoreError(code, "\(doing) \(path) failed: \(text(result)). \(advice)", path: path, systemCode: systemCode(result))
    }

    /// SQLITE_IOERR_FSYNC: the bytes may be written all the same.
    private static let syncFailed = SQLITE_IOERR | 4 << 8

    /// Returns the `errno` of the failed call. SQLite reports it only for these results.
    private func systemCode(_ result: Int32) -> Int32 {
        result & 0xFF == SQLITE_IOERR || result & 0xFF == SQLITE_CANTOPEN ? handle.map { sqlite.pointee.system_errno($0) } ?? 0 : 0
    }

    /// Returns the error for a failed opening. SQLite has one code for all reasons; the system's error, if it is known, shows which.
    private func cannotOpen(_ doing: String, _ result: Int32) -> StoreError {
        let system = systemCode(result)
        // The database exists, so SQLite reports that its log could not be created.
        if system == Errno.missing.code, (try? System.status(path)) != nil {
            return StoreError(
                .readOnly,
                "\(doing) \(path) failed: its files -wal and -shm cannot be created beside it. "
                    + "Check the permissions of the directory, or open the store read-only.",
                path: path, systemCode: system)
        }
        if system != 0 { return StoreError.posix(Errno(system), doing: doing, path: path) }
        return StoreError(.io, "\(doing) \(path) failed: \(text(result)). Check the path and the permissions of the directory.", path: path)
    }

    private func text(_ result: Int32) -> String {
        let message = handle.flatMap { sqlite.pointee.errmsg($0) }.map { String(cString: $0) } ?? SQLiteLibrary.text(result, sqlite)
        return "\(message) (SQLite \(result))"
    }

    /// Returns a path escaped for a URI.
    private static func escaped(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for b in path.utf8 {
            switch b {
            case 0x2F, 0x2E, 0x2D, 0x5F, 0x30...0x39, 0x41...0x5A, 0x61...0x7A: bytes.append(b)
            default: bytes += [0x25, digits[Int(b >> 4)], digits[Int(b & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A statement whose values are being bound, or whose current row is read.
package struct SQLiteStatement {
    fileprivate let sqlite: SQLite
    fileprivate let watch: SQLiteWatch
    fileprivate let handle: OpaquePointer

    /// Records that a value could not be bound, so that the next step fails instead of storing NULL.
    private func note(_ result: Int32) { if result != SQLITE_OK { watch.noteBindingFailure(result) } }

    package func bind(_ index: Int32, _ value: Int64) { note(sqlite.pointee.bind_int64(handle, index, value)) }
    package func bind(_ index: Int32, _ text: String) { note(sqlite.pointee.bind_text(handle, index, text, -1, llvs_sqlite_transient())) }
    package func bind(_ index: Int32, _ value: Double) { note(sqlite.pointee.bind_double(handle, index, value)) }
    /// Binds UTF-8 text, which must stay valid until the statement was run.
    package func bind(_ index: Int32, utf8 text: UnsafeRawBufferPointer) {
        guard let start = text.baseAddress, text.count > 0 else { return bind(index, "") }
        note(
            sqlite.pointee.bind_text(
                handle, index, start.assumingMemoryBound(to: CChar.self), Int32(clamping: text.count), llvs_sqlite_static()))
    }
    /// Binds a copy of UTF-8 text.
    package func bind(_ index: Int32, copying text: UnsafeRawBufferPointer) {
        guard let start = text.baseAddress, text.count > 0 else { return bind(index, "") }
        note(
            sqlite.pointee.bind_text(
                handle, index, start.assumingMemoryBound(to: CChar.self), Int32(clamping: text.count), llvs_sqlite_transient()))
    }
    /// Binds bytes, which must stay valid until the statement was run.
    package func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        if bytes.count == 0 {
            note(sqlite.pointee.bind_zeroblob(handle, index, 0))
        } else {
            note(sqlite.pointee.bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), llvs_sqlite_static()))
        }
    }

    package func integer(_ column: Int32) -> Int64 { sqlite.pointee.column_int64(handle, column) }
    func isNull(_ column: Int32) -> Bool { sqlite.pointee.column_type(handle, column) == SQLITE_NULL }
    /// Valid until the next row.
    package func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite.pointee.column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite.pointee.column_bytes(handle, column)))
    }
}
