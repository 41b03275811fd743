/// A place in the packed layout, and how this device uses it: the same for all runs of a transport.
struct PackedPlace {
    let files: any RemoteFiles
    let settings: PackedSettings
    /// Nil: the place is not encrypted.
    let keys: PackedKeys?
    let rate: TransferRate
    /// Whether a new place gets single files beside the packs. The roots of an existing place decide for it.
    let wantsBridge: Bool
}

/// An exchange through packs at a place that holds named files: docs/pack-format.md on `RemoteFiles`.
///
/// It holds no files of single versions: the functions for these return none.
package final class PackedTransport: StoreTransport, TellingTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes; a run belongs to one call, and `PackedNotes` excludes others.
    private let place: PackedPlace
    private let spelling: PlaceSpelling
    private let bridge = BridgedVersions()
    /// The exchange of single files, once there was one.
    private var beside: Exchange?
    private var besideState: [UInt8] = []
    private let lock = Lock(.leaf)
    private var mustForget = false
    private var status: RemoteStatus?
    private var isClean: Bool?
    /// Until then a send needs no listing of its own, since a retrieve has just made one.
    private var freshUntil = -Double.infinity
    /// The full listing of that retrieve.
    private var listed: [PackName: Int]?
    private static let freshness = 10.0

    /// - Parameters:
    ///   - keys: the keys of an encrypted place; nil: it is not encrypted.
    ///   - isBridged: whether a new place gets single files beside the packs; not with keys.
    package init(_ files: any RemoteFiles, settings: PackedSettings = PackedSettings(), keys: PackedKeys? = nil, isBridged: Bool = false) {
        place = PackedPlace(
            files: files, settings: settings, keys: keys, rate: TransferRate(settings.steady), wantsBridge: isBridged && keys == nil)
        spelling = PlaceSpelling(files)
    }

    private var files: any RemoteFiles { place.files }
    var keys: PackedKeys? { place.keys }
    package var description: String { files.description }
    package var counts: RemoteCounts { files.counts }
    package var keepsDeletedFiles: Bool { !files.capabilities.isNear }
    package var arePacksClean: Bool? { lock.withLock { isClean } }
    package func knownAccount() throws -> String? { try files.account(nil) }
    package func notedPlace(in store: Store) throws -> String { try spelling.place(in: store) }
    private func known(of store: Store) throws -> PackedState? {
        try PackedNotes.known(of: store, remote: spelling.place(in: store), account: files.account(nil))
    }
    package var remoteStatus: RemoteStatus? { lock.withLock { status } }

    /// Whether it was opened with keys.
    package var isKeyed: Bool { keys != nil }

    func run<R>(_ store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        try store.checkWritable(what)
        let account = try files.account { try control.check(.listing, 0, of: 0, doing: what) }
        let notes = try PackedNotes(store, remote: spelling.place(in: store), account: account)
        let seedsAnew = lock.withLock { mustForget }
        if seedsAnew {
            try notes.forget(place.settings.random)
            keys?.forget()
            lock.withLock { mustForget = false }
        }
        let run = try PackedRun(store, place, notes, control, doing: what)
        if seedsAnew { run.state.seedsAnew = true }
        defer {
            let known = RemoteStatus(run.state), isClean = try? run.erasing.isClean
            lock.withLock { (status, self.isClean) = run.state.roots.isEmpty ? (nil, nil) : (known, isClean) }
        }
        do {
            let result = try body(run)
            try run.save()
            return result
        } catch {
            // The state is valid also after a failure. The caller gets the first error, not one of saving the state.
            try? run.save()
            throw error
        }
    }

    package func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult? {
        lock.withLock { freshUntil = -Double.infinity }
        let what = "Retrieving from \(description)"
        let (result, isBridge) = try run(store, what, control) { run in
            let result = try run.retrieve(verifyKnown: verifyKnown)
            lock.withLock {
                freshUntil = Clock.steady() + PackedTransport.freshness
                listed = run.found.packs
            }
            let isBridge = try run.bridging.isBridge()
            if isBridge { run.bridging.note(result.versions, fromPacks: true) }
            return (result, isBridge)
        }
        guard isBridge else { return result }
        let others = try exchangeBeside(store).retrieve(control: control, verifyKnown: verifyKnown)
        if !others.versions.isEmpty { try run(store, what, control) { $0.bridging.note(others.versions, fromPacks: false) } }
        return PackedTransport.joined(result, others)
    }

    package func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult? {
        let (isFresh, listed) = lock.withLock {
            defer { (freshUntil, self.listed) = (-Double.infinity, nil) }
            return (freshUntil > Clock.steady(), self.listed)
        }
        return try bothWays(store, "Sending to \(description)", control) { run in
            (try run.publishing.send(isFresh: isFresh, listed: isFresh ? listed : nil), run.bridging.leftToOthers(fromPacks: true))
        }
    }

    // MARK: Single files beside the packs

    /// Sends packs, and then single files if the place is bridged.
    /// - Parameter packs: sends packs, and returns the versions not to send in single files.
    func bothWays(
        _ store: Store, _ what: String, _ control: OperationControl, packs: (PackedRun) throws -> (ExchangeResult, Set<VersionID>)
    ) throws -> ExchangeResult {
        let (result, left, isBridge) = try run(store, what, control) { run in
            let (result, left) = try packs(run)
            return (result, left, try run.bridging.isBridge())
        }
        guard isBridge else { return result }
        bridge.leave(left)
        let beside = exchangeBeside(store), others = try beside.send(control: control)
        let there = bridge.areThere(of: left)
        if !there.isEmpty { try run(store, what, control) { run in for id in there { run.state.bridging[id] = nil } } }
        if !beside.areFilesClean { lock.withLock { isClean = false } }
        return PackedTransport.joined(result, others)
    }

    private func exchangeBeside(_ store: Store) -> Exchange {
        if let known = lock.withLock({ beside }), known.store === store { return known }
        // Safe, since an exchange runs one call at a time.
        var options = Exchange.Options()
        // The enclosing exchange decides that.
        options.hasNoOtherReaders = true
        let versions = RemoteTransport(files, choose: bridge.toSend), made = Exchange(store: store, transport: versions, options: options)
        versions.restorationState = lock.withLock { besideState }
        made.isBesidePacks = true
        lock.withLock { beside = made }
        return made
    }
    private static func joined(_ a: ExchangeResult, _ b: ExchangeResult) -> ExchangeResult {
        var result = a
        let known = Set(a.versions)
        result.versions += b.versions.filter { !known.contains($0) }
        result.repaired += b.repaired.filter { !a.repaired.contains($0) }
        result.problems = ExchangeProblem.inOrder(a.problems + b.problems)
        return result
    }

    // MARK: Unsupported

    package func list(_ control: OperationControl) throws -> ExchangeListing { ExchangeListing(versions: [String]()) }
    package func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { names.map { _ in .missing } }
    package func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { names.map { _ in .missing } }
    package func send(_ files: [ExchangeFiles], _ control: OperationControl) throws { throw unsupported("single versions") }
    package func readSnapshotFile(_ name: String) throws -> [UInt8]? { nil }
    package func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { throw unsupported("snapshots, and needs none") }
    package func deleteSnapshotFile(_ name: String) throws {}
    package func snapshotFileNames() throws -> [String] { [] }
    private func unsupported(_ what: String) -> StoreError {
        StoreError(.unsupported, "\(description) is in the packed layout, which holds no files of \(what).")
    }

    // MARK: The rest

    /// Only the state of a bridged remote's single files; `PackedNotes` saves the state of packs with the store. Given the word "new", the
    /// device forgets all it knows of the remote, and starts over.
    package var restorationState: [UInt8] {
        get { lock.withLock { beside }?.transport.restorationState ?? lock.withLock { besideState } }
        set {
            lock.withLock {
                if newValue.elementsEqual("new".utf8) { mustForget = true } else { besideState = newValue }
            }
        }
    }
    /// An observation reports every new name in the folders of packs, also names that this device wrote.
    package var hearsItself: Bool { true }
    package func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        // Each device leaves its newest pack in `log/`, so changes in `base/` alone are no news.
        try files.observe(["pack1", "pack1/log", "pack1/blob", "pack1/keys", "versions"], changed)
    }
    package func hasNews(for store: Store) throws -> Bool? {
        let known = try known(of: store)
        guard let state = known, !state.roots.isEmpty else { return true }
        // The change may be what these wait for: a partial pack, a root, keys, a large value.
        if !state.bad.isEmpty || !state.waiting.isEmpty || !state.missingBlobs.isEmpty { return true }
        if isKeyed, state.pin == nil || state.mayHaveOldKeys { return true }
        for entry in try files.list("pack1/log", withTimes: false, {}) ?? [] {
            if let name = PackName(PackKind.log.prefix + entry.name), !state.isKnown(name) { return true }
        }
        guard state.roots.contains(where: \.isBridged) else { return false }
        let listing = try exchangeBeside(store).transport.list(OperationControl())
        return try !store.unknown(among: listing.versions + listing.changesOnly).isEmpty
    }
    /// Whether there are single files beside the packs.
    package func isReadByOthers(_ store: Store) -> Bool {
        if place.wantsBridge || lock.withLock({ beside != nil }) { return true }
        let known = try? known(of: store)
        return known?.roots.contains(where: \.isBridged) ?? false
    }
    package func close() { files.close() }
}
