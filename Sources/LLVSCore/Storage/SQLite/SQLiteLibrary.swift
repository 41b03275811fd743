import CSQLite

/// SQLite's functions, which are never unloaded.
package typealias SQLite = UnsafePointer<llvs_sqlite>

/// The system's SQLite, loaded when the first store in a database is opened. Hosts without such a store need no SQLite, and in a host
/// with another SQLite the symbols stay apart.
package enum SQLiteLibrary {
    #if canImport(Darwin)
    private static let file = "/usr/lib/libsqlite3.dylib"
    #else
    private static let file = "libsqlite3.so.0"
    #endif
    private static let library = SharedLibrary(
        name: "SQLite", file: file, packages: "Debian's package libsqlite3-0, Fedora's sqlite-libs, Alpine's sqlite-libs",
        purpose: "Opening the database", spared: "The file storage needs no SQLite.", isForPath: true)

    /// The first version with all functions that are used (sqlite3_prepare_v3): 2017.
    private static let oldest: Int32 = 3_020_000

    /// Whether a connection was open, or was being opened or closed, when this process was forked. SQLite remembers which files it has
    /// open and locked, and another thread may have held its mutexes. A child that used this state would take no locks and lose what it
    /// saves, or wait forever.
    package static var isForked: Bool { llvs_sqlite_is_forked() != 0 }

    /// Call this before anything is done to a database.
    /// - Throws: `.forked`.
    package static func checkProcess(_ doing: String, _ path: String) throws {
        guard isForked else { return }
        throw StoreError(
            .forked,
            "\(doing) \(path) failed: a store in SQLite was open when this process was forked, and SQLite does not work in the child. "
                + "Close all stores in SQLite before the fork, or run another program first (exec, posix_spawn; "
                + "in Python, multiprocessing with \"spawn\").",
            path: path)
    }

    /// Enters SQLite: a fork sees that this thread is in it. If it returns true, call `leave` once nothing is done by SQLite any more.
    static func enters() -> Bool { llvs_sqlite_enter() != 0 }
    static func enter(_ path: String) throws {
        if !enters() { try checkProcess("Opening the database", path) }
    }
    static func leave() { llvs_sqlite_leave() }

    /// - Throws: `.unsupported` if there is no SQLite, or it cannot work; `.tooManyFiles`.
    static func functions(for path: String) throws -> SQLite {
        let sqlite = try library.functions(for: path) { llvs_sqlite_open($0, $1, $2) }
        let version = sqlite.pointee.libversion_number()
        guard version >= oldest else {
            throw library.unusable(
                for: path,
                "the SQLite in \(file) is version \(version / 1_000_000).\(version / 1_000 % 1_000).\(version % 1_000), and 3.20 is the "
                    + "oldest that works",
                "Install a newer one.")
        }
        guard sqlite.pointee.threadsafe() != 0 else {
            throw library.unusable(
                for: path, "the SQLite in \(file) was built for one thread only (SQLITE_THREADSAFE=0)",
                "Install one that was built for several threads, such as the system's package.")
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
}
