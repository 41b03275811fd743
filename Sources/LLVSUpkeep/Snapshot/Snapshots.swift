/// Chunked dumps of a whole store beside an exchange, from which a new replica starts.
///
/// The layout is that of `snapshots/` in docs/interchange.md; docs/snapshot.md has the format of the chunks. Safe from all threads. Holds
/// in memory the history, one chunk, and one value when writing; when restoring, the values of one version, or about 5 MB.
public struct Snapshots: Sendable {
    /// The format name in manifests, and the folder of this implementation's snapshots. They are never put at the top, where they would
    /// keep other implementations from writing theirs. Foreign snapshots are never replaced; those in `zip-v1` can be read.
    public static let format = SnapshotLimits.format

    let store: Store
    let transport: any ExchangeTransport
    let decode: ForeignDecoder?

    /// The snapshot area of `transport`, for `store`.
    /// - Parameters:
    ///   - store: the store to write or restore.
    ///   - transport: the place of the snapshots.
    ///   - decode: decodes compressed data (`LLZF`) in a `zip-v1`, as for `StoreImporter`.
    public init(store: Store, transport: any ExchangeTransport, decode: ForeignDecoder? = nil) {
        self.store = store; self.transport = transport; self.decode = decode
    }

    // MARK: Snapshots in a directory

    /// Writes a snapshot of the store to a directory; creates the directory if only its last component is missing. Throws as `put`.
    public static func write(_ store: Store, to directory: String, control: OperationControl = OperationControl()) throws
        -> SnapshotManifest
    {
        try Snapshots(store: store, transport: FolderTransport(path: directory)).put(control: control)
    }
    /// Restores a snapshot that `write`, or an exchange through that folder, wrote. Throws as `restore`.
    public static func restore(
        _ store: Store, from directory: String, decode: ForeignDecoder? = nil, control: OperationControl = OperationControl()
    ) throws -> RestoredSnapshot {
        var options = FolderTransport.Options()
        options.create = false
        return try Snapshots(store: store, transport: FolderTransport(path: directory, options: options), decode: decode).restore(
            control: control)
    }

    // MARK: The manifest

    /// Returns the manifest of the snapshot: of this implementation's snapshots the one with the most versions, otherwise a foreign one;
    /// nil if there is none. Takes one or two small reads.
    /// - Throws: `.snapshotDamaged` if there is no snapshot of this implementation and one that cannot be read; errors of the transport.
    public func manifest() throws -> SnapshotManifest? { try find()?.manifest }

    package struct Found {
        package var manifest: SnapshotManifest
        /// The prefix of its file names: "llvs-v1/", or "" at the top, where other implementations write, and earlier versions of this one
        /// did.
        var prefix: String
    }
    static let ours = format + "/"

    package func find() throws -> Found? {
        var foreign: Found?, ours: Found?, failure: StoreError?
        for prefix in [Snapshots.ours, ""] {
            do {
                guard let found = try readManifest(prefix) else { continue }
                if found.manifest.isForeign {
                    foreign = foreign ?? found
                }
                // Compare counts instead of times: clocks may be wrong, and versions are only ever added.
                else if ours.map({ found.manifest.versionCount > $0.manifest.versionCount }) ?? true {
                    ours = found
                }
            } catch let error as StoreError where error.code == .snapshotDamaged { failure = failure ?? error }
        }
        if let ours { return ours }
        if let failure { throw failure }
        return foreign
    }

    /// Returns whether this implementation's snapshot lacks chunks, judging by the names of the files alone.
    package func lacksChunks(_ found: Found, _ control: OperationControl = OperationControl()) throws -> Bool {
        let control = control.paced(.listing, doing: "Checking the snapshot in \(transport.description)")
        var names: Set<String> = []
        for name in try transport.snapshotFileNames(control) {
            try control.step(0)
            names.insert(name)
        }
        // A transport that does not list the manifest cannot list files.
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
                    + "Write a new snapshot.",
                path: name)
        }
        return Found(manifest: try SnapshotManifest(bytes, file: "snapshots/\(name) in \(transport.description)"), prefix: prefix)
    }

    // MARK: Writing

    /// Writes a snapshot of all versions, replacing an older one of this implementation. Meanwhile there is none.
    ///
    /// A snapshot of another implementation stays; this one is written beside it.
    /// - Parameter control: called with stage `.writing`, in versions.
    /// - Throws: `.invalidArgument` if the store has no versions; `.cancelled`; `.damaged`; errors of the transport.
    public func put(control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        _ = try store.reloadHistory(control: control)
        guard let latest = try store.mostRecentHead() else {
            throw StoreError(
                .invalidArgument, "No snapshot can be written: the store has no versions yet. Save something first.")
        }
        try (transport as? AutomaticTransport)?.checkForSnapshot(of: store, control)
        if let transport = transport as? any AddressedTransport {
            try KnownPlace.checkForSnapshot(of: store, transport, control)
        }
        // Orders that come meanwhile are not among them.
        let orders = try store.orders.markOfSnapshots().map { Hex.text(of: $0) }
        let ids = try store.allVersionIDs(control: control)
        let prefix = Snapshots.ours
        // Without a manifest a reader finds no snapshot, instead of a mixture of two.
        try transport.deleteSnapshotFile(prefix + "manifest.json")
        var manifest = SnapshotManifest(
            snapshotID: VersionID.random().description, createdAt: Clock.now(), latestVersionID: latest.id.description)
        let transport = self.transport
        var writer = SnapshotWriter(id: manifest.snapshotID) { index, chunk in
            try transport.writeSnapshotFile(prefix + SnapshotLimits.chunkName(index), chunk)
        }
        for (i, id) in ids.enumerated() {
            try control.check(.writing, i, of: ids.count, doing: "Writing a snapshot to \(transport.description)")
            guard let version = try store.version(id) else { continue }
            try writer.begin(version, changeCount: store.changeCount(of: id))
            let paced = control.within(.writing, i, of: ids.count).paced(
                .writing, doing: "Writing a snapshot to \(transport.description)")
            try store.forEachChange(madeIn: id, withHollow: true) {
                try paced.step(bytes: $0.data.count)
                try writer.append($0)
            }
            manifest.versionCount += 1
        }
        try writer.finish()
        try control.check(.writing, ids.count, of: ids.count, doing: "Writing a snapshot to \(transport.description)")
        if writer.hasHollow { manifest.format = SnapshotLimits.hollowFormat }
        manifest.chunkDigests = writer.digests
        manifest.chunkCount = UInt64(writer.digests.count)
        manifest.totalSize = writer.totalSize
        manifest.orders = orders
        let paced = control.within(.writing, ids.count, of: ids.count).paced(
            .writing, doing: "Writing a snapshot to \(transport.description)")
        let stale = try staleFiles(Set(writer.digests.indices.map { prefix + SnapshotLimits.chunkName($0) }), paced)
        try transport.writeSnapshotFile(prefix + "manifest.json", manifest.encoded())
        // The snapshot is complete, so cancellation is no longer checked.
        for name in stale { try transport.deleteSnapshotFile(name) }
        return manifest
    }

    /// Returns chunks of an older, larger snapshot, and a snapshot at the top, where earlier versions of this library put it. Bounded, so
    /// that removing them is quick; the next `put` removes more. Files not known to be of this implementation stay.
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
