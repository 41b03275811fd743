import CLLVSShims

/// Erases the bytes of values permanently, on this device: docs/forgetting.md.
extension Store {
    /// Erases values: afterwards no file of the store, and no cache in it, has their bytes. Their ids, sizes and digests stay, so that the
    /// history can be verified. Reading them throws `.erased`. Where an erased value prevails at a head, a new version removes or replaces
    /// it. Values that are saved afterwards are not affected.
    ///
    /// The order to erase them is saved as a value first. If the process or the power fails after that, the next opening follows it. An
    /// order counts on this device alone. What the report names as waiting is followed when the store is opened or closed next.
    ///
    /// Exchanges do not erase: places, other devices and backups that have the bytes keep them.
    /// - Parameters:
    ///   - query: which values.
    ///   - control: checked with the stage `.writing`, until the order is saved.
    /// - Throws: `.unsupported` if the storage cannot replace records, `.invalidArgument` for ids under `__llvs_forget/` and an empty
    ///   query, `.unknownVersion`, `.readOnly`, `.damaged` if a value to erase has no recorded digest and cannot be read, `.tooLarge` if
    ///   there are 65,536 orders, or 64 MiB of them, `.busy` if another handle changes the orders for seconds, `.cancelled`, errors of
    ///   making versions and of the storage. If another process saves or erases at the same moment, also `.erased`, `.forgotten` or
    ///   `.damaged`: call again.
    /// - Complexity: O(versions + their changes). It reads the values as well if it searches by bytes. In SQLite it writes the whole
    ///   database.
    @discardableResult
    public func erase(_ query: ErasureQuery, control: OperationControl = OperationControl()) throws -> ErasureReport {
        if query.isDryRun { try checkOpen() } else { try checkWritable("Erasing values") }
        guard storage.canErase else {
            throw StoreError(
                .unsupported,
                "\(description) cannot erase values: its storage does not replace records. "
                    + "Copy the store to one in files or in SQLite, and erase there.")
        }
        guard !query.ids.isEmpty || !query.containing.isEmpty else {
            throw StoreError(.invalidArgument, "An erasure names no value. Give ids, or bytes that the values contain.")
        }
        guard query.why.utf8.count <= ErasureQuery.mostWhy else {
            throw StoreError(.tooLarge, "The text of an order has more than \(ErasureQuery.mostWhy) bytes. Give a shorter one.")
        }
        for id in query.ids {
            try id.bytes.withUnsafeBytes { try ValueID.check($0) }
            guard !id.bytes.starts(with: EraseOrder.reserved) else {
                throw StoreError(.invalidArgument, "Values under __llvs_forget/ cannot be erased. Give other ids.", valueID: id)
            }
        }
        try reloadHistory(control: control)
        return try erasing.run("Erasing values of \(description)") {
            let thread = llvs_shim_thread_number()
            erasureState.withLock { $0.follower = thread }
            defer { erasureState.withLock { $0.follower = nil } }
            return try eraseNow(query, control)
        }
    }

    private func eraseNow(_ query: ErasureQuery, _ control: OperationControl) throws -> ErasureReport {
        let paced = control.paced(.writing, doing: "Erasing values of \(description)")
        var report = ErasureReport()
        // If something cannot be erased, the call fails before anything is ordered.
        let found = try withRecordsThatMove(times: 4) {
            report = ErasureReport()
            let found = try find(query, &report, paced)
            report.rewritten = UInt64(try ErasurePlan(found, in: self, paced).wholeCount)
            return found
        } again: {
            _ = try? scanAgain(paced)
        }
        if query.isDryRun { return report }
        guard !found.isEmpty else {
            report.waiting = try followOrders(paced)
            return report
        }
        try save(found, query, &report)
        report.waiting = try followOrders(.none)
        return report
    }

