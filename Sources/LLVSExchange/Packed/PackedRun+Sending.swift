/// Publishing: docs/pack-format.md, section 6.
extension PackedRun {
    /// - Parameters:
    ///   - isFresh: whether a retrieve has just listed the place.
    ///   - listed: all existing packs, if that was a full listing.
    func send(isFresh: Bool, listed: [PackName: Int]? = nil) throws -> ExchangeResult {
        control.bytes?.begin()
        stage = .sending
        _ = try unlock()
        if keys?.opened?.keys.mayBeOld == true {
            var nothing = PackedSending(self)
            try nothing.publish()
            return nothing.result
        }
        var isThere = isFresh
        if !isFresh || state.roots.isEmpty {
            if state.roots.isEmpty { _ = try listRoots() }
            let logs = try list(.log)
            if try mayBeAnother(logs) { try refuseAnother(logs, list(.base)) }
            isThere = logs.keys.contains(where: state.isKnown)
            try lookAtOwn(logs)
        }
        _ = try isBridge()
        if isThere, files.capabilities.isNear { try keepRoots() }
        var sending = PackedSending(self)
        let wasWithoutRoom = state.withoutRoom
        do {
            try goOnUploading(&sending)
            try during(.folding, giveUpAdopting)
            try publish(&sending)
        } catch let error as StoreError where error.code == .noSpace {
            try during(.deleting) { try deleteWhatIsDue(isFull: true) }
            throw error
        }
        try during(.deleting) {
            try deleteWhatIsDue(listed)
            if listed != nil { try deleteUnnamedParts() }
        }
        // The new versions are sent: lack of room for larger packs is no failure.
        do { try putTogether(listed, &sending) } catch let error as StoreError {
            if error.code == .noSpace {
                state.withoutRoom = now
            } else if error.isOfOnePack {
                sending.tell(ExchangeProblem(name: "pack1/base", error: error))
            } else {
                throw error
            }
        }
        if state.withoutRoom != 0 {
            sending.tell(hasNoRoom)
            // Deleting replaced packs makes room: then the next exchange tries again.
            if state.withoutRoom != wasWithoutRoom { try during(.deleting) { try deleteWhatIsDue(isFull: true) } }
        }
        return sending.result
    }

    /// Merges packs at the remote, unless there was recently no room for that.
    private func putTogether(_ listed: [PackName: Int]?, _ sending: inout PackedSending) throws {
        guard !waitsForRoom else { return }
        state.withoutRoom = 0
        // An unfinished merge is not retried for some minutes.
        if let cut = state.cut, now - cut.at < PackedSettings.pause { return }
        try during(.folding) {
            try fold()
            if let listed, state.rekeying != nil, !control.isThrifty {
                try rekey(listed)
            } else if let listed, !control.isThrifty {
                chooseAdoption(listed)
                try adopt()
            }
        }
        if mustFollow { try sending.publish(evenEmpty: true) }
    }

    /// Whether larger packs are postponed, since there was no room for one and nothing was deleted since.
    var waitsForRoom: Bool { state.withoutRoom != 0 && now - state.withoutRoom < PackedSettings.roomWait }

    private var hasNoRoom: ExchangeProblem {
        ExchangeProblem(
            name: "pack1/base",
            error: StoreError(
                .noSpace,
                "\(files.description) has no room to merge packs. What is here was sent; make room, or the number of packs grows. It is "
                    + "tried again in an hour, or when something was deleted.",
                path: "pack1/base"))
    }

    /// Sends the remaining versions, and announces to the other devices that this writer ends. Anything this device sends later has a new
    /// writer id.
    func retire() throws -> ExchangeResult {
        let result = try send(isFresh: false)
        guard state.attempts.contains(where: { $0.key.writer == state.writer && $0.value.outcome == .done }) else { return result }
        var sending = PackedSending(self)
        // Each missing number gets a pack, which readers would otherwise miss for ever.
        while state.healing == 0, let hole = state.holes.min() {
            try sending.publish(evenEmpty: true)
            guard !state.holes.contains(hole) else { break }
        }
        let notice = PackServices.Notice(kind: PackServices.Notice.retired, payload: PackID.bytes(of: state.writer))
        try sending.publish(evenEmpty: true, notices: [notice])
        state.becomeNewWriter(settings.random)
        try save()
        return result
    }

