/// Makes versions.
extension Store {
    /// Records one version, atomically: all of it or nothing, also across a crash.
    ///
    /// The state at the version is that at `basedOn` (empty if it is nil: the version is a root) with the changes applied. `insert` and
    /// `update` both set the value, and are recorded with the kind that is true there. Removing an absent value records nothing. Without
    /// an `id`, the id is derived from the version's content (docs/format.md). A version with at most one predecessor never records a
    /// `preserve`: its bytes are recorded, since other implementations relay such a version with the bytes as its own. A
    /// `preserveRemoval` becomes a `remove`. With an `id`, making the same version again returns the existing one.
    /// - Throws: `.unknownPredecessor`, `.duplicateID`, `.invalidValueID`, `.invalidUTF8`, `.tooLarge`, `.unportableID` (refused by an
    ///   open exchange: `Exchange.Options.hasNoOtherReaders`), `.invalidVersionID` (also if the id differs from a known one only by case,
    ///   cannot be a file name on all systems, or has the form of a content-derived id without being one), `.versionMismatch` (another
    ///   version has the id), `.invalidReference`, `.readOnly`, `.noSpace`, `.io`, and `.unknownOutcome` if a sync failed after the
    ///   version was written: making it again under its id is safe.
    /// - Complexity: O(changes × (id length + log values)).
    @discardableResult
    public func makeVersion(
        basedOn predecessor: VersionID?, changes: [Value.Change], metadata: Metadata = Metadata(), id: VersionID? = nil,
        timestamp: Double? = nil
    ) throws -> Version {
        try changes.withBorrowed { try makeVersion(basedOn: predecessor, borrowing: $0, metadata: metadata, id: id, timestamp: timestamp) }
    }

    /// Makes a version as the function above, with bytes that the caller owns.
    @discardableResult
    package func makeVersion(
        basedOn predecessor: VersionID?, borrowing changes: BorrowedChanges, metadata: Metadata, id: VersionID?, timestamp: Double? = nil
    ) throws -> Version {
        func make(_ changes: BorrowedChanges) throws -> Version {
            try VersionMaking(store: self).make(basedOn: predecessor, borrowing: changes, metadata: metadata, id: id, timestamp: timestamp)
                .version
        }
        // A version with an id of the caller is the same whenever it is made again.
        guard id == nil, let predecessor, let (changes, orders) = try self.orders.keeping(on: predecessor, changes) else {
            return try make(changes)
        }
        let made = try orders.withBorrowed { try make(orders.isEmpty ? changes : BorrowedChanges(Array(changes) + Array($0))) }
        self.orders.noteComplete(made.id)
        return made
    }

    /// Returns the ordinal of the version that a reference names. It must exist and have stored that id.
    package func checkReference(_ id: UnsafeRawBufferPointer, _ stored: VersionID) throws -> UInt32 {
        guard let ordinal = try findOrdinal(stored), let found = try records.findChange(place(of: ordinal), id),
            found.kind == .insert || found.kind == .update
        else {
            let id = ValueID(unchecked: id)
            throw StoreError(
                .invalidReference,
                "A change names the bytes of \"\(id)\" stored in version \(stored), which stored none. "
                    + "Use a reference from a version or a fork.",
                valueID: id, versionID: stored.description)
        }
        return ordinal
    }

    /// Checks a version whose id was used with an unknown outcome: it may be stored, so only the same version may be made, or there would
    /// be two.
    @_specialize(where Changes == [RecordChange]) // for merges, which are in another module
    package func checkUnconfirmed<Changes: Collection<RecordChange>>(_ version: Version, _ changes: Changes) throws {
        guard let unconfirmed = lock.withRead({ commits.unpublished.unconfirmed(version.id) }),
            unconfirmed.digest != identityDigest(version, changes)
        else { return }
        throw StoreError(
            .versionMismatch,
            "Version \(version.id) was made before with an outcome that is not known, and was a different one. "
                + "Make the same again, or choose another id.",
            versionID: version.id.description)
    }

