/// Adds versions of packs to a store, pack by pack: the versions that are missing or damaged in the store.
struct PackTaking {
    private let store: Store
    private let control: OperationControl
    private let what: String
    /// The pack in messages: "the pack".
    private let pack: String
    let blobs: SpooledBlobs
    /// Limits how many bytes the values from the source may take.
    let account = SourceAccount()
    /// Fetches a large value into `blobs`. Nil if all available values are in `blobs` already.
    private let fetch: ((BlobReference, SpooledBlobs) throws -> BlobSource)?
    enum BlobSource {
        /// The blob is missing, or does not match its reference.
        case none
        /// The blob was read from the parts in its reference.
        case found
        /// The blob was copied from a present version.
        case copied
    }
    /// Returns the first missing large value of a version, before any is fetched; nil if none is known to be missing. The closure is nil
    /// if that cannot be known.
    private let look: (([BlobReference], SpooledBlobs) throws -> BlobReference?)?
    /// Returns the missing file of a large value, if it is known.
    private let missed: (BlobReference) -> MissedPart?
    private(set) var result = ExchangeResult()
    private(set) var furtherProblems = 0
    /// How many versions have been added.
    private(set) var progress = 0

    /// The result for one pack.
    struct Outcome {
        /// Versions that are not present and could not be added, but for which versions of the pack wait.
        var waitingFor: Set<VersionID> = []
        /// Whether a large value was missing, or a base could not be read.
        var lacksBlobs = false
        /// Versions that were not added, because a large value was missing or a base could not be read.
        var incomplete: [VersionID] = []
        /// Whether versions were skipped because the budget of the source is used up.
        var isOverBudget = false
        /// The bytes that the differences of the pack make.
        fileprivate var differenceBytes: UInt64 = 0
        /// Versions of the pack that are present and equal.
        var held: [VersionID] = []
        /// Large values that versions of the pack refer to, and that were read from the parts in the reference.
        var references: [(version: VersionID, blob: BlobReference)] = []
        /// All large values that were fetched.
        var fetched: [BlobReference] = []
        /// Present versions with a large value that is missing at the pack's place, or damaged there.
        var lost: [(version: VersionID, blob: BlobReference)] = []
    }
    /// A part of a large value that is missing, or does not match its name.
    struct MissedPart { var name: PackName, fault: PackFault }

    /// - Parameters:
    ///   - what: the action, for the control.
    ///   - pack: the pack in messages: "the pack".
    init(
        _ store: Store, _ control: OperationControl, doing what: String, from pack: String,
        fetch: ((BlobReference, SpooledBlobs) throws -> BlobSource)? = nil,
        look: (([BlobReference], SpooledBlobs) throws -> BlobReference?)? = nil,
        missed: @escaping (BlobReference) -> MissedPart? = { _ in nil }
    ) {
        self.store = store; self.control = control; self.what = what; self.pack = pack; self.fetch = fetch; self.look = look
        self.missed = missed
        blobs = SpooledBlobs(store.storage)
    }

    /// Returns the versions to add, in the order of their places.
    func wanted(of versions: [PackIndex.VersionEntry]) throws -> [PackIndex.VersionEntry] {
        let ids = versions.map(\.id)
        let wanted = Set(try store.unknown(among: ids))
            .union(try store.damagedVersions().intersection(ids)).union(try store.lackingBytes().intersection(ids))
        return versions.filter { wanted.contains($0.id) }.sorted { ($0.place.block, $0.place.offset) < ($1.place.block, $1.place.offset) }
    }

    private struct Batch {
        var received: [Store.ReceivedVersion] = []
        var size = 0
        private var index: [VersionID: Int] = [:]

        mutating func append(_ version: Store.ReceivedVersion) {
            index[version.version.id] = received.count
            received.append(version)
        }
        /// Returns the value that a version of the batch stores under an id; nil if there is none in memory.
        func value(_ version: VersionID, _ id: UnsafeRawBufferPointer) -> [UInt8]? {
            index[version].flatMap { received[$0].value(id) }
        }
    }

