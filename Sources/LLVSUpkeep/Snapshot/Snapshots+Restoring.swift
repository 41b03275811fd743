/// The result of restoring a snapshot.
public struct RestoredSnapshot: Sendable {
    /// The manifest of the snapshot.
    public let manifest: SnapshotManifest
    /// Versions that do not match their ids (`.contentMismatch`), and versions that build on them. None of these was added.
    public let problems: [ExchangeProblem]
    /// The number of versions that were added, or that the store had already.
    public let addedCount: Int
}

/// Restores snapshots.
extension Snapshots {
    /// Adds all versions of the snapshot to a store that is empty, holds one version, or holds a part of this snapshot from an interrupted
    /// restore.
    ///
    /// The whole snapshot is first read, verified and added to a store in memory (without the bytes of values), so a refused snapshot
    /// leaves the store unchanged. Versions that do not match their ids are left out, with those that build on them. A snapshot of this
    /// implementation is preferred to a foreign one. If adding is cancelled or fails, the versions added so far remain; another restore, or
    /// an exchange, adds the rest.
    /// - Parameter control: called with stages `.verifying` and `.adding`, in versions, and `.reading`, in chunks.
    /// - Throws: `.storeNotEmpty`, `.snapshotMissing`, `.foreignSnapshot`, `.snapshotDamaged`, `.cancelled`; errors of the transport, and
    ///   errors that keep the store from adding.
    public func restore(control: OperationControl = OperationControl()) throws -> RestoredSnapshot {
        _ = try store.reloadHistory(control: control)
        let count = try store.allVersionIDs(control: control).count
        let notEmpty = StoreError(
            .storeNotEmpty,
            "A snapshot can only be restored into a store that is empty, holds one version, or holds a part of the same snapshot; "
                + "this one holds \(count) versions. Use an exchange, or a new store."
        )
        let found =
            try count > 1
            ? { () throws -> Found? in
                // A restore may have been interrupted.
                guard let found = try? find(), found.manifest.isReadable, UInt64(count) < found.manifest.versionCount else {
                    throw notEmpty
                }
                return found
            }() : find()
        guard let found else {
            throw StoreError(
                .snapshotMissing, "There is no snapshot in \(transport.description). Use an exchange, or let another replica write one.")
        }
        guard found.manifest.isReadable else {
            throw StoreError(
                .foreignSnapshot,
                "The snapshot in \(transport.description) has the format \"\(found.manifest.format)\" of another implementation, which "
                    + "cannot be read here. Use an exchange."
            )
        }
        let zip = found.manifest.isForeign ? try self.zip(found.manifest, control) : nil
        let refused = try verify(zip ?? reader(found, isVerified: false, control), found, count > 1 ? notEmpty : nil, control)
        let added = try add(zip ?? reader(found, isVerified: true, control), found, without: refused, control)
        return RestoredSnapshot(manifest: found.manifest, problems: refused.told(transport.description), addedCount: added)
    }

    private func reader(_ found: Found, isVerified: Bool, _ control: OperationControl) -> any SnapshotVersions {
        let transport = self.transport
        return SnapshotReader(found.manifest, from: transport.description, isVerified: isVerified, control) {
            try transport.readSnapshotFile(found.prefix + SnapshotLimits.chunkName($0))
        }
    }

    /// The chunks are beside the manifest, or, in newer versions of that implementation, in a folder named by the snapshot's id.
    private func zip(_ manifest: SnapshotManifest, _ control: OperationControl) throws -> any SnapshotVersions {
        let folder = manifest.snapshotID + "/"
        var prefix = ""
        if SnapshotLimits.isFileName(folder + SnapshotLimits.chunkName(0)),
            try transport.readSnapshotFile(folder + SnapshotLimits.chunkName(0)) != nil
        {
            prefix = folder
        }
        return try ZipSnapshot(manifest, from: transport.description, decode: decode, control) {
            try transport.readSnapshotFile(prefix + SnapshotLimits.chunkName($0))
        }
    }

    // MARK: Verifying

    /// The refused versions of a snapshot: those that do not match their ids, and those that build on them.
    private struct Refused {
        /// The positions of the versions in the snapshot, counted from 1.
        private(set) var positions: Set<UInt64> = []
        private var problems: [ExchangeProblem] = []

        mutating func refuse(_ id: VersionID, at position: UInt64, _ error: StoreError) {
            guard positions.insert(position).inserted, problems.count < ExchangeLimits.problemCount else { return }
            problems.append(ExchangeProblem(name: id.description, error: error))
        }
        func told(_ source: String) -> [ExchangeProblem] {
            let further = positions.count - problems.count
            guard further > 0 else { return ExchangeProblem.inOrder(problems) }
            return ExchangeProblem.inOrder(
                problems + [
                    ExchangeProblem(
                        name: "",
                        error: StoreError(
                            .contentMismatch,
                            "\(further) further versions of the snapshot in \(source) were not restored either. "
                                + "Use an exchange for the genuine ones."
                        ))
                ])
        }
    }