    func order(_ line: ErasureNote.Line) throws -> EraseOrder? {
        guard line.json.isEmpty else { return EraseOrder.name(of: line.json) == line.order ? EraseOrder(line.json) : nil }
        guard let place = recordPlaces(of: line.version).first else { return nil }
        let id = EraseOrder.id(named: line.order).bytes, unknown = MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0)
        let json = try id.withUnsafeBytes { id -> [UInt8]? in
            guard try records.findChange(place, id) != nil else { return nil }
            return try records.withBody(place, unknown, id: id, stored: line.version) { Array($0) }
        }
        guard let json, EraseOrder.name(of: json) == line.order else { return nil }
        return EraseOrder(json)
    }

    // MARK: Finding

    /// Calls with the records of all versions, also of those that wait for others.
    /// - Parameter ids: skips versions that changed none of these, as far as that is known without reading. Nil: none is skipped.
    func forEachRecord(changing ids: Set<ValueID>? = nil, _ control: PacedControl, _ body: (VersionID, RecordPlace) throws -> Void) throws {
        let hashes = ids.map { Set($0.map { $0.bytes.withUnsafeBytes(History.keyHash) }) }
        let (rows, waiting) = lock.withRead { (dag.rows.count, Array(pending.records.keys)) }
        for i in 0..<rows {
            let ordinal = UInt32(truncatingIfNeeded: i)
            let found = lock.withRead { () -> (VersionID, RecordPlace)? in
                guard dag.isLive(i) else { return nil }
                if let hashes, let own = dag.keyHashes(of: ordinal), !own.contains(where: hashes.contains) { return nil }
                return (dag.id(ordinal), dag.rows[i].place)
            }
            guard let found else { continue }
            try control.step(1)
            try Memory.check()
            try body(found.0, found.1)
        }
        for id in waiting {
            // A version that was admitted meanwhile may be read in another record.
            guard let place = recordPlaces(of: id).first else { continue }
            try body(id, place)
        }
    }

    /// The prefix of the ids of values that say which conflicts were reviewed. Their bytes have both sides of a conflict.
    private static let chosenPrefix = Array("__llvs_chosen/".utf8)

    /// Returns the indexes of the changes to erase.
    private func find(_ query: ErasureQuery, _ report: inout ErasureReport, _ control: PacedControl) throws -> [VersionID: [Int]] {
        var ids = Set(query.ids)
        var equal: [ValueID: (size: Int, digest: [UInt8])] = [:]
        if let version = query.version {
            let ordinal = try requireOrdinal(version)
            for id in ids {
                try id.bytes.withUnsafeBytes { key in
                    guard let entry = try maps.entry(key, at: ordinal) else { return }
                    let stored = lock.withRead { (dag.id(entry.version), dag.rows[Int(entry.version)].place) }
                    guard let found = try records.findChange(stored.1, key) else { return }
                    equal[id] = (found.body.size, try records.digest(of: key, in: stored.1, stored: stored.0))
                }
            }
            ids = Set(equal.keys)
        }
        var counted: Set<VersionID> = []
        var found: [VersionID: [Int]] = [:], chosen: [(VersionID, Int, ValueID, [UInt8], Int)] = []
        var all = ids
        let ordered = try namedChanges().ordered
        func add(_ version: VersionID, _ index: Int, _ size: Int) {
            report.values &+= 1
            report.bytes &+= UInt64(size)
            counted.insert(version)
            found[version, default: []].append(index)
        }
        try forEachRecord(control) { version, place in
            var i = -1
            let named = Set(ordered[version] ?? [])
            do {
                try records.forEachChange(place) { entry, _ in
                    i += 1
                    guard entry.kind == .insert || entry.kind == .update, !entry.id.starts(with: EraseOrder.reserved) else { return }
                    let id = ValueID(unchecked: entry.id)
                    if let digest = entry.digest, entry.isHollow {
                        // The order names it as well, so that the bytes are not stored if they come from others.
                        guard ids.contains(id), !named.contains(i),
                            equal[id].map({ $0.size == entry.size && digest.elementsEqual($0.digest) }) ?? (query.version == nil)
                        else { return }
                        found[version, default: []].append(i)
                        return
                    }
                    var isWanted = false
                    if ids.contains(id) {
                        if let one = equal[id] {
                            isWanted =
                                try entry.size == one.size
                                && one.digest
                                    == (entry.digest.map { Array($0) }
                                        ?? records.withValue(entry, in: place, of: version) { SHA256.digest($0) })
                        } else {
                            isWanted = query.version == nil
                        }
                    }
                    if !isWanted, !query.containing.isEmpty, entry.size >= query.containing.count {
                        isWanted = try records.withValue(entry, in: place, of: version) { Bytes.contains($0, query.containing) }
                        if isWanted { all.insert(id) }
                    }
                    if isWanted {
                        add(version, i, entry.size)
                    } else if entry.id.starts(with: Store.chosenPrefix) {
                        let mark = try records.withValue(entry, in: place, of: version) { Store.valueID(ofMark: $0) }
                        if let mark { chosen.append((version, i, id, mark, entry.size)) }
                    }
                }
            } catch let error as StoreError where error.code.isOfOne { report.unread &+= 1 }
        }
        for (version, index, _, mark, size) in chosen where all.contains(ValueID(unchecked: mark)) {
            add(version, index, size)
            report.copies &+= 1
        }
        for version in found.keys { found[version]?.sort() }
        report.versions = UInt64(counted.count)
        return found
    }

    /// Returns the id of the value in the record of a conflict; nil if the bytes are none.
    private static func valueID(ofMark bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var reader = JSONReader(bytes)
        do {
            try reader.beginObject()
            while let key = try reader.nextMember() {
                if try reader.equals(key, "id") { return try reader.string() }
                try reader.skip()
            }
        } catch {}
        return nil
    }

    // MARK: Ordering

    /// Saves the order, and removes or replaces the values that prevail at heads. The note comes first: an order that it names and that
    /// was not saved has no effect.
    private func save(_ found: [VersionID: [Int]], _ query: ErasureQuery, _ report: inout ErasureReport) throws {
        let note = try ErasureNote(storage.orders())
        let orders = EraseOrder.divide(made: EraseOrder.text(ofTime: Clock.now()), what: found, why: Array(query.why.utf8))
            .map { note.policy.signed($0.json) }
        guard note.hasRoom(for: orders) else {
            throw StoreError(
                .tooLarge,
                "\(description) has \(note.lines.count) orders to erase values, and holds at most \(ErasureNote.most), of 64 MiB in all. "
                    + "Erase more values at once.")
        }
        let heads = lock.withRead { dag.headOrdinals.sorted { dag.isNewer($0, $1) } }
        var isFirst = true
        let erased = try erasedValues(found)
        for head in heads {
            var changes: [Value.Change] = []
            for (id, versions) in erased {
                guard let entry = try id.bytes.withUnsafeBytes({ try maps.entry($0, at: head) }), versions.contains(entry.version)
                else { continue }
                changes.append(query.replacement.map { .update(id, data: $0) } ?? .remove(id))
            }
            if isFirst { changes += orders.map { .insert(EraseOrder.id(of: $0), data: $0) } }
            guard !changes.isEmpty else { continue }
            let id = lock.withRead { dag.id(head) }
            var metadata = Metadata()
            metadata.branch = try records.header(place(of: head)).metadata.branch
            let made = try makeVersion(basedOn: id, changes: changes, metadata: metadata)
            report.made.append(made.id)
            guard isFirst else { continue }
            isFirst = false
            report.orders = orders.map(EraseOrder.id(of:))
            // If the power fails between the two, the version is there, and its orders do not count.
            try storage.sync()
            // Without it, the next opening reads the records, and finds those with orders.
            try storage.cacheErase(Store.historyName)
            try changeNote { note in
                for json in orders {
                    let name = EraseOrder.name(of: json)
                    note.lines.removeAll { $0.order == name }
                    note.lines.append(ErasureNote.Line(order: name, version: made.id, isFollowed: false, json: json))
                }
            }
        }
    }

    /// Returns the ordinals of the versions that stored the values, by their ids.
    private func erasedValues(_ found: [VersionID: [Int]]) throws -> [ValueID: Set<UInt32>] {
        var values: [ValueID: Set<UInt32>] = [:]
        for (version, indexes) in found {
            guard let ordinal = lock.withRead({ dag.ordinal(of: version) }) else { continue }
            let wanted = Set(indexes)
            var i = -1
            try records.forEachChange(place(of: ordinal)) { entry, _ in
                i += 1
                if wanted.contains(i) { values[ValueID(unchecked: entry.id), default: []].insert(ordinal) }
            }
        }
        return values
    }

    // MARK: Following

    /// Follows the orders of this device that are not followed yet. Called when the store was opened, too.
    /// - Returns: what they wait for.
    /// - Parameter isPatient: whether to wait for another handle that compacts or erases.
    func followOrders(_ control: PacedControl, isPatient: Bool = true) throws -> [String] {
        let thread = llvs_shim_thread_number()
        erasureState.withLock { $0.follower = thread }
        defer { erasureState.withLock { $0.follower = nil } }
        let open = try ErasureNote(storage.orders()).lines.filter { !$0.isFollowed }
        guard !open.isEmpty else { return [] }
        var targets: [VersionID: [Int]] = [:]
        for line in open {
            for (version, changes) in try order(line)?.what ?? [:] { targets[version, default: []] += changes }
        }
        let waiting = try withRecordsThatMove(times: 4) {
            // The plan includes differences that other handles stored until now: all segments are read, since the time of one that was
            // written just now may be the same as before. Values of differences that are stored later are stored whole as well.
            storage.forgetScanned()
            try reloadHistory()
            let plan = try ErasurePlan(targets, in: self, control)
            removeCachesOfValues(storage)
            return try withCommitLock {
                noteScanner(thread)
                defer { noteScanner(nil) }
                return try storage.erase(PlannedErasure(self, plan, isPatient: isPatient) { [self] in try move($0, plan) }, control)
            }
        }
        dropCopies()
        removeCachesOfValues(storage)
        if waiting.isEmpty {
            let followed = Set(open.map(\.order))
            // Other handles may have added orders meanwhile.
            try changeNote { note in
                for i in note.lines.indices where followed.contains(note.lines[i].order) && !note.lines[i].isFollowed {
                    note.lines[i].isFollowed = true
                }
            }
        }
        erasureState.withLock { $0.isWaiting = !waiting.isEmpty }
        _ = try settleErasures { try scanAgain(control) }
        Log.write(.info, "Erased values of \(description)\(waiting.isEmpty ? "" : "; \(waiting.joined(separator: "; "))").")
        return waiting
    }

    /// Follows orders that are not followed yet, if there are any. An error is logged: the next opening tries again.
    func followIfOrdered() {
        guard storage.canErase, !storage.isReadOnly else { return }
        do {
            guard try hasOpenOrders() else { return }
            _ = try erasing.run("Erasing values of \(description)") { try followOrders(.none) }
        } catch { Log.write(.warning, "Erasing values of \(description), as was ordered before, failed: \(error)") }
    }

    /// Reads records at their new places from now on.
    private func move(_ places: [RecordPlace: RecordPlace], _ plan: ErasurePlan) throws {
        var checksums: [VersionID: UInt32] = [:]
        for version in plan.versions.keys {
            guard let place = recordPlaces(of: version).first, let new = places[place] else { continue }
            checksums[version] = try records.header(new).checksum
        }
        move(places, checksums)
        dropCopies()
    }
    /// - Parameter checksums: those of the headers that are not the same as before.
    func move(_ places: [RecordPlace: RecordPlace], _ checksums: [VersionID: UInt32]) {
        let state = erasureState
        lock.withWrite {
            dag.moveRecords(places, checksums)
            // Readers on other threads may have the old places, and a version that is not published yet gets its old place then.
            state.withLock { state in
                if state.places.count + places.count <= ErasureState.mostPlaces { state.places.merge(places) { $1 } }
            }
            pending.move(places)
            maps.keyHistory = nil
            caches.areOutdated = true
        }
    }

    // MARK: Erasures of other handles

    /// Notes another record of a version, whose first record another handle may be about to remove. No later scan finds this one.
    func noteCopy(_ copy: RecordPlace, of place: RecordPlace) {
        guard storage.canErase, lock.withRead({ erasureParts }) != nil || storage.ordersStamp() != 0 else { return }
        guard !storage.isGone(copy) else { return }
        erasureState.withLock { if $0.places.count < ErasureState.mostPlaces { $0.places[place] = copy } }
    }

    /// Returns where to read a record in which damage was found; nil if there is no other place.
    func whereNow(_ place: RecordPlace) -> RecordPlace? {
        let began = Clock.steady()
        guard place.segment != ProvisionalRecords.segment else { return nil }
        guard lock.withRead({ erasureParts }) != nil || storage.ordersStamp() != 0 else { return nil }
        let (isFruitless, moves, settled) = erasureState.withLock { (began < $0.fruitless + 1, $0.moves, $0.settled) }
        guard !isFruitless else { return nil }
        if let new = erasureState.withLock({ $0.newPlace(of: place) }), !storage.isGone(new) {
            // A copy that was found before the record was removed may have another header.
            var reader = records.reader(new)
            if storage.isGone(place), let header = try? records.header(&reader, new) {
                lock.withWrite { dag.moveRecords([place: new], [header.id: header.checksum]) }
            }
            return new
        }
        // A thread that scans cannot begin another scan.
        guard !isScanning else { return nil }
        guard storage.isGone(place) || storage.ordersStamp() != settled else { return nil }
        let ordinal = lock.withRead { dag.rows.firstIndex { $0.place == place } }
        storage.forgetScanned()
        _ = try? reloadHistory()
        // Another thread may have found the new place meanwhile.
        if let new = erasureState.withLock({ $0.newPlace(of: place) }) { return new }
        guard let ordinal, erasureState.withLock({ $0.moves != moves }) else {
            if !storage.isGone(place) { erasureState.withLock { $0.fruitless = Clock.steady() } }
            return nil
        }
        return lock.withRead { dag.rows[ordinal].place }
    }

    func otherRecord(of version: VersionID, than place: RecordPlace) -> RecordPlace? {
        let began = Clock.steady()
        guard !isScanning, storage.ordersStamp() != 0, erasureState.withLock({ began >= $0.fruitless + 1 }) else { return nil }
        storage.forgetScanned()
        _ = try? reloadHistory()
        if let now = recordPlaces(of: version).first, now != place { return now }
        erasureState.withLock { $0.fruitless = Clock.steady() }
        return nil
    }
    func isMoving(_ place: RecordPlace) -> Bool {
        isScanning && storage.isGone(place) && storage.ordersStamp() != 0
    }
    private var isScanning: Bool { lock.withRead { commits.unpublished.scanner } == llvs_shim_thread_number() }

    /// Follows erasures of other handles in this handle, after a record with orders was found. If an order waits, perhaps for a segment of
    /// this handle, it is followed here.
    /// - Parameter isPatient: whether to wait for another handle that is following it.
    func lookForErasures(_ control: PacedControl, isPatient: Bool = false) throws -> [VersionID] {
        let thread = llvs_shim_thread_number()
        guard erasureState.withLock({ $0.follower != thread }) else { return [] }
        erasureState.withLock { $0.isNews = false }
        let (added, isOpen) = try settleErasures { try scanAgain(control) }
        guard isOpen else { return added }
        erasureState.withLock { $0.isNews = true }
        guard !storage.isReadOnly, storage.canErase else { return added }
        if isPatient {
            _ = try erasing.run("Erasing values of \(description)") { try followOrders(control) }
        } else {
            _ = try erasing.runUnlessBusy("Erasing values of \(description)") { try followOrders(control, isPatient: false) }
        }
        let isStillOpen = try hasOpenOrders()
        erasureState.withLock { $0.isNews = isStillOpen }
        return added
    }

    /// Notes whether all orders were followed before the storage was scanned, and nothing in memory is older than that scan.
    /// - Parameter isOpening: whether nothing is in memory yet.
    /// - Returns: what the scan returned, and whether an order was open.
    func settleErasures<R>(isOpening: Bool = false, _ scan: () throws -> R) throws -> (R, isOpen: Bool) {
        let stamp = storage.canErase ? storage.ordersStamp() : 0
        let isOpen = try stamp != 0 && hasOpenOrders()
        let result = try scan()
        if stamp != 0 || lock.withRead({ erasureParts }) != nil {
            if !isOpening { dropCopies() }
            erasureState.withLock { $0.settled = isOpen ? nil : stamp }
        }
        return (result, isOpen)
    }
    /// The stamp of the orders when all of them were followed, and this handle had nothing older in memory. Nil while an order is not
    /// followed: then values that are saved are no differences, since their bases may be about to lose their bytes.
    var settledErasures: UInt64? {
        guard let parts = lock.withRead({ erasureParts }) else { return 0 }
        return parts.state.withLock { $0.settled }
    }
    /// Returns whether orders were made or followed since they were settled.
    func areErasuresNew(since settled: UInt64) -> Bool { storage.ordersStamp() != settled }

    /// Tells the storage which segments have records that are read.
    func noteUsedSegments() {
        let used = lock.withRead {
            Set(dag.rows.map(\.place.segment) + pending.records.values.map(\.place.segment))
        }
        storage.noteUsed(used)
    }
    private func hasOpenOrders() throws -> Bool {
        if storage.ordersStamp() != 0, let known = try knownOrders() { return known.hasOpen }
        return try ErasureNote(storage.orders()).lines.contains { !$0.isFollowed }
    }

    /// Returns whether an order is not followed. Then the history is not written to the caches: its absence makes the next opening look.
    func hasOpenOrdersNow() -> Bool {
        storage.ordersStamp() != 0 && (try? hasOpenOrders()) ?? true
    }

    /// Releases the memory that holds values, and where they were.
    func dropCopies() {
        lock.withWrite {
            maps.keyHistory = nil
            maps.persisted = nil
            validSchemas.forget()
        }
        maps.changeLists.removeAll()
        maps.giveWay()
        records.blocks.removeAll()
        records.tables.removeAll()
        differencing.forget()
        // Trees of indexes, too.
        GivingWay.forgetAll()
        erasureState.withLock { $0.known = nil }
        forgetKnownOrders()
    }

    /// Removes the caches that can hold bytes of values, or where they were.
    private func removeCachesOfValues(_ storage: any Storage) {
        let prefixes = ["history", "index-", "live-part", "map-"]
        for name in (try? storage.cacheNames()) ?? [] where prefixes.contains(where: name.hasPrefix) || name.hasSuffix("-upload") {
            do { try storage.cacheErase(name) } catch { Log.write(.info, "The cache \(name) was not removed: \(error)") }
        }
        lock.withWrite { caches.versions = 0 }
    }

    // MARK: Reading

    /// Returns whether an order that counts on this device names a value.
    func isErased(_ id: ValueID, _ version: VersionID) -> Bool {
        for attempt in 0..<2 {
            let known = attempt == 0 ? erasureState.withLock { $0.known } : nil
            let values = known ?? (try? readErased()) ?? [:]
            if known == nil { erasureState.withLock { $0.known = values } }
            if values[version]?.contains(id) == true { return true }
            if known == nil { return false }
        }
        return false
    }

    private func readErased() throws -> [VersionID: Set<ValueID>] {
        var values: [VersionID: Set<ValueID>] = [:]
        for line in try ErasureNote(storage.orders()).lines {
            for (version, indexes) in try order(line)?.what ?? [:] {
                guard let place = recordPlaces(of: version).first else { continue }
                let wanted = Set(indexes)
                var i = -1
                try records.forEachChange(place) { entry, _ in
                    i += 1
                    if wanted.contains(i) { values[version, default: []].insert(ValueID(unchecked: entry.id)) }
                }
            }
        }
        return values
    }
}

