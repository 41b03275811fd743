/// The files of a store directory of the other implementation, wherever they are: in a directory, or in a zip.
///
/// Names are relative to the store directory, with `/` between folders. Used by one thread at a time.
protocol ForeignFiles: AnyObject {
    /// For messages: where the store is.
    var path: String { get }
    /// All of a file; nil when there is none.
    func read(_ file: String) throws -> [UInt8]?
    /// Whether there is such a folder.
    func hasFolder(_ name: String) throws -> Bool
    /// The files in a folder and in its folders, without those that file systems and syncing programs leave: "AB/CDEF.json", "notes.txt".
    func names(in folder: String) throws -> [String]
    /// Where SQLite can open the database of that name, and whether nothing else is at work on it; nil when there is none.
    func database(_ file: String) throws -> (path: String, isAtRest: Bool)?
}

/// Those in a directory.
final class ForeignDirectory: ForeignFiles {
    let path: String

    /// - Throws: `.notFound`, `.notADirectory`, `.invalidArgument`.
    init(path: String) throws {
        self.path = path
        guard !path.utf8.contains(0), !path.isEmpty else {
            throw StoreError(.invalidArgument, "The path of a store to import is empty or holds a NUL. Give the path of a directory.", path: path)
        }
        guard try FolderFiles.isDirectory(path) else { throw StoreError(.notFound, "There is no store to import at \(path). Check the path.", path: path) }
    }

    func read(_ file: String) throws -> [UInt8]? {
        guard !file.utf8.contains(0) else { return nil } // no file system holds it
        return try FolderFiles.read("\(path)/\(file)")
    }
    func hasFolder(_ name: String) throws -> Bool { try FolderFiles.isDirectory("\(path)/\(name)") }

    func names(in folder: String) throws -> [String] {
        var names: [String] = []
        for first in try FolderFiles.names(in: "\(path)/\(folder)") where !ForeignNames.isExpected(first) {
            guard (try? hasFolder("\(folder)/\(first)")) ?? false else {
                names.append(first)
                continue
            }
            for rest in try FolderFiles.names(in: "\(path)/\(folder)/\(first)") where rest == ".json" || !ForeignNames.isExpected(rest) {
                names.append("\(first)/\(rest)")
            }
        }
        return names
    }

    func database(_ file: String) throws -> (path: String, isAtRest: Bool)? {
        let file = System.absolute("\(path)/\(file)")
        guard FolderFiles.signature(file) != nil else { return nil }
        return (file, FolderFiles.signature(file + "-wal")?.size ?? 0 == 0)
    }
}
