#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import CLLVSShims

/// Makes files of an exchange folder durable: a batch at once, where the system can.
///
/// A sync costs a flush of the disk for each file, even a small one; one for the whole file system costs
/// little more than one of those. Made before the files are written, so that it hears of their failures.
final class FolderSync {
    /// As many are synced one by one: other programs' writes are nothing to wait for then.
    static let few = 4
    private let path: String
    /// Of the folder; -1 where all files are synced one by one.
    private let descriptor: Int32
    /// Syncs done, for tests.
    private(set) var count = 0

    /// - Parameter path: of the folder that the files are in.
    init(_ path: String) {
        self.path = path
        descriptor = llvs_shim_is_local(path) == 1 ? (try? System.open(path, O_RDONLY | O_DIRECTORY)) ?? -1 : -1
    }
    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Makes durable the bytes of files in the folder.
    func files(_ paths: [String], check: () throws -> Void) throws {
        if paths.count > FolderSync.few, descriptor >= 0 {
            count += 1
            if llvs_shim_syncfs(descriptor) == 0 { return }
        }
        // Also when that failed: what it tells may be about a file of somebody else.
        for path in paths {
            try check()
            try sync(path, O_RDONLY, "Syncing the file")
        }
    }

    /// Makes durable the names in a directory. Some network file systems cannot, and need not.
    func directory(_ path: String) throws { try sync(path, O_RDONLY | O_DIRECTORY, "Syncing the folder") }

    private func sync(_ path: String, _ flags: Int32, _ doing: String) throws {
        let descriptor: Int32
        do throws(Errno) { descriptor = try System.open(path, flags) } catch { throw FolderFiles.error(error.code, doing, path) }
        defer { close(descriptor) }
        count += 1
        while fsync(descriptor) != 0 {
            if errno == EINTR { continue }
            if flags & O_DIRECTORY != 0, errno == EINVAL || errno == ENOTSUP { return }
            throw FolderFiles.error(errno, doing, path)
        }
    }
}
