import CLLVSShims

/// Builds the history from records: when the store is opened, and when other processes have added versions.
extension Store {
    /// Opens the storage that the options name.
    /// - Throws: the same as `init(path:options:)`.
    package static func makeStorage(_ path: String, _ options: Options) throws -> any Storage {
        switch options.storage.kind {
        case .memory: return MemoryStorage()
        case .custom(let storage): return storage
        case .file:
            var file = FileStorage.Options()
            file.readOnly = options.readOnly
            file.create = options.create
            file.durability = options.durability
            file.cacheDirectory = options.cacheDirectory
            file.compaction = options.compaction
            file.compactionGrace = options.compactionGrace
            file.inspector = Store.versionNamed
            if let mode = options.fileMode { file.system.mode = mode }
            return try FileStorage(path: path, options: file)
        case .sqlite:
            var database = SQLiteStorage.Options()
            database.readOnly = options.readOnly
            database.create = options.create
            database.durability = options.durability
            database.inspector = Store.versionNamed
            database.busyTimeout = options.busyTimeout
            if let mode = options.fileMode { database.fileMode = mode }
            return try SQLiteStorage(path: path, options: database)
        }
    }

    /// Returns the version that a record names, as far as its first bytes show: for damage reports.
    @Sendable package static func versionNamed(by prefix: UnsafeRawBufferPointer) -> VersionID? {
        if case .whole(let header) = RecordHeader.read(prefix, recordLength: nil) { return header.id }
        return nil
    }

    /// Does the first scan. If two records of one version differ, the one with the smaller digest prevails: then everything is read once
    /// more, with the choice known.
    /// - Throws: the errors of the control and of scanning.
    func load(_ control: PacedControl = .none) throws {
        try control.look()
        try Waiting.looking(at: control) { try loadCaches(control) }
        try withRecordsThatMove {
            forgetLoaded()
        } _: {
            let choices = try scan(loading: true, control)
            if !choices.isEmpty {
                let places = lock.withRead {
                    dag.rows.filter { $0.state == .live }.map(\.place) + pending.records.values.map(\.place) + scanned.places
                }
                forgetLoaded()
                for place in places {
                    try control.step(0)
                    try ingest(place, prefix: nil, loading: true, choices: choices)
                }
                scanned.digests.forget()
            }
        }
        scanned.places = []
    }
    private func forgetLoaded() {
        scanned.places = []
        lock.withWrite {
            dag = History()
            caches.rows = 0
            pending = PendingVersions()
            maps.changeLists.removeAll()
            maps.persisted = nil
        }
    }

    /// Loads versions that other handles and processes have added since.
    /// - Returns: the number of new versions.
    /// - Complexity: proportional to the number of segments and new versions, not of known versions.
    @discardableResult
    /// - Parameter control: polled for cancellation; it gets no progress.
    public func reloadHistory(control: OperationControl = OperationControl()) throws -> Int {
        try checkOpen()
        let paced = control.quiet.paced(.reading, doing: "Checking for new versions in \(description)")
        let parts = lock.withRead { erasureParts }, stamp = parts == nil ? 0 : storage.ordersStamp()
        var added = try scanAgain(paced) + awaitOwnCommits()
        // While another handle moves records from file to file, a listing of the files can miss both.
        if parts != nil, settledErasures != stamp || areErasuresNew(since: stamp) { try whileRecordsStay {} }
        orders.read()
        if hasNewsOfErasures { added += try lookForErasures(paced) }
        if !added.isEmpty { observers.tell(added) }
        return added.count
    }

    /// Waits for commits of this handle on which known versions build. Another handle can read such a version once it was appended, and may
    /// acknowledge descendants before the commit ends. The wait lasts for a sync of the medium at most.
    private func awaitOwnCommits() throws -> [VersionID] {
        var added: [VersionID] = []
        var pause: UInt32 = 50
        while true {
            let (ready, isStoring) = lock.withWrite { () -> ([PendingVersions.Record], Bool) in
                guard !pending.isEmpty else { return ([], false) }
                let (ready, isStoring) = pending.takeReady(in: dag)
                return (ready, commits.unpublished.running > 0 && isStoring)
            }
            added += try admit(ready)
            guard isStoring else { return added }
            try checkOpen()
            usleep(pause)
            pause = min(2_000, pause * 2)
        }
    }

