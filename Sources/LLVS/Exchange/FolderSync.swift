import CLLVSShims

/// Makes files of an exchange folder durable: a batch at once, where the system can.
///
/// A sync costs a flush of the disk for each file, even a small one; one for the whole file system costs
/// little more than one of those. Made before the files are written, so that it hears of their failures.
final class FolderSync {
    /// As many are synced one by one: other programs' writes are nothing to wait for then.
    static let few = 4
    /// The folder; nil where all files are synced one by one.
    private let whole: OpenFile?
    /// Syncs done, for tests.
    private(set) var count = 0

    /// - Parameter folder: that the files are in.
    init(_ folder: Folder) { whole = llvs_shim_is_local(folder.path) == 1 ? try? folder.readable() : nil }

    /// Makes durable the bytes of files in the folder.
    func files(_ places: [DirectoryEntry], check: () throws -> Void) throws {
        if places.count > FolderSync.few, let whole {
            count += 1
            if llvs_shim_syncfs(whole.descriptor) == 0 { return }
        }
        // Also when that failed: what it tells may be about a file of somebody else.
        for place in places {
            try check()
            try sync(place, O_RDONLY, "Syncing the file")
        }
    }

    /// Makes durable the names in a directory. Some network file systems cannot, and need not.
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
