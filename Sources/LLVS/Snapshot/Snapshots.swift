/// Chunked dumps of a whole store beside an exchange, by which a new replica starts.
///
/// The layout is that of `snapshots/` in docs/interchange.md, the chunks' format that of docs/snapshot.md.
/// Safe from all threads. Held in memory are the history, one chunk, and of what is dumped one value, of what is restored the
/// values of one version or of about 5 MB.
public struct Snapshots: Sendable {
    /// The name of our format in manifests, and of the folder in which ours lie: never in the first place, where they would keep
    /// others from putting theirs. Theirs are never replaced; of those `zip-v1` is read.
    public static let format = "llvs-v1"

    let store: Store
    let transport: any ExchangeTransport
    let decode: ForeignDecoder?

    /// Of the snapshot area of `transport`, for `store`.
    /// - Parameters:
    ///   - store: what a snapshot is made of, or restored into.
    ///   - transport: where snapshots lie.
    ///   - decode: for what is compressed (`LLZF`) in a `zip-v1`, as for `StoreImporter`.
    public init(store: Store, transport: any ExchangeTransport, decode: ForeignDecoder? = nil) {
        self.store = store; self.transport = transport; self.decode = decode
    }

    // MARK: Into and from a directory of one's own

    /// Writes a snapshot of the store to a directory, which is made when only its last component is missing.
    /// Errors are those of `put`.
    public static func write(_ store: Store, to directory: String, _ control: OperationControl = OperationControl()) throws
        -> SnapshotManifest
    {
        try Snapshots(store: store, transport: FolderTransport(path: directory)).put(control)
    }
    /// Restores a snapshot that `write`, or an exchange through that folder, left there. Errors are those of `restore`.
    public static func restore(
        _ store: Store, from directory: String, decode: ForeignDecoder? = nil, _ control: OperationControl = OperationControl()
    ) throws -> RestoredSnapshot {
        var options = FolderTransport.Options()
        options.create = false
        return try Snapshots(store: store, transport: FolderTransport(path: directory, options: options), decode: decode).restore(control)
    }

    // MARK: The manifest

    /// The manifest of the snapshot that is there: that of ours with the most versions, else a foreign one, else nil. One or two small
    /// reads.
    /// - Throws: `.snapshotDamaged` when there is none of ours and one that cannot be read; what the transport throws.
    public func manifest() throws -> SnapshotManifest? { try find()?.manifest }

    struct Found {
        var manifest: SnapshotManifest
        /// What precedes the names of its files: "llvs-v1/", or "" where others put theirs and we did before.
        var prefix: String
    }
    static let ours = format + "/"

    func find() throws -> Found? {
        var foreign: Found?, ours: Found?, failure: StoreError?
        for prefix in [Snapshots.ours, ""] {
            do {
                guard let found = try readManifest(prefix) else { continue }
                if found.manifest.isForeign {
                    foreign = foreign ?? found
                }
                // Not by when they were made: clocks of devices may be wrong, and versions only become more.
                else if ours.map({ found.manifest.versionCount > $0.manifest.versionCount }) ?? true {
                    ours = found
                }
            } catch let error as StoreError where error.code == .snapshotDamaged { failure = failure ?? error }
        }
        if let ours { return ours }
        if let failure { throw failure }
        return foreign
    }

    /// Whether ours is known to miss chunks, going by the names of the files alone. Their contents are not looked at.
    func lacksChunks(_ found: Found, _ control: OperationControl = OperationControl()) throws -> Bool {
        let control = control.paced(.listing, doing: "Looking at the snapshot in \(transport.description)")
        var names: Set<String> = []
        for name in try transport.snapshotFileNames(control) {
            try control.step(0)
            names.insert(name)
        }
        // A transport that does not list the manifest does not list at all.
        guard names.contains(found.prefix + "manifest.json") else { return false }
        return try found.manifest.chunkDigests.indices.contains {
            try control.step(0)
            return !names.contains(found.prefix + SnapshotLimits.chunkName($0))
        }
    }

