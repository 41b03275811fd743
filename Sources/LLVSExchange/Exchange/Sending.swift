/// One run of `Exchange.send`.
struct Sending {
    let store: Store
    let transport: any ExchangeTransport
    let control: OperationControl
    private var result = ExchangeResult()
    private var failed: Set<VersionID> = []
    private var total = 0
    /// How many versions in a row a service failed to store lastingly.
    private var troubles = 0

    private(set) var memory: ExchangeMemory

    private let reportsUnportableIDs: Bool

    init(store: Store, transport: any ExchangeTransport, control: OperationControl, reportsUnportableIDs: Bool, memory: ExchangeMemory) {
        self.reportsUnportableIDs = reportsUnportableIDs
        self.store = store; self.transport = transport; self.control = control; self.memory = memory
    }
    private var what: String { "Sending to \(transport.description)" }

    mutating func run() throws -> ExchangeResult {
        _ = try store.reloadHistory(control: control)
        try control.check(.listing, 0, of: 0, doing: what)
        let listing = try transport.listToSend(control)
        try memory.place.check(listing, of: transport, in: store, control, what)
        try followOrders(in: listing)
        let missing = try select(listing)
        Log.write(
            .debug,
            "\(what): \(listing.versions.count) versions listed there, \(missing.count) to send, \(memory.broken.count) of them known to "
                + "be broken there."
        )
        try send(missing)
        memory.broken.subtract(result.versions)
        memory.oldForm.subtract(result.versions)
        result.problems = ExchangeProblem.inOrder(result.problems)
        let look = { [control, what, total, sent = result.versions.count] in try control.check(.sending, sent, of: total, doing: what) }
        try memory.place.note(listing, sent: result.versions, of: transport, in: store, look)
        return result
    }

    /// Returns whether no file at the place has bytes that orders name.
    func isClean() throws -> Bool {
        let erased = try store.orders.erasedAtPlaces()
        return try memory.erasureMark == store.orders.mark()
            && !erased.keys.contains { memory.broken.contains($0) || memory.unread.contains($0) || failed.contains($0) }
    }

    /// Returns the versions to send, predecessors first.
    private mutating func select(_ listing: ExchangeListing) throws -> [VersionID] {
        // If both sides had the same versions and neither changed since, nothing needs to be compared.
        let complete = memory.sentMark.flatMap { $0.listing == listing.mark ? $0.versions : nil }
        func look() throws { try control.check(.listing, 0, of: 0, doing: what) }
        var coverage = try store.coverage(by: listing.versions, complete: complete, look)
        var unusable = try unusable(among: coverage.sample(ExchangeLimits.verifiedCount, from: &memory.verifiedUpTo))
        if !memory.hasLookedAtAll, transport.holdsOldForm || !memory.oldForm.isEmpty {
            unusable = try self.unusable(among: coverage.all)
            memory.hasLookedAtAll = true
        }
        try findForged(among: listing)
        try store.uncover(memory.broken, in: &coverage, look)
        try store.uncover(memory.oldForm, in: &coverage, look)
        try store.uncover(unusable, in: &coverage, look)
        try store.uncover(listing.versionsOnly, in: &coverage, look)
        var missing = try store.missing(from: coverage, look)
        memory.sentMark = missing.isEmpty ? listing.mark.map { ($0, coverage.versionCount) } : nil
        if let transport = transport as? any SharingTransport { missing = try transport.toSend(of: missing, store) }
        guard !missing.isEmpty else { return [] }
        try findTwins(listing.versions, missing)
        return control.leavesToMakers ? try LateArrivals.of(store).leftOut(of: missing, in: store) : missing
    }

    // MARK: Ids that differ by case only

    /// Versions to send whose id differs only by case from a listed id, or from another id to send, if the place may confuse the two.
    private var twins: Set<VersionID> = []

    /// Ids that differ by case only.
    private struct Twins {
        let first: VersionID
        var areMany = false, there = 0
        mutating func add(_ id: VersionID) { areMany = areMany || id != first }
    }

    /// Finds the twins. A place that lists two twins holds both. A content id has no twin, since no implementation accepts it in other than
    /// capital letters.
    private mutating func findTwins(_ listed: [VersionID], _ missing: [VersionID]) throws {
        let paced = control.paced(.listing, doing: what)
        // The listed names are not collected, since other programs can put any number of them there.
        var found: [VersionID: Twins] = [:]
        for id in missing {
            try paced.step(0)
            if id.hasContentForm { continue }
            // Reserved at once: growing takes longer than a control may wait.
            if found.isEmpty { found.reserveCapacity(missing.count) }
            found[id.folded, default: Twins(first: id)].add(id)
        }
        guard !found.isEmpty else { return }
        for id in listed {
            try paced.step(0)
            let folded = id.folded
            guard found[folded] != nil else { continue }
            found[folded]?.add(id)
            found[folded]?.there += 1
        }
        twins = try Set(
            missing.filter { id in
                try paced.step(0)
                return found[id.folded].map { $0.areMany && $0.there < 2 } ?? false
            })
    }

