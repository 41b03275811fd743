/// Writes versions of a store to packs, one pack after another, and passes on each file when it is complete: blobs before the pack that
/// refers to them. Only one pack is in memory.
struct VersionPacker {
    private let store: Store
    private let storeID: PackID
    private let writer: UInt64
    private let control: PacedControl
    private let emit: Emit
    /// The kind and the position of the packs.
    private var place: Place
    private var pack: PackWriter?
    private var ids: [VersionID] = []
    /// The versions of the pack without bytes of values.
    private var hollow: [VersionID] = []
    /// Makes differences; nil if values are written whole.
    private var differences: PackDifferences?
    /// The blobs that the other side has. In a stream, those since the previous pack.
    private(set) var known: [PackID: BlobReference]

    /// The fields of packs besides their versions.
    struct Place {
        var kind = PackKind.log
        /// The number of the pack that is being filled; for a base pack, the last number.
        var number: UInt32 = 1
        /// For a base pack, the first number.
        var first: UInt32 = 1
        /// The previous pack of the writer.
        var link = PackID.zero
        /// What the first pack states.
        var services = PackServices()
        /// Large values at the remote that need not be sent again. Nil if each pack must come with all of its own.
        var blobs: [PackID: BlobReference]?
        /// Parts of large values that are at the remote already, by the digest in their names, from the first on.
        var partials: [PackID: [PackID]] = [:]
        /// Returns the number of each log pack and the writer's previous pack, if they are not consecutive.
        var next: (() throws -> (number: UInt32, link: PackID))?
        /// The approximate size limit of a log or base pack in bytes.
        var sizeLimit = PackFormat.writtenFile
        /// Whether readers know values that are differences.
        var hasDifferences = false
        var random = PackRandom.system
        var sealing = PackSealing.none
    }
    /// Receives each file, and the versions of a log or base pack.
    typealias Emit = (MadePack, [VersionID]) throws -> Void

    /// - Parameters:
    ///   - storeID: the store id in the files.
    ///   - writer: the writer of the files.
    ///   - control: checked while large values are read.
    ///   - place: the common fields of all packs, and the number of the first.
    ///   - emit: receives each file.
    init(
        _ store: Store, storeID: PackID, writer: UInt64, place: Place = Place(), _ control: PacedControl, _ emit: @escaping Emit
    ) {
        self.store = store; self.storeID = storeID; self.writer = writer; self.control = control; self.emit = emit
        self.place = place
        known = place.blobs ?? [:]
        // A base may have bytes that are sent to nobody.
        if (try? store.orders.isWithholding) ?? true { self.place.hasDifferences = false }
        differences = self.place.hasDifferences ? PackDifferences(store) : nil
    }

    /// The error that `add` throws if it concerns one version.
    struct Refusal: Error { let error: StoreError }

    /// Adds a version. Its predecessors must be added before, or be known to the reader.
    /// - Throws: `Refusal` if only that version cannot be read or sent; the errors of `emit`.
    mutating func add(_ id: VersionID) throws {
        var record = try VersionPacker.ofOne { try PackRecord(id, of: store) }
        let plan = try VersionPacker.ofOne {
            // A base pack replaces packs that may have the bytes.
            if place.kind == .base { try record.requireBytes(except: store.orders.erasedAtPlaces()[id] ?? []) }
            return try self.plan(record)
        }
        // Values of a version that was refused are in no pack.
        differences?.begin()
        if let pack, !pack.hasRoom(for: plan.isOutside ? 64 << 10 : plan.size) {
            // A base pack is a single file.
            guard place.kind == .log else { throw Full() }
            try finishPack()
        } else if place.kind == .log, differences?.isFull ?? false || hollow.count >= PackFormat.entriesLimit {
            try finishPack()
        } else if hollow.count >= PackFormat.entriesLimit {
            throw Full()
        }
        if !plan.large.isEmpty { record.blobs = try sendBlobs(of: record, plan.large) }
        let payload: [UInt8], identity: UInt64
        if plan.isOutside {
            (payload, identity) = try sendOutside(record)
        } else {
            (payload, identity) = try VersionPacker.ofOne { try record.payload(&differences) }
        }
        try begin()
        try pack?.add(id, identity: identity, payload: payload)
        if plan.hasHollow { hollow.append(id) }
        differences?.keepValues(of: id)
        ids.append(id)
    }
    /// Thrown if the versions do not fit into one pack, but must be in one.
    struct Full: Error {}

