/// Making versions.
extension Store {
    /// Records one version, atomically: all of it or nothing, also across a crash.
    ///
    /// The state at the version is that at `basedOn` (empty when nil: the version is a root) with the changes
    /// applied. `insert` and `update` both set the value and are recorded with the label that is true there;
    /// removing what is not there records nothing; `preserve` of something that is not in the ancestry is
    /// recorded as its bytes. With an `id`, making the same version again returns the one that is there.
    /// - Throws: `.unknownPredecessor`, `.duplicateID`, `.invalidValueID`, `.invalidUTF8`, `.tooLarge`,
    ///   `.invalidVersionID` (also for one that differs from a known one by case), `.versionMismatch` (the id is
    ///   taken by another version), `.invalidReference`, `.readOnly`, `.noSpace`, `.io`, and `.unknownOutcome` when
    ///   a sync failed after the version was written: making it again under its id is safe.
    /// - Complexity: O(changes × (id length + log values)).
    @discardableResult
    public func makeVersion(basedOn predecessor: VersionID?, changes: [Value.Change], metadata: Metadata = Metadata(), id: VersionID? = nil) throws -> Version {
        try changes.withBorrowed { try makeVersion(basedOn: predecessor, borrowing: $0, metadata: metadata, id: id) }
    }

    /// As above, with bytes that stay the caller's.
    @discardableResult
    public func makeVersion(basedOn predecessor: VersionID?, borrowing changes: UnsafeBufferPointer<BorrowedChange>, metadata: Metadata, id: VersionID?) throws -> Version {
        try checkWritable("Making a version")
        let sorted = try sortedAndChecked(changes)
        var first = History.none
        var isFirstSave = false
        if let predecessor {
            isFirstSave = try predecessor == EmptyRoot.id && findOrdinal(predecessor) == nil
            if !isFirstSave { first = try requireOrdinal(predecessor, .unknownPredecessor, toBuildOn: true) }
        }
        let (recorded, kept) = try effective(sorted, on: first)
        return try withExtendedLifetime(kept) {
            let versionID = id ?? VersionID.random()
            if id != nil { inFlight.begin(versionID) }
            defer { if id != nil { inFlight.end(versionID) } }
            let size = recorded.reduce(UInt64(0)) { $0 + UInt64($1.data.count) }
            var version = Version(
                id: versionID, predecessors: predecessor.map { [$0] } ?? [], timestamp: 0, valueDataSize: size, metadata: metadata)
            if id != nil {
                // Another handle may have taken the id.
                _ = try findOrdinal(versionID)
                if let existing = try existingVersion(version, recorded, comparingTimestamp: false) { return existing }
            }
            version.timestamp = versionID == EmptyRoot.id ? EmptyRoot.version.timestamp : inFlight.unconfirmed(versionID)?.timestamp ?? waitingTimestamp(versionID) ?? newTimestamp(after: first)
            try checkUnconfirmed(version, recorded)
            let draft = Draft(version: version, first: first, second: History.none, changes: recorded)
            if isFirstSave { try commitWithEmptyRoot(draft) } else { try commit(draft) }
            return version
        }
    }

    /// The later of the clock and just behind the newest predecessor.
    func newTimestamp(after ordinals: UInt32...) -> Double {
        var time = Clock.now()
        lock.withRead {
            for ordinal in ordinals where ordinal != History.none {
                time = max(time, Clock.after(dag.rows[Int(ordinal)].timestamp))
            }
        }
        return time
    }

    /// Checks what a caller handed in, and sorts it by id bytes.
    private func sortedAndChecked(_ changes: UnsafeBufferPointer<BorrowedChange>) throws -> [BorrowedChange] {
        guard changes.count <= Limits.changesPerVersion else {
            throw StoreError(.tooLarge, "A version of \(changes.count) changes was asked for; at most \(Limits.changesPerVersion) go into one. Split it.")
        }
        var isSorted = true
        for i in changes.indices {
            let change = changes[i]
            try ValueID.check(change.id)
            if change.data.count > Limits.valueSize {
                throw StoreError(.tooLarge, "The value of \"\(ValueID(unchecked: change.id))\" has \(change.data.count) bytes; at most \(Limits.valueSize) (1 GiB) are allowed.", valueID: ValueID(unchecked: change.id))
            }
            if i > 0, isSorted, Bytes.compare(changes[i - 1].id, change.id) >= 0 { isSorted = false }
        }
        if isSorted { return Array(changes) }
        let sorted = changes.sorted { Bytes.compare($0.id, $1.id) < 0 }
        for i in 1..<sorted.count where Bytes.equal(sorted[i - 1].id, sorted[i].id) {
            let id = ValueID(unchecked: sorted[i].id)
            throw StoreError(.duplicateID, "The value id \"\(id)\" is named twice in one version. Name each id once.", valueID: id)
        }
        return sorted
    }