    var isNotPutTogether: StoreError {
        StoreError(
            .transport,
            "Merging the packs of other devices in \(files.description) failed: they are missing, or incomplete. Exchange again.")
    }

    /// Resumes the upload of a file that an earlier call or another process began, if the service kept the received part.
    private func goOnUploading(_ sending: inout PackedSending) throws {
        guard files.capabilities.sessionsAbove != nil, let made = try notes.keptUpload(by: state.writer) else { return }
        let name = made.name
        // Other devices may have changed the keys meanwhile.
        let isCurrent = try state.rekeying == nil && notes.session != nil && sealing.isCurrent(name, made.bytes)
        do {
            switch name.kind {
            case .log
            where isCurrent && name.writer == state.writer && state.attempts[name]?.outcome == .trying
                && (name.first == state.next || state.holes.contains(name.first)):
                try upload(made)
                try settle(name)
                sending.tell(try notes.ids(of: name) ?? [])
                try save()
            // Large values are not sent over metered networks.
            case .blob where isCurrent && control.isThrifty: break
            case .blob where isCurrent && state.partials[name.digest]?.parts.count ?? 0 == Int(name.first): try uploadPart(made)
            // The file exists, or is no longer needed.
            default: notes.forgetUpload()
            }
        } catch let error as StoreError {
            if !RemoteSession.outlives(error) { notes.forgetUpload() }
            throw error
        }
    }

    /// Uploads a file under a unique name.
    func upload(_ made: MadePack) throws {
        // Removes the remains of interrupted uploads, at most once a day.
        if now < state.prepared || now - state.prepared >= PackedSettings.day {
            try files.prepareUploads(check)
            state.prepared = now
        }
        let data = OutgoingFile(size: made.size) { sink in for piece in made.pieces { try piece.withUnsafeBytes(sink) } }
        var upload = RemoteUpload(name: made.name.description, data: data, replaces: false)
        upload.isNamedByContent = true
        let isKept = made.size > files.capabilities.sessionsAbove ?? .max && made.name.kind != .base && notes.keep(made, by: state.writer)
        if isKept { upload.session = RemoteSession(kept: notes.session) { [notes] in notes.keep(session: $0) } }
        let start = rate.now
        do {
            switch try files.publish([upload], check).first {
            case .published: rate.moved(made.size, since: start, .up)
            case .refused(let error): throw error
            // The response was lost, and this is a retry. A listing may be behind, so the file itself is read.
            case .exists, nil:
                guard try isReadBack(made.name, made.size) else {
                    notes.forgetUpload()
                    throw unknown(made)
                }
            }
        } catch let error as StoreError where error.code == .transport {
            guard try isThere(made) else {
                if isKept, !RemoteSession.outlives(error) { notes.forgetUpload() }
                throw error
            }
        }
        if isKept { notes.forgetUpload() }
    }

    /// Uploads a part of a large value, and saves that, so that an interrupted call can be resumed.
    func uploadPart(_ made: MadePack) throws {
        guard hasTime(for: made.size, .up) else { throw hasNoTime }
        try upload(made)
        var partial = state.partials[made.name.digest] ?? PackedState.Partial(since: now)
        guard partial.parts.count == Int(made.name.first) else { return }
        state.partSizes[made.name.id] = made.size
        partial.parts.append(PackedState.Partial.Part(id: made.name.id, size: made.size))
        state.partials[made.name.digest] = partial
        try save()
    }