    private mutating func begin() throws {
        guard pack == nil else { return }
        if let next = place.next { (place.number, place.link) = try next() }
        pack = PackWriter(
            PackWriter.Identity(
                kind: place.kind, store: storeID, salt: place.random.id(), writer: writer,
                first: place.kind == .log ? place.number : place.first,
                last: place.number, link: place.link,
                made: place.random.milliseconds()),
            sizeLimit: place.sizeLimit)
    }

    /// Passes on the last pack.
    /// - Parameter evenEmpty: whether to pass on an empty pack if there was no other.
    mutating func finish(evenEmpty: Bool = false) throws {
        if evenEmpty, !hasEmitted { try begin() }
        try finishPack(evenEmpty: evenEmpty)
    }
    private var hasEmitted = false

    private mutating func finishPack(evenEmpty: Bool = false) throws {
        guard var pack, evenEmpty || pack.versionCount > 0 else { return }
        if !hollow.isEmpty { place.services.notices.append(PackServices.Notice(hollow: hollow)) }
        try pack.add(place.services)
        let made = try place.sealing.seal(pack.finish()), ids = self.ids
        self.pack = nil
        (self.ids, hollow) = ([], [])
        place.services = PackServices()
        if place.blobs == nil { known = [:] }
        differences = place.hasDifferences ? PackDifferences(store) : nil
        try emit(made, ids)
        hasEmitted = true
        place.link = made.name.id
        place.number &+= 1
    }

    private static func ofOne<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as StoreError
            where error.code.isGone || [.damaged, .tooLarge, .io, .notFound].contains(error.code)
        {
            throw Refusal(error: error)
        }
    }

    // MARK: Content outside of the pack

    private struct Plan {
        /// The indexes of the changes whose values become blobs.
        var large: Set<Int> = []
        /// The most bytes of the payload.
        var size = 0
        /// Whether the version is too large for a pack in any case.
        var isOutside = false
        /// Whether it has values without bytes.
        var hasHollow = false
    }

    /// Decides which values become blobs: those of more than 1 MiB. If the rest is too large for a record, so do its largest values. If
    /// that is not enough, the whole version goes into a blob.
    private func plan(_ record: PackRecord) throws -> Plan {
        var plan = Plan(size: record.fixedSize), others: [(index: Int, size: Int, saved: Int)] = []
        try record.forEachChange { index, entry in
            try control.step(0)
            if entry.isHollow { plan.hasHollow = true }
            guard entry.kind == .insert || entry.kind == .update, entry.size > PackFormat.smallestBlob, !entry.isHollow else {
                plan.size += PackRecord.size(entry, isBlob: false)
                return
            }
            let asBlob = PackRecord.size(entry, isBlob: true)
            if entry.size > PackFormat.inlineValue {
                plan.large.insert(index)
                plan.size += asBlob
            } else {
                let inside = PackRecord.size(entry, isBlob: false)
                others.append((index, entry.size, inside - asBlob))
                plan.size += inside
            }
        }
        let limit = PackFormat.recordLimit - 1024
        others.sort { ($0.size, $1.index) > ($1.size, $0.index) }
        let all = plan.size - others.reduce(0) { $0 + $1.saved }
        plan.isOutside = all > limit
        for other in others where plan.size > (plan.isOutside ? PackFormat.writtenBody - 1024 : limit) {
            plan.large.insert(other.index)
            plan.size -= other.saved
        }
        guard plan.size <= PackFormat.writtenBody - 1024, plan.large.count <= PackFormat.blobsLimit else {
            throw StoreError(
                .tooLarge,
                "The version \(record.id) cannot be packed: its changes take more than 1 GiB beside its large values. "
                    + "Save so much in several versions; a folder or a snapshot takes this one.",
                versionID: record.id.description)
        }
        return plan
    }

    private mutating func sendBlobs(of record: PackRecord, _ large: Set<Int>) throws -> [Int: BlobReference] {
        // Collect ids and places first, so that no record is being read while values are read.
        var found: [(index: Int, reader: ValueReader, digest: [UInt8])] = []
        try VersionPacker.ofOne {
            try record.forEachChange { index, entry in
                guard large.contains(index) else { return }
                found.append((index, try record.reader(entry, of: store), try record.digest(entry)))
            }
        }
        var result: [Int: BlobReference] = [:]
        for (index, reader, digest) in found {
            guard let name = PackID(digest) else { continue }
            if let blob = known[name], blob.sha256 == digest { result[index] = blob; continue }
            var splitter = try splitter(digest), hash = SHA256(), at = 0
            try withScratch(PackFormat.blockLimit) { buffer in
                while case let got = try VersionPacker.ofOne({ try reader.read(at: at, into: buffer) }), got > 0 {
                    try control.step(0, bytes: got)
                    let piece = UnsafeRawBufferPointer(rebasing: buffer[..<got])
                    hash.update(piece)
                    try splitter.append(piece)
                    at += got
                }
            }
            let parts = try splitter.finish()
            guard hash.finish() == digest, let blob = BlobReference(size: at, sha256: digest, parts: parts) else {
                throw Refusal(
                    error: StoreError(
                        .damaged,
                        "The version \(record.id) was not packed: its value \"\(reader.id)\" is not what its record says. "
                            + "Verify the store.",
                        versionID: record.id.description))
            }
            known[name] = blob
            result[index] = blob
        }
        return result
    }

    /// - Parameter sha256: the SHA-256 of the content of all parts.
    private func splitter(_ sha256: [UInt8]) throws -> BlobSplitter {
        guard let digest = try place.sealing.blobDigests(sha256).first else { throw StoreError(.internal, "A digest has too few bytes.") }
        return BlobSplitter(
            storeID: storeID, writer: writer, digest: digest, there: place.partials[digest] ?? [], random: place.random,
            sealing: place.sealing
        ) { [emit] in try emit($0, []) }
    }

    /// Returns the payload of a version that is stored in a blob.
    private mutating func sendOutside(_ record: PackRecord) throws -> ([UInt8], UInt64) {
        let identity = try VersionPacker.ofOne { try record.identity(control) }
        var hash = SHA256(), size = 0
        try VersionPacker.ofOne {
            try record.forEachPiece(control) {
                hash.update($0)
                size += $0.count
            }
        }
        let digest = hash.finish()
        guard let name = PackID(digest) else { throw StoreError(.internal, "A digest has too few bytes.") }
        let blob: BlobReference
        if let there = known[name], there.sha256 == digest {
            blob = there
        } else {
            var splitter = try splitter(digest)
            try record.forEachPiece(control) { try splitter.append($0) }
            guard let made = BlobReference(size: size, sha256: digest, parts: try splitter.finish()) else {
                throw StoreError(.internal, "A digest has too few bytes.")
            }
            known[name] = made
            blob = made
        }
        var out = ByteWriter()
        out.bytes.append(1)
        blob.write(into: &out)
        return (out.bytes, identity)
    }
}

