import CSQLite

/// SQLite's functions; there for good.
typealias SQLite = UnsafePointer<llvs_sqlite>

/// The system's SQLite, opened when the first store in it is: hosts without such a store need none, and one that contains
/// another SQLite keeps its symbols apart from this one.
enum SQLiteLibrary {
    #if canImport(Darwin)
    static let name = "/usr/lib/libsqlite3.dylib"
    #else
    static let name = "libsqlite3.so.0"
    #endif

    /// The first with all functions that are used (sqlite3_prepare_v3): 2017.
    private static let oldest: Int32 = 3_020_000

    /// Whether a connection was open, or just being opened or closed, at the fork that made this process. SQLite keeps in memory which
    /// files it has open and locked, and has locks of its own that another thread may have held: a child that went on with these would
    /// take no locks, and lose what it saves, or wait for ever.
    static var isForked: Bool { llvs_sqlite_is_forked() != 0 }

    /// Before anything is done to a database.
    /// - Throws: `.forked`.
    static func checkProcess(_ doing: String, _ path: String) throws {
        guard isForked else { return }
        throw StoreError(
            .forked,
            "\(doing) \(path) failed: a store in SQLite was open when this process was forked, and SQLite does not work on in the child. "
                + "Close all stores in SQLite before the fork, or run another program first (exec, posix_spawn; "
                + "in Python, multiprocessing with \"spawn\").",
            path: path)
    }

    /// To be followed by `leave`, where it says true, once nothing is done by SQLite any more. Before what needs it: a fork looks at it.
    static func enters() -> Bool { llvs_sqlite_enter() != 0 }
    static func enter(_ path: String) throws {
        if !enters() { try checkProcess("Opening the database", path) }
    }
    static func leave() { llvs_sqlite_leave() }

    /// - Throws: `.unsupported` when there is none, or it cannot work; `.tooManyFiles`.
    static func functions(for path: String) throws -> SQLite {
        let found: Result<SQLite, StoreError> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { problem in
            guard let room = problem.baseAddress else { return .failure(unusable(path, "there is no memory", "Free some.")) }
            guard let functions = llvs_sqlite_open(name, room, problem.count) else { return .failure(missing(path, String(cString: room))) }
            return .success(functions)
        }
        let sqlite = try found.get()
        let version = sqlite.pointee.libversion_number()
        guard version >= oldest else {
            throw unusable(
                path,
                "the SQLite in \(name) is version \(version / 1_000_000).\(version / 1_000 % 1_000).\(version % 1_000), and 3.20 is the "
                    + "oldest that works",
                "Install a newer one.")
        }
        guard sqlite.pointee.threadsafe() != 0 else {
            throw unusable(
                path, "the SQLite in \(name) was built for one thread only (SQLITE_THREADSAFE=0)",
                "Install one that was built for several, as systems bring it.")
        }
        let result = sqlite.pointee.initialize()
        guard result == SQLITE_OK else {
            throw StoreError(
                result == SQLITE_NOMEM ? .outOfMemory : .unsupported,
                "Opening the database \(path) failed: SQLite does not start: \(text(result, sqlite)) (SQLite \(result)).", path: path)
        }
        return sqlite
    }

    static func text(_ result: Int32, _ sqlite: SQLite) -> String { sqlite.pointee.errstr(result).map { String(cString: $0) } ?? "" }

    private static func missing(_ path: String, _ problem: String) -> StoreError {
        // The dynamic linker has words for that, but no number.
        do throws(Errno) { System.close(try System.open("/", O_RDONLY)) } catch {
            if error.code == EMFILE || error.code == ENFILE {
                return StoreError.posix(error, doing: "Opening SQLite for the database", path: path)
            }
        }
        return unusable(
            path, "SQLite cannot be opened: \(problem)",
            "Install it (Debian's package libsqlite3-0, Fedora's sqlite-libs, Alpine's sqlite-libs).")
    }

    private static func unusable(_ path: String, _ why: String, _ advice: String) -> StoreError {
        StoreError(.unsupported, "Opening the database \(path) failed: \(why). \(advice) The file storage needs no SQLite.", path: path)
    }
}
