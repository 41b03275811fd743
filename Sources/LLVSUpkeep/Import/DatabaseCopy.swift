/// A private copy of a foreign database and its log, in a folder of its own.
///
/// SQLite opens whatever has the name. The owner may put a pipe or a link there, hold a lease on the file, or truncate the shared memory;
/// each could block or crash this process. So SQLite never opens the owner's files. They are copied, each through one descriptor.
final class DatabaseCopy {
    /// The path of the original.
    let original: String
    let path: String
    private let folder: Folder

    private static let attempts = 5
    private static let pieceSize = 256 << 10
    private static let doing = "Copying the database"

    /// Copies the database. Returns nil if there is no such file.
    /// - Parameter places: path prefixes for the copy's folder; the first usable one is used.
    /// - Parameter control: checked for each piece.
    /// - Throws: `.busy` if it was written to repeatedly during the copying, or is open in this process.
    static func make(of database: DirectoryEntry, in places: [String], _ control: PacedControl) throws -> DatabaseCopy? {
        guard FolderFiles.signature(database) != nil else { return nil }
        try SQLiteLibrary.checkProcess(doing, database.path)
        for _ in 0..<attempts {
            let copy = try DatabaseCopy(database, in: places)
            if try copy.fill(from: database, control) { return copy }
        }
        throw StoreError(
            .busy, "\(doing) \(database) failed: another program writes to it all the time. End that program, and import again.",
            path: database.path)
    }

    private init(_ database: DirectoryEntry, in places: [String]) throws {
        original = database.path
        var failure: StoreError?, made: Folder?
        for place in places where made == nil {
            do { made = try DatabaseCopy.folder(place) } catch { failure = StoreError.of(error) }
        }
        guard let made else {
            throw failure
                ?? StoreError(
                    .io, "\(DatabaseCopy.doing) \(database) failed: there is no folder for the copy. Set TMPDIR to one.", path: original)
        }
        folder = made
        path = made.path + "/database"
    }

    private static func folder(_ place: String) throws -> Folder {
        let name = try posix("Naming a folder", place) { () throws(Errno) in try RandomName.random().hex }
        let wanted = DirectoryEntry(place + ".import-" + name)
        return try posix("Making the folder", wanted.path) { () throws(Errno) in
            // The path is resolved first, so that SQLite need not follow links.
            guard let above = System.resolved(wanted.folder.path) else { throw Errno(ENOENT) }
            let folder = Folder(above).folder(wanted.name)
            try folder.make(mode: 0o700)
            return folder
        }
    }

    deinit { folder.remove() }

    /// Copies the files; false if they changed meanwhile.
    private func fill(from database: DirectoryEntry, _ control: PacedControl) throws -> Bool {
        try SQLiteConnection.checkJournal(database)
        let file = try DatabaseFile(database, DatabaseCopy.doing), log = database.folder.place(database.name + "-wal")
        let logFile = FolderFiles.signature(log) == nil ? nil : try DatabaseFile(log, DatabaseCopy.doing)
        try copy(file, to: "database", control)
        if let logFile { try copy(logFile, to: "database-wal", control) }
        return (try? database.status()) == file.status && (try? log.status()) == logFile?.status
    }

    private func copy(_ file: DatabaseFile, to name: String, _ control: PacedControl) throws {
        let place = folder.place(name), size = file.status.size
        var buffer = [UInt8](repeating: 0, count: Int(min(UInt64(DatabaseCopy.pieceSize), max(size, 1)))), at: UInt64 = 0
        let copy = try posix("Making the copy", place.path) { () throws(Errno) in
            try OpenFile(place, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        }
        // Holes stay holes, so a huge sparse file takes no space.
        while at < size, let data = System.nextData(file.descriptor, from: at), data < size {
            at = data
            let count = Int(min(UInt64(buffer.count), size - at))
            let got = try posix("Reading", file.path) { () throws(Errno) in
                try buffer.filled { (b) throws(Errno) in
                    try System.pread(file.descriptor, UnsafeMutableRawBufferPointer(rebasing: b[0..<count]), at: at)
                }
            }
            if got == 0 { break }
            try posix("Writing the copy", place.path) { () throws(Errno) in
                try buffer.borrowed { (b) throws(Errno) in
                    try FileSystem().write(copy, UnsafeRawBufferPointer(rebasing: b[0..<got]), at: at)
                }
            }
            at += UInt64(got)
            try control.step(0, bytes: got)
        }
        try posix("Writing the copy", place.path) { () throws(Errno) in try System.truncate(copy.descriptor, to: size) }
    }
}
