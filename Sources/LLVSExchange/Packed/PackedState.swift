/// The state that a device remembers of one remote in the packed layout: docs/pack-format.md, section 5.
///
/// It may be lost or reset. The device then finds names of its own that it does not know, and becomes a new writer. The data at the remote
/// does not depend on the state.
struct PackedState {
    /// A root: the file that names the store of the remote, as its maker wrote it.
    struct Root {
        var name: PackName, store: PackID
        /// The file, for writing it again.
        var bytes: [UInt8]
        /// Whether there are single files beside the packs; only for unencrypted remotes.
        var isBridged: Bool { (try? RootText(name, bytes, .none).layout) == RootText.bridged }
    }
    enum Outcome: UInt8 {
        /// Begun; the outcome is unknown.
        case trying
        /// Exists and is complete.
        case done
        /// A later base pack contains all of it.
        case replaced
        /// Missing or incomplete.
        case failed
    }
    /// A file whose upload was begun. `PackedNotes` saves its versions beside the state.
    struct Attempt {
        var size: Int
        var outcome = Outcome.trying
        /// 0 for log packs, `tooLarge` for packs that are not merged any more.
        var level: UInt8 = 0
        var replaces: [PackName] = []
        var covers: [PackServices.Range] = []
        var seen: [PackServices.Seen] = []
        /// When a listing last contained it, or it was made.
        var listed: Int64
        /// Whether it holds versions of other writers, adopted by this device (`adopting`).
        var isAdoption = false
        static let tooLarge = UInt8.max
    }
    /// A pack whose contents are fully known.
    struct Read {
        /// 0: unknown.
        var size = 0
        /// Whether another pack, read or made by this device, contains all of it.
        var isReplaced = false
        /// When a full listing first lacked it; 0: it is listed.
        var missing: Int64 = 0
        /// Whether all that its index lists was found in it.
        var isVerified = false
        /// When another pack first claimed to contain all of this one, which this device has not read; 0: it was read or made.
        var unread: Int64 = 0
    }
    /// An unusable file.
    struct Bad {
        var since: Int64
        /// When it is retried.
        var again: Int64
        /// Nil while the file may still be arriving.
        var fault: PackFault?
        /// The listed size of the file when it was last read; nil: none was listed. With another size it is another file.
        var size: Int?
    }
    /// A pack with versions whose large values were missing.
    struct Incomplete: Equatable {
        /// When large values were first found missing, and when the pack is retried.
        var since: Int64, again: Int64
        /// The missing or damaged files. The list is complete, unless it has `PackedSettings.missingParts` entries.
        var parts: [PackName] = []
    }
    /// A planned deletion of a file.
    struct Deletion {
        /// The earliest time of the deletion. The exchange that planned it never executes it.
        var due: Int64, exchange: UInt64
    }

    /// The name of a writer, and the number of the pack that gave it.
    struct Named: Equatable { var number: UInt32, name: String }
    /// The size of the remote.
    struct Extent: Equatable { var names: Int, bytes: Int, at: Int64 }
    /// The size limit since the service refused a larger pack, and when it did.
    struct RefusedSize: Equatable { var most: Int, at: Int64 }
    /// The size limit of merged packs since one of twice that size was not finished, and when that was begun.
    struct Cut: Equatable { var most: Int, at: Int64 }
    /// A version that this device leaves to another, which copies it to the other side of a bridged remote.
    struct Bridging: Equatable { var since: Int64, isFromPacks: Bool }
    /// The first parts of a large value that was not sent completely yet.
    struct Partial: Equatable {
        /// The ids of the parts, and the size of each file.
        var parts: [Part] = []
        var since: Int64
        /// Whether a pack that may exist names them.
        var isNamed = false
        struct Part: Equatable { var id: PackID, size: Int }
    }
    /// A damaged part of a large value; the key is the id of the part.
    struct DamagedPart: Equatable {
        var digest: PackID
        /// When it was reported; 0: not yet.
        var told: Int64
    }
    /// A report by other devices that a part of a large value is damaged; the key is the id of the part.
    struct Claim: Equatable {
        var digest: PackID
        /// How often the part was read for such a report and found intact, and the time before which it is not read again.
        var found = 0, until: Int64 = 0
        /// The part has to be checked.
        var isOpen = true
    }
    /// A resend of all data with newer keys: `PlaceKeyring.rekey`.
    struct Rekeying: Equatable {
        var epoch: UInt32
        /// When the last pack was rewritten, or the rewriting began.
        var since: Int64
    }

