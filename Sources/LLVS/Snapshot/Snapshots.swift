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
    /// - Parameter decode: for what is compressed (`LLZF`) in a `zip-v1`, as for `StoreImporter`.
    public init(store: Store, transport: any ExchangeTransport, decode: ForeignDecoder? = nil) {
        self.store = store; self.transport = transport; self.decode = decode
    }

    // MARK: Into and from a directory of one's own

    /// Writes a snapshot of the store to a directory, which is made when only its last component is missing.
    /// Errors are those of `put`.
    public static func write(_ store: Store, to directory: String, _ control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        try Snapshots(store: store, transport: FolderTransport(path: directory)).put(control)
    }
    /// Restores a snapshot that `write`, or an exchange through that folder, left there. Errors are those of `restore`.
    public static func restore(_ store: Store, from directory: String, decode: ForeignDecoder? = nil, _ control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        var options = FolderTransport.Options()
        options.create = false
        return try Snapshots(store: store, transport: FolderTransport(path: directory, options: options), decode: decode).restore(control)
    }

    // MARK: The manifest

    /// The manifest of the snapshot that is there: the newest of ours, else a foreign one, else nil. One or two small reads.
    /// - Throws: `.snapshotDamaged` when there is none of ours and one that cannot be read; what the transport throws.
    public func manifest() throws -> SnapshotManifest? { try find()?.manifest }

    private struct Found {
        var manifest: SnapshotManifest
        /// What precedes the names of its files: "llvs-v1/", or "" where others put theirs and we did before.
        var prefix: String
    }
    private static let ours = format + "/"

    private func find() throws -> Found? {
        var foreign: Found?, ours: Found?, failure: StoreError?
        for prefix in [Snapshots.ours, ""] {
            do {
                guard let found = try readManifest(prefix) else { continue }
                if found.manifest.isForeign { foreign = foreign ?? found }
                else if found.manifest.createdAt > ours?.manifest.createdAt ?? -.infinity { ours = found }
            } catch let error as StoreError where error.code == .snapshotDamaged { failure = failure ?? error }
        }
        if let ours { return ours }
        if let failure { throw failure }
        return foreign
    }

    /// Whether ours is known to miss chunks, going by the names of the files alone. Their contents are not looked at.
    func lacksChunks() throws -> Bool {
        guard let found = try find(), !found.manifest.isForeign else { return false }
        let names = Set(try transport.snapshotFileNames())
        // A transport that does not list the manifest does not list at all.
        guard names.contains(found.prefix + "manifest.json") else { return false }
        return found.manifest.chunkDigests.indices.contains { !names.contains(found.prefix + SnapshotLimits.chunkName($0)) }
    }

    private func readManifest(_ prefix: String) throws -> Found? {
        let name = prefix + "manifest.json"
        guard let bytes = try transport.readSnapshotFile(name) else { return nil }
        return Found(manifest: try SnapshotManifest(bytes, file: "snapshots/\(name) in \(transport.description)"), prefix: prefix)
    }

    // MARK: Putting

    /// Puts a snapshot of all versions, in place of an older one of ours. While that goes on there is none.
    ///
    /// A snapshot that another implementation put stays; ours goes beside it.
    /// - Parameter control: called with stage `.writing`, in versions.
    /// - Throws: `.invalidArgument` when the store has no versions; `.cancelled`; `.damaged`; what the transport throws.
    public func put(_ control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        _ = try store.reloadHistory()
        guard let latest = try store.mostRecentHead() else {
            throw StoreError(.invalidArgument, "There is nothing to put a snapshot of: the store has no versions yet. Save something first.")
        }
        let ids = try store.allVersionIDs()
        let prefix = Snapshots.ours
        // Without a manifest a reader sees that there is no snapshot, rather than a mixture of two.
        try transport.deleteSnapshotFile(prefix + "manifest.json")
        var manifest = SnapshotManifest(snapshotID: VersionID.random().description, createdAt: Clock.now(), latestVersionID: latest.id.description)
        let transport = self.transport
        var writer = SnapshotWriter(id: manifest.snapshotID) { index, chunk in
            try transport.writeSnapshotFile(prefix + SnapshotLimits.chunkName(index), chunk)
        }
        for (i, id) in ids.enumerated() {
            try control.check(.writing, i, of: ids.count, doing: "Putting a snapshot into \(transport.description)")
            guard let version = try store.version(id) else { continue }
            try writer.begin(version, changeCount: store.changeCount(of: id))
            try store.forEachChange(madeIn: id) { try writer.append($0) }
            manifest.versionCount += 1
        }
        try writer.finish()
        try control.check(.writing, ids.count, of: ids.count, doing: "Putting a snapshot into \(transport.description)")
        manifest.chunkDigests = writer.digests
        manifest.chunkCount = UInt64(writer.digests.count)
        manifest.totalSize = writer.totalSize
        try transport.writeSnapshotFile(prefix + "manifest.json", manifest.encoded())
        try removeStale(Set(writer.digests.indices.map { prefix + SnapshotLimits.chunkName($0) }))
        return manifest
    }

    /// Removes chunks of an older, larger snapshot, and one of ours in the first place, where we put them before. What is not known to be ours stays.
    private func removeStale(_ current: Set<String>) throws {
        let before = try? readManifest("")?.manifest
        if let before, !before.isForeign {
            try transport.deleteSnapshotFile("manifest.json")
            for i in before.chunkDigests.indices { try transport.deleteSnapshotFile(SnapshotLimits.chunkName(i)) }
        }
        for name in try transport.snapshotFileNames() where name.utf8.starts(with: (Snapshots.ours + "chunk-").utf8) && !current.contains(name) {
            try transport.deleteSnapshotFile(name)
        }
    }

    // MARK: Restoring

    /// Adds all versions of the snapshot to a store that is empty, holds one version, or holds a part of this snapshot, since a
    /// restore was stopped in the middle.
    ///
    /// All of it is read, verified and added to a store in memory (without the bytes of values) before the first
    /// version is added here, so that one that is refused leaves the store as it was. One of ours goes before one of others. A cancelled or failed adding keeps what was added whole; restoring again, or an exchange, brings the rest.
    /// - Parameter control: called with stages `.verifying` and `.adding`, in versions, and `.reading`, in chunks.
    /// - Throws: `.storeNotEmpty`, `.snapshotMissing`, `.foreignSnapshot`, `.snapshotDamaged`, `.cancelled`; what the
    ///   transport throws, and what keeps the store from adding.
    public func restore(_ control: OperationControl = OperationControl()) throws -> SnapshotManifest {
        _ = try store.reloadHistory()
        let count = try store.allVersionIDs().count
        let notEmpty = StoreError(.storeNotEmpty, "A snapshot can only be restored into a store that is empty, holds one version, or holds a part of the same snapshot; this one holds \(count) versions. Use an exchange, or a new store.")
        let found = try count > 1 ? { () throws -> Found? in
            // Perhaps a restore was stopped in the middle.
            guard let found = try? find(), found.manifest.isReadable, UInt64(count) < found.manifest.versionCount else { throw notEmpty }
            return found
        }() : find()
        guard let found else {
            throw StoreError(.snapshotMissing, "There is no snapshot in \(transport.description). Use an exchange, or let another replica put one.")
        }
        guard found.manifest.isReadable else {
            throw StoreError(.foreignSnapshot, "The snapshot in \(transport.description) has the format \"\(found.manifest.format)\" of another implementation, which cannot be read here. Use an exchange.")
        }
        let zip = found.manifest.isForeign ? try self.zip(found.manifest, control) : nil
        try verify(zip ?? reader(found, isVerified: false, control), found, count > 1 ? notEmpty : nil, control)
        try add(zip ?? reader(found, isVerified: true, control), found, control)
        return found.manifest
    }

    private func reader(_ found: Found, isVerified: Bool, _ control: OperationControl) -> any SnapshotVersions {
        let transport = self.transport
        return SnapshotReader(found.manifest, from: transport.description, isVerified: isVerified, control) {
            try transport.readSnapshotFile(found.prefix + SnapshotLimits.chunkName($0))
        }
    }

    /// Its chunks are beside the manifest, or lately in a folder of the snapshot's id.
    private func zip(_ manifest: SnapshotManifest, _ control: OperationControl) throws -> any SnapshotVersions {
        let folder = manifest.snapshotID + "/"
        var prefix = ""
        if SnapshotLimits.isFileName(folder + SnapshotLimits.chunkName(0)), try transport.readSnapshotFile(folder + SnapshotLimits.chunkName(0)) != nil { prefix = folder }
        return try ZipSnapshot(manifest, from: transport.description, decode: decode, control) { try transport.readSnapshotFile(prefix + SnapshotLimits.chunkName($0)) }
    }

    /// - Parameter notEmpty: thrown when the store has a version that the snapshot has not.
    private func verify(_ versions: any SnapshotVersions, _ found: Found, _ notEmpty: StoreError?, _ control: OperationControl) throws {
        let present = Set(try store.allVersionIDs())
        var rehearsal = try Rehearsal(), reader = versions, seen: Set<VersionID> = []
        // Of what the id says what the version holds, the bytes of the values are needed to see that it does.
        while var received = try reader.next(keepingData: { present.contains($0) || $0.hasContentForm }) {
            let id = received.version.id
            try control.check(.verifying, Int(clamping: reader.versionsRead), of: Int(clamping: found.manifest.versionCount), doing: "Restoring the snapshot in \(transport.description)")
            for predecessor in received.version.predecessors where predecessor != EmptyRoot.id && !seen.contains(predecessor) {
                throw reader.damaged("the version \(id) comes before its predecessor \(predecessor)")
            }
            for case .preserve(let reference) in received.changes where !seen.contains(reference.version) {
                throw reader.damaged("the version \(id) preserves bytes of \(reference.version), which is not before it")
            }
            guard seen.insert(id).inserted else { throw reader.damaged("the version \(id) is there twice") }
            // What the store has already is compared only, never added.
            if present.contains(id), case .problem? = try store.add([received]).first {
                throw StoreError(.storeNotEmpty, "The store's version \(id) and the one of the snapshot in \(transport.description) differ. Use a new store.", versionID: id.description)
            }
            do { try store.look(at: &received) } catch let error as StoreError where error.code == .contentMismatch {
                throw reader.damaged("it holds a version that cannot be added. \(error.message)")
            }
            if let refused = try rehearsal.add(received.withoutData) { throw reader.damaged("it holds a version that cannot be added. \(refused.message)") }
        }
        if let refused = try rehearsal.finish() { throw reader.damaged("it holds a version that cannot be added. \(refused.message)") }
        if let notEmpty, !present.isSubset(of: seen) { throw notEmpty }
    }

    /// A store in memory that takes the versions without their bytes: what it refuses, any store would.
    private struct Rehearsal {
        private let store: Store
        private var batch: [Store.ReceivedVersion] = []
        init() throws { store = try Store(storage: MemoryStorage(), options: Store.Options()) }

        /// Nil, or why one of the versions cannot be added.
        mutating func add(_ received: Store.ReceivedVersion) throws -> StoreError? {
            batch.append(received)
            return batch.count >= ExchangeLimits.batchCount ? try finish() : nil
        }
        mutating func finish() throws -> StoreError? {
            defer { batch = [] }
            for case .problem(let error) in try store.add(batch) { return error }
            return nil
        }
    }

    private func add(_ versions: any SnapshotVersions, _ found: Found, _ control: OperationControl) throws {
        var reader = versions, batch: [Store.ReceivedVersion] = [], size = 0
        var added = 0
        /// The next version. All were whole when they were checked, and their digests are those of then: what differs now was
        /// changed since, and what was added before stays.
        func next() throws -> Store.ReceivedVersion? {
            do { return try reader.next(keepingData: { _ in true }) } catch let error as StoreError where error.code == .snapshotDamaged {
                throw StoreError(.snapshotDamaged, "The snapshot in \(transport.description) was changed while it was being restored: it was whole when it was checked, and is not any more. \(added) of its \(found.manifest.versionCount) versions were added before, and stay. Restore it again once nobody writes to it, or use an exchange for the rest.", path: error.path)
            }
        }
        while let received = try next() {
            batch.append(received)
            size += received.changes.reduce(200) { $0 + InterchangeEncoder.sizeHint($1) }
            if size >= ExchangeLimits.batchSize || batch.count >= ExchangeLimits.batchCount {
                added += batch.count
                try add(&batch)
                size = 0
                try control.check(.adding, Int(clamping: reader.versionsRead), of: Int(clamping: found.manifest.versionCount), doing: "Restoring the snapshot in \(transport.description)")
            }
        }
        try add(&batch)
    }

    private func add(_ batch: inout [Store.ReceivedVersion]) throws {
        for case .problem(let error) in try store.add(batch) {
            throw StoreError(.snapshotDamaged, "The snapshot in \(transport.description) holds a version that cannot be added. \(error.message) What came before it was kept; use an exchange for the rest.", versionID: error.versionID)
        }
        batch = []
    }
}