/// A scan read a record that another handle, which erases values, was moving. The next scan finds it at its new place.
struct RecordMoved: Error {
    /// What was read at the old place.
    let error: StoreError
}

/// Knows which values were erased, and where their records are.
protocol KnownErasures: AnyObject, Sendable {
    /// Returns where to read a record in which damage was found; nil if there is no other place.
    func whereNow(_ place: RecordPlace) -> RecordPlace?
    /// Returns the place of another record of a version, in which a value was a difference whose base has no bytes; nil if there is none.
    func otherRecord(of version: VersionID, than place: RecordPlace) -> RecordPlace?
    /// Returns whether this thread scans the storage, and another handle removed the record from its place meanwhile.
    func isMoving(_ place: RecordPlace) -> Bool
    /// Returns whether an order that counts on this device names a value.
    func isErased(_ id: ValueID, _ version: VersionID) -> Bool
}
extension Store: KnownErasures {}

/// What erasing needs. Safe from all threads.
final class ErasureParts: Sendable {
    /// Allows one thread at a time to erase values.
    let erasing = Gate("store")
    let state = Guarded(ErasureState())
    let orders = Guarded(OrderState())
}
extension Store {
    var parts: ErasureParts {
        if let parts = lock.withRead({ erasureParts }) { return parts }
        let made = ErasureParts()
        return lock.withWrite {
            if let parts = erasureParts { return parts }
            erasureParts = made
            return made
        }
    }
    var erasureState: Guarded<ErasureState> { parts.state }
    /// Whether a record with orders was found, which another handle may be following.
    var hasNewsOfErasures: Bool { lock.withRead({ erasureParts })?.state.withLock { $0.isNews } ?? false }
    var erasing: Gate { parts.erasing }
    /// The number of the thread that holds the commit lock and reads records.
    func noteScanner(_ thread: UInt32?) { lock.withWrite { commits.unpublished.scanner = thread } }
}

/// What a handle knows of erasures.
struct ErasureState {
    /// Whether an order of this device waits for something.
    var isWaiting = false
    /// Whether a record with orders was found, which another handle may be following.
    var isNews = false
    /// Where records were moved, or are as well.
    var places: [RecordPlace: RecordPlace] = [:]
    /// Readers that find damage because of a move beyond these try again once they are called again.
    static let mostPlaces = 1 << 18
    func newPlace(of place: RecordPlace) -> RecordPlace? {
        var new = places[place]
        // Records move again with later erasures. In SQLite a record can come back to a place.
        for _ in 0..<64 {
            guard let now = new, let next = places[now], next != now, next != place else { break }
            new = next
        }
        return new == place ? nil : new
    }
    /// The number of the thread that follows orders.
    var follower: UInt32?
    /// `Store.settledErasures`.
    var settled: UInt64? = 0
    /// How often records were found to have moved because others erased values.
    var moves: UInt64 = 0
    /// When damage was last looked into without finding that records had moved.
    var fruitless = -Double.infinity
    /// The values that orders name, by the versions that stored them. Nil: not read yet.
    var known: [VersionID: Set<ValueID>]?
}