    /// The changes as they will be recorded on top of a version: labels true, what changes nothing dropped.
    /// Also returns bytes that the record borrows.
    private func effective(_ changes: [BorrowedChange], on first: UInt32) throws -> ([RecordChange], [[UInt8]]) {
        guard !changes.isEmpty else { return ([], []) }
        let root = first == History.none ? nil : try map(first)
        var out: [RecordChange] = []
        out.reserveCapacity(changes.count)
        var kept: [[UInt8]] = []
        for change in changes {
            let present = root?.lookup(change.id)
            switch change.kind {
            case .insert, .update:
                out.append(RecordChange(kind: present == nil ? .insert : .update, id: change.id, data: change.data))
            case .remove, .preserveRemoval:
                if present != nil { out.append(RecordChange(kind: change.kind, id: change.id)) }
            case .preserve:
                guard let stored = change.storedVersion else {
                    throw StoreError(.invalidReference, "A preserve of \"\(ValueID(unchecked: change.id))\" names no version.", valueID: ValueID(unchecked: change.id))
                }
                let ordinal = try checkReference(change.id, stored)
                if let present, present.version == ordinal { continue }
                if first != History.none, lock.withRead({ ordinal == first || dag.isAncestor(ordinal, of: first) }) {
                    out.append(RecordChange(kind: .preserve, id: change.id, storedVersion: stored))
                } else {
                    let id = ValueID(unchecked: change.id)
                    let bytes = try withValue(Value.Reference(id: id, version: stored)) { Array($0) } ?? []
                    kept.append(bytes)
                    let data = bytes.withUnsafeBytes { $0 }
                    out.append(RecordChange(kind: present == nil ? .insert : .update, id: change.id, data: data))
                }
            }
        }
        return (out, kept)
    }

    /// The ordinal of the version that a reference names, which must be here and have stored that id.
    func checkReference(_ id: UnsafeRawBufferPointer, _ stored: VersionID) throws -> UInt32 {
        guard let ordinal = try findOrdinal(stored), let found = try findChange(place(of: ordinal), id), found.kind == .insert || found.kind == .update else {
            let id = ValueID(unchecked: id)
            throw StoreError(
                .invalidReference, "A change names the bytes of \"\(id)\" stored in version \(stored), which stored none. Use a reference that a version or a fork gave.",
                valueID: id, versionID: stored.description)
        }
        return ordinal
    }

    /// When the outcome of making a version of that id was not known, it may be stored all the same: then only
    /// the very same may be made, or there would be two.
    func checkUnconfirmed(_ version: Version, _ changes: [RecordChange]) throws {
        guard let unconfirmed = inFlight.unconfirmed(version.id), unconfirmed.digest != identityDigest(version, changes) else { return }
        throw StoreError(
            .versionMismatch, "Version \(version.id) was made before with an outcome that is not known, and was a different one. Make the same again, or choose another id.",
            versionID: version.id.description)
    }

    /// That of a version which waits for its ancestry or for its large values: made again, it must be the same version.
    private func waitingTimestamp(_ id: VersionID) -> Double? { lock.withRead { pending.records[id]?.header.timestamp } }

    /// The version of that id, when it is here and the same by meaning.
    /// - Throws: `.versionMismatch` when it is another, `.invalidVersionID` when one differs by case only.
    func existingVersion(_ wanted: Version, _ changes: [RecordChange], comparingTimestamp: Bool) throws -> Version? {
        if wanted.id == EmptyRoot.id {
            var same = EmptyRoot.version
            if !comparingTimestamp { same.timestamp = wanted.timestamp }
            guard wanted.predecessors.isEmpty, wanted.metadata.isEmpty, changes.isEmpty, wanted.timestamp.bitPattern == same.timestamp.bitPattern else {
                throw StoreError(.versionMismatch, "Version \(wanted.id) is the empty root, which is the same everywhere: no predecessors, metadata or changes, and timestamp 0. Choose another id.", versionID: wanted.id.description)
            }
        }
        guard let ordinal = lock.withRead({ dag.ordinal(of: wanted.id) }) else {
            if let twin = lock.withRead({ dag.caseTwin(of: wanted.id, includingUnpublished: true) }) {
                throw StoreError(.invalidVersionID, "The version id \(wanted.id) differs from the known \(twin) by case only. Choose another.", versionID: wanted.id.description)
            }
            // One that waits for its ancestry counts, too; but one that cannot be read must not keep a whole one out.
            var asked = wanted
            if !comparingTimestamp, let timestamp = waitingTimestamp(wanted.id) { asked.timestamp = timestamp }
            if let waiting = lock.withRead({ pending.records[wanted.id] }), let digest = try? identityDigest(ofRecordAt: waiting.place),
               digest != identityDigest(asked, changes) {
                throw StoreError(.versionMismatch, "Version \(wanted.id) is in the store already, waiting for its ancestry, and is a different one.", versionID: wanted.id.description)
            }
            return nil
        }
        let place = place(of: ordinal)
        let existing = try readHeader(place).version
        var asked = wanted
        if !comparingTimestamp { asked.timestamp = existing.timestamp }
        let same = try asked.predecessors == existing.predecessors && asked.timestamp == existing.timestamp
            && asked.metadata == existing.metadata
            && (identityDigest(asked, changes) == identityDigest(ofRecordAt: place) || haveSameOutcome(changes, place, on: lock.withRead { dag.rows[Int(ordinal)].first }))
        guard same else {
            throw StoreError(.versionMismatch, "Version \(wanted.id) exists already and is a different one: its predecessors, timestamp, metadata or changes differ. The one that is here stays; make the other under an id of its own.", versionID: wanted.id.description)
        }
        return existing
    }

