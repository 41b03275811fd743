extension Store.ReceivedVersion {
    /// Creates an unchecked version from its two files.
    init(_ version: Version, _ file: InterchangeDecoder.ChangesFile) {
        self.init(version: version, changes: file.changes)
        written = file.hollow
        self.version.valueDataSize = file.hollow.values.reduce(InterchangeOrder.valueDataSize(changes)) { $0 &+ UInt64(clamping: $1.size) }
    }
}
extension Store {
    /// Returns the identity digest of a version whose changes are in order.
    func identityDigest(of received: ReceivedVersion) -> [UInt8] {
        received.changes.withBorrowed { changes in
            guard !received.written.isEmpty else { return identityDigest(received.version, changes) }
            var list = Array(changes)
            for (i, value) in received.written where list.indices.contains(i) { list[i].written = Unmanaged.passUnretained(value) }
            return withExtendedLifetime(received) { identityDigest(received.version, list) }
        }
    }
}

/// One run of `Exchange.retrieve`.
///
///     list -> sort out names -> fetch version files -> order -> fetch changes -> add, batch by batch
struct Retrieval {
    let store: Store
    let transport: any ExchangeTransport
    let control: OperationControl
    let verifyKnown: Bool
    private(set) var result = ExchangeResult()
    /// Versions that cannot be added, and so hold back those that depend on them.
    private var failed: Set<VersionID> = []
    /// The version files read so far. Metadata of more than `heavySize` bytes is dropped, and read again when the version is added.
    private var versions: [VersionID: Version] = [:]
    private var heavy: Set<VersionID> = []
    /// The digests that the version files name, over both files.
    private var digests: [VersionID: [UInt8]] = [:]
    private(set) var memory: ExchangeMemory
    private static let heavySize = 64 << 10
    /// Bytes of the files whose metadata is held; beyond the limit metadata is dropped.
    private var held = 0
    private static let mostHeld = 8 << 20
    /// The number of problems beyond those reported singly.
    private var furtherProblems = 0

    init(store: Store, transport: any ExchangeTransport, control: OperationControl, verifyKnown: Bool, memory: ExchangeMemory) {
        self.store = store; self.transport = transport; self.control = control; self.verifyKnown = verifyKnown; self.memory = memory
        let what = "Retrieving from \(transport.description)"
        self.what = what
        looks = control.paced(.listing, doing: what)
        let far = transport as? any RequestingTransport
        (isFar, filesAtOnce) = (far != nil, far?.filesAtOnce ?? ExchangeLimits.batchCount)
        check = { try control.check(.receiving, 0, of: 0, doing: what) }
    }

    mutating func run() throws -> ExchangeResult {
        _ = try store.reloadHistory(control: control)
        try control.check(.listing, 0, of: 0, doing: what)
        let listing = try transport.list(control)
        try memory.place.check(listing, of: transport, in: store, control, what)
        let damaged = try store.damagedVersions(check)
        if let mark = listing.mark, mark == memory.receivedMark, !verifyKnown, damaged.isEmpty { return result }
        let isSame = listing.mark != nil && listing.mark == memory.lookedMark
        memory.lookedMark = nil
        // Forget versions that the listing no longer has.
        if !isSame, !memory.broken.isEmpty || !memory.oldForm.isEmpty || !memory.waits.isEmpty {
            let there = try ids(listing.versions)
            func isThere(_ id: VersionID) throws -> Bool { try looks.step(0); return there.contains(id) }
            memory.broken = try memory.broken.filter(isThere)
            memory.oldForm = try memory.oldForm.filter(isThere)
            memory.waits = try memory.waits.filter { try isThere($0.key) }
        }
        // A version that was received after all has complete files: last time they were still in transit.
        defer {
            memory.broken.subtract(result.versions)
            memory.taken.formUnion(result.versions)
            for id in result.versions { memory.waits[id] = nil }
        }
        // A cancelled call is resumed by the next one.
        var isWhole = false
        defer {
            memory.fetched = [:]
            if !isWhole, isFar {
                for (id, version) in versions where !heavy.contains(id) && !memory.broken.contains(id) && !failed.contains(id) {
                    memory.fetched[id] = (version, digests[id])
                }
            }
        }
        let wanted = try sortOut(listing, damaged, isSame: isSame && !verifyKnown)
        Log.write(
            .debug,
            "\(what): \(listing.versions.count) versions listed there, \(wanted.count) to fetch, \(listing.foreign.count) foreign files.")
        if !wanted.isEmpty {
            try fetchVersions(wanted)
            Log.write(.debug, "\(what): \(versions.count) version files fetched, \(result.problems.count) problems.")
            try addInOrder(try ordered())
        }
        isWhole = true
        if furtherProblems > 0 {
            tell(
                ExchangeProblem(
                    name: "",
                    error: StoreError(
                        .foreignFile,
                        "\(furtherProblems) further versions in \(transport.description) could not be received either. "
                            + "Resolve the reported problems, and retrieve again."
                    )), always: true)
        }
        result.problems = ExchangeProblem.inOrder(result.problems)
        try memory.place.note(listing, of: transport, in: store, looks.look)
        memory.receivedMark = result.problems.isEmpty ? listing.mark : nil
        memory.lookedMark = listing.mark
        return result
    }

