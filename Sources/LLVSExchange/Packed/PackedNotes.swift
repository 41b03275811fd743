/// Where a store saves what it knows of a remote in the packed layout: in its caches, under a name of `PlaceNotes`.
struct PackedNotes {
    private let storage: any Storage
    private let name: String
    /// The remote of `name`, without the account.
    private let remote: String
    /// Excludes concurrent exchanges of this machine with the same remote.
    private let claim: any StorageNote
    private let busy: BusyRemote

    static func name(_ remote: String) -> String { PlaceNotes.name(remote) }

    /// Returns what a store knows of a remote, without excluding other exchanges.
    static func known(of store: Store, remote: String, account: String? = nil) throws -> PackedState? {
        try store.checkOpen()
        return try store.storage.cacheGet(PlaceNotes.name(remote, account, store.storage)).flatMap(PackedState.init(encoded:))
    }

    // MARK: -

    /// - Parameters:
    ///   - remote: the name of the remote.
    /// - account: the account whose place it is, if the address does not identify it.
    /// - Throws: `.busy` if another exchange of this store with the remote is running.
    init(_ store: Store, remote: String, account: String? = nil) throws {
        try store.checkOpen()
        storage = store.storage
        self.remote = remote
        name = try PlaceNotes.name(remote, account, storage)
        do {
            busy = try BusyRemote(name, store)
            claim = try store.storage.openNote(name)
            guard let account else { return }
            // Another account may have become the first meanwhile.
            guard try PlaceNotes.name(remote, account, storage) == name else {
                throw StoreError(.busy, "Another account exchanges there.")
            }
            let owner = PlaceNotes.ownerName(name)
            if name == PackedNotes.name(remote), try storage.cacheGet(owner) == nil {
                try storage.cachePut(owner, PlaceNotes.mark(account))
            }
        } catch let error as StoreError where error.code == .busy {
            var busy = StoreError(
                .busy, "Another exchange of this store with \(remote) is running, here or in another process. Try again when it is done.")
            busy.circumstance = .alreadyRunning
            throw busy
        }
    }

    /// Returns the last saved state; nil if there is none or it is unreadable.
    func load() throws -> PackedState? { try storage.cacheGet(name).flatMap(PackedState.init(encoded:)) }
    /// Saves the state: `PackedState.body`.
    func save(_ body: [UInt8]) throws { try storage.cachePut(name, PackedState.encoded(body)) }
    /// Forgets the remote, except the store ids of its roots, for a device that refills it.
    func forget(_ random: PackRandom) throws {
        let known = try load(), stores = known.map { $0.roots.isEmpty ? $0.formerStores : $0.roots.map(\.store) } ?? []
        try remove()
        guard !stores.isEmpty else { return }
        var state = PackedState(random)
        state.formerStores = stores
        state.seedsAnew = true
        try save(state.body)
    }
    private func remove() throws {
        forgetUpload()
        PackedNotes.forgetSession(in: storage, remote: remote)
        try storage.cacheDelete(PlaceNotes.versionsName(name))
        try storage.cacheDelete(name)
    }

    // MARK: The versions of an attempt

    private func name(_ pack: PackName) -> String { "\(name)-\(pack.id)" }

