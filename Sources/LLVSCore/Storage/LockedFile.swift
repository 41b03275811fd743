import CLLVSShims

/// A small file that is open and, unless it is only read, locked by this process and by no child that it forks. Releasing the object
/// unlocks it.
final class LockedFile: Sendable {
    let file: OpenFile
    let identity: FileIdentity
    private let isLocked: Bool
    private let process = getpid()

    private init(_ file: OpenFile, _ status: System.Status, isLocked: Bool) {
        self.file = file; self.isLocked = isLocked
        identity = FileIdentity(status)
        if isLocked { llvs_shim_close_in_child(file.descriptor) }
    }

    deinit {
        // The lock belongs to the open file, which a child shares: only this process may release it. In a child, the descriptor may be of
        // another file by now.
        guard getpid() == process else { _ = Unmanaged.passRetained(file); return }
        guard isLocked else { return }
        // If the host has taken over the descriptor, it may be of a file that the host has locked.
        if file.isOurs { try? System.unlock(file.descriptor) }
        llvs_shim_leave_to_child(file.descriptor)
    }

    /// The permissions of a file that any process which can open it may lock. Only users who may write the store can open it.
    private static func mode(_ system: FileSystem) -> UInt32 { 0o600 | (system.mode & 0o022) * 3 }

    /// Opens the file, or creates it. A file with a second name could be any file of this user: it is replaced by a new one with the same
    /// bytes. A file of a user who may not write the store is replaced by an empty one, and anything that is not a regular file is
    /// removed.
    /// - Parameter storeOwner: returns the owner of the store's directory, or database.
    /// - Parameter makeDirectory: called if the directory does not exist.
    /// - Returns: nil if there can be no such file, or another user's cannot be replaced.
    /// - Throws: `.busy` if another process has it open, `.io`.
    static func open(
        _ place: DirectoryEntry, _ system: FileSystem, isReadOnly: Bool, storeOwner: () -> UInt32?, makeDirectory: () throws -> Void
    ) throws -> LockedFile? {
        // Another process may replace the file at the same time, and be faster.
        for attempt in 0..<8 {
            guard let (file, status) = try found(place, system, isReadOnly: isReadOnly, makeDirectory: makeDirectory) else {
                if !isReadOnly, makesRoom(place, storeOwner) { continue }
                return nil
            }
            let isTrusted = isTrusted(status, place, storeOwner)
            if isReadOnly { return isTrusted ? LockedFile(file, status, isLocked: false) : nil }
            let held: LockedFile
            do { held = try locked(file, status, place) } catch {
                if isTrusted { throw error }
                // A user who planted it may lock it forever. A process that is just replacing it does not.
                if attempt < 4 { usleep(10_000) } else if try replaced(nil, place, system) == nil { return nil }
                continue
            }
            if isTrusted, status.names <= 1 {
                let excess = status.permissions & ~mode(system)
                if excess != 0, status.owner == geteuid() { try? System.setPermissions(file.descriptor, status.permissions & mode(system)) }
                return held
            }
            guard let new = try replaced(isTrusted ? held : nil, place, system) else { return nil }
            if !new.identity.isGone(from: place.path) { return new }
        }
        throw StoreError(.busy, "The note \(place) is being replaced again and again.", path: place.path)
    }

    private static func locked(_ file: OpenFile, _ status: System.Status, _ place: DirectoryEntry) throws -> LockedFile {
        do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {
            if error.code == EWOULDBLOCK || error.code == EAGAIN {
                throw StoreError(.busy, "The note \(place) is open already.", path: place.path)
            }
            // On a file system without locks, no process can be locked out.
        }
        return LockedFile(file, status, isLocked: true)
    }

    private static func found(_ place: DirectoryEntry, _ system: FileSystem, isReadOnly: Bool, makeDirectory: () throws -> Void) throws -> (
        OpenFile, System.Status
    )? {
        let flags = isReadOnly ? O_RDONLY : O_RDWR | O_CREAT
        func file() throws -> OpenFile? {
            do throws(Errno) { return try OpenFile(place, flags, mode: mode(system)) } catch {
                switch error.code {
                case ENOENT where !isReadOnly: throw error
                case ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EISDIR, ELOOP, ENXIO: return nil
                default: throw StoreError.posix(error, doing: "Opening the note", path: place.path)
                }
            }
        }
        let made: OpenFile?
        do { made = try file() } catch is Errno {
            try makeDirectory()
            do { made = try file() } catch is Errno { return nil }
        }
        guard let made, let status = try? System.status(made.descriptor), status.isRegularFile else { return nil }
        return (made, status)
    }

    /// Returns whether the file belongs to a user who may write the store. In a directory with the sticky bit, such as /tmp, any user may
    /// have put it there.
    private static func isTrusted(_ status: System.Status, _ place: DirectoryEntry, _ storeOwner: () -> UInt32?) -> Bool {
        if [UInt32(geteuid()), 0].contains(status.owner) || status.owner == storeOwner() { return true }
        guard let folder = try? place.folder.place(".").status() else { return false }
        return status.owner == folder.owner || (folder.permissions & 0o022 != 0 && !folder.isSticky)
    }

    /// Removes an unusable entry of that name. Returns whether it did.
    private static func makesRoom(_ place: DirectoryEntry, _ storeOwner: () -> UInt32?) -> Bool {
        guard let status = try? place.status(), !status.isRegularFile || !isTrusted(status, place, storeOwner) else { return false }
        do throws(Errno) {
            if status.isDirectory { try place.rmdir() } else { try place.unlink() }
            return true
        } catch {
            let kind = status.isDirectory ? "a directory" : "no regular file"
            let what = status.isRegularFile ? "of a user who may not write the store" : kind
            Log.write(.warning, "The note \(place) is \(what), and cannot be removed: \(error). \(without)")
            return false
        }
    }

    private static let without =
        "The coordinator's place is stored in a cache, and other processes may open a coordinator of its name. Remove what is there."

    /// Puts a new file in its place, with the first bytes of the other file, if any. Returns nil if none can be created.
    private static func replaced(_ other: LockedFile?, _ place: DirectoryEntry, _ system: FileSystem) throws -> LockedFile? {
        do throws(Errno) {
            var bytes = [UInt8](repeating: 0, count: 4096)
            var count = 0
            if let other { count = try bytes.filled { (b) throws(Errno) in try System.pread(other.file.descriptor, b, at: 0) } }
            let aside = place.folder.place(try RandomName.random().hex + ".tmp")
            let file = try OpenFile(aside, O_RDWR | O_CREAT | O_EXCL, mode: mode(system))
            do throws(Errno) {
                try Array(bytes[..<count]).borrowed { (b) throws(Errno) in try system.write(file, b, at: 0) }
                try System.lockExclusively(file.descriptor)
                let held = LockedFile(file, try System.status(file.descriptor), isLocked: true)
                try system.rename(aside, place)
                return held
            } catch {
                try? aside.unlink()
                throw error
            }
        } catch {
            Log.write(
                .warning,
                "The note \(place) is a file with several names, or of a user who may not write the store, and cannot be replaced: "
                    + "\(error). \(without)")
            return nil
        }
    }
}
