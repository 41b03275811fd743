/// A store with a current version, exchanges and an arbiter: the simplest way to use the library.
///
/// Saves move the current version. Exchanges never move it, except for the first content of a new store; `merge` merges what they
/// brought, and `sync` does a whole round. The current version and the state of exchanges are stored in the cache directory of the store,
/// under the coordinator's name: two processes with two names may use one store, each at its own version. A name can only be open once at
/// a time.
///
/// Threads: all methods may be called from any thread. Saves and merges are serialised, each based on the one before. So are exchanges,
/// which run beside them. An arbiter must not save or merge through the coordinator that called it, and a progress callback must not
/// exchange through it: they get `.busy`.
public final class StoreCoordinator: @unchecked Sendable {
    // Sendable: `lock` guards what is documented to be under it; `saveGate` and `exchangeGate` guard the rest.
    /// How a coordinator works.
    public struct Options: Sendable {
        /// How its store is opened.
        public var store = Store.Options()
        /// The name under which the current version is stored: `[a-z0-9._-]{1,40}`.
        public var name = "main"
        /// Resolves conflicts in `merge`.
        public var arbiter: any MergeArbiter = RulesArbiter()
        /// Metadata for every version that `save` creates, in addition to that of the save itself.
        public var defaultMetadataForNewVersions = Metadata()
        /// Identifies the device, or its user, whose saves `undo` reverts: saves then have it in their metadata. It must be the same each
        /// time the coordinator is opened, and different on each device. If it is nil, nothing can be undone.
        public var device: String?
        /// Whether exchanges store snapshots.
        public var snapshotPolicy = SnapshotPolicy.off
        /// Options of a coordinator named "main" that merges by the rules in the store and stores no snapshots.
        public init() {}
    }

    /// When a snapshot is stored beside the versions of an exchange.
    public enum SnapshotPolicy: UInt32, Sendable {
        /// Only when `Snapshots.put` is called.
        case off = 0
        /// Written after an exchange if the last snapshot is at least 7 days and 20 versions old, missing, or damaged.
        case auto
    }

    /// The current version before and after a call.
    public struct Move: Sendable, Hashable {
        /// The current version before the call.
        public var from: VersionID
        /// The current version after the call; the same if it did not move.
        public var to: VersionID
        /// Creates a move between two versions. If both are equal, nothing moved.
        public init(from: VersionID, to: VersionID) { self.from = from; self.to = to }
        /// Whether the two versions differ.
        public var isMove: Bool { from != to }

        /// Returns this move and a later one as a single move.
        func followed(by later: Move) -> Move { Move(from: from, to: later.to) }
    }

    /// The store. It may also be used directly.
    public let store: Store
    let ownsStore: Bool
    let isReadOnly: Bool
    let options: Options
    /// Serialises saves and merges.
    let saveGate = Gate("coordinator")
    let exchangeGate = Gate("coordinator")
    /// For heads that were compared with the current version: an id in which each differs. Guarded by `saveGate`.
    var differences = KnownDifferences()
    /// Stores the current version. Guarded by `saveGate`.
    var note: any StorageNote
    /// Whether the coordinator is closed. Guarded by `saveGate`.
    var isReleased = false
    /// Guards the fields below.
    let lock = Lock(.leaf)
    /// Written with both `saveGate` and `lock` held, so the holder of `saveGate` may read it without `lock`.
    var current: VersionID
    var attached: [(name: String, exchange: Exchange, place: String)] = []
    /// The names of the exchanges whose other side could not be reached the last time.
    var unreachable: Set<String> = []
    /// The names of the exchanges whose last snapshot was damaged when bootstrapping read it.
    var brokenSnapshots: Set<String> = []
    var metadata: Metadata
    /// Rules that were registered before there was a version to write them on; nil if there are none. Guarded by `saveGate`.
    var registered: [UInt8]?
    /// Saves of which nothing could be undone, each with the state by which that was decided; nil if not read yet. Guarded by `saveGate`.
    var passedOver: [VersionID: [UInt8]]?
    let observers = Observers<VersionID>()
    /// Notified when an exchange was attached or detached.
    let attachments = Observers<Void>()
    /// Notified when the coordinator is closed, and when it is released.
    package let ended = Observers<Void>()

    /// Opens or creates the store at `path`, and continues where the coordinator of that name stopped.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await StoreCoordinator.open(path:options:).")
    public convenience init(path: String, options: Options = Options()) throws {
        let store = try Store(path: path, options: options.store)
        var options = options
        options.store.control = OperationControl()
        do { try self.init(store: store, options: options, ownsStore: true) } catch {
            try? store.close()
            throw error
        }
    }