    func put(_ ids: [VersionID], of pack: PackName) throws {
        var out = ByteWriter()
        out.varint(UInt64(ids.count))
        for id in ids { out.versionID(id) }
        try storage.cachePut(name(pack), out.bytes)
    }
    /// Nil if they are no longer known.
    func ids(of pack: PackName) throws -> [VersionID]? {
        try storage.cacheGet(name(pack))?.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let count = reader.count(atMost: bytes.count) else { return nil }
            var ids: [VersionID] = []
            for _ in 0..<count {
                guard let id = reader.versionID() else { return nil }
                ids.append(id)
            }
            return ids
        }
    }
    func forget(_ pack: PackName) { try? storage.cacheDelete(name(pack)) }

    // MARK: An unfinished upload

    private var uploadName: String { "\(name)-upload" }
    private var sessionName: String { name + CacheName.secret }
    private var keepsUploads: Bool { PackedNotes.keepsUploads(storage) }
    /// Uploads of stores in memory end with the process. Storages of a host, or readable by a group, could expose the secret of the
    /// session.
    private static func keepsUploads(_ storage: any Storage) -> Bool {
        if let storage = storage as? SQLiteStorage { return storage.fileSystem.mode & 0o077 == 0 }
        return !(storage is MemoryStorage || storage is CallbackStorage)
    }

    /// Returns a session that can resume the upload of a large single file, if bytes, name and account are the same.
    /// - Returns: nil if the storage cannot save it; otherwise also a function to call after the upload.
    static func session(
        of upload: RemoteUpload, in store: Store, remote: String, account: String?, _ check: () throws -> Void
    ) throws -> (session: RemoteSession, end: () -> Void)? {
        let storage = store.storage
        guard keepsUploads(storage) else { return nil }
        var digest = SHA256(), checked = 0
        Array("\(account ?? "")\n\(upload.name)\n".utf8).withUnsafeBytes { digest.update($0) }
        try upload.data.forEachPiece { piece in
            digest.update(piece)
            checked += piece.count
            if checked >= OperationControl.bytesPerCheck { try check(); checked = 0 }
        }
        let mark = Hex.text(of: digest.finish()), name = fileSessionName(remote)
        let words = (try? storage.cacheGet(name)).flatMap { $0 }?.split(separator: 10, maxSplits: 1) ?? []
        let kept = words.count == 2 && words[0].elementsEqual(mark.utf8) ? String(decoding: words[1], as: UTF8.self) : nil
        let session = RemoteSession(kept: kept) { try? storage.cachePut(name, Array("\(mark)\n\($0)".utf8)) }
        return (session, { try? storage.cacheDelete(name) })
    }
    private static func fileSessionName(_ remote: String) -> String { name(remote) + "-file" + CacheName.secret }
    /// Deletes the session of an upload that is not resumed: its address is a secret.
    static func forgetSession(in storage: any Storage, remote: String) {
        let name = fileSessionName(remote)
        if keepsUploads(storage), (try? storage.cacheGet(name)) != nil { try? storage.cacheDelete(name) }
    }

    /// Saves a file until it is uploaded, so that the next process can resume; false if that is impossible. Nothing relies on it.
    /// - Parameter writer: the writer id of this device, which changes if a clone was met.
    func keep(_ made: MadePack, by writer: UInt64) -> Bool {
        guard keepsUploads else { return false }
        if let kept = try? keptUpload(by: writer), kept.name == made.name { return true }
        try? storage.cacheDelete(sessionName)
        return (try? storage.cachePut(uploadName, Array("\(made.name) \(writer)\n".utf8) + made.bytes)) != nil
    }
    func keep(session: String) { try? storage.cachePut(sessionName, Array(session.utf8)) }
    var session: String? { (try? storage.cacheGet(sessionName)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) } }

    /// Returns the saved file if it is complete and was made by this writer.
    func keptUpload(by writer: UInt64) throws -> MadePack? {
        guard keepsUploads, let kept = try storage.cacheGet(uploadName), let end = kept.firstIndex(of: 10), end < 200,
            case let parts = kept[..<end].split(separator: 32), parts.count == 2, parts[1].elementsEqual("\(writer)".utf8),
            let name = PackName(String(decoding: parts[0], as: UTF8.self))
        else { return nil }
        let bytes = Array(kept[(end + 1)...])
        guard bytes.withUnsafeBytes({ PackID(SHA256.digest($0)) }) == name.id else { return nil }
        return MadePack(name: name, pieces: [bytes], size: bytes.count)
    }
    func forgetUpload() { for each in [sessionName, uploadName] where keepsUploads { try? storage.cacheDelete(each) } }
}

/// Allows one exchange of a store with a remote at a time, within this process.
private final class BusyRemote: Sendable {
    private struct Key: Hashable { let store: ObjectIdentifier, name: String }
    private static let all = Guarded<Set<Key>>([])
    private let key: Key

    init(_ name: String, _ store: Store) throws {
        let key = Key(store: ObjectIdentifier(store), name: name)
        guard BusyRemote.all.withLock({ $0.insert(key).inserted }) else { throw StoreError(.busy, "It is exchanging already.") }
        // Set last: if all properties were set before the error, `deinit` would run and remove the key of the running exchange.
        self.key = key
    }
    deinit { BusyRemote.all.withLock { [key] in _ = $0.remove(key) } }
}
