/// A versioned store: every save is a version in a DAG of versions.
///
/// Threads: all methods may be called from any thread at any time. Readers never wait for each other, and a
/// reader of a version sees exactly that version. Commits are serialised for their short in-memory part;
/// waiting for the disk is shared. Several stores, in one process or many, may be open on one place.
///
/// Errors are `StoreError`s. After any error the store goes on working, and nothing is half done.
public final class Store: @unchecked Sendable {
    // Sendable: `lock` guards what says so, the commit lock what is used while loading and scanning; its parts have locks of their own.
    /// Where the records of a store rest.
    public enum StorageChoice: Sendable {
        /// A directory of segments: the default.
        case file
        /// One SQLite database file.
        case sqlite
        /// Nothing survives the store.
        case memory
        /// A storage of the program's own; it belongs to the store from then on, which closes it.
        case custom(any Storage)
    }

    /// Whether values are stored as differences from earlier ones of the same id, where that takes less room. Values of 1 KiB to 1 MiB can
    /// be. What is stored is read whatever is said here; libraries from before differences do not read versions that have some.
    public enum Differences: UInt32, Sendable {
        /// In stores that are new, or have such values.
        case auto = 0
        /// Always.
        case on = 1
        /// Never.
        case off = 2
    }

    /// How a store is opened.
    public struct Options: Sendable {
        /// Which storage; it must be the one that the store was made with.
        public var storage = StorageChoice.file
        /// What a power cut may take.
        public var durability = Durability.full
        /// Bytes of memory for maps and other caches, about.
        public var memoryBudget = 64 << 20
        /// Never write; making versions and merging throw `.readOnly`.
        public var readOnly = false
        /// Make the store when there is none.
        public var create = true
        /// File storage: where caches rest; nil is inside the store.
        public var cacheDirectory: String?
        /// File storage: when small files are put together into large ones.
        public var compaction = Compaction.automatic
        /// File storage: seconds for which files that were put together are kept, so that whoever is copying the
        /// store misses nothing. At least 0; 15 minutes when nothing is said.
        public var compactionGrace = FileStorage.Options().compactionGrace
        /// SQLite storage: seconds for which other processes that write are waited for, before `.busy`; 0 does not wait.
        public var busyTimeout: Double = 10
        /// Whether values are stored as differences from earlier ones.
        public var differences = Differences.auto
        /// The permissions of files that are made, of which the process's mask takes some; directories may be entered by whoever may
        /// read. Nil: 0o600, for their owner alone.
        public var fileMode: UInt32?
        /// Progress (in versions) and cancellation of opening, which then throws `.cancelled` and leaves nothing open. Not used afterwards.
        public var control = OperationControl()
        /// A durable store in files, made where there is none, with about 64 MiB for caches.
        public init() {}
    }

    let storage: any Storage
    /// Guards `dag`, what says so, and `isClosed`.
    let lock: ReadWriteLock
    let sharedHistory = SharedHistory()
    var dag: History {
        @inline(__always) get { sharedHistory.dag }
        set { sharedHistory.dag = newValue }
    }
    /// Guarded by `lock`.
    var pending = PendingVersions()
    /// What the caches told when the store was opened. Guarded by `lock`.
    var caches = KnownCaches()
    /// What was met that cannot be read. Guarded by `lock`.
    var findings = Findings()
    /// What a scan knows. Used under the commit lock.
    let scanned = Scanned()
    /// Versions that are being stored.
    let commits: Commits
    private var isClosed = false
    /// Set in the child of a fork, which has one thread: read without the lock, which may never be free there.
    private var isDiscarded = false
    /// What prevails at the versions.
    let maps: MapProvider
    /// What the versions recorded, as it is in the storage.
    let records: Records
    /// Set before the store is used.
    package var environment = Environment()
    /// Of devices whose versions came in.
    let clocksAhead = Guarded(ClocksAhead())
    /// The names of the coordinators that are open on this store.
    private let coordinators = Guarded<Set<String>>([])
    let observers = Observers<[VersionID]>()
    /// Told once, when it is closed or let go of.
    package let ended = Observers<Void>()
    /// Rules for merging that were read lately.
    let schemas = SchemaCache(), validSchemas = ValidSchemas()
    /// What the layers above keep with it.
    let attachments = Attachments()
    /// What may refuse versions before they are made.
    let savingGuards = SavingGuards()
    /// Whether and how values are stored as differences.
    let differencing: Differencing

