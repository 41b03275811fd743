/// Stores versions. One version and many versions take the same steps:
///
///     hidden in the history · record made and appended · synced · map and changes kept · published · observers notified
extension Store {
    /// A version that is being stored. It is in the history already, but hidden.
    struct Storing {
        let ordinal: UInt32
        let draft: Draft
        /// The location of its record, after it was appended.
        var place = RecordPlace(segment: ProvisionalRecords.segment, offset: 0, length: 0)
        /// The checksum of the header of its record.
        var checksum: UInt32 = 0
        /// How it changes the map; empty if it has too many changes.
        var mapped: [MapChange] = []
        /// The values that may become bases, and their ways.
        var ways: [Differencing.New] = []

        /// Whether its record has values of forgetting.
        var hasForgetValues = false

        /// Whether its record has differences.
        var hasDifferences: Bool { ways.contains { ($0.nodes.first?.place ?? 0) > 0 } }

        init(_ ordinal: UInt32, _ draft: Draft) { self.ordinal = ordinal; self.draft = draft }
    }

    /// What the store caches of stored versions.
    enum Keeping {
        /// Keeps the changes of the versions.
        case changes
        /// Keeps the changes of the versions, and their maps or delta chains. `view` is the map of the first predecessor, if it is in
        /// memory.
        case maps(view: DeltaChains.View?)

        /// If a version has more changes, nothing is cached.
        var most: Int { if case .maps = self { MapPolicy.manyChanges - 1 } else { MapPolicy.longestKeptList } }
    }

    /// Stores one draft and publishes the version. If it throws, nothing was stored. If it throws `.unknownOutcome`, the version may be
    /// stored.
    /// - Parameter view: the map of the first predecessor, if it is in memory.
    package func commit(_ draft: inout Draft, _ view: DeltaChains.View? = nil) throws {
        let ordinal = try lock.withWrite { () -> UInt32 in
            try checkOpenLocked()
            try dag.preallocate()
            commits.unpublished.running += 1
            return appendHidden(&draft)
        }
        var one = CollectionOfOne(Storing(ordinal, draft))
        do {
            if try store(&one, keeping: .maps(view: view)) { tellOfNew([draft.version.id]) } else { tell([draft.version.id]) }
        } catch {
            lock.withWrite { dag.drop(ordinal) }
            maps.drop(ordinal)
            throw error
        }
    }

    /// Stores drafts in order as one batch, and publishes the versions. They are in the history already, but hidden.
    package func store(_ drafts: [(ordinal: UInt32, draft: Draft)]) throws {
        guard !drafts.isEmpty else { return }
        lock.withWrite { commits.unpublished.running += 1 }
        var items = drafts.map { Storing($0.ordinal, $0.draft) }
        _ = try store(&items, keeping: .changes)
    }

    /// Appends the records of versions as one batch, waits for the disk if the durability requires it, and publishes the versions. The
    /// caller has counted the batch as running.
    /// - Returns: whether pending versions exist, which may wait for these.
    private func store<Items>(_ items: inout Items, keeping: Keeping) throws -> Bool
    where Items: MutableCollection & RandomAccessCollection, Items.Element == Storing, Items.Index == Int {
        var isBesideErasure = false
        do {
            do { try append(&items, keeping: keeping, settled: settledErasures) } catch is OrdersChanged {
                // Another handle may erase the bytes of the bases without noticing these records.
                isBesideErasure = true
                erasureState.withLock { $0.isNews = true }
                try append(&items, keeping: keeping, settled: nil)
            }
            try makeDurable(items)
        } catch {
            lock.withWrite { commits.unpublished.running -= 1 }
            throw error
        }
        // The order may wait for the segment of this handle. If that fails, the next look for new versions tries again.
        defer { if isBesideErasure { _ = try? lookForErasures(.none, isPatient: true) } }
        if case .maps(let view) = keeping {
            for item in items { maps.keep(item.ordinal, on: item.draft.first, count: item.draft.changes.count, item.mapped, view) }
        }
        let (replaced, othersWait) = publish(items)
        for item in items where item.hasForgetValues { orders.noteUnread(item.draft.version.id) }
        for item in items { keepWays(item) }
        // The lists of changes contain ordinals of the batch. Cache none if ordinals were replaced.
        if replaced.isEmpty {
            for item in items { maps.keepChanges(item.ordinal, item.draft.changes, item.mapped) }
        } else {
            for item in items where replaced[item.ordinal] != nil { maps.drop(item.ordinal) }
        }
        return othersWait
    }

