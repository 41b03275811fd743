/// Sending all that lies at an encrypted remote anew, with its newest keys: docs/encryption.md, section 6.
extension PackedRun {
    /// Bytes of a pack that one other is put into, where keys are the reason: it need not be as small as others.
    var rekeyLimit: Int? {
        state.rekeying != nil ? min(PackFormat.fileLimit(.base) - (1 << 20), files.capabilities.largestFile ?? .max) : nil
    }

    /// Begins: retrieves what is there, and sends it anew. Later exchanges go on, and delete what was replaced.
    /// - Parameter renews: whether a new epoch begins before.
    /// - Returns: how many packs with older keys are there still.
    func rekey(renews: Bool) throws -> Int {
        if renews {
            try change { keys, place, clock, crypto in try keys.rotating("the keys were renewed", in: place, clock, crypto) }
        }
        state.rekeying = PackedState.Rekeying(epoch: try currentKeys.current.number, since: now)
        // Somebody asks for it, and waits.
        state.withoutRoom = 0
        state.cut?.at = now - PackedSettings.pause
        try save()
        mustListFully = true
        _ = try retrieve(verifyKnown: false)
        guard let listed = listedInFull else { return 0 }
        let sent = try send(isFresh: true, listed: listed)
        if let failed = sent.problems.first(where: { $0.name == "pack1/base" }) { throw failed.error }
        return try ofOlderKeys(listed).count
    }

    /// The packs with other keys than those that are written with.
    /// - Parameter unknownToo: also those whose keys are not here: they may be newer.
    private func ofOlderKeys(_ names: [PackName: Int], unknownToo: Bool = true) throws -> [PackName] {
        let all = names.keys.sorted { ($0.writer, $0.last, $0.id) < ($1.writer, $1.last, $1.id) }, sealing = sealing
        var older: [PackName] = []
        for start in stride(from: 0, to: all.count, by: PackedSettings.filesAtOnce) {
            let some = all[start..<min(all.count, start + PackedSettings.filesAtOnce)]
            let reads = some.map { name in
                let size = names[name] ?? 0
                return RemoteRead(
                    name: name.description, range: 0..<(size > 0 ? min(size, PackedSettings.head) : PackedSettings.head),
                    limit: PackFormat.fileLimit(.base))
            }
            for (name, contents) in try zip(some, files.read(reads, check)) {
                // What is no pack is nobody's, and stays. What the service does not give now may be one with older keys.
                do {
                    if try !sealing.isCurrent(name, bytes(contents, atMost: PackFormat.fileLimit(.base))) { older.append(name) }
                } catch let fault as PackFault {
                    if unknownToo, fault.kind == .keyMissing || fault.refusal != nil { older.append(name) }
                }
            }
        }
        return older
    }

    /// Sends anew what lies there with older keys; when all of it is gone, large values with these go, too.
    /// - Parameter listed: all packs there are.
    func rekey(_ listed: [PackName: Int]) throws {
        guard let epoch = try state.rekeying.map({ _ in try currentKeys.current.number }) else { return }
        if state.rekeying?.epoch != epoch { state.rekeying = PackedState.Rekeying(epoch: epoch, since: now) }
        guard !leavesTooMany(listed) else { return }
        let older = try ofOlderKeys(listed), since = state.rekeying?.since ?? now
        var group: [PackName] = [], size = 64 << 10
        func finish() throws {
            guard !group.isEmpty else { return }
            state.adopting = group
            (group, size) = ([], 64 << 10)
            state.rekeying?.since = now
            try save()
            try adopt()
            guard state.adopting.isEmpty else { throw isNotPutTogether }
        }
        for name in older where try canBeSentAnew(name, since) {
            let own = max(listed[name] ?? 0, state.attempts[name]?.size ?? 0)
            // A single one cannot be made smaller: it waits until that is forgotten.
            if let cut = state.cut, own > cut.most { continue }
            if size + own > mergeLimit || group.count >= PackFormat.entriesLimit / 4 { try finish() }
            group.append(name)
            size += own
        }
        try finish()
        // A file that is never whole, or nobody's, holds this up for some time, and not for ever.
        guard now - since > (older.isEmpty ? PackedSettings.baseGrace : PackedSettings.attemptLife) else { return }
        guard try deleteOlderBlobs(listed) || now - since > PackedSettings.attemptLife else { return }
        // Their parts may be gone, whoever sent them anew.
        for digest in state.oldBlobs { state.blobs[digest] = nil }
        state.oldBlobs = []
        state.rekeying = nil
        try save()
    }