    /// Uses a store that the caller owns.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await StoreCoordinator.open(store:options:).")
    public convenience init(store: Store, options: Options = Options()) throws {
        try self.init(store: store, options: options, ownsStore: false)
    }

    private init(store: Store, options: Options, ownsStore: Bool) throws {
        guard (1...40).contains(options.name.utf8.count), options.name.utf8.allSatisfy(CoordinatorName.isNameByte) else {
            throw StoreError(
                .invalidArgument, "\"\(options.name)\" cannot name a coordinator: 1 to 40 of a-z, 0-9, dot, underscore and hyphen can.")
        }
        self.store = store
        self.ownsStore = ownsStore
        isReadOnly = store.isReadOnly
        self.options = options
        metadata = options.defaultMetadataForNewVersions
        current = EmptyRoot.id
        note = try store.claimNote(ofCoordinator: options.name)
        // From here on `deinit` releases the note, also if something is thrown.
        let saved = try note.read().flatMap { $0.withUnsafeBytes { VersionID(validating: $0) } }
        if let saved, try saved == EmptyRoot.id ? isEmpty() : store.readableVersion(saved) != nil {
            current = saved
            return
        }
        current = try startingVersion() ?? EmptyRoot.id
        if let saved, saved != EmptyRoot.id {
            missingVersion = saved
            Log.write(
                .warning,
                "The version \(saved), where the coordinator \(options.name) was, is not in \(store.description), "
                    + "or waits for something that is missing. It continues at \(current). Verify the store.")
        }
    }

    deinit {
        releaseNote()
        ended.tell(())
    }

    /// Returns the version to start at without a note: the most recent head without a branch, else the most recent head.
    func startingVersion() throws -> VersionID? {
        // A version from the cache may turn out to be damaged. Then it is no longer a head.
        while let id = try store.mostRecentHeadIDToMerge(options.arbiter) ?? store.headIDs().first {
            if try store.lock.withRead({ store.caches.rows }) == 0 || store.readableVersion(id) != nil { return id }
        }
        return nil
    }

    func isEmpty() throws -> Bool { try store.mostRecentHead() == nil }

    /// Closes the exchanges, and the store if the coordinator opened it. Waits for a running save or merge of another thread, whose
    /// version is still written to the note. Later calls throw `.closed`. Within a callback of a save or merge, this does not wait for
    /// it.
    public func close() throws {
        let exchanges = lock.withLock { () -> [Exchange] in
            defer { attached = [] }
            return attached.map(\.exchange)
        }
        // Report the end before waiting, so that a running round of a syncer is cancelled.
        ended.tell(())
        for exchange in exchanges { exchange.close() }
        releaseNote()
        if ownsStore { try store.close() }
    }

    // MARK: The current version

    /// The last current version if the store did not have it on opening: it was lost, or waits for a missing version. Then the
    /// coordinator started elsewhere.
    public private(set) var missingVersion: VersionID?

    /// The current version. In a new store it is the empty root.
    public var currentVersion: VersionID { lock.withLock { current } }

    /// Moves the current version, for example to an earlier one or to a branch.
    /// - Throws: `.unknownVersion`.
    public func setCurrentVersion(_ id: VersionID) throws {
        if try store.version(id) == nil {
            throw StoreError(
                .unknownVersion,
                "Version \(id) is not in \(store.description), so it cannot become the current one. "
                    + "Retrieve it from its maker, or check the id.",
                versionID: id.description)
        }
        _ = try moving("Setting the current version") {
            guard current != id else { return }
            try persist(id)
            lock.withLock { current = id }
        }
    }

    /// Calls back with the new current version after each change, on the thread that made the change, until cancelled. The callback may
    /// save and merge.
    public func observe(_ changed: @escaping @Sendable (VersionID) -> Void) -> any ExchangeObservation { observers.add(changed) }

    /// Metadata that `save` adds to versions, in addition to its own.
    public var defaultMetadataForNewVersions: Metadata {
        get { lock.withLock { metadata } }
        set { lock.withLock { metadata = newValue } }
    }

    /// Runs a call that may move the current version, one at a time. Observers are called when the next one may run.
    func moving<R>(_ what: String, _ control: OperationControl? = nil, _ body: () throws -> R) throws -> (result: R, move: Move) {
        var told: VersionID?
        defer { if let told { observers.tell(told) } }
        return try saveGate.run(what, control) {
            if isReleased { throw ClosedNote.error }
            let from = current
            defer { if current != from { told = current } }
            let result = try body()
            return (result, Move(from: from, to: current))
        }
    }

    /// Returns a unique branch name: `base_UUID`.
    public static func randomBranchName(_ base: String) -> String { "\(base)_\(VersionID.random())" }
}
