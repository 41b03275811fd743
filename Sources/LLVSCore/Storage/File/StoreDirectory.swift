/// The directory of a file store: creates it, or reports what is there instead.
struct StoreDirectory: Sendable {
    let path: String
    /// The directory that the caller named, and those in it. All are held open.
    let root: Folder, segmentsFolder: Folder, blobsFolder: Folder
    /// Paths for messages.
    var marker: String { markerPlace.path }
    var segments: String { segmentsFolder.path }
    var blobs: String { blobsFolder.path }
    private var markerPlace: DirectoryEntry { root.place("llvs-store") }
    func segment(_ name: String) -> DirectoryEntry { segmentsFolder.place(name) }

    /// Closes all descriptors: after a fork, and at the end.
    func letGo() { for folder in [root, segmentsFolder, blobsFolder] { folder.letGo() } }

    static let format = 1
    static let markerText = "LLVS store\nformat 1\n"

    init(_ path: String) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument,
                "The path of a store is \(path.isEmpty ? "empty" : "not a path: it holds a NUL"). Give the path of a directory.", path: path
            )
        }
        self.path = System.absolute(Paths.withoutTrailingSlashes(path))
        root = Folder(self.path)
        segmentsFolder = root.folder("segments")
        blobsFolder = root.folder("blobs")
    }

    /// Examines the directory, and creates a store if it is missing or empty and `create` allows it. Returns damage found at the marker.
    func open(create: Bool, durably system: FileSystem) throws -> [StorageDamage] {
        let names: [String]
        do {
            names = try system.names(root)
        } catch {
            switch error.code {
            case ENOENT where create:
                try make(system)
                return []
            case ENOENT:
                throw StoreError(
                    .notFound, "Opening the store at \(path) failed: nothing is there. Check the path, or let the store be created.",
                    path: path, systemCode: error.code)
            case ENOTDIR:
                throw StoreError(
                    .notADirectory,
                    "Opening the store at \(path) failed: it, or a part of the path, is a file. A store is a directory; give another path.",
                    path: path, systemCode: error.code)
            default:
                throw StoreError.posix(error, doing: "Opening the store at", path: path)
            }
        }
        let hasSegments = names.contains("segments")
        // Another process may have created the store since the listing.
        let hasMarker = names.contains("llvs-store") || (!names.isEmpty && (try? markerPlace.status()) != nil)
        if hasMarker { return try readMarker(complete: hasSegments || !create, system) }
        if hasSegments {
            // Either another process is creating the store, or the marker was lost.
            let segments = try posix("Opening the store at", self.segments) { () throws(Errno) in try segmentsFolder.names() }
            if !segments.contains(where: { $0.hasSuffix(".seg") }) {
                if create { try make(system) }
                return []
            }
            // Every writer of a segment had seen the marker: it may have been created since the last look.
            if (try? markerPlace.status()) != nil { return try readMarker(complete: true, system) }
            return [
                StorageDamage(
                    file: marker, offset: 0,
                    message:
                        "The file llvs-store, which marks \(path) as a store, is missing. The versions are not affected. "
                        + "Write it again with the two lines \"LLVS store\" and \"format 1\".",
                    lost: .nothing)
            ]
        }
        guard names.isEmpty else {
            throw StoreError(
                .notAStore,
                "Opening the store at \(path) failed: the directory has other things in it and is not a store. "
                    + "Give an empty or a new directory.",
                path: path)
        }
        guard create else {
            throw StoreError(
                .notFound, "Opening the store at \(path) failed: the directory is empty. Check the path, or let the store be created.",
                path: path)
        }
        try make(system)
        return []
    }

    private func readMarker(complete: Bool, _ system: FileSystem) throws -> [StorageDamage] {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try posix("Reading", marker) { () throws(Errno) in
            let file = try OpenFile(markerPlace, O_RDONLY)
            // Anything except a regular file has no content.
            guard try System.status(file.descriptor).isRegularFile else { return 0 }
            return try bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        }
        let lines = bytes.prefix(count).split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        if lines.count >= 3, lines[0].elementsEqual("LLVS store".utf8), lines[1].starts(with: "format ".utf8),
            let format = StoreDirectory.number(lines[1].dropFirst(7))
        {
            guard format == String(StoreDirectory.format) else {
                throw StoreError(
                    .newerFormat,
                    "Opening the store at \(path) failed: it has format \(format), and this version of the library knows formats up to "
                        + "\(StoreDirectory.format). Use a newer version of the library.",
                    path: path)
            }
            if !complete { try make(system) }
            return []
        }
        return [
            StorageDamage(
                file: marker, offset: 0,
                message:
                    "The file llvs-store, which marks \(path) as a store, is damaged. The versions are not affected. "
                    + "Write it again with the two lines \"LLVS store\" and \"format 1\".",
                lost: .nothing)
        ]
    }

    /// Returns the digits of a format number, however large; nil if it is not a number.
    private static func number(_ digits: ArraySlice<UInt8>) -> String? {
        guard let first = digits.first, first != UInt8(ascii: "0"),
            digits.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
        else { return nil }
        return String(decoding: digits, as: UTF8.self)
    }

    /// Creates what is missing. Any number of processes may do so at once.
    private func make(_ system: FileSystem) throws {
        try makeDirectories(path, system)
        try make(segmentsFolder, system)
        if (try? markerPlace.status()) == nil {
            // A process that sees the marker relies on all directories above being durable. The process that created them may have been
            // killed before it could sync them, so sync them before writing the marker.
            try syncDirectories(upFrom: path, system)
            let suffix = try posix("Making the store at", path) { () throws(Errno) in try RandomName.random().hex }
            let aside = segment(".llvs-store." + suffix + ".tmp")
            try posix("Making the store at", path) { () throws(Errno) in
                do throws(Errno) {
                    let file = try OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL, mode: system.mode)
                    let text = Array(StoreDirectory.markerText.utf8)
                    try text.borrowed { (b) throws(Errno) in try system.write(file, b, at: 0) }
                    try system.sync(file)
                    try aside.rename(to: markerPlace)
                } catch {
                    try? aside.unlink()
                    throw error
                }
            }
        }
        try syncDirectory(root, system)
    }

    /// Creates one of the store's own directories, and syncs its entry in the store's directory, which exists.
    func make(_ folder: Folder, _ system: FileSystem) throws {
        try posix("Making the directory", folder.path) { () throws(Errno) in try folder.make(mode: system.directoryMode) }
        try syncDirectory(root, system)
    }

    /// Creates a directory and those above it, and syncs each entry in the directory above.
    func makeDirectories(_ path: String, _ system: FileSystem) throws {
        var missing: [String] = []
        var at = path
        while true {
            do throws(Errno) {
                let status = try System.status(at)
                guard status.isDirectory else {
                    throw Errno(ENOTDIR)
                }
                break
            } catch {
                guard error.code == ENOENT, !at.isEmpty, at != "/" else {
                    throw StoreError.posix(error, doing: "Making the directory", path: path)
                }
                missing.append(at)
                at = Paths.parent(of: at)
            }
        }
        for directory in missing.reversed() {
            do throws(Errno) {
                try System.mkdir(directory, mode: system.directoryMode)
                try DirectoryEntry(directory).letOwnerIn()
            } catch {
                if error.code != EEXIST { throw StoreError.posix(error, doing: "Making the directory", path: directory) }
            }
            try syncDirectory(Paths.parent(of: directory), system)
        }
    }

    /// Syncs the entries of a directory and of those above it, up to the root of their file system.
    private func syncDirectories(upFrom path: String, _ system: FileSystem) throws {
        var at = path
        let device = try? System.status(path).device
        while true {
            try syncDirectory(at, system)
            let parent = Paths.parent(of: at)
            guard at != "/", parent != at, let above = try? System.status(parent).device, above == device else { return }
            at = parent
        }
    }

    /// Syncs the entries of a directory, if its file system can.
    func syncDirectory(_ path: String, _ system: FileSystem) throws { try syncDirectory(Folder(path), system) }
    func syncDirectory(_ folder: Folder, _ system: FileSystem) throws {
        do throws(Errno) {
            let directory = try folder.readable()
            try system.fsync(directory.descriptor)
        } catch {
            // Some network and FUSE file systems cannot sync a directory, and some directories can be entered but not read.
            if error.code == EINVAL || error.code == ENOTSUP || error.code == EACCES { return }
            throw StoreError.posix(error, doing: "Syncing the directory", path: folder.path)
        }
    }
}
