/// Rewrites all data at an encrypted remote with its newest keys: docs/encryption.md, section 6.
extension PlaceKeyring {
    /// The size limit of a pack that rewrites a single one for new keys: it may be larger than others.
    var rekeyLimit: Int? {
        guard run.state.rekeying != nil || run.erasing.isNeeded else { return nil }
        return min(PackFormat.fileLimit(.base) - (1 << 20), run.files.capabilities.largestFile ?? .max)
    }

    /// Begins rewriting: retrieves what is there, and sends it again. Later exchanges continue, and delete the replaced packs.
    /// - Parameter renews: whether a new epoch begins before.
    /// - Returns: the number of packs that still have older keys.
    func rekey(renews: Bool) throws -> Int {
        if renews {
            try change { keys, place, clock, crypto in try keys.rotating("the keys were renewed", in: place, clock, crypto) }
        }
        run.state.rekeying = PackedState.Rekeying(epoch: try currentKeys.current.number, since: run.now)
        // A caller requested it and waits.
        run.state.withoutRoom = 0
        run.state.cut?.at = run.now - PackedSettings.pause
        try run.save()
        _ = try run.retrieve(verifyKnown: false, listsAll: true)
        guard let listed = run.found.packs else { return 0 }
        let sent = try run.publishing.send(isFresh: true, listed: listed)
        if let failed = sent.problems.first(where: { $0.name == "pack1/base" }) { throw failed.error }
        return try ofOlderKeys(listed).count
    }

    /// Returns the packs that have other keys than the current ones.
    /// - Parameter unknownToo: whether to include packs whose keys this device lacks, which may be newer.
    private func ofOlderKeys(_ names: [PackName: Int], unknownToo: Bool = true) throws -> [PackName] {
        let all = names.keys.sorted { ($0.writer, $0.last, $0.id) < ($1.writer, $1.last, $1.id) }, sealing = run.sealing
        var older: [PackName] = []
        for start in stride(from: 0, to: all.count, by: PackedSettings.filesAtOnce) {
            let some = all[start..<min(all.count, start + PackedSettings.filesAtOnce)]
            let reads = some.map { name in
                let size = names[name] ?? 0
                return RemoteRead(
                    name: name.description, range: 0..<(size > 0 ? min(size, PackedSettings.head) : PackedSettings.head),
                    limit: PackFormat.fileLimit(.base))
            }
            for (name, contents) in try zip(some, run.files.read(reads, run.check)) {
                // Files that are no packs stay. A file that the service withholds at present may have older keys.
                do {
                    if try !sealing.isCurrent(name, run.fetching.bytes(contents, atMost: PackFormat.fileLimit(.base))) {
                        older.append(name)
                    }
                } catch let fault as PackFault {
                    if unknownToo, fault.kind == .keyMissing || fault.refusal != nil { older.append(name) }
                }
            }
        }
        return older
    }

    /// Rewrites packs with older keys. After all of them are gone, deletes large values with older keys.
    /// - Parameter listed: all existing packs.
    func rekey(_ listed: [PackName: Int]) throws {
        guard let epoch = try run.state.rekeying.map({ _ in try currentKeys.current.number }) else { return }
        if run.state.rekeying?.epoch != epoch { run.state.rekeying = PackedState.Rekeying(epoch: epoch, since: run.now) }
        guard !run.merging.leavesTooMany(listed) else { return }
        let older = try ofOlderKeys(listed), since = run.state.rekeying?.since ?? run.now
        var group: [PackName] = [], size = 64 << 10
        func finish() throws {
            guard !group.isEmpty else { return }
            run.state.adopting = group
            (group, size) = ([], 64 << 10)
            run.state.rekeying?.since = run.now
            try run.save()
            try run.merging.adopt()
            guard run.state.adopting.isEmpty else { throw run.publishing.mergeFailed }
        }
        for name in older where try canBeSentAnew(name, since) {
            let own = max(listed[name] ?? 0, run.state.attempts[name]?.size ?? 0)
            // A single pack cannot be made smaller: it waits until the limit expires.
            if let cut = run.state.cut, own > cut.most { continue }
            if size + own > run.mergeLimit || group.count >= PackFormat.entriesLimit / 4 { try finish() }
            group.append(name)
            size += own
        }
        try finish()
        // A file that never becomes complete, or is no pack, delays this for some time, but not for ever.
        guard run.now - since > (older.isEmpty ? PackedSettings.baseGrace : PackedSettings.attemptLife) else { return }
        guard try deleteOlderBlobs(listed) || run.now - since > PackedSettings.attemptLife else { return }
        // Parts of these values may be gone, whichever device rewrote the values.
        for digest in run.state.oldBlobs { run.state.blobs[digest] = nil }
        run.state.oldBlobs = []
        run.state.rekeying = nil
        try run.save()
    }

    /// Returns whether the store has all of it, and no device is about to delete it.
    private func canBeSentAnew(_ name: PackName, _ since: Int64) throws -> Bool {
        guard run.state.isKnown(name), run.state.waiting[name] == nil, run.state.bad[name] == nil, run.state.deletions[name] == nil else {
            return false
        }
        if let attempt = run.state.attempts[name] { return try attempt.outcome != .replaced && run.notes.ids(of: name) != nil }
        // The device that replaced it deletes it, unless that device is gone.
        return run.state.read[name]?.isReplaced != true || run.now - since > PackedSettings.baseGrace
    }

    /// Deletes parts of large values with older keys that no existing pack names.
    /// - Returns: false: try again later.
    private func deleteOlderBlobs(_ listed: [PackName: Int]) throws -> Bool {
        let parts = try run.listing.list(.blob), older = try ofOlderKeys(parts, unknownToo: false)
        guard !older.isEmpty else { return true }
        var named: Set<PackID> = []
        // Listed after the parts: packs that came after `listed` also name parts.
        let packs = try run.listing.list(.log).merging(run.listing.list(.base)) { size, _ in size }.merging(listed) { size, _ in size }
        for (name, size) in packs {
            let file: PackFile
            do { file = try run.fetching.whole(name, size) } catch let fault as PackFault {
                // A pack that the service withholds exists and still names parts.
                if fault.refusal != nil { return false }
                // A pack that is damaged as a whole, or was deleted since, names nothing.
                if fault.kind == .damaged || (fault.kind == .notThere && listed[name] != nil) { continue }
                return false
            }
            // A pack that cannot be read to its end may name any part.
            do { named.formUnion(try partsNamed(in: file)) } catch is PackFault { return false }
        }
        let gone = older.filter { !named.contains($0.id) }
        for start in stride(from: 0, to: gone.count, by: 1_000) {
            let some = gone[start..<min(gone.count, start + 1_000)]
            do { try run.files.delete(some.map(\.description), run.check) } catch let error as StoreError where error.code != .cancelled {
                // If deletion is forbidden, they stay; otherwise it is retried.
                guard error.code == .permission || [405, 501].contains(error.httpStatus) else { return false }
                break
            }
        }
        return true
    }

    private func partsNamed(in file: PackFile) throws -> Set<PackID> {
        var named: Set<PackID> = []
        let spool = SpooledBlobs(run.store.storage), blobs = PackedBlobs(run)
        for (number, entries) in Dictionary(grouping: file.index.versions, by: \.place.block) {
            let raw = try file.block(Int(number))
            for entry in entries {
                try run.check()
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