    /// Returns the parts that were sent before and still exist with the same size.
    func partsThere() throws -> [PackID: [PackID]] {
        state.partials = state.partials.filter { !$0.value.isNamed || now - $0.value.since < PackedSettings.day }
        guard !state.partials.isEmpty else { return [:] }
        let listed = try list(.blob)
        var there: [PackID: [PackID]] = [:]
        for (digest, partial) in state.partials {
            let parts = partial.parts.enumerated().prefix { number, part in
                let number = UInt32(truncatingIfNeeded: number)
                let size = listed[PackName(kind: .blob, digest: digest, first: number, last: number, id: part.id)]
                return size == part.size || size == PackedRun.notTold
            }
            there[digest] = parts.map(\.element.id)
            // All other parts are sent again.
            state.partials[digest]?.parts.removeLast(partial.parts.count - parts.count)
        }
        return there
    }

    /// Deletes parts of large values that were never sent completely. First a full listing must show no unknown pack of this writer, since
    /// a clone might have named the parts.
    private func deleteUnnamedParts() throws {
        let old = state.partials.filter { !$0.value.isNamed && now - $0.value.since > PackedSettings.partialLife }
        for (digest, partial) in old {
            let names = partial.parts.enumerated().map { number, part in
                let number = UInt32(truncatingIfNeeded: number)
                return PackName(kind: .blob, digest: digest, first: number, last: number, id: part.id).description
            }
            do { try files.delete(names, check) } catch let error as StoreError where error.code != .cancelled { return }
            state.partials[digest] = nil
        }
    }

    private func unknown(_ made: MadePack) -> StoreError {
        StoreError(
            .transport, "Writing \(made.name) to \(files.description) failed: something else is there under its name. Exchange again.",
            path: made.name.description)
    }

    /// Saves that a pack is being uploaded, uploads it, and saves that it exists.
    /// - Parameter isWhole: verifies the file before it counts; false: it is missing or incomplete.
    func attempt(
        _ made: MadePack, _ ids: [VersionID], _ attempt: PackedState.Attempt, isWhole: () throws -> Bool = { true }
    ) throws -> Bool {
        try notes.put(ids, of: made.name)
        state.attempts[made.name] = attempt
        // Saved before, since a killed process saves nothing.
        let before = state.cut
        if !attempt.replaces.isEmpty { state.cut = PackedState.Cut(most: max(PackedSettings.leastPack, made.size / 2), at: now) }
        try save()
        do { try upload(made) } catch let error as StoreError where [.tooLarge, .noSpace].contains(error.code) {
            state.cut = before
            if error.code == .tooLarge {
                state.attempts[made.name]?.outcome = .failed
                noteRefused(made.size)
            }
            throw error
        }
        guard try isWhole() else {
            state.attempts[made.name]?.outcome = .failed
            return false
        }
        state.cut = before
        try settle(made.name)
        try save()
        return true
    }

    /// Records that the service refuses a file of this many bytes; later packs have half.
    private func noteRefused(_ size: Int) {
        let most = max(1, min(size - 1, max(PackedSettings.leastPack, size / 2)))
        state.refusedSize = PackedState.RefusedSize(most: min(most, state.refusedSize?.most ?? .max), at: now)
    }

    /// Sends new versions, in smaller packs if the service refuses one as too large.
    private func publish(_ sending: inout PackedSending) throws {
        while true {
            let limit = packLimit
            do { return try sending.publish(evenEmpty: mustFollow) } catch let error as StoreError
                where error.code == .tooLarge && packLimit < limit
            {}
        }
    }

    // MARK: The root

