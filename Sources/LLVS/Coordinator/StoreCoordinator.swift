/// A store, the version an app is at, exchanges and an arbiter: the five-line way to use all this.
///
/// Saves move the current version; exchanges never touch it (but for the first content of a new store);
/// `merge` folds what came into it, and `sync` does a whole round. The current version and what exchanges want to remember survive in
/// the cache directory of the store, under the coordinator's name: two processes with two names may use one store,
/// each at its own version. One name is open once at a time.
///
/// Threads: all methods may be called from any thread. Saves and merges are serialised, each on the one before;
/// so are exchanges, beside them. An arbiter may not save or merge, nor a progress callback exchange, through the
/// coordinator that called it: they get `.busy`.
public final class StoreCoordinator: @unchecked Sendable {
    // Sendable: `lock` guards what is said to be under it; `saveGate` and `exchangeGate` the rest.
    /// How a coordinator works.
    public struct Options: Sendable {
        /// How its store is opened.
        public var store = Store.Options()
        /// Under which the current version is kept: `[a-z0-9._-]{1,40}`.
        public var name = "main"
        /// Resolves conflicts in `merge`.
        public var arbiter: any MergeArbiter = RulesArbiter()
        /// Given to every version that `save` makes, beside what the save itself gives.
        public var defaultMetadataForNewVersions = Metadata()
        /// Names the device, or the person at it, whose saves `undo` takes back: saves then carry it in their metadata. The same each time
        /// the coordinator is opened, and another on each device. Nil: nothing can be undone.
        public var device: String?
        /// Whether exchanges put snapshots.
        public var snapshotPolicy = SnapshotPolicy.off
        /// A coordinator named "main" that merges by the rules in the store and puts no snapshots.
        public init() {}
    }

    /// When a snapshot is put beside the versions of an exchange.
    public enum SnapshotPolicy: UInt32, Sendable {
        /// Only when `Snapshots.put` is called.
        case off = 0
        /// After an exchange, when the last is at least 7 days and 20 versions old, is missing, or is broken.
        case auto
    }

    /// Where a call moved the current version.
    public struct Move: Sendable, Hashable {
        /// Where it was.
        public var from: VersionID
        /// Where it is now; the same when it stayed.
        public var to: VersionID
        /// A move between two versions; the same twice means that nothing moved.
        public init(from: VersionID, to: VersionID) { self.from = from; self.to = to }
        /// Whether it is another.
        public var isMove: Bool { from != to }

        /// With a later move, as one.
        func followed(by later: Move) -> Move { Move(from: from, to: later.to) }
    }

    /// The store; it may be used directly as well.
    public let store: Store
    let ownsStore: Bool
    let isReadOnly: Bool
    let options: Options
    /// Serialises saves and merges.
    let saveGate = Gate("coordinator")
    let exchangeGate = Gate("coordinator")
    /// Of heads that were compared with the current version: an id in which each differs. Used by who is through `saveGate`.
    var differences = KnownDifferences()
    /// Keeps the current version. Used and replaced by who is through `saveGate`.
    var note: any StorageNote
    /// Whether it is closed. Read and written by who is through `saveGate`.
    var isReleased = false
    /// Guards the fields below.
    let lock = Lock(.leaf)
    /// Written by who is through `saveGate`, and so may be read there without the lock.
    var current: VersionID
    var attached: [(name: String, exchange: Exchange, place: String)] = []
    /// The names of the exchanges whose other side could not be reached the last time.
    var unreachable: Set<String> = []
    /// The names of the exchanges beside which bootstrapping met a damaged snapshot.
    var brokenSnapshots: Set<String> = []
    var metadata: Metadata
    /// Rules that were registered before there was a version to write them on; nil: none. Used by who is through `saveGate`.
    var registered: [UInt8]?
    /// Saves of which nothing could be undone, and what that was judged by; nil: not read yet. Used by who is through `saveGate`.
    var passedOver: [VersionID: [UInt8]]?
    let observers = Observers<VersionID>()
    /// Told when an exchange was attached or detached.
    let attachments = Observers<Void>()
    /// Told when it is closed, and when it is let go of.
    package let ended = Observers<Void>()

    /// Opens or makes the store at `path`, and takes up where the coordinator of that name left off.
    public convenience init(path: String, options: Options = Options()) throws {
        let store = try Store(path: path, options: options.store)
        var options = options
        options.store.control = OperationControl()
        do { try self.init(store: store, options: options, ownsStore: true) } catch {
            try? store.close()
            throw error
        }
    }

    /// Works on a store that stays the caller's.
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
                    + "or waits for something that is missing. It goes on at \(current). Verify the store.")
        }
    }

    deinit {
        releaseNote()
        ended.tell(())
    }

    /// Where to be without knowing better: the most recent head of what carries no branch, else the most recent head.
    func startingVersion() throws -> VersionID? {
        // A version of which a cache told may turn out damaged: then it is none of the heads any more.
        while let id = try store.mostRecentHeadIDToMerge(options.arbiter) ?? store.headIDs().first {
            if try store.lock.withRead({ store.caches.rows }) == 0 || store.readableVersion(id) != nil { return id }
        }
        return nil
    }

    func isEmpty() throws -> Bool { try store.mostRecentHead() == nil }

    /// Closes the exchanges, and the store when the coordinator opened it. Waits for a save or merge of another thread, whose version
    /// is noted then; what follows is `.closed`. From within a callback of a save or merge it does not wait for that.
    public func close() throws {
        let exchanges = lock.withLock { () -> [Exchange] in
            defer { attached = [] }
            return attached.map(\.exchange)
        }
        // Before anything waits: the round of a syncer is cancelled, as by its own end.
        ended.tell(())
        for exchange in exchanges { exchange.close() }
        releaseNote()
        if ownsStore { try store.close() }
    }

    // MARK: The current version

    /// Where the coordinator was when it was last used, when the store had not got that version as it was opened: lost, or waiting
    /// for something that is missing. It went on elsewhere.
    public private(set) var missingVersion: VersionID?

    /// The version that the app is at; the empty root in a new store.
    public var currentVersion: VersionID { lock.withLock { current } }

    /// Moves the current version, for instance back in time or to a branch.
    /// - Throws: `.unknownVersion`.
    public func setCurrentVersion(_ id: VersionID) throws {
        if try store.version(id) == nil {
            throw StoreError(
                .unknownVersion,
                "Version \(id) is not in \(store.description), so it cannot become the current one. "
                    + "Retrieve it from where it was made, or check the id.",
                versionID: id.description)
        }
        _ = try moving("Setting the current version") {
            guard current != id else { return }
            try persist(id)
            lock.withLock { current = id }
        }
    }

    /// Calls back with the new current version after each change of it, on the thread that made it, until cancelled.
    /// The callback may save and merge.
    public func observe(_ changed: @escaping @Sendable (VersionID) -> Void) -> any ExchangeObservation { observers.add(changed) }

    /// Metadata that `save` gives to versions, beside its own.
    public var defaultMetadataForNewVersions: Metadata {
        get { lock.withLock { metadata } }
        set { lock.withLock { metadata = newValue } }
    }

    /// Runs what may move the current version, one at a time; observers hear of it when the next may run.
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

    /// A branch name that nobody else has: `base_UUID`.
    public static func randomBranchName(_ base: String) -> String { "\(base)_\(VersionID.random())" }
}
