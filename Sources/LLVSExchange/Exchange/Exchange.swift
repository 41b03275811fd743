/// Moves versions between a store and the other side of a transport, both ways, and never merges.
///
/// Safe from all threads: `retrieve` and `send` of one exchange run one at a time, and several exchanges may work on one store at once.
/// Throws only failures of the transport or of the store itself. A version that cannot be received or sent becomes a problem in the result,
/// with name and reason; it holds back only the versions that depend on it. An exchange that was interrupted or cancelled keeps the
/// versions that it added and can be run again.
public final class Exchange: @unchecked Sendable {
    // Sendable: `gate` admits one call at a time; the parts have locks.
    /// The store on this side.
    public let store: Store
    /// Reaches the other side.
    public let transport: any ExchangeTransport
    /// The options that it was created with.
    public let options: Options
    private let gate: Gate
    /// Guarded by the gate.
    private var memory: ExchangeMemory
    /// Whether it reads and writes the single files beside the packs of another exchange, which notes the place.
    var isBesidePacks = false
    /// Whether the last send left no bytes that orders to erase name in single files. Guarded by the gate.
    var areFilesClean = false
    /// Notified when the exchange is closed, and when it is released.
    package let ended = Observers<Void>()

    /// The options of an exchange.
    public struct Options: Sendable {
        /// Whether `send` reports value ids that another implementation cannot hold, as problems (`.unportableID`) beside the versions,
        /// which are sent all the same. Each id is reported once per exchange. `send` then reads the change tables of the versions again,
        /// and once the ids at all heads if an id is not ASCII.
        public var reportsUnportableIDs = false
        /// Whether the host knows that no other implementation reads the place. If this is false, then while an exchange of single files is
        /// open the store refuses to save what makes another implementation fail for good: a new value id that would take more than 255
        /// bytes in file names or holds a NUL, and metadata with two keys that differ only by normalization (`.unportableID`). Versions
        /// from elsewhere are sent all the same.
        public var hasNoOtherReaders = false
        /// Decompresses data (`LLZF`) in a snapshot of another implementation.
        public var decode: ForeignDecoder?
        /// Creates the defaults: ids that other implementations cannot hold are not reported, and their snapshots are read unless
        /// compressed.
        public init() {}
    }

    /// Retains both. The caller that opened the store closes it.
    public init(store: Store, transport: any ExchangeTransport, options: Options = Options()) {
        self.store = store; self.transport = transport; self.options = options
        memory = ExchangeMemory(checkedRows: store.rowCount)
        gate = Gate("exchange") { transport.close() }
        if !options.hasNoOtherReaders { store.savingGuards.add(self) }
    }

    /// Fetches the versions that the store lacks, and adds them, predecessors first, in batches of about 5 MB.
    ///
    /// If there is nothing new this costs one listing, or less if the transport can determine that nothing changed. A version that the
    /// store has is not fetched again, so a file that differs from it goes unnoticed. With `verifyKnown` all are fetched, and differences
    /// are problems (`.versionMismatch`, or what is wrong with the file). Versions in which reading or verifying the store found damage are
    /// fetched too, and repaired; with `verifyKnown` all are checked for damage.
    /// - Parameters:
    ///  - control: called with stages `.listing`, `.receiving` and `.adding`, in versions.
    ///  - verifyKnown: also fetches the versions that the store has, and compares them.
    /// - Returns: the versions added, in that order, and the problems found.
    /// - Throws: errors of the transport; `.cancelled`, `.closed`, `.busy` if called from its own callbacks, and errors that keep the store
    ///   from adding (`.readOnly`, `.noSpace`, `.io`).
    public func retrieve(control: OperationControl = OperationControl(), verifyKnown: Bool = false) throws -> ExchangeResult {
        try gate.run("Retrieving from \(transport.description)") {
            if let transport = transport as? any StoreTransport,
                let result = try Exchange.logged(
                    "Retrieved", transport,
                    {
                        try transport.retrieve(into: store, verifyKnown: verifyKnown, control)?.counting()
                    })
            {
                notePlace(hasSent: false)
                return store.tellingOfClocks(result)
            }
            var retrieval = Retrieval(store: store, transport: transport, control: control, verifyKnown: verifyKnown, memory: memory)
            defer { memory = retrieval.memory }
            let result = try Exchange.logged("Retrieved", transport) { try retrieval.run().counting() } ?? ExchangeResult()
            notePlace(hasSent: false)
            return store.tellingOfClocks(result)
        }
    }

