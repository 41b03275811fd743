/// Encodes versions for a link: docs/live-protocol.md, "DATA". Values above 1 MiB are requested one by one.
struct VersionSource {
    private let store: Store
    /// The large values to which sent versions refer: their places, by SHA-256.
    private var large: [[UInt8]: (version: VersionID, index: Int)] = [:]
    /// The value that was read last, and up to where.
    private var open: (sha256: [UInt8], reader: ValueReader, end: Int)?
    /// How many large values versions refer to, and how often reading one began from its start or before its last position.
    private var named = 0, begun = 0

    /// Whether the other side reads values that are differences.
    var hasDifferences = false
    /// Whether the other side reads hollow changes.
    var hasHollow = false
    /// The account of values that are differences, from the frames that were sent. The other side counts at least as many bytes, so it
    /// allows as much.
    let account: SourceAccount

    static let payloadLimit = 32 << 20
    /// The limit of reads that may begin: two for each value, and this many more.
    static let begunLimit = 64

    init(_ store: Store, hasDifferences: Bool = false, account: SourceAccount = .ofLink()) {
        self.store = store; self.hasDifferences = hasDifferences; self.account = account
    }

    /// Returns the bytes of a version, with their size before them.
    /// - Throws: errors of the version, and of the store.
    mutating func payload(of id: VersionID) throws -> [UInt8] {
        var record = try PackRecord(id, of: store), size = record.fixedSize
        if !hasHollow { try record.requireBytes() }
        var blobs: Set<Int> = [], others: [(index: Int, saved: Int, size: Int)] = []
        try record.forEachChange { index, entry in
            let isValue = entry.kind == .insert || entry.kind == .update
            guard isValue, entry.size > PackFormat.smallestBlob, !entry.isHollow else {
                size += PackRecord.size(entry, isBlob: false); return
            }
            let inside = PackRecord.size(entry, isBlob: false), asBlob = PackRecord.size(entry, isBlob: true)
            if entry.size > PackFormat.inlineValue {
                blobs.insert(index)
                size += asBlob
            } else {
                size += inside
                others.append((index, inside - asBlob, entry.size))
            }
        }
        others.sort { ($0.size, $1.index) > ($1.size, $0.index) }
        for other in others where size > VersionSource.payloadLimit {
            blobs.insert(other.index)
            size -= other.saved
        }
        guard size <= VersionSource.payloadLimit, blobs.count <= PackFormat.blobsLimit else {
            throw StoreError(
                .tooLarge,
                "The version \(id) cannot be sent: its changes take more than 32 MiB beside its large values. "
                    + "Save so much in several versions; an exchange takes this one.", versionID: id.description)
        }
        if !blobs.isEmpty {
            var references: [Int: BlobReference] = [:], digests: [(Int, [UInt8])] = []
            try record.forEachChange { index, entry in
                guard blobs.contains(index) else { return }
                let digest = try record.digest(entry)
                let parts = (entry.size + PackFormat.partSize - 1) / PackFormat.partSize
                references[index] = BlobReference(size: entry.size, sha256: digest, parts: [PackID](repeating: .zero, count: parts))
                digests.append((index, digest))
            }
            record.blobs = references
            for (index, digest) in digests { large[digest] = (id, index) }
            named += digests.count
        }
        let payload = try record.bytes(differences: hasDifferences ? account : nil)
        var out = ByteWriter()
        try Memory.grow(&out.bytes, by: 10 + payload.count, "Sending a version")
        out.varint(UInt64(payload.count))
        out.raw(payload)
        return out.bytes
    }

    /// Returns a piece of a large value that a sent version refers to; empty for other values, or if it cannot be read.
    /// - Throws: `LiveFault` if the other side asks again and again; errors of the store.
    mutating func piece(_ sha256: [UInt8], _ offset: UInt64, _ count: Int) throws -> [UInt8] {
        guard let place = large[sha256], let offset = Int(exactly: offset) else { return [] }
        if open?.sha256 != sha256 || offset < open?.end ?? 0 {
            // A compressed value is decompressed from its start each time.
            begun += 1
            guard begun <= 2 * named + VersionSource.begunLimit else {
                throw LiveFault(.bound, "it asks for the same values again and again")
            }
        }
        if open?.sha256 != sha256 {
            let record = try PackRecord(place.version, of: store)
            try record.forEachChange { index, entry in
                if index == place.index { open = (sha256, try record.reader(entry, of: store), 0) }
            }
        }
        guard let reader = open?.reader else { return [] }
        var piece = [UInt8](repeating: 0, count: count)
        let got = try piece.withUnsafeMutableBytes { try reader.read(at: offset, into: $0) }
        piece.removeLast(count - got)
        open?.end = offset + got
        return piece
    }