    /// Returns whether the place confuses the id with its twin: then sending this file would replace the other's.
    private mutating func isTakenForItsTwin(_ id: VersionID) throws -> Bool {
        let found = try transport.fetched(
            [id.description], of: "version files", transport.fetchVersions, control.within(.sending, result.versions.count, of: total)
        ).first
        guard let found, let other = try read(found, { try InterchangeDecoder.versionOfAnyName($0, file: "versions/\(id)").id }),
            other != id, other.folded == id.folded
        else { return false }
        problem(
            id,
            StoreError(
                .invalidVersionID,
                "The version \(id) was not sent to \(transport.description), which holds \(other) and cannot hold both, since the two ids "
                    + "differ by case only. Use another place for one of the two.",
                versionID: id.description))
        return true
    }

    // MARK: Foreign files under ids of our versions

    /// Marks as broken the files at the place that have the id of a version of the store but are not that version: another program computed
    /// the id in advance, or overwrote the file. Checks content ids that the store has gained since the last call, and files that are new
    /// to the transport.
    private mutating func findForged(among listing: ExchangeListing) throws {
        let paced = control.paced(.listing, doing: what)
        for files in transport.takeChanged() {
            try paced.step(0)
            guard let id = VersionID(validating: files.name) else { continue }
            if max(files.versionSize, files.changesSize) <= WholeFile.readSize {
                memory.unread.insert(id)
            }
            // A large file is not read again by each process. Its size follows from what a content id names.
            else if id.hasContentForm, try !haveOurSizes(files, id) {
                memory.broken.insert(id)
            }
        }
        for files in transport.takeListed() {
            try paced.step(0)
            guard let id = VersionID(validating: files.name), try areTooShort(files, id) else { continue }
            memory.unread.insert(id)
        }
        let mark = try store.orders.mark()
        if mark != memory.erasureMark, try removeSnapshot() {
            // Files that are there may have bytes that orders name.
            let erased = try store.orders.erasedAtPlaces()
            for id in listing.versions where erased[id] != nil { memory.unread.insert(id) }
            memory.erasureMark = mark
        }
        let rows = store.rowCount, new = try store.contentIDs(behind: memory.checkedRows, paced.look)
        if !new.isEmpty {
            // The listed names are not collected, since other programs can put any number of them there.
            var fresh = Set<VersionID>(minimumCapacity: new.count)
            for id in new {
                try paced.step(0)
                if !memory.taken.contains(id) { fresh.insert(id) }
            }
            for id in listing.versions {
                try paced.step(0)
                if fresh.contains(id) { memory.unread.insert(id) }
            }
        }
        memory.checkedRows = rows
        memory.taken = []
        var broken: Set<VersionID> = [], done: Set<VersionID> = []
        defer {
            memory.broken.formUnion(broken)
            memory.unread.subtract(done)
        }
        try readFiles(of: Array(memory.unread).sorted(by: <, looking: paced.look)) { id, version, file in
            if try !isGenuine(id, version, file) { broken.insert(id) }
            done.insert(id)
        }
    }

    /// Calls with the two files of versions at the place.
    /// - Parameter body: a changes file in pieces is read during the call.
    private func readFiles(
        of ids: [VersionID], _ body: (VersionID, InterchangeDecoder.VersionFile?, FetchedFile) throws -> Void
    ) throws {
        var left = ids[...]
        while !left.isEmpty {
            let ids = Array(left.prefix(ExchangeLimits.batchCount)), names = ids.map(\.description)
            let control = control.within(.verifying, 0, of: ids.count)
            let versions = try transport.fetched(names, of: "version files", transport.fetchVersions, control)
            // Read at once: files in pieces cannot be read after the next request.
            let asked = Array(
                zip(ids, try zip(ids, versions).map { id, file in try read(file) { try InterchangeDecoder.versionFile($0, name: id) } }))
            var next = 0
            while next < asked.count {
                let changes = try transport.fetched(
                    asked[next...].map { $0.0.description }, of: "changes files", transport.fetchChanges, control)
                for ((id, version), file) in zip(asked[next...], changes) {
                    try body(id, version, file)
                }
                next += changes.count
            }
            left = left.dropFirst(asked.count)
        }
    }

