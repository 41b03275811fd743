/// Publishing: docs/pack-format.md, section 6.
struct PackPublishing {
    let run: PackedRun

    /// - Parameters:
    ///   - isFresh: whether a retrieve has just listed the place.
    ///   - listed: all existing packs, if that was a full listing.
    func send(isFresh: Bool, listed: [PackName: Int]? = nil) throws -> ExchangeResult {
        run.control.bytes?.begin()
        run.stage = .sending
        _ = try run.keyring.unlock()
        if run.keys?.opened?.keys.mayBeOld == true {
            var nothing = PackedSending(run)
            try nothing.publish()
            return nothing.result
        }
        var isThere = isFresh
        if !isFresh || run.state.roots.isEmpty {
            if run.state.roots.isEmpty { _ = try run.listing.listRoots() }
            let logs = try run.listing.list(.log)
            if try run.listing.mayBeAnother(logs) { try run.listing.refuseAnother(logs, run.listing.list(.base)) }
            isThere = logs.keys.contains(where: run.state.isKnown)
            try run.listing.lookAtOwn(logs)
        }
        _ = try run.bridging.isBridge()
        if isThere, run.files.capabilities.isNear { try keepRoots() }
        func existing() throws -> [PackName: Int] { try run.listing.list(.log).merging(run.listing.list(.base)) { one, _ in one } }
        if !isFresh, try run.store.orders.mayBeOfOthers, !run.state.roots.isEmpty { try run.erasing.followOrders(in: existing()) }
        if try run.erasing.areOrdersNew() { try run.erasing.note(listed ?? existing()) }
        var sending = PackedSending(run)
        let wasWithoutRoom = run.state.withoutRoom
        do {
            try resumeUpload(&sending)
            try run.during(.merging, run.merging.giveUpAdopting)
            try publish(&sending)
        } catch let error as StoreError where error.code == .noSpace {
            try run.during(.deleting) { try run.merging.deleteWhatIsDue(isFull: true) }
            throw error
        }
        try run.during(.deleting) {
            try run.merging.deleteWhatIsDue(listed)
            if listed != nil { try deleteUnnamedParts() }
        }
        // The new versions are sent: lack of room for larger packs is no failure.
        do { try mergePacks(listed, &sending) } catch let error as StoreError {
            if error.code == .noSpace {
                run.state.withoutRoom = run.now
            } else if error.isOfOnePack {
                sending.tell(ExchangeProblem(name: "pack1/base", error: error))
            } else {
                throw error
            }
        }
        if let problem = run.erasing.problem, !run.control.isThrifty { sending.tell(problem) }
        if run.state.withoutRoom != 0 {
            sending.tell(hasNoRoom)
            // Deleting replaced packs makes room: then the next exchange tries again.
            if run.state.withoutRoom != wasWithoutRoom { try run.during(.deleting) { try run.merging.deleteWhatIsDue(isFull: true) } }
        }
        return sending.result
    }

    /// Merges packs at the remote, unless there was recently no room for that.
    private func mergePacks(_ listed: [PackName: Int]?, _ sending: inout PackedSending) throws {
        guard !waitsForRoom else { return }
        run.state.withoutRoom = 0
        // An unfinished merge is not retried for some minutes.
        if let cut = run.state.cut, run.now - cut.at < PackedSettings.pause { return }
        try run.during(.merging) {
            try run.merging.merge()
            if run.erasing.isNeeded, !run.control.isThrifty { try run.erasing.clean() }
            if let listed, run.state.rekeying != nil, !run.control.isThrifty {
                try run.keyring.rekey(listed)
            } else if let listed, !run.control.isThrifty {
                run.merging.chooseAdoption(listed)
                try run.merging.adopt()
            }
        }
        if run.merging.mustFollow { try sending.publish(evenEmpty: true) }
    }

    /// Whether larger packs are postponed, since there was no room for one and nothing was deleted since.
    var waitsForRoom: Bool { run.state.withoutRoom != 0 && run.now - run.state.withoutRoom < PackedSettings.roomWait }

    private var hasNoRoom: ExchangeProblem {
        ExchangeProblem(
            name: "pack1/base",
            error: StoreError(
                .noSpace,
                "\(run.files.description) has no room to merge packs. What is here was sent; make room, or the number of packs grows. It "
                    + "is tried again in an hour, or when something was deleted.",
                path: "pack1/base"))
    }

