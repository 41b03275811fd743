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
    /// How a coordinator works.
    public struct Options: Sendable {
        /// How its store is opened.
        public var store = Store.Options()
        /// Under which the current version is kept: `[a-z0-9._-]{1,40}`.
        public var name = "main"
        /// Resolves conflicts in `merge`.
        public var arbiter: any MergeArbiter = BuiltInArbiter.mostRecentChange
        /// Given to every version that `save` makes, beside what the save itself gives.
        public var defaultMetadataForNewVersions = Metadata()
        /// Whether exchanges put snapshots.
        public var snapshotPolicy = SnapshotPolicy.off
        public init() {}
    }

    /// When a snapshot is put beside the versions of an exchange.
    public enum SnapshotPolicy: UInt32, Sendable {
        case off = 0
        /// After an exchange, when the last is at least 7 days and 20 versions old, is missing, or is broken.
        case auto
    }

    /// Where a value is read.
    public enum Place: Sendable {
        case current
        /// The newest head of a branch.
        case branch(String)
        case version(VersionID)
    }

    /// Where a call moved the current version.
    public struct Move: Sendable, Hashable {
        /// Where it was.
        public var from: VersionID
        /// Where it is now; the same when it stayed.
        public var to: VersionID
        /// Whether it is another.
        public var isMove: Bool { from != to }

        /// With a later move, as one.
        func followed(by later: Move) -> Move { Move(from: from, to: later.to) }
    }

    /// What a save did.
    public struct Saved: Sendable {
        /// The new version; nil when there was nothing to save.
        public var version: Version?
        public var move: Move
    }

    /// The store; it may be used directly as well.
    public let store: Store
    private let ownsStore: Bool
    private let options: Options
    /// Serialises saves and merges.
    private let saveGate = SerialGate()
    private let exchangeGate = SerialGate()
    /// Of heads that were compared with the current version: an id in which each differs. Used by who is through `saveGate`.
    private var differences = KnownDifferences()
    /// Keeps the current version.
    private var note: any StorageNote
    /// Guards the fields below.
    private let lock = Lock()
    private var current: VersionID
    private var isReleased = false
    private var attached: [(name: String, exchange: Exchange)] = []
    private var metadata: Metadata
    private let observers = Observers<VersionID>()

    /// Opens or makes the store at `path`, and takes up where the coordinator of that name left off.
    public convenience init(path: String, options: Options = Options()) throws {
        let store = try Store(path: path, options: options.store)
        do { try self.init(store: store, options: options, ownsStore: true) } catch {
            try? store.close()
            throw error
        }
    }

    /// Works on a store that stays the caller's.
    public convenience init(store: Store, options: Options = Options()) throws { try self.init(store: store, options: options, ownsStore: false) }

    private init(store: Store, options: Options, ownsStore: Bool) throws {
        guard (1...40).contains(options.name.utf8.count), options.name.utf8.allSatisfy(CoordinatorState.isNameByte) else {
            throw StoreError(.invalidArgument, "\"\(options.name)\" cannot name a coordinator: 1 to 40 of a-z, 0-9, dot, underscore and hyphen can.")
        }
        self.store = store
        self.ownsStore = ownsStore
        self.options = options
        metadata = options.defaultMetadataForNewVersions
        current = EmptyRoot.id
        note = try store.claimNote(ofCoordinator: options.name)
        do {
            let saved = try note.read().flatMap { $0.withUnsafeBytes { VersionID(validating: $0) } }
            if let saved, try saved == EmptyRoot.id ? isEmpty() : store.version(saved) != nil {
                current = saved
                return
            }
            current = try startingVersion() ?? EmptyRoot.id
            if let saved, saved != EmptyRoot.id {
                missingVersion = saved
                Log.write(.warning, "The version \(saved), where the coordinator \(options.name) was, is not in \(store.description), or waits for something that is missing. It goes on at \(current). Verify the store.")
            }
        } catch {
            store.releaseNote(ofCoordinator: options.name)
            throw error
        }
    }

    deinit { releaseNote() }

    /// Another may be opened under the name then.
    private func releaseNote() {
        let isFirst = lock.withLock { () -> Bool in
            defer { isReleased = true }
            return !isReleased
        }
        guard isFirst else { return }
        // The file is closed, and so unlocked, with the note.
        note = ClosedNote()
        store.releaseNote(ofCoordinator: options.name)
    }

    /// Where to be without knowing better: the most recent unbranched head, else the most recent head.
    private func startingVersion() throws -> VersionID? {
        let heads = try store.heads()
        return (heads.first { $0.branch == nil } ?? heads.first)?.id
    }

    private func isEmpty() throws -> Bool { try store.heads().isEmpty }

    /// Closes the exchanges, and the store when the coordinator opened it.
    public func close() throws {
        let exchanges = lock.withLock { () -> [Exchange] in
            defer { attached = [] }
            return attached.map(\.exchange)
        }
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
            throw StoreError(.unknownVersion, "Version \(id) is not in \(store.description), so it cannot become the current one. Retrieve it from where it was made, or check the id.", versionID: id.description)
        }
        _ = try moving("Setting the current version") {
            guard currentVersion != id else { return }
            try persist(id)
            move(to: id)
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
    private func moving<R>(_ what: String, _ body: () throws -> R) throws -> (result: R, move: Move) {
        var told: VersionID?
        defer { if let told { observers.tell(told) } }
        return try saveGate.run(what) {
            let from = currentVersion
            defer { if currentVersion != from { told = currentVersion } }
            let result = try body()
            return (result, Move(from: from, to: currentVersion))
        }
    }

    private func persist(_ id: VersionID) throws {
        if !store.isReadOnly { try note.write(id.withASCII { Array($0) }) }
    }

    /// Moves to a version that is stored. That it could not be noted must not look as if it had not been saved.
    private func move(to id: VersionID) {
        guard currentVersion != id else { return }
        do { try persist(id) } catch {
            Log.write(.warning, "The current version of the coordinator \(options.name), \(id), could not be noted: \((error as? StoreError)?.message ?? "\(error)")")
        }
        lock.withLock { current = id }
    }

    // MARK: Saving and reading

    /// Records changes on top of the current version and moves it; with `branch`, on top of the newest head of that
    /// branch (the current version when it has none yet), and the current version moves only if it was that head.
    ///
    /// When heads without a branch are known that have the state of the current version, which is one of them, all of them are first
    /// merged into the empty version that is the same everywhere, and the save stands on that.
    /// - Parameters:
    ///   - expected: the version that the save is to stand on; when another is there by now, nothing is stored.
    ///   - timestamp: as for `Store.makeVersion`.
    /// - Returns: the new version, or nil when there was nothing to save: no changes and no metadata.
    /// - Throws: `.moved` when another version than `expected` is current, and what `makeVersion` throws.
    @discardableResult
    public func save(
        _ changes: [Value.Change], metadata own: Metadata = Metadata(), branch: String? = nil, expected: VersionID? = nil, timestamp: Double? = nil
    ) throws -> Version? {
        try changes.withBorrowed { try save(borrowing: $0, metadata: own, branch: branch, expected: expected, timestamp: timestamp).version }
    }

    /// As above, with bytes that stay the caller's, and values that are asked for piece by piece.
    @discardableResult
    public func save(
        borrowing changes: BorrowedChanges, reading sources: [ValueSource] = [], metadata own: Metadata, branch: String?,
        expected: VersionID? = nil, timestamp: Double? = nil
    ) throws -> Saved {
        let isEmpty = changes.isEmpty && sources.isEmpty && own.isEmpty
        if isEmpty, expected == nil {
            let at = currentVersion
            return Saved(version: nil, move: Move(from: at, to: at))
        }
        let (version, move) = try moving("Saving") { () -> Version? in
            var all = lock.withLock { metadata }
            for entry in own.entries { all[entry.key] = entry.value }
            var base = currentVersion
            var movesCurrent = true
            if let branch {
                all.branch = branch
                if let head = try store.heads(onBranch: branch).first?.id {
                    movesCurrent = head == base
                    base = head
                } else {
                    movesCurrent = false
                }
            }
            if let expected, expected != base {
                throw StoreError(
                    .moved, "Nothing was saved: version \(base) is current\(branch.map { " on the branch \"\($0)\"" } ?? ""), not \(expected), which was expected. Read what is there now, and save again.",
                    versionID: base.description)
            }
            if isEmpty { return nil }
            if branch == nil { base = try store.join(headsLike: base, knowing: &differences) }
            let version = try store.makeVersion(basedOn: base, borrowing: changes, reading: sources, metadata: all, timestamp: timestamp)
            if movesCurrent {
                differences.go(to: version.id, changed: changes.lazy.map(\.id), sources.map(\.id))
                self.move(to: version.id)
            }
            return version
        }
        return Saved(version: version, move: move)
    }

    /// The version that a place names; nil for a branch without a head.
    public func version(at place: Place) throws -> VersionID? {
        switch place {
        case .current: return currentVersion
        case .version(let id): return id
        case .branch(let branch): return try store.heads(onBranch: branch).first?.id
        }
    }

    /// The value that prevails there; nil when none does.
    public func value(_ id: ValueID, at place: Place = .current) throws -> Value? {
        guard let version = try readable(place) else { return nil }
        return try store.value(id, at: version)
    }

    /// The version to read at; nil for a branch without a head.
    public func readable(_ place: Place) throws -> VersionID? {
        try version(at: place)
    }

    // MARK: Exchanging and merging

    /// Attaches an exchange. What it wants to remember is kept under its name (`[a-z0-9._-]{1,40}`).
    public func attach(_ exchange: Exchange, name: String) throws {
        guard (1...40).contains(name.utf8.count), name.utf8.allSatisfy(CoordinatorState.isNameByte) else {
            throw StoreError(.invalidArgument, "\"\(name)\" cannot name an exchange: 1 to 40 of a-z, 0-9, dot, underscore and hyphen can.")
        }
        guard exchange.store === store else {
            throw StoreError(.invalidArgument, "The exchange \"\(name)\" works on another store than the coordinator. Open it with the coordinator's store.")
        }
        let state = try store.cacheGet(CoordinatorState.exchangeName(options.name, name))
        try lock.withLock {
            guard !attached.contains(where: { $0.name == name }) else {
                throw StoreError(.invalidArgument, "An exchange named \"\(name)\" is attached already. Give another name.")
            }
            if let state { exchange.restorationState = state }
            attached.append((name, exchange))
        }
    }

    /// Lets go of an exchange, without closing it; nil when none has the name.
    public func detach(_ name: String) -> Exchange? {
        lock.withLock { attached.firstIndex { $0.name == name }.map { attached.remove(at: $0).exchange } }
    }

    /// Those attached, in the order of attaching.
    public var exchanges: [(name: String, exchange: Exchange)] { lock.withLock { attached } }

    /// What became of one exchange.
    public struct Exchanged: Sendable {
        /// Its name.
        public var name: String
        public var retrieved = ExchangeResult()
        public var sent = ExchangeResult()
        /// What ended it; what was done before stands.
        public var failure: (any Error)?
    }

    /// What a call did with all exchanges.
    public struct ExchangeOutcome: Sendable {
        /// One for each exchange that had its turn.
        public var exchanges: [Exchanged] = []
        public var move: Move
        /// The first failure.
        public var failure: (any Error)? { exchanges.lazy.compactMap(\.failure).first }
        /// As it is when nothing failed.
        public func get() throws -> ExchangeOutcome {
            if let failure { throw failure }
            return self
        }
    }

    /// Retrieves from, then sends to, each attached exchange in turn. The current version stays where it is, unless
    /// nothing had been saved yet: then it moves to the most recent unbranched head.
    ///
    /// The failure of one exchange is told beside what others did; when it was cancelled, those behind it have no turn.
    /// - Throws: `.busy` from within a callback of a running exchange, `.closed`.
    public func exchangeAll(_ control: OperationControl = OperationControl()) throws -> ExchangeOutcome {
        try exchangeGate.run("Exchanging") {
            let at = currentVersion
            var outcome = ExchangeOutcome(move: Move(from: at, to: at))
            for (name, exchange) in exchanges {
                var part = Exchanged(name: name)
                do {
                    part.retrieved = try exchange.retrieve(control)
                    if let move = try adoptFirstContent() { outcome.move = outcome.move.followed(by: move) }
                    part.sent = try exchange.send(control)
                    try saveState(name, exchange)
                    if options.snapshotPolicy == .auto { try putSnapshotWhenDue(exchange, control) }
                } catch {
                    part.failure = error
                }
                outcome.exchanges.append(part)
                if (part.failure as? StoreError)?.code == .cancelled { break }
            }
            return outcome
        }
    }

    /// As `exchangeAll`, but the first failure is thrown after all exchanges had their turn.
    @discardableResult
    public func exchange(_ control: OperationControl = OperationControl()) throws -> ExchangeOutcome { try exchangeAll(control).get() }

    /// What a whole round did.
    public struct SyncOutcome: Sendable {
        /// What was exchanged before the merge.
        public var before: ExchangeOutcome
        /// What was exchanged after it; nil when there was no need to.
        public var after: ExchangeOutcome?
        /// Where all of it together moved the current version.
        public var move: Move
        /// Whether the merge moved the current version.
        public var hasMerged = false
        /// What ended the merge.
        public var mergeFailure: (any Error)?
        /// The first failure of all.
        public var failure: (any Error)? { before.failure ?? mergeFailure ?? after?.failure }
        /// As it is when nothing failed.
        public func get() throws -> SyncOutcome {
            if let failure { throw failure }
            return self
        }
    }

    /// A whole round: exchanges, merges what came into the current version, and exchanges again when that changed something, so that
    /// what was merged does not wait for the next round. Of several exchanges each gets what came from the others.
    ///
    /// What fails is told beside what was done: without a connection, what is here already is merged all the same.
    /// - Throws: `.busy` from within a callback of a running exchange or merge, `.closed`.
    public func syncAll(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()
    ) throws -> SyncOutcome {
        let first = try exchangeAll(control)
        var outcome = SyncOutcome(before: first, move: first.move)
        if (first.failure as? StoreError)?.code == .cancelled { return outcome }
        var made = false
        do {
            let merged = try mergeTelling(selection: selection, arbiter: arbiter, metadata: metadata, control)
            outcome.move = outcome.move.followed(by: merged)
            made = merged.isMove
            outcome.hasMerged = made
        } catch {
            outcome.mergeFailure = error
        }
        let isPassedOn = first.exchanges.count > 1 && first.exchanges.contains { !$0.retrieved.versions.isEmpty }
        if made || isPassedOn {
            let second = try exchangeAll(control)
            outcome.after = second
            outcome.move = outcome.move.followed(by: second.move)
        }
        return outcome
    }

    /// As `syncAll`, but the first failure is thrown after everything had its turn.
    @discardableResult
    public func sync(
        selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()
    ) throws -> SyncOutcome { try syncAll(selection: selection, arbiter: arbiter, metadata: metadata, control).get() }

    private func saveState(_ name: String, _ exchange: Exchange) throws {
        guard !store.isReadOnly else { return }
        let key = CoordinatorState.exchangeName(options.name, name)
        let state = exchange.restorationState
        if try store.cacheGet(key) ?? [] != state { try store.cachePut(key, state) }
    }

    /// Before the first save, content that arrived becomes the current version; nil when it is something else already.
    private func adoptFirstContent() throws -> Move? {
        guard currentVersion == EmptyRoot.id else { return nil }
        return try moving("Taking up the first content") {
            guard currentVersion == EmptyRoot.id, let head = try startingVersion() else { return }
            move(to: head)
        }.move
    }

    /// Folds heads into the current version and moves it there. When all of them have the state of the current version, nothing is
    /// made, and the newest of them is the one to be at.
    /// - Returns: whether the current version changed.
    @discardableResult
    public func merge(selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Bool {
        try mergeTelling(selection: selection, arbiter: arbiter, metadata: metadata, control).isMove
    }

    /// As above; answers where the current version was, and is.
    public func mergeTelling(selection: HeadSelection = .unbranched, arbiter: (any MergeArbiter)? = nil, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Move {
        try store.reloadHistory()
        let adopted = try adoptFirstContent()
        let merged = try moving("Merging") {
            guard let merged = try store.mergeHeads(into: currentVersion, arbiter: arbiter ?? options.arbiter, selection: selection, metadata: metadata, control) else { return }
            move(to: merged.id)
        }.move
        return adopted?.followed(by: merged) ?? merged
    }

    // MARK: Snapshots

    private func putSnapshotWhenDue(_ exchange: Exchange, _ control: OperationControl) throws {
        let snapshots = Snapshots(store: store, transport: exchange.transport)
        let count = UInt64(try store.statistics().versions)
        guard count > 0 else { return }
        do {
            if let last = try snapshots.manifest(), !last.isForeign {
                let age = Clock.now() - last.createdAt
                // What the manifest says may be anything.
                let isDue = age >= 7 * 86_400 && (last.versionCount > count || count - last.versionCount >= 20)
                if try !isDue && !snapshots.lacksChunks() { return }
            }
        } catch let error as StoreError where error.code == .snapshotDamaged {
            Log.write(.warning, "The snapshot beside \(exchange.transport.description) is broken and is replaced.")
        }
        do { _ = try snapshots.put(control) } catch let error as StoreError where error.code == .unsupported {
            Log.write(.info, error.message)
        }
    }

    /// Restores the snapshot beside an attached exchange into the store, which must be empty or hold one version,
    /// and moves the current version to the most recent unbranched head when nothing had been saved yet.
    /// - Returns: where the current version was, and is; nil when there was no snapshot.
    @discardableResult
    public func bootstrapFromSnapshot(_ control: OperationControl = OperationControl()) throws -> Move? {
        try exchangeGate.run("Restoring a snapshot") {
            let at = currentVersion
            for (_, exchange) in exchanges {
                do { _ = try Snapshots(store: store, transport: exchange.transport).restore(control) } catch let error as StoreError
                    where error.code == .snapshotMissing || error.code == .unsupported || error.code == .foreignSnapshot { continue }
                return try adoptFirstContent() ?? Move(from: at, to: at)
            }
            return nil
        }
    }

    // MARK: Names and places

    /// A branch name that nobody else has: `base_UUID`.
    public static func randomBranchName(_ base: String) -> String { "\(base)_\(VersionID.random())" }
}

/// Names under which coordinators keep what they remember.
enum CoordinatorState {
    static func isNameByte(_ b: UInt8) -> Bool {
        switch b {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }
    static func currentName(_ coordinator: String) -> String { "coordinator-\(coordinator)" }
    static func exchangeName(_ coordinator: String, _ exchange: String) -> String { "exchange-\(coordinator)-\(exchange)" }
}

/// Heads that were compared with the version that a coordinator is at, and one id of each in which the two differ: a save that does not
/// change it leaves them different.
struct KnownDifferences {
    private(set) var version: VersionID?
    private(set) var heads: [VersionID: ValueID] = [:]

    /// Forgets what is known of another version than this.
    mutating func begin(at version: VersionID) {
        if self.version != version { heads = [:] }
        self.version = version
    }
    /// Keeps in mind those that were asked about last.
    mutating func keep(_ known: [VersionID: ValueID]) { heads = known }

    /// The version was saved on the one that is known of.
    mutating func go(to version: VersionID, changed: some Sequence<UnsafeRawBufferPointer>, _ others: [ValueID]) {
        self.version = version
        guard !heads.isEmpty else { return }
        let changed = Set(changed.map { ValueID(unchecked: $0) }).union(others)
        heads = heads.filter { !changed.contains($0.value) }
    }
}
