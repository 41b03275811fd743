/// A directory that is held open, and through which all that is in it is reached: a link that somebody puts in its place, or
/// above it, leads nothing that follows elsewhere.
///
/// The one that the caller named may be a link itself; one within it may not. It is opened when it is first used. Safe from
/// all threads.
final class Folder: Sendable {
    /// For messages, and to find again what was removed and made anew.
    let path: String
    /// The name within the one above; nil for the one that the caller named.
    private let inner: (above: Folder, name: String)?
    private let opened = Guarded<Opened?>(nil)
    private struct Opened { let file: OpenFile; let identity: FileIdentity }

    /// One that the caller named.
    init(_ path: String) { self.path = path; inner = nil; isPinned = false }
    /// Leads to the one directory for good.
    private let isPinned: Bool
    private init(pinning opened: Opened, of folder: Folder) {
        path = folder.path; inner = folder.inner; isPinned = true
        self.opened.withLock { $0 = opened }
    }
    private init(_ name: String, in above: Folder) { path = above.path + "/" + name; inner = (above, name); isPinned = false }

    /// One within this one.
    func folder(_ name: String) -> Folder { Folder(name, in: self) }
    /// A file or folder within this one.
    func place(_ name: String) -> DirectoryEntry { DirectoryEntry(folder: self, name: name) }

    /// The open directory: good for what is in it, and not to be read or synced itself.
    /// - Throws: `ELOOP` where a link is in its place, `ENOTDIR` where anything else is.
    func held() throws(Errno) -> OpenFile {
        if let opened = opened.withLock({ $0 }) {
            if opened.file.isOurs { return opened.file }
            // The host closed it. Through its number a file would be made in a directory of the host's.
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
            // Another thread may have been faster; both are the same directory, or one was replaced just now.
            if let known { return known.file }
            known = Opened(file: file, identity: identity)
            return file
        }
    }

    /// The directory that is held now, also when another takes its name.
    func pinned() throws(Errno) -> Folder {
        while true {
            _ = try held()
            if let opened = opened.withLock({ $0 }) { return Folder(pinning: opened, of: self) }
        }
    }

    /// Whether the path leads to another directory by now, or to none: one call. `renew` opens that one.
    var isElsewhere: Bool { opened.withLock { $0 }?.identity.isGone(from: path) ?? false }

    /// Nanoseconds since 1970, for the ages of what is in the directory: ours, or when a name came or went here last, if that is earlier.
    /// By the clock of a server that is behind, a file of a moment ago would otherwise be as old as that.
    var now: Int64 {
        guard let held = try? held(), let status = try? System.status(held.descriptor) else { return System.now }
        return min(System.now, status.modified)
    }

    /// The directory once more, to be read or synced.
    func readable() throws(Errno) -> OpenFile { try OpenFile(place("."), O_RDONLY | O_DIRECTORY) }

    /// Lets go of the directory when its name, or one above it, leads to another by now, or to none: the next use opens that
    /// one. Whether it did.
    @discardableResult
    func renew() -> Bool {
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
            // A look that fails otherwise tells nothing.
            guard [ENOENT, ENOTDIR, ELOOP].contains(error.code) else { return above }
            found = nil
        }
        if found == known.identity { return above }
        letGo()
        return true
    }

    func letGo() { opened.withLock { $0 = nil } }

    /// Makes it where it is not there, within one that is.
    /// - Throws: `ELOOP` where a link is in its place, `ENOTDIR` where anything else is.
    func make(mode: UInt32) throws(Errno) {
        guard let inner else { return }
        renew()
        let place = inner.above.place(inner.name)
        do throws(Errno) {
            try place.mkdir(mode: mode)
            try place.letOwnerIn()
        } catch { if error.code != EEXIST { throw error } }
        _ = try held()
    }

    /// Removes it, unless the caller named it, and all that is in it; what fails is left there. No link is followed: what is in a folder
    /// is reached by its descriptor, and a link in the place of one is removed itself.
    func remove() {
        var open = [(folder: self, isRead: false)]
        while let (folder, isRead) = open.popLast() {
            if isRead {
                if let inner = folder.inner { try? inner.above.place(inner.name).rmdir() }
                continue
            }
            // It comes again once what is in it is gone.
            open.append((folder, true))
            for name in (try? System.names(folder.stream())) ?? [] {
                let place = folder.place(name)
                if (try? place.status())?.isDirectory == true { open.append((folder.folder(name), false)) } else { try? place.unlink() }
            }
        }
    }

    /// To read its names; for `closedir`.
    func stream() throws(Errno) -> DirectoryStream {
        try System.stream(place(".").found { (at) throws(Errno) in try System.open(".", in: at, O_RDONLY | O_DIRECTORY) })
    }

    /// The names in it, without "." and "..", in no order.
    func names() throws(Errno) -> [String] {
        renew()
        return try System.names(stream())
    }

    /// The names in it that are wanted, in no order: of a directory in which others may have put any number of them.
    /// - Parameter control: looked at on the way; so is what the waits of this thread look at.
    /// - Throws: `Errno`, and what the controls throw.
    func names(_ control: PacedControl, where isWanted: (UnsafeRawBufferPointer) -> Bool) throws -> [String] {
        var names: [String] = []
        try forEachName(control) { if isWanted($0) { names.append(String(decoding: $0, as: UTF8.self)) } }
        return names
    }
    private static let namesPerLook = 4_096

    /// Calls with the bytes of each name in it, in no order, and keeps none.
    /// - Parameter control: as for `names`.
    /// - Throws: `Errno`, and what the controls and `body` throw.
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
