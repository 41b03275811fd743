/// Moves versions between a store and the other side of a transport, both ways, never merging.
///
/// Safe from all threads: `retrieve` and `send` of one exchange run one at a time, and several exchanges
/// may work on one store at once. Only failures of the transport or of the store itself are thrown. What
/// cannot be taken or sent is a problem in the result, by name and reason; it holds back only what
/// depends on it. An interrupted or cancelled exchange keeps what was added whole and can be run again.
public final class Exchange: @unchecked Sendable {
    // Sendable: `gate` lets one call at a time through; its parts have locks.
    /// The store on this side.
    public let store: Store
    /// The way to the other side.
    public let transport: any ExchangeTransport
    /// How it goes about it.
    public let options: Options
    private let gate: Gate
    /// Guarded by the gate.
    private var memory: ExchangeMemory
    /// Told when it is closed, and when it is let go of.
    package let ended = Observers<Void>()

    /// How an exchange goes about it.
    public struct Options: Sendable {
        /// Whether `send` lists value ids that another implementation cannot hold, as problems (`.unportableID`) beside the versions,
        /// which are sent all the same. Each id once for each exchange. Reads the change tables of what is sent once more, and
        /// for ids beyond ASCII, once, the ids at all heads.
        public var reportsUnportableIDs = false
        /// Whether no other implementation reads the place, as the host knows. Unless it says so, nothing is saved into the store, while an
        /// exchange of single files is open, at which another implementation fails for good: a new value id that would take more than 255
        /// bytes in its file names or holds a NUL, and metadata with two keys that differ by normalization alone (`.unportableID`). What
        /// comes from elsewhere is sent all the same.
        public var hasNoOtherReaders = false
        /// For what is compressed (`LLZF`) in a snapshot of another implementation.
        public var decode: ForeignDecoder?
        /// Nothing is told of ids that others cannot hold, and snapshots of others are read where they are not compressed.
        public init() {}
    }

    /// The exchange keeps both; closing the store is up to whoever opened it.
    public init(store: Store, transport: any ExchangeTransport, options: Options = Options()) {
        self.store = store; self.transport = transport; self.options = options
        memory = ExchangeMemory(checkedRows: store.rowCount)
        gate = Gate("exchange") { transport.close() }
        if !options.hasNoOtherReaders { store.savingGuards.add(self) }
    }

    /// Fetches the versions that are not here, and adds them, predecessors first, in batches of about 5 MB.
    ///
    /// One listing when there is nothing new, or less where the transport can tell that nothing changed. A version that is here already is
    /// not fetched again, so that
    /// a file of it that differs goes unnoticed; `verifyKnown` fetches all and reports those as problems
    /// (`.versionMismatch`, or what is wrong with the file). Versions in which reading or verifying the store has met damage are
    /// fetched, too, and made whole; with `verifyKnown` all are looked at.
    /// - Parameters:
    ///   - control: called with stages `.listing`, `.receiving` and `.adding`, in versions.
    ///   - verifyKnown: fetches and compares what is here already, too.
    /// - Returns: the versions added, in that order, and the problems met.
    /// - Throws: what the transport throws; `.cancelled`, `.closed`, `.busy` from within its own callbacks, and
    ///   what keeps the store from adding (`.readOnly`, `.noSpace`, `.io`).
    public func retrieve(_ control: OperationControl = OperationControl(), verifyKnown: Bool = false) throws -> ExchangeResult {
        try gate.run("Retrieving from \(transport.description)") {
            if let transport = transport as? any StoreTransport,
                let result = try Exchange.logged(
                    "Retrieved", transport,
                    {
                        try transport.retrieve(into: store, verifyKnown: verifyKnown, control)?.counting()
                    })
            {
                return store.tellingOfClocks(result)
            }
            var retrieval = Retrieval(store: store, transport: transport, control: control, verifyKnown: verifyKnown, memory: memory)
            defer { memory = retrieval.memory }
            return try store.tellingOfClocks(Exchange.logged("Retrieved", transport) { try retrieval.run().counting() } ?? ExchangeResult())
        }
    }

    /// Runs what belongs to no other call at the same time.
    func exclusively<R>(_ what: String, _ body: () throws -> R) throws -> R { try gate.run("\(what) of \(transport.description)", body) }

