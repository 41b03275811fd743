/// Puts versions of a store into packs, one pack after another, and hands each file on as soon as it is made: blobs before the pack that
/// names them. No more than one pack is in memory.
struct VersionPacker {
    private let store: Store
    private let storeID: PackID
    private let writer: UInt64
    private let control: PacedControl
    private let emit: (MadePack) throws -> Void
    /// The number of the pack that is being filled.
    private var number: UInt32 = 1
    private var link = PackID.zero
    private var pack: PackWriter?
    /// The blobs that were handed on since the pack before.
    private var known: [PackID: BlobReference] = [:]

    /// - Parameters:
    ///   - storeID: what the files say that they belong to.
    ///   - writer: whose files they are.
    ///   - control: looked at while large values are read.
    ///   - emit: takes each file.
    init(_ store: Store, storeID: PackID, writer: UInt64, _ control: PacedControl, _ emit: @escaping (MadePack) throws -> Void) {
        self.store = store; self.storeID = storeID; self.writer = writer; self.control = control; self.emit = emit
    }

    /// What `add` throws that is the fault of one version.
    struct Refusal: Error { let error: StoreError }

    /// Adds a version; its predecessors were added before, or are known to whoever reads.
    /// - Throws: `Refusal` when that version cannot be read or sent, and the others can; what `emit` throws.
    mutating func add(_ id: VersionID) throws {
        var record = try VersionPacker.ofOne { try PackRecord(id, of: store) }
        let plan = try VersionPacker.ofOne { try self.plan(record) }
        if let pack, !pack.hasRoom(for: plan.isOutside ? 64 << 10 : plan.size) { try finishPack() }
        if !plan.large.isEmpty { record.blobs = try sendBlobs(of: record, plan.large) }
        let payload: [UInt8], identity: UInt64
        if plan.isOutside {
            (payload, identity) = try sendOutside(record)
        } else {
            (payload, identity) = try VersionPacker.ofOne { try record.payload() }
        }
        if pack == nil {
            pack = PackWriter(
                PackWriter.Identity(
                    kind: .log, store: storeID, salt: .random(), writer: writer, first: number, last: number, link: link,
                    made: UInt64(max(0, (Clock.now() + Clock.secondsFrom1970To2001) * 1000))))
        }
        try pack?.add(id, identity: identity, payload: payload)
    }

    /// Hands on the last pack.
    mutating func finish() throws { try finishPack() }

    private mutating func finishPack() throws {
        guard var pack, pack.versionCount > 0 else { return }
        let made = try pack.finish()
        self.pack = nil
        known = [:]
        try emit(made)
        link = made.name.id
        number += 1
    }

    private static func ofOne<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as StoreError where [.damaged, .tooLarge, .io, .notFound].contains(error.code) {
            throw Refusal(error: error)
        }
    }

    // MARK: What lies outside of the pack

    private struct Plan {
        /// Changes whose values become blobs, by their index.
        var large: Set<Int> = []
        /// Bytes of the payload at most.
        var size = 0
        /// It is too large for a pack in any case.
        var isOutside = false
    }

    /// Values of more than 1 MiB are blobs. If the rest is too large for a record, the largest of it are; if that is not enough, the
    /// version lies in a blob itself.
    private func plan(_ record: PackRecord) throws -> Plan {
        var plan = Plan(size: record.fixedSize), others: [(index: Int, size: Int, saved: Int)] = []
        try record.forEachChange { index, entry in
            try control.step(0)
            guard entry.kind == .insert || entry.kind == .update, entry.size > PackFormat.smallestBlob else {
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
        for other in others where plan.size > (plan.isOutside ? PackFormat.writtenVersion - 1024 : limit) {
            plan.large.insert(other.index)
            plan.size -= other.saved
        }
        guard plan.size <= PackFormat.writtenVersion - 1024, plan.large.count <= PackFormat.blobsLimit else {
            throw StoreError(
                .tooLarge,
                "The version \(record.id) cannot be packed: its changes take more than 1 GiB beside its large values. "
                    + "Save so much in several versions; a folder or a snapshot takes this one.",
                versionID: record.id.description)
        }
        return plan
    }

    private mutating func sendBlobs(of record: PackRecord, _ large: Set<Int>) throws -> [Int: BlobReference] {
        // Values are read while no record is: their ids and places are gathered first.
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
            if let blob = known[name] { result[index] = blob; continue }
            var splitter = BlobSplitter(storeID: storeID, writer: writer, digest: name, emit), hash = SHA256(), at = 0
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

    /// The payload of a version that lies in a blob.
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
        var splitter = BlobSplitter(storeID: storeID, writer: writer, digest: PackID(digest) ?? .zero, emit)
        try record.forEachPiece(control) { try splitter.append($0) }
        guard let blob = BlobReference(size: size, sha256: digest, parts: try splitter.finish()) else {
            throw StoreError(.internal, "A digest has too few bytes.")
        }
        var out = ByteWriter()
        out.bytes.append(1)
        blob.write(into: &out)
        return (out.bytes, identity)
    }
}

/// Cuts bytes that come in pieces into the parts of a blob, and hands each on as a file.
private struct BlobSplitter {
    private let storeID: PackID, writer: UInt64, digest: PackID
    private let emit: (MadePack) throws -> Void
    private var pack: PackWriter?
    /// Less than a block.
    private var rest: [UInt8] = []
    /// Bytes in the part that is being filled.
    private var filled = 0
    private var parts: [PackID] = []

    init(storeID: PackID, writer: UInt64, digest: PackID, _ emit: @escaping (MadePack) throws -> Void) {
        self.storeID = storeID; self.writer = writer; self.digest = digest; self.emit = emit
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

    /// The ids of all parts, in order.
    mutating func finish() throws -> [PackID] {
        try finishBlock()
        try finishPart()
        return parts
    }

    private mutating func finishBlock() throws {
        guard !rest.isEmpty else { return }
        if pack == nil {
            let number = UInt32(truncatingIfNeeded: parts.count)
            pack = PackWriter(
                PackWriter.Identity(
                    kind: .blob, store: storeID, salt: .random(), writer: writer, first: number, last: number, link: digest))
        }
        try rest.withUnsafeBytes { try pack?.add(bare: $0) }
        filled += rest.count
        rest.removeAll(keepingCapacity: true)
        if filled == PackFormat.partSize { try finishPart() }
    }

    private mutating func finishPart() throws {
        guard var pack else { return }
        let made = try pack.finish()
        self.pack = nil
        filled = 0
        parts.append(made.name.id)
        try emit(made)
    }
}