    /// Returns the version with that id if it exists and has the same content.
    /// - Throws: `.versionMismatch` if its content differs.
    @_specialize(where Changes == [RecordChange]) // for merges, which are in another module
    package func existingVersion<Changes: Collection<RecordChange>>(
        _ wanted: Version, _ changes: Changes, comparingTimestamp: Bool
    ) throws -> Version? {
        if wanted.id == EmptyRoot.id {
            var same = EmptyRoot.version
            if !comparingTimestamp { same.timestamp = wanted.timestamp }
            guard wanted.predecessors.isEmpty, wanted.metadata.isEmpty, changes.isEmpty,
                wanted.timestamp.bitPattern == same.timestamp.bitPattern
            else {
                throw StoreError(
                    .versionMismatch,
                    "Version \(wanted.id) is the empty root, which is the same everywhere: "
                        + "no predecessors, metadata or changes, and timestamp 0. Choose another id.",
                    versionID: wanted.id.description)
            }
        }
        guard let ordinal = lock.withRead({ dag.ordinal(of: wanted.id) }) else {
            // A version that waits for its ancestry counts, too. But an unreadable one must not keep a valid one out.
            var asked = wanted
            if !comparingTimestamp { VersionMaking(store: self).waitingTime(wanted.id)?.give(to: &asked) }
            if let waiting = lock.withRead({ pending.records[wanted.id] }), let digest = try? records.identityDigest(waiting.place),
                digest != identityDigest(asked, changes)
            {
                throw StoreError(
                    .versionMismatch,
                    "Version \(wanted.id) is in the store already, waiting for its ancestry, and is a different one. Choose another id.",
                    versionID: wanted.id.description)
            }
            return nil
        }
        let place = place(of: ordinal)
        let existing = try version(ordinal)
        var asked = wanted
        if !comparingTimestamp { GivenTime(existing).give(to: &asked) }
        let same =
            try asked.predecessors == existing.predecessors && asked.timestamp == existing.timestamp
            && asked.metadata == existing.metadata
            && (identityDigest(asked, changes) == records.identityDigest(place)
                || haveSameOutcome(changes, place, on: lock.withRead { dag.rows[Int(ordinal)].first }))
        guard same else {
            throw StoreError(
                .versionMismatch,
                "Version \(wanted.id) exists already and is a different one: its predecessors, timestamp, metadata or changes differ. "
                    + "The version in the store stays; make the other under an id of its own.",
                versionID: wanted.id.description)
        }
        return existing
    }
}

/// Makes versions from changes: checks them, names the version, and stores it.
struct VersionMaking {
    let store: Store

    /// Makes a version. `isNew` is false if the same version already existed.
    /// - Parameter timestamp: seconds since 2001-01-01 UTC, later than the predecessor's; nil for the current time.
    func make(
        basedOn predecessor: VersionID?, borrowing changes: BorrowedChanges, metadata: Metadata, id: VersionID?, timestamp: Double? = nil
    ) throws -> (version: Version, isNew: Bool) {
        let known = try store.lock.withRead { () -> (ordinal: UInt32, timestamp: Double)? in
            try store.checkOpenLocked()
            return predecessor.flatMap { store.dag.ordinal(of: $0) }.map { ($0, store.dag.rows[Int($0)].timestamp) }
        }
        if store.storage.isReadOnly { try store.checkWritable("Making a version") }
        try metadata.checkMade()
        let sorted = try ChangeOrder(checking: changes)
        try checkAllowed(changes, metadata, on: predecessor)
        var first = known?.ordinal ?? History.none
        var isFirstSave = false
        if let predecessor, known == nil {
            isFirstSave = try predecessor == EmptyRoot.id && store.findOrdinal(predecessor) == nil
            if !isFirstSave { first = try store.requireOrdinal(predecessor, .unknownPredecessor, toBuildOn: true) }
        }
        // For a few changes a map is built only occasionally.
        let view =
            try first != History.none && sorted.count <= MapPolicy.longestDelta ? store.maps.view(toSave: sorted.count, on: first) : nil
        let (recorded, kept) = try effective(sorted, on: first, view)
        return try removingUnused(kept) {
            let size = kept.reduce(sorted.dataSize) { $0 + UInt64($1.size) }
            let behind =
                known?.timestamp
                ?? (isFirstSave
                    ? EmptyRoot.version.timestamp
                    : first == History.none ? nil : store.lock.withRead { store.dag.rows[Int(first)].timestamp })
            let version = Version(
                id: id ?? EmptyRoot.id, predecessors: predecessor.map { [$0] } ?? [], timestamp: timestamp ?? 0, valueDataSize: size,
                metadata: metadata)
            var draft = Draft(version: version, first: first, second: History.none, changes: recorded, traits: .changeKindsVerified)
            draft.isDated = timestamp != nil
            if id != nil || timestamp != nil {
                return try makeOnce(&draft, isNamed: id != nil, timestamp: timestamp, behind: behind) {
                    try isFirstSave ? commitWithEmptyRoot(&$0) : store.commit(&$0, view)
                }
            }
            setTime(&draft, behind: behind)
            draft.version.id = draft.version.contentID(recorded, digests: &draft.digests)
            if isFirstSave { try commitWithEmptyRoot(&draft) } else { try store.commit(&draft, view) }
            return (draft.version, true)
        }
    }

