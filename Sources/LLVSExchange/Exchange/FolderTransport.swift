/// An exchange through a folder that both sides reach: shared, synced by a program, or on a stick.
///
///     versions/<version id>    changes/<version id>    snapshots/…    tmp/…
///
/// Files are written under `tmp/` and renamed, so that no reader sees half of one; the changes of a version before the version. A listing
/// is one pass over two directories. Safe from all threads, also beside other processes and machines: no file is ever locked.
public final class FolderTransport: PacedTransport, AddressedTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// How a folder is used.
    public struct Options: Sendable {
        /// `full`: files and names are on disk before the next step. `normal`: a power cut may leave files without their bytes; a device
        /// that has the version rewrites them.
        public var durability = Durability.full
        /// Whether to create the folder (the last component of the path) if it is missing.
        public var create = true
        /// The path of the store whose versions are exchanged. The folder may not be that directory, nor lie in it.
        public var store: String?
        /// Called before the first write to a folder that was empty when last listed or was never examined; an error that it throws
        /// prevents the write.
        package var look: (@Sendable (FolderTransport, _ check: @escaping () throws -> Void) throws -> Void)?
        /// A durable folder, created if it is missing.
        public init() {}
    }
    /// The folder, as an absolute path.
    public let path: String
    /// Each is opened once, and its files are reached through its descriptor.
    private let folder: Folder, versions: Folder, changes: Folder, staging: Folder, snapshots: Folder
    private let isDurable: Bool
    private let look: (@Sendable (FolderTransport, _ check: @escaping () throws -> Void) throws -> Void)?
    private let spelling: PlaceSpelling
    private let lock = Lock(.transport)
    private var state: [UInt8] = []
    /// The store joins whatever is at the place.
    private var joins = false
    private var isPrepared = false
    /// Whether the folder was found not to be encrypted, since it was last empty.
    private var isInClear = false
    /// The syncs that `send` did, for tests.
    private(set) var syncCount = 0
    private var listing = FolderListing()
    /// The state of each file when it was found whole. A file is checked again only when its state changes.
    private var whole: [VersionID: WholeFiles] = [:]
    private struct WholeFiles { var version: Int, changes: Int }
    private var hasMetOldForm = false
    private var changed: [ChangedFiles] = []

    /// - Throws: `.notFound` if the folder is missing and may not or cannot be created, `.notADirectory`, `.permission`.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await FolderTransport.open(path:options:).")
    public init(path: String, options: Options = Options()) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument, "The path of an exchange folder is empty or holds a NUL. Give the path of a folder.", path: path)
        }
        var path = path
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        path = System.absolute(path)
        self.path = path
        spelling = PlaceSpelling("the folder \(path)") { [path] in FolderTransport.usualDescription(path) }
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
                "The folder \(path) is the directory of the store itself, or is in it, and cannot be the place of its exchange. "
                    + "Give a folder beside it.",
                path: path)
        }
        if try !FolderFiles.isDirectory(path) {
            guard options.create else {
                throw StoreError(
                    .notFound, "The exchange folder \(path) does not exist; check the path, and that its drive is connected.", path: path)
            }
            try FolderFiles.makeDirectory(path)
        }
    }

    public var description: String { "the folder \(path)" }
    /// The description of the folder to which the path leads if all links are followed.
    static func usualDescription(_ path: String) -> String { "the folder \(System.resolved(path) ?? path)" }

    /// Returns whether a folder, which may not exist yet, is the directory or lies in it, also through links.
    private static func isIn(_ directory: String, _ path: String) -> Bool {
        guard !directory.isEmpty, let home = System.resolved(directory),
            let own = System.resolved(path) ?? System.resolved(Paths.parent(of: path))
        else { return false }
        return own.utf8.elementsEqual(home.utf8) || own.utf8.starts(with: (home + "/").utf8)
    }

    /// A name that is no version id never becomes part of a path.
    private func file(_ folder: Folder, _ name: String) -> DirectoryEntry? { VersionID(validating: name) == nil ? nil : folder.place(name) }

    // MARK: Receiving

    public func list(_ control: OperationControl) throws -> ExchangeListing {
        // A missing folder is an error; an empty one is not.
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
        // The state of each written file is recorded before the file can be found, so it need not be read to check its content.
        let written = staged.map(FolderFiles.signature)
        var states: [Int?] = written.map { _ in nil }
        func publish(_ i: Int, as final: DirectoryEntry) throws {
            try FolderFiles.publish(staged[i], as: final)
            guard let before = written[i], let after = FolderFiles.signature(final), after.isRenamed(before) else { return }
            states[i] = after.hashValue
        }
        try sync?.files(staged) { try control.check(.sending, files.count, of: files.count, doing: "Sending to \(description)") }
        // All changes first: if a program syncs the folder meanwhile, it shows no version without its changes.
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

    /// Refuses to write in clear to an encrypted folder. It may have become encrypted since the transport was opened.
    private func refuseKeys(_ control: OperationControl) throws {
        let what = "Examining \(description)"
        try look?(self) { try control.check(.listing, 0, of: 0, doing: what) }
        lock.withLock { isInClear = true }
    }

    /// A new random name in `tmp/`.
    private func newPlace() -> DirectoryEntry { staging.place("\(VersionID.random())") }

    /// Creates the sub-folders, and removes files that an interrupted exchange left in `tmp/` more than a day ago.
    private func prepare(_ control: OperationControl) throws {
        let isDone = try lock.withLock {
            for inner in [versions, changes, staging] { try FolderFiles.makeDirectory(inner) }
            return isPrepared
        }
        if isDone { return }
        // Without the lock, since the host's callback is called. Several threads may do this at once, as may several processes.
        try FolderFiles.removeFiles(in: staging, olderThan: 86_400, control.paced(.listing, doing: "Clearing \(staging.path)"))
        if isDurable { try FolderSync(folder).directory(folder) }
        lock.withLock { isPrepared = true }
    }

    /// Reads the files that changed since the last call, of large ones only the end: that finds files that are empty, cut short or filled
    /// with zeros.
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        var bad: [String] = []
        // The host's callback is called between two batches, without the lock.
        for first in stride(from: 0, to: names.count, by: 256) {
            try control.check(.verifying, first, of: names.count, doing: "Examining \(description)")
            let batch = names[first..<min(first + 256, names.count)]
            lock.withLock { bad += unusable(batch) }
        }
        return bad
    }
    /// Called with `lock` held.
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
    /// Returns the state of the file and its size if it is whole; nil otherwise.
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
    /// Returns the error if a link is in the place of a folder.
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
    package func snapshotFileNames(_ control: PacedControl) throws -> [String] {
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
                // The target of a link does not belong to this exchange.
                names.append(name)
            }
        }
        return names
    }
    /// Returns the place of a snapshot file, which may lie in a sub-folder.
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
                // The word is not returned again, since it counts once.
                if newValue.elementsEqual("new".utf8) { (state, joins) = ([], true) } else { state = newValue }
            }
        }
    }
    package func placeAddress(
        in store: Store, _ check: @escaping () throws -> Void
    ) throws -> (place: String, account: String?)? { (try spelling.place(in: store), nil) }
    package func takeJoin() -> Bool {
        lock.withLock {
            defer { joins = false }
            return joins
        }
    }

    /// An observation reports every new name in `versions/`, also names that this transport wrote.
    public var hearsItself: Bool { true }
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        try? FolderFiles.makeDirectory(versions) // not in a folder that we may only read
        return try FolderWatch.start([WatchedDirectory(path + "/versions")], changed)
    }
    public func isReadByOthers(_ store: Store) -> Bool { true }
    public func close() {}
}
