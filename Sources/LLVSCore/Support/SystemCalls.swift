import CLLVSShims

/// The system calls of the engine, one function each: interrupted calls are retried, short reads are continued, and errors are thrown as
/// `Errno`.
package enum System {
    // MARK: Descriptors
    //
    // Every descriptor of the library is created by one of the next four functions. It is closed when the process executes another
    // program, and it is 3 or higher: 0 to 2 are the host's standard input, output and error even while they are closed, as in a daemon.
    // Otherwise the host's output would go into a file of a store. Changing a number after the file was opened is too late for other
    // threads. So before anything is opened for writing, closed ones of the three are opened on /dev/null for reading, and stay open.

    /// Opens the closed ones of the three standard descriptors, before libcurl opens anything for writing.
    package static func fillStandard() { llvs_shim_fill_standard() }

    /// Opens non-blocking, so that a pipe in place of a file does not block. For files it makes no difference.
    static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) -> Int32 {
        let fd = llvs_shim_open(path, flags | O_NONBLOCK | O_NOCTTY, mode)
        if fd < 0 { throw Errno(-fd) }
        return try beyondStandard(fd)
    }

    /// Opens a name in an open directory. Does not follow a symbolic link: `ELOOP`.
    package static func open(_ name: String, in directory: Int32, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) -> Int32 {
        let fd = llvs_shim_openat(directory, name, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, mode)
        if fd >= 0 { return try beyondStandard(fd) }
        // If a link is in place of a directory, Linux only reports that it is not a directory.
        if -fd == ENOTDIR, (try? status(name, in: directory))?.isLink == true { throw Errno(ELOOP) }
        throw Errno(-fd)
    }

    #if os(Linux)
    /// Flags for a directory that is held for access to its entries: permission to search it is enough.
    static let heldDirectory: Int32 = llvs_shim_held_directory()
    #else
    static let heldDirectory: Int32 = O_RDONLY | O_DIRECTORY
    #endif

    /// Takes over the descriptor of a directory that was opened for reading; for `closedir`.
    static func stream(_ fd: Int32) throws(Errno) -> DirectoryStream {
        guard let stream = fdopendir(fd) else {
            let error = Errno.current
            close(fd)
            throw error
        }
        return stream
    }

    /// Returns the two ends of a pipe. Both are non-blocking.
    package static func pipe() throws(Errno) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        fillStandard()
        try retrying { cPipe(&ends) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
        }
        let reading: Int32
        do { reading = try beyondStandard(ends[0]) } catch { close(ends[1]); throw error }
        do { return (reading, try beyondStandard(ends[1])) } catch { close(reading); throw error }
    }

    #if os(Linux)
    /// Returns a descriptor that reports changes in directories.
    static func inotify() throws(Errno) -> Int32 {
        let fd = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        if fd < 0 { throw Errno.current }
        return try beyondStandard(fd)
    }
    #endif

    /// Returns the same open file with a number of 3 or more. Closes `fd` if it is less.
    package static func beyondStandard(_ fd: Int32) throws(Errno) -> Int32 {
        guard fd <= 2 else { return fd }
        let other = fcntl(fd, F_DUPFD_CLOEXEC, 3)
        let error = Errno.current
        close(fd)
        if other < 0 { throw error }
        return other
    }

    /// Not retried: on Linux the descriptor is closed whatever close returns.
    package static func close(_ fd: Int32) { _ = cClose(fd) }

    /// Closes a file that was written: a network file system may report only now that it is full.
    package static func closeWritten(_ fd: Int32) throws(Errno) {
        guard cClose(fd) != 0 else { return }
        let error = Errno.current
        if error.code != EINTR { throw error }
    }

    /// Fills the buffer from `offset` on. Returns less than its size only at the end of the file.
    package static func pread(_ fd: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let (position, overflow) = offset.addingReportingOverflow(UInt64(done))
            guard !overflow, let place = off_t(exactly: position) else { throw Errno(EOVERFLOW) }
            // At most 1 GiB a call: Linux transfers no more than 2 GiB at once, Darwin refuses to.
            let n = cPread(fd, base + done, min(buffer.count - done, 1 << 30), place)
            if n == 0 { break }
            if n < 0 {
                let error = Errno.current
                if error.code == EINTR { continue }
                throw error
            }
            done += n
        }
        return done
    }

    /// The limit on file sizes need not be checked again below this size once a write was allowed anywhere.
    static let smallFile: UInt64 = 1024

    /// Writes some of the bytes at `offset`. Returns how many, at least one.
    /// - Parameter isAllowed: whether `checkLimit` need not be called.
    package static func pwrite(_ fd: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, isAllowed: Bool = false) throws(Errno)
        -> Int
    {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return 0 }
        guard let place = off_t(exactly: offset) else { throw Errno(EFBIG) }
        if !isAllowed { try checkLimit(max(offset, smallFile - 1)) }
        while true {
            let n = cPwrite(fd, base, min(bytes.count, 1 << 30), place)
            if n > 0 { return n }
            if n == 0 { throw Errno(EIO) }
            let error = Errno.current
            if error.code != EINTR { throw error }
        }
    }

    /// Throws `EFBIG` if writing at `offset` would send SIGXFSZ to the host. A write that begins below the limit ends at it, without a
    /// signal.
    static func checkLimit(_ offset: UInt64) throws(Errno) {
        if llvs_shim_may_write(offset) == 0 { throw Errno(EFBIG) }
    }

    package static func setPermissions(_ fd: Int32, _ mode: UInt32) throws(Errno) {
        try retrying { fchmod(fd, mode_t(truncatingIfNeeded: mode)) }
    }

    /// Sets the permissions of an entry of an open directory.
    static func setPermissions(_ name: String, in directory: Int32, _ mode: UInt32) throws(Errno) {
        try retrying { fchmodat(directory, name, mode_t(truncatingIfNeeded: mode), 0) }
    }

    /// Makes the file's bytes and size durable.
    static func fdatasync(_ fd: Int32) throws(Errno) {
        try retrying {
            #if canImport(Darwin)
            // fsync on Darwin leaves the bytes in the drive's cache.
            fcntl(fd, F_FULLFSYNC) == 0 ? 0 : fsync(fd)
            #else
            cFdatasync(fd)
            #endif
        }
    }

    /// Returns where bytes are stored at or after `offset`: what is before is a hole, and reads as zeros. Returns nil if only a hole
    /// follows, and `offset` if the file system does not report holes.
    package static func nextData(_ fd: Int32, from offset: UInt64) -> UInt64? {
        guard let place = Int64(exactly: offset) else { return offset }
        let found = llvs_shim_next_data(fd, place)
        return found < 0 ? nil : max(offset, UInt64(found))
    }

    /// Returns whether a part of the first `size` bytes is a hole: the file claims more than it stores.
    static func hasHole(_ fd: Int32, before size: UInt64) -> Bool {
        let found = llvs_shim_next_hole(fd, 0)
        return found >= 0 && UInt64(found) < size
    }

    /// Sets the size of a file. Added bytes read as zeros.
    package static func truncate(_ fd: Int32, to size: UInt64) throws(Errno) {
        guard let place = off_t(exactly: size) else { throw Errno(EFBIG) }
        if size > 0 { try checkLimit(size &- 1) }
        try retrying { ftruncate(fd, place) }
    }

    package static func fsync(_ fd: Int32) throws(Errno) { try retrying { cFsync(fd) } }

    /// Makes the file system of `fd` durable. Returns false if the platform has no such call.
    static func syncfs(_ fd: Int32) throws(Errno) -> Bool {
        let error = llvs_shim_syncfs(fd)
        if error == ENOSYS { return false }
        if error != 0 { throw Errno(error) }
        return true
    }

    /// Returns an absolute path: the path of an open store or folder must mean the same after a `chdir`. Returns the path unchanged if it
    /// is empty or absolute, or if there is no working directory any more.
    package static func absolute(_ path: String) -> String {
        guard let first = path.utf8.first, first != UInt8(ascii: "/"), let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        let parent = String(cString: directory)
        // A name with repaired UTF-8 would name another file.
        guard parent.utf8.first == UInt8(ascii: "/"), strlen(directory) == parent.utf8.count else { return path }
        return parent.utf8.count == 1 ? parent + path : parent + "/" + path
    }

    /// Returns the path without links and dots; nil if it does not exist.
    package static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    static func mkdir(_ name: String, in directory: Int32, mode: UInt32 = 0o777) throws(Errno) {
        try retrying { mkdirat(directory, name, mode_t(truncatingIfNeeded: mode)) }
    }
    static func rename(_ from: String, in source: Int32, _ to: String, in target: Int32) throws(Errno) {
        try retrying { renameat(source, from, target, to) }
    }
    static func unlink(_ name: String, in directory: Int32) throws(Errno) { try retrying { unlinkat(directory, name, 0) } }
    static func rmdir(_ name: String, in directory: Int32) throws(Errno) { try retrying { unlinkat(directory, name, AT_REMOVEDIR) } }

    package static func mkdir(_ path: String, mode: UInt32 = 0o777) throws(Errno) {
        try retrying { cMkdir(path, mode_t(truncatingIfNeeded: mode)) }
    }
    static func rename(_ from: String, _ to: String) throws(Errno) { try retrying { cRename(from, to) } }
    static func unlink(_ path: String) throws(Errno) { try retrying { cUnlink(path) } }

    /// Sets when a file was modified to a random moment of this second, so that its `stamp` differs from all before. The file system may
    /// count time in steps, in which several changes can fall.
    static func touch(_ fd: Int32) throws(Errno) {
        let now = time(nil), part = Int(try RandomName.random().low % 1_000_000_000)
        let times = [timespec(tv_sec: now, tv_nsec: part), timespec(tv_sec: now, tv_nsec: part)]
        try retrying { futimens(fd, times) }
    }
    package static func unlock(_ fd: Int32) throws(Errno) { try retrying { flock(fd, LOCK_UN) } }
    /// Takes the whole-file lock. Throws EWOULDBLOCK if another process holds it.
    package static func lockExclusively(_ fd: Int32) throws(Errno) { try retrying { flock(fd, LOCK_EX | LOCK_NB) } }
    /// Takes the whole-file lock beside others that do the same. Throws EWOULDBLOCK if another process holds it exclusively.
    static func lockShared(_ fd: Int32) throws(Errno) { try retrying { flock(fd, LOCK_SH | LOCK_NB) } }

    /// The fields of `stat` that the engine needs.
    package struct Status: Equatable {
        package var size: UInt64
        package var inode: UInt64
        /// The file system of the file.
        var device: UInt64
        /// When bytes, name or attributes last changed. Unlike the modification time, it cannot be set back.
        package var changed: Int64
        /// When the bytes last changed, in nanoseconds since 1970.
        package var modified: Int64
        package var isDirectory: Bool
        package var isRegularFile: Bool
        package var isSocket: Bool
        package var isLink: Bool
        package var owner: UInt32
        /// For a directory: whether an entry may be removed or replaced only by its owner.
        var isSticky: Bool
        /// The number of names (hard links).
        var names: UInt64
        /// The permissions, as for `chmod`.
        package var permissions: UInt32
        /// A number, not 0, that differs once the file was replaced or changed.
        package var stamp: UInt64 {
            let times = UInt64(bitPattern: changed) &+ UInt64(bitPattern: modified) &* 0xD6E8_FEB8_6659_FD93
            return (inode &* 0x9E37_79B9_7F4A_7C15 ^ times ^ size << 32) | 1
        }
    }

    /// Returns the status of an entry in an open directory; for a symbolic link, of the link itself.
    static func status(_ name: String, in directory: Int32) throws(Errno) -> Status {
        var s = stat()
        try retrying { name.withCString { fstatat(directory, $0, &s, AT_SYMLINK_NOFOLLOW) } }
        return Status(s)
    }

    /// Returns the status of what the path leads to; for a symbolic link at its end, of the link itself.
    package static func statusOfLink(_ path: String) throws(Errno) -> Status { try status(path, in: AT_FDCWD) }

    package static func status(_ path: String) throws(Errno) -> Status {
        var s = stat()
        // `withCString` avoids the copy that passing the string would make.
        try retrying { path.withCString { stat($0, &s) } }
        return Status(s)
    }

    package static func status(_ fd: Int32) throws(Errno) -> Status {
        var s = stat()
        try retrying { fstat(fd, &s) }
        return Status(s)
    }

    /// Returns the bytes that a file uses on the disk, whatever its length; 0 if it does not exist.
    static func allocated(_ path: String) -> UInt64 {
        var s = stat()
        guard path.withCString({ stat($0, &s) }) == 0 else { return 0 }
        return UInt64(clamping: s.st_blocks) &* 512
    }

    /// Returns the device and the inode that a path leads to, and its size.
    static func identity(_ path: String) throws(Errno) -> (device: UInt64, inode: UInt64, size: UInt64) {
        var found: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let result = withUnsafeMutableBytes(of: &found) { found in
            path.withCString { path in found.baseAddress.map { llvs_shim_identity(path, $0.assumingMemoryBound(to: UInt64.self)) } }
        }
        guard result == 0 else { throw Errno(result ?? EINVAL) }
        return (found.0, found.1, found.2)
    }

    /// Returns how much the file system of a path can still store for this user; nil if that is not known.
    static func room(_ path: String) -> StorageRoom? {
        var s = statvfs()
        guard path.withCString({ statvfs($0, &s) }) == 0, s.f_blocks > 0 else { return nil }
        let unit = UInt64(s.f_frsize)
        let (free, tooMuch) = UInt64(s.f_bavail).multipliedReportingOverflow(by: unit)
        let (size, tooLarge) = UInt64(s.f_blocks).multipliedReportingOverflow(by: unit)
        return tooMuch || tooLarge ? nil : StorageRoom(free: free, size: size)
    }

    /// Returns the names in a directory, without "." and "..", in no order.
    static func names(in path: String) throws(Errno) -> [String] { try names(stream(open(path, O_RDONLY | O_DIRECTORY))) }

    /// Returns the names in an opened directory, which is closed.
    static func names(_ directory: DirectoryStream) throws(Errno) -> [String] {
        defer { closedir(directory) }
        var names: [String] = []
        while try next(directory, { names.append(String(decoding: $0, as: UTF8.self)) }) {}
        return names
    }

    /// Calls with the bytes of each name in a directory, without "." and "..", in no order. Then the directory is closed.
    /// - Throws: `Errno`, and the errors of `body`.
    package static func forEachName(_ directory: DirectoryStream, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        defer { closedir(directory) }
        var failure: (any Error)?
        while try next(directory, { do { try body($0) } catch { failure = error } }) { if let failure { throw failure } }
    }

    /// Calls with the next name. Returns whether there was one.
    private static func next(_ directory: DirectoryStream, _ body: (UnsafeRawBufferPointer) -> Void) throws(Errno) -> Bool {
        errno = 0
        guard let entry = readdir(directory) else {
            let error = Errno.current
            if error.code != 0 { throw error }
            return false
        }
        withUnsafeBytes(of: &entry.pointee.d_name) { field in
            let name = UnsafeRawBufferPointer(rebasing: field[..<(field.firstIndex(of: 0) ?? field.count)])
            if !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8) { body(name) }
        }
        return true
    }

    /// Returns random bytes from the system.
    package static func random(_ count: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(0, count))
        let error = bytes.withUnsafeMutableBytes { llvs_shim_random($0.baseAddress, $0.count) }
        if error != 0 { throw Errno(error) }
        return bytes
    }

    /// Nanoseconds since 1970-01-01 UTC by the system's clock.
    package static var now: Int64 {
        var t = timespec()
        clock_gettime(CLOCK_REALTIME, &t)
        return Int64(t.tv_sec) &* 1_000_000_000 &+ Int64(t.tv_nsec)
    }

    @inline(__always)
    private static func retrying(_ call: () -> Int32) throws(Errno) {
        while call() != 0 {
            let error = Errno.current
            if error.code != EINTR { throw error }
        }
    }
}

