/// An exchange through files at a place on a network: the interchange layout (docs/interchange.md) on `RemoteFiles`.
public final class RemoteTransport: PacedTransport, SharingTransport, AddressedTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let files: any RemoteFiles
    private let spelling: PlaceSpelling
    private let lock = Lock(.leaf)
    private var known = RemoteKnowledge()
    private var isPrepared = false
    /// The time until which the place is not checked for keys again.
    private var clearUntil = -Double.infinity
    /// Seconds for which the listing of a retrieve is valid for the following send.
    private static let freshness = 10.0
    /// The number of files that are read before their total size is checked.
    private static let filesAtOnce = 32
    /// The most attempts while other devices write the same files.
    private static let mostLooks = 5

    /// Selects the versions to send, beside packs. The owner of the files then closes them.
    private let choose: (@Sendable ([VersionID], Store) throws -> [VersionID])?

    package var sendsAll: Bool { choose == nil }
    package init(_ files: any RemoteFiles) { self.files = files; spelling = PlaceSpelling(files); choose = nil }
    /// - Parameter choose: selects, from the versions that the place lacks, those to send, predecessors first.
    init(_ files: any RemoteFiles, choose: @escaping @Sendable ([VersionID], Store) throws -> [VersionID]) {
        self.files = files; self.choose = choose
        spelling = PlaceSpelling(files)
    }
    package func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID] {
        keepUploads(in: store)
        let chosen = try choose?(missing, store) ?? missing
        // An unfinished upload is not needed any more, or must be forgotten.
        let isOver = lock.withLock {
            defer { mustForget = false }
            return mustForget || chosen.isEmpty
        }
        if isOver { PackedNotes.forgetSession(in: store.storage, remote: try spelling.place(in: store)) }
        return chosen
    }
    /// The time in seconds since 2001; tests replace it.
    var clock: @Sendable () -> Double = { Clock.now() }
    /// Whether a stored session of an upload must be forgotten.
    private var mustForget = false
    /// Whether the store joins the contents of the place.
    private var joins = false
    /// Nil beside packs, which identify the place.
    package func placeAddress(in store: Store, _ check: @escaping () throws -> Void) throws -> (place: String, account: String?)? {
        guard choose == nil else { return nil }
        return (try spelling.place(in: store), try files.account(check))
    }
    package func takeJoin() -> Bool {
        lock.withLock {
            defer { joins = false }
            return joins
        }
    }
    /// The store whose caches have the session of a large upload.
    private weak var store: Store?
    func keepUploads(in store: Store) { lock.withLock { self.store = store } }

    public var description: String { files.description }
    package var counts: RemoteCounts { files.counts }
    package var keepsDeletedFiles: Bool { !files.capabilities.isNear }
    package func notedPlace(in store: Store) throws -> String { try spelling.place(in: store) }
    package func knownAccount() throws -> String? { try files.account(nil) }

    private static func path(_ folder: ExchangeListing.Foreign.Folder, _ name: String) -> String { "\(folder.rawValue)/\(name)" }

    // MARK: Listing

    public func list(_ control: OperationControl) throws -> ExchangeListing {
        let listing = try listAnew(control)
        lock.withLock { known.fresh = (listing, Clock.steady() + RemoteTransport.freshness) }
        return listing
    }

    public func listToSend(_ control: OperationControl) throws -> ExchangeListing {
        let fresh = lock.withLock { () -> ExchangeListing? in
            defer { known.fresh = nil }
            return known.fresh.flatMap { $0.until > Clock.steady() ? $0.listing : nil }
        }
        return try fresh ?? listAnew(control)
    }

    private func listAnew(_ control: OperationControl) throws -> ExchangeListing {
        let what = "Listing \(description)", paced = control.paced(.listing, doing: what)
        let check = { try control.check(.listing, 0, of: 0, doing: what) }
        var listing = ExchangeListing(versions: []), sizes: [VersionID: Int] = [:], directories: Set<VersionID> = []
        for entry in try files.list("versions", withTimes: false, check) ?? [] {
            try paced.step(0)
            guard let id = VersionID(validating: entry.name) else { listing.addForeign(entry.name, .versions); continue }
            guard sizes.updateValue(entry.size ?? -1, forKey: id) == nil else { continue }
            if entry.isDirectory { directories.insert(id) }
            try Memory.grow(&listing.versions, what)
            listing.versions.append(id)
        }
        let digest = RemoteKnowledge.Digest(listing.versions)
        let now = clock()
        var changesSizes: [VersionID: Int]?
        if lock.withLock({ known.wantsChanges(digest, now) }) {
            var withChanges: [VersionID] = [], found: [VersionID: Int] = [:]
            for entry in try files.list("changes", withTimes: false, check) ?? [] {
                try paced.step(0)
                guard let id = VersionID(validating: entry.name) else { listing.addForeign(entry.name, .changes); continue }
                try Memory.grow(&withChanges, what)
                withChanges.append(id)
                found[id] = entry.isDirectory ? -1 : entry.size ?? -1
            }
            try listing.setApart(withChanges, paced)
            changesSizes = found
        }
        lock.withLock {
            listing.mark = known.take(listing, digest, sizes, directories)
            if let changesSizes { known.takeChanges(changesSizes, now) }
            // Another device may still encrypt an empty place.
            if listing.versions.isEmpty { isPrepared = false }
        }
        return listing
    }

    // MARK: Receiving

    public func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try fetch(.versions, names, control)
    }
    public func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { try fetch(.changes, names, control) }

    private func fetch(_ folder: ExchangeListing.Foreign.Folder, _ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        let what = "Retrieving from \(description)"
        var fetched: [FetchedFile] = [], size = 0
        while fetched.count < names.count, size < ExchangeLimits.batchSize {
            let begun = fetched.count
            let check = { try control.check(.receiving, begun, of: names.count, doing: what) }
            let asked = names[begun...].prefix(RemoteTransport.filesAtOnce)
            // Only version ids become addresses.
            let reads = asked.filter { VersionID(validating: $0) != nil }.map {
                RemoteRead(name: RemoteTransport.path(folder, $0), limit: ExchangeLimits.fileSize)
            }
            var answers = try files.read(reads, check).makeIterator()
            for name in asked {
                guard VersionID(validating: name) != nil, let answer = answers.next() else { fetched.append(.missing); continue }
                let file = fetchedFile(name, answer, check)
                fetched.append(file)
                size += file.size
            }
        }
        return fetched
    }

    private func fetchedFile(_ name: String, _ contents: RemoteContents, _ check: @escaping () throws -> Void) -> FetchedFile {
        switch contents {
        case .missing: .missing
        case .bytes(let bytes, _): .data(bytes)
        case .large(let reader): .pieces(CancellableReader(reader, check))
        case .unreadable(let error): .unreadable(error)
        }
    }

    // MARK: Sending

    public func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        let what = "Sending to \(description)"
        let check = { try control.check(.sending, 0, of: files.count, doing: what) }
        for file in files where VersionID(validating: file.name) == nil {
            throw StoreError(
                .invalidVersionID, "\"\(file.name)\" cannot be sent to \(description): it is not a version id.", versionID: file.name)
        }
        lock.withLock { known.fresh = nil }
        if !lock.withLock({ isPrepared }) {
            // Nothing is written in clear to an encrypted place.
            try RemoteKeyDirectory.refuseKeys(self.files, check)
            try self.files.prepareUploads(check)
            lock.withLock { isPrepared = true }
        }
        // All changes first, so that a reader finds no version without its changes.
        do {
            try publish(.changes, files, check)
            try publish(.versions, files, check)
        } catch let error as StoreError {
            var error = error
            // The place may be read-only.
            if error.circumstance == nil, error.isRefusal, try error.code == .tooLarge || self.files.takesAnother(check) {
                error.circumstance = .oneFile
            }
            throw error
        }
        lock.withLock { known.add(files) }
    }

    private func publish(
        _ folder: ExchangeListing.Foreign.Folder, _ files: [ExchangeFiles], _ check: () throws -> Void
    ) throws {
        var left: [(upload: RemoteUpload, file: ExchangeFiles)] = []
        for file in files {
            let path = RemoteTransport.path(folder, file.name)
            let (state, isSent) = lock.withLock { (known.state(VersionID(validating: file.name), folder), known.sent.contains(path)) }
            if isSent { continue }
            if state == .directory { throw occupied(path, "a folder has its name") }
            let data = folder == .changes ? file.changes : OutgoingFile(file.version)
            left.append((RemoteUpload(name: path, data: data, replaces: state == .file), file))
        }
        for _ in 0...RemoteTransport.mostLooks where !left.isEmpty {
            var differing: [(upload: RemoteUpload, file: ExchangeFiles)] = [], sent: Set<String> = [], refusal: StoreError?
            for ((upload, file), outcome) in zip(left, try publish(left.map(\.upload), check)) {
                switch outcome {
                case .published: sent.insert(upload.name)
                case .refused(let error): refusal = refusal ?? refused(upload.name, error)
                case .exists:
                    // Another device published it at the same time. An equal file stays, so that it always exists; so does one that differs
                    // only in its spelling.
                    if try isThere(upload, file, folder, check) { break }
                    differing.append((RemoteUpload(name: upload.name, data: upload.data, replaces: true), file))
                }
            }
            if let refusal {
                // The files that were not sent are sent again one by one; existing files are not published twice.
                lock.withLock { known.sent.formUnion(sent) }
                throw refusal
            }
            left = differing
        }
        guard let name = left.first?.upload.name else { return }
        var error = StoreError(
            .transport, "\(name) in \(description) cannot be written: other devices write it all the time. Exchange again.", path: name)
        error.circumstance = .oneFile
        throw error
    }

    /// Publishes files. A large file resumes an upload that an earlier call, or another process, did not finish.
    private func publish(_ uploads: [RemoteUpload], _ check: () throws -> Void) throws -> [RemotePublished] {
        let most = files.capabilities.sessionsAbove ?? .max
        guard let large = uploads.firstIndex(where: { $0.data.size > most }), let store = lock.withLock({ store }),
            let kept = try PackedNotes.session(
                of: uploads[large], in: store, remote: spelling.place(in: store), account: files.account(nil), check)
        else { return try files.publish(uploads, check) }
        var uploads = uploads
        uploads[large].session = kept.session
        do {
            let published = try files.publish(uploads, check)
            kept.end()
            return published
        } catch let error as StoreError {
            if !RemoteSession.outlives(error) { kept.end() }
            throw error
        }
    }

    /// Returns whether the existing file is equal, in bytes or in meaning. Large files are not compared.
    private func isThere(
        _ upload: RemoteUpload, _ file: ExchangeFiles, _ folder: ExchangeListing.Foreign.Folder, _ check: () throws -> Void
    ) throws -> Bool {
        guard upload.data.size <= ExchangeLimits.wholeFileSize, let id = VersionID(validating: file.name),
            let found = try files.read([RemoteRead(name: upload.name, limit: ExchangeLimits.fileSize)], check).first
        else { return false }
        // An unreadable file is not overwritten.
        if case .unreadable(let error) = found, error.circumstance == .oneFile { throw error }
        let mine = try upload.data.bytes()
        if case .bytes(let bytes, _) = found, Bytes.equal(bytes, mine) { return true }
        let says = try isRead(found, file.name, check) { document in
            if folder == .changes {
                return try InterchangeDecoder.changesFile(document, of: id) == InterchangeDecoder.changesFile(.bytes(mine), of: id)
            }
            var theirs = try InterchangeDecoder.version(document, name: id), ours = try InterchangeDecoder.version(mine, name: id)
            (theirs.valueDataSize, ours.valueDataSize) = (0, 0)
            return theirs == ours
        }
        guard says, folder == .versions else { return says }
        // At services with one record for both files, the changes are in it.
        let changes = RemoteUpload(name: RemoteTransport.path(.changes, file.name), data: file.changes, replaces: false)
        return try isThere(changes, file, .changes, check)
    }
    /// Returns whether a file can be read and passes a check.
    private func isRead(
        _ found: RemoteContents, _ name: String, _ check: () throws -> Void, _ isRight: (InterchangeDecoder.Document) throws -> Bool
    ) throws -> Bool {
        try withoutActuallyEscaping(check) { check in
            guard let document = fetchedFile(name, found, check).document(checking: check) else { return false }
            do { return try isRight(document) } catch let failure as PieceFailure {
                guard failure.isOfFile else { throw failure.error }
            } catch let error as StoreError {
                if [.outOfMemory, .cancelled].contains(error.code) { throw error }
            }
            return false
        }
    }

    /// Returns the service's error if it refused this file; otherwise something else has the name.
    private func refused(_ name: String, _ error: StoreError) -> StoreError {
        error.circumstance == .oneFile ? error : occupied(name, error.message)
    }
    private func occupied(_ name: String, _ why: String) -> StoreError {
        StoreError(
            .foreignFile, "\(name) in \(description) cannot be written: \(why). Move away what is there, and send again.", path: name)
    }

    /// Refuses to write snapshots in clear to a place that has keys. One check serves for all files of a snapshot.
    private func refuseKeys() throws {
        guard lock.withLock({ clearUntil < Clock.steady() }) else { return }
        try RemoteKeyDirectory.refuseKeys(files) {}
        lock.withLock { clearUntil = Clock.steady() + RemoteTransport.freshness }
    }

    public func takeListed() -> [ChangedFiles] { lock.withLock { known.takeListed() } }

    /// Returns the names of empty files.
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        lock.withLock { names.filter { VersionID(validating: $0).map(known.isEmptyThere) ?? false } }
    }

    // MARK: Snapshots

    private func snapshotFile(_ name: String) throws -> String {
        guard SnapshotLimits.isFileName(name) else {
            throw StoreError(.invalidArgument, "\"\(name)\" cannot be the name of a snapshot file.", path: name)
        }
        return "snapshots/\(name)"
    }

    public func readSnapshotFile(_ name: String) throws -> [UInt8]? {
        switch try files.read([RemoteRead(name: snapshotFile(name), limit: SnapshotLimits.fileSize)], {}).first {
        case .bytes(let bytes, _): return bytes
        case .large(let reader):
            var bytes: [UInt8] = []
            try Memory.grow(&bytes, by: reader.size, "Reading snapshots/\(name)")
            let pieceSize = 256 << 10
            var piece = [UInt8](repeating: 0, count: pieceSize)
            while true {
                let got = try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
                if got == 0 { return bytes }
                bytes.append(contentsOf: piece.prefix(got))
            }
        case .unreadable(let error): throw error
        case .missing, nil: return nil
        }
    }

    public func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {
        let upload = RemoteUpload(name: try snapshotFile(name), data: OutgoingFile(data), replaces: true)
        try refuseKeys()
        if case .refused(let error) = try files.publish([upload], {}).first { throw refused(upload.name, error) }
    }
    public func deleteSnapshotFile(_ name: String) throws {
        let file = try snapshotFile(name)
        try refuseKeys()
        try files.delete([file], {})
    }

    public func snapshotFileNames() throws -> [String] { try snapshotFileNames(.none) }
    package func snapshotFileNames(_ control: PacedControl) throws -> [String] {
        var names: [String] = []
        for entry in try files.list("snapshots", withTimes: false, { try control.look() }) ?? [] where SnapshotLimits.isFileName(entry.name)
        {
            guard entry.isDirectory else { names.append(entry.name); continue }
            for inner in try files.list("snapshots/\(entry.name)", withTimes: false, { try control.look() }) ?? [] where !inner.isDirectory
            {
                let name = "\(entry.name)/\(inner.name)"
                if SnapshotLimits.isFileName(name) { names.append(name) }
            }
        }
        return names
    }

    // MARK: The rest

    public var restorationState: [UInt8] {
        get { lock.withLock { known.state } }
        set {
            lock.withLock {
                known.state = newValue
                if newValue.elementsEqual("new".utf8) { (mustForget, joins) = (true, true) }
            }
        }
    }

    /// True: a server does not report its readers.
    public func isReadByOthers(_ store: Store) -> Bool { true }
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    public func close() { if choose == nil { files.close() } }
}

/// Polls a control before each MiB.
private final class CancellableReader: PieceReader, @unchecked Sendable {
    // Sendable: one thread at a time uses it: the one that it is handed to.
    private let reader: any PieceReader, check: () throws -> Void
    private var sinceCheck = 0

    init(_ reader: any PieceReader, _ check: @escaping () throws -> Void) { self.reader = reader; self.check = check }
    var size: Int { reader.size }
    func look() throws { try check() }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if sinceCheck >= OperationControl.bytesPerCheck { try check(); sinceCheck = 0 }
        let got = try reader.read(into: buffer)
        sinceCheck += got
        return got
    }
}

extension RemoteTransport: RequestingTransport {}