    /// What orders to erase left to do: `PackErasing`.
    struct Erasing: Equatable {
        /// The orders for which all packs were noted; zero: none.
        var mark = PackID.zero
        /// Packs that may have bytes which orders name. 0: the service reports no size.
        var packs: [PackName: Int] = [:]
        /// Whether parts of large values may have such bytes, and parts that have versions of replaced packs.
        var mustLookForParts = false, parts: Set<PackID> = []
    }

    /// Never 0.
    var writer: UInt64
    var next: UInt32 = 1
    /// The number of calls.
    var exchanges: UInt64 = 0
    var roots: [Root] = []
    /// The newest keys of an encrypted remote that this device knew; nil: it is not encrypted, or was not exchanged with yet.
    var pin: StoreKeys.Pin?
    /// The files of keys that this device read; only for encrypted remotes.
    var keyFiles = KeyFileNotes()
    /// Whether this device has never read all files of rings, so that its keys may be old ones.
    var mayHaveOldKeys = false
    /// Attempts of this writer, and finished ones of former writer ids.
    var attempts: [PackName: Attempt] = [:]
    /// Numbers without a complete pack, although one was believed to be complete.
    var holes: Set<UInt32> = []
    /// The inputs of an adoption with the next number.
    var adopting: [PackName] = []
    var read: [PackName: Read] = [:]
    var covered = CoveredNumbers()
    /// The last pack of each other writer.
    var seen: [UInt64: PackServices.Seen] = [:]
    /// The writers in `seen` that advanced since the last pack of this writer.
    var moved: Set<UInt64> = []
    /// When a new number of each other writer was last seen.
    var active: [UInt64: Int64] = [:]
    /// When `base/` was last listed; nil: never.
    var based: Int64?
    /// The unread packs of that listing, with sizes.
    var wanted: [PackName: Int] = [:] // 0: the service reports no size
    var deletions: [PackName: Deletion] = [:]
    var bad: [PackName: Bad] = [:]
    /// Overflow of `bad`: digests of the names of files that were unusable since `passedSince`.
    var passed: Set<PackID> = [], passedSince: Int64 = 0
    /// Packs with versions that wait for others.
    var waiting: [PackName: [VersionID]] = [:]
    /// Packs in `waiting` that wait for missing large values.
    var incomplete: [PackName: Incomplete] = [:]
    /// When to recompute what the remote holds, after packs were lost; 0: none were.
    var healing: Int64 = 0
    var refusesDeletes = false
    /// The limit learned when the service refused a file as too large.
    var refusedSize: RefusedSize?
    /// The limit learned when a merge was not finished.
    var cut: Cut?
    /// When there was last no room for merged packs; 0: there was room.
    var withoutRoom: Int64 = 0
    /// When remains of uploads were last removed.
    var prepared: Int64 = 0
    /// Large values named by packs that were read or made.
    var blobs: [PackID: BlobReference] = [:]
    /// Large values in `blobs` that are stored with older keys. New packs do not name them, since a device that rewrites all data deletes
    /// them.
    var oldBlobs: Set<PackID> = []
    /// The sizes of their parts, if this device sent or read them.
    var partSizes: [PackID: Int] = [:]
    /// The time at which a full listing first lacked a part of these blobs, or listed a part with another size.
    var missingBlobs: [PackID: Int64] = [:]
    /// Damaged parts of values that this store lacks: the next pack reports them, for devices that have them.
    var damagedParts: [PackID: DamagedPart] = [:]
    /// Reports by others about damaged parts, and the results of checking them.
    var claims: [PackID: Claim] = [:]
    var rekeying: Rekeying?
    var erasing = Erasing()
    /// The unfinished large values, by the digest in their names.
    var partials: [PackID: Partial] = [:]
    var bridging: [VersionID: Bridging] = [:]
    var reports = PackedReports()
    /// Whether the next pack records that the remote was refilled.
    var seedsAnew = false
    /// The store ids of the roots that the caller let this device forget. A refilled remote gets the first of them.
    var formerStores: [PackID] = []
    /// The display names of writers.
    var names: [UInt64: Named] = [:]
    /// The name of this device in its packs so far.
    var saidName: String?
    /// The newest pack of each writer in `log/`, as of the last retrieve, and packs sent since.
    var newest: [UInt64: PackServices.Seen] = [:]
    /// The result of the last full listing; nil: there was none.
    var extent: Extent?
    /// The versions known to be at the remote: these and their ancestors, except `lacking`.
    var heads: [VersionID] = [], lacking: [VersionID] = []

