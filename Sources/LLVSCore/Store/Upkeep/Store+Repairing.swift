/// Repairs damaged versions with the same versions from other devices.
///
/// Nothing is overwritten. The record is appended again, and from then on the valid one is read (`prevailingRecord`). Only a large value
/// with its own file gets a new file of the same name.
extension Store {
    /// Returns the live versions in which reading or verifying through this handle found damage.
    /// - Parameter look: called now and then. It may throw to end the work.
    /// - Complexity: O(versions) if there are any.
    package func damagedVersions(_ look: () throws -> Void = {}) throws -> Set<VersionID> {
        guard !records.knownDamage.isEmpty else { return [] }
        try checkOpen()
        var found: Set<VersionID> = []
        try forEachLive(look) { ordinal, dag in
            let id = dag.id(ordinal)
            if records.knownDamage.concerns(id, at: dag.rows[Int(ordinal)].place) { found.insert(id) }
        }
        return found
    }
}

/// Repairs damaged records, and fills in bytes, with received versions.
struct RecordRepair {
    let store: Store

    /// Returns the ordinal of a damaged version; nil if it is absent or valid.
    /// - Parameter isVerifying: whether to read all of it. If not, it is only read if damage in it is known.
    func damagedOrdinal(_ id: VersionID, isVerifying: Bool) throws -> UInt32? {
        guard isVerifying || !store.records.knownDamage.isEmpty,
            let (ordinal, place) = store.lock.withRead({ store.dag.ordinal(of: id).map { ($0, store.dag.rows[Int($0)].place) } }),
            isVerifying || store.records.knownDamage.concerns(id, at: place)
        else { return nil }
        guard try !store.records.knownDamage.isUnsynced(id) && store.records.isWhole(place, withBlobs: true) else { return ordinal }
        store.records.knownDamage.forget(id, at: place)
        return nil
    }

    /// Returns whether a version was present and damaged, and was repaired.
    /// - Parameter sorted: its changes, borrowed from it.
    func repairWhereDamaged(_ received: Store.ReceivedVersion, _ sorted: [RecordChange], isVerifying: Bool) throws -> Bool {
        // What comes without bytes repairs nothing.
        guard !received.written.values.contains(where: \.isHollow),
            let damaged = try ofOne(received.version.id, { try damagedOrdinal(received.version.id, isVerifying: isVerifying) })
        else { return false }
        try repair(damaged, received, sorted)
        return true
    }

    /// Returns whether a version was present without bytes of values, and has bytes now. Values that an order of this device names stay
    /// without.
    /// - Parameter sorted: its changes, borrowed from it.
    func fillWhereHollow(_ received: Store.ReceivedVersion, _ sorted: [RecordChange]) throws -> Bool {
        let id = received.version.id
        guard !received.written.values.contains(where: \.isHollow), try store.lackingBytes().contains(id),
            let ordinal = store.lock.withRead({ store.dag.ordinal(of: id) })
        else { return false }
        let place = store.place(of: ordinal), hollow = try store.records.hollowCount(place)
        guard hollow > sorted.count(where: { $0.hollow != nil }) else { return false }
        try repair(ordinal, received, sorted, isFilling: true)
        store.noteFilled(id)
        return true
    }

    private func repair(_ ordinal: UInt32, _ received: Store.ReceivedVersion, _ sorted: [RecordChange], isFilling: Bool = false) throws {
        guard received.written.values.contains(where: { !$0.isHollow }) else {
            return try withExtendedLifetime(received) { try repairInMemory(ordinal, received, sorted, isFilling: isFilling) }
        }
        // The version is compared value by value.
        let whole = try received.inMemory(from: store.storage)
        try withExtendedLifetime(whole) {
            var changes = try store.sortedChanges(whole)
            for i in changes.indices where i < sorted.count && sorted[i].hollow != nil {
                changes[i].written = sorted[i].written
                changes[i].data = UnsafeRawBufferPointer(start: nil, count: 0)
            }
            try repairInMemory(ordinal, whole, changes, isFilling: isFilling)
        }
    }