    /// Sends the versions that are not there, predecessors first, and writes anew those whose files there are
    /// known to be unusable: found so by an earlier retrieve of this exchange, or empty or cut short. For the latter
    /// it looks at the newest 500 versions each time, and at 500 others in turn; at all, once, where a version file was met that has
    /// the digest beside the version, as we wrote it before: those are written anew as well. What it meets for the first time, or in
    /// another state than before, it reads where the transport can tell (`ExchangeTransport.takeChanged`), and writes anew what is not
    /// the version of that id.
    /// - Parameter control: called with stages `.listing`, `.verifying` and `.sending`, in versions.
    /// - Returns: the versions sent, in that order, and the problems met.
    /// - Throws: what the transport throws; `.cancelled`, `.closed`, `.busy` from within its own callbacks.
    public func send(_ control: OperationControl = OperationControl()) throws -> ExchangeResult {
        try gate.run("Sending to \(transport.description)") {
            if let transport = transport as? any StoreTransport,
                let result = try Exchange.logged("Sent", transport, { try transport.send(from: store, control)?.counting() })
            {
                return result
            }
            var sending = Sending(
                store: store, transport: transport, control: control, reportsUnportableIDs: options.reportsUnportableIDs, memory: memory)
            defer { memory = sending.memory }
            return try Exchange.logged("Sent", transport) { try sending.run().counting() } ?? ExchangeResult()
        }
    }

    /// Calls back, on a thread of its own, whenever the other side has gained versions that are not here, or may have, until the
    /// observation is cancelled or let go; nil when the transport cannot tell. What this store sent itself is not told.
    /// The callback may retrieve.
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        try gate.checkOpen("Observing \(transport.description)")
        guard transport.hearsItself else { return try transport.observe(changed) }
        return try transport.observe { [weak self] in
            guard let self, mayHaveNews else { return }
            changed()
        }
    }

    /// Whether something is listed there that is not here; also when that cannot be found out. Not waited for without end: whoever
    /// exchanges may be waiting for the observation to end.
    private var mayHaveNews: Bool {
        for _ in 0..<100 {
            do {
                let hasNews = try gate.runUnlessBusy("Listing what is in \(transport.description)") {
                    if let transport = transport as? any StoreTransport, let hasNews = try transport.hasNews(for: store) { return hasNews }
                    let listing = try transport.list(OperationControl())
                    return try !store.unknown(among: listing.versions + listing.changesOnly).isEmpty
                }
                if let hasNews { return hasNews }
            } catch let error as StoreError where error.code == .closed { return false } catch { return true }
            usleep(20_000)
        }
        return true
    }

    /// Throws `.closed` once it is closed: for calls that would not notice by themselves.
    package func checkOpen() throws { try gate.checkOpen("Using the exchange with \(transport.description)") }

    /// What the transport wants to find again in a later process. Opaque.
    public var restorationState: [UInt8] {
        get { transport.restorationState }
        set { transport.restorationState = newValue }
    }

    /// Closes the transport once a running retrieve or send is over. Later calls throw `.closed`; closing again does nothing.
    public func close() {
        store.savingGuards.remove(self)
        gate.close()
        ended.tell(())
    }
    deinit { ended.tell(()) }

    private static func logged(_ what: String, _ transport: any ExchangeTransport, _ run: () throws -> ExchangeResult?) throws
        -> ExchangeResult?
    {
        let began = Log.begin(.info), made: ExchangeResult?
        do { made = try run() } catch {
            Log.write(.info, "The exchange with \(transport.description) ended\(Log.duration(since: began)): \(error)")
            throw error
        }
        guard let result = made else { return nil }
        Log.write(
            .info,
            "\(what) \(result.versions.count) versions\(result.repaired.isEmpty ? "" : ", repaired \(result.repaired.count)"), with "
                + "\(result.problems.count) problems: \(transport.description)\(Log.duration(since: began))."
        )
        for problem in result.problems { Log.write(.warning, problem.error.message) }
        return result
    }
}