    /// Adds versions of one pack, in the given order.
    /// - Parameters:
    ///   - isVerifying: whether to check present versions, too.
    ///   - pack: all versions of the pack.
    ///   - tellsMissing: whether a version that waits for another is reported as a problem.
    ///   - block: returns the uncompressed bytes of a block.
    mutating func take(
        _ entries: [PackIndex.VersionEntry], of pack: [PackIndex.VersionEntry], isVerifying: Bool = false, tellsMissing: Bool = true,
        _ block: (Int) throws -> [UInt8]
    ) throws -> Outcome {
        var outcome = Outcome(), batch = Batch(), number: UInt32?, raw: [UInt8] = [], order: [VersionID: PackIndex.Place]?
        defer { blobs.endPack(retaining: outcome.fetched) }
        for entry in entries {
            try control.check(.receiving, progress, of: 0, doing: what)
            if number != entry.place.block { (number, raw) = (entry.place.block, try block(Int(entry.place.block))) }
            do {
                let received = try raw.withUnsafeBytes { raw in
                    try self.received(entry, raw, &outcome) { version, id in
                        if order == nil { order = Dictionary(pack.map { ($0.id, $0.place) }) { first, _ in first } }
                        guard let place = order?[version],
                            (place.block, place.offset) < (entry.place.block, entry.place.offset)
                        else {
                            throw PackFault.damaged(
                                "a value of it is a difference from that of version \(version), which is not before it in the pack")
                        }
                        return batch.value(version, id)
                    } packed: { version, id in
                        try PackTaking.value(id, of: version, pack, block)
                    } unknown: { taking, predecessors, outcome in
                        guard try !taking.store.unknown(among: predecessors).isEmpty else { return [] }
                        // The predecessors may be in the batch, so add it first.
                        try taking.add(&batch, &outcome, isVerifying, tellsMissing)
                        return try taking.store.unknown(among: predecessors)
                    }
                }
                guard let received else { continue }
                batch.size += received.size
                batch.append(received.version)
            } catch is OverBudget {
                outcome.isOverBudget = true
            } catch let missing as MissingBlob {
                try lacks(missing.blob, entry.id, &outcome)
            } catch let waiting as Waiting {
                outcome.waitingFor.formUnion(waiting.missing)
                if tellsMissing, let missing = waiting.missing.first { lacks(missing, entry.id) }
            } catch let unreadable as UnreadableBase {
                // The version is read again after the base was repaired.
                outcome.lacksBlobs = true
                outcome.incomplete.append(entry.id)
                problem(entry.id, unreadable.error)
            } catch let fault as PackFault {
                problem(entry.id, fault.error("The version \(entry.id) of \(self.pack)", version: entry.id))
            }
            if batch.size >= ExchangeLimits.batchSize || batch.received.count >= ExchangeLimits.batchCount {
                try add(&batch, &outcome, isVerifying, tellsMissing)
            }
        }
        try add(&batch, &outcome, isVerifying, tellsMissing)
        return outcome
    }

    mutating func problem(_ id: VersionID, _ error: StoreError) { problem(ExchangeProblem(name: id.description, error: error)) }
    mutating func problem(_ problem: ExchangeProblem) {
        if result.problems.count < ExchangeLimits.problemCount { result.problems.append(problem) } else { furtherProblems += 1 }
    }