    /// - Throws: the refusal of an exchange: `.unportableID`.
    func checkAllowed(_ changes: BorrowedChanges, _ metadata: Metadata, on predecessor: VersionID?) throws {
        try store.savingGuards.check(metadata)
        try store.savingGuards.check(changes) { id in
            guard let predecessor, predecessor != EmptyRoot.id else { return false }
            return try store.reference(ValueID(unchecked: id), at: predecessor) != nil
        }
    }

    /// Makes a version whose id or timestamp the caller gave, unless the same version exists.
    private func makeOnce(
        _ draft: inout Draft, isNamed: Bool, timestamp: Double?, behind: Double?, _ commit: (inout Draft) throws -> Void
    ) throws -> (version: Version, isNew: Bool) {
        let predecessor = draft.version.predecessors.first
        if !isNamed, let timestamp {
            try checkTimestamp(timestamp, behind: behind, predecessor)
            draft.version.id = draft.version.contentID(draft.changes, digests: &draft.digests)
        }
        let id = draft.version.id
        store.commits.inFlight.begin(id)
        defer { store.commits.inFlight.end(id) }
        // Another handle may have used the id. A content-derived id implies identical content, so only named ids are checked.
        if isNamed { _ = try store.findOrdinal(id) }
        if let existing = try store.existingVersion(draft.version, draft.changes, comparingTimestamp: timestamp != nil) {
            return (existing, false)
        }
        if isNamed { try name(&draft, timestamp: timestamp, behind: behind) }
        try store.checkUnconfirmed(draft.version, draft.changes)
        try commit(&draft)
        return (draft.version, true)
    }

    /// Checks that a new version can have the given id, and sets its timestamp.
    private func name(_ draft: inout Draft, timestamp: Double?, behind: Double?) throws {
        let id = draft.version.id
        if let twin = store.lock.withRead({ store.dag.caseInsensitiveCollision(of: id) }) {
            throw StoreError(
                .invalidVersionID, "The version id \(id) differs from the known \(twin) by case only. Choose another.",
                versionID: id.description)
        }
        try id.checkIsFileName()
        if id == EmptyRoot.id { draft.version.timestamp = EmptyRoot.version.timestamp; return }
        if let timestamp {
            try checkTimestamp(timestamp, behind: behind, draft.version.predecessors.first)
            draft.version.timestamp = timestamp
        } else if let known = store.lock.withRead({ store.commits.unpublished.unconfirmed(id) })?.time ?? waitingTime(id) {
            // The version was made before with an unknown outcome, or is pending. If it is made again, it must be the same version.
            known.give(to: &draft.version)
        } else {
            setTime(&draft, behind: behind)
        }
        guard id.hasContentForm else { return }
        guard id.text == nil, draft.version.contentID(draft.changes, digests: &draft.digests) == id else {
            throw StoreError(
                .invalidVersionID,
                "A version cannot be made under the id \(id): ids of this form (UUIDs of version 8) are computed from what versions hold, "
                    + "and this version holds something else. Give no id, or one of another form. If its outcome was not known: "
                    + "it is not stored; make it without an id.",
                versionID: id.description)
        }
    }