    /// An error of one version's repair must not keep other versions out.
    private func ofOne<R>(_ id: VersionID, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as StoreError
            where [.io, .permission, .newerFormat, .notAStore, .notADirectory].contains(error.code)
        {
            throw StoreError(
                .damaged, "Version \(id) is damaged here, and was not repaired: \(error.message)", versionID: id.description,
                path: error.path, systemCode: error.systemCode)
        }
    }

    /// Repairs a present version. Values that an order of this device names are without bytes among the changes.
    /// - Parameter isFilling: whether values without bytes get theirs.
    /// - Throws: `.versionMismatch` if its valid parts, or what is known of its damaged ones, belong to another version; errors of the
    ///   storage.
    private func repairInMemory(_ ordinal: UInt32, _ received: Store.ReceivedVersion, _ sorted: [RecordChange], isFilling: Bool) throws {
        let (place, row) = store.lock.withRead { (store.dag.rows[Int(ordinal)].place, store.dag.rows[Int(ordinal)]) }
        try checkSameHeader(received.version, row, ordinal, place)
        guard sorted.count == Int(row.changeCount), sorted.reduce(UInt64(0), { $0 &+ UInt64($1.size) }) == row.valueDataSize else {
            throw RecordRepair.isAnother(received.version.id)
        }
        let found = try ofOne(received.version.id) {
            let found = try compare(sorted, with: place, of: received.version.id, isFilling: isFilling)
            for (blob, i) in found.damagedBlobs {
                try store.storage.replaceBlob(blob, sorted[i].data, digest: SHA256.digest(sorted[i].data))
            }
            return found
        }
        var moved: (place: RecordPlace, checksum: UInt32)?
        if found.isRecordDamaged {
            var version = received.version
            version.valueDataSize = row.valueDataSize
            var known = found.blobs[...], new: [BlobID] = []
            let encoder = RecordEncoder()
            var recorded = sorted
            for (i, value) in found.hollow {
                recorded[i].data = UnsafeRawBufferPointer(start: nil, count: 0)
                recorded[i].written = Unmanaged.passUnretained(value)
            }
            defer { withExtendedLifetime(found.hollow) {} }
            do {
                try encoder.encode(
                    version, RecordChanges(recorded), storedAt: storedAt(version, ordinal), blobThreshold: store.storage.blobThreshold,
                    startsStore: row.first == History.none && store.differencing.isUsed
                ) { data, digest in
                    // Values with a file keep it. The old record may have files for values that are too small for one in this storage.
                    while let (blob, size) = known.popFirst() { if size == data.count { return blob } }
                    new.append(try store.storage.storeBlob(data, digest: digest))
                    return new[new.count - 1]
                }
                moved = try store.withCommitLock {
                    try store.checkOpen()
                    guard let place = try store.storage.append([encoder.pieces(RecordChanges(recorded))]).first else {
                        throw StoreError(.internal, "A storage appended a record and returned no place.")
                    }
                    return (place, encoder.checksum)
                }
            } catch {
                store.removeBlobs(new, after: error)
                throw error
            }
        }
        do {
            let group = store.commits.group
            if store.commits.durability == .full { try Log.holding { try group.wait(for: group.ticket()) { try store.storage.sync() } } }
        } catch {
            // The new record can be read now, but a power cut may lose it.
            store.records.knownDamage.noteUnsynced(received.version.id)
            throw error
        }
        if let moved {
            // Cached bytes of the old record are not used any more.
            store.lock.withWrite {
                store.dag.move(ordinal, to: moved.place, checksum: moved.checksum)
                store.maps.keyHistory = nil
                store.validSchemas.forget()
                store.caches.areOutdated = true
            }
        }
        store.records.knownDamage.forget(received.version.id, at: place)
        let news = isFilling ? "lacked bytes, and has them now" : "was damaged, and is whole again"
        Log.write(.info, "Version \(received.version.id) in \(store.description) \(news).")
    }