    /// Runs `body` while no other call of this exchange runs.
    func exclusively<R>(_ what: String, _ body: () throws -> R) throws -> R { try gate.run("\(what) of \(transport.description)", body) }

    /// Sends the versions that the other side lacks, predecessors first, and rewrites those whose files there are unusable: an earlier
    /// retrieve of this exchange found them so, or they are empty or cut short.
    ///
    /// To find files cut short, it checks the newest 500 versions each time and 500 others in turn. If it meets a version file of the old
    /// form, with the digest beside the version, it checks all versions, once, and rewrites those of the old form as well. If the transport
    /// reports files that are new or changed (`ExchangeTransport.takeChanged`), it reads them and rewrites those that are not the version
    /// of that id.
    /// - Parameter control: called with stages `.listing`, `.verifying` and `.sending`, in versions.
    /// - Returns: the versions sent, in that order, and the problems met.
    /// - Throws: errors of the transport; `.cancelled`, `.closed`, `.busy` if called from its own callbacks.
    public func send(control: OperationControl = OperationControl()) throws -> ExchangeResult {
        try gate.run("Sending to \(transport.description)") {
            var hasEnded = false
            // What was sent before an error is there.
            defer { if !hasEnded { notePlace(hasSent: false) } }
            let heads = (transport as? any SharingTransport)?.sendsAll == false ? nil : RetentionNotes(store).headsToShare()
            let (result, hasFiles) = try sendAll(control)
            hasEnded = true
            notePlace(hasSent: true, areFilesClean: hasFiles ? areFilesClean : nil)
            if let heads, result.problems.isEmpty { RetentionNotes(store).noteShared(heads, with: transport.description) }
            return result
        }
    }

    /// - Returns: the result, and whether the other side has single files.
    private func sendAll(_ control: OperationControl) throws -> (result: ExchangeResult, hasFiles: Bool) {
        if let transport = transport as? any StoreTransport,
            let result = try Exchange.logged("Sent", transport, { try transport.send(from: store, control)?.counting() })
        {
            return (result, false)
        }
        var sending = Sending(
            store: store, transport: transport, control: control, reportsUnportableIDs: options.reportsUnportableIDs, memory: memory)
        defer { memory = sending.memory }
        let result = try Exchange.logged("Sent", transport) { try sending.run().counting() } ?? ExchangeResult()
        areFilesClean = try sending.isClean()
        return (result, true)
    }

    /// Calls back, on a thread of its own, whenever the other side has or may have gained versions that the store lacks. Ends when the
    /// observation is cancelled or released. Returns nil if the transport cannot report changes. Versions that this store sent are not
    /// reported. The callback may retrieve.
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        try gate.checkOpen("Observing \(transport.description)")
        guard transport.hearsItself else { return try transport.observe(changed) }
        return try transport.observe { [weak self] in
            guard let self, mayHaveNews else { return }
            changed()
        }
    }

    /// Whether the other side lists a version that the store lacks; true if that cannot be determined. The wait for the gate is bounded,
    /// since the thread that runs the exchange may be waiting for the observation to end.
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

    /// Throws `.closed` once it is closed. For calls that would not notice by themselves.
    package func checkOpen() throws { try gate.checkOpen("Using the exchange with \(transport.description)") }

    /// The state that the transport needs in a later process. Opaque.
    public var restorationState: [UInt8] {
        get { transport.restorationState }
        set { transport.restorationState = newValue }
    }

    /// Closes the transport after a running retrieve or send has ended. Later calls throw `.closed`; closing again has no effect.
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
    package func refusal(of id: UnsafeRawBufferPointer) -> StoreError? {
        guard let failure = UnportableIDs.failure(id), transport.isReadByOthers(store) else { return nil }
        let value = ValueID(unchecked: id)
        return StoreError(
            .unportableID,
            "Nothing was saved under the value id \"\(value)\": \(failure). Another implementation that reads \(transport.description) "
                + "would retrieve neither the version nor its descendants. Use another id; or, if no other implementation reads "
                + "that place, open the exchange with no_other_readers.",
            valueID: value)
    }
    package func refusal(of metadata: Metadata) -> StoreError? {
        guard let (key, other) = UnportableIDs.twinKeys(metadata), transport.isReadByOthers(store) else { return nil }
        return StoreError(
            .unportableID,
            "Nothing was saved with the metadata keys \"\(key)\" and \"\(other)\", which have the same characters, composed in another "
                + "way. Another implementation that reads \(transport.description) would retrieve neither the version nor its "
                + "descendants. Use one of them; or, if no other implementation reads that place, open the exchange with no_other_readers.")
    }
}