    // MARK: Orders to erase

    /// Follows the orders in versions that this device has not received, before it sends: a device that only sends erases first, too.
    private mutating func followOrders(in listing: ExchangeListing) throws {
        guard try store.orders.mayBeOfOthers else { return }
        let look = { [control, what] in try control.check(.listing, 0, of: 0, doing: what) }
        let unknown = try store.unknown(among: listing.versions, look).filter { !memory.readForOrders.contains($0) }
        guard !unknown.isEmpty else { return }
        var found: [Store.ReceivedVersion] = [], seen = memory.readForOrders
        try readFiles(of: unknown) { id, version, file in
            if seen.count < ExchangeMemory.mostRead { seen.insert(id) }
            guard let version = version?.version, let changes = try read(file, { try InterchangeDecoder.changesFile($0, of: id) }) else {
                return
            }
            let orders = changes.changes.filter { $0.id.bytes.withUnsafeBytes(EraseOrder.isNamed(by:)) }
            if !orders.isEmpty { found.append(Store.ReceivedVersion(version: version, changes: orders)) }
        }
        if !found.isEmpty { try store.orders.follow(found) }
        memory.readForOrders = seen
    }

    /// Removes the snapshot of this implementation at the place, if it may have bytes that orders name. The next one that is due is made
    /// anew.
    /// - Returns: false if it is still there. Then a problem names it, and the next send tries again.
    private mutating func removeSnapshot() throws -> Bool {
        guard let mark = try store.orders.markOfSnapshots().map({ Hex.text(of: $0) }) else { return true }
        do {
            for prefix in [SnapshotLimits.format + "/", ""] {
                let manifest = prefix + "manifest.json"
                guard let bytes = try transport.readSnapshotFile(manifest), prefix != "" || Sending.isOurs(bytes),
                    Sending.text(SnapshotLimits.ordersName, in: bytes) != mark
                else { continue }
                try transport.deleteSnapshotFile(manifest)
                let paced = control.paced(.listing, doing: what)
                for name in try transport.snapshotFileNames(paced) where name.utf8.starts(with: (prefix + "chunk-").utf8) {
                    try paced.step(0)
                    try transport.deleteSnapshotFile(name)
                }
            }
            return true
        } catch let error as StoreError where ![.cancelled, .user, .closed, .outOfMemory].contains(error.code) {
            result.problems.append(ExchangeProblem(name: "snapshots", error: error))
            return false
        }
    }
    private static func isOurs(_ manifest: [UInt8]) -> Bool {
        let format = text("format", in: manifest)
        return format == SnapshotLimits.format || format == SnapshotLimits.hollowFormat
    }
    /// Returns a member of a manifest; nil if it has none.
    private static func text(_ name: StaticString, in manifest: [UInt8]) -> String? {
        var found: String?
        try? manifest.withUnsafeBytes { bytes in
            var reader = JSONReader(bytes)
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, name) {
                    found = String(decoding: try reader.string(), as: UTF8.self)
                } else {
                    try reader.skip()
                }
            }
        }
        return found
    }

    /// Returns whether the listing shows fewer bytes for a version of the store than its files can have: an upload was cut short and
    /// acknowledged. Another implementation leaves out the digest, and otherwise writes nothing shorter.
    private func areTooShort(_ files: ChangedFiles, _ id: VersionID) throws -> Bool {
        do {
            guard files.versionSize >= 0 || files.changesSize >= 0, let version = try store.version(id) else { return false }
            let ours = InterchangeEncoder.version(version, digest: [UInt8](repeating: 0, count: 32)).count
            if files.versionSize >= 0, files.versionSize < ours, files.versionSize != InterchangeEncoder.version(version).count {
                return true
            }
            return try files.changesSize >= 0 && files.changesSize < InterchangeEncoder.changes(madeIn: id, of: store).size
        } catch let error as StoreError where error.code == .damaged { return false }
    }

    /// Returns whether files have the sizes of those that this library would write.
    private func haveOurSizes(_ files: ChangedFiles, _ id: VersionID) throws -> Bool {
        do {
            // If bytes are gone here, the file may have them.
            guard let version = try store.version(id), try store.hollowCount(of: id) == 0 else { return true }
            let digest = [UInt8](repeating: 0, count: 32)
            return try InterchangeEncoder.version(version, digest: digest).count == files.versionSize
                && InterchangeEncoder.changes(madeIn: id, of: store).size == files.changesSize
        } catch let error as StoreError where error.code == .damaged { return true }
    }

    /// Returns the content of a file at the place; nil if it cannot be read or understood.
    private func read<R>(_ file: FetchedFile, _ read: (InterchangeDecoder.Document) throws -> R) throws -> R? {
        guard let document = file.document(checking: { [control, what] in try control.check(.verifying, 0, of: 0, doing: what) }) else {
            return nil
        }
        do { return try read(document) } catch let failure as PieceFailure {
            guard failure.isOfFile else { throw failure.error }
        } catch {
            // The shortage is not the file's fault.
            if (error as? StoreError)?.code == .outOfMemory { throw error }
        }
        return nil
    }

    /// Returns whether a store that lacks the version would accept the files. If the id is no content id, they may hold another version.
    private func isGenuine(_ id: VersionID, _ file: InterchangeDecoder.VersionFile?, _ changes: FetchedFile) throws -> Bool {
        guard let version = file?.version, let found = try read(changes, { try InterchangeDecoder.changesFile($0, of: id) }) else {
            return false
        }
        // A file with fewer bytes than the store is written again.
        guard found.hollow.isEmpty || (try? store.hollowCount(of: id)) ?? 0 >= found.hollow.count else { return false }
        // A file with bytes that an order names, too.
        let erased = try store.orders.idsErasedAtPlaces(of: id)
        guard erased.isEmpty || !found.hasBytes(of: erased) else { return false }
        let received = Store.ReceivedVersion(version, found)
        if let digest = file?.digest, !Bytes.equal(digest, Hex.utf8(of: store.identityDigest(of: received))) { return false }
        return try store.isGenuine(received)
    }

    private func unusable(among ordinals: [UInt32]) throws -> [VersionID] {
        var found: [VersionID] = [], left = ordinals[...]
        repeat {
            let asked = store.ids(Array(left.prefix(2 * ExchangeLimits.verifiedCount)))
            left = left.dropFirst(asked.count)
            found += try transport.unusable(among: asked.map(\.description), control).compactMap { VersionID(validating: $0) }
        } while !left.isEmpty
        return found
    }

    private mutating func problem(_ id: VersionID, _ error: StoreError) {
        failed.insert(id)
        result.problems.append(ExchangeProblem(name: id.description, error: error))
    }

    private mutating func send(_ ids: [VersionID]) throws {
        total = ids.count
        var batch: [ExchangeFiles] = [], batchIDs: [VersionID] = [], size = 0
        for (i, id) in ids.enumerated() {
            try control.check(.sending, i, of: ids.count, doing: what)
            if twins.contains(id) { try flush(&batch, &batchIDs); size = 0 }
            if twins.contains(id), try isTakenForItsTwin(id) { continue }
            guard let files = try files(of: id) else { continue }
            if reportsUnportableIDs { try reportUnportable(id) }
            if files.changes.size > ExchangeLimits.wholeFileSize || twins.contains(id) {
                try flush(&batch, &batchIDs)
                size = 0
                try sendAlone(files, id)
                continue
            }
            batch.append(files)
            batchIDs.append(id)
            size += files.version.count + files.changes.size
            if size >= ExchangeLimits.batchSize || batch.count >= ExchangeLimits.batchCount || i == ids.count - 1 {
                try flush(&batch, &batchIDs)
                size = 0
            }
        }
        try flush(&batch, &batchIDs)
        if !ids.isEmpty { try control.check(.sending, ids.count, of: ids.count, doing: what) }
    }

    private mutating func flush(_ batch: inout [ExchangeFiles], _ ids: inout [VersionID]) throws {
        guard !batch.isEmpty else { return }
        do { try transport.send(batch, control.within(.sending, result.versions.count, of: total)) } catch let error as StoreError
            where error.code == .foreignFile || error.circumstance == .oneFile
        {
            // One of them cannot be stored; the error does not say which.
            if ids.count == 1 {
                troubles = error.circumstance == .oneFile && (error.isOfServer || error.isRefusal) ? troubles + 1 : 0
                guard troubles < StoreError.manyOfServer else { throw error.ofAll }
                problem(ids[0], error)
            } else {
                for (files, id) in zip(batch, ids) where try !isHeldBack(id) { try sendAlone(files, id) }
            }
            ids = []
        }
        result.versions += ids
        if !ids.isEmpty { troubles = 0 }
        Log.write(.debug, "\(what): \(result.versions.count) of \(total) versions sent.")
        batch = []
        ids = []
    }

    private mutating func reportUnportable(_ id: VersionID) throws {
        let paced = control.within(.sending, result.versions.count, of: total).paced(.sending, doing: what)
        if let metadata = try store.version(id)?.metadata, let (key, other) = UnportableIDs.twinKeys(metadata) {
            result.problems.append(
                ExchangeProblem(
                    name: id.description,
                    error: StoreError(
                        .unportableID,
                        "The metadata of the version \(id) has the keys \"\(key)\" and \"\(other)\", which have the same characters, "
                            + "composed in another way. Another implementation takes them for one. \(UnportableIDs.whatFails). "
                            + "It was sent to \(transport.description) all the same. If others share that place, use another key.",
                        versionID: id.description)))
        }
        try store.forEachChangeSize(madeIn: id) { change, _ in
            try paced.step(0)
            guard change.hasData, let reason = try memory.unportable.reason(change.id, in: store, paced) else { return }
            let value = ValueID(unchecked: change.id)
            result.problems.append(
                ExchangeProblem(
                    name: id.description,
                    error: StoreError(
                        .unportableID,
                        "The value id \"\(value)\" of the version \(id) is one that another implementation cannot hold: \(reason). "
                            + "It was sent to \(transport.description) all the same. If others share that place, use another id.",
                        valueID: value, versionID: id.description)))
        }
    }

    /// Returns whether a predecessor could not be sent: then this version is a problem as well.
    private mutating func isHeldBack(_ version: Version) -> Bool {
        guard let held = version.predecessors.first(where: failed.contains) else { return false }
        problem(
            version.id,
            StoreError(
                .missingPredecessor,
                "The version \(version.id) was not sent to \(transport.description), since its predecessor \(held) could not be. "
                    + "It is sent after that one.",
                versionID: held.description))
        return true
    }
    private mutating func isHeldBack(_ id: VersionID) throws -> Bool {
        guard !failed.isEmpty, let version = try store.version(id) else { return false }
        return isHeldBack(version)
    }

    /// The changes may be produced only now, so damage in them may show only now.
    private mutating func sendAlone(_ files: ExchangeFiles, _ id: VersionID) throws {
        do {
            var batch = [files], ids = [id]
            try flush(&batch, &ids)
        } catch let error as StoreError
            where error.code.isGone || [.damaged, .foreignFile].contains(error.code) || error.circumstance == .oneFile
        {
            problem(id, error)
        }
    }

    /// Returns nil if bytes are gone.
    private func wholeChanges(madeIn id: VersionID) throws -> [Value.Change]? {
        do { return try store.changes(madeIn: id) } catch let error as StoreError where error.code.isGone { return nil }
    }

    /// Returns nil, and adds a problem, if the version cannot be sent.
    private mutating func files(of id: VersionID) throws -> ExchangeFiles? {
        do {
            guard let version = try store.version(id) else { return nil }
            if isHeldBack(version) { return nil }
            let isLarge = version.valueDataSize > UInt64(ExchangeLimits.wholeFileSize)
            let changes: OutgoingFile, digest: [UInt8]
            if !isLarge, let recorded = try wholeChanges(madeIn: id) {
                changes = OutgoingFile(InterchangeEncoder.changes(recorded))
                digest = recorded.withBorrowed { store.identityDigest(version, $0) }
            } else {
                changes = try InterchangeEncoder.changes(madeIn: id, of: store)
                digest = try store.identityDigest(of: id)
            }
            guard changes.size <= ExchangeLimits.fileSize else {
                throw StoreError(
                    .tooLarge,
                    "The version \(id) cannot be sent to \(transport.description): "
                        + "its changes take more than \(ExchangeLimits.fileSize) bytes in one file. Save large values in several versions.",
                    versionID: id.description)
            }
            return ExchangeFiles(name: id.description, version: InterchangeEncoder.version(version, digest: digest), changes: changes)
        } catch let error as StoreError where [.damaged, .forgotten, .erased, .tooLarge].contains(error.code) {
            problem(id, error)
            return nil
        }
    }
}

extension StoreError {
    /// The same error, no longer limited to one file.
    fileprivate var ofAll: StoreError {
        var error = self
        if error.circumstance == .oneFile { error.circumstance = nil }
        return error
    }

    /// Whether a server failed, after all retries. False for a rate limit, which applies to all requests.
    var isOfServer: Bool {
        code == .transport && retryAfter == nil && (isFailureOfService || (500...599).contains(httpStatus))
    }
    /// Whether a server refused this file, for its content or size, and may accept other files.
    var isRefusal: Bool {
        [.permission, .tooLarge, .transport].contains(code) && retryAfter == nil
            && [400, 403, 406, 413, 415, 422, 451].contains(httpStatus)
    }
    /// After this many failed files in a row, the failure is the server's, not the files'.
    static let manyOfServer = 8
}