    /// Scans once more.
    func scanAgain(_ control: PacedControl) throws -> [VersionID] {
        var added: [VersionID] = []
        try withRecordsThatMove { _ = try scan(loading: false, control) { added += $0 } }
        return added
    }

    /// - Parameter found: called with versions as they become known.
    /// - Returns: the records that prevail over others of the same versions.
    private func scan(
        loading: Bool, _ control: PacedControl, found: ([VersionID]) -> Void = { _ in }
    ) throws -> [VersionID: RecordPlace] {
        try withCommitLock {
            noteScanner(llvs_shim_thread_number())
            defer { noteScanner(nil) }
            var conflicts: [VersionID: RecordPlace] = [:], late: [RecordPlace] = [], moved: [VersionID: RecordPlace] = [:]
            func add(_ place: RecordPlace, prefix: UnsafeRawBufferPointer?) throws {
                let result = try ingest(place, prefix: prefix, loading: loading, choices: [:], preferred: conflicts)
                found(result.added)
                if let (id, place) = result.conflict { conflicts[id] = place }
                if let (id, place) = result.moved { moved[id] = place }
            }
            scanned.isReporting = true
            defer { scanned.isReporting = false }
            try storage.scan(control) { record in
                if loading { scanned.places.append(record.place) }
                // The next retrieve repairs it.
                if record.isDamaged { records.knownDamage.note(record.place) }
                do { try add(record.place, prefix: record.prefix) } catch is RecordMoved { late.append(record.place) }
            }
            // What they need may have been found after them.
            scanned.isReporting = false
            try follow(moved)
            moved = [:]
            for place in late { try add(place, prefix: nil) }
            try follow(moved)
            found(try lookForBlobs())
            scanned.digests.forget()
            return conflicts
        }
    }

    /// Admits versions whose missing blobs have arrived.
    private func lookForBlobs() throws -> [VersionID] {
        guard lock.withRead({ !pending.waitingForBlobs.isEmpty }) else { return [] }
        let mark = storage.blobMark, began = Clock.steady()
        let waiting = lock.withWrite { pending.takeWaitingForBlobs(mark) }
        if waiting.isEmpty { return [] }
        let added = try admit(waiting)
        lock.withWrite { pending.lookedForBlobs(Clock.steady() - began) }
        return added
    }