    private func ids(_ list: [VersionID]) throws -> Set<VersionID> {
        // Reserved at once: growing a set of a million takes longer than a control may wait.
        var ids = Set<VersionID>(minimumCapacity: list.count)
        for id in list { try looks.step(0); ids.insert(id) }
        return ids
    }

    /// The operation for messages, and the check of the control while a file is read. Created once, since there are many files.
    private let what: String, check: () throws -> Void, looks: PacedControl
    /// Whether each fetch is a request, and how many versions are fetched at once.
    private let isFar: Bool, filesAtOnce: Int

    private mutating func problem(_ id: VersionID, _ error: StoreError) {
        if failed.count == Retrieval.many { failed.reserveCapacity(wantedCount) }
        failed.insert(id)
        tell(ExchangeProblem(name: id.description, error: error))
    }

    /// Bounded, since any number of bad files in a folder must not exhaust the memory.
    private mutating func tell(_ problem: ExchangeProblem, always: Bool = false) {
        if always || result.problems.count < ExchangeLimits.problemCount { result.problems.append(problem) } else { furtherProblems += 1 }
    }

    private mutating func unreadable(_ id: VersionID, _ error: StoreError) throws {
        if error.code == .outOfMemory { throw error }
        // Something else has its name, or the file is unusable for all devices.
        if [.foreignFile, .damaged].contains(error.code) { broken(id, error) } else { problem(id, error) }
    }

    /// Adds a problem that remains until a device rewrites the file. Each such version is remembered once, in a set, since a folder may be
    /// full of them.
    private mutating func broken(_ id: VersionID, _ error: StoreError) {
        if memory.broken.count == Retrieval.many { memory.broken.reserveCapacity(max(wantedCount, 2 * Retrieval.many)) }
        memory.broken.insert(id)
        tell(ExchangeProblem(name: id.description, error: error))
    }
    /// From this count on, capacity is reserved at once: growing a set of a million takes longer than a control may wait.
    private static let many = 1 << 16
    private var wantedCount = 0

    // MARK: Names

    /// Returns the ids to fetch, in a fixed order. Changes without a version become problems, and so do foreign names if the listing says
    /// so.
    /// - Parameters:
    ///   - damaged: versions that the store has, to be fetched all the same.
    ///   - isSame: no name came or went since a retrieve examined all of them.
    private mutating func sortOut(_ listing: ExchangeListing, _ damaged: Set<VersionID>, isSame: Bool) throws -> [VersionID] {
        var told: Set<String> = []
        for foreign in listing.foreign where listing.reportsForeign && told.insert(foreign.name).inserted {
            tell(
                ExchangeProblem(
                    name: foreign.name,
                    error: StoreError(
                        .foreignFile,
                        "\"\(foreign.name)\" in \(foreign.folder) of \(transport.description) is not a version id. It was ignored; "
                            + "move it away, since other programs may take it for a version.",
                        path: foreign.name)))
        }
        if listing.furtherForeign > 0, listing.reportsForeign {
            tell(
                ExchangeProblem(
                    name: "",
                    error: StoreError(
                        .foreignFile,
                        "\(listing.furtherForeign) further names in \(transport.description) are not version ids. They were ignored; "
                            + "move away what does not belong to this exchange."
                    )), always: true)
        }
        let paced = control.paced(.listing, doing: what)
        let unknown = try verifyKnown ? listing.versions : store.unknown(among: listing.versions, paced.look)
        // Reserved at once: growing a set of a million takes longer than a control may wait.
        var wanted = Set<VersionID>(minimumCapacity: unknown.count)
        for id in unknown {
            try paced.step(0)
            wanted.insert(id)
        }
        // Versions without bytes are read once by each exchange: others may have written files with the bytes meanwhile.
        let again = try damaged.union(store.lackingBytes().subtracting(memory.readForBytes))
        if !again.isEmpty {
            let listed = again.intersection(try ids(listing.versions))
            wanted.formUnion(listed)
            memory.readForBytes.formUnion(listed)
        }
        // Each is reported once, up to the limit.
        var waiting: Set<VersionID> = []
        for id in try store.unknown(among: listing.changesOnly, paced.look) where !wanted.contains(id) {
            try paced.step(0)
            guard result.problems.count < ExchangeLimits.problemCount else { furtherProblems += 1; continue }
            guard waiting.insert(id).inserted else { continue }
            tell(
                ExchangeProblem(
                    name: id.description,
                    error: StoreError(
                        .missingVersion,
                        "The version \(id) has its changes in \(transport.description), but no version file: "
                            + "it is still in transit, or its sender was interrupted. It is received once the version file is there.",
                        versionID: id.description)))
        }
        if isSame || isFar { try leaveBroken(&wanted) }
        if isFar { try leaveWaiting(&wanted) }
        wantedCount = wanted.count
        var ids: [VersionID] = []
        ids.reserveCapacity(wanted.count)
        for id in wanted { try paced.step(0); ids.append(id) }
        // Freeing a million takes a while.
        wanted = []
        try paced.look()
        ids = try ids.sorted(by: <, looking: paced.look)
        try paced.look()
        return ids
    }

