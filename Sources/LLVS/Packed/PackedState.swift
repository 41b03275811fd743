/// What a device remembers of one remote in the packed layout: docs/pack-format.md, section 5.
///
/// All of it may be lost, or fall back to what it was: the device then meets names of its own that it does not know, and goes on as a new
/// writer. What is at the remote is right by itself.
struct PackedState {
    /// A root: the file that says which store the remote is of, as its maker wrote it.
    struct Root {
        var name: PackName, store: PackID
        /// The file, so that it can be written again.
        var bytes: [UInt8]
        /// Whether single files lie beside the packs; of one in clear.
        var isBridged: Bool { (try? RootText(name, bytes, .none).layout) == RootText.bridged }
    }
    enum Outcome: UInt8 {
        /// Begun; nobody knows what came of it.
        case trying
        /// There, and whole.
        case done
        /// A base pack that was made later has all of it.
        case folded
        /// Not there, or not whole.
        case failed
    }
    /// A file that was begun to upload. Which versions it has is kept beside the state (`PackedNotes`).
    struct Attempt {
        var size: Int
        var outcome = Outcome.trying
        /// 0 for log packs, `tooLarge` for what is not folded any more.
        var level: UInt8 = 0
        var replaces: [PackName] = []
        var covers: [PackServices.Range] = []
        var seen: [PackServices.Seen] = []
        /// When a listing last had it, or it was made.
        var listed: Int64
        /// Another's versions, taken over by this device (`adopting`).
        var isAdoption = false
        static let tooLarge = UInt8.max
    }
    /// A pack of which everything is known.
    struct Read {
        /// 0: not known.
        var size = 0
        /// A pack that was read, or made, has all of it.
        var isReplaced = false
        /// When a full listing first lacked it; 0: it is listed.
        var missing: Int64 = 0
        /// All that its index lists was found in it.
        var isVerified = false
        /// When a pack first said that it has all of it, which nobody here has read; 0: it was read, or made.
        var unread: Int64 = 0
    }
    /// A file that cannot be taken.
    struct Bad {
        var since: Int64
        /// When it is looked at again.
        var again: Int64
        /// Nil while it may be on its way.
        var fault: PackFault?
        /// Its bytes when it was last looked at, as a listing told them; nil: none did. With other bytes it is another file.
        var size: Int?
    }
    /// A pack with versions of which large values were not there.
    struct Incomplete: Equatable {
        /// When that was first met, and when it is looked for again.
        var since: Int64, again: Int64
        /// The files that were missing or damaged: all of them, unless there are `PackedSettings.missingParts`.
        var parts: [PackName] = []
    }
    /// When a file is to be deleted.
    struct Deletion {
        /// Not before then, nor in the exchange in which it was decided.
        var due: Int64, exchange: UInt64
    }

    /// What a writer is called, as its pack of that number says.
    struct Named: Equatable { var number: UInt32, name: String }
    /// How much is at the remote.
    struct Extent: Equatable { var names: Int, bytes: Int, at: Int64 }
    /// Bytes that packs have at most since the service refused a larger one, and when it did.
    struct RefusedSize: Equatable { var most: Int, at: Int64 }
    /// Bytes that packs which replace others have at most since one with twice as many came to no end, and when it was begun.
    struct Cut: Equatable { var most: Int, at: Int64 }
    /// A version that another device is to bring to the other side of a bridged remote.
    struct Bridging: Equatable { var since: Int64, isFromPacks: Bool }
    /// Parts of a large value that was not sent whole yet, from the first on.
    struct Partial: Equatable {
        /// Their ids, and the bytes of each file.
        var parts: [Part] = []
        var since: Int64
        /// A pack that may be there names them.
        var isNamed = false
        struct Part: Equatable { var id: PackID, size: Int }
    }
    /// Of a large value, by the id of the part.
    struct DamagedPart: Equatable {
        var digest: PackID
        /// When it was told; 0: not yet.
        var told: Int64
    }
    /// All that lies there is being sent anew with newer keys: `PackedRun.rekey`.
    struct Rekeying: Equatable {
        var epoch: UInt32
        /// When something was last sent anew, or it began.
        var since: Int64
    }

