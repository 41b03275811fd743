/// An exchange through packs at a place that holds named files: docs/pack-format.md on `RemoteFiles`.
///
/// It holds no files of single versions: what asks a transport for such gets none.
package final class PackedTransport: StoreTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes; a run belongs to one call, and `PackedNotes` keeps others out.
    private let files: any RemoteFiles
    private let settings: PackedSettings
    private let keys: PackedKeys?
    private let lock = Lock(.leaf)
    private var mustForget = false
    /// Until when a send does without a listing of its own, since a retrieve has just made one.
    private var freshUntil = -Double.infinity
    /// What that retrieve listed in full.
    private var listed: [PackName: Int]?
    private static let freshness = 10.0

    /// - Parameter keys: what the place is encrypted with; nil: it is not.
    package init(_ files: any RemoteFiles, settings: PackedSettings = PackedSettings(), keys: PackedKeys? = nil) {
        self.files = files; self.settings = settings; self.keys = keys
    }

    package var description: String { files.description }
    package var counts: RemoteCounts { files.counts }

    /// Whether it was opened with keys.
    var isKeyed: Bool { keys != nil }

    func run<R>(_ store: Store, _ what: String, _ control: OperationControl, _ body: (PackedRun) throws -> R) throws -> R {
        try store.checkWritable(what)
        let notes = try PackedNotes(store, remote: files.description)
        if lock.withLock({ mustForget }) {
            try notes.remove()
            keys?.forget()
            lock.withLock { mustForget = false }
        }
        let run = try PackedRun(store, files, notes, settings, keys, control, doing: what)
        do {
            let result = try body(run)
            try run.save()
            return result
        } catch {
            // The state is right also when the call failed. The caller gets the first failure, and not one of writing the state.
            try? run.save()
            throw error
        }
    }

    package func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult? {
        lock.withLock { freshUntil = -Double.infinity }
        return try run(store, "Retrieving from \(description)", control) { run in
            let result = try run.retrieve(verifyKnown: verifyKnown)
            lock.withLock {
                freshUntil = Clock.steady() + PackedTransport.freshness
                listed = run.listedInFull
            }
            return result
        }
    }

    package func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult? {
        let (isFresh, listed) = lock.withLock {
            defer { (freshUntil, self.listed) = (-Double.infinity, nil) }
            return (freshUntil > Clock.steady(), self.listed)
        }
        return try run(store, "Sending to \(description)", control) { try $0.send(isFresh: isFresh, listed: isFresh ? listed : nil) }
    }

    // MARK: What there is not

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

    /// What is remembered lies beside the store (`PackedNotes`). Given the word "new", the device forgets all it knows of the remote, and
    /// begins anew with it.
    package var restorationState: [UInt8] {
        get { [] }
        set { if newValue.elementsEqual("new".utf8) { lock.withLock { mustForget = true } } }
    }
    package func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    package func close() { files.close() }
}