    /// If many files are broken and no name came or went, only some are retried each time, in turn: a program may rewrite them in place.
    private mutating func leaveBroken(_ wanted: inout Set<VersionID>) throws {
        let count = memory.broken.count, most = isFar ? ExchangeLimits.retryCount : ExchangeLimits.brokenCount
        guard !verifyKnown, count > most else { return }
        let first = memory.lookAgainFrom % count
        memory.lookAgainFrom = (first + most) % count
        for (i, id) in memory.broken.enumerated() {
            try looks.step(0)
            let isItsTurn = (i >= first && i < first + most) || i < first + most - count
            if !isItsTurn, wanted.remove(id) != nil { furtherProblems += 1 }
        }
    }

    /// Removes versions whose file was read and which still wait for another. A version is fetched again if the other has arrived or is
    /// fetched now. Some are fetched all the same, in turn, since a device may have rewritten them.
    private mutating func leaveWaiting(_ wanted: inout Set<VersionID>) throws {
        let count = memory.waits.count
        guard !verifyKnown, count > 0 else { return }
        let first = memory.waitAgainFrom % count
        memory.waitAgainFrom = (first + min(ExchangeLimits.retryCount, count)) % count
        var behind: [VersionID: [VersionID]] = [:], next: [VersionID] = [], left: [VersionID: VersionID] = [:]
        for (i, (id, missing)) in memory.waits.enumerated() where wanted.contains(id) {
            try looks.step(0)
            let isItsTurn = (i >= first && i < first + ExchangeLimits.retryCount) || i < first + ExchangeLimits.retryCount - count
            let isComing = try store.contains(missing) || (wanted.contains(missing) && memory.waits[missing] == nil)
            if isItsTurn || isComing {
                next.append(id)
            } else {
                behind[missing, default: []].append(id)
                left[id] = missing
            }
        }
        while let id = next.popLast() {
            try looks.step(0)
            for one in behind.removeValue(forKey: id) ?? [] where left.removeValue(forKey: one) != nil { next.append(one) }
        }
        for (id, missing) in left {
            try looks.step(0)
            wanted.remove(id)
            holdBack(id, missing)
        }
    }

    // MARK: Version files

    private mutating func fetchVersions(_ wanted: [VersionID]) throws {
        var wanted = wanted, next = 0
        if !verifyKnown, !memory.fetched.isEmpty {
            let fetched = memory.fetched
            wanted = try wanted.filter { id in
                try looks.step(0)
                guard let (version, digest) = fetched[id] else { return true }
                (versions[id], digests[id]) = (version, digest)
                return false
            }
        }
        while next < wanted.count {
            try control.check(.receiving, 0, of: wanted.count, doing: what)
            let ids = wanted[next..<min(next + filesAtOnce, wanted.count)]
            let files = try transport.fetched(
                ids.map(\.description), of: "version files", transport.fetchVersions, control.within(.receiving, 0, of: wanted.count))
            for (id, file) in zip(ids, files) {
                guard let version = try read(id, file) else { continue }
                if versions.count == Retrieval.many {
                    versions.reserveCapacity(wanted.count)
                    digests.reserveCapacity(wanted.count)
                }
                versions[id] = version
                let size = file.size
                held += version.metadata.isEmpty ? 0 : size
                guard size > Retrieval.heavySize || (held > Retrieval.mostHeld && !version.metadata.isEmpty) else { continue }
                heavy.insert(id)
                versions[id]?.metadata = Metadata()
            }
            next += files.count
        }
    }