/// The state that an exchange carries from call to call.
struct ExchangeMemory {
    /// The place, as the store remembers it.
    var place = KnownPlace()
    /// Versions whose files at the place a retrieve found unusable. `send` rewrites those that the store has.
    var broken: Set<VersionID> = []
    /// Versions whose version file at the place has the old form, which other implementations cannot read. `send` rewrites them likewise.
    var oldForm: Set<VersionID> = []
    /// The orders to erase for which the files at the place were looked at.
    var erasureMark: [UInt8]?
    /// Versions that the store lacks and whose files were read for orders to erase.
    var readForOrders: Set<VersionID> = []
    static let mostRead = 1 << 17
    /// Versions received from the place since the last `send`.
    var taken: Set<VersionID> = []
    /// Versions that both sides have and whose files at the place `send` has yet to read.
    var unread: Set<VersionID> = []
    /// Versions without bytes whose files were read to find some.
    var readForBytes: Set<VersionID> = []
    /// The store's count of rows when `send` last checked that the versions on both sides are the same.
    var checkedRows: Int
    /// Whether `send` has checked all files at the place because some have the old form.
    var hasLookedAtAll = false
    /// The ids that `send` has reported.
    var unportable = UnportableIDs()
    /// The mark of the last listing from which the store got everything without a problem.
    var receivedMark: UInt64?
    /// The mark of the last listing that a retrieve examined whole.
    var lookedMark: UInt64?
    /// Where the next retrieve of the same listing begins to retry broken versions.
    var lookAgainFrom = 0
    /// Versions whose files were read, each with the version that it waits for.
    var waits: [VersionID: VersionID] = [:]
    /// Version files that an unfinished call read, with their digests.
    var fetched: [VersionID: (version: Version, digest: [UInt8]?)] = [:]
    /// Where the next retrieve begins to retry waiting versions.
    var waitAgainFrom = 0
    /// The mark of the last listing that had all versions of the store, and their number.
    var sentMark: (listing: UInt64, versions: Int)?
    /// Where `send` begins to check the files of older versions. Random at first, for exchanges that are used only once.
    var verifiedUpTo = Int.random(in: 0..<1 << 30)
}

/// The result of a retrieve, a send or an import.
public struct ExchangeResult: Sendable {
    /// The versions added or sent, in that order.
    public var versions: [VersionID]
    /// Versions that the store had with damage, now repaired.
    public var repaired: [VersionID] = []
    /// Versions and files that could not be received or sent; sorted by name.
    public var problems: [ExchangeProblem]
    /// Versions deferred because of a metered network or a low battery.
    package var left: Set<VersionID> = []
    /// A result with these versions and problems, and nothing repaired.
    public init(versions: [VersionID] = [], problems: [ExchangeProblem] = []) { self.versions = versions; self.problems = problems }

    /// Removes the empty root. It travels with the versions built on it, for stores that do not know it, but is not counted.
    func counting() -> ExchangeResult {
        var counted = self
        counted.versions.removeAll { $0 == EmptyRoot.id }
        return counted
    }
}

/// A version or file that could not be received or sent, and why. Nothing of it was stored.
public struct ExchangeProblem: Sendable {
    /// The version id, or the name of the foreign file.
    public var name: String
    /// The reason, with its code.
    public var error: StoreError
    /// A problem that a transport or importer met, under the name used there.
    public init(name: String, error: StoreError) { self.name = name; self.error = error }

    package static func inOrder(_ problems: [ExchangeProblem]) -> [ExchangeProblem] {
        problems.sorted { Bytes.compare(Array($0.name.utf8), Array($1.name.utf8)) < 0 }
    }
}