    /// Adds one record to the history, and all versions that waited for it.
    /// - Parameters:
    ///   - choices: the record to use, for each version with differing records.
    ///   - preferred: the best such record found so far, while loading.
    @discardableResult
    private func ingest(
        _ place: RecordPlace, prefix: UnsafeRawBufferPointer?, loading: Bool, choices: [VersionID: RecordPlace],
        preferred: [VersionID: RecordPlace] = [:]
    ) throws
        -> (added: [VersionID], conflict: (VersionID, RecordPlace)?, moved: (VersionID, RecordPlace)?)
    {
        let header: RecordHeader
        try lock.withWrite { try dag.preallocate() }
        do {
            header = try records.header(place, prefix: prefix)
        } catch let error as StoreError where error.code == .damaged || error.code == .newerFormat {
            // A record of a newer format only affects its descendants, which wait.
            let version = error.code == .newerFormat ? error.versionID.flatMap { try? VersionID($0) } : nil
            if let version { lock.withWrite { _ = findings.newerVersions.insert(version) } }
            noteDamage(place, error.message, version: version)
            return ([], nil, nil)
        }
        if header.hasDifferences || header.mayHaveDifferences { differencing.note() }
        if header.hasForgetValues {
            erasureState.withLock { $0.isNews = true }
            orders.noteUnread(header.id)
        }
        if !choices.isEmpty, let chosen = choices[header.id], chosen != place { return ([], nil, nil) }
        if let best = preferred[header.id], best != place {
            let prevailing = try prevailingRecord(header.id, best, place).place
            return ([], prevailing == best ? nil : (header.id, prevailing), nil)
        }
        // The common case, under one lock: a new version whose predecessors are present.
        enum Met { case admitted, known(RecordPlace, UInt32, isWaiting: Bool), slow }
        let met: Met = lock.withWrite {
            if let ordinal = dag.ordinal(of: header.id) {
                let row = dag.rows[Int(ordinal)]
                return .known(row.place, row.checksum, isWaiting: false)
            }
            if let waiting = pending.records[header.id] { return .known(waiting.place, waiting.header.checksum, isWaiting: true) }
            guard pending.count == 0, header.dependencies.isEmpty, header.blobs.isEmpty,
                let ordinal = publishLocked(header, header.metadata.branchName, place)
            else { return .slow }
            if let prefix { maps.keepChanges(ordinal, header, prefix) }
            return .admitted
        }
        switch met {
        case .admitted: return (loading ? [] : [header.id], nil, nil)
        case .slow: return (try admit([PendingVersions.Record(place: place, header: header)]), nil, nil)
        case .known(let knownPlace, let checksum, let isWaiting):
            if knownPlace == place {
                // Another handle erased values, and the new record has the same length.
                if checksum != header.checksum, !loading, !isWaiting { move([:], [header.id: header.checksum]) }
                return ([], nil, nil)
            }
            if !loading, storage.isGone(knownPlace) {
                // Another handle erased values.
                let record = PendingVersions.Record(place: place, header: header)
                if isWaiting {
                    lock.withWrite { _ = pending.remove(header.id) }
                    return (try admit([record]), nil, nil)
                }
                lock.withWrite { pending.addAlternative(record) }
                return ([], nil, (header.id, knownPlace))
            }
            if checksum == header.checksum, knownPlace.length == place.length, try records.haveSameBytes(knownPlace, place) {
                return ([], nil, nil)
            }
            if isWaiting, !header.blobs.isEmpty || header.hasHollow, let digest = try? records.identityDigest(place),
                digest == (try? records.identityDigest(knownPlace))
            {
                let waiting = lock.withWrite { () -> PendingVersions.Record? in
                    pending.addAlternative(PendingVersions.Record(place: place, header: header))
                    return pending.remove(header.id)
                }
                return (try waiting.map { try admit([$0]) } ?? [], nil, nil)
            }
            if isWaiting, mayLackBase(knownPlace), !header.hasDifferences, try digestOfWhole(place) != nil {
                // This one needs no base. The other's may be known only later, and have no bytes then.
                lock.withWrite { _ = pending.remove(header.id) }
                return (try admit([PendingVersions.Record(place: place, header: header)]), nil, nil)
            }
            let prevailing = try prevailingRecord(header.id, knownPlace, place)
            if isWaiting, prevailing.place == place, !loading || prevailing.isFirstDamaged {
                lock.withWrite { _ = pending.remove(header.id) }
                return (try admit([PendingVersions.Record(place: place, header: header)]), nil, nil)
            }
            if !loading, prevailing.isFirstDamaged, prevailing.place == place {
                // It was repaired.
                move([knownPlace: place], [header.id: header.checksum])
                records.knownDamage.forget(header.id, at: knownPlace)
            }
            return ([], loading && prevailing.place != knownPlace ? (header.id, place) : nil, nil)
        }
    }

    /// Makes a version visible if all its predecessors are present; otherwise returns nil. The caller holds the lock for writing.
    private func publishLocked(_ header: RecordHeader, _ branch: BranchName?, _ place: RecordPlace) -> UInt32? {
        var first = History.none, second = History.none
        if let id = header.predecessors.first {
            guard let ordinal = dag.ordinal(of: id) else { return nil }
            first = ordinal
        }
        if header.predecessors.count > 1 {
            guard let ordinal = dag.ordinal(of: header.predecessors[1]) else { return nil }
            second = ordinal
        }
        let ordinal = dag.append(
            id: header.id, timestamp: header.timestamp, valueDataSize: header.valueDataSize, first: first, second: second,
            branch: branch, place: place, checksum: header.checksum, changeCount: header.changeCount,
            traits: (header.dependencies.isEmpty ? [] : History.Traits.preserves).union(UndoMarks.traits(header.metadata)),
            clock: MadeTime.clock(header.metadata), storedAt: header.storedAt)
        dag.publish(ordinal, place: place, checksum: header.checksum)
        return ordinal
    }

