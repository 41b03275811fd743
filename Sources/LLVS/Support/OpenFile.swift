/// A descriptor that is closed when nobody uses it any more: a reader on one thread keeps it open
/// while another thread lets go of it.
final class OpenFile: Sendable {
    let descriptor: Int32
    /// - Parameter mode: the permissions of a file that is made, of which the process's mask takes some.
    init(_ path: String, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) { descriptor = try System.open(path, flags, mode: mode) }
    /// A link in its place is not followed: `ELOOP`.
    init(_ place: DirectoryEntry, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) {
        descriptor = try place.found { (at) throws(Errno) in try System.open(place.name, in: at, flags, mode: mode) }
    }
    deinit { System.close(descriptor) }
}

/// The system calls through which a file storage writes, and looks what is there first: tests put others here.
struct FileSystem: Sendable {
    /// The permissions of files that are made, of which the process's mask takes some: of nobody else, if nothing else is asked for.
    var mode: UInt32 = 0o600
    /// Those of directories: who may read or write the files may look for them.
    var directoryMode: UInt32 { mode | (mode & 0o444) >> 2 }

    var pwrite: @Sendable (Int32, UnsafeRawBufferPointer, UInt64) throws(Errno) -> Int = { (fd, bytes, offset) throws(Errno) in
        try System.pwrite(fd, bytes, at: offset)
    }
    /// The same below `System.smallFile`, behind a `pwrite` to any file by the same call: the limit on sizes was looked at for both.
    var pwriteAllowed: @Sendable (Int32, UnsafeRawBufferPointer, UInt64) throws(Errno) -> Int = { (fd, bytes, offset) throws(Errno) in
        try System.pwrite(fd, bytes, at: offset, isAllowed: true)
    }
    var fdatasync: @Sendable (Int32) throws(Errno) -> Void = { (fd) throws(Errno) in try System.fdatasync(fd) }
    var truncate: @Sendable (Int32, UInt64) throws(Errno) -> Void = { (fd, size) throws(Errno) in try System.truncate(fd, to: size) }
    var fsync: @Sendable (Int32) throws(Errno) -> Void = { (fd) throws(Errno) in try System.fsync(fd) }
    var rename: @Sendable (DirectoryEntry, DirectoryEntry) throws(Errno) -> Void = { (from, to) throws(Errno) in try from.rename(to: to) }
    var unlink: @Sendable (DirectoryEntry) throws(Errno) -> Void = { (place) throws(Errno) in try place.unlink() }
    var names: @Sendable (Folder) throws(Errno) -> [String] = { (folder) throws(Errno) in try folder.names() }
    /// Nanoseconds since 1970, by which it is judged how old the times of files and directories are.
    var now: @Sendable () -> Int64 = { System.now }

    /// Writes all of the bytes.
    @inline(__always)
    func write(_ fd: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            done += try pwrite(fd, UnsafeRawBufferPointer(rebasing: bytes[done...]), offset &+ UInt64(done))
        }
    }
}