    /// Writes a root if there is none.
    func ensureRoot() throws {
        guard state.roots.isEmpty else { return }
        try makeKeys()
        // Another device was first.
        if let doubt = keys?.opened?.keys.doubt { throw doubt }
        if keys != nil, try listRoots() {
            // If keys were just agreed on, they open the root of the other device.
            guard state.roots.isEmpty else { return }
            throw hasNoRoot
        }
        let id = keys?.opened?.keys.store ?? state.formerStores.first ?? settings.random.id()
        try writeRoot(id, layout: wantsBridge ? RootText.bridged : RootText.packed)
        state.formerStores = []
        try save()
    }
    /// Writes a root, by which the values of packs may be differences.
    private func writeRoot(_ id: PackID, layout: String) throws {
        let text =
            "{\"format\":1,\"store\":\"\(id)\",\"layout\":\"\(layout)\",\"encrypted\":\(keys != nil),\"made\":\"\(made)\","
            + "\"differences\":1}"
        var writer = PackWriter(
            PackWriter.Identity(kind: .root, store: id, salt: settings.random.id(), writer: state.writer, first: 0, last: 0))
        try Array(text.utf8).withUnsafeBytes { try writer.add(bare: $0) }
        let root = try sealing.seal(writer.finish())
        try upload(root)
        state.roots.append(PackedState.Root(name: root.name, store: id, bytes: root.bytes))
        state.roots.sort { $0.name.id < $1.name.id }
    }
    /// Whether the values of packs may be differences: a root of the store to which new packs belong says so.
    var sendsDifferences: Bool {
        guard let current = state.roots.min(by: { $0.name.id < $1.name.id }) else { return false }
        return state.roots.contains {
            $0.store == current.store && (try? RootText($0.name, $0.bytes, sealing).hasDifferences) ?? false
        }
    }

    /// Sends the remaining versions. If no root says that the values of packs may be differences, it then writes another root of the same
    /// store that does. Roots cannot be changed, and readers of an older library ignore the member.
    func enableDifferences() throws -> ExchangeResult {
        let result = try send(isFresh: false)
        try ensureRoot()
        // Another device may have written one.
        if !sendsDifferences { _ = try listRoots() }
        guard !sendsDifferences, let current = state.roots.min(by: { $0.name.id < $1.name.id }) else { return result }
        guard state.roots.count < PackedSettings.rootsLimit else {
            throw StoreError(
                .tooLarge,
                "Differences cannot be turned on in \(files.description): it has \(state.roots.count) roots already, which is the most. "
                    + "Make a new place.")
        }
        try writeRoot(current.store, layout: RootText(current.name, current.bytes, sealing).layout)
        try save()
        return result
    }
    private var made: String { UTCDate.text(max(0, Int64(settings.random.milliseconds() / 1_000))) }

    /// Rewrites known roots that were removed, if checking costs no request: without a root no new device finds the packs.
    private func keepRoots() throws {
        // A device without write access has nothing to send either; it gets the error when it has.
        do { try publishRoots([:]) } catch let error as StoreError where [.permission, .readOnly].contains(error.code) {}
    }

    /// Rewrites known roots that are missing or cut short, byte for byte.
    /// - Parameter listed: the listed roots, with their sizes.
    func publishRoots(_ listed: [PackName: Int]) throws {
        for root in state.roots {
            let size = listed[root.name]
            if let size, size == PackedRun.notTold || size == root.bytes.count { continue }
            // A listing may be behind, and overwriting may tear a file: this is the only name that is ever written twice.
            let read = RemoteRead(name: root.name.description, limit: PackFormat.fileLimit(.root))
            if case .bytes(let bytes, _)? = try files.read([read], check).first, bytes == root.bytes { continue }
            var upload = RemoteUpload(name: root.name.description, data: OutgoingFile(root.bytes), replaces: size != nil)
            upload.isNamedByContent = true
            _ = try files.publish([upload], check)
        }
    }
}

/// Counts the bytes of values sent, for progress.
private final class PackedBytes {
    private let run: PackedRun
    private var parts = 0
    init(_ run: PackedRun) { self.run = run }

    private func size(_ ids: [VersionID]) throws -> Int {
        try ids.reduce(0) { try $0 + Int(clamping: run.store.version($1)?.valueDataSize ?? 0) }
    }
    func expect(_ ids: [VersionID]) throws {
        guard let bytes = run.control.bytes else { return }
        bytes.expect(try size(ids))
    }
    /// Counts a part of a large value. The pack that names it counts its bytes as well.
    func sent(_ part: Int) {
        run.control.bytes?.add(part)
        parts += part
    }
    func sent(_ ids: [VersionID]) throws {
        guard let bytes = run.control.bytes else { return }
        let size = try size(ids)
        bytes.add(size - parts)
        parts = max(0, parts - size)
    }
}

