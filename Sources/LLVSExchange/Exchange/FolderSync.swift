import CLLVSShims

/// Makes files of an exchange folder durable, a batch at once if the system can.
///
/// A sync flushes the disk for each file, even a small one; one sync of the whole file system costs little more. Create it before the files
/// are written, so that it sees failures to write them.
final class FolderSync {
    /// Up to this many files are synced one by one, so as not to wait for the writes of other programs.
    static let few = 4
    /// The folder; nil if all files are synced one by one.
    private let whole: OpenFile?
    /// Syncs done, for tests.
    private(set) var count = 0

    /// - Parameter folder: the folder of the files.
    init(_ folder: Folder) { whole = llvs_shim_is_local(folder.path) == 1 ? try? folder.readable() : nil }

    /// Makes durable the bytes of files in the folder.
    func files(_ places: [DirectoryEntry], check: () throws -> Void) throws {
        if places.count > FolderSync.few, let whole {
            count += 1
            if llvs_shim_syncfs(whole.descriptor) == 0 { return }
        }
        // Also after a failure: it may concern a file of another program.
        for place in places {
            try check()
            try sync(place, O_RDONLY, "Syncing the file")
        }
    }

    /// Makes the names in a directory durable. Some network file systems cannot, and need not.
    func directory(_ folder: Folder) throws { try sync(folder.place("."), O_RDONLY | O_DIRECTORY, "Syncing the folder") }

    private func sync(_ place: DirectoryEntry, _ flags: Int32, _ doing: String) throws {
        do throws(Errno) {
            let file = try OpenFile(place, flags)
            count += 1
            try System.fsync(file.descriptor)
        } catch {
            if flags & O_DIRECTORY != 0, error.code == EINVAL || error.code == ENOTSUP { return }
            throw FolderFiles.error(error, doing, flags & O_DIRECTORY != 0 ? place.folder.path : place.path)
        }
    }
}