    /// Whether all of it is here, and nobody is about to delete it.
    private func canBeSentAnew(_ name: PackName, _ since: Int64) throws -> Bool {
        guard state.isKnown(name), state.waiting[name] == nil, state.bad[name] == nil, state.deletions[name] == nil else { return false }
        if let attempt = state.attempts[name] { return try attempt.outcome != .folded && notes.ids(of: name) != nil }
        // Whoever replaced it deletes it, unless it is gone.
        return state.read[name]?.isReplaced != true || now - since > PackedSettings.baseGrace
    }

    /// Parts of large values with older keys that no pack names which is there.
    /// - Returns: false: another time.
    private func deleteOlderBlobs(_ listed: [PackName: Int]) throws -> Bool {
        let parts = try list(.blob), older = try ofOlderKeys(parts, unknownToo: false)
        guard !older.isEmpty else { return true }
        var named: Set<PackID> = []
        // Listed after the parts: a pack that came since `listed` was made names parts, too.
        let packs = try list(.log).merging(list(.base)) { size, _ in size }.merging(listed) { size, _ in size }
        for (name, size) in packs {
            let file: PackFile
            do { file = try whole(name, size) } catch let fault as PackFault {
                // What the service does not give now is there, and names what it names.
                if fault.refusal != nil { return false }
                // A pack that is damaged as a whole, or that was deleted since, names nothing.
                if fault.kind == .damaged || (fault.kind == .notThere && listed[name] != nil) { continue }
                return false
            }
            // Nobody knows what a pack names that cannot be read to its end.
            do { named.formUnion(try partsNamed(in: file)) } catch is PackFault { return false }
        }
        let gone = older.filter { !named.contains($0.id) }
        for start in stride(from: 0, to: gone.count, by: 1_000) {
            let some = gone[start..<min(gone.count, start + 1_000)]
            do { try files.delete(some.map(\.description), check) } catch let error as StoreError where error.code != .cancelled {
                // Where nothing may be deleted, they stay; else it is tried again.
                guard error.code == .permission || [405, 501].contains(error.httpStatus) else { return false }
                break
            }
        }
        return true
    }

    private func partsNamed(in file: PackFile) throws -> Set<PackID> {
        var named: Set<PackID> = []
        let spool = SpooledBlobs(store.storage), blobs = PackedBlobs(self)
        for (number, entries) in Dictionary(grouping: file.index.versions, by: \.place.block) {
            let raw = try file.block(Int(number))
            for entry in entries {
                try check()
                let payload = try raw.withUnsafeBytes { Array(try PackFile.payload(entry.place, PackRecordType.version, in: $0)) }
                if case .outside(let blob) = try payload.withUnsafeBytes(PackedVersion.form) {
                    named.formUnion(blob.parts)
                    guard try blobs.fetch(blob, into: spool), let read = try spool.read(blob) else {
                        throw PackFault.notThere("a large value of it is missing")
                    }
                    named.formUnion(try PackedVersion.contents(entry.id, size: Int(blob.size), read).blobs.values.flatMap(\.parts))
                    spool.removeAll()
                    continue
                }
                let found = try PackedVersion.contents(entry.id, size: payload.count) { offset, buffer in
                    payload.withUnsafeBytes {
                        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + buffer.count]))
                    }
                }
                named.formUnion(found.blobs.values.flatMap(\.parts))
            }
        }
        return named
    }
}
