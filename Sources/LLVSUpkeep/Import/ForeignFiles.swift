/// The files of a store directory of the other implementation, in a directory or in a zip.
///
/// Names are relative to the store directory, with `/` between folders. Used by one thread at a time.
protocol ForeignFiles: AnyObject {
    /// The path of the store, for messages.
    var path: String { get }
    /// Returns all of a file; nil if it is missing.
    /// - Parameter limit: the most bytes to read.
    /// - Parameter control: checked before each further MiB.
    func read(_ file: String, atMost limit: Int, _ control: PacedControl) throws -> [UInt8]?
    /// Returns whether the folder exists.
    /// - Parameter control: checked on the way, as in `names`.
    func hasFolder(_ name: String, _ control: PacedControl) throws -> Bool
    /// Returns the files in a folder and its sub-folders, without those that file systems and syncing programs leave behind:
    /// "AB/CDEF.json", "notes.txt".
    func names(in folder: String, _ control: PacedControl) throws -> [String]
    /// Returns a copy of the database of that name, for SQLite; nil if it is missing.
    func database(_ file: String, _ control: PacedControl) throws -> DatabaseCopy?
}

/// The files in a directory.
final class ForeignDirectory: ForeignFiles {
    let path: String
    /// The folder that the caller named, and the sub-folders used last. No link inside is followed.
    private let top: Folder
    private var folders: [String: Folder] = [:]
    /// Path prefixes for copies of databases.
    private let copies: [String]

    /// - Parameter copies: path prefixes for copies of databases; a name is appended.
    /// - Throws: `.notFound`, `.notADirectory`, `.invalidArgument`.
    init(path: String, copies: [String]) throws {
        self.path = path; self.copies = copies
        top = Folder(System.absolute(path))
        guard !path.utf8.contains(0), !path.isEmpty else {
            throw StoreError(
                .invalidArgument, "The path of a store to import is empty or holds a NUL. Give the path of a directory.", path: path)
        }
        guard try FolderFiles.isDirectory(path) else {
            throw StoreError(.notFound, "There is no store to import at \(path). Check the path.", path: path)
        }
    }

    func read(_ file: String, atMost limit: Int, _ control: PacedControl) throws -> [UInt8]? {
        // File names cannot hold a NUL; and "..", which an id may be, would lead out of the store.
        guard !file.utf8.contains(0), let place = place(file) else { return nil }
        if let status = try? place.status() { try OpenDatabases.checkIsClosed(status, "Reading the file", place.path) }
        return try FolderFiles.read(place, limit: limit, check: control.look)
    }
    func hasFolder(_ name: String, _ control: PacedControl) throws -> Bool {
        guard let status = try place(name)?.look() else { return false }
        guard status.isDirectory else {
            throw FolderFiles.error(Errno(status.isLink ? ELOOP : ENOTDIR), "Using the folder", folder(name))
        }
        return true
    }

    func names(in folder: String, _ control: PacedControl) throws -> [String] {
        var names: [String] = []
        let outer = self.folder(folder)
        for first in try FolderFiles.names(in: outer, control) where !StrayNames.isExpected(first) {
            try control.step()
            guard (try? outer.place(first).status())?.isDirectory == true else {
                names.append(first)
                continue
            }
            for rest in try FolderFiles.names(in: outer.folder(first), control) where rest == ".json" || !StrayNames.isExpected(rest) {
                names.append("\(first)/\(rest)")
            }
        }
        return names
    }

    func database(_ file: String, _ control: PacedControl) throws -> DatabaseCopy? {
        try place(file).flatMap { try DatabaseCopy.make(of: $0, in: copies, control) }
    }

    /// Nil for names that would leave the store, such as "..".
    private func place(_ file: String) -> DirectoryEntry? {
        let parts = ForeignDirectory.parts(file)
        guard let name = parts.last, !parts.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) else { return nil }
        return folder(parts.dropLast()).place(name)
    }
    private func folder(_ name: String) -> Folder { folder(ForeignDirectory.parts(name)[...]) }
    private func folder(_ parts: ArraySlice<String>) -> Folder {
        guard let name = parts.last else { return top }
        let path = parts.joined(separator: "/")
        if let known = folders[path] { return known }
        let made = folder(parts.dropLast()).folder(name)
        // Bounded, since each folder holds a descriptor.
        if folders.count >= 32 { folders = [:] }
        folders[path] = made
        return made
    }
    private static func parts(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension DirectoryEntry {
    /// Returns the status; nil if there is no file.
    fileprivate func look() throws -> System.Status? {
        do throws(Errno) { return try status() } catch {
            if error.code == ENOENT { return nil }
            throw FolderFiles.error(error, "Looking at", folder)
        }
    }
}