    /// Never 0.
    var writer: UInt64
    var next: UInt32 = 1
    /// How many calls there were.
    var exchanges: UInt64 = 0
    var roots: [Root] = []
    /// The newest keys of an encrypted remote that this device knew; nil: it is not encrypted, or not met yet.
    var pin: StoreKeys.Pin?
    /// Of this writer, and those of former ones that were done.
    var attempts: [PackName: Attempt] = [:]
    /// Numbers of which no whole pack is there, though one was taken for such.
    var holes: Set<UInt32> = []
    /// The inputs of an adoption that has the next number.
    var adopting: [PackName] = []
    var read: [PackName: Read] = [:]
    var covered = CoveredNumbers()
    /// The last pack of each other writer.
    var seen: [UInt64: PackServices.Seen] = [:]
    /// Those of `seen` that moved since the last pack of this writer.
    var moved: Set<UInt64> = []
    /// When a new number of each other writer was last seen.
    var active: [UInt64: Int64] = [:]
    /// When `base/` was last listed; nil: never.
    var based: Int64?
    /// What was in `base/` then and is not read yet, with sizes.
    var wanted: [PackName: Int] = [:] // 0: the service does not tell
    var deletions: [PackName: Deletion] = [:]
    var bad: [PackName: Bad] = [:]
    /// Beside those of `bad`, when there are too many: digests of the names of files that could not be taken since `passedSince`.
    var passed: Set<PackID> = [], passedSince: Int64 = 0
    /// Packs with versions that wait for others which are not here.
    var waiting: [PackName: [VersionID]] = [:]
    /// Those of them that wait for large values which were looked for.
    var incomplete: [PackName: Incomplete] = [:]
    /// When what is known to be there is computed anew, since packs were lost; 0: they were not.
    var healing: Int64 = 0
    var refusesDeletes = false
    /// What the service taught by refusing a file as too large.
    var refusedSize: RefusedSize?
    /// What putting packs together taught, by coming to no end.
    var cut: Cut?
    /// When there was last no room for packs that are put together; 0: there was.
    var withoutRoom: Int64 = 0
    /// When what uploads left behind was last looked for.
    var prepared: Int64 = 0
    /// Large values that packs name which were read or made.
    var blobs: [PackID: BlobReference] = [:]
    /// Those of them that lie there with older keys. No new pack names them, since who sends all anew deletes them.
    var oldBlobs: Set<PackID> = []
    /// Bytes of the files of their parts, where this device sent or read them.
    var partSizes: [PackID: Int] = [:]
    /// When a full listing first lacked a part of them, or had it with other bytes.
    var missingBlobs: [PackID: Int64] = [:]
    /// Parts that are damaged there, of values that are not here: whoever has them is told by the next pack.
    var damagedParts: [PackID: DamagedPart] = [:]
    var rekeying: Rekeying?
    /// By the digest in their names.
    var partials: [PackID: Partial] = [:]
    var bridging: [VersionID: Bridging] = [:]
    var reports = PackedReports()
    /// The next pack says that the remote was filled anew.
    var seedsAnew = false
    /// The store ids of the roots that this device was told to forget: what it fills anew gets the first of them.
    var formerStores: [PackID] = []
    /// What writers are called, for people.
    var names: [UInt64: Named] = [:]
    /// What the packs of this writer say that it is called.
    var saidName: String?
    /// The newest pack of each writer in `log/`, as the last retrieve found it, and what was sent since.
    var newest: [UInt64: PackServices.Seen] = [:]
    /// What the last full listing showed; nil: there was none.
    var extent: Extent?
    /// What is known to be at the remote: these and their ancestors, but for `lacking`.
    var heads: [VersionID] = [], lacking: [VersionID] = []

    init(_ random: PackRandom = .system) { writer = max(1, random.word()) }

    /// Packs of all roots are read; this one is written under.
    var store: PackID? { roots.min { $0.name.id < $1.name.id }?.store }
    var stores: [PackID] { roots.map(\.store) }

    /// A clone of this device goes on under the old name, or its state fell back: what was sent as the old writer is anybody's now.
    mutating func becomeNewWriter(_ random: PackRandom) {
        writer = max(1, random.word())
        next = 1
        holes = []
        adopting = []
        // A clone may have named them, so they stay; and may delete them, so this one names them not.
        partials = [:]
        for (name, attempt) in attempts {
            if attempt.outcome == .done || attempt.outcome == .folded {
                read[name] = Read(size: attempt.size, isReplaced: attempt.outcome == .folded)
                covered.add(name)
                covered.add(attempt.covers)
            }
            if attempt.outcome != .done { attempts[name] = nil }
        }
        moved = Set(seen.keys)
        saidName = nil
    }

