/// Reads large values that are stored beside the packs.
final class PackedBlobs {
    private let run: PackedRun
    private var older: Set<PackID> = []
    /// Why large values could not be read, by digest.
    private(set) var missed: [PackID: PackTaking.MissedPart] = [:]
    private(set) var lastMissed: PackTaking.MissedPart?
    /// Parts missed since the last call of `takeMissed`.
    private var newlyMissed: [PackName] = []
    func takeMissed() -> [PackName] {
        defer { newlyMissed = [] }
        return newlyMissed
    }
    /// Whether this is a retry of failed packs: then parts that no listing shows are not requested.
    var triesAgain = false
    /// Whether a part was missed.
    private var hasMissed = false
    /// The number of requested parts that no listing showed, and how often each part was read.
    private var unlisted = 0, timesRead: [PackID: Int] = [:]
    /// Counts the files that are read, and those known to be at the remote.
    var account: SourceAccount?
    /// Whether to read values that are known to be at the remote as well.
    var readsAll = false
    /// Versions of this store with large values, by the digests of these; and whether all earlier versions of the store were indexed.
    private var holders: [PackID: VersionID] = [:], knowsHolders = false
    init(_ run: PackedRun) { self.run = run }

    /// Returns whether a value that was read is stored at the remote with older keys than the current ones.
    func hasOlderKeys(_ blob: BlobReference) -> Bool { older.contains(blob.digest) }

    /// Makes a large value available. A value that a version of this store has, and that is known to be at the remote, is not read again;
    /// if its files have other names, it suffices that they are listed. Listed files may be damaged, so later packs must not refer to them:
    /// the value is read if they lack files to refer to.
    func source(_ blob: BlobReference, into spool: SpooledBlobs) throws -> PackTaking.BlobSource {
        if spool.restore(blob) { return .found }
        if !readsAll, let known = run.state.blobs[blob.digest],
            try known == blob || (!run.state.oldBlobs.contains(blob.digest) && isListed(blob)), try copy(blob, into: spool)
        {
            // A part of unknown size has at least this many bytes.
            for part in blob.parts { account?.came(part, run.state.partSizes[part] ?? PackFormat.partSize / 1_032) }
            return .copied
        }
        return try fetch(blob, into: spool) ? .found : .none
    }

    /// Returns whether all parts are listed, by one listing.
    private func isListed(_ blob: BlobReference) throws -> Bool { try firstUnlisted(of: blob) == nil }
    /// Returns the first part that no listing shows.
    private func firstUnlisted(of blob: BlobReference) throws -> PackName? {
        let listed = try listing()
        var first: PackName?
        for digest in try run.sealing.blobDigests(blob.sha256) {
            guard let name = PackedBlobs.names(of: blob, as: digest).first(where: { listed[$0] == nil }) else { return nil }
            first = first ?? name
        }
        return first
    }
    private func listing() throws -> [PackName: Int] {
        let listed = try parts ?? run.listing.list(.blob)
        parts = listed
        return listed
    }
    private var parts: [PackName: Int]?
    /// Returns whether a listing shows any of the parts.
    func isAnyListed(_ names: [PackName]) throws -> Bool {
        let listed = try listing()
        return names.contains { listed[$0] != nil }
    }

    /// Checks that all parts of a version's large values exist before one is fetched. Otherwise a pack that names existing values beside a
    /// missing one could cause their download repeatedly.
    ///
    /// A single part is requested by name as long as none was missed; otherwise a listing decides.
    /// - Returns: the first missing value.
    func missing(of blobs: [BlobReference], in spool: SpooledBlobs) throws -> BlobReference? {
        // A value copied from a version of the store needs no file.
        let wanted = blobs.filter { !spool.has($0) && !spool.isRetained($0) && (readsAll || run.state.blobs[$0.digest] != $0) }
        // Deferred: `fetch` reports that.
        if run.control.isThrifty, wanted.contains(where: { $0.size > UInt64(PackFormat.inlineValue) }) { return nil }
        guard hasMissed || triesAgain || wanted.reduce(0, { $0 + $1.parts.count }) > 1 else { return nil }
        for blob in wanted {
            while let name = try firstUnlisted(of: blob) {
                guard try isThereUnlisted(blob, name) else { return blob }
            }
        }
        return nil
    }

    /// A listing may be behind, so a few parts are requested all the same.
    private func isThereUnlisted(_ blob: BlobReference, _ name: PackName) throws -> Bool {
        guard !triesAgain, unlisted < PackedSettings.unlistedParts else {
            miss(blob, name, .notThere("no listing shows it"))
            return false
        }
        unlisted += 1
        let read = RemoteRead(name: name.description, range: 0..<PackFormat.headerSize, limit: PackFormat.fileLimit(.blob))
        do {
            _ = try run.fetching.bytes(run.files.read([read], run.check).first ?? .missing, atMost: PackFormat.fileLimit(.blob))
            parts?[name] = PackListing.unknownSize
            return true
        } catch let fault as PackFault {
            miss(blob, name, fault)
            return false
        }
    }

    /// Records that a version with that value was added.
    func isHere(_ blob: BlobReference, in version: VersionID) { holders[blob.digest] = version }