    private mutating func read(_ id: VersionID, _ file: FetchedFile) throws -> Version? {
        switch file {
        case .missing:
            problem(
                id,
                StoreError(
                    .missingVersion,
                    "The version \(id) is listed in \(transport.description), but its file is not there. It is received once it is.",
                    versionID: id.description))
        case .unreadable(let error): try unreadable(id, error)
        case .data, .pieces:
            let read = try decode(id, file) { document -> InterchangeDecoder.VersionFile? in
                let file = "versions/\(id)", found = try InterchangeDecoder.versionFile(document, file: file)
                if StrayNames.isCopy(id, of: found.version.id) { return nil }
                try InterchangeDecoder.check(found, isNamed: id, file: file)
                return found
            }
            guard let found = read ?? nil else { return nil }
            digests[id] = found.digest
            if found.isOldForm { memory.oldForm.insert(id) }
            return found.version
        }
        return nil
    }

    /// Returns nil, and adds a problem, if the file cannot be read or understood.
    private mutating func decode<R>(_ id: VersionID, _ file: FetchedFile, _ read: (InterchangeDecoder.Document) throws -> R) throws -> R? {
        guard let document = file.document(checking: check) else { return nil }
        do { return try read(document) } catch let failure as PieceFailure {
            guard failure.isOfFile else { throw failure.error }
            problem(id, failure.error)
        } catch {
            // The shortage is not the file's fault: it is fetched again.
            if (error as? StoreError)?.code == .outOfMemory { throw error }
            broken(id, StoreError.of(error))
        }
        return nil
    }

    // MARK: Order

    /// Returns the versions read, predecessors before successors, each depth first from the smallest id. The stack is explicit, since
    /// histories are long. Versions in a circle are included; they fail for lack of a predecessor.
    private func ordered() throws -> [VersionID] {
        var order: [VersionID] = []
        order.reserveCapacity(versions.count)
        var visited = Set<VersionID>(minimumCapacity: versions.count)
        var stack: [(id: VersionID, next: Int)] = []
        let paced = control.paced(.receiving, doing: what)
        for start in try Array(versions.keys).sorted(by: <, looking: paced.look) where visited.insert(start).inserted {
            stack.append((start, 0))
            try paced.step(0)
            while let (id, next) = stack.last {
                guard let version = versions[id], next < version.predecessors.count else {
                    stack.removeLast()
                    order.append(id)
                    try paced.step(0)
                    continue
                }
                stack[stack.count - 1].next += 1
                try paced.step(0)
                let predecessor = version.predecessors[next]
                if versions[predecessor] != nil, visited.insert(predecessor).inserted { stack.append((predecessor, 0)) }
            }
        }
        return order
    }

    // MARK: Changes files

    private mutating func addInOrder(_ order: [VersionID]) throws {
        var done = Set<VersionID>(minimumCapacity: order.count) // in the store, or in a batch on its way there
        let paced = control.paced(.receiving, of: order.count, doing: what)
        var next = 0
        while next < order.count {
            // The next ids that can be added, up to a batch.
            var ids: [VersionID] = [], end = next
            var promised: Set<VersionID> = []
            while end < order.count, ids.count < filesAtOnce {
                try paced.step(0)
                let id = order[end]
                if let missing = try missingPredecessor(of: id, done, promised) {
                    holdBack(id, missing)
                } else {
                    ids.append(id); promised.insert(id)
                }
                end += 1
            }
            var fetched = 0
            while fetched < ids.count {
                try control.check(.receiving, next, of: order.count, doing: what)
                let names = ids[fetched...]
                let files = try transport.fetched(
                    names.map(\.description), of: "changes files", transport.fetchChanges, control.within(.receiving, next, of: order.count)
                )
                try add(Array(zip(names, files)), &done)
                fetched += files.count
                next += files.count
                try control.check(.adding, next, of: order.count, doing: what)
            }
            next = end
        }
    }