    /// Returns the clock's time from the record of a version, if it bounds when the version was made.
    private func storedAt(_ version: Version, _ ordinal: UInt32) -> Double? {
        store.lock.withRead {
            let row = store.dag.rows[Int(ordinal)]
            let claimed = store.dag.claimed(
                timestamp: row.timestamp, clock: MadeTime.clock(version.metadata), first: row.first, second: row.second)
            return claimed > row.made ? row.made : nil
        }
    }

    /// Checks that the header belongs to the version, as far as it can be read. If it cannot, the history in memory has most of it.
    private func checkSameHeader(_ version: Version, _ row: History.Row, _ ordinal: UInt32, _ place: RecordPlace) throws {
        let header = try? store.records.header(place)
        let (predecessors, branch) = store.lock.withRead { (store.dag.predecessors(ordinal).map(store.dag.id), store.dag.branch(ordinal)) }
        guard version.predecessors == predecessors, version.metadata.branchName == branch,
            version.timestamp.bitPattern == row.timestamp.bitPattern,
            header.map({ $0.metadata == version.metadata }) ?? true
        else { throw RecordRepair.isAnother(version.id) }
    }

    private static func isAnother(_ id: VersionID) -> StoreError {
        StoreError(
            .versionMismatch,
            "Version \(id) is damaged here, and was not repaired: the one that arrived is another version: its contents differ from "
                + "what is undamaged here. Retrieve from the maker of the version.",
            versionID: id.description)
    }

    private struct Comparison {
        /// All blobs of the record in order, with their sizes; none if the record does not show them.
        var blobs: [(id: BlobID, size: Int)] = []
        /// The damaged or missing blobs, and the indexes of the changes with their bytes.
        var damagedBlobs: [(BlobID, Int)] = []
        /// The indexes of hollow changes, with their digests. They stay hollow.
        var hollow: [(index: Int, value: WrittenValue)] = []
        /// Whether the header, the table or a value in the record is damaged.
        var isRecordDamaged = false
    }

    /// Compares changes with what can be read of a record.
    private func compare(_ sorted: [RecordChange], with place: RecordPlace, of id: VersionID, isFilling: Bool) throws -> Comparison {
        var result = Comparison(), i = 0
        do {
            try store.records.forEachChange(place) { entry, header in
                guard i < sorted.count, header.id == id, Bytes.equal(sorted[i].id, entry.id) else { throw RecordRepair.isAnother(id) }
                let change = sorted[i]
                switch entry.kind {
                case .insert, .update:
                    guard change.kind == .insert || change.kind == .update, change.size == entry.size,
                        entry.digest.map({ $0.elementsEqual(change.digest) }) ?? true
                    else { throw RecordRepair.isAnother(id) }
                    if entry.isHollow {
                        guard !isFilling || change.hollow != nil else { result.isRecordDamaged = true; i += 1; return }
                        result.hollow.append((i, WrittenValue(hollow: entry.size, digest: entry.digest.map { Array($0) } ?? [])))
                        i += 1
                        return
                    }
                    if let blob = entry.blob { result.blobs.append((blob, entry.size)) }
                    do {
                        // The order to erase it may not be followed yet.
                        guard change.hollow == nil else { result.isRecordDamaged = true; i += 1; return }
                        try store.records.withValue(entry, in: place, of: id) {
                            if !Bytes.equal($0, change.data) { throw RecordRepair.isAnother(id) }
                        }
                    } catch let error as StoreError where error.code.isDamage {
                        if let blob = entry.blob { result.damagedBlobs.append((blob, i)) } else { result.isRecordDamaged = true }
                    }
                case .remove, .preserveRemoval:
                    guard change.kind == .remove || change.kind == .preserveRemoval else { throw RecordRepair.isAnother(id) }
                case .preserve:
                    guard change.kind == .preserve, change.storedVersion == header.dependencies[entry.dependency] else {
                        throw RecordRepair.isAnother(id)
                    }
                }
                i += 1
            }
            guard i == sorted.count else { throw RecordRepair.isAnother(id) }
        } catch let error as StoreError where error.code.isDamage {
            // The table's content is unknown, so the whole record is rewritten.
            result.isRecordDamaged = true
            result.blobs = []
            result.hollow = []
        }
        return result
    }
}
