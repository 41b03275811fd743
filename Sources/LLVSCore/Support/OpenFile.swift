/// A descriptor that is closed when it is no longer used: a reader on one thread keeps it open while another thread releases it.
///
/// A host that closes descriptors that it did not open closes this one as well, and the system reuses the number for the next file that
/// the host opens. So before bytes are written, synced or locked, the file behind the number is compared with the one that was opened.
package final class OpenFile: Sendable {
    package let descriptor: Int32
    /// The file that was opened; nil if the system does not report it.
    let identity: FileIdentity?
    /// - Parameter mode: the permissions of a new file, restricted by the process's umask.
    init(_ path: String, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) {
        descriptor = try System.open(path, flags, mode: mode)
        identity = (try? System.status(descriptor)).map(FileIdentity.init)
    }
    /// Does not follow a link in its place: `ELOOP`.
    package init(_ place: DirectoryEntry, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) {
        descriptor = try place.found { (at) throws(Errno) in try System.open(place.name, in: at, flags, mode: mode) }
        identity = (try? System.status(descriptor)).map(FileIdentity.init)
    }
    /// Closes the descriptor, unless the host has closed it and uses its number for another file.
    deinit { if isOurs { System.close(descriptor) } }

    /// Whether the descriptor is still of the file that was opened. Takes one system call. False once the host has closed it.
    var isOurs: Bool { identity.map { $0.isOpen(descriptor) } ?? true }

    /// Throws `Errno.lost` if the host has closed the descriptor.
    func checkIsOurs() throws(Errno) { if !isOurs { throw Errno.lost } }
}

/// The system calls with which a file storage writes and checks its files. Tests replace them.
package struct FileSystem: Sendable {
    /// The permissions of new files, restricted by the process's umask. By default only the owner has access.
    package var mode: UInt32 = 0o600
    /// The permissions of new directories. A user who may read or write the files may also search the directories.
    var directoryMode: UInt32 { mode | (mode & 0o444) >> 2 }

    var pwrite: @Sendable (Int32, UnsafeRawBufferPointer, UInt64) throws(Errno) -> Int = { (fd, bytes, offset) throws(Errno) in
        try System.pwrite(fd, bytes, at: offset)
    }
    /// The same as `pwrite`, below `System.smallFile` and after a `pwrite` to any file in the same call, whose check of the limit on file
    /// sizes counts for both.
    var pwriteAllowed: @Sendable (Int32, UnsafeRawBufferPointer, UInt64) throws(Errno) -> Int = { (fd, bytes, offset) throws(Errno) in
        try System.pwrite(fd, bytes, at: offset, isAllowed: true)
    }
    var fdatasync: @Sendable (Int32) throws(Errno) -> Void = { (fd) throws(Errno) in try System.fdatasync(fd) }
    var truncate: @Sendable (Int32, UInt64) throws(Errno) -> Void = { (fd, size) throws(Errno) in try System.truncate(fd, to: size) }
    var fsync: @Sendable (Int32) throws(Errno) -> Void = { (fd) throws(Errno) in try System.fsync(fd) }
    var rename: @Sendable (DirectoryEntry, DirectoryEntry) throws(Errno) -> Void = { (from, to) throws(Errno) in try from.rename(to: to) }
    var unlink: @Sendable (DirectoryEntry) throws(Errno) -> Void = { (place) throws(Errno) in try place.unlink() }
    var names: @Sendable (Folder) throws(Errno) -> [String] = { (folder) throws(Errno) in try folder.names() }
    /// Nanoseconds since 1970, for the ages of files and directories.
    var now: @Sendable () -> Int64 = { System.now }

    package init() {}

    /// Writes all of the bytes; none if the host has closed the descriptor (`Errno.lost`).
    package func write(_ file: OpenFile, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        try file.checkIsOurs()
        try write(file.descriptor, bytes, at: offset)
    }
    /// Sets the size of the file, with the same check as `write`.
    func truncate(_ file: OpenFile, to size: UInt64) throws(Errno) {
        try file.checkIsOurs()
        try truncate(file.descriptor, size)
    }
    /// Makes the bytes of the file durable. Throws `Errno.lost` instead of syncing another file.
    func sync(_ file: OpenFile) throws(Errno) {
        try file.checkIsOurs()
        try fdatasync(file.descriptor)
    }

    /// Writes all of the bytes.
    @inline(__always)
    func write(_ fd: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            done += try pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes[done...]), offset &+ UInt64(done))
        }
    }
}
