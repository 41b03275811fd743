import CLLVSShims

/// A versioned store: every save is a version in a DAG of versions.
///
/// Threads: all methods may be called from any thread at any time. Readers never wait for each other, and a reader of a version sees
/// exactly that version. Commits are serialised for their short in-memory part and share the wait for the disk. Several stores, in one
/// process or many, may be open on one place.
///
/// Errors are `StoreError`s. After any error the store continues to work, and nothing is half done.
public final class Store: @unchecked Sendable {
    // Sendable: `lock` guards the properties that name it, the commit lock those used while loading and scanning; parts have their own
    // locks.
    /// Where a store keeps its records.
    public struct StorageChoice: Sendable {
        package enum Kind: Sendable {
            case file, sqlite, memory
            case custom(any Storage)
        }
        package let kind: Kind

        /// A directory of segments: the default.
        public static var file: StorageChoice { StorageChoice(kind: .file) }
        /// One SQLite database file.
        public static var sqlite: StorageChoice { StorageChoice(kind: .sqlite) }
        /// Nothing survives the store.
        public static var memory: StorageChoice { StorageChoice(kind: .memory) }
        /// Functions of the program. The store owns the storage from then on, and closes it.
        public static func callbacks(_ storage: CallbackStorage) -> StorageChoice { StorageChoice(kind: .custom(storage)) }
        /// Any storage of this package.
        package static func custom(_ storage: any Storage) -> StorageChoice { StorageChoice(kind: .custom(storage)) }
    }

    /// Whether values of 1 KiB to 4 MiB are stored as differences from earlier ones of the same id, if that takes less room. It does not
    /// affect reading. Libraries from before differences do not read versions that have some.
    public enum Differences: UInt32, Sendable {
        /// Differences are written in new stores, and in stores that have such values.
        case auto = 0
        /// Always.
        case on = 1
        /// Never.
        case off = 2
    }

    /// How a store is opened.
    public struct Options: Sendable {
        /// The storage. It must be the one with which the store was created.
        public var storage = StorageChoice.file
        /// What a power cut may take.
        public var durability = Durability.full
        /// The approximate bytes of memory for maps and other caches.
        public var memoryBudget = 64 << 20
        /// Whether the store is never written to; making versions and merging throw `.readOnly`.
        public var readOnly = false
        /// Whether to create a missing store.
        public var create = true
        /// File storage: the directory of caches; nil: inside the store.
        public var cacheDirectory: String?
        /// File storage: when small files are compacted.
        public var compaction = Compaction.automatic
        /// File storage: seconds for which compacted files are kept, so that a program that is copying the store misses nothing. At least
        /// 0; 15 minutes by default.
        public var compactionGrace: Double = 15 * 60
        /// SQLite storage: seconds of waiting for other writing processes before `.busy`; 0: no waiting.
        public var busyTimeout: Double = 10
        /// Whether values are stored as differences from earlier ones.
        public var differences = Differences.auto
        /// The permissions of new files, less the process's mask; users who may read may also search directories. Nil: 0o600, for their
        /// owner alone.
        public var fileMode: UInt32?
        /// Progress (in versions) and cancellation of opening, which then throws `.cancelled` and leaves nothing open. Not used afterwards.
        public var control = OperationControl()
        /// Creates the defaults: a durable store in files, created if it is missing, with about 64 MiB for caches.
        public init() {}
    }

    package let storage: any Storage
    /// Guards `dag`, `isClosed`, and the properties that name it.
    package let lock: ReadWriteLock
    let sharedHistory = SharedHistory()
    package var dag: History {
        @inline(__always) get { sharedHistory.dag }
        set { sharedHistory.dag = newValue }
    }
    /// Guarded by `lock`.
    var pending = PendingVersions()
    /// The contents of the caches when the store was opened. Guarded by `lock`.
    package var caches = KnownCaches()
    /// Records that were found and cannot be read. Guarded by `lock`.
    var findings = Findings()
    /// The state of a scan. Used under the commit lock.
    let scanned = Scanned()
    /// Versions that are being stored.
    package let commits: Commits
    private var isClosed = false
    /// Set in the child of a fork, which has one thread. Read without the lock, since the lock may stay taken forever in the child.
    private var isDiscarded = false
    /// The maps of versions.
    package let maps: MapProvider
    /// The records of versions, in the storage.
    package let records: Records
    /// Set before the store is used.
    package var environment = Environment()
    /// The devices with clocks ahead whose versions were received.
    package let clocksAhead = Guarded(ClocksAhead())
    /// The names of the coordinators that are open on this store.
    private let coordinators = Guarded<Set<String>>([])
    let observers = Observers<[VersionID]>()
    /// Notified once, when the store is closed or released.
    package let ended = Observers<Void>()
    /// The newest valid rules before invalid ones.
    package let validSchemas = ValidSchemas()
    /// State of higher layers that belongs to this store.
    package let attachments = Attachments()
    /// Checks that may refuse versions before they are made.
    package let savingGuards = SavingGuards()
    /// Whether and how values are stored as differences.
    let differencing: Differencing
    /// What erasing needs; nil until it is needed. Guarded by `lock`.
    var erasureParts: ErasureParts?
    /// The versions that came from others without bytes of values. Nil: not read yet.
    var lacking: Set<VersionID>?
    /// Whether there were no orders to erase when this handle first received versions.
    var hasNoOrders = false