    /// Publishes stored versions. If a scan has found the same version of another process meanwhile, that one prevails.
    /// - Returns: the ordinals that replace those of the items, and whether other versions are pending.
    private func publish(_ items: some Collection<Storing>) -> ([UInt32: UInt32], Bool) {
        var replaced: [UInt32: UInt32] = [:]
        let othersWait = lock.withWrite { () -> Bool in
            commits.unpublished.running -= 1
            for item in items { commits.unpublished.confirm(item.draft.version.id) }
            for item in items {
                if let theirs = dag.ordinal(of: item.draft.version.id) {
                    replaced[item.ordinal] = theirs
                    dag.drop(item.ordinal)
                } else {
                    if !replaced.isEmpty { dag.redirect(item.ordinal, replaced) }
                    let ordinal = dag.behindPredecessors(item.ordinal)
                    if ordinal != item.ordinal { replaced[item.ordinal] = ordinal }
                    dag.publish(ordinal, place: currentPlace(item.place), checksum: item.checksum)
                }
            }
            return pending.count > 0
        }
        return (replaced, othersWait)
    }

    // MARK: Appending

    /// Makes the records and appends them as one batch.
    /// - Parameter settled: `settledErasures`. If it is nil, no value is stored as a difference.
    /// - Throws: `OrdersChanged` if the orders to erase have changed since.
    private func append<Items>(_ items: inout Items, keeping: Keeping, settled: UInt64?) throws
    where Items: MutableCollection & RandomAccessCollection, Items.Element == Storing, Items.Index == Int {
        var own: [VersionID: UInt32] = [:]
        if items.count > 1, items.contains(where: { $0.draft.traits.contains(.preserves) }) {
            for item in items { own[item.draft.version.id] = item.ordinal }
        }
        // With several items, small records are gathered in one buffer. Each large record has its own encoder, which makes it in pieces.
        var gathered: [UInt8] = [], ends: [Int] = [], large: [Int: RecordEncoder] = [:]
        var blobs: [BlobID] = [], batch = DifferenceBatch(items)
        try commits.encoders.with { encoder in
            do {
                for i in items.indices {
                    try encode(&items[i], by: encoder, keeping: keeping, beside: own, withDifferences: settled != nil, &batch, &blobs)
                    guard items.count > 1 else { break }
                    if encoder.recordSize <= encoder.sizes.piece {
                        try encoder.pieces(items[i].draft.changes).forEach { piece in
                            try Memory.grow(&gathered, by: piece.count, "Adding \(items.count) versions")
                            gathered.append(contentsOf: piece)
                        }
                    } else {
                        large[i] = encoder
                        encoder = RecordEncoder()
                    }
                    ends.append(gathered.count)
                }
                let places = try withExtendedLifetime((large, encoder)) {
                    try gathered.withUnsafeBytes { bytes in
                        let records = items.indices.map { i in
                            if items.count == 1 { return encoder.pieces(items[i].draft.changes) }
                            let small = UnsafeRawBufferPointer(rebasing: bytes[(i > 0 ? ends[i - 1] : 0)..<ends[i]])
                            return large[i]?.pieces(items[i].draft.changes) ?? RecordPieces(small)
                        }
                        return try noting(items) {
                            try withCommitLock {
                                try checkOpen()
                                guard let settled, items.contains(where: { $0.hasDifferences }) else { return try storage.append(records) }
                                return try storage.append(records, ifOrdersAre: settled)
                            }
                        }
                    }
                }
                guard places.count == items.count else {
                    throw StoreError(.internal, "A storage returned \(places.count) places for \(items.count) records.")
                }
                for i in items.indices { items[i].place = places[i] }
            } catch {
                removeBlobs(blobs, after: error)
                throw error
            }
        }
    }