    private mutating func holdBack(_ id: VersionID, _ missing: VersionID) {
        memory.waits[id] = missing
        let isUnusable = failed.contains(missing) || memory.broken.contains(missing) || versions[missing] != nil
        let reason = isUnusable ? "cannot be added itself" : "is neither in the store nor there yet"
        problem(
            id,
            StoreError(
                .missingPredecessor,
                "The version \(id) waits for its predecessor \(missing), which \(reason). It is received after that one.",
                versionID: missing.description))
    }

    private func missingPredecessor(of id: VersionID, _ done: Set<VersionID>, _ promised: Set<VersionID> = []) throws -> VersionID? {
        // Every store knows the content of the empty root, whatever file has its id.
        let missing = try versions[id]?.predecessors.first {
            try $0 != EmptyRoot.id && !done.contains($0) && !promised.contains($0) && !store.contains($0)
        }
        // The store has the predecessors of each of its versions. If a file names other predecessors, it is a mismatch, and does not wait
        // for them.
        return try missing.flatMap { try store.contains(id) ? nil : $0 }
    }

    private mutating func add(_ files: [(VersionID, FetchedFile)], _ done: inout Set<VersionID>) throws {
        var batch: [Store.ReceivedVersion] = [], size = 0
        for (id, file) in files {
            // An earlier version of this batch may have failed.
            if let missing = try missingPredecessor(of: id, done) { holdBack(id, missing); continue }
            guard let received = try received(id, file) else { continue }
            batch.append(received)
            done.insert(id)
            // The files bound the changes, but not the metadata that was dropped and read again.
            size += received.version.metadata.memorySize
            if size >= ExchangeLimits.batchSize {
                try add(batch, &done)
                (batch, size) = ([], 0)
            }
        }
        try add(batch, &done)
    }

    private mutating func add(_ batch: [Store.ReceivedVersion], _ done: inout Set<VersionID>) throws {
        guard !batch.isEmpty else { return }
        Log.write(.debug, "\(what): adding the next \(batch.count) of \(versions.count) versions.")
        for (received, addition) in zip(
            batch,
            try store.add(batch, isVerifying: verifyKnown, control: control.within(.adding, result.versions.count, of: versions.count)))
        {
            let id = received.version.id
            switch addition {
            // The empty root is the same everywhere, so it is not reported as new.
            case .added: if id != EmptyRoot.id { result.versions.append(id) }
            case .repaired: result.repaired.append(id)
            case .alreadyPresent: break
            case .problem(let error):
                done.remove(id)
                if error.code == .missingPredecessor, let missing = error.versionID.flatMap({ VersionID(validating: $0) }) {
                    holdBack(id, missing)
                } else {
                    problem(id, error)
                }
                // A device that has the genuine version rewrites it.
                if error.code == .contentMismatch { memory.broken.insert(id) }
            }
        }
    }

    private mutating func received(_ id: VersionID, _ file: FetchedFile) throws -> Store.ReceivedVersion? {
        guard var version = versions[id] else { return nil }
        switch file {
        case .missing:
            problem(
                id,
                StoreError(
                    .missingChanges,
                    "The version \(id) is in \(transport.description) without its changes: they are still in transit, or were lost. "
                        + "It is received once they are there; a device that has the version writes them again.",
                    versionID: id.description))
            memory.broken.insert(id)
            return nil
        case .unreadable(let error):
            try unreadable(id, error)
            return nil
        case .data, .pieces: break
        }
        guard let found = try decode(id, file, { try InterchangeDecoder.changesFile($0, of: id) }) else { return nil }
        if heavy.contains(id) {
            guard let again = try transport.fetched([id.description], of: "version files", transport.fetchVersions, control).first,
                let whole = try read(id, again)
            else { return nil }
            version = whole
        }
        let received = Store.ReceivedVersion(version, found)
        if let digest = digests[id], !Bytes.equal(digest, Hex.utf8(of: store.identityDigest(of: received))) {
            problem(
                id,
                StoreError(
                    .damaged,
                    "The files of the version \(id) in \(transport.description) are damaged: "
                        + "together they do not have the digest that versions/\(id) has. Nothing of it was stored. "
                        + "Remove both, and a store that has the version writes them again.",
                    versionID: id.description, path: "versions/\(id)"))
            memory.broken.insert(id)
            return nil
        }
        return received
    }
}
