/// The system calls that a folder exchange needs. Each is wrapped in a function that throws a `StoreError` naming the file. They do not
/// know the layout.
package enum FolderFiles {
    /// Returns the error for a failed call. `doing`: "Reading the file".
    static func error(_ error: Errno, _ doing: String, _ path: String) -> StoreError {
        .posix(error, doing: doing, path: path, of: .exchange)
    }

    // MARK: Directories

    package static func isDirectory(_ path: String) throws -> Bool {
        let status: System.Status
        do throws(Errno) { status = try System.status(path) } catch {
            if error == .missing { return false }
            throw self.error(error, "Looking at", path)
        }
        guard status.isDirectory else { throw error(Errno(ENOTDIR), "Using the folder", path) }
        return true
    }

    /// Returns the error for a failed call at a folder, which may be a symbolic link.
    package static func error(_ error: Errno, _ doing: String, _ folder: Folder) -> StoreError {
        guard error.code == ELOOP else { return self.error(error, doing, folder.path) }
        return StoreError(
            .notADirectory, "\(doing) \(folder.path) failed: it is a symbolic link, which is not followed here. Put a folder in its place.",
            path: folder.path)
    }

    /// Creates the last component of the path. An existing directory is no error.
    static func makeDirectory(_ path: String) throws {
        do throws(Errno) { try System.mkdir(path) } catch {
            if error.code == EEXIST {
                if try isDirectory(path) { return }
                if let status = try? System.statusOfLink(path), status.isLink {
                    throw StoreError(
                        .notFound,
                        "Making the folder \(path) failed: it is a symbolic link that leads nowhere. Check that the volume it leads to is "
                            + "mounted, or remove the link.",
                        path: path)
                }
            }
            throw self.error(error, "Making the folder", path)
        }
    }

    /// Creates a folder within another. An existing directory is no error. A symbolic link is refused: the folder is written to and
    /// cleared, so a planted link could have that done to any other folder.
    static func makeDirectory(_ folder: Folder) throws {
        folder.renew()
        do throws(Errno) { _ = try folder.held() } catch {
            guard error == .missing else { throw self.error(error, "Using the folder", folder) }
            do throws(Errno) { try folder.make(mode: 0o777) } catch { throw self.error(error, "Making the folder", folder) }
        }
    }

    /// Returns the names in a directory, except "." and ".."; none if it is missing. Names that are not UTF-8 are repaired, which makes
    /// them foreign.
    /// - Parameter control: checked on the way.
    package static func names(in folder: Folder, _ control: PacedControl = .none) throws -> [String] {
        var names: [String] = []
        try forEachName(in: folder) {
            try control.step(0)
            names.append(String(decoding: $0, as: UTF8.self))
        }
        return names
    }

    /// Calls `body` with the bytes of each name that `names` returns.
    static func forEachName(in folder: Folder, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let directory: DirectoryStream
        do throws(Errno) { directory = try folder.stream() } catch {
            if error == .missing { return }
            throw self.error(error, "Listing the folder", folder)
        }
        do { try System.forEachName(directory, body) } catch let error as Errno { throw self.error(error, "Listing the folder", folder) }
    }

    // MARK: Files

    /// Returns a regular file: its bytes, or a reader if it has more than `ExchangeLimits.wholeFileSize`. Throws only errors of `check`,
    /// which is called before each further MiB, and a shortage of the process, such as of descriptors or memory.
    static func fetch(_ place: DirectoryEntry, check: @escaping () throws -> Void) throws -> FetchedFile {
        switch try open(place, limit: ExchangeLimits.fileSize) {
        case .failed(let fetched): fetched
        case .open(let file):
            file.size > ExchangeLimits.wholeFileSize ? .pieces(FolderFileReader(file, check: check)) : try file.read(check)
        }
    }

    /// Returns all of a regular file; nil if it is missing.
    /// - Throws: why it cannot be read, and errors of `check`, which is called before each further MiB.
    package static func read(_ place: DirectoryEntry, limit: Int = ExchangeLimits.fileSize, check: () throws -> Void = {}) throws
        -> [UInt8]?
    {
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

    /// Does not follow symbolic links, which could lead to files outside the folder.
    private static func openToRead(_ place: DirectoryEntry) throws(Errno) -> OpenFile { try OpenFile(place, O_RDONLY) }

    enum Opened {
        case open(FolderFile)
        /// The file is missing or cannot be read.
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
            let failure = self.error(error, "Opening the file", path)
            switch error.code {
            case ENOENT: return .failed(.missing)
            case ELOOP:
                return .failed(
                    .unreadable(
                        StoreError(
                            .foreignFile, "\(path) is a symbolic link, which is not followed. Replace it by the file itself.", path: path)))
            // A socket, or a device node without a device.
            case ENXIO, ENODEV: return noFile()
            case EMFILE, ENFILE, ENOMEM: throw failure
            default: return .failed(.unreadable(failure))
            }
        }
        let file = FolderFile(path, opened)
        let status: System.Status
        do throws(Errno) { status = try System.status(opened.descriptor) } catch {
            return .failed(.unreadable(self.error(error, "Examining the file", path)))
        }
        guard status.isRegularFile else { return noFile() }
        guard let size = Int(exactly: status.size), size <= limit else {
            return .failed(
                .unreadable(StoreError(.tooLarge, "\(path) has \(status.size) bytes; at most \(limit) are read.", path: path)))
        }
        file.size = size
        return .open(file)
    }

    /// Creates a file with these bytes. Removes it again if that fails, if producing the bytes fails, or if `check` throws, which is called
    /// before each further MiB.
    static func writeNew(_ place: DirectoryEntry, _ data: OutgoingFile, check: () throws -> Void = {}) throws {
        let descriptor: Int32, path = place.path
        do throws(Errno) {
            descriptor = try place.found { (at) throws(Errno) in try System.open(place.name, in: at, O_WRONLY | O_CREAT | O_EXCL) }
        } catch {
            throw self.error(error, "Making the file", path)
        }
        var stopped: (any Error)?, sinceCheck = 0, position: UInt64 = 0
        do {
            try data.forEachPiece { piece in
                var rest = piece
                while !rest.isEmpty {
                    if sinceCheck >= OperationControl.bytesPerCheck { try check(); sinceCheck = 0 }
                    let some = UnsafeRawBufferPointer(rebasing: rest.prefix(OperationControl.bytesPerCheck - sinceCheck)), written: Int
                    do throws(Errno) { written = try System.pwrite(descriptor, some, at: position) } catch {
                        throw self.error(error, "Writing the file", path)
                    }
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
                    position &+= UInt64(written)
                    sinceCheck += written
                }
            }
        } catch { stopped = error }
        do throws(Errno) { try System.closeWritten(descriptor) } catch {
            if stopped == nil { stopped = self.error(error, "Writing the file", path) }
        }
        if let stopped {
            try? place.unlink()
            throw stopped
        }
    }

    /// Gives a file its final name, replacing a file, a link or an empty directory of that name.
    /// - Throws: `.foreignFile` if a directory with something in it has the name, or a file of another user that this process may not
    ///   replace.
    static func publish(_ file: DirectoryEntry, as final: DirectoryEntry) throws {
        do throws(Errno) { return try file.rename(to: final) } catch {
            if error.code == EPERM, (try? final.status()) != nil {
                throw StoreError(
                    .foreignFile,
                    "\(final) cannot be written: a file of another user has its name, and only that user may replace it. "
                        + "Let that user remove it, or clear the sticky bit of the folder (chmod -t), and send again.",
                    path: final.path, systemCode: error.code)
            }
            guard error.code == EISDIR else { throw self.error(error, "Publishing the file", final.path) }
        }
        do throws(Errno) {
            try final.rmdir()
            try file.rename(to: final)
        } catch {
            throw StoreError(
                .foreignFile, "\(final) cannot be written: a directory that is not empty has its name. Move it away, and send again.",
                path: final.path)
        }
    }

    /// Removes a file. A missing file is no error.
    static func remove(_ place: DirectoryEntry) throws {
        do throws(Errno) { try place.unlink() } catch {
            if error != .missing { throw self.error(error, "Removing the file", place.path) }
        }
    }

    /// Distinguishes states of a file without reading it. Includes `changed`, since any program can reset `modified`.
    package struct Signature: Hashable {
        var inode: UInt64, size: UInt64, modified: Int64, changed: Int64

        /// Returns whether two states may be of one file, before and after a rename. A rename changes only `changed`.
        func isRenamed(_ before: Signature) -> Bool { inode == before.inode && size == before.size && modified == before.modified }
    }
    /// Nil if there is no regular file.
    package static func signature(_ place: DirectoryEntry) -> Signature? {
        guard let status = try? place.status(), status.isRegularFile else { return nil }
        return Signature(inode: status.inode, size: status.size, modified: status.modified, changed: status.changed)
    }
    /// Returns whether a file exists, and is complete as far as its end shows.
    static func condition(_ place: DirectoryEntry, _ kind: WholeFile) -> WholeFile.Condition {
        guard let file = try? openToRead(place), let status = try? System.status(file.descriptor), status.size > 0 else { return .cutShort }
        let size = Int(clamping: status.size), length = size <= WholeFile.readSize ? size : WholeFile.tailSize
        return withUnsafeTemporaryAllocation(byteCount: length, alignment: 1) { buffer in
            guard (try? System.pread(file.descriptor, buffer, at: UInt64(size - length))) == length else { return .cutShort }
            return kind.condition(UnsafeRawBufferPointer(buffer), of: size)
        }
    }

    /// Removes regular files that were last written more than `seconds` ago. Failures are ignored; a later call tries again.
    /// - Throws: errors of the control.
    static func removeFiles(in folder: Folder, olderThan seconds: Int, _ control: PacedControl = .none) throws {
        let now = folder.now
        do {
            try forEachName(in: folder) { name in
                do { try control.step(0) } catch { throw Stopped(error: error) }
                let place = folder.place(String(decoding: name, as: UTF8.self))
                guard let status = try? place.status(), status.isRegularFile,
                    now &- status.modified > Int64(seconds) &* 1_000_000_000
                else { return }
                try? place.unlink()
            }
        } catch let stopped as Stopped { throw stopped.error } catch {}
    }

    private struct Stopped: Error { let error: any Error }
}
