/// An exchange through a folder that both sides reach: shared, synced by a program, or on a stick.
///
///     versions/<version id>    changes/<version id>    snapshots/…    tmp/…
///
/// Files are written under `tmp/` and renamed, so that nobody sees half of one; the changes of a version
/// before the version. A listing is one pass over two directories. Safe from all threads, also beside
/// other processes and machines: nothing is ever locked.
public final class FolderTransport: ExchangeTransport, AddressedTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// How a folder is used.
    public struct Options: Sendable {
        /// `full`: files and names are on disk before the next step. `normal`: a power cut may leave files without their
        /// bytes, which are then written anew by whoever has the version.
        public var durability = Durability.full
        /// Whether to make the folder (the last component of the path) when it is not there.
        public var create = true
        /// The path of the store whose versions go through it: the folder may not be that directory, nor lie in it.
        public var store: String?
        /// Called before something is written to a folder that nobody has looked at since it was empty; what it throws keeps it from that.
        package var look: (@Sendable (FolderTransport, _ check: @escaping () throws -> Void) throws -> Void)?
        /// A durable folder, which is made when it is not there.
        public init() {}
    }
    /// The folder, as an absolute path.
    public let path: String
    /// Each is opened once, and what is in it reached through its descriptor.
    private let folder: Folder, versions: Folder, changes: Folder, staging: Folder, snapshots: Folder
    private let isDurable: Bool
    private let look: (@Sendable (FolderTransport, _ check: @escaping () throws -> Void) throws -> Void)?
    private let lock = Lock(.transport)
    private var state: [UInt8] = []
    /// The store joins whatever is there.
    private var joins = false
    private var isPrepared = false
    /// Somebody looked whether the folder is encrypted, since it was empty.
    private var isInClear = false
    /// Syncs that `send` did, for tests.
    private(set) var syncCount = 0
    private var listing = FolderListing()
    /// What the files were when they were found whole: they need only be looked at again when they change.
    private var whole: [VersionID: WholeFiles] = [:]
    private struct WholeFiles { var version: Int, changes: Int }
    private var hasMetOldForm = false
    private var changed: [ChangedFiles] = []

    /// - Throws: `.notFound` when the folder is not there and may not be or cannot be made, `.notADirectory`, `.permission`.
    public init(path: String, options: Options = Options()) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument, "The path of an exchange folder is empty or holds a NUL. Give the path of a folder.", path: path)
        }
        var path = path
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        path = System.absolute(path)
        self.path = path
        folder = Folder(path)
        versions = folder.folder("versions")
        changes = folder.folder("changes")
        staging = folder.folder("tmp")
        snapshots = folder.folder("snapshots")
        isDurable = options.durability == .full
        look = options.look
        if let store = options.store, FolderTransport.isIn(store, path) {
            throw StoreError(
                .invalidArgument,
                "The folder \(path) is the directory of the store itself, or lies in it, and cannot be the place of its exchange. "
                    + "Give a folder beside it.",
                path: path)
        }
        if try !FolderFiles.isDirectory(path) {
            guard options.create else {
                throw StoreError(
                    .notFound, "The exchange folder \(path) is not there; check the path, and that its drive is connected.", path: path)
            }
            try FolderFiles.makeDirectory(path)
        }
    }

    public var description: String { "the folder \(path)" }

    /// Whether a folder, which need not be there yet, is a directory or lies in it, whichever links lead there.
    private static func isIn(_ directory: String, _ path: String) -> Bool {
        guard !directory.isEmpty, let home = System.resolved(directory),
            let own = System.resolved(path) ?? System.resolved(Paths.parent(of: path))
        else { return false }
        return own.utf8.elementsEqual(home.utf8) || own.utf8.starts(with: (home + "/").utf8)
    }

    /// A name that is no version id never becomes a path.
    private func file(_ folder: Folder, _ name: String) -> DirectoryEntry? { VersionID(validating: name) == nil ? nil : folder.place(name) }

    // MARK: Receiving

    public func list(_ control: OperationControl) throws -> ExchangeListing {
        // A folder that has gone is an error; one that is empty is not.
        guard try FolderFiles.isDirectory(path) else { throw FolderFiles.error(.missing, "Listing the folder", path) }
        // The host's callback is called while the folder is read, so no lock is held then.
        var reading = lock.withLock { listing }
        let found = try reading.read(versions, changes, control)
        lock.withLock {
            listing = reading
            // If the folder is empty, other devices may still encrypt it.
            if found.versions.isEmpty { isInClear = false }
        }
        return found
    }

    public func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(versions, names, control)
    }
    public func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(changes, names, control)
    }
    private func fetch(_ folder: Folder, _ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        var files: [FetchedFile] = [], size = 0
        for (i, name) in names.enumerated() {
            let check = { try control.check(.receiving, i, of: names.count, doing: "Retrieving from \(self.description)") }
            if i % 16 == 15 { try check() }
            let fetched = try file(folder, name).map { try FolderFiles.fetch($0, check: check) } ?? .missing
            files.append(fetched)
            size += fetched.size
            if size >= ExchangeLimits.batchSize { break }
        }
        return files
    }

    // MARK: Sending

    public func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        if !lock.withLock({ isInClear }) { try refuseKeys(control) }
        try prepare(control)
        let sync = isDurable ? FolderSync(folder) : nil
        var staged: [DirectoryEntry] = []
        defer {
            for place in staged { try? FolderFiles.remove(place) }
            lock.withLock { syncCount += sync?.count ?? 0 }
        }
        for (i, file) in files.enumerated() {
            guard VersionID(validating: file.name) != nil else {
                throw StoreError(
                    .invalidVersionID, "\"\(file.name)\" cannot be sent to \(description): it is not a version id.", versionID: file.name)
            }
            let check = { try control.check(.sending, i, of: files.count, doing: "Sending to \(self.description)") }
            try check()
            for data in [file.changes, OutgoingFile(file.version)] {
                let place = newPlace()
                try FolderFiles.writeNew(place, data, check: check)
                staged.append(place)
            }
        }
        // What is written here is known by its state before it can be found: nobody need read it to see whether it is what it should be.
        let written = staged.map(FolderFiles.signature)
        var states: [Int?] = written.map { _ in nil }
        func publish(_ i: Int, as final: DirectoryEntry) throws {
            try FolderFiles.publish(staged[i], as: final)
            guard let before = written[i], let after = FolderFiles.signature(final), after.isRenamed(before) else { return }
            states[i] = after.hashValue
        }
        try sync?.files(staged) { try control.check(.sending, files.count, of: files.count, doing: "Sending to \(description)") }
        // All changes first: a folder that is synced while we write then shows no version without its changes.
        for (i, file) in files.enumerated() { try publish(2 * i, as: changes.place(file.name)) }
        try sync?.directory(changes)
        for (i, file) in files.enumerated() { try publish(2 * i + 1, as: versions.place(file.name)) }
        staged = []
        lock.withLock {
            for (i, file) in files.enumerated() {
                guard let id = VersionID(validating: file.name), let changes = states[2 * i], let version = states[2 * i + 1] else {
                    continue
                }
                whole[id] = WholeFiles(version: version, changes: changes)
            }
        }
        try sync?.directory(versions)
    }

    /// Nothing is written in clear to what is encrypted, perhaps since it was opened.
    private func refuseKeys(_ control: OperationControl) throws {
        let what = "Looking at \(description)"
        try look?(self) { try control.check(.listing, 0, of: 0, doing: what) }
        lock.withLock { isInClear = true }
    }

    /// A name that nobody has, in `tmp/`.
    private func newPlace() -> DirectoryEntry { staging.place("\(VersionID.random())") }

    /// Makes the sub-folders and removes what an interrupted exchange left in `tmp/` a day ago or longer.
    private func prepare(_ control: OperationControl) throws {
        let isDone = try lock.withLock {
            for inner in [versions, changes, staging] { try FolderFiles.makeDirectory(inner) }
            return isPrepared
        }
        if isDone { return }
        // Without the lock, since the host's callback is called. Several threads may do this at once, as several processes may.
        try FolderFiles.removeFiles(in: staging, olderThan: 86_400, control.paced(.listing, doing: "Clearing \(staging.path)"))
        if isDurable { try FolderSync(folder).directory(folder) }
        lock.withLock { isPrepared = true }
    }

    /// Reads the files that changed since it last did, of large ones the end: that finds the empty, the cut short and
    /// the zero-filled.
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        var bad: [String] = []
        // The host's callback is called between two batches, without the lock.
        for first in stride(from: 0, to: names.count, by: 256) {
            try control.check(.verifying, first, of: names.count, doing: "Looking at \(description)")
            let batch = names[first..<min(first + 256, names.count)]
            lock.withLock { bad += unusable(batch) }
        }
        return bad
    }
    /// To be called with `lock` held.
    private func unusable(_ names: ArraySlice<String>) -> [String] {
        var bad: [String] = []
        for name in names {
            guard let id = VersionID(validating: name) else { continue }
            let known = whole[id]
            if let v = isWhole(versions.place(name), known?.version, .version),
                let c = isWhole(changes.place(name), known?.changes, .changes)
            {
                if known == nil || known?.version != v.state || known?.changes != c.state {
                    whole[id] = WholeFiles(version: v.state, changes: c.state)
                    changed.append(ChangedFiles(name: name, versionSize: v.size, changesSize: c.size))
                }
            } else {
                bad.append(name)
            }
        }
        return bad
    }
    /// What tells this state of the file from others, when it is whole, and its bytes.
    private func isWhole(_ place: DirectoryEntry, _ known: Int?, _ kind: WholeFile) -> (state: Int, size: Int)? {
        guard let signature = FolderFiles.signature(place), signature.size > 0 else { return nil }
        let state = signature.hashValue
        if state == known { return (state, Int(clamping: signature.size)) }
        let condition = FolderFiles.condition(place, kind)
        if condition == .oldForm { hasMetOldForm = true }
        return condition == .whole ? (state, Int(clamping: signature.size)) : nil
    }
    public var holdsOldForm: Bool { lock.withLock { hasMetOldForm } }
    public func takeChanged() -> [ChangedFiles] {
        lock.withLock {
            defer { changed = [] }
            return changed
        }
    }

    // MARK: Snapshots

    public func readSnapshotFile(_ name: String) throws -> [UInt8]? {
        let file = try snapshotFile(name)
        file.folder.renew()
        do { return try FolderFiles.read(file, limit: SnapshotLimits.fileSize) } catch { throw linked(file.folder) ?? error }
    }
    /// What is wrong when a link is in the place of a folder.
    private func linked(_ folder: Folder) -> StoreError? {
        do throws(Errno) { _ = try folder.held() } catch {
            if error.code == ELOOP { return FolderFiles.error(error, "Using the folder", folder) }
        }
        return nil
    }
    public func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {
        let final = try snapshotFile(name)
        try refuseKeys(OperationControl())
        try prepare(OperationControl())
        try lock.withLock {
            try FolderFiles.makeDirectory(snapshots)
            if final.folder !== snapshots { try FolderFiles.makeDirectory(final.folder) }
        }
        let staged = newPlace(), sync = isDurable ? FolderSync(folder) : nil
        try FolderFiles.writeNew(staged, OutgoingFile(data))
        do {
            try sync?.files([staged]) {}
            try FolderFiles.publish(staged, as: final)
        } catch {
            try? FolderFiles.remove(staged)
            throw error
        }
        try sync?.directory(final.folder)
    }
    public func deleteSnapshotFile(_ name: String) throws {
        let file = try snapshotFile(name)
        try refuseKeys(OperationControl())
        file.folder.renew()
        if let linked = linked(file.folder) { throw linked }
        try FolderFiles.remove(file)
    }

    public func snapshotFileNames() throws -> [String] { try snapshotFileNames(.none) }
    public func snapshotFileNames(_ control: PacedControl) throws -> [String] {
        var names: [String] = []
        snapshots.renew()
        for name in try FolderFiles.names(in: snapshots, control) where SnapshotLimits.isFileName(name) {
            try control.step(0)
            guard let status = try? snapshots.place(name).status() else { continue }
            if status.isDirectory {
                for inner in try FolderFiles.names(in: snapshots.folder(name), control) where SnapshotLimits.isFileName("\(name)/\(inner)")
                {
                    try control.step(0)
                    names.append("\(name)/\(inner)")
                }
            } else if !status.isLink {
                // What is behind a link is not of this exchange.
                names.append(name)
            }
        }
        return names
    }
    /// Also one in a folder of its own.
    private func snapshotFile(_ name: String) throws -> DirectoryEntry {
        guard SnapshotLimits.isFileName(name) else {
            throw StoreError(.invalidArgument, "\"\(name)\" cannot be the name of a snapshot file.", path: name)
        }
        let parts = name.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1).map { String(decoding: $0, as: UTF8.self) }
        return parts.count == 2 ? snapshots.folder(parts[0]).place(parts[1]) : snapshots.place(name)
    }

    // MARK: The rest

    public var restorationState: [UInt8] {
        get { lock.withLock { state } }
        set {
            lock.withLock {
                // The word is not handed back: it counts once.
                if newValue.elementsEqual("new".utf8) { (state, joins) = ([], true) } else { state = newValue }
            }
        }
    }
    package func placeAddress(_ check: @escaping () throws -> Void) throws -> (place: String, account: String?)? { (description, nil) }
    package func takeJoin() -> Bool {
        lock.withLock {
            defer { joins = false }
            return joins
        }
    }

    /// Tells of every new name in `versions/`, whoever wrote it, this transport included.
    public var hearsItself: Bool { true }
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        try? FolderFiles.makeDirectory(versions) // not in a folder that we may only read
        return try FolderWatch.start(path + "/versions", changed)
    }
    public func close() {}
}