    /// Sets a version's timestamp to the current time. The timestamp must be later than the predecessor's. If it is therefore ahead of
    /// the clock by more than clocks may differ, the metadata records the clock's time.
    private func setTime(_ draft: inout Draft, behind: Double?) {
        let now = store.environment.clock()
        draft.version.timestamp = store.environment.times.next(now, behind: behind)
        guard draft.version.timestamp > now + MadeTime.tolerance, now >= MadeTime.earliest else { return }
        if draft.version.metadata[MadeTime.clockKey] == nil { draft.version.metadata[MadeTime.clockKey] = MadeTime.json(now) }
    }

    /// Checks the caller's timestamp: versions made here are later than their predecessors.
    private func checkTimestamp(_ timestamp: Double, behind: Double?, _ predecessor: VersionID?) throws {
        guard timestamp.isFinite else {
            throw StoreError(
                .invalidArgument,
                "The timestamp of a version cannot be \(timestamp). Give a finite number of seconds, or none for the current time.")
        }
        guard let behind, timestamp <= behind else { return }
        let since1970 = Version.secondsFrom1970To2001
        throw StoreError(
            .invalidArgument,
            "The timestamp \(timestamp + since1970) is not later than \(behind + since1970), which is that of the predecessor. "
                + "Give a later one, or none for the current time.",
            versionID: predecessor?.description)
    }

    /// Returns the changes to record on top of a version: with the true kinds, and without those that change nothing. Also returns bytes
    /// that the record borrows.
    private func effective(_ sorted: ChangeOrder, on first: UInt32, _ view: DeltaChains.View?) throws -> (RecordChanges, [Store.Pulled]) {
        if let view { return try effective(sorted, on: first) { view.lookup($0) } }
        if first != History.none, sorted.count <= MapPolicy.fewLookups {
            return try effective(sorted, on: first) { try store.maps.entry($0, at: first) }
        }
        return try store.maps.withKnownIDs(at: first, toSave: sorted.count) { known in
            if let known { return try effective(sorted, on: first, known) }
            let root = first == History.none ? nil : try store.maps.map(first)
            return try effective(sorted, on: first) { root?.lookup($0) }
        }
    }

    /// - Parameter present: returns what prevails at the version.
    private func effective(_ sorted: ChangeOrder, on first: UInt32, _ present: (UnsafeRawBufferPointer) throws -> MapEntry?) throws -> (
        RecordChanges, [Store.Pulled]
    ) {
        if first == History.none, sorted.areAll(.insert) { return (sorted.sorted, []) }
        if sorted.count == 1 {
            // The most frequent case by far: an update of an existing value.
            let change = sorted.first
            if change.kind == .update, try present(change.id) != nil { return (sorted.sorted, []) }
        }
        try Memory.expect(sorted.count * MemoryLayout<RecordChanges.Item>.stride, "Comparing \(sorted.count) changes with what is there")
        var items: [RecordChanges.Item] = []
        items.reserveCapacity(sorted.count)
        var kept: [(position: Int, value: Store.Pulled)] = []
        let given = sorted.sorted
        do {
            try given.forEachRun(of: RecordTable.changesPerPage, withData: false) { start, run in
                try Memory.check()
                for i in run.indices {
                    let change = run[i], index = sorted.index(at: start + i)
                    let present = try present(change.id)
                    switch change.kind {
                    case .insert, .update:
                        items.append(RecordChanges.Item(index, present == nil ? .insert : .update))
                    case .remove, .preserveRemoval:
                        if present != nil { items.append(RecordChanges.Item(index, .remove)) }
                    case .preserve:
                        guard let stored = given.storedVersion(at: start + i) else {
                            throw StoreError(
                                .invalidReference,
                                "A preserve of \"\(ValueID(unchecked: change.id))\" names no version. "
                                    + "Set the version that stored the bytes.",
                                valueID: ValueID(unchecked: change.id))
                        }
                        let ordinal = try store.checkReference(change.id, stored)
                        if let present, present.version == ordinal { continue }
                        kept.append((items.count, try pull(change.id, stored, ordinal)))
                        items.append(RecordChanges.Item(index, present == nil ? .insert : .update))
                    }
                }
            }
        } catch {
            store.remove(kept.map(\.value))
            throw error
        }
        let changes = sorted.relabelled(items)
        guard !kept.isEmpty else { return (changes, []) }
        try Memory.expect(changes.count * MemoryLayout<RecordChange>.stride, "Preparing \(changes.count) changes")
        var list = Array(changes)
        for (position, value) in kept { value.set(&list[position]) }
        return (RecordChanges(list), kept.map(\.value))
    }