    /// Opens the store at `path`, or makes it.
    /// - Parameters:
    ///   - path: the directory (file), the database file (sqlite), or nothing of interest (memory, custom).
    ///   - options: what to open, and how; the defaults make a store in files where there is none.
    /// - Throws: `.notFound`, `.notAStore`, `.newerFormat`, `.notADirectory`, `.permission`, `.noSpace`, `.io`.
    public convenience init(path: String, options: Options = Options()) throws {
        try options.check()
        guard !path.utf8.contains(0) else {
            throw StoreError(.invalidArgument, "The path of a store holds a NUL byte, which no path can. Give another.")
        }
        let began = Log.begin(.info)
        let storage: any Storage
        do {
            let control = options.control.paced(.reading, doing: "Opening a store")
            try control.look()
            storage = try Waiting.looking(at: control) { try Store.makeStorage(path, options) }
        } catch {
            Log.write(.info, "A store was not opened: \(error)")
            throw error
        }
        try self.init(storage: storage, options: options, began: began)
    }

    /// - Parameter loading: false leaves the history empty, for who reads records by their places only.
    /// - Parameter began: when opening it began, for the log.
    init(storage: any Storage, options: Options, loading: Bool = true, began: Double? = nil) throws {
        self.storage = storage
        let text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: storage.path.utf8.count + 1)
        _ = text.initialize(from: Array(storage.path.utf8) + [0])
        pathText = UnsafeBufferPointer(rebasing: text.dropLast())
        lock = sharedHistory.lock
        let account = MemoryAccount(total: options.memoryBudget)
        commits = Commits(options.durability, encoderMemory: account.reserve)
        differencing = Differencing(options.differences)
        records = Records(storage, account, readers: lock)
        maps = MapProvider(sharedHistory, records, account)
        GivingWay.add(maps) { [maps] in maps.giveWay() }
        records.whenGone = { [weak self] in self?.follow($0) }
        records.findVersion = { [weak self] in self?.recordPlaces(of: $0) ?? [] }
        guard loading else { return }
        let control = options.control.paced(.reading, doing: "Opening \(storage.description)")
        do {
            try load(control)
        } catch {
            giveUp(error)
            throw error
        }
        let (count, heads, isNew) = lock.withRead { (dag.liveCount, dag.headOrdinals.count, dag.liveCount == 0 && pending.isEmpty) }
        if isNew, options.differences == .auto { differencing.note() }
        Log.write(
            .info,
            "Opened \(description)\(isReadOnly ? " for reading" : ""): \(count) versions, \(caches.rows) of them from the "
                + "caches\(maps.persisted == nil ? "" : " with a map"), \(heads) heads, \(pending.count) "
                + "waiting\(Log.duration(since: began))."
        )
        compactIfItPays(.opened, control.forPart)
        // Compacting may have taken its time, and been cancelled, which cancels the whole.
        do { try control.look() } catch {
            giveUp(error)
            throw error
        }
    }

    /// It was not opened: nothing was written, but connections, descriptors and what the host lent are let go of.
    private func giveUp(_ error: any Error) {
        // Nothing is left to be done when it is released.
        isClosed = true
        try? storage.close(discarding: false)
        Log.write(.info, "\(description) was not opened: \(error)")
    }

    deinit {
        GivingWay.remove(maps)
        try? close()
        pathText.deallocate()
    }

    /// What it is and where, for messages.
    public var description: String { storage.description }
    /// Where it is: an absolute path; empty for a store in memory or in a storage of the host.
    public var path: String { storage.path }
    /// The same in UTF-8, with a NUL behind it; good while the store is.
    public let pathText: UnsafeBufferPointer<UInt8>
    /// Whether it was opened for reading only.
    public var isReadOnly: Bool { storage.isReadOnly }
    /// Whether the calling thread is inside a callback of the host's storage, from where the store cannot be called.
    public var isCallingBack: Bool { storage.isCallingBack }

    /// Flushes, seals and lets go. Later calls throw `.closed`; closing again does nothing.
    public func close() throws {
        if isDiscarded { return }
        let first = lock.withWrite { () -> Bool in
            defer { isClosed = true }
            return !isClosed
        }
        guard first else { return }
        defer { ended.tell(()) }
        let began = Log.begin(.info)
        if !commits.lock.isLeft { compactIfItPays(.closing) }
        do {
            try withCommitLock {
                if !commits.lock.isLeft { saveCaches() }
                try storage.close(discarding: false)
            }
        } catch {
            Log.write(.info, "Closed \(description), which failed: \(error)")
            throw error
        }
        Log.write(.info, "Closed \(description)\(Log.duration(since: began)).")
    }

    /// Lets go without writing anything or taking any lock: for the child of a fork.
    public func discard() {
        isDiscarded = true
        isClosed = true
        try? storage.close(discarding: true)
    }

    /// Throws when the store is closed. The caller holds the lock.
    @inline(__always)
    func checkOpenLocked() throws {
        lock.assertHeld("What says whether a store is closed")
        if isClosed || commits.lock.isLeft { throw closedError }
    }

    private var closedError: StoreError {
        StoreError(
            .closed,
            commits.lock.isLeft
                ? "The store is closed, since a callback of its storage did not return while a version was being stored: "
                    + "it may be there, or not. Open the store again to go on."
                : "The store is closed. Open it again to go on.")
    }

    /// Runs `body`, in which the storage appends or scans, while no other thread does; what there is to be logged is logged then.
    @inline(__always)
    func withCommitLock<R>(_ body: () throws -> R) rethrows -> R {
        try Log.holding { try commits.lock.run(body) }
    }
    func checkOpen() throws { try lock.withRead { try checkOpenLocked() } }

    func checkWritable(_ what: String) throws {
        try checkOpen()
        if storage.isReadOnly {
            throw StoreError(
                .readOnly, "\(what) is not possible: \(storage.description) is open for reading only. Open it without the read-only option."
            )
        }
    }

    // MARK: Observing

    /// Calls back, on the thread that added them, whenever versions were added through this handle, until cancelled.
    public func observeVersions(_ added: @escaping @Sendable ([VersionID]) -> Void) -> any ExchangeObservation { observers.add(added) }

    // MARK: The cache directory

    /// Small named blobs that live beside the records and may vanish with the caches.
    func cacheGet(_ name: String) throws -> [UInt8]? { try checkOpen(); return try storage.cacheGet(name) }
    func cachePut(_ name: String, _ data: [UInt8]) throws { try checkOpen(); try storage.cachePut(name, data) }
    func cacheDelete(_ name: String) throws { try checkOpen(); try storage.cacheDelete(name) }

    /// What the coordinator of that name writes its current version to; released by `releaseNote`.
    /// - Throws: `.busy` when a coordinator of that name is open, here or elsewhere.
    func claimNote(ofCoordinator name: String) throws -> any StorageNote {
        try checkOpen()
        func busy(_ where: String) -> StoreError {
            StoreError(
                .busy,
                "A coordinator named \"\(name)\" is open on \(description) already, \(`where`): "
                    + "each would save where it is, and make two heads. Close that one, or open this one under another name."
            )
        }
        if !isReadOnly, !coordinators.withLock({ $0.insert(name).inserted }) { throw busy("through the same store") }
        do { return try storage.openNote("coordinator-\(name)") } catch {
            releaseNote(ofCoordinator: name)
            if let error = error as? StoreError, error.code == .busy {
                throw busy("in this process, in another, or in a child that one of them forked")
            }
            throw error
        }
    }
    func releaseNote(ofCoordinator name: String) { coordinators.withLock { _ = $0.remove(name) } }
}