    private func readManifest(_ prefix: String) throws -> Found? {
        let name = prefix + "manifest.json"
        guard let bytes = try transport.readSnapshotFile(name) else { return nil }
        guard bytes.count <= SnapshotLimits.manifestSize else {
            throw StoreError(
                .snapshotDamaged,
                "snapshots/\(name) in \(transport.description) has \(bytes.count) bytes, more than the manifest of a snapshot. "
                    + "Put a snapshot anew.",
                path: name)
        }
        return Found(manifest: try SnapshotManifest(bytes, file: "snapshots/\(name) in \(transport.description)"), prefix: prefix)
    }

    // MARK: Putting

    /// Puts a snapshot of all versions, in place of an older one of ours. While that goes on there is none.
    ///
    /// A snapshot that another implementation put stays; ours goes beside it.
    /// - Parameter control: called with stage `.writing`, in versions.
    /// - Throws: `.invalidArgument` when the store has no versions; `.cancelled`; `.damaged`; what the transport throws.
    public func put(_ control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        _ = try store.reloadHistory(control)
        guard let latest = try store.mostRecentHead() else {
            throw StoreError(
                .invalidArgument, "There is nothing to put a snapshot of: the store has no versions yet. Save something first.")
        }
        try (transport as? AutomaticTransport)?.checkForSnapshot(of: store, control)
        if let transport = transport as? any AddressedTransport {
            try KnownPlace.checkForSnapshot(of: store, transport, control)
        }
        let ids = try store.allVersionIDs(control)
        let prefix = Snapshots.ours
        // Without a manifest a reader sees that there is no snapshot, rather than a mixture of two.
        try transport.deleteSnapshotFile(prefix + "manifest.json")
        var manifest = SnapshotManifest(
            snapshotID: VersionID.random().description, createdAt: Clock.now(), latestVersionID: latest.id.description)
        let transport = self.transport
        var writer = SnapshotWriter(id: manifest.snapshotID) { index, chunk in
            try transport.writeSnapshotFile(prefix + SnapshotLimits.chunkName(index), chunk)
        }
        for (i, id) in ids.enumerated() {
            try control.check(.writing, i, of: ids.count, doing: "Putting a snapshot into \(transport.description)")
            guard let version = try store.version(id) else { continue }
            try writer.begin(version, changeCount: store.changeCount(of: id))
            let paced = control.within(.writing, i, of: ids.count).paced(
                .writing, doing: "Putting a snapshot into \(transport.description)")
            try store.forEachChange(madeIn: id) {
                try paced.step(bytes: $0.data.count)
                try writer.append($0)
            }
            manifest.versionCount += 1
        }
        try writer.finish()
        try control.check(.writing, ids.count, of: ids.count, doing: "Putting a snapshot into \(transport.description)")
        manifest.chunkDigests = writer.digests
        manifest.chunkCount = UInt64(writer.digests.count)
        manifest.totalSize = writer.totalSize
        let paced = control.within(.writing, ids.count, of: ids.count).paced(
            .writing, doing: "Putting a snapshot into \(transport.description)")
        let stale = try staleFiles(Set(writer.digests.indices.map { prefix + SnapshotLimits.chunkName($0) }), paced)
        try transport.writeSnapshotFile(prefix + "manifest.json", manifest.encoded())
        // The snapshot is there: nobody is asked any more whether to go on.
        for name in stale { try transport.deleteSnapshotFile(name) }
        return manifest
    }

    /// Chunks of an older, larger snapshot, and one of ours in the first place, where we put them before; so many that removing them takes
    /// no long time: the next one that is put removes others. What is not known to be ours stays.
    private func staleFiles(_ current: Set<String>, _ control: PacedControl) throws -> [String] {
        var stale: [String] = []
        if let before = try? readManifest("")?.manifest, !before.isForeign {
            stale.append("manifest.json")
            stale += before.chunkDigests.indices.prefix(Snapshots.mostStale).map(SnapshotLimits.chunkName)
        }
        for name in try transport.snapshotFileNames(control) {
            guard stale.count < Snapshots.mostStale else { break }
            if name.utf8.starts(with: (Snapshots.ours + "chunk-").utf8) && !current.contains(name) { stale.append(name) }
        }
        return stale
    }
    private static let mostStale = 1_000
}