    /// Returns which of two differing records of one version prevails: the whole one, or else the one with the smaller digest. Also returns
    /// whether the first is damaged. Records with the same meaning are no conflict: the one with fewer hollow changes prevails.
    private func prevailingRecord(_ id: VersionID, _ a: RecordPlace, _ b: RecordPlace) throws -> (place: RecordPlace, isFirstDamaged: Bool)
    {
        // If a base is not present yet, the next scan decides.
        guard try areBasesHere(a), try areBasesHere(b) else { return (a, false) }
        let x: [UInt8]?, y: [UInt8]?
        // If a value is a difference from a value without bytes, its digest is unknown, and the other record is read.
        do { x = try scanned.digests.of(a, digestOfWhole) } catch let error as StoreError where error.code.isGone { return (b, true) }
        do { y = try scanned.digests.of(b, digestOfWhole) } catch let error as StoreError where error.code.isGone { return (a, false) }
        guard let x, let y else {
            // A damaged record is no loss if another record of the version is whole.
            if x == nil, y == nil || !mayLackBase(a) {
                noteDamage(a, "A record of version \(id) is damaged, or does not match the id.", version: id, isOneOfTwo: y != nil)
            }
            if y == nil, x == nil || !mayLackBase(b) {
                noteDamage(b, "A record of version \(id) is damaged, or does not match the id.", version: id, isOneOfTwo: x != nil)
            }
            return (x == nil && y != nil ? b : a, x == nil)
        }
        if x == y {
            let (first, second) = (try records.hollowCount(a), try records.hollowCount(b))
            if first == second {
                // The bytes of the bases may be erased at any time.
                let isBetter = try mayLackBase(a) && !records.header(b).hasDifferences
                return (isBetter ? b : a, isBetter)
            }
            let (better, other) = second < first ? (b, a) : (a, b)
            // While values are being erased, the files of the large ones may be gone before the records that name them.
            return (try hasBlobs(better) || !hasBlobs(other) ? better : other, false)
        }
        let prevailing = Bytes.compare(x, y) < 0 ? a : b
        noteDamage(
            prevailing == a ? b : a,
            "Two different records name version \(id). The one with the smaller digest prevails; this is the other.", version: id)
        return (prevailing, false)
    }

    /// Returns whether a record may have a value whose base was erased. On a file system without locks it may have been appended later.
    private func mayLackBase(_ place: RecordPlace) -> Bool {
        storage.ordersStamp() != 0 && (try? records.header(place).hasDifferences) == true
    }

    /// Returns false if a value of the record cannot be read because its base was erased.
    private func hasBases(_ place: RecordPlace) throws -> Bool {
        guard mayLackBase(place) else { return true }
        do {
            try records.forEachChange(place) { entry, header in
                if entry.isDifference { try records.withValue(entry, in: place, of: header.id) { _ in } }
            }
            return true
        } catch is StoreError { return false }
    }

    /// Reads versions at their new records, which a scan has found, since another handle replaced the old ones.
    /// - Parameter moved: the old places.
    private func follow(_ moved: [VersionID: RecordPlace]) throws {
        guard !moved.isEmpty else { return }
        var places: [RecordPlace: RecordPlace] = [:], checksums: [VersionID: UInt32] = [:]
        // If all are damaged, the next scan may find another one.
        defer { lock.withWrite { for id in moved.keys { pending.forget(id) } } }
        for (id, old) in moved {
            var best: (record: PendingVersions.Record, hollow: Int)?
            for record in lock.withRead({ pending.alternatives(to: id) }) {
                do {
                    guard try digestOfWhole(record.place) != nil, try hasBases(record.place) else { continue }
                } catch let error as StoreError where error.code.isGone { continue } // Another record has the value whole.
                let hollow = try records.hollowCount(record.place)
                if best.map({ hollow < $0.hollow || hollow == $0.hollow && !record.header.hasDifferences }) ?? true {
                    best = (record, hollow)
                }
            }
            guard let (record, _) = best else { continue }
            storage.noteErased(old)
            places[old] = record.place
            checksums[id] = record.header.checksum
        }
        guard !places.isEmpty else { return }
        move(places, checksums)
        for (id, old) in moved { records.knownDamage.forget(id, at: old) }
    }

    private func hasBlobs(_ place: RecordPlace) throws -> Bool { try records.header(place).blobs.allSatisfy { try storage.hasBlob($0) } }

    /// Returns false while a value of the record is a difference from a value of a version that is absent. The bases of a version in the
    /// history are always present.
    private func areBasesHere(_ place: RecordPlace) throws -> Bool {
        do {
            guard try records.header(place).hasDifferences else { return true }
            var areHere = true
            try records.forEachChange(place) { entry, header in
                guard areHere, entry.isDifference,
                    let base = try records.base(of: entry, in: place, version: header.id)
                else { return }
                areHere = !records.findVersion(base).isEmpty
            }
            return areHere
        } catch let error as StoreError where error.code.isDamage { return true }
    }