    /// A pack is known wholly, and so is all that it replaces.
    mutating func take(_ name: PackName, size: Int, _ services: PackServices, at now: Int64) {
        read[name] = Read(size: size, isReplaced: read[name]?.isReplaced ?? false, isVerified: read[name]?.isVerified ?? false)
        // All at once: ranges are joined each time.
        covered.add(services.covers + ([name] + services.replaces).map(CoveredNumbers.range))
        for other in services.replaces {
            if read[other] == nil { read[other] = Read(unread: attempts[other] == nil ? now : 0) }
            read[other]?.isReplaced = true
            // Those of this device stay: anybody may say that he replaced them, and removed they are found lost.
            // So do those of a former writer, as long as something is to be deleted that they replaced.
            guard let attempt = attempts[other], attempt.outcome != .folded, other.writer != writer else { continue }
            if !attempt.replaces.contains(where: { deletions[$0] != nil }) { attempts[other] = nil }
        }
        forget(name)
        for other in services.replaces { forget(other) }
        if name.writer != writer { note(name, at: now) }
    }
    /// Packs of this device that another is known to have replaced.
    mutating func giveUp(_ names: [PackName]) {
        for name in names where name.writer == writer && attempts[name]?.outcome == .done && deletions[name] == nil {
            attempts[name]?.outcome = .folded
            holes.remove(name.first)
            // What it replaced, and was not deleted yet, goes with it.
            for other in attempts[name]?.replaces ?? [] { deletions[other] = nil }
        }
    }
    /// A clock that was ahead, and was put right, left times behind that are yet to come. What happened counts as of now, and what is to
    /// happen later than it ever could is due.
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
        // `based` and `prepared` that are yet to come are due by themselves.
        reports.putRight(at: now)
    }
    /// What a new pack may name without sending it.
    var currentBlobs: [PackID: BlobReference] { oldBlobs.isEmpty ? blobs : blobs.filter { !oldBlobs.contains($0.key) } }
    /// Large values that were sent, beside those that were known.
    mutating func know(_ sent: [PackID: BlobReference]) {
        for (digest, blob) in sent where blobs[digest] != blob { know(blob, hasOlderKeys: false) }
    }
    mutating func know(_ blob: BlobReference, hasOlderKeys: Bool) {
        guard !hasOlderKeys || blobs[blob.digest] == nil else { return }
        blobs[blob.digest] = blob
        if hasOlderKeys { oldBlobs.insert(blob.digest) } else { oldBlobs.remove(blob.digest) }
    }
    /// A large value is not there any more, or damaged there: no new pack names it without sending it.
    mutating func lose(_ digest: PackID) {
        for part in blobs[digest]?.parts ?? [] { partSizes[part] = nil }
        blobs[digest] = nil
        oldBlobs.remove(digest)
        missingBlobs[digest] = nil
    }
    /// A part is damaged there: the others are to hear of it, once a day.
    mutating func tell(_ digest: PackID, _ part: PackID, at now: Int64) {
        if let known = damagedParts[part], known.told == 0 || now - known.told < PackedSettings.day { return }
        guard damagedParts[part] != nil || damagedParts.count < PackedSettings.damagedPartsLimit else { return }
        damagedParts[part] = DamagedPart(digest: digest, told: 0)
    }
    /// It need not be looked for any more.
    private mutating func forget(_ name: PackName) {
        wanted[name] = nil
        bad[name] = nil
        waiting[name] = nil
        incomplete[name] = nil
    }

    /// What `passed` has of a name.
    func digest(of name: PackName) -> PackID {
        Array(name.description.utf8).withUnsafeBytes { PackID(SHA256.digest($0)) } ?? .zero
    }

    /// How far another writer is.
    mutating func note(_ name: PackName, at now: Int64) {
        if let known = seen[name.writer], known.number >= name.last { return }
        guard seen[name.writer] != nil || seen.count < CoveredNumbers.writersLimit else { return }
        seen[name.writer] = PackServices.Seen(writer: name.writer, number: name.last, id: name.id)
        moved.insert(name.writer)
        active[name.writer] = now
    }

    /// The writer's pack before a number.
    func link(before number: UInt32) -> PackID {
        var found: PackName?
        for (name, attempt) in attempts
        where name.writer == writer && name.last == number &- 1 && (attempt.outcome == .done || attempt.outcome == .folded)
            && (name.kind == .log || attempt.isAdoption)
        {
            if found.map({ $0.id < name.id }) ?? true { found = name }
        }
        return found?.id ?? .zero
    }

    /// Whether a name need not be read.
    func isKnown(_ name: PackName) -> Bool { read[name] != nil || attempts[name] != nil }
}
