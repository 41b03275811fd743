/// The system calls that a folder exchange needs, each behind one function that throws a `StoreError`
/// naming the file. Nothing here knows the layout.
enum FolderFiles {
    /// The error for a failed call. `doing`: "Reading the file".
    static func error(_ number: Int32, _ doing: String, _ path: String) -> StoreError {
        let code: StoreError.Code, advice: String
        switch number {
        case ENOENT: code = .notFound; advice = "It is not there; check the path, and that its drive is connected."
        case EACCES, EPERM: code = .permission; advice = "Give this user access to it."
        case EROFS: code = .readOnly; advice = "The file system is mounted read-only: mount it for writing, or give another folder."
        case ENOSPC, EDQUOT, EFBIG: code = .noSpace; advice = "Make room and run it again."
        case EMFILE, ENFILE:
            code = .tooManyFiles; advice = "The process or the system has too many open files: close some, or raise the limit (ulimit -n)."
        case ENOMEM: code = .outOfMemory; advice = "The system is short of memory: free some, and run it again."
        case ENOTDIR: code = .notADirectory; advice = "A file is in the place of a folder: move it away, or give another path."
        case ENAMETOOLONG: code = .invalidArgument; advice = "Give a shorter path."
        default: code = .io; advice = "Check the drive and run it again."
        }
        // The POSIX form, which all C libraries here have under this name.
        var text = [CChar](repeating: 0, count: 128)
        let known = strerror_r(number, &text, text.count - 1) == 0
        let reason = known ? text.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } : "error \(number)"
        return StoreError(code, "\(doing) \(path) failed: \(reason). \(advice)", path: path, systemCode: number)
    }

    // MARK: Directories

    static func isDirectory(_ path: String) throws -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return false }
            throw error(errno, "Looking at", path)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw error(ENOTDIR, "Using the folder", path) }
        return true
    }

    /// The error for a call that failed at a folder, which may be one that is none.
    static func error(_ error: Errno, _ doing: String, _ folder: Folder) -> StoreError {
        guard error.code == ELOOP else { return self.error(error.code, doing, folder.path) }
        return StoreError(
            .notADirectory, "\(doing) \(folder.path) failed: it is a symbolic link, which is not followed here. Put a folder in its place.",
            path: folder.path)
    }

    /// Makes the last component of the path; no error when it is there, and is a directory.
    static func makeDirectory(_ path: String) throws {
        if mkdir(path, 0o777) == 0 { return }
        let number = errno
        if number == EEXIST, try isDirectory(path) { return }
        throw error(number, "Making the folder", path)
    }

    /// Makes a folder within another; no error when it is there, and is no link: it is written to and cleared, and whoever may put
    /// a link in its place could have that done to any other.
    static func makeDirectory(_ folder: Folder) throws {
        folder.renew()
        do throws(Errno) { _ = try folder.held() } catch {
            guard error == .missing else { throw self.error(error, "Using the folder", folder) }
            do throws(Errno) { try folder.make(mode: 0o777) } catch { throw self.error(error, "Making the folder", folder) }
        }
    }

    /// The names in a directory but "." and "..", as they are; none when it is not there. Names that are
    /// not UTF-8 come repaired, and are foreign thereby.
    /// - Parameter control: looked at on the way.
    static func names(in folder: Folder, _ control: PacedControl = .none) throws -> [String] {
        var names: [String] = []
        try forEachName(in: folder) {
            try control.step(0)
            names.append(String(decoding: $0, as: UTF8.self))
        }
        return names
    }

    /// As `names`, with the bytes of each.
    static func forEachName(in folder: Folder, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let directory: DirectoryStream
        do throws(Errno) { directory = try folder.stream() } catch {
            if error == .missing { return }
            throw self.error(error, "Listing the folder", folder)
        }
        defer { closedir(directory) }
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                guard errno == 0 else { throw error(errno, "Listing the folder", folder.path) }
                return
            }
            try withUnsafeBytes(of: &entry.pointee.d_name) { field in
                let name = UnsafeRawBufferPointer(rebasing: field[..<(field.firstIndex(of: 0) ?? field.count)])
                if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { return }
                try body(name)
            }
        }
    }

    // MARK: Files

    /// A regular file: its bytes, or where it has more than `ExchangeLimits.wholeFileSize`, what reads them. Throws only what
    /// `check` throws, which is called before each further MiB, and when the process is short of something, which is not
    /// the file's fault.
    static func fetch(_ place: DirectoryEntry, check: @escaping () throws -> Void) throws -> FetchedFile {
        switch try open(place, limit: ExchangeLimits.fileSize) {
        case .failed(let fetched): fetched
        case .open(let file):
            file.size > ExchangeLimits.wholeFileSize ? .pieces(FolderFileReader(file, check: check)) : try file.read(check)
        }
    }

    /// All of a regular file; nil when it is not there.
    /// - Throws: why it cannot be read, and what `check` throws, which is called before each further MiB.
    static func read(_ place: DirectoryEntry, limit: Int = ExchangeLimits.fileSize, check: () throws -> Void = {}) throws -> [UInt8]? {
        var fetched = FetchedFile.missing
        switch try open(place, limit: limit) {
        case .failed(let failed): fetched = failed
        case .open(let file): fetched = try file.read(check)
        }
        switch fetched {
        case .data(let bytes): return bytes
        case .unreadable(let error): throw error
        case .missing, .pieces: return nil
        }
    }

    /// No symbolic link, which could lead to files that are not the folder's.
    private static func openToRead(_ place: DirectoryEntry) throws(Errno) -> OpenFile { try OpenFile(place, O_RDONLY) }

    enum Opened {
        case open(FolderFile)
        /// It is missing or cannot be read.
        case failed(FetchedFile)
    }
    private static func open(_ place: DirectoryEntry, limit: Int) throws -> Opened {
        let opened: OpenFile, path = place.path
        func noFile() -> Opened {
            .failed(
                .unreadable(
                    StoreError(.foreignFile, "\(path) is not a file. Move it away: only files of this exchange belong there.", path: path)))
        }
        do throws(Errno) { opened = try openToRead(place) } catch {
            let failure = self.error(error.code, "Opening the file", path)
            switch error.code {
            case ENOENT: return .failed(.missing)
            case ELOOP:
                return .failed(
                    .unreadable(
                        StoreError(
                            .foreignFile, "\(path) is a symbolic link, which is not followed. Put the file itself there.", path: path)))
            // A socket, or a device that nothing is behind.
            case ENXIO, ENODEV: return noFile()
            case EMFILE, ENFILE, ENOMEM: throw failure
            default: return .failed(.unreadable(failure))
            }
        }
        let file = FolderFile(path, opened)
        var status = stat()
        guard fstat(opened.descriptor, &status) == 0 else { return .failed(.unreadable(error(errno, "Looking at the file", path))) }
        guard status.st_mode & S_IFMT == S_IFREG else { return noFile() }
        guard let size = Int(exactly: status.st_size), size <= limit else {
            return .failed(
                .unreadable(StoreError(.tooLarge, "\(path) has \(status.st_size) bytes; at most \(limit) are read.", path: path)))
        }
        file.size = size
        return .open(file)
    }

    /// Makes a new file with these bytes. Removes it again when that fails, or making them fails, or `check` throws, which
    /// is called before each further MiB.
    static func writeNew(_ place: DirectoryEntry, _ data: OutgoingFile, check: () throws -> Void = {}) throws {
        let descriptor: Int32, path = place.path
        do throws(Errno) {
            descriptor = try place.found { (at) throws(Errno) in try System.open(place.name, in: at, O_WRONLY | O_CREAT | O_EXCL) }
        } catch {
            throw self.error(error.code, "Making the file", path)
        }
        var stopped: (any Error)?, sinceCheck = 0, position: UInt64 = 0
        do {
            try data.forEachPiece { piece in
                var written = 0
                while written < piece.count, let start = piece.baseAddress {
                    if sinceCheck >= OperationControl.bytesPerCheck { try check(); sinceCheck = 0 }
                    do throws(Errno) { try System.checkLimit(position) } catch { throw self.error(error.code, "Writing the file", path) }
                    let got = write(descriptor, start + written, min(piece.count - written, OperationControl.bytesPerCheck - sinceCheck))
                    if got < 0 {
                        if errno == EINTR { continue }
                        throw error(errno, "Writing the file", path)
                    }
                    written += got
                    position &+= UInt64(got)
                    sinceCheck += got
                }
            }
        } catch { stopped = error }
        // A network file system may tell only now that it is full.
        if close(descriptor) != 0, stopped == nil, errno != EINTR { stopped = error(errno, "Writing the file", path) }
        if let stopped {
            try? place.unlink()
            throw stopped
        }
    }

    /// Gives a file its final name, replacing what has it: a file, a link, an empty directory.
    /// - Throws: `.foreignFile` when it is a directory with something in it, or one of another user that we may not replace.
    static func publish(_ file: DirectoryEntry, as final: DirectoryEntry) throws {
        do throws(Errno) { return try file.rename(to: final) } catch {
            if error.code == EPERM, (try? final.status()) != nil {
                throw StoreError(
                    .foreignFile,
                    "\(final) cannot be written: something of another user is in its place, which only they may replace there. "
                        + "Let them remove it, or take the sticky bit from the folder (chmod -t), and send again.",
                    path: final.path, systemCode: error.code)
            }
            guard error.code == EISDIR else { throw self.error(error.code, "Putting in place the file", final.path) }
        }
        do throws(Errno) {
            try final.rmdir()
            try file.rename(to: final)
        } catch {
            throw StoreError(
                .foreignFile, "\(final) cannot be written: a directory with something in it is in its place. Move it away, and send again.",
                path: final.path)
        }
    }

    /// No error when it is not there.
    static func remove(_ place: DirectoryEntry) throws {
        do throws(Errno) { try place.unlink() } catch {
            if error != .missing { throw self.error(error.code, "Removing the file", place.path) }
        }
    }

    /// What tells one state of a file from another, without reading it. `changed` as well, since anybody can put `modified` back.
    struct Signature: Hashable {
        var inode: UInt64, size: UInt64, modified: Int64, changed: Int64

        /// Whether the two may tell of one file before and after it was renamed, which changes `changed`.
        func isRenamed(_ before: Signature) -> Bool { inode == before.inode && size == before.size && modified == before.modified }
    }
    /// Nil when there is no regular file.
    static func signature(_ place: DirectoryEntry) -> Signature? {
        guard let status = try? place.status(), status.isRegularFile else { return nil }
        return Signature(inode: status.inode, size: status.size, modified: status.modified, changed: status.changed)
    }
    /// Whether a file is there, and all of it as far as can be told.
    static func condition(_ place: DirectoryEntry, _ kind: WholeFile) -> WholeFile.Condition {
        guard let file = try? openToRead(place) else { return .cutShort }
        defer { withExtendedLifetime(file) {} }
        let descriptor = file.descriptor
        let size = Int(lseek(descriptor, 0, SEEK_END))
        guard size > 0 else { return .cutShort }
        let length = size <= WholeFile.readSize ? size : WholeFile.tailSize
        return withUnsafeTemporaryAllocation(byteCount: length, alignment: 1) { buffer in
            guard let start = buffer.baseAddress, pread(descriptor, start, length, off_t(size - length)) == length else { return .cutShort }
            return kind.condition(UnsafeRawBufferPointer(buffer), of: size)
        }
    }

    /// Removes regular files that were last written so many seconds ago. Failures are left for another time.
    /// - Throws: what the control throws.
    static func removeFiles(in folder: Folder, olderThan seconds: Int, _ control: PacedControl = .none) throws {
        let now = folder.now
        do {
            try forEachName(in: folder) { name in
                do { try control.step(0) } catch { throw Stopped(error: error) }
                let place = folder.place(String(decoding: name, as: UTF8.self))
                guard let status = try? place.status(), status.isRegularFile,
                      now &- status.modified > Int64(seconds) &* 1_000_000_000 else { return }
                try? place.unlink()
            }
        } catch let stopped as Stopped { throw stopped.error } catch {}
    }

    private struct Stopped: Error { let error: any Error }
}