extension System.Status {
    fileprivate init(_ s: stat) {
        size = s.st_size > 0 ? UInt64(s.st_size) : 0
        inode = UInt64(truncatingIfNeeded: s.st_ino)
        device = UInt64(truncatingIfNeeded: s.st_dev)
        #if canImport(Darwin)
        changed = Int64(s.st_ctimespec.tv_sec) &* 1_000_000_000 &+ Int64(s.st_ctimespec.tv_nsec)
        modified = Int64(s.st_mtimespec.tv_sec) &* 1_000_000_000 &+ Int64(s.st_mtimespec.tv_nsec)
        #else
        changed = Int64(s.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(s.st_ctim.tv_nsec)
        modified = Int64(s.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(s.st_mtim.tv_nsec)
        #endif
        isDirectory = s.st_mode & S_IFMT == S_IFDIR
        isRegularFile = s.st_mode & S_IFMT == S_IFREG
        isSocket = s.st_mode & S_IFMT == S_IFSOCK
        isLink = s.st_mode & S_IFMT == S_IFLNK
        owner = s.st_uid
        isSticky = s.st_mode & S_ISVTX != 0
        names = UInt64(s.st_nlink)
        permissions = UInt32(s.st_mode & 0o777)
    }
}

#if canImport(Darwin)
typealias DirectoryStream = UnsafeMutablePointer<DIR>
#else
package typealias DirectoryStream = OpaquePointer
#endif

// Inside `System`, the functions above hide the system calls of the same names.
private func cClose(_ fd: Int32) -> Int32 { close(fd) }
private func cPipe(_ ends: UnsafeMutablePointer<Int32>) -> Int32 { pipe(ends) }
private func cPread(_ fd: Int32, _ p: UnsafeMutableRawPointer, _ n: Int, _ at: off_t) -> Int { pread(fd, p, n, at) }
private func cPwrite(_ fd: Int32, _ p: UnsafeRawPointer, _ n: Int, _ at: off_t) -> Int { pwrite(fd, p, n, at) }
private func cFsync(_ fd: Int32) -> Int32 { fsync(fd) }
private func cMkdir(_ path: String, _ mode: mode_t) -> Int32 { mkdir(path, mode) }
private func cRename(_ from: String, _ to: String) -> Int32 { rename(from, to) }
private func cUnlink(_ path: String) -> Int32 { unlink(path) }
#if canImport(Glibc) || canImport(Musl)
private func cFdatasync(_ fd: Int32) -> Int32 { fdatasync(fd) }
#endif

extension [UInt8] {
    /// The same as the standard library's, with typed throws.
    package func borrowed<R>(_ body: (UnsafeRawBufferPointer) throws(Errno) -> R) throws(Errno) -> R {
        let result: Result<R, Errno> = withUnsafeBytes { bytes in
            do throws(Errno) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    package mutating func filled<R>(_ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> R) throws(Errno) -> R {
        let result: Result<R, Errno> = withUnsafeMutableBytes { bytes in
            do throws(Errno) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