    /// Sends the remaining versions, and announces to the other devices that this writer ends. Anything this device sends later has a new
    /// writer id.
    func retire() throws -> ExchangeResult {
        let result = try send(isFresh: false)
        guard run.state.attempts.contains(where: { $0.key.writer == run.state.writer && $0.value.outcome == .done }) else { return result }
        var sending = PackedSending(run)
        // Each missing number gets a pack, which readers would otherwise miss for ever.
        while run.state.healing == 0, let hole = run.state.holes.min() {
            try sending.publish(evenEmpty: true)
            guard !run.state.holes.contains(hole) else { break }
        }
        let notice = PackServices.Notice(kind: PackServices.Notice.retired, payload: PackID.bytes(of: run.state.writer))
        try sending.publish(evenEmpty: true, notices: [notice])
        run.state.becomeNewWriter(run.settings.random)
        try run.save()
        return result
    }

    var mergeFailed: StoreError {
        StoreError(
            .transport,
            "Merging the packs of other devices in \(run.files.description) failed: they are missing, or incomplete. Exchange again.")
    }

    /// Resumes the upload of a file that an earlier call or another process began, if the service kept the received part.
    private func resumeUpload(_ sending: inout PackedSending) throws {
        guard run.files.capabilities.sessionsAbove != nil, let made = try run.notes.keptUpload(by: run.state.writer) else { return }
        let name = made.name
        // Other devices may have changed the keys meanwhile.
        let isCurrent = try run.state.rekeying == nil && run.notes.session != nil && run.sealing.isCurrent(name, made.bytes)
        do {
            switch name.kind {
            case .log
            where isCurrent && name.writer == run.state.writer && run.state.attempts[name]?.outcome == .trying
                && (name.first == run.state.next || run.state.holes.contains(name.first)):
                try upload(made)
                try recordComplete(name)
                sending.tell(try run.notes.ids(of: name) ?? [])
                try run.save()
            // Large values are not sent over metered networks.
            case .blob where isCurrent && run.control.isThrifty: break
            case .blob where isCurrent && run.state.partials[name.digest]?.parts.count ?? 0 == Int(name.first): try uploadPart(made)
            // The file exists, or is no longer needed.
            default: run.notes.forgetUpload()
            }
        } catch let error as StoreError {
            if !RemoteSession.outlives(error) { run.notes.forgetUpload() }
            throw error
        }
    }

    /// Uploads a file under a unique name.
    func upload(_ made: MadePack) throws {
        // Removes the remains of interrupted uploads, at most once a day.
        if run.now < run.state.prepared || run.now - run.state.prepared >= PackedSettings.day {
            try run.files.prepareUploads(run.check)
            run.state.prepared = run.now
        }
        let data = OutgoingFile(size: made.size) { sink in for piece in made.pieces { try piece.withUnsafeBytes(sink) } }
        var upload = RemoteUpload(name: made.name.description, data: data, replaces: false)
        upload.isNamedByContent = true
        let isKept =
            made.size > run.files.capabilities.sessionsAbove ?? .max && made.name.kind != .base
            && run.notes.keep(made, by: run.state.writer)
        if isKept { upload.session = RemoteSession(kept: run.notes.session) { [notes = run.notes] in notes.keep(session: $0) } }
        let start = run.rate.now
        do {
            switch try run.files.publish([upload], run.check).first {
            case .published: run.rate.moved(made.size, since: start, .up)
            case .refused(let error): throw error
            // The response was lost, and this is a retry. A listing may be behind, so the file itself is read.
            case .exists, nil:
                guard try run.fetching.isReadBack(made.name, made.size) else {
                    run.notes.forgetUpload()
                    throw unknown(made)
                }
            }
        } catch let error as StoreError where error.code == .transport {
            guard try run.fetching.isThere(made) else {
                if isKept, !RemoteSession.outlives(error) { run.notes.forgetUpload() }
                throw error
            }
        }
        if isKept { run.notes.forgetUpload() }
    }

    /// Uploads a part of a large value, and saves that, so that an interrupted call can be resumed.
    func uploadPart(_ made: MadePack) throws {
        guard run.hasTime(for: made.size, .up) else { throw run.hasNoTime }
        try upload(made)
        var partial = run.state.partials[made.name.digest] ?? PackedState.Partial(since: run.now)
        guard partial.parts.count == Int(made.name.first) else { return }
        run.state.partSizes[made.name.id] = made.size
        partial.parts.append(PackedState.Partial.Part(id: made.name.id, size: made.size))
        run.state.partials[made.name.digest] = partial
        try run.save()
    }

