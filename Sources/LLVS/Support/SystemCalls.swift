import CLLVSShims

/// The system calls of the engine, one function each: interrupted calls are retried, short reads
/// are continued, and failures are thrown as `Errno`.
enum System {
    // MARK: Descriptors
    //
    // Every descriptor of the library is made by one of the next four functions. It is closed when the process
    // executes another program, and it is 3 or higher: 0 to 2 are standard input, output and error of the host even
    // while they are closed, as in a daemon. What the host then prints would go into a file of a store.
    // A number that is changed once the file is open is changed too late for other threads: so before anything is opened that can be
    // written to, closed ones of the three are opened on /dev/null, to be read, and stay so.

    /// Does that for others, before they open what can be written to: libcurl.
    static func fillStandard() { llvs_shim_fill_standard() }

    /// Non-blocking, so that a pipe in the place of a file holds nobody up; for files it makes no difference.
    static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) -> Int32 {
        let fd = llvs_shim_open(path, flags | O_NONBLOCK | O_NOCTTY, mode)
        if fd < 0 { throw Errno(-fd) }
        return try beyondStandard(fd)
    }

    /// The same in an open directory; a symbolic link is not followed: `ELOOP`.
    static func open(_ name: String, in directory: Int32, _ flags: Int32, mode: UInt32 = 0o666) throws(Errno) -> Int32 {
        let fd = llvs_shim_openat(directory, name, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, mode)
        if fd >= 0 { return try beyondStandard(fd) }
        // Of a link in the place of a directory Linux only says that it is none.
        if -fd == ENOTDIR, (try? status(name, in: directory))?.isLink == true { throw Errno(ELOOP) }
        throw Errno(-fd)
    }

    #if os(Linux)
    /// Flags for a directory that is held for what is in it: being allowed to enter it is enough.
    static let heldDirectory: Int32 = llvs_shim_held_directory()
    #else
    static let heldDirectory: Int32 = O_RDONLY | O_DIRECTORY
    #endif

    /// Takes over the descriptor of a directory that was opened to be read; for `closedir`.
    static func stream(_ fd: Int32) throws(Errno) -> DirectoryStream {
        guard let stream = fdopendir(fd) else {
            let error = Errno.current
            close(fd)
            throw error
        }
        return stream
    }

    /// The two ends of a pipe.
    /// Neither end waits: not for bytes, nor for room.
    static func pipe() throws(Errno) -> (reading: Int32, writing: Int32) {
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
    /// What tells of changes in directories.
    static func inotify() throws(Errno) -> Int32 {
        let fd = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        if fd < 0 { throw Errno.current }
        return try beyondStandard(fd)
    }
    #endif

    /// The same open file under a number of 3 or more; `fd` itself is closed when it is less.
    static func beyondStandard(_ fd: Int32) throws(Errno) -> Int32 {
        guard fd <= 2 else { return fd }
        let other = fcntl(fd, F_DUPFD_CLOEXEC, 3)
        let error = Errno.current
        close(fd)
        if other < 0 { throw error }
        return other
    }

    /// Not retried: on Linux the descriptor is gone whatever close says.
    static func close(_ fd: Int32) { _ = cClose(fd) }

    /// The same for what was written: a network file system may tell only now that it is full.
    static func closeWritten(_ fd: Int32) throws(Errno) {
        guard cClose(fd) != 0 else { return }
        let error = Errno.current
        if error.code != EINTR { throw error }
    }

    /// Fills the buffer from `offset` on; returns less than its size only where the file ends.
    static func pread(_ fd: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let (position, overflow) = offset.addingReportingOverflow(UInt64(done))
            guard !overflow, let place = off_t(exactly: position) else { throw Errno(EOVERFLOW) }
            // At most 1 GiB a call: Linux moves no more than 2 GiB at once, Darwin refuses to.
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

    /// Who was allowed to write anywhere was so to write below this as well.
    static let smallFile: UInt64 = 1024

    /// Writes some of the bytes at `offset`; returns how many, at least one.
    /// - Parameter isAllowed: `checkLimit` need not be asked.
    static func pwrite(_ fd: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, isAllowed: Bool = false) throws(Errno) -> Int {
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

    /// Throws `EFBIG` where writing at `offset` would send SIGXFSZ to the host. A write that begins below the limit ends at it, without a
    /// signal.
    static func checkLimit(_ offset: UInt64) throws(Errno) {
        if llvs_shim_may_write(offset) == 0 { throw Errno(EFBIG) }
    }

    static func setPermissions(_ fd: Int32, _ mode: UInt32) throws(Errno) { try retrying { fchmod(fd, mode_t(truncatingIfNeeded: mode)) } }

    /// Of what has the name in an open directory.
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

    /// Where bytes are stored at or behind `offset`: what lies before it is a hole, and reads as zeros. Nil: only a hole follows.
    /// `offset` itself where the file system does not tell.
    static func nextData(_ fd: Int32, from offset: UInt64) -> UInt64? {
        guard let place = Int64(exactly: offset) else { return offset }
        let found = llvs_shim_next_data(fd, place)
        return found < 0 ? nil : max(offset, UInt64(found))
    }

    /// Whether a part of the first `size` bytes is a hole: more is claimed than is there.
    static func hasHole(_ fd: Int32, before size: UInt64) -> Bool {
        let found = llvs_shim_next_hole(fd, 0)
        return found >= 0 && UInt64(found) < size
    }

    /// Sets the size of a file; what is added reads as zeros.
    static func truncate(_ fd: Int32, to size: UInt64) throws(Errno) {
        guard let place = off_t(exactly: size) else { throw Errno(EFBIG) }
        if size > 0 { try checkLimit(size &- 1) }
        try retrying { ftruncate(fd, place) }
    }

    static func fsync(_ fd: Int32) throws(Errno) { try retrying { cFsync(fd) } }

    /// Makes the file system that holds `fd` durable; false where the platform has no such call.
    static func syncfs(_ fd: Int32) throws(Errno) -> Bool {
        let error = llvs_shim_syncfs(fd)
        if error == ENOSYS { return false }
        if error != 0 { throw Errno(error) }
        return true
    }

    /// The path from the root on: what a store or folder was opened by must mean the same after a `chdir`.
    /// As it is when it is empty, begins at the root already, or there is no working directory any more.
    static func absolute(_ path: String) -> String {
        guard let first = path.utf8.first, first != UInt8(ascii: "/"), let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        let parent = String(cString: directory)
        // A repaired name would be that of something else.
        guard parent.utf8.first == UInt8(ascii: "/"), strlen(directory) == parent.utf8.count else { return path }
        return parent.utf8.count == 1 ? parent + path : parent + "/" + path
    }

    /// The path without links and dots; nil when there is nothing.
    static func resolved(_ path: String) -> String? {
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

    static func mkdir(_ path: String, mode: UInt32 = 0o777) throws(Errno) {
        try retrying { cMkdir(path, mode_t(truncatingIfNeeded: mode)) }
    }
    static func rename(_ from: String, _ to: String) throws(Errno) { try retrying { cRename(from, to) } }
    static func unlink(_ path: String) throws(Errno) { try retrying { cUnlink(path) } }

    static func unlock(_ fd: Int32) throws(Errno) { try retrying { flock(fd, LOCK_UN) } }
    /// Takes the whole-file lock; throws EWOULDBLOCK when another holds it.
    static func lockExclusively(_ fd: Int32) throws(Errno) { try retrying { flock(fd, LOCK_EX | LOCK_NB) } }

    /// What `stat` tells that the engine needs.
    struct Status: Equatable {
        var size: UInt64
        var inode: UInt64
        /// The file system that it is on.
        var device: UInt64
        /// When bytes, name or attributes were last changed: unlike the modification time, nobody can set it back.
        var changed: Int64
        /// Last change of the bytes, nanoseconds since 1970.
        var modified: Int64
        var isDirectory: Bool
        var isRegularFile: Bool
        var isSocket: Bool
        var isLink: Bool
        var owner: UInt32
        /// Of a directory: only their owners may remove or replace what lies in it.
        var isSticky: Bool
        /// How many names (hard links) it has.
        var names: UInt64
        /// As for `chmod`.
        var permissions: UInt32
    }

    /// Of what has the name in an open directory; of a symbolic link, of the link.
    static func status(_ name: String, in directory: Int32) throws(Errno) -> Status {
        var s = stat()
        try retrying { name.withCString { fstatat(directory, $0, &s, AT_SYMLINK_NOFOLLOW) } }
        return Status(s)
    }

    /// Of what the path leads to; of a symbolic link at its end, of the link.
    static func statusOfLink(_ path: String) throws(Errno) -> Status { try status(path, in: AT_FDCWD) }

    static func status(_ path: String) throws(Errno) -> Status {
        var s = stat()
        // As it is: handing over a string as such copies it.
        try retrying { path.withCString { stat($0, &s) } }
        return Status(s)
    }

    static func status(_ fd: Int32) throws(Errno) -> Status {
        var s = stat()
        try retrying { fstat(fd, &s) }
        return Status(s)
    }

    /// Bytes that a file has on the disk, however long it is; 0 for one that is not there.
    static func allocated(_ path: String) -> UInt64 {
        var s = stat()
        guard path.withCString({ stat($0, &s) }) == 0 else { return 0 }
        return UInt64(clamping: s.st_blocks) &* 512
    }

    /// The device of what a path leads to, its number there, and its size.
    static func identity(_ path: String) throws(Errno) -> (device: UInt64, inode: UInt64, size: UInt64) {
        var found: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let result = withUnsafeMutableBytes(of: &found) { found in
            path.withCString { path in found.baseAddress.map { llvs_shim_identity(path, $0.assumingMemoryBound(to: UInt64.self)) } }
        }
        guard result == 0 else { throw Errno(result ?? EINVAL) }
        return (found.0, found.1, found.2)
    }

    /// How much the file system of a path can still take from this user; nil if it does not tell.
    static func room(_ path: String) -> StorageRoom? {
        var s = statvfs()
        guard path.withCString({ statvfs($0, &s) }) == 0, s.f_blocks > 0 else { return nil }
        let unit = UInt64(s.f_frsize)
        let (free, tooMuch) = UInt64(s.f_bavail).multipliedReportingOverflow(by: unit)
        let (size, tooLarge) = UInt64(s.f_blocks).multipliedReportingOverflow(by: unit)
        return tooMuch || tooLarge ? nil : StorageRoom(free: free, size: size)
    }

    /// The names in a directory, without "." and "..", in no order.
    static func names(in path: String) throws(Errno) -> [String] { try names(stream(open(path, O_RDONLY | O_DIRECTORY))) }

    /// The same of a directory to be read, which is closed.
    static func names(_ directory: DirectoryStream) throws(Errno) -> [String] {
        defer { closedir(directory) }
        var names: [String] = []
        while try next(directory, { names.append(String(decoding: $0, as: UTF8.self)) }) {}
        return names
    }

    /// Calls with the bytes of each name in a directory, without "." and "..", in no order; then it is closed.
    /// - Throws: `Errno`, and what `body` throws.
    static func forEachName(_ directory: DirectoryStream, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        defer { closedir(directory) }
        var failure: (any Error)?
        while try next(directory, { do { try body($0) } catch { failure = error } }) { if let failure { throw failure } }
    }

    /// Whether there was one more name; `body` is called with it.
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

    /// Random bytes from the system.
    static func random(_ count: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(0, count))
        let error = bytes.withUnsafeMutableBytes { llvs_shim_random($0.baseAddress, $0.count) }
        if error != 0 { throw Errno(error) }
        return bytes
    }

    /// Nanoseconds since 1970-01-01 UTC by the system's clock.
    static var now: Int64 {
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
typealias DirectoryStream = OpaquePointer
#endif

// Inside `System` the functions above hide the calls of the same names.
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
    /// As the standard library's, but throwing what a system call throws.
    func borrowed<R>(_ body: (UnsafeRawBufferPointer) throws(Errno) -> R) throws(Errno) -> R {
        let result: Result<R, Errno> = withUnsafeBytes { bytes in
            do throws(Errno) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    mutating func filled<R>(_ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> R) throws(Errno) -> R {
        let result: Result<R, Errno> = withUnsafeMutableBytes { bytes in
            do throws(Errno) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