    /// Returns the digest; nil if the record is damaged or does not match its id. Blobs are not read.
    private func digestOfWhole(_ place: RecordPlace) throws -> [UInt8]? {
        do {
            return try records.isWhole(place, withBlobs: false) && vouching(ofRecordAt: place) != .none
                ? records.identityDigest(place) : nil
        } catch let error as StoreError where error.code.isDamage { return nil }
    }

    /// Adds versions whose records are stored, or leaves them pending. Then adds those that waited for them.
    /// - Throws: the error if descriptors or memory run out during the search for large values. The remaining versions then wait for the
    ///   next scan.
    package func admit(_ records: [PendingVersions.Record]) throws -> [VersionID] {
        var added: [VersionID] = []
        var work = Array(records.reversed())
        while let next = work.popLast() {
            let candidates = [next] + lock.withRead { pending.alternatives(to: next.header.id) }
            let whole: PendingVersions.Record?
            do {
                whole = try candidates.first {
                    try $0.header.blobs.allSatisfy {
                        Work.blobs.count(); return try storage.hasBlob($0)
                    }
                }
            } catch {
                lock.withWrite {
                    for record in work + [next] { pending.add(record, missing: nil) }
                    pending.lookAgain()
                }
                throw error
            }
            let record = whole ?? next, header = record.header, blobsHere = whole != nil
            lock.withWrite {
                // Another thread may have tried it as well.
                if dag.ordinal(of: header.id) != nil { pending.forget(header.id); return }
                let isMissing = { (id: VersionID) in self.dag.ordinal(of: id) == nil }
                if let missing = header.predecessors.first(where: isMissing) ?? header.dependencies.first(where: isMissing) {
                    pending.add(record, missing: missing)
                    return
                }
                guard blobsHere else { pending.add(record, missing: nil); return }
                guard publishLocked(header, record.branch, record.place) != nil else { return }
                pending.forget(header.id)
                added.append(header.id)
                work += pending.take(waitingFor: header.id)
            }
        }
        return added
    }

    /// - Parameter isOneOfTwo: whether there is another record of the version, which is whole.
    func noteDamage(_ place: RecordPlace, _ message: String, version: VersionID? = nil, isOneOfTwo: Bool = false) {
        let (file, offset) = storage.location(place)
        var damage = StorageDamage(file: file, offset: offset, message: message, version: version)
        if isOneOfTwo { damage.isRepaired() }
        lock.withWrite { findings.note(damage) }
        Log.write(.warning, "\(damage.file), at byte \(damage.offset): \(damage.message)")
    }

    /// Returns the ordinal of a version; nil if it does not exist. Reloads if the version is not known yet.
    package func findOrdinal(_ id: VersionID) throws -> UInt32? {
        if let ordinal = try lock.withRead({
            try checkOpenLocked(); return dag.ordinalIncludingStaged(of: id)
        }) {
            return ordinal
        }
        // Look the version up even if this reload found nothing: a reload of another thread may have found it meanwhile.
        try reloadHistory()
        return lock.withRead { dag.ordinalIncludingStaged(of: id) }
    }

    /// The same as `findReadable`, but throws for an unknown version, and for a staged one if a version is to be built on it.
    package func requireOrdinal(_ id: VersionID, _ code: StoreError.Code = .unknownVersion, toBuildOn: Bool = false) throws -> UInt32 {
        let found = try findReadable(id)
        guard let ordinal = found, !toBuildOn || lock.withRead({ [.live, .virtual].contains(dag.rows[Int(ordinal)].state) }) else {
            let what = code == .unknownPredecessor ? "The predecessor \(id)" : "Version \(id)"
            if found == nil, lock.withRead({ findings.newerVersions.contains(id) }) {
                throw StoreError(
                    .newerFormat,
                    "\(what) in \(description) was made by a newer version of the library, and cannot be read by this one. "
                        + "Use a newer version.",
                    versionID: id.description)
            }
            throw StoreError(
                code, "\(what) is not in \(description). Retrieve it from its maker, or check the id.", versionID: id.description)
        }
        return ordinal
    }
}