    /// Opens the store at `path`, or creates it.
    /// - Parameters:
    ///   - path: the directory (file) or the database file (sqlite); ignored for the others.
    ///   - options: what to open, and how; by default a missing store is created in files.
    /// - Throws: `.notFound`, `.notAStore`, `.newerFormat`, `.notADirectory`, `.permission`, `.noSpace`, `.io`.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await Store.open(path:options:).")
    public convenience init(path: String, options: Options = Options()) throws {
        try options.check()
        guard !path.utf8.contains(0) else {
            throw StoreError(.invalidArgument, "The path of a store contains a NUL byte, which no path can contain. Give another.")
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

    /// - Parameter loading: false leaves the history empty, for callers that read records only by their locations.
    /// - Parameter began: the time when opening began, for the log.
    package init(storage: any Storage, options: Options, loading: Bool = true, began: Double? = nil) throws {
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
        records.erasures = self
        guard loading else { return }
        let control = options.control.paced(.reading, doing: "Opening \(storage.description)")
        var isOpen = false
        do {
            (_, isOpen) = try settleErasures(isOpening: true) { try load(control) }
            if isOpen || areErasuresNew(since: settledErasures ?? 0) {
                // While another handle moves records from file to file, a listing of the files can miss both.
                try Waiting.looking(at: control) { try whileRecordsStay {} }
            }
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
        orders.read()
        // Orders may be newer than the caches: a database may have been put back from a copy.
        if hasNewsOfErasures || isOpen {
            erasureState.withLock { $0.isNews = false }
            followIfOrdered()
        }
        compactIfItPays(.opened, control.forPart)
        // If compacting was cancelled, opening is cancelled as well.
        do { try control.look() } catch {
            giveUp(error)
            throw error
        }
    }

    /// Releases connections, descriptors and objects of the host after a failed opening. Nothing was written.
    private func giveUp(_ error: any Error) {
        // `deinit` then has nothing to do.
        isClosed = true
        try? storage.close(discarding: false)
        Log.write(.info, "\(description) was not opened: \(error)")
    }

    deinit {
        GivingWay.remove(maps)
        try? close()
        pathText.deallocate()
    }

    /// The kind and the path of the store, for messages.
    public var description: String { storage.description }
    /// The absolute path; empty for a store in memory or in a storage of the host.
    public var path: String { storage.path }
    /// The path in UTF-8, followed by a NUL; valid as long as the store.
    package let pathText: UnsafeBufferPointer<UInt8>
    /// Whether the store was opened for reading only.
    public var isReadOnly: Bool { storage.isReadOnly }
    /// Whether the calling thread is inside a callback of the host's storage, which must not call the store.
    package var isCallingBack: Bool { storage.isCallingBack }

    /// Flushes, seals and closes the store. Later calls throw `.closed`; closing again does nothing.
    public func close() throws {
        if isDiscarded { return }
        let first = lock.withWrite { () -> Bool in
            defer { isClosed = true }
            return !isClosed
        }
        guard first else { return }
        defer { ended.tell(()) }
        let began = Log.begin(.info)
        if !commits.lock.isLeft {
            let areNew = orders.read()
            if areNew || lock.withRead({ erasureParts })?.state.withLock({ $0.isWaiting }) == true { followIfOrdered() }
            Thinning(self).forgetIfItPays(isDue: false)
            compactIfItPays(.closing)
        }
        do {
            try withCommitLock {
                noteScanner(llvs_shim_thread_number())
                defer { noteScanner(nil) }
                if !commits.lock.isLeft { saveCaches() }
                try storage.close(discarding: false)
            }
        } catch {
            Log.write(.info, "Closed \(description), which failed: \(error)")
            throw error
        }
        Log.write(.info, "Closed \(description)\(Log.duration(since: began)).")
    }

    /// Closes the store without writing anything or taking any lock, for the child of a fork.
    public func discard() {
        isDiscarded = true
        isClosed = true
        try? storage.close(discarding: true)
    }

    /// Throws when the store is closed. The caller holds the lock.
    @inline(__always)
    package func checkOpenLocked() throws {
        lock.assertHeld("The state of whether a store is closed")
        if isClosed || commits.lock.isLeft { throw closedError }
    }

    private var closedError: StoreError {
        StoreError(
            .closed,
            commits.lock.isLeft
                ? "The store is closed, since a callback of its storage did not return while a version was being stored: "
                    + "it may or may not be stored. Open the store again to continue."
                : "The store is closed. Open it again to continue.")
    }

    /// Runs `body`, in which the storage appends or scans, in one thread at a time. Messages are logged afterwards.
    @inline(__always)
    package func withCommitLock<R>(_ body: () throws -> R) rethrows -> R {
        try Log.holding { try commits.lock.run(body) }
    }
    package func checkOpen() throws { try lock.withRead { try checkOpenLocked() } }

    package func checkWritable(_ what: String) throws {
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

    /// Reads, writes and deletes small named blobs beside the records, which may be lost with the caches.
    package func cacheGet(_ name: String) throws -> [UInt8]? { try checkOpen(); return try storage.cacheGet(name) }
    package func cachePut(_ name: String, _ data: [UInt8]) throws { try checkOpen(); try storage.cachePut(name, data) }
    package func cacheDelete(_ name: String) throws { try checkOpen(); try storage.cacheDelete(name) }

    /// Returns the note to which the coordinator of this name writes its current version; release it by `releaseNote`.
    /// - Throws: `.busy` if a coordinator of this name is open, in this process or another.
    package func claimNote(ofCoordinator name: String) throws -> any StorageNote {
        try checkOpen()
        func busy(_ where: String) -> StoreError {
            StoreError(
                .busy,
                "A coordinator named \"\(name)\" is open on \(description) already, \(`where`): "
                    + "each would save at its own place, and make two heads. Close that one, or open this one under another name."
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
    package func releaseNote(ofCoordinator name: String) { coordinators.withLock { _ = $0.remove(name) } }
}
