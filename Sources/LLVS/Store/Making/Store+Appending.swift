/// Storing versions: one way for one and for many.
///
///     hidden in the history · record made and appended · synced · map and changes kept · published · told
extension Store {
    /// A version that is being stored. It is in the history already, but hidden.
    struct Storing {
        let ordinal: UInt32
        let draft: Draft
        /// Where its record is, once it is appended.
        var place = RecordPlace(segment: ProvisionalRecords.segment, offset: 0, length: 0)
        /// Of the header of its record.
        var checksum: UInt32 = 0
        /// What it does to the map; empty when it has too many changes.
        var mapped: [MapChange] = []
        /// The values on which the next ones of their ids may stand.
        var ways: [Differencing.New] = []

        init(_ ordinal: UInt32, _ draft: Draft) { self.ordinal = ordinal; self.draft = draft }
    }

    /// What is kept in memory of versions that are stored.
    enum Keeping {
        /// What they recorded.
        case changes
        /// That, and their maps, or what these are made of; `view` is what prevails at the first predecessor, when that is at hand.
        case maps(view: DeltaChains.View?)

        /// With more changes than this nothing is kept.
        var most: Int { if case .maps = self { MapPolicy.manyChanges - 1 } else { MapPolicy.longestKeptList } }
    }

    /// Stores one draft and makes it live. On any error nothing is there, except with `.unknownOutcome`.
    /// - Parameter view: what prevails at its first predecessor, when that is at hand.
    func commit(_ draft: inout Draft, _ view: DeltaChains.View? = nil) throws {
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

    /// Stores drafts, already in the history but hidden, in order, as one batch and makes them live.
    func store(_ drafts: [(ordinal: UInt32, draft: Draft)]) throws {
        guard !drafts.isEmpty else { return }
        lock.withWrite { commits.unpublished.running += 1 }
        var items = drafts.map { Storing($0.ordinal, $0.draft) }
        _ = try store(&items, keeping: .changes)
    }

    /// Appends the records of versions as one batch, waits for the disk when the durability asks for it, and makes them live. The caller
    /// has counted them in as running.
    /// - Returns: whether versions wait for their ancestry, which these may be.
    private func store<Items>(_ items: inout Items, keeping: Keeping) throws -> Bool
    where Items: MutableCollection & RandomAccessCollection, Items.Element == Storing, Items.Index == Int {
        do {
            try append(&items, keeping: keeping)
            try makeDurable(items)
        } catch {
            lock.withWrite { commits.unpublished.running -= 1 }
            throw error
        }
        if case .maps(let view) = keeping {
            for item in items { maps.keep(item.ordinal, on: item.draft.first, count: item.draft.changes.count, item.mapped, view) }
        }
        let (replaced, othersWait) = publish(items)
        for item in items { keepWays(item) }
        // The lists name versions of the batch by their ordinals.
        if replaced.isEmpty {
            for item in items { maps.keepChanges(item.ordinal, item.draft.changes, item.mapped) }
        } else {
            for item in items where replaced[item.ordinal] != nil { maps.drop(item.ordinal) }
        }
        return othersWait
    }

    /// Makes stored versions live. A scan may have met the same one meanwhile, made by another process: then theirs stands.
    /// - Returns: the ordinals that stand instead of those of the items, and whether other versions wait for their ancestry.
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
                    dag.publish(ordinal, place: item.place, checksum: item.checksum)
                }
            }
            return pending.count > 0
        }
        return (replaced, othersWait)
    }

    // MARK: Appending

    /// Makes the records and appends them as one batch.
    private func append<Items>(_ items: inout Items, keeping: Keeping) throws
    where Items: MutableCollection & RandomAccessCollection, Items.Element == Storing, Items.Index == Int {
        var own: [VersionID: UInt32] = [:]
        if items.count > 1, items.contains(where: { $0.draft.traits.contains(.preserves) }) {
            for item in items { own[item.draft.version.id] = item.ordinal }
        }
        // Of many, small records are gathered; each large one stays with an encoder of its own, which makes it piece by piece.
        var gathered: [UInt8] = [], ends: [Int] = [], large: [Int: RecordEncoder] = [:]
        var blobs: [BlobID] = [], batch = DifferenceBatch(items)
        try commits.encoders.with { encoder in
            do {
                for i in items.indices {
                    try encode(&items[i], by: encoder, keeping: keeping, beside: own, &batch, &blobs)
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
                                try checkOpen(); return try storage.append(records)
                            }
                        }
                    }
                }
                guard places.count == items.count else {
                    throw StoreError(.internal, "A storage told \(places.count) places for \(items.count) records.")
                }
                for i in items.indices { items[i].place = places[i] }
            } catch {
                removeBlobs(blobs, after: error)
                throw error
            }
        }
    }

    /// Prepares the record of a version, stores its large values, and notes what the version does to the map.
    private func encode(
        _ item: inout Storing, by encoder: RecordEncoder, keeping: Keeping, beside own: [VersionID: UInt32],
        _ batch: inout DifferenceBatch, _ blobs: inout [BlobID]
    ) throws {
        let draft = item.draft, isKept = draft.changes.count <= keeping.most
        // What is kept of the changes once they are stored must not fail.
        if isKept, case .maps = keeping { try Memory.expect(draft.changes.count * 256, "Saving \(draft.changes.count) changes") }
        try Memory.check()
        defer { blobs += encoder.blobs }
        // Values that are too small take the shortest way.
        if draft.version.valueDataSize >= UInt64(Differencing.sizes.lowerBound), differencing.isUsed {
            item.ways = try encodeDifferences(draft, by: encoder, keeping: keeping, batch)
            batch.keep(item.ordinal, item.ways)
        } else {
            try encoder.encode(
                draft.version, draft.changes, digests: draft.digests, storedAt: draft.storedAt, blobThreshold: storage.blobThreshold,
                startsStore: draft.first == History.none && differencing.isUsed, storeBlob: storage.storeBlob(_:digest:))
        }
        item.checksum = encoder.checksum
        guard isKept else { return }
        item.mapped = draft.mapChanges(item.ordinal, in: encoder) { id in own[id] ?? lock.withRead { dag.ordinalIncludingStaged(of: id) } }
    }

    /// Prepares the record of a version, in which values are differences where that pays.
    /// - Returns: what is known of the ways of its values.
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
                    // In a batch they are where the batch is.
                    let place = made?.nodes.first?.place ?? 0
                    if isKept, batch.isEmpty, place % 4 == 0 {
                        // What is not kept in memory is read again.
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
                    new[next].nodes[0].stored = body.size
                }
                next += 1
            }
            at += body.sizeInRecord
        }
        return new
    }

    /// Removes the blobs of records that are not there.
    func removeBlobs(_ blobs: [BlobID], after error: any Error) {
        guard !blobs.isEmpty, (error as? StoreError)?.code != .unknownOutcome else { return }
        for blob in blobs { storage.removeBlob(blob) }
    }

    /// Looks at the clock where the version, or an ancestor, says that it was made later than that shows. The caller holds the lock for
    /// writing.
    func appendHidden(_ draft: inout Draft) -> UInt32 {
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

    /// Waits for the disk, when the durability asks for it.
    private func makeDurable(_ items: some BidirectionalCollection<Storing>) throws {
        guard commits.durability == .full else { return }
        let ticket = commits.group.ticket()
        do {
            try Log.holding { try commits.group.wait(for: ticket) { try storage.sync() } }
        } catch var error as StoreError {
            guard let version = items.last?.draft.version else { throw error }
            if error.code != .unknownOutcome { error.message = "\(error.message) Whether version \(version.id) is stored is not known." }
            error.code = .unknownOutcome
            throw unconfirmed(items, error)
        }
    }

    /// Appends; when nobody knows whether the versions are stored now, each can be made again as the same only.
    private func noting<R>(_ items: some BidirectionalCollection<Storing>, _ append: () throws -> R) throws -> R {
        do { return try append() } catch let error as StoreError where error.code == .unknownOutcome { throw unconfirmed(items, error) }
    }

    /// Keeps in mind that the versions may be stored or not, and names the last of them in the error.
    private func unconfirmed(_ items: some BidirectionalCollection<Storing>, _ error: StoreError) -> StoreError {
        let all = items.map {
            ($0.draft.version.id, (time: GivenTime($0.draft.version), digest: identityDigest($0.draft.version, $0.draft.changes)))
        }
        lock.withWrite { for (id, what) in all { commits.unpublished.markUncertain(id, what) } }
        var error = error
        error.versionID = items.last?.draft.version.id.description
        return error
    }

    /// Lets in the versions that were pending for these, and tells observers of all of them.
    func tellOfNew(_ ids: [VersionID]) {
        var all = ids
        let waiting = lock.withWrite { () -> [PendingVersions.Record] in
            guard pending.count > 0 else { return [] }
            for id in ids { pending.forget(id) }
            return ids.flatMap { pending.take(waitingFor: $0) }
        }
        // What is short now is not at the next reload: until then the rest waits.
        all += (try? admit(waiting)) ?? []
        tell(all)
    }

    /// Tells observers of versions that are stored. An observer may make the same again, or wait for somebody who does.
    private func tell(_ ids: @autoclosure () -> [VersionID]) {
        guard !observers.isEmpty else { return }
        let ids = ids()
        for id in ids { commits.inFlight.end(id) }
        observers.tell(ids)
    }
}