    /// Prepares the record of a version, stores its large values, and notes how the version changes the map.
    private func encode(
        _ item: inout Storing, by encoder: RecordEncoder, keeping: Keeping, beside own: [VersionID: UInt32], withDifferences: Bool,
        _ batch: inout DifferenceBatch, _ blobs: inout [BlobID]
    ) throws {
        let draft = item.draft, isKept = draft.changes.count <= keeping.most
        // Check the memory for the caches now, because caching must not fail after the version is stored.
        if isKept, case .maps = keeping { try Memory.expect(draft.changes.count * 256, "Saving \(draft.changes.count) changes") }
        try Memory.check()
        defer { blobs += encoder.blobs }
        // If all values are too small for differences, skip the search for them.
        item.ways = []
        if withDifferences, draft.version.valueDataSize >= UInt64(Differencing.sizes.lowerBound), differencing.isUsed {
            item.ways = try encodeDifferences(draft, by: encoder, keeping: keeping, batch)
            batch.keep(item.ordinal, item.ways)
        } else {
            try encoder.encode(
                draft.version, draft.changes, digests: draft.digests, storedAt: draft.storedAt, blobThreshold: storage.blobThreshold,
                startsStore: draft.first == History.none && differencing.isUsed, storeBlob: storage.storeBlob(_:digest:))
        }
        item.checksum = encoder.checksum
        item.hasForgetValues = encoder.hasForgetValues
        guard isKept else { return }
        item.mapped = draft.mapChanges(item.ordinal, in: encoder) { id in own[id] ?? lock.withRead { dag.ordinalIncludingStaged(of: id) } }
    }

    /// Prepares the record of a version. Values are differences if these are small enough.
    /// - Returns: the values that may become bases, and their ways.
    private func encodeDifferences(_ draft: Draft, by encoder: RecordEncoder, keeping: Keeping, _ batch: DifferenceBatch) throws
        -> [Differencing.New]
    {
        var view: DeltaChains.View?
        if case .maps(let given) = keeping { view = given }
        var new: [Differencing.New] = []
        let isKept = !batch.isEmpty || draft.changes.count <= Differencing.mostKept
        try encoder.encode(
            draft.version, draft.changes, digests: draft.digests, storedAt: draft.storedAt, blobThreshold: storage.blobThreshold,
            startsStore: draft.first == History.none,
            difference: { kind, id, data, index in
                guard Differencing.sizes.contains(data.count) else { return nil }
                let made = kind == .update ? difference(id, data, of: draft, view, batch) : nil
                if isKept || made != nil {
                    let whole = Differencing.Node(
                        version: draft.version.id, place: 0, size: data.count, stored: 0, way: 0, body: 0,
                        checksum: made == nil ? Bytes.crc32c(data) : nil)
                    new.append(Differencing.New(id: Array(id), index: index, nodes: made?.nodes ?? [whole]))
                    // In a batch the bytes are in its drafts already.
                    let place = made?.nodes.first?.place ?? 0
                    if isKept, batch.isEmpty, Differencing.becomesBase(place), records.bases.hasRoom(for: data.count) {
                        // If memory is short, the bytes are read again when they are needed.
                        new[new.count - 1].bytes = (try? Memory.copy(data, "Keeping a value")) ?? []
                    }
                }
                return made.map { ($0.stored, $0.hasDigest) }
            },
            storeBlob: storage.storeBlob(_:digest:))
        var at = encoder.bodiesStart, next = 0
        for i in encoder.bodies.indices where next < new.count {
            let body = encoder.bodies[i]
            if new[next].index == i {
                new[next].nodes[0].body = body.isNone ? 0 : at
                if !body.isDifference {
                    // The encoder may have had no room for a difference.
                    new[next].nodes = [new[next].nodes[0]]
                    new[next].nodes[0].place = 0
                    new[next].nodes[0].way = 0
                    // A blob is stored as it is.
                    new[next].nodes[0].stored = body.isNone ? new[next].nodes[0].size : body.size
                }
                next += 1
            }
            at += body.sizeInRecord
        }
        return new
    }