    init(_ random: PackRandom = .system) { writer = max(1, random.word()) }

    /// Packs of all roots are read; new ones belong to this root.
    var store: PackID? { roots.min { $0.name.id < $1.name.id }?.store }
    var stores: [PackID] { roots.map(\.store) }

    /// Becomes a new writer, since a clone of this device uses the old id, or its state was reset. Packs sent under the old id count as
    /// packs of another writer.
    mutating func becomeNewWriter(_ random: PackRandom) {
        writer = max(1, random.word())
        next = 1
        holes = []
        adopting = []
        // A clone may have named these parts in packs, so they remain. A clone may also delete them, so this device does not name them.
        partials = [:]
        for (name, attempt) in attempts {
            if attempt.outcome == .done || attempt.outcome == .replaced {
                read[name] = Read(size: attempt.size, isReplaced: attempt.outcome == .replaced)
                covered.add(name)
                covered.add(attempt.covers)
            }
            if attempt.outcome != .done { attempts[name] = nil }
        }
        moved = Set(seen.keys)
        saidName = nil
    }

    /// Records that a pack is fully known, and with it all packs that it replaces.
    mutating func take(_ name: PackName, size: Int, _ services: PackServices, at now: Int64) {
        read[name] = Read(size: size, isReplaced: read[name]?.isReplaced ?? false, isVerified: read[name]?.isVerified ?? false)
        // One call for all of them, since each call joins the ranges.
        covered.add(services.covers + ([name] + services.replaces).map(CoveredNumbers.range))
        for other in services.replaces {
            if read[other] == nil { read[other] = Read(unread: attempts[other] == nil ? now : 0) }
            read[other]?.isReplaced = true
            // Packs of this device remain: any device may claim to have replaced them, and if they are deleted, the loss is detected. Packs
            // of a former writer id remain while a pack that they replaced is to be deleted.
            guard let attempt = attempts[other], attempt.outcome != .replaced, other.writer != writer else { continue }
            if !attempt.replaces.contains(where: { deletions[$0] != nil }) { attempts[other] = nil }
        }
        forget(name)
        for other in services.replaces { forget(other) }
        if name.writer != writer { note(name, at: now) }
    }
    /// Records that another device has replaced packs of this one.
    mutating func giveUp(_ names: [PackName]) {
        for name in names where name.writer == writer && attempts[name]?.outcome == .done && deletions[name] == nil {
            attempts[name]?.outcome = .replaced
            holes.remove(name.first)
            // This device also leaves the packs that it replaced, if they are not deleted yet.
            for other in attempts[name]?.replaces ?? [] { deletions[other] = nil }
        }
    }
    /// Corrects times in the future, which a fast clock left. Past events get the present time. A due time later than the longest possible
    /// wait becomes due now.
    mutating func putRight(at now: Int64) {
        func isTooLate(_ due: Int64, _ longest: Int64) -> Bool { due > now + longest }
        for (name, one) in bad where one.since > now { bad[name]?.since = now }
        for (name, one) in bad where isTooLate(one.again, PackedSettings.longestWait(after: one.fault?.kind)) { bad[name]?.again = now }
        for (name, one) in incomplete where one.since > now { incomplete[name]?.since = now }
        passedSince = min(passedSince, now)
        for (name, one) in incomplete where isTooLate(one.again, PackedSettings.pause) { incomplete[name]?.again = now }
        for (name, one) in read where one.missing > now { read[name]?.missing = now }
        for (name, one) in read where one.unread > now { read[name]?.unread = now }
        for (name, one) in attempts where one.listed > now { attempts[name]?.listed = now }
        for (name, one) in deletions where isTooLate(one.due, PackedSettings.day) { deletions[name]?.due = now }
        if isTooLate(healing, Int64(PackedSettings.longestWait)) { healing = max(1, now) }
        for (writer, seen) in active where seen > now { active[writer] = now }
        for (digest, one) in partials where one.since > now { partials[digest]?.since = now }
        for (id, one) in bridging where one.since > now { bridging[id]?.since = now }
        if let since = rekeying?.since, since > now { rekeying?.since = now }
        withoutRoom = min(withoutRoom, now)
        if let at = refusedSize?.at, at > now { refusedSize?.at = now }
        if let at = cut?.at, at > now { cut?.at = now }
        for (digest, since) in missingBlobs where since > now { missingBlobs[digest] = now }
        for (part, one) in damagedParts where one.told > now { damagedParts[part]?.told = now }
        for (part, one) in claims where isTooLate(one.until, PackedSettings.longestClaimPause) { claims[part]?.until = now }
        // Future times of `based` and `prepared` already count as due.
        reports.putRight(at: now)
    }
    /// Records that another device reports a part of a large value as damaged. The part is checked in this exchange or a later one, unless
    /// it was recently found intact.
    mutating func claim(_ part: PackID, of digest: PackID, at now: Int64) {
        if let known = claims[part] {
            if known.until <= now { claims[part]?.isOpen = true }
            return
        }
        guard claims.values.count(where: \.isOpen) < PackedSettings.claimsLimit else { return }
        if claims.count >= PackedSettings.claimsKept {
            guard let oldest = claims.filter({ !$0.value.isOpen }).min(by: { $0.value.until < $1.value.until }) else { return }
            claims[oldest.key] = nil
        }
        claims[part] = Claim(digest: digest)
    }
    /// The large values that a new pack may name without sending them.
    var currentBlobs: [PackID: BlobReference] { oldBlobs.isEmpty ? blobs : blobs.filter { !oldBlobs.contains($0.key) } }
    /// Records large values that were sent.
    mutating func know(_ sent: [PackID: BlobReference]) {
        for (digest, blob) in sent where blobs[digest] != blob { know(blob, hasOlderKeys: false) }
    }
    mutating func know(_ blob: BlobReference, hasOlderKeys: Bool) {
        guard !hasOlderKeys || blobs[blob.digest] == nil else { return }
        blobs[blob.digest] = blob
        if hasOlderKeys { oldBlobs.insert(blob.digest) } else { oldBlobs.remove(blob.digest) }
    }
    /// Records that a large value is missing or damaged at the remote: no new pack names it without sending it.
    mutating func lose(_ digest: PackID) {
        for part in blobs[digest]?.parts ?? [] { partSizes[part] = nil }
        blobs[digest] = nil
        oldBlobs.remove(digest)
        missingBlobs[digest] = nil
    }
    /// Records that a part is damaged at the remote; it is reported to other devices once a day.
    mutating func tell(_ digest: PackID, _ part: PackID, at now: Int64) {
        if let known = damagedParts[part], known.told == 0 || now - known.told < PackedSettings.day { return }
        guard damagedParts[part] != nil || damagedParts.count < PackedSettings.damagedPartsLimit else { return }
        damagedParts[part] = DamagedPart(digest: digest, told: 0)
    }
    /// Removes a pack from all lists of packs to read.
    private mutating func forget(_ name: PackName) {
        wanted[name] = nil
        bad[name] = nil
        waiting[name] = nil
        incomplete[name] = nil
    }

    /// Returns the entry of a name in `passed`.
    func digest(of name: PackName) -> PackID {
        Array(name.description.utf8).withUnsafeBytes { PackID(SHA256.digest($0)) } ?? .zero
    }

    /// Records the newest number of another writer.
    mutating func note(_ name: PackName, at now: Int64) {
        if let known = seen[name.writer], known.number >= name.last { return }
        guard seen[name.writer] != nil || seen.count < CoveredNumbers.writersLimit else { return }
        seen[name.writer] = PackServices.Seen(writer: name.writer, number: name.last, id: name.id)
        moved.insert(name.writer)
        active[name.writer] = now
    }

    /// Returns the writer's pack before a number.
    func link(before number: UInt32) -> PackID {
        var found: PackName?
        for (name, attempt) in attempts
        where name.writer == writer && name.last == number &- 1 && (attempt.outcome == .done || attempt.outcome == .replaced)
            && (name.kind == .log || attempt.isAdoption)
        {
            if found.map({ $0.id < name.id }) ?? true { found = name }
        }
        return found?.id ?? .zero
    }

    /// Returns whether a pack need not be read.
    func isKnown(_ name: PackName) -> Bool { read[name] != nil || attempts[name] != nil }
}