    // MARK: Storing

    /// Stores one draft and makes it live. On any error nothing is there, except with `.unknownOutcome`.
    func commit(_ draft: Draft) throws {
        let ordinal = lock.withWrite { appendHidden(draft) }
        unpublished.begin()
        defer { unpublished.end() }
        do {
            let replay = draft.first == History.none ? nil : try mapSlot(draft.first)
            let (place, checksum, root) = try encoders.with { encoder -> (RecordPlace, UInt32, MapNode?) in
                try encoder.encode(draft.version, draft.changes, blobThreshold: storage.blobThreshold, storeBlob: storage.storeBlob)
                let place = try encoder.withPieces(draft.changes) { record in
                    try commitLock.withLock { () -> RecordPlace in
                        try checkOpen()
                        guard let place = try storage.append([record]).first else { throw StoreError(.internal, "A storage appended a record and told no place.") }
                        return place
                    }
                }
                let changes = draft.mapChanges(ordinal, bodies: encoder.bodies) { id in lock.withRead { dag.ordinalIncludingStaged(of: id) } }
                return (place, encoder.checksum, MapNode.applying(changes[...], to: replay?.root))
            }
            try makeDurable([draft])
            maps.store(ordinal, root, changes: draft.changes.count, replayBehind: replay?.replay ?? 0)
            lock.withWrite { publish(ordinal, draft.version.id, place, checksum) }
        } catch {
            lock.withWrite { dag.drop(ordinal) }
            maps.drop(ordinal)
            throw error
        }
        inFlight.confirm(draft.version.id)
        tellOfNew([draft.version.id])
    }

    /// The caller holds the lock for writing.
    func appendHidden(_ draft: Draft) -> UInt32 {
        dag.append(
            id: draft.version.id, timestamp: draft.version.timestamp, valueDataSize: draft.version.valueDataSize,
            first: draft.first, second: draft.second, branch: draft.version.branch,
            place: RecordPlace(segment: ProvisionalRecords.segment, offset: 0, length: 0), checksum: 0, changeCount: draft.changes.count)
    }

    /// Makes a stored version live, unless a scan met the same one meanwhile. The caller holds the lock for writing.
    func publish(_ ordinal: UInt32, _ id: VersionID, _ place: RecordPlace, _ checksum: UInt32) {
        if dag.ordinal(of: id) != nil { dag.drop(ordinal); maps.drop(ordinal) } else { dag.publish(ordinal, place: place, checksum: checksum) }
    }

    /// Waits for the disk, when the durability asks for it.
    func makeDurable(_ drafts: [Draft]) throws {
        guard durability == .full else { return }
        let ticket = gate.ticket()
        do {
            try gate.wait(for: ticket) { try storage.sync() }
        } catch var error as StoreError {
            guard let version = drafts.last?.version else { throw error }
            unpublished.noteLost()
            for draft in drafts { inFlight.setUnconfirmed(draft.version.id, draft.version.timestamp, identityDigest(draft.version, draft.changes)) }
            if error.code != .unknownOutcome { error.message = "\(error.message) Whether version \(version.id) is stored is not known." }
            error.code = .unknownOutcome
            error.versionID = version.id.description
            throw error
        }
    }

    /// Records the empty root, from which stores that start apart share an ancestor, and the first save on it, as one batch.
    private func commitWithEmptyRoot(_ draft: Draft) throws {
        inFlight.begin(EmptyRoot.id)
        defer { inFlight.end(EmptyRoot.id) }
        var draft = draft
        if let root = lock.withRead({ dag.ordinal(of: EmptyRoot.id) }) {
            draft.first = root
            return try commit(draft)
        }
        let root = Draft(version: EmptyRoot.version, first: History.none, second: History.none, changes: [])
        let (rootOrdinal, ordinal) = lock.withWrite { () -> (UInt32, UInt32) in
            let rootOrdinal = appendHidden(root)
            draft.first = rootOrdinal
            return (rootOrdinal, appendHidden(draft))
        }
        do { try store([(rootOrdinal, root), (ordinal, draft)]) } catch {
            lock.withWrite { dag.drop(ordinal); dag.drop(rootOrdinal) }
            throw error
        }
        tellOfNew([EmptyRoot.id, draft.version.id])
    }
}