    /// - Parameter notEmpty: thrown if the store has a version that the snapshot lacks.
    private func verify(_ versions: any SnapshotVersions, _ found: Found, _ notEmpty: StoreError?, _ control: OperationControl) throws
        -> Refused
    {
        var present: Set<VersionID> = []
        let paced = control.paced(.verifying, doing: "Restoring the snapshot in \(transport.description)")
        for id in try store.allVersionIDs(control: control) { try paced.step(0); present.insert(id) }
        var rehearsal = try Rehearsal(), reader = versions, seen: Set<VersionID> = [], refused = Refused()
        // For content ids the bytes of the values are needed, to check the id.
        while var received = try reader.next(keepingData: { present.contains($0) || $0.hasContentForm }) {
            let id = received.version.id, position = reader.versionsRead
            let here = control.within(.verifying, Int(clamping: position), of: Int(clamping: found.manifest.versionCount))
            try here.check(.verifying, 0, of: 0, doing: "Restoring the snapshot in \(transport.description)")
            for predecessor in received.version.predecessors where predecessor != EmptyRoot.id && !seen.contains(predecessor) {
                throw reader.damaged("the version \(id) comes before its predecessor \(predecessor)")
            }
            for case .preserve(let reference) in received.changes where !seen.contains(reference.version) {
                throw reader.damaged("the version \(id) preserves bytes of \(reference.version), which is not before it")
            }
            // A forged version may occur under a content id in addition to the genuine one, before or after it.
            guard seen.insert(id).inserted || id.hasContentForm else { throw reader.damaged("the version \(id) occurs twice") }
            do {
                try store.look(at: &received)
                // A version that the store has is only compared, never added.
                if present.contains(id), case .problem(let error)? = try store.add([received], control: here).first {
                    if error.code == .contentMismatch { throw error }
                    throw StoreError(
                        .storeNotEmpty,
                        "The store's version \(id) and the one of the snapshot in \(transport.description) differ. Use a new store.",
                        versionID: id.description)
                }
                try rehearsal.add(received, at: position)
            } catch let error as StoreError where error.code == .contentMismatch {
                refused.refuse(id, at: position, error)
                // The genuine version of the store is used instead.
                if present.contains(id), let own = try store.received(id) { try rehearsal.add(own, at: position) }
            }
            if rehearsal.isFull { try finish(&rehearsal, reader, &refused, present, here) }
        }
        try finish(&rehearsal, reader, &refused, present, control)
        if let notEmpty, !present.isSubset(of: seen) { throw notEmpty }
        return refused
    }

    /// - Parameter present: the versions of the store.
    private func finish(
        _ rehearsal: inout Rehearsal, _ reader: any SnapshotVersions, _ refused: inout Refused, _ present: Set<VersionID>,
        _ control: OperationControl
    ) throws {
        for (id, position, addition) in try rehearsal.finish(control) {
            switch addition {
            case .added, .repaired: break
            // The empty root is added with the first version built on it, and a version of the store replaces a forged one.
            case .alreadyPresent: if id != EmptyRoot.id, !present.contains(id) { throw reader.damaged("the version \(id) occurs twice") }
            case .problem(let error) where error.code == .contentMismatch: refused.refuse(id, at: position, error)
            // The predecessors of a version precede it in the snapshot, so one of them was refused.
            case .problem(let error) where error.code == .missingPredecessor:
                refused.refuse(
                    id, at: position,
                    StoreError(
                        .missingPredecessor,
                        "The version \(id) of the snapshot in \(transport.description) builds on the version \(error.versionID ?? ""), "
                            + "which was not added. An exchange brings both once the genuine one is there.",
                        versionID: error.versionID))
            case .problem(let error): throw reader.damaged("it holds a version that cannot be added. \(error.message)")
            }
        }
    }

    /// A store in memory that receives the versions without their bytes and metadata. A version that it refuses would be refused by any
    /// store.
    private struct Rehearsal {
        private let store: Store
        private var batch: [Store.ReceivedVersion] = [], positions: [UInt64] = [], size = 0
        init() throws { store = try Store(storage: MemoryStorage(), options: Store.Options()) }