    /// Reads one version from its block or from a blob. Returns nil if it waits for another version; its large values are then not needed
    /// yet.
    /// - Parameters:
    ///   - base: returns a value of a version before this one in the pack, if the batch has it in memory. Throws if the version is not
    ///     before this one.
    ///   - packed: returns the same value, read from the pack; nil if the pack has none.
    ///   - unknown: returns the missing versions among the given versions.
    private mutating func received(
        _ entry: PackIndex.VersionEntry, _ raw: UnsafeRawBufferPointer, _ outcome: inout Outcome,
        base: (VersionID, UnsafeRawBufferPointer) throws -> [UInt8]?,
        packed: (VersionID, UnsafeRawBufferPointer) throws -> [UInt8]?,
        unknown: (inout Self, [VersionID], inout Outcome) throws -> [VersionID]
    ) throws -> (version: Store.ReceivedVersion, size: Int)? {
        let payload = try PackFile.payload(entry.place, PackRecordType.version, in: raw)
        let size: Int, read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Void
        switch try PackedVersion.form(payload) {
        case .inside:
            size = payload.count
            // Valid as long as the block is.
            read = { offset, buffer in
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[Int(offset)..<Int(offset) + buffer.count]))
            }
        case .outside(let blob):
            if let missing = try look?([blob], blobs) { throw MissingBlob(blob: missing) }
            guard try isFetched(blob, entry.id, &outcome), let found = try blobs.read(blob) else {
                throw MissingBlob(blob: blob)
            }
            (size, read) = (Int(blob.size), found)
        }
        let contents = try PackedVersion.contents(entry.id, size: size, read)
        if fetch != nil, !contents.blobs.isEmpty,
            case let missing = try unknown(&self, contents.header.version.predecessors, &outcome), !missing.isEmpty
        {
            outcome.waitingFor.formUnion(missing)
            return nil
        }
        let named = contents.blobs.values.sorted { $0.digest < $1.digest }, large = try PackedVersion.largeBytes(contents, read)
        guard SourceAccount.isInProportion(large, to: named.reduce(UInt64(size)) { SourceAccount.sum($0, $1.size) }) else {
            throw PackFault.tooLarge("it names \(named.count) large values so often that they take \(large) bytes")
        }
        if !named.isEmpty, let missing = try look?(named, blobs) { throw MissingBlob(blob: missing) }
        for blob in named where try !isFetched(blob, entry.id, &outcome) {
            throw MissingBlob(blob: blob)
        }
        // A present version does not count again, so each exchange receives more than the one before it.
        if large > 0, try !store.unknown(among: [entry.id]).isEmpty, !account.spend(large) { throw OverBudget() }
        try spend(PackedVersion.differenceBytes(contents, read), on: entry.id, &outcome)
        let received: Store.ReceivedVersion
        do {
            received = try PackedVersion.received(contents, read) { id, difference, body in
                if let value = try base(difference.base, id) { return try value.withUnsafeBytes(body) }
                do { try withStoredBase(difference, id, for: entry.id, body) } catch let error as StoreError where error.code.isGone {
                    // The store has the version without these bytes, and the pack has them.
                    guard let value = try packed(difference.base, id) else { throw UnreadableBase(error: error) }
                    try value.withUnsafeBytes(body)
                }
            } value: { reference in
                guard let value = try blobs.take(reference) else { throw MissingBlob(blob: reference) }
                return value
            }
        } catch let missing as MissingBase {
            let missed = try unknown(&self, contents.header.version.predecessors, &outcome)
            guard missed.isEmpty else { throw Waiting(missing: missed) }
            throw PackFault.damaged(
                "a value of it is a difference from that of version \(missing.version), which is not among its ancestors")
        }
        let identity = try withExtendedLifetime(received) {
            store.identityDigest(received.version, try store.sortedChanges(received)).first8
        }
        guard identity == entry.identity else { throw PackFault.damaged("it is another version than the index of the pack says") }
        return (received, received.changes.reduce(contents.header.metadata.memorySize) { $0 + $1.memorySize })
    }
    /// Returns the value of a version of a pack; nil if the pack has none, or its bases are too large. It is made of the pack alone.
    private static func value(
        _ id: UnsafeRawBufferPointer, of version: VersionID, _ pack: [PackIndex.VersionEntry], _ block: (Int) throws -> [UInt8],
        room: UInt64 = PackFormat.versionDifferences, steps: Int = 0
    ) throws -> [UInt8]? {
        guard steps <= ValueDifference.mostSteps, let place = pack.first(where: { $0.id == version })?.place else { return nil }
        return try block(Int(place.block)).withUnsafeBytes { raw in
            let payload = try PackFile.payload(place, PackRecordType.version, in: raw)
            guard case .inside = try PackedVersion.form(payload) else { return nil }
            let bytes = Array(payload), contents = try PackedVersion.contents(version, bytes)
            return try PackedVersion.value(id, in: contents, bytes) { id, difference, body in
                let size = UInt64(clamping: difference.baseSize)
                let base = size <= room ? try value(id, of: difference.base, pack, block, room: room - size, steps: steps + 1) : nil
                guard let base else { throw PackFault.damaged("a value of it is a difference from one that is not in the pack") }
                try base.withUnsafeBytes(body)
            }
        }
    }

    /// Fetches a large value. If it was read from the parts in its reference, records that the reference is right: others may name
    /// missing parts.
    private func isFetched(_ blob: BlobReference, _ version: VersionID, _ outcome: inout Outcome) throws -> Bool {
        guard let fetch, !blobs.has(blob) else { return true }
        switch try fetch(blob, blobs) {
        case .none: return false
        case .found: outcome.references.append((version, blob))
        case .copied: break
        }
        outcome.fetched.append(blob)
        return true
    }
    private struct MissingBlob: Error { let blob: BlobReference }
    private struct OverBudget: Error {}
    /// The store does not have the base of a difference.
    private struct MissingBase: Error { let version: VersionID }
    /// The base of a difference is damaged in the store.
    private struct UnreadableBase: Error { let error: StoreError }
    /// The version waits for others.
    private struct Waiting: Error { let missing: [VersionID] }

    /// Counts the bytes that the differences of a version make, and throws if they exceed a limit.
    private func spend(_ bytes: UInt64, on id: VersionID, _ outcome: inout Outcome) throws {
        guard bytes > 0 else { return }
        guard bytes <= PackFormat.versionDifferences else {
            throw PackFault.tooLarge("its values that are differences have \(bytes) bytes; at most 64 MiB are read")
        }
        let sum = SourceAccount.sum(outcome.differenceBytes, bytes)
        guard sum <= PackFormat.packDifferences else {
            throw PackFault.tooLarge("with it the values of the pack that are differences have more than 4 GiB")
        }
        if try !store.unknown(among: [id]).isEmpty, !account.spend(differences: bytes) { throw OverBudget() }
        outcome.differenceBytes = sum
    }

    /// Calls with the base of a difference, read from the store.
    /// - Throws: `MissingBase`, `UnreadableBase`, `PackFault`.
    private func withStoredBase(
        _ difference: ValueDifference, _ id: UnsafeRawBufferPointer, for version: VersionID,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let value: [UInt8]?
        do { value = try store.base(of: difference, id) } catch var error as StoreError where error.code.isDamage {
            error.message =
                "The version \(version) of \(pack) was not received: a value of it is a difference from one that is damaged here. "
                + error.message
            throw UnreadableBase(error: error)
        }
        guard let value else { throw MissingBase(version: difference.base) }
        try value.withUnsafeBytes(body)
    }

    /// Reports that a version waits for another.
    private mutating func lacks(_ missing: VersionID, _ id: VersionID) {
        problem(
            id,
            StoreError(
                .missingPredecessor,
                "The version \(id) of \(pack) was not received: its predecessor \(missing) is missing, and was not received either. "
                    + "Have the pack made with the heads of this store.",
                versionID: missing.description))
    }

    /// Handles a missing large value. A present version does not wait for its large values: a device that reads that they are lost can
    /// send them again.
    private mutating func lacks(_ blob: BlobReference, _ id: VersionID, _ outcome: inout Outcome) throws {
        // On a metered network, or with a low battery, large values are postponed. That is no problem of their versions.
        if control.isThrifty, fetch != nil {
            outcome.lacksBlobs = true
            outcome.incomplete.append(id)
            return
        }
        if fetch != nil, try store.unknown(among: [id]).isEmpty, try !store.damagedVersions().contains(id) {
            outcome.lost.append((id, blob))
            return
        }
        outcome.lacksBlobs = true
        outcome.incomplete.append(id)
        var fault = PackFault.damaged("the bytes of a large value are missing, or do not match it"), path: String?
        if let part = missed(blob) {
            fault = .damaged("its large value lacks the file \(part.name): \(part.fault.why)")
            path = part.name.description
        }
        var error = fault.error("The version \(id) of \(pack)", version: id)
        if let path { error.path = path }
        problem(id, error)
    }

    private mutating func add(_ batch: inout Batch, _ outcome: inout Outcome, _ isVerifying: Bool, _ tellsMissing: Bool) throws {
        guard !batch.received.isEmpty else { return }
        let received = batch.received
        batch = Batch()
        let additions: [Store.Addition]
        let adding = control.within(.adding, result.versions.count, of: 0)
        do { additions = try store.add(received, isVerifying: isVerifying, control: adding) } catch let error as StoreError {
            // They may be stored.
            if error.code == .unknownOutcome { for version in received { blobs.keep(version.written.values) } }
            throw error
        }
        for (version, addition) in zip(received, additions) {
            let id = version.version.id
            var isHeld = true
            defer { if isHeld { outcome.held.append(id) } }
            switch addition {
            case .added:
                blobs.keep(store.valuesKept(of: version))
                progress += 1
                if id != EmptyRoot.id { result.versions.append(id) }
            case .repaired: result.repaired.append(id)
            case .alreadyPresent:
                // If the pack has fewer bytes than the store, the version counts as missing there.
                let hollow = version.written.values.count(where: \.isHollow)
                isHeld = hollow == 0 || (try? store.hollowCount(of: id)) ?? 0 >= hollow
            case .problem(let error):
                isHeld = false
                guard error.code == .missingPredecessor, let missing = error.versionID else { problem(id, error); continue }
                if let missing = VersionID(validating: missing) { outcome.waitingFor.insert(missing) }
                // Add all at once, so that the pack need not be read again for each.
                outcome.waitingFor.formUnion(try store.unknown(among: version.version.predecessors))
                if tellsMissing, let missing = VersionID(validating: missing) { lacks(missing, id) }
            }
        }
        try control.check(.adding, result.versions.count, of: 0, doing: what)
    }
}

extension Value.Change {
    /// The approximate size in memory in bytes.
    fileprivate var memorySize: Int {
        switch self {
        case .insert(let id, let data), .update(let id, let data): 64 + id.bytes.count + data.count
        case .remove(let id), .preserveRemoval(let id): 64 + id.bytes.count
        case .preserve(let reference): 80 + reference.id.bytes.count
        }
    }
}