    /// Removes the blobs of records that were not stored. If the outcome is unknown, it removes none.
    func removeBlobs(_ blobs: [BlobID], after error: any Error) {
        guard !blobs.isEmpty, (error as? StoreError)?.code != .unknownOutcome else { return }
        for blob in blobs { storage.removeBlob(blob) }
    }

    /// Adds a draft to the history, hidden, and returns its ordinal. If the version, or an ancestor, claims to be made later than the clock
    /// shows, the draft records the clock time. The caller holds the lock for writing.
    package func appendHidden(_ draft: inout Draft) -> UInt32 {
        lock.assertHeld("The history")
        let clock = MadeTime.clock(draft.version.metadata)
        let claimed = dag.claimed(timestamp: draft.version.timestamp, clock: clock, first: draft.first, second: draft.second)
        if !draft.isDated, claimed > MadeTime.earliest {
            let now = environment.clock()
            if now >= MadeTime.earliest, claimed > now + MadeTime.tolerance { draft.storedAt = now }
        }
        let ordinal = dag.append(
            id: draft.version.id, timestamp: draft.version.timestamp, valueDataSize: draft.version.valueDataSize,
            first: draft.first, second: draft.second, branch: draft.version.metadata.branchName,
            place: RecordPlace(segment: ProvisionalRecords.segment, offset: 0, length: 0), checksum: 0, changeCount: draft.changes.count,
            traits: draft.traits.union(UndoMarks.traits(draft.version.metadata)), clock: clock, storedAt: draft.storedAt)
        draft.version.madeAt = dag.rows[Int(ordinal)].made
        dag.noteKeys(ordinal, count: draft.changes.count) { History.keyHash(draft.changes[$0].id) }
        return ordinal
    }

    // MARK: The disk

    /// Waits until the records are on the disk, if the durability requires it.
    private func makeDurable(_ items: some BidirectionalCollection<Storing>) throws {
        guard commits.durability == .full else { return }
        let ticket = commits.group.ticket()
        do {
            try Log.holding { try commits.group.wait(for: ticket) { try storage.sync() } }
        } catch var error as StoreError {
            guard let version = items.last?.draft.version else { throw error }
            if error.code != .unknownOutcome { error.message = "\(error.message) It is not known whether version \(version.id) is stored." }
            error.code = .unknownOutcome
            throw unconfirmed(items, error)
        }
    }

    /// Calls `append`. If its outcome is unknown, the versions are noted as uncertain: each can only be made again with the same contents.
    private func noting<R>(_ items: some BidirectionalCollection<Storing>, _ append: () throws -> R) throws -> R {
        do { return try append() } catch let error as StoreError where error.code == .unknownOutcome { throw unconfirmed(items, error) }
    }

    /// Notes that the versions may or may not be stored. Returns the error with the id of the last version.
    private func unconfirmed(_ items: some BidirectionalCollection<Storing>, _ error: StoreError) -> StoreError {
        let all = items.map {
            ($0.draft.version.id, (time: GivenTime($0.draft.version), digest: identityDigest($0.draft.version, $0.draft.changes)))
        }
        lock.withWrite { for (id, what) in all { commits.unpublished.markUncertain(id, what) } }
        var error = error
        error.versionID = items.last?.draft.version.id.description
        return error
    }

    /// Admits the versions that were pending for these, and notifies the observers of all of them.
    package func tellOfNew(_ ids: [VersionID]) {
        var all = ids
        let waiting = lock.withWrite { () -> [PendingVersions.Record] in
            guard pending.count > 0 else { return [] }
            for id in ids { pending.forget(id) }
            return ids.flatMap { pending.take(waitingFor: $0) }
        }
        // If memory or descriptors are short, the other versions stay pending until the next reload.
        all += (try? admit(waiting)) ?? []
        tell(all)
    }

    /// Notifies the observers of stored versions. Before that it ends their marks as in flight, because an observer may make the same
    /// version again, or wait for a thread that does.
    private func tell(_ ids: @autoclosure () -> [VersionID]) {
        guard !observers.isEmpty else { return }
        let ids = ids()
        for id in ids { commits.inFlight.end(id) }
        observers.tell(ids)
    }
}
