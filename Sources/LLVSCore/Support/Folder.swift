/// A directory that is held open, through which everything in it is accessed: if the directory or one above it is replaced by a link,
/// accesses still go to this directory.
///
/// The directory that the caller named may be a link itself; one within it may not. It is opened on first use. Safe from all threads.
package final class Folder: Sendable {
    /// For messages, and to find the directory again after it was removed and created again.
    package let path: String
    /// The name within the directory above; nil for the one that the caller named.
    private let inner: (above: Folder, name: String)?
    private let opened = Guarded<Opened?>(nil)
    private struct Opened { let file: OpenFile; let identity: FileIdentity }

    /// A directory that the caller named.
    package init(_ path: String) { self.path = path; inner = nil; isPinned = false }
    /// Whether it refers to one open directory forever, whatever has its name.
    private let isPinned: Bool
    private init(pinning opened: Opened, of folder: Folder) {
        path = folder.path; inner = folder.inner; isPinned = true
        self.opened.withLock { $0 = opened }
    }
    private init(_ name: String, in above: Folder) { path = above.path + "/" + name; inner = (above, name); isPinned = false }

    /// Returns a folder within this one.
    package func folder(_ name: String) -> Folder { Folder(name, in: self) }
    /// Returns a file or folder within this one.
    package func place(_ name: String) -> DirectoryEntry { DirectoryEntry(folder: self, name: name) }

    /// Returns the open directory. It is for access to its entries, and must not be read or synced itself.
    /// - Throws: `ELOOP` if a link is in its place, `ENOTDIR` if anything else is.
    package func held() throws(Errno) -> OpenFile {
        if let opened = opened.withLock({ $0 }) {
            if opened.file.isOurs { return opened.file }
            // The host closed it. Its descriptor may be of a directory of the host, in which files would be created.
            if isPinned { throw Errno.lost }
            self.opened.withLock { if $0?.file === opened.file { $0 = nil } }
        }
        let file: OpenFile
        if let inner {
            file = try OpenFile(inner.above.place(inner.name), System.heldDirectory)
        } else {
            file = try OpenFile(path, System.heldDirectory)
        }
        let identity = FileIdentity(try System.status(file.descriptor))
        return opened.withLock { known in
            // Another thread may have been faster. Both have the same directory, or it was replaced just now.
            if let known { return known.file }
            known = Opened(file: file, identity: identity)
            return file
        }
    }

    /// Returns a folder that refers to the current directory even if another one takes its name.
    func pinned() throws(Errno) -> Folder {
        while true {
            _ = try held()
            if let opened = opened.withLock({ $0 }) { return Folder(pinning: opened, of: self) }
        }
    }

    /// Whether the path leads to another directory now, or to none. Takes one system call. `renew` opens that directory.
    var isElsewhere: Bool { opened.withLock { $0 }?.identity.isGone(from: path) ?? false }

    /// The current time in nanoseconds since 1970, for the ages of entries: this machine's clock, or the directory's last change if that
    /// is earlier. If a server's clock is behind, a new file would otherwise seem as old as the difference.
    package var now: Int64 {
        guard let held = try? held(), let status = try? System.status(held.descriptor) else { return System.now }
        return min(System.now, status.modified)
    }

    /// Opens the directory again, to be read or synced.
    package func readable() throws(Errno) -> OpenFile { try OpenFile(place("."), O_RDONLY | O_DIRECTORY) }

    /// Releases the directory if its path leads to another one now, or to none: the next use opens that one. Returns whether it did.
    @discardableResult
    package func renew() -> Bool {
        if isPinned { return false }
        let above = inner?.above.renew() ?? false
        guard let known = opened.withLock({ $0 }) else { return above }
        let found: FileIdentity?
        do throws(Errno) {
            if let inner {
                found = FileIdentity(try inner.above.place(inner.name).status())
            } else {
                found = FileIdentity(try System.status(path))
            }
        } catch {
            // Any other error of the check proves nothing.
            guard [ENOENT, ENOTDIR, ELOOP].contains(error.code) else { return above }
            found = nil
        }
        if found == known.identity { return above }
        letGo()
        return true
    }

    func letGo() { opened.withLock { $0 = nil } }

    /// Creates the directory if it is missing. The one above must exist.
    /// - Throws: `ELOOP` if a link is in its place, `ENOTDIR` if anything else is.
    package func make(mode: UInt32) throws(Errno) {
        guard let inner else { return }
        renew()
        let place = inner.above.place(inner.name)
        do throws(Errno) {
            try place.mkdir(mode: mode)
            try place.letOwnerIn()
        } catch { if error.code != EEXIST { throw error } }
        _ = try held()
    }

    /// Removes everything in the directory, and the directory itself unless the caller named it. Ignores what cannot be removed. Does not
    /// follow links: entries are accessed through the folder's descriptor, and a link in place of a folder is removed itself.
    package func remove() {
        var open = [(folder: self, isRead: false)]
        while let (folder, isRead) = open.popLast() {
            if isRead {
                if let inner = folder.inner { try? inner.above.place(inner.name).rmdir() }
                continue
            }
            // The folder is visited again after its entries were removed.
            open.append((folder, true))
            for name in (try? System.names(folder.stream())) ?? [] {
                let place = folder.place(name)
                if (try? place.status())?.isDirectory == true { open.append((folder.folder(name), false)) } else { try? place.unlink() }
            }
        }
    }

    /// Opens it to read its names; for `closedir`.
    package func stream() throws(Errno) -> DirectoryStream {
        try System.stream(place(".").found { (at) throws(Errno) in try System.open(".", in: at, O_RDONLY | O_DIRECTORY) })
    }

    /// Returns the names in it, without "." and "..", in no order.
    func names() throws(Errno) -> [String] {
        renew()
        return try System.names(stream())
    }

    /// Returns the matching names in the directory, unordered. Use it if other programs may have put any number of entries there.
    /// - Parameter control: checked from time to time, as are the controls of this thread's waits (`Waiting`).
    /// - Throws: `Errno`, and the errors of the controls.
    func names(_ control: PacedControl, where isWanted: (UnsafeRawBufferPointer) -> Bool) throws -> [String] {
        var names: [String] = []
        try forEachName(control) { if isWanted($0) { names.append(String(decoding: $0, as: UTF8.self)) } }
        return names
    }
    private static let namesPerLook = 4_096

    /// Calls with the bytes of each name in it, in no order, without collecting them.
    /// - Parameter control: as for `names`.
    /// - Throws: `Errno`, and the errors of the controls and of `body`.
    func forEachName(_ control: PacedControl, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        renew()
        var passed = 0
        try System.forEachName(stream()) { name in
            try control.step(0)
            passed += 1
            if passed % Folder.namesPerLook == 0 {
                try Waiting.look()
                try Memory.check()
            }
            try body(name)
        }
    }
}