    /// Runs `make`, which makes a version of the values. Removes their files if it fails, or if the version already existed.
    private func removingUnused(_ values: [Store.Pulled], _ make: () throws -> (version: Version, isNew: Bool)) throws -> (
        version: Version, isNew: Bool
    ) {
        do {
            let made = try withExtendedLifetime(values, make)
            // The existing version has blobs of its own.
            if !made.isNew { store.remove(values) }
            return made
        } catch {
            if (error as? StoreError)?.code != .unknownOutcome { store.remove(values) }
            throw error
        }
    }

    /// Reads the bytes that a version stored, to store them again.
    private func pull(_ id: UnsafeRawBufferPointer, _ stored: VersionID, _ ordinal: UInt32) throws -> Store.Pulled {
        let place = store.place(of: ordinal)
        let entry = try store.records.located(
            MapEntry(version: ordinal, size: MapEntry.unknownSize, bodyOffset: 0), place, id: id, stored: stored)
        guard let threshold = store.storage.blobThreshold, Int(entry.size) > threshold else {
            return .bytes(try store.records.withBody(place, entry, id: id, stored: stored) { try Memory.copy($0, "Taking over a value") })
        }
        let reader = try ValueReader(store, Store.Located(entry: entry, stored: stored, place: place), id: id)
        var position = 0
        return try store.pull(
            ValueSource(id: reader.id, size: reader.size) { buffer in
                let got = try reader.read(at: position, into: buffer)
                position += got
                return got
            })
    }

    /// Returns the time of a waiting version: if it is made again, it must be the same version.
    func waitingTime(_ id: VersionID) -> GivenTime? {
        store.lock.withRead { (store.pending.records[id]?.header.version).map(GivenTime.init) }
    }

    /// Records the empty root and the first save on it as one batch. Through the empty root, stores that start apart share an ancestor.
    private func commitWithEmptyRoot(_ draft: inout Draft) throws {
        store.commits.inFlight.begin(EmptyRoot.id)
        defer { store.commits.inFlight.end(EmptyRoot.id) }
        if let root = store.lock.withRead({ store.dag.ordinal(of: EmptyRoot.id) }) {
            draft.first = root
            return try store.commit(&draft)
        }
        var root = Draft(version: EmptyRoot.version, first: History.none, second: History.none, changes: [])
        let (rootOrdinal, ordinal) = store.lock.withWrite { () -> (UInt32, UInt32) in
            let rootOrdinal = store.appendHidden(&root)
            draft.first = rootOrdinal
            return (rootOrdinal, store.appendHidden(&draft))
        }
        do { try store.store([(rootOrdinal, root), (ordinal, draft)]) } catch {
            store.lock.withWrite {
                store.dag.drop(ordinal); store.dag.drop(rootOrdinal)
            }
            throw error
        }
        store.tellOfNew([EmptyRoot.id, draft.version.id])
    }
}