    private func copy(_ blob: BlobReference, into spool: SpooledBlobs) throws -> Bool {
        do {
            guard let holder = try holder(of: blob), try run.store.unknown(among: [holder]).isEmpty else { return false }
            let record = try PackRecord(holder, of: run.store)
            var found: ValueReader?
            try record.forEachChange { _, entry in
                guard found == nil, entry.kind == .insert || entry.kind == .update, !entry.isHollow, UInt64(entry.size) == blob.size,
                    try record.digest(entry) == blob.sha256
                else { return }
                found = try record.reader(entry, of: run.store)
            }
            guard let reader = found else { return false }
            try withScratch(256 << 10) { buffer in
                var at = 0
                while at < reader.size {
                    try run.check()
                    let count = try reader.read(at: at, into: buffer)
                    try spool.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), of: blob.digest)
                    at += count
                }
            }
            try spool.finishCurrent()
            return spool.has(blob)
        } catch let error as StoreError where [.damaged, .io, .notFound].contains(error.code) {
            // An unreadable local value is read from the remote.
            try spool.finishCurrent()
            return false
        }
    }

    /// Returns the version that has a value. Indexes the store once, at the first request for a value from before.
    private func holder(of blob: BlobReference) throws -> VersionID? {
        if let known = holders[blob.digest] { return known }
        guard !knowsHolders else { return nil }
        knowsHolders = true
        let store = run.store, paced = run.control.paced(.listing, doing: run.what), sizes = Set(run.state.blobs.values.map(\.size))
        for id in try store.versions(withMoreThan: UInt64(PackFormat.smallestBlob), paced.look) {
            let record = try PackRecord(id, of: store)
            try record.forEachChange { _, entry in
                try paced.step(0)
                guard entry.kind == .insert || entry.kind == .update, !entry.isHollow, sizes.contains(UInt64(entry.size)),
                    let digest = PackID(try record.digest(entry)), run.state.blobs[digest] != nil
                else { return }
                if holders[digest] == nil { holders[digest] = id }
            }
        }
        return holders[blob.digest]
    }

    /// Fetches a value. False if it is missing, or does not match its name.
    func fetch(_ blob: BlobReference, into spool: SpooledBlobs) throws -> Bool {
        if spool.has(blob) || spool.restore(blob) { return true }
        // On a metered network, or with a low battery, large values are deferred.
        if run.control.isThrifty, blob.size > UInt64(PackFormat.inlineValue) { return false }
        left = Int(clamping: blob.size)
        guard run.hasTime(for: left, .down) else { throw run.hasNoTime }
        run.control.bytes?.expect(left)
        defer { moved(left) }
        // In an encrypted place the name depends on the keys of its time; usually the first fits.
        for (i, digest) in try run.sealing.blobDigests(blob.sha256).enumerated() where try fetch(blob, as: digest, into: spool) {
            if i > 0 { older.insert(blob.digest) }
            missed[blob.digest] = nil
            return true
        }
        return false
    }

    /// Bytes of the current value that have not arrived yet.
    private var left = 0
    private func moved(_ bytes: Int) {
        run.control.bytes?.add(min(left, bytes))
        left -= min(left, bytes)
    }

    private static func names(of blob: BlobReference, as digest: PackID) -> [PackName] {
        blob.parts.enumerated().map { part, id in
            PackName(kind: .blob, digest: digest, first: UInt32(truncatingIfNeeded: part), last: UInt32(truncatingIfNeeded: part), id: id)
        }
    }

    private func fetch(_ blob: BlobReference, as digest: PackID, into spool: SpooledBlobs) throws -> Bool {
        let names = PackedBlobs.names(of: blob, as: digest)
        for start in stride(from: 0, to: names.count, by: 4) {
            let some = names[start..<min(names.count, start + 4)]
            if !readsAll, let often = some.first(where: { timesRead[$0.id] ?? 0 >= PackedSettings.partReads }) {
                // Bounds the reads of a value that refused versions name repeatedly.
                miss(blob, often, .notThere("it was read \(PackedSettings.partReads) times, for versions that were refused"))
                try spool.finishCurrent()
                return false
            }
            for name in some { timesRead[name.id, default: 0] += 1 }
            let reads = some.map { RemoteRead(name: $0.description, limit: PackFormat.fileLimit(.blob)) }
            for (name, contents) in try zip(some, run.files.read(reads, run.check)) {
                do {
                    let bytes = try run.fetching.bytes(contents, atMost: PackFormat.fileLimit(.blob))
                    moved(bytes.count)
                    try spool.append(PackFile(name, bytes, stores: run.state.stores, sealing: run.sealing), of: blob.digest)
                    run.state.partSizes[name.id] = bytes.count
                    account?.came(name.id, bytes.count)
                } catch let fault as PackFault {
                    miss(blob, name, run.healing.cameOf(contents, fault))
                    try spool.finishCurrent()
                    return false
                }
            }
        }
        try spool.finishCurrent()
        return spool.has(blob)
    }

    /// A blob may exist under several key epochs; the first name that exists determines the reported cause.
    private func miss(_ blob: BlobReference, _ name: PackName, _ fault: PackFault) {
        hasMissed = true
        if newlyMissed.count < PackedSettings.missingParts { newlyMissed.append(name) }
        if let known = missed[blob.digest], known.fault.kind != .notThere || fault.kind == .notThere {
            lastMissed = known
            return
        }
        let part = PackTaking.MissedPart(name: name, fault: fault)
        missed[blob.digest] = part
        lastMissed = part
        if fault.kind == .damaged { run.state.tell(blob.digest, name.id, at: run.now) }
    }
}