    /// Returns the parts that were sent before and still exist with the same size.
    func partsThere() throws -> [PackID: [PackID]] {
        run.state.partials = run.state.partials.filter { !$0.value.isNamed || run.now - $0.value.since < PackedSettings.day }
        guard !run.state.partials.isEmpty else { return [:] }
        let listed = try run.listing.list(.blob)
        var there: [PackID: [PackID]] = [:]
        for (digest, partial) in run.state.partials {
            let parts = partial.parts.enumerated().prefix { number, part in
                let number = UInt32(truncatingIfNeeded: number)
                let size = listed[PackName(kind: .blob, digest: digest, first: number, last: number, id: part.id)]
                return size == part.size || size == PackListing.unknownSize
            }
            there[digest] = parts.map(\.element.id)
            // All other parts are sent again.
            run.state.partials[digest]?.parts.removeLast(partial.parts.count - parts.count)
        }
        return there
    }

    /// Deletes parts of large values that were never sent completely. First a full listing must show no unknown pack of this writer, since
    /// a clone might have named the parts.
    private func deleteUnnamedParts() throws {
        let old = run.state.partials.filter { !$0.value.isNamed && run.now - $0.value.since > PackedSettings.partialLife }
        for (digest, partial) in old {
            let names = partial.parts.enumerated().map { number, part in
                let number = UInt32(truncatingIfNeeded: number)
                return PackName(kind: .blob, digest: digest, first: number, last: number, id: part.id).description
            }
            do { try run.files.delete(names, run.check) } catch let error as StoreError where error.code != .cancelled { return }
            run.state.partials[digest] = nil
        }
    }

    private func unknown(_ made: MadePack) -> StoreError {
        StoreError(
            .transport, "Writing \(made.name) to \(run.files.description) failed: something else is there under its name. Exchange again.",
            path: made.name.description)
    }

    /// Saves that a pack is being uploaded, uploads it, and saves that it exists.
    /// - Parameter isWhole: verifies the file before it counts; false: it is missing or incomplete.
    func attempt(
        _ made: MadePack, _ ids: [VersionID], _ attempt: PackedState.Attempt, isWhole: () throws -> Bool = { true }
    ) throws -> Bool {
        try run.notes.put(ids, of: made.name)
        run.state.attempts[made.name] = attempt
        // Saved before, since a killed process saves nothing.
        let before = run.state.cut
        if !attempt.replaces.isEmpty { run.state.cut = PackedState.Cut(most: max(PackedSettings.leastPack, made.size / 2), at: run.now) }
        try run.save()
        do { try upload(made) } catch let error as StoreError where [.tooLarge, .noSpace].contains(error.code) {
            run.state.cut = before
            if error.code == .tooLarge {
                run.state.attempts[made.name]?.outcome = .failed
                noteRefused(made.size)
            }
            throw error
        }
        guard try isWhole() else {
            run.state.attempts[made.name]?.outcome = .failed
            return false
        }
        run.state.cut = before
        try recordComplete(made.name)
        try run.save()
        return true
    }

    /// Records that the service refuses a file of this many bytes; later packs have half.
    private func noteRefused(_ size: Int) {
        let most = max(1, min(size - 1, max(PackedSettings.leastPack, size / 2)))
        run.state.refusedSize = PackedState.RefusedSize(most: min(most, run.state.refusedSize?.most ?? .max), at: run.now)
    }

    /// Sends new versions, in smaller packs if the service refuses one as too large.
    private func publish(_ sending: inout PackedSending) throws {
        while true {
            let limit = run.packLimit
            do { return try sending.publish(evenEmpty: run.merging.mustFollow) } catch let error as StoreError
                where error.code == .tooLarge && run.packLimit < limit
            {}
        }
    }

    /// Records that an attempt is complete at the remote.
    func recordComplete(_ name: PackName) throws {
        run.state.attempts[name]?.outcome = .done
        if let ids = try run.notes.ids(of: name) { run.store.cover(ids, in: &run.there) }
        if run.state.holes.remove(name.first) == nil, name.first == run.state.next {
            if run.state.next == .max { return run.state.becomeNewWriter(run.settings.random) }
            run.state.next += 1
        }
        run.state.moved = []
        if name.kind == .log { run.listing.recordNewest(PackServices.Seen(writer: name.writer, number: name.last, id: name.id)) }
    }