/// Sends versions of the store that are not known to be at the remote.
struct PackedSending {
    private let run: PackedRun
    private(set) var result = ExchangeResult()
    private var failed: Set<VersionID> = []
    /// Versions deferred because of a metered network or a low battery.
    private var later: Set<VersionID> = []

    init(_ run: PackedRun) { self.run = run }

    /// Adds versions of a pack that an earlier call or another process began to send.
    mutating func tell(_ versions: [VersionID]) { result.versions += versions }
    mutating func tell(_ problem: ExchangeProblem) { result.problems = ExchangeProblem.inOrder(result.problems + [problem]) }

    /// - Parameters:
    ///   - evenEmpty: whether to write a pack even if there is nothing to send.
    ///   - notices: notices of the first pack to other devices.
    mutating func publish(evenEmpty: Bool = false, notices: [PackServices.Notice] = []) throws {
        let store = run.store, listing = run.control.paced(.listing, doing: run.what)
        var ids = try run.toSend(of: store.missing(from: run.there, listing.look))
        if run.control.leavesToMakers { ids = try LateArrivals.of(store).leftOut(of: ids, in: store) }
        // After a loss, another pack may cover the missing number; that is known once the loss was examined.
        let damaged = run.state.damagedParts.filter { $0.value.told == 0 }
        let evenEmpty = evenEmpty || (!run.state.holes.isEmpty && run.state.healing == 0) || !damaged.isEmpty
        guard !ids.isEmpty || evenEmpty else { return }
        if let doubt = run.keys?.opened?.keys.doubt { throw doubt }
        try run.ensureRoot()
        guard let storeID = run.state.store else { return }
        var place = VersionPacker.Place()
        place.blobs = run.state.currentBlobs
        place.random = run.settings.random
        place.hasDifferences = run.sendsDifferences
        place.sealing = run.sealing
        // The notice that a writer has retired counts only in its newest pack.
        let isEnd = !notices.isEmpty
        place.next = { [run] in
            let number = isEnd ? run.state.next : run.state.holes.min() ?? run.state.next
            return (number, run.state.link(before: number))
        }
        place.partials = try run.partsThere()
        place.sizeLimit = run.sendLimit(isEnd ? run.state.next : run.state.holes.min() ?? run.state.next)
        place.services.seen = run.movedWriters
        place.services.notices = notices + run.introduction
        place.services.notices += damaged.map { PackServices.Notice(damaged: $0.key, of: $0.value.digest) }
        if run.state.seedsAnew {
            place.services.notices.append(PackServices.Notice(kind: PackServices.Notice.seededAnew, payload: []))
        }
        let seen = place.services.seen, run = self.run
        let bytes = PackedBytes(run)
        var packed: [VersionID] = []
        try bytes.expect(ids)
        func emit(_ made: MadePack, _ ids: [VersionID]) throws {
            if made.name.kind == .blob {
                try run.uploadPart(made)
                return bytes.sent(made.size)
            }
            // This is no failed attempt, so later packs are not made smaller.
            guard run.hasTime(for: made.size, .up) else { throw run.hasNoTime }
            // The pack names the large values sent so far.
            for digest in Array(run.state.partials.keys) { run.state.partials[digest]?.isNamed = true }
            var attempt = PackedState.Attempt(size: made.size, listed: run.now)
            attempt.seen = seen
            _ = try run.attempt(made, ids, attempt)
            packed += ids
            try bytes.sent(ids)
            run.state.seedsAnew = false
            run.state.saidName = run.settings.deviceName
            for part in damaged.keys { run.state.damagedParts[part]?.told = run.now }
        }
        defer {
            result.versions += packed
            result.left = later
        }
        let paced = run.control.paced(.sending, of: ids.count, doing: run.what)
        try withoutActuallyEscaping(emit) { emit in
            var packer = VersionPacker(store, storeID: storeID, writer: run.state.writer, place: place, paced, emit)
            for (i, id) in ids.enumerated() {
                try run.control.check(.sending, i, of: ids.count, doing: run.what)
                // A refusal from before a pack was made smaller is reported once.
                if try failed.contains(id) || isForLater(id) || isHeldBack(id) { continue }
                do { try packer.add(id) } catch let refusal as VersionPacker.Refusal {
                    failed.insert(id)
                    result.problems.append(ExchangeProblem(name: id.description, error: refusal.error))
                }
            }
            try packer.finish(evenEmpty: evenEmpty)
            run.state.know(packer.known)
            for blob in packer.known.values { for digest in try run.sealing.blobDigests(blob.sha256) { run.state.partials[digest] = nil } }
        }
        if !ids.isEmpty { try run.control.check(.sending, ids.count, of: ids.count, doing: run.what) }
        result.problems = ExchangeProblem.inOrder(result.problems)
    }

