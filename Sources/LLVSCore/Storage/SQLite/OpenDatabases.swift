/// The databases that SQLite has open in this process, by device and inode.
///
/// When a process closes any descriptor of a file, the system releases all locks that SQLite holds on that file in this process
/// (https://www.sqlite.org/howtocorrupt.html, 2.2). So the library does not open such a file by itself. If SQLite opened it meanwhile, a
/// descriptor of it stays open as long as SQLite has it.
package enum OpenDatabases {
    package enum Part { case database, sharedMemory }
    private struct Known {
        let path: String
        var connections = 0
        /// Descriptors that are closed with the last connection.
        var kept: [Int32] = []
    }
    private static let all = Guarded<[FileIdentity: Known]>([:])

    /// Call this before SQLite opens the file.
    static func add(_ file: FileIdentity, _ path: String) { all.withLock { $0[file, default: Known(path: path)].connections += 1 } }

    /// Call this after SQLite closed the file.
    static func remove(_ file: FileIdentity) {
        all.withLock { all in
            guard var known = all[file] else { return }
            known.connections -= 1
            all[file] = known.connections > 0 ? known : nil
            if known.connections <= 0 { known.kept.forEach(System.close) }
        }
    }

    /// Returns which part of an open database the file is; nil if it is none. If SQLite cannot be used after a fork, it returns nil:
    /// locks are not inherited, and the list may be locked forever.
    package static func part(_ file: FileIdentity) -> Part? {
        guard SQLiteLibrary.enters() else { return nil }
        defer { SQLiteLibrary.leave() }
        return all.withLock { all in
            if all[file] != nil { return .database }
            return all.values.contains { FileIdentity($0.path + "-shm") == file } ? .sharedMemory : nil
        }
    }

    /// Closes a descriptor, at once or when that releases no locks.
    static func close(_ descriptor: Int32, _ file: FileIdentity) {
        guard SQLiteLibrary.enters() else { return System.close(descriptor) }
        defer { SQLiteLibrary.leave() }
        all.withLock { all in
            if all[file]?.kept.append(descriptor) == nil { System.close(descriptor) }
        }
    }

    /// Returns the file of a database on which another program holds a lease (F_SETLEASE), so that opening it would wait; nil if there is
    /// none. No program can get a lease on a database that is open in this process.
    ///
    /// The check opens and closes the files, so SQLite must not open them meanwhile.
    static func leased(_ path: String, forWriting: Bool) -> String? {
        all.withLock { all in
            guard let database = FileIdentity(path), all[database] == nil else { return nil }
            for file in ["", "-wal", "-shm"].map({ path + $0 }) {
                let isPart = FileIdentity(file).map { part in all.values.contains { FileIdentity($0.path + "-shm") == part } } ?? true
                if isPart { continue }
                do throws(Errno) {
                    System.close(try System.open(file, (forWriting ? O_RDWR : O_RDONLY) | (file == path ? 0 : O_NOFOLLOW)))
                } catch { if error.code == EWOULDBLOCK { return file } }
            }
            return nil
        }
    }

    /// - Throws: `.busy` if SQLite has it open in this process.
    package static func checkIsClosed(_ status: System.Status, _ doing: String, _ path: String) throws {
        guard status.isRegularFile, part(FileIdentity(status)) != nil else { return }
        throw StoreError(
            .busy,
            "\(doing) \(path) failed: the database is open in this process, and reading the file beside SQLite would release its locks. "
                + "Close all stores in it first.",
            path: path)
    }
}

/// A file that may be a database, opened for reading. See `OpenDatabases`.
package final class DatabaseFile: Sendable {
    package let descriptor: Int32
    /// The status of the file when it was opened.
    package let status: System.Status
    package let path: String

    /// - Throws: `.busy` if SQLite has it open in this process, `.notAStore` if it is not a regular file, or the system's error. Never
    ///   waits.
    package convenience init(path: String, _ doing: String) throws {
        try self.init(
            path, doing, look: { () throws(Errno) in try System.status(path) },
            open: { () throws(Errno) in try System.open(path, O_RDONLY) })
    }
    /// Does not follow a symbolic link.
    package convenience init(_ place: DirectoryEntry, _ doing: String) throws {
        try self.init(
            place.path, doing, look: place.status,
            open: { () throws(Errno) in
                try place.found { (at) throws(Errno) in try System.open(place.name, in: at, O_RDONLY) }
            })
    }

    private init(_ path: String, _ doing: String, look: () throws(Errno) -> System.Status, open: () throws(Errno) -> Int32) throws {
        self.path = path
        let found = try posix(doing, path, look)
        guard found.isRegularFile else {
            throw StoreError(.notAStore, "\(doing) \(path) failed: it is not a file. Check the path.", path: path)
        }
        try OpenDatabases.checkIsClosed(found, doing, path)
        do throws(Errno) { descriptor = try open() } catch {
            guard error.code != EWOULDBLOCK else {
                throw StoreError(
                    .busy,
                    "\(doing) \(path) failed: another program holds a lease on it (F_SETLEASE), which opening it would wait for. "
                        + "End that program, or give a copy.",
                    path: path, systemCode: error.code)
            }
            throw StoreError.posix(error, doing: doing, path: path)
        }
        do throws(Errno) { status = try System.status(descriptor) } catch {
            System.close(descriptor)
            throw StoreError.posix(error, doing: doing, path: path)
        }
        // Another file may have replaced the database.
        guard status.isRegularFile else {
            throw StoreError(.notAStore, "\(doing) \(path) failed: it is not a file any more. Check what writes there.", path: path)
        }
        try OpenDatabases.checkIsClosed(status, doing, path)
    }

    deinit { OpenDatabases.close(descriptor, FileIdentity(status)) }
}