    /// Returns the approximate size limit of a pack with that number. If an upload was cancelled or broke off, the pack may be too large
    /// for the time available: half of it makes progress.
    func sendLimit(_ number: UInt32) -> Int {
        let cut = run.state.attempts.filter { name, attempt in
            name.writer == run.state.writer && name.first == number && [.trying, .failed].contains(attempt.outcome)
        }
        let least = cut.values.map(\.size).min().map { max(PackedSettings.leastPack, $0 / 2) }
        // A pack may slightly exceed the requested size.
        let inTime = run.timeFor(.up).map { max(PackedSettings.leastPack, $0 / 4 * 3) }
        return min(run.packLimit, least ?? run.packLimit, inTime ?? run.packLimit)
    }

    // MARK: The root

    /// Writes a root if there is none.
    func ensureRoot() throws {
        guard run.state.roots.isEmpty else { return }
        try run.keyring.makeKeys()
        // Another device was first.
        if let doubt = run.keys?.opened?.keys.doubt { throw doubt }
        if run.keys != nil, try run.listing.listRoots() {
            // If keys were just agreed on, they open the root of the other device.
            guard run.state.roots.isEmpty else { return }
            throw run.keyring.hasNoRoot
        }
        let id = run.keys?.opened?.keys.store ?? run.state.formerStores.first ?? run.settings.random.id()
        try writeRoot(id, layout: run.place.wantsBridge ? RootText.bridged : RootText.packed)
        run.state.formerStores = []
        try run.save()
    }
    /// Writes a root, by which the values of packs may be differences.
    private func writeRoot(_ id: PackID, layout: String) throws {
        let text =
            "{\"format\":1,\"store\":\"\(id)\",\"layout\":\"\(layout)\",\"encrypted\":\(run.keys != nil),\"made\":\"\(made)\","
            + "\"differences\":1}"
        var writer = PackWriter(
            PackWriter.Identity(kind: .root, store: id, salt: run.settings.random.id(), writer: run.state.writer, first: 0, last: 0))
        try Array(text.utf8).withUnsafeBytes { try writer.add(bare: $0) }
        let root = try run.sealing.seal(writer.finish())
        try upload(root)
        run.state.roots.append(PackedState.Root(name: root.name, store: id, bytes: root.bytes))
        run.state.roots.sort { $0.name.id < $1.name.id }
    }
    /// Whether the values of packs may be differences: a root of the store to which new packs belong says so.
    var sendsDifferences: Bool {
        guard let current = run.state.roots.min(by: { $0.name.id < $1.name.id }) else { return false }
        return run.state.roots.contains {
            $0.store == current.store && (try? RootText($0.name, $0.bytes, run.sealing).hasDifferences) ?? false
        }
    }

    /// Sends the remaining versions. If no root says that the values of packs may be differences, it then writes another root of the same
    /// store that does. Roots cannot be changed, and readers of an older library ignore the member.
    func enableDifferences() throws -> ExchangeResult {
        let result = try send(isFresh: false)
        try ensureRoot()
        // Another device may have written one.
        if !sendsDifferences { _ = try run.listing.listRoots() }
        guard !sendsDifferences, let current = run.state.roots.min(by: { $0.name.id < $1.name.id }) else { return result }
        guard run.state.roots.count < PackedSettings.rootsLimit else {
            throw StoreError(
                .tooLarge,
                "Differences cannot be turned on in \(run.files.description): it has \(run.state.roots.count) roots already, which is the "
                    + "most. Make a new place.")
        }
        try writeRoot(current.store, layout: RootText(current.name, current.bytes, run.sealing).layout)
        try run.save()
        return result
    }
    private var made: String { UTCDate.text(max(0, Int64(run.settings.random.milliseconds() / 1_000))) }

    /// Rewrites known roots that were removed, if checking costs no request: without a root no new device finds the packs.
    private func keepRoots() throws {
        // A device without write access has nothing to send either; it gets the error when it has.
        do { try publishRoots([:]) } catch let error as StoreError where [.permission, .readOnly].contains(error.code) {}
    }

    /// Rewrites known roots that are missing or cut short, byte for byte.
    /// - Parameter listed: the listed roots, with their sizes.
    func publishRoots(_ listed: [PackName: Int]) throws {
        for root in run.state.roots {
            let size = listed[root.name]
            if let size, size == PackListing.unknownSize || size == root.bytes.count { continue }
            // A listing may be behind, and overwriting may tear a file: this is the only name that is ever written twice.
            let read = RemoteRead(name: root.name.description, limit: PackFormat.fileLimit(.root))
            if case .bytes(let bytes, _)? = try run.files.read([read], run.check).first, bytes == root.bytes { continue }
            var upload = RemoteUpload(name: root.name.description, data: OutgoingFile(root.bytes), replaces: size != nil)
            upload.isNamedByContent = true
            _ = try run.files.publish([upload], run.check)
        }
    }
}
