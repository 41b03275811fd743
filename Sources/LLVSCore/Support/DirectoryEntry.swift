/// A file or folder, by its name in a directory that is held open. Does not follow symbolic links.
package struct DirectoryEntry: Sendable, Hashable, CustomStringConvertible {
    package let folder: Folder
    package let name: String
    package var path: String { folder.path + "/" + name }
    package var description: String { path }

    init(folder: Folder, name: String) { self.folder = folder; self.name = name }
    /// An entry in a directory that the caller named.
    package init(_ path: String) {
        let bytes = Array(Paths.withoutTrailingSlashes(path).utf8)
        let name = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[($0 + 1)...] } ?? bytes[...]
        folder = Folder(Paths.parent(of: path))
        self.name = name.isEmpty ? "." : String(decoding: name, as: UTF8.self)
    }

    package static func == (a: DirectoryEntry, b: DirectoryEntry) -> Bool { a.folder === b.folder && a.name == b.name }
    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(folder))
        hasher.combine(name)
    }

    /// Runs a call with the directory's descriptor. If the entry is missing because the directory was removed and created again, it tries
    /// once more.
    @inline(__always)
    package func found<R>(_ body: (Int32) throws(Errno) -> R) throws(Errno) -> R {
        do throws(Errno) { return try once(body) } catch {
            guard error.code == ENOENT, folder.renew() else { throw error }
            return try once(body)
        }
    }
    @inline(__always)
    private func once<R>(_ body: (Int32) throws(Errno) -> R) throws(Errno) -> R {
        let held = try folder.held()
        defer { withExtendedLifetime(held) {} }
        return try body(held.descriptor)
    }

    package func status() throws(Errno) -> System.Status { try found { (at) throws(Errno) in try System.status(name, in: at) } }
    func mkdir(mode: UInt32 = 0o777) throws(Errno) { try found { (at) throws(Errno) in try System.mkdir(name, in: at, mode: mode) } }
    /// Gives the owner the permissions that it needs on a new directory, in case the umask removed them.
    func letOwnerIn() throws(Errno) {
        let permissions = try status().permissions
        guard permissions & 0o700 != 0o700 else { return }
        try found { (at) throws(Errno) in try System.setPermissions(name, in: at, permissions | 0o700) }
    }
    /// Gives the entry another `stamp`, if it is a file that can be opened.
    func touch() {
        guard let file = try? OpenFile(self, O_RDONLY) else { return }
        do throws(Errno) { try System.touch(file.descriptor) } catch { Log.write(.info, "Touching \(path) failed: \(error)") }
    }
    package func unlink() throws(Errno) { try found { (at) throws(Errno) in try System.unlink(name, in: at) } }
    package func rmdir() throws(Errno) { try found { (at) throws(Errno) in try System.rmdir(name, in: at) } }
    /// Replaces the entry of the other name.
    package func rename(to other: DirectoryEntry) throws(Errno) {
        try found { (from) throws(Errno) in try other.once { (to) throws(Errno) in try System.rename(name, in: from, other.name, in: to) } }
    }
}
