/// Identifies the file or directory that a path named when a store was opened. Bytes written through a descriptor go to that file, even
/// if it was deleted, moved or replaced meanwhile, and then no reader finds them.
package struct FileIdentity: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64

    package init(_ status: System.Status) { device = status.device; inode = status.inode }

    /// Nil if there is no file, or it cannot be examined.
    package init?(_ path: String) {
        guard let status = try? System.status(path) else { return nil }
        self.init(status)
    }

    /// Returns whether the descriptor is of this file. A closed one is not. If the check fails for another reason, it counts as open.
    func isOpen(_ descriptor: Int32) -> Bool {
        do throws(Errno) { return FileIdentity(try System.status(descriptor)) == self } catch { return error.code != EBADF }
    }

    /// The file that a path names now. `unknown` if the check failed.
    enum Found {
        case same(size: UInt64), gone, unknown
    }

    func look(at path: String) -> Found {
        do throws(Errno) {
            let found = try System.identity(path)
            return (found.device, found.inode) == (device, inode) ? .same(size: found.size) : .gone
        } catch { return error.code == ENOENT || error.code == ENOTDIR ? .gone : .unknown }
    }

    /// Returns whether the path names another file now, or none.
    package func isGone(from path: String) -> Bool {
        if case .gone = look(at: path) { return true }
        return false
    }
}

extension StoreError {
    /// The error if the file of an open store is no longer at its path.
    static func gone(_ doing: String, _ store: String, path: String) -> StoreError {
        StoreError(
            .notFound,
            "\(doing) \(store) failed: \(path) was deleted, moved or replaced while the store was open, so what is "
                + "written now would be lost. Close the store, restore the former file or directory if you can, and open the store again.",
            path: path)
    }
}
