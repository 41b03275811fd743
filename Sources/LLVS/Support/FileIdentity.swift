/// Which file or directory a path named when a store was opened: what is written through a descriptor goes there, also when
/// it was deleted or moved meanwhile, or something else has its path by now, and then nobody finds it.
struct FileIdentity: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64

    init(_ status: System.Status) { device = status.device; inode = status.inode }

    /// Nil when there is nothing, or nobody can say what.
    init?(_ path: String) {
        guard let status = try? System.status(path) else { return nil }
        self.init(status)
    }

    /// Whether the descriptor is of this file. One that is closed is not; a look that fails otherwise tells nothing.
    func isOpen(_ descriptor: Int32) -> Bool {
        do throws(Errno) { return FileIdentity(try System.status(descriptor)) == self } catch { return error.code != EBADF }
    }

    /// What a path names by now. A look that fails tells nothing.
    enum Found {
        case same(size: UInt64), gone, unknown
    }

    func look(at path: String) -> Found {
        do throws(Errno) {
            let found = try System.identity(path)
            return (found.device, found.inode) == (device, inode) ? .same(size: found.size) : .gone
        } catch { return error.code == ENOENT || error.code == ENOTDIR ? .gone : .unknown }
    }

    /// Whether the path names something else by now, or nothing.
    func isGone(from path: String) -> Bool {
        if case .gone = look(at: path) { return true }
        return false
    }
}

extension StoreError {
    /// What a store was opened from is not at its path any more.
    static func gone(_ doing: String, _ store: String, path: String) -> StoreError {
        StoreError(
            .notFound,
            "\(doing) \(store) failed: \(path) was deleted, moved or replaced while the store was open, and nobody would find what is "
                + "written. Close the store, put back what was there where it can be had, and open the store again.",
            path: path)
    }
}
