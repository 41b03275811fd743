/// A place over a network whose layout nobody named: one that has packs keeps them, one with two files for each version keeps these, and an
/// empty one gets packs.
package final class AutomaticTransport: StoreTransport, @unchecked Sendable {
    // Sendable: `lock` guards what is known of the layout; the rest has locks of its own.
    private let files: any RemoteFiles
    private let versions: RemoteTransport
    let packs: PackedTransport
    private let lock = Lock(.leaf)
    private var isPacked: Bool?

    /// - Parameter keys: what the place is encrypted with: then it has packs.
    package init(_ files: any RemoteFiles, settings: PackedSettings = PackedSettings(), keys: PackedKeys? = nil) {
        self.files = files
        versions = RemoteTransport(files)
        packs = PackedTransport(files, settings: settings, keys: keys)
        isPacked = keys == nil ? nil : true
    }

    /// Found out once for each opened exchange, by one or two listings where the store has not exchanged packs with the place before.
    func isPacked(_ store: Store, _ control: OperationControl) throws -> Bool {
        if let known = lock.withLock({ isPacked }) { return known }
        let what = "Listing \(description)", check = { try control.check(.listing, 0, of: 0, doing: what) }
        let found: Bool
        if try PackedNotes.exist(store, remote: description) {
            found = true
        } else {
            // An empty file, or a foreign one, is no version.
            found = try !(files.list("pack1", withTimes: false, check) ?? []).isEmpty
                || !(files.list("versions", withTimes: false, check) ?? []).contains { VersionID(validating: $0.name) != nil }
        }
        lock.withLock { isPacked = found }
        return found
    }

    package func retrieve(into store: Store, verifyKnown: Bool, _ control: OperationControl) throws -> ExchangeResult? {
        try isPacked(store, control) ? packs.retrieve(into: store, verifyKnown: verifyKnown, control) : nil
    }
    package func send(from store: Store, _ control: OperationControl) throws -> ExchangeResult? {
        try isPacked(store, control) ? packs.send(from: store, control) : nil
    }

    package var description: String { files.description }
    package var counts: RemoteCounts { files.counts }
    private var chosen: any ExchangeTransport { lock.withLock { isPacked } ?? false ? packs : versions }

    package func list(_ control: OperationControl) throws -> ExchangeListing { try chosen.list(control) }
    package func listToSend(_ control: OperationControl) throws -> ExchangeListing { try chosen.listToSend(control) }
    package func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try chosen.fetchVersions(names, control)
    }
    package func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try chosen.fetchChanges(names, control)
    }
    package func send(_ files: [ExchangeFiles], _ control: OperationControl) throws { try chosen.send(files, control) }
    package func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        try chosen.unusable(among: names, control)
    }
    package func readSnapshotFile(_ name: String) throws -> [UInt8]? { try chosen.readSnapshotFile(name) }
    package func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { try chosen.writeSnapshotFile(name, data) }
    package func deleteSnapshotFile(_ name: String) throws { try chosen.deleteSnapshotFile(name) }
    package func snapshotFileNames() throws -> [String] { try chosen.snapshotFileNames() }
    package func snapshotFileNames(_ control: PacedControl) throws -> [String] { try chosen.snapshotFileNames(control) }

    package var restorationState: [UInt8] {
        get { chosen.restorationState }
        set {
            versions.restorationState = newValue
            packs.restorationState = newValue
        }
    }
    package func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    package func close() { files.close() }
}
