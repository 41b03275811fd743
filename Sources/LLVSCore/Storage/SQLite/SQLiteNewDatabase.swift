/// The bytes of a database without records (https://www.sqlite.org/fileformat2.html), and how it is published under its name.
///
/// SQLite itself would create one with a rollback journal. A process that is killed meanwhile would leave the journal, which a store
/// never has (`SQLiteConnection.checkBeside`). Instead, these pages are written to a temporary file, synced and renamed: the file is
/// empty or complete.
package enum SQLiteNewDatabase {
    /// The statements that create the tables, as SQLite stores them. The rest of the schema is the index for the text key.
    static let tables = [
        (
            "records",
            "CREATE TABLE records(seq INTEGER PRIMARY KEY, length INTEGER NOT NULL, checksum INTEGER NOT NULL, first INTEGER, data BLOB)"
        ),
        ("chunks", "CREATE TABLE chunks(seq INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL)"),
        ("caches", "CREATE TABLE caches(name TEXT PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL)"),
    ]
    static let index = "sqlite_autoindex_caches_1"
    private static let pageSize = 4096

    /// Five pages: the schema, the three tables and the index. All but the first have no rows.
    static var bytes: [UInt8] {
        var rows: [[UInt8]] = []
        for (i, table) in tables.enumerated() { rows.append(row("table", table.0, table.0, UInt8(i + 2), table.1)) }
        rows.append(row("index", index, "caches", UInt8(tables.count + 2), nil))
        return bytes(rows, SQLiteStorage.applicationID, SQLiteStorage.format)
    }

    /// One page without tables.
    package static func empty(_ applicationID: Int64, _ format: Int64) -> [UInt8] { bytes([], applicationID, format) }

    private static func bytes(_ rows: [[UInt8]], _ applicationID: Int64, _ format: Int64) -> [UInt8] {
        var file = [UInt8](repeating: 0, count: pageSize * (rows.count + 1))
        func put(_ bytes: some Sequence<UInt8>, at offset: Int) { for (i, byte) in bytes.enumerated() { file[offset + i] = byte } }
        func put(_ number: Int, _ size: Int, at offset: Int) {
            for i in 0..<size { file[offset + i] = UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - i))) }
        }
        put("SQLite format 3\0".utf8, at: 0)
        put(pageSize, 2, at: 16)
        put([2, 2, 0, 64, 32, 32], at: 18) // written and read through a log
        put(1, 4, at: 24) // changes
        put(rows.count + 1, 4, at: 28) // pages
        put(1, 4, at: 40) // changes of the schema
        put(4, 4, at: 44) // format of the schema
        put(1, 4, at: 56) // UTF-8
        put(Int(format), 4, at: 60)
        put(Int(applicationID), 4, at: 68)
        put(1, 4, at: 92)
        put(3_020_000, 4, at: 96)
        var end = pageSize
        put([0x0D], at: 100)
        put(rows.count, 2, at: 103)
        for (i, row) in rows.enumerated() {
            let cell = varint(row.count) + [UInt8(i + 1)] + row
            end -= cell.count
            put(cell, at: end)
            put(end, 2, at: 108 + 2 * i)
        }
        put(end, 2, at: 105)
        for page in 1..<rows.count + 1 {
            put([page == rows.count ? 0x0A : 0x0D], at: page * pageSize)
            put(pageSize, 2, at: page * pageSize + 5)
        }
        return file
    }

    /// Returns a row of the schema.
    private static func row(_ type: String, _ name: String, _ table: String, _ page: UInt8, _ sql: String?) -> [UInt8] {
        let texts = [type, name, table]
        var types = texts.flatMap { varint(13 + 2 * $0.utf8.count) }
        types += [1]
        types += sql.map { varint(13 + 2 * $0.utf8.count) } ?? [0]
        return [UInt8(types.count + 1)] + types + texts.flatMap { Array($0.utf8) } + [page] + Array((sql ?? "").utf8)
    }
    /// Encodes a number below 16,384.
    private static func varint(_ number: Int) -> [UInt8] {
        number < 128 ? [UInt8(number)] : [UInt8(number >> 7 & 127) | 128, UInt8(number & 127)]
    }

    /// Files of databases that this process must never close: see `make`.
    private static let keptOpen = Guarded<[OpenFile]>([])

    /// Creates the database at `path` if there is no file or an empty one. An empty file of the effective user keeps its permissions. Any
    /// number of processes may do so at once.
    ///
    /// An existing database is not opened here: when a process closes any descriptor of a file, the system releases all locks that SQLite
    /// holds on it for other connections in this process (https://www.sqlite.org/howtocorrupt.html, 2.2).
    /// - Parameters:
    ///   - mode: the permissions of a new database, restricted by the process's umask.
    ///   - bytes: returns its content. Called when it is created.
    package static func make(at path: String, mode: UInt32, _ patience: SQLiteConnection.Patience, _ bytes: () -> [UInt8] = { bytes })
        throws
    {
        let place = DirectoryEntry(path)
        var waited: Int32 = 0, pause: Int32 = 1
        while true {
            if let known = try? place.status(), !known.isRegularFile || known.size > 0 { return }
            let file: OpenFile, status: System.Status
            do throws(Errno) {
                file = try OpenFile(place, O_RDWR | O_CREAT, mode: mode)
                status = try System.status(file.descriptor)
            } catch {
                // A file that can be read but not written is for SQLite to open.
                if (try? place.status())?.isRegularFile == true { return }
                throw StoreError.posix(error, doing: "Making the database", path: path)
            }
            guard status.isRegularFile, status.size == 0 else {
                // Another process has just created a database at this path.
                keptOpen.withLock { $0.append(file) }
                return
            }
            do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {
                // Without locks, SQLite does not work for several processes either.
                if error.code == EWOULDBLOCK || error.code == EAGAIN {
                    guard waited < patience.milliseconds else {
                        throw StoreError(
                            .busy,
                            "Making the database \(path) failed: another process has been making it for longer than the busy time-out of "
                                + "\(patience.description). Try again, or allow more.",
                            path: path, systemCode: error.code)
                    }
                    try Waiting.look()
                    usleep(UInt32(pause) * 1_000)
                    waited &+= pause
                    pause = min(pause * 2, SQLiteWatch.longestPause)
                    continue
                }
            }
            // The previous holder of the lock may have put a complete database in its place.
            let now: System.Status
            do throws(Errno) { now = try place.status() } catch {
                // The file was removed, so try again. After any other error, do not.
                if error.code == ENOENT { continue }
                throw StoreError.posix(error, doing: "Making the database", path: path)
            }
            guard FileIdentity(now) == FileIdentity(status), now.size == 0 else { continue }
            // The permissions of an empty file count only if this user created it. A user who plants one must not decide who may write
            // the database.
            let permissions = now.owner == geteuid() ? now.permissions : nil
            try posix("Making the database", path) { () throws(Errno) in
                try write(bytes(), in: place, mode: mode, permissions: permissions)
            }
            withExtendedLifetime(file) {}
            return
        }
    }

    private static func write(_ bytes: [UInt8], in place: DirectoryEntry, mode: UInt32, permissions: UInt32?) throws(Errno) {
        let aside = try place.folder.place("\(place.name)-\(RandomName.random().hex).new")
        do throws(Errno) {
            let file = try OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL, mode: permissions == nil ? mode : 0o600)
            if let permissions {
                do throws(Errno) { try System.setPermissions(file.descriptor, permissions) } catch {
                    // FAT, exFAT and some network mounts have no permissions of their own. Otherwise the file stays private to its owner.
                    guard [EPERM, EACCES, EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(error.code) else { throw error }
                }
            }
            try bytes.borrowed { (b) throws(Errno) in try FileSystem().write(file, b, at: 0) }
            try System.fdatasync(file.descriptor)
            try aside.rename(to: place)
        } catch {
            try? aside.unlink()
            throw error
        }
        do throws(Errno) {
            let directory = try place.folder.readable()
            try System.fsync(directory.descriptor)
        } catch {
            if ![EINVAL, ENOTSUP, EACCES].contains(error.code) { throw error }
        }
    }
}