        mutating func add(_ received: Store.ReceivedVersion, at position: UInt64) throws {
            let received = received.forRehearsal
            batch.append(received)
            positions.append(position)
            size += received.sizeHint
        }
        var isFull: Bool { batch.count >= ExchangeLimits.batchCount || size >= ExchangeLimits.batchSize }
        /// Adds the batch, and returns the result for each version.
        mutating func finish(_ control: OperationControl) throws -> [(id: VersionID, position: UInt64, addition: Store.Addition)] {
            defer { (batch, positions, size) = ([], [], 0) }
            let additions = try store.add(batch, control: control)
            return additions.indices.map { (batch[$0].version.id, positions[$0], additions[$0]) }
        }
    }

    // MARK: Adding

    /// - Returns: how many versions of the snapshot the store then has.
    private func add(_ versions: any SnapshotVersions, _ found: Found, without refused: Refused, _ control: OperationControl) throws -> Int
    {
        var reader = versions, batch: [Store.ReceivedVersion] = [], size = 0
        var added = 0
        /// Returns the next version. All versions were verified against digests, so any mismatch now means that the snapshot was changed
        /// since. Versions added before remain.
        func next() throws -> Store.ReceivedVersion? {
            do { return try reader.next(keepingData: { _ in true }) } catch let error as StoreError where error.code == .snapshotDamaged {
                throw StoreError(
                    .snapshotDamaged,
                    "The snapshot in \(transport.description) was changed while it was being restored: "
                        + "it was complete when it was checked, and no longer is. \(added) of its \(found.manifest.versionCount) versions "
                        + "were added before, and remain. Restore it again when no store writes to it, or use an exchange for the rest.",
                    path: error.path)
            }
        }
        func addBatch() throws {
            let here = control.within(.adding, Int(clamping: reader.versionsRead), of: Int(clamping: found.manifest.versionCount))
            for case .problem(let error) in try store.add(batch, control: here) {
                throw StoreError(
                    .snapshotDamaged,
                    "The snapshot in \(transport.description) holds a version that cannot be added. "
                        + "\(error.message) The versions before it were added; use an exchange for the rest.",
                    versionID: error.versionID)
            }
            added += batch.count
            batch = []
            size = 0
        }
        while let received = try next() {
            if refused.positions.contains(reader.versionsRead) { continue }
            batch.append(received)
            size += received.sizeHint
            if size >= ExchangeLimits.batchSize || batch.count >= ExchangeLimits.batchCount {
                try addBatch()
                // Do not poll after the last batch, when the restore is complete.
                try control.check(
                    .adding, Int(clamping: reader.versionsRead), of: Int(clamping: found.manifest.versionCount),
                    doing: "Restoring the snapshot in \(transport.description)")
            }
        }
        if !batch.isEmpty { try addBatch() }
        return added
    }
}

extension Store.ReceivedVersion {
    /// The approximate bytes that it adds to a batch.
    fileprivate var sizeHint: Int { changes.reduce(200 + version.metadata.memorySize) { $0 + InterchangeEncoder.sizeHint($1) } }

    /// The parts that decide whether it can be added, once its id was checked. The rest is dropped, so that a small snapshot of large
    /// contents cannot exhaust the memory.
    fileprivate var forRehearsal: Store.ReceivedVersion {
        var copy = self
        if version.id != EmptyRoot.id { copy.version.metadata = Metadata() }
        copy.changes = changes.map { change in
            let id = change.id.shortened
            return switch change {
            case .insert: .insert(id, data: [])
            case .update: .update(id, data: [])
            case .remove: .remove(id)
            case .preserve(let reference): .preserve(Value.Reference(id: id, version: reference.version))
            case .preserveRemoval: .preserveRemoval(id)
            }
        }
        return copy
    }
}

extension ValueID {
    /// A short replacement for a long id, the same each time.
    fileprivate var shortened: ValueID {
        let bytes = self.bytes
        guard bytes.count > 80 else { return self }
        return ValueID(unchecked: Array("(of \(bytes.count) bytes) ".utf8) + Hex.utf8(of: bytes.withUnsafeBytes(SHA256.digest)))
    }
}

extension Store {
    /// Returns a version of the store, in the form in which an exchange receives it.
    fileprivate func received(_ id: VersionID) throws -> ReceivedVersion? {
        guard let version = try version(id) else { return nil }
        var changes: [Value.Change] = [], hollow: [Int: WrittenValue] = [:]
        try forEachChange(madeIn: id, withHollow: true) { change in
            if let (size, digest) = change.hollow { hollow[changes.count] = WrittenValue(hollow: size, digest: digest) }
            if let change = Value.Change(copying: change) { changes.append(change) }
        }
        var received = ReceivedVersion(version: version, changes: changes)
        received.written = hollow
        received.vouching = .content
        return received
    }
}