/// Cuts bytes that arrive in pieces into the parts of a blob, and passes on each as a file.
private struct BlobSplitter {
    private let storeID: PackID, writer: UInt64, digest: PackID
    private let random: PackRandom, sealing: PackSealing
    private let emit: (MadePack) throws -> Void
    /// The first parts, which exist already.
    private let there: [PackID]
    private var pack: PackWriter?
    /// Less than a block.
    private var rest: [UInt8] = []
    /// The bytes in the part that is being filled.
    private var filled = 0
    private var parts: [PackID] = []

    init(
        storeID: PackID, writer: UInt64, digest: PackID, there: [PackID], random: PackRandom, sealing: PackSealing,
        _ emit: @escaping (MadePack) throws -> Void
    ) {
        self.storeID = storeID; self.writer = writer; self.digest = digest; self.there = there; self.random = random
        self.sealing = sealing; self.emit = emit
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        var at = 0
        while at < bytes.count {
            let count = min(bytes.count - at, PackFormat.blockLimit - rest.count)
            rest.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[at..<at + count]))
            at += count
            if rest.count == PackFormat.blockLimit { try finishBlock() }
        }
    }

    /// Returns the ids of all parts, in order.
    mutating func finish() throws -> [PackID] {
        try finishBlock()
        try finishPart()
        return parts
    }

    private mutating func finishBlock() throws {
        guard !rest.isEmpty else { return }
        if pack == nil, parts.count >= there.count {
            let number = UInt32(truncatingIfNeeded: parts.count)
            pack = PackWriter(
                PackWriter.Identity(
                    kind: .blob, store: storeID, salt: random.id(), writer: writer, first: number, last: number, link: digest))
        }
        try rest.withUnsafeBytes { try pack?.add(bare: $0) }
        filled += rest.count
        rest.removeAll(keepingCapacity: true)
        if filled == PackFormat.partSize { try finishPart() }
    }

    private mutating func finishPart() throws {
        if parts.count < there.count, filled > 0 {
            parts.append(there[parts.count])
            filled = 0
            return
        }
        guard var pack else { return }
        let made = try sealing.seal(pack.finish())
        self.pack = nil
        filled = 0
        parts.append(made.name.id)
        try emit(made)
    }
}