    /// Forgets the large values. The other side has stored everything that was sent.
    mutating func forget() { (large, open, named, begun) = ([:], nil, 0, 0) }
}

/// Decodes versions from DATA frames, and adds them to the store.
struct VersionSink {
    private let store: Store
    /// Received bytes that are not a whole version yet.
    private var row: [UInt8] = []
    private var at = 0
    private var blobs: SpooledBlobs
    private var parts: LiveParts
    private let quota: (@Sendable (_ bytes: Int) throws -> Void)?
    private var batch: [Store.ReceivedVersion] = []
    private var batchSize = 0
    /// The index of each version in the batch.
    private var places: [VersionID: Int] = [:]
    /// Limits how many bytes the values that are differences may take, and their bases.
    private let account: SourceAccount
    /// Whether this side said that it reads values that are differences.
    var hasDifferences = false
    /// The device key of the other side, and whether it was known before.
    var device: (key: [UInt8], isKnown: Bool) = ([], false)
    /// The versions of the batch that came in valid frames.
    private var kept = 0, keptSize = 0
    /// The most versions that are stored at once. (Syncing takes the same time for any number.)
    private static let batchCount = 8_192
    private var waiting: Waiting?
    /// Added versions, to be reported, and not to be sent back.
    private(set) var added: [VersionID] = []
    private(set) var stored: UInt64 = 0
    private(set) var problems: [ExchangeProblem] = []
    private(set) var refused = 0
    private static let refusedLimit = 10_000, problemsLimit = 1_000

    /// A version whose large values have not all arrived.
    struct Waiting {
        let id: VersionID
        let payload: [UInt8]
        let references: [BlobReference]
        /// How many of these have arrived. There may be very many, so none is removed.
        var come = 0
        var offset: UInt64 = 0
        var asked: UInt64 = 0
        /// The last reference for which stored pieces were looked up, and whether there were some.
        var looked = -1, isResumed = false
        /// The value that is being received.
        var reference: BlobReference? { come < references.count ? references[come] : nil }
    }

    /// The received large values of a cut link, for the next link.
    struct Unfinished: @unchecked Sendable {
        // Sendable: only one sink has it at a time.
        var waiting: Waiting
        let blobs: SpooledBlobs
        let parts: LiveParts
    }

    init(_ store: Store, quota: (@Sendable (_ bytes: Int) throws -> Void)? = nil, account: SourceAccount = .ofLink()) {
        self.store = store
        self.quota = quota
        self.account = account
        blobs = SpooledBlobs(store.storage)
        parts = LiveParts(store)
    }

    /// Leaves the received large values to the next link. This link has ended.
    mutating func keepUnfinished() {
        guard var waiting, waiting.offset > 0 || blobs.count > 0 else { return }
        waiting.asked = waiting.offset
        self.waiting = nil
        PeerKnowledge.of(store).keep(Unfinished(waiting: waiting, blobs: blobs, parts: parts))
        (blobs, parts) = (SpooledBlobs(store.storage), LiveParts(store))
    }

    /// Whether a large value is missing. `want` returns the next request for it, if none is pending.
    var isWaiting: Bool { waiting != nil }
    mutating func want() throws -> LiveFrame? {
        guard var asked = waiting, let reference = asked.reference, asked.asked == asked.offset else { return nil }
        if asked.looked != asked.come, asked.offset == 0 {
            asked.looked = asked.come
            let spool = blobs
            let kept = try parts.begin(reference.sha256, size: reference.size) { try spool.append($0, of: reference.digest) }
            (asked.offset, asked.isResumed) = (kept, kept > 0)
            waiting = asked
        }
        let length = min(UInt64(LiveParts.size), reference.size - asked.offset)
        waiting?.asked = asked.offset + length
        return .want(sha256: reference.sha256, offset: asked.offset, length: UInt32(truncatingIfNeeded: length))
    }

    /// - Parameter came: how many bytes were received for these.
    mutating func append(_ bytes: [UInt8], came: Int) throws {
        account.came(came)
        try Memory.grow(&row, by: bytes.count, "Receiving versions")
        row += bytes
    }

    /// Decodes all complete versions, up to the first that lacks a large value. `flush` stores them.
    mutating func run() throws {
        (kept, keptSize) = (batch.count, batchSize)
        while waiting == nil, let payload = try nextPayload() { try take(payload) }
        (kept, keptSize) = (batch.count, batchSize)
    }

    /// Stores what arrived complete before the last frame, by which the link ends.
    mutating func flushBefore() throws {
        batch.removeLast(max(0, batch.count - kept))
        batchSize = keptSize
        try flush()
    }