extension Exchange: SavingGuard {
    func refusal(of id: UnsafeRawBufferPointer) -> StoreError? {
        guard let failure = UnportableIDs.failure(id), transport.isReadByOthers(store) else { return nil }
        let value = ValueID(unchecked: id)
        return StoreError(
            .unportableID,
            "Nothing was saved under the value id \"\(value)\": \(failure). Another implementation that reads \(transport.description) "
                + "would retrieve neither the version nor those that build on it. Use another id; or, if no other implementation reads "
                + "that place, open the exchange with no_other_readers.",
            valueID: value)
    }
    func refusal(of metadata: Metadata) -> StoreError? {
        guard let (key, other) = UnportableIDs.twinKeys(metadata), transport.isReadByOthers(store) else { return nil }
        return StoreError(
            .unportableID,
            "Nothing was saved with the metadata keys \"\(key)\" and \"\(other)\", which have the same characters, composed in another "
                + "way. Another implementation that reads \(transport.description) would retrieve neither the version nor those that build "
                + "on it. Use one of them; or, if no other implementation reads that place, open the exchange with no_other_readers.")
    }
}

/// What an exchange knows from its earlier calls.
struct ExchangeMemory {
    /// The place, as the store knows it.
    var place = KnownPlace()
    /// Those whose files there a retrieve found unusable: `send` writes anew those that the store has.
    var broken: Set<VersionID> = []
    /// Those whose version file there a retrieve found to be of the form that we wrote before, which other implementations cannot
    /// read: `send` writes them anew likewise.
    var oldForm: Set<VersionID> = []
    /// Those that came from there since the last `send`.
    var taken: Set<VersionID> = []
    /// Those that are here and there, and whose files there `send` has yet to read.
    var unread: Set<VersionID> = []
    /// How many versions the store had, by its count of rows, when `send` last saw to it that those which are there as well are the same.
    var checkedRows: Int
    /// `send` has looked at all files there, since some are of that form.
    var hasLookedAtAll = false
    /// Of those that `send` has told of.
    var unportable = UnportableIDs()
    /// The listing of which the store had everything, without a problem.
    var receivedMark: UInt64?
    /// The listing of which a retrieve had looked at all.
    var lookedMark: UInt64?
    /// From where on the next retrieve of the same listing looks again at what is broken.
    var lookAgainFrom = 0
    /// Versions whose files there were read, and which wait for another: the one that they wait for.
    var waits: [VersionID: VersionID] = [:]
    /// What a call that came to no end read of version files, with what they say of digests.
    var fetched: [VersionID: (version: Version, digest: [UInt8]?)] = [:]
    /// From where on the next retrieve looks again at some of them.
    var waitAgainFrom = 0
    /// The listing that had all that the store had, and how many versions that were.
    var sentMark: (listing: UInt64, versions: Int)?
    /// From where on `send` looks at the files of older versions. At first anywhere, for exchanges that are never used twice.
    var verifiedUpTo = Int.random(in: 0..<1 << 30)
}

/// What came of a retrieve, a send or an import.
public struct ExchangeResult: Sendable {
    /// The versions added or sent, in that order.
    public var versions: [VersionID]
    /// Those that were here and damaged, and are whole again.
    public var repaired: [VersionID] = []
    /// What could not be, by name; sorted by name.
    public var problems: [ExchangeProblem]
    /// What a metered network or a low battery left for later.
    var left: Set<VersionID> = []
    /// A result with these versions and problems, and nothing repaired.
    public init(versions: [VersionID] = [], problems: [ExchangeProblem] = []) { self.versions = versions; self.problems = problems }

    /// The empty root travels with what was built on it, for stores that know none by themselves, and counts for nothing.
    func counting() -> ExchangeResult {
        var counted = self
        counted.versions.removeAll { $0 == EmptyRoot.id }
        return counted
    }
}

/// Something that could not be taken or sent, and why. Nothing of it was stored.
public struct ExchangeProblem: Sendable {
    /// The version id, or the name of the foreign file.
    public var name: String
    /// Why, with a code of its own.
    public var error: StoreError
    /// What a transport or importer met, by the name that it has there.
    public init(name: String, error: StoreError) { self.name = name; self.error = error }

    static func inOrder(_ problems: [ExchangeProblem]) -> [ExchangeProblem] {
        problems.sorted { Bytes.compare(Array($0.name.utf8), Array($1.name.utf8)) < 0 }
    }
}