    /// On a metered network or a low battery, large values are deferred, and all versions that build on theirs.
    private mutating func isForLater(_ id: VersionID) throws -> Bool {
        guard run.control.isThrifty, let version = try run.store.version(id) else { return false }
        var isLarge = version.predecessors.contains(where: later.contains)
        if !isLarge, version.valueDataSize > UInt64(PackFormat.inlineValue) {
            try run.store.forEachChangeSize(madeIn: id) { _, size in isLarge = isLarge || size > PackFormat.inlineValue }
        }
        if isLarge { later.insert(id) }
        return isLarge
    }

    private mutating func isHeldBack(_ id: VersionID) throws -> Bool {
        guard !failed.isEmpty, let held = try run.store.version(id)?.predecessors.first(where: failed.contains) else { return false }
        failed.insert(id)
        result.problems.append(
            ExchangeProblem(
                name: id.description,
                error: StoreError(
                    .missingPredecessor,
                    "The version \(id) was not sent to \(run.files.description), since its predecessor \(held) could not be. "
                        + "It is sent after that one.",
                    versionID: held.description)))
        return true
    }
}

extension PackedRun {
    /// Returns the approximate size limit of a pack with that number. If an upload was cancelled or broke off, the pack may be too large
    /// for the time available: half of it makes progress.
    func sendLimit(_ number: UInt32) -> Int {
        let cut = state.attempts.filter { name, attempt in
            name.writer == state.writer && name.first == number && [.trying, .failed].contains(attempt.outcome)
        }
        let least = cut.values.map(\.size).min().map { max(PackedSettings.leastPack, $0 / 2) }
        // A pack may slightly exceed the requested size.
        let inTime = timeFor(.up).map { max(PackedSettings.leastPack, $0 / 4 * 3) }
        return min(packLimit, least ?? packLimit, inTime ?? packLimit)
    }

    /// A notice with the device's name, if its packs do not have it yet.
    var introduction: [PackServices.Notice] {
        guard let name = settings.deviceName, name != state.saidName else { return [] }
        return [PackServices.Notice(naming: name)]
    }

    /// The newest packs of the writers that advanced since the last pack of this one.
    var movedWriters: [PackServices.Seen] {
        let moved = state.moved.compactMap { state.seen[$0] }.filter { $0.writer != state.writer }
        // The most recent if there are too many.
        return Array(moved.sorted { (state.active[$0.writer] ?? 0) > (state.active[$1.writer] ?? 0) }.prefix(PackFormat.entriesLimit))
    }
}

/// Dates in the format of RFC 3339.
package enum UTCDate {
    /// - Parameter seconds: since 1970, not negative.
    package static func text(_ seconds: Int64) -> String {
        var time = time_t(seconds), parts = tm()
        guard gmtime_r(&time, &parts) != nil else { return "1970-01-01T00:00:00Z" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(date)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }
}