    private mutating func nextPayload() throws -> [UInt8]? {
        let next: (start: Int, size: Int)? = try row.withUnsafeBytes { bytes in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[at...]))
            guard let size = reader.varint() else {
                if reader.remaining >= 10 { throw LiveFault(.frame, "the size of a version is not valid") }
                return nil
            }
            guard size <= UInt64(VersionSource.payloadLimit) else { throw LiveFault(.bound, "a version has \(size) bytes") }
            return reader.remaining >= Int(size) ? (at + reader.position, Int(size)) : nil
        }
        guard let next else { return nil }
        let payload = Array(row[next.start..<next.start + next.size])
        at = next.start + next.size
        if at == row.count || at > 1 << 20 {
            row.removeFirst(at)
            at = 0
        }
        return payload
    }

    private static func id(_ payload: [UInt8]) throws -> VersionID {
        try payload.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard reader.integer(UInt8.self) == 0, reader.varint() != nil, reader.take(RecordHeader.preludeSize) != nil,
                let id = reader.versionID()
            else { throw LiveFault(.version, "a version has no id") }
            return id
        }
    }

    private mutating func take(_ payload: [UInt8]) throws {
        let id = try VersionSink.id(payload)
        do {
            let contents = try PackedVersion.contents(id, payload)
            guard contents.blobs.isEmpty else {
                guard try !store.unknown(among: [id]).isEmpty else { return }
                try flush()
                if let kept = PeerKnowledge.of(store).takeUnfinished(id, payload) {
                    (waiting, blobs, parts) = (kept.waiting, kept.blobs, kept.parts)
                    return
                }
                // Count a value as often as it occurs in the version, since each occurrence is stored.
                let large = try PackedVersion.largeBytes(contents, payload), came = contents.blobs.values.map(\.size)
                guard SourceAccount.isInProportion(large, to: came.reduce(UInt64(payload.count), SourceAccount.sum)) else {
                    throw LiveFault(.bound, "the large values of a version take \(large) bytes")
                }
                // Include the pieces of the value being received, which are stored in case the link is cut.
                let kept = UInt64(parts.room(for: Int(clamping: came.max() ?? 0)))
                let stored = max(large, came.reduce(0, SourceAccount.sum))
                try quota?(Int(clamping: SourceAccount.sum(stored, kept)))
                waiting = Waiting(id: id, payload: payload, references: contents.blobs.values.sorted { $0.digest < $1.digest })
                return
            }
            try add(payload, contents)
        } catch let fault as PackFault { throw LiveFault(.version, "\(id): \(fault.why)", version: id) }
        if batch.count >= VersionSink.batchCount || batchSize >= ExchangeLimits.batchSize { try flush() }
    }

    private mutating func add(_ payload: [UInt8], _ contents: PackedVersion.Contents) throws {
        let id = contents.header.id
        if contents.header.hasDifferences, try isWholeHere(id) { return }
        let differences = try PackedVersion.differenceBytes(contents, payload)
        guard differences <= PackFormat.versionDifferences, account.spend(differences: differences) else { throw overBudget(id) }
        var received: Store.ReceivedVersion
        do {
            received = try PackedVersion.received(contents, payload) { [self] id, difference, body in
                guard hasDifferences else { throw PackFault.newer("it has a value that is a difference") }
                guard account.spend(differences: UInt64(clamping: difference.baseSize)) else { throw OverBudget() }
                try base(of: difference, id).withUnsafeBytes(body)
            } value: { [blobs] reference in
                guard let value = try blobs.take(reference) else { throw PackFault.damaged("a large value of it does not match it") }
                return value
            }
        } catch is OverBudget {
            throw overBudget(id)
        } catch let unreadable as UnreadableBase {
            // The next link brings whole values.
            PeerKnowledge.of(store).readsNoDifferences(of: device.key, isKnown: device.isKnown)
            var error = unreadable.error
            error.message =
                "The version \(id) was not stored: a value of it is a difference from one that cannot be read here. Connect again: "
                + "then it arrives whole. \(error.message)"
            return try refuse(id, error)
        }
        do {
            _ = try store.sortedChanges(received)
            try store.look(at: &received)
        } catch let error as StoreError where error.code != .outOfMemory && error.code != .io {
            throw LiveFault(.version, "\(id): \(error.message)", version: id)
        }
        places[id] = batch.count
        batch.append(received)
        batchSize += payload.count + Int(clamping: differences)
    }

    /// Returns whether a version is present and need not be compared or repaired: then its values need not be made.
    private func isWholeHere(_ id: VersionID) throws -> Bool {
        // If the id is not a content id, the other side may have another version under it.
        guard id.hasContentForm, store.records.knownDamage.isEmpty else { return false }
        return try store.unknown(among: [id]).isEmpty
    }

    /// The values that are differences, and their bases, take more than the account allows.
    private struct OverBudget: Error {}
    /// Stores the versions before the given one, and makes the next link request whole values, so that a link to another implementation
    /// progresses, too.
    private mutating func overBudget(_ id: VersionID) -> LiveFault {
        PeerKnowledge.of(store).readsNoDifferences(of: device.key, isKnown: device.isKnown)
        (kept, keptSize) = (batch.count, batchSize)
        return LiveFault(
            .bound, "values that are differences take far more bytes than came; the next connection brings whole values", version: id)
    }

    /// The base of a difference is not here, is damaged, or has no bytes any more.
    private struct UnreadableBase: Error { let error: StoreError }

    /// Returns the base of a difference, from the batch or the store.
    private func base(of difference: ValueDifference, _ id: UnsafeRawBufferPointer) throws -> [UInt8] {
        if let place = places[difference.base], place < batch.count, batch[place].version.id == difference.base,
            let value = batch[place].value(id)
        {
            return value
        }
        let found: [UInt8]?
        do { found = try store.base(of: difference, id) } catch let error as StoreError
            where error.code.isDamage || error.code.isGone
        {
            throw UnreadableBase(error: error)
        }
        guard let found else {
            throw UnreadableBase(
                error: StoreError(
                    .missingPredecessor, "The version \(difference.base) is not in the store.", versionID: difference.base.description))
        }
        return found
    }

    /// Adds a piece of a large value.
    /// - Returns: whether the versions after it can continue.
    mutating func take(blob sha256: [UInt8], _ offset: UInt64, _ bytes: [UInt8]) throws -> Bool {
        guard var asked = waiting, let reference = asked.reference, reference.sha256 == sha256, offset == asked.offset,
            UInt64(bytes.count) <= asked.asked - asked.offset
        else { throw LiveFault(.frame, "a piece of a value came that was not requested") }
        if bytes.isEmpty, reference.size > 0 {
            try refuse(
                asked.id,
                StoreError(
                    .damaged,
                    "The version \(asked.id) was not stored: a large value of it cannot be read on the other side. "
                        + "Repair that store.", versionID: asked.id.description))
            waiting = nil
            blobs.removeAll()
            return true
        }
        do {
            try bytes.withUnsafeBytes { try blobs.append($0, of: reference.digest) }
            parts.append(bytes, at: asked.offset)
            asked.offset += UInt64(bytes.count)
            if asked.offset == reference.size {
                try blobs.finishCurrent()
                parts.end()
                if asked.isResumed, !blobs.has(reference) {
                    // The stored pieces may have come from another device. Request the whole value without them: removing them may have
                    // failed, and they would be found again.
                    (asked.offset, asked.asked, asked.isResumed) = (0, 0, false)
                    waiting = asked
                    return false
                }
                asked.come += 1
                (asked.offset, asked.asked) = (0, 0)
            }
            waiting = asked
            guard asked.reference == nil else { return false }
            waiting = nil
            try add(asked.payload, PackedVersion.contents(asked.id, asked.payload))
        } catch let fault as PackFault { throw LiveFault(.version, "\(asked.id): \(fault.why)", version: asked.id) }
        try flush()
        blobs.removeAll()
        return true
    }

    private mutating func refuse(_ id: VersionID, _ error: StoreError) throws {
        refused += 1
        if problems.count < VersionSink.problemsLimit { problems.append(ExchangeProblem(name: id.description, error: error)) }
        guard refused <= VersionSink.refusedLimit else { throw LiveFault(.pending, "\(refused) versions lack their predecessors") }
    }

    /// Stores the decoded versions as one batch.
    mutating func flush() throws {
        guard !batch.isEmpty else { return }
        let received = batch, size = batchSize
        (batch, batchSize, kept, keptSize, places) = ([], 0, 0, 0, [:])
        try quota?(size)
        let additions: [Store.Addition]
        do { additions = try store.add(received) } catch let error as StoreError {
            if error.code == .unknownOutcome { for version in received { blobs.keep(version.written.values) } }
            throw error
        }
        for (version, addition) in zip(received, additions) {
            let id = version.version.id
            switch addition {
            case .added:
                blobs.keep(store.valuesKept(of: version))
                added.append(id)
                if id != EmptyRoot.id { stored += 1 }
            case .repaired, .alreadyPresent: break
            case .problem(let error) where error.code == .missingPredecessor || error.code == .versionMismatch: try refuse(id, error)
            case .problem(let error): throw LiveFault(.version, "\(id): \(error.message)", version: id)
            }
        }
    }

    /// Returns the versions that were added since the last call.
    mutating func takeAdded() -> [VersionID] {
        defer { added = [] }
        return added
    }
    mutating func takeProblems() -> [ExchangeProblem] {
        defer { problems = [] }
        return problems
    }
}
