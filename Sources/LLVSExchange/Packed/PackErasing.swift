/// Erases at a place: packs that have bytes which orders name are written again without them, and deleted at once: docs/pack-format.md,
/// "Erased values".
struct PackErasing {
    let run: PackedRun

    /// Returns whether orders came since all packs of the place were noted.
    func areOrdersNew() throws -> Bool { try mark() != run.state.erasing.mark }
    /// Names the orders that are followed here and count for others; zero if there are none.
    private func mark() throws -> PackID { try run.store.orders.mark().flatMap { PackID($0) } ?? .zero }

    /// Notes all packs of a full listing, if orders came since this was done last.
    func note(_ listed: [PackName: Int]) throws {
        let mark = try mark()
        guard mark != run.state.erasing.mark else { return }
        run.state.erasing.mark = mark
        let packs = listed.filter { $0.key.kind == .log || $0.key.kind == .base }
        run.state.erasing.packs = mark == .zero ? [:] : packs.mapValues { max(0, $0) }
        run.state.erasing.mustLookForParts = mark != .zero
    }

    /// Notes a pack that was read, if it has versions that orders name.
    func note(_ name: PackName, _ size: Int, _ versions: [PackIndex.VersionEntry]) throws {
        let erased = try run.store.orders.erasedAtPlaces()
        guard !erased.isEmpty, versions.contains(where: { erased[$0.id] != nil }) else { return }
        run.state.erasing.packs[name] = max(0, size)
        run.state.erasing.mustLookForParts = true
    }

    /// Follows the orders in packs that this device has not read, before it sends.
    /// - Parameter listed: the packs that exist.
    func followOrders(in listed: [PackName: Int]) throws {
        var found: [Store.ReceivedVersion] = []
        for (name, size) in listed where !run.state.isKnown(name) && run.state.bad[name] == nil {
            try run.check()
            do {
                let file = try run.fetching.whole(name, size)
                for entry in file.index.versions {
                    let payload = try file.payload(of: entry)
                    guard case .inside = try payload.withUnsafeBytes(PackedVersion.form) else { continue }
                    let version = try PackedVersion.orders(in: PackedVersion.contents(entry.id, payload), payload)
                    if let version { found.append(version) }
                }
            } catch is PackFault {
                // The next retrieve reports it.
            }
        }
        if !found.isEmpty { try run.store.orders.follow(found) }
    }

    /// Whether packs or parts at the place may have bytes that orders name.
    var isNeeded: Bool {
        !run.state.erasing.packs.isEmpty || run.state.erasing.mustLookForParts || !run.state.erasing.parts.isEmpty
    }

    /// Whether all packs of the place were noted since the last order came, and none has bytes that orders name.
    var isClean: Bool { get throws { try !areOrdersNew() && !isNeeded } }

    /// Replaces the noted packs that have bytes which orders name, and deletes them, and then the parts of large values with such bytes.
    func clean() throws {
        if !run.state.erasing.packs.isEmpty { try cleanPacks() }
        if run.state.erasing.packs.isEmpty, isNeeded { try cleanParts() }
        try run.save()
    }

    private func cleanPacks() throws {
        let erased = try run.store.orders.erasedAtPlaces()
        var group: [PackName] = [], size = 64 << 10
        func finish() throws {
            guard !group.isEmpty else { return }
            run.state.adopting = group
            (group, size) = ([], 64 << 10)
            try run.save()
            try run.merging.adopt()
            guard run.state.adopting.isEmpty else { throw run.publishing.mergeFailed }
        }
        let noted = run.state.erasing.packs.sorted { ($0.key.writer, $0.key.last, $0.key.id) < ($1.key.writer, $1.key.last, $1.key.id) }
        for (name, listed) in noted where run.state.deletions[name] == nil {
            guard try hasBytes(name, listed, erased) else { run.state.erasing.packs[name] = nil; continue }
            guard try canBeReplaced(name, listed) else { continue }
            let own = max(listed, run.state.attempts[name]?.size ?? 0)
            if size + own > run.mergeLimit || group.count >= PackFormat.entriesLimit / 4 { try finish() }
            group.append(name)
            size += own
        }
        try finish()
        // Packs that this device replaced before may have the bytes, too.
        for name in run.state.erasing.packs.keys where run.state.deletions[name] != nil {
            run.state.deletions[name] = PackedState.Deletion(due: run.now, exchange: 0)
        }
        try run.save()
        try run.during(.deleting) { try run.merging.deleteWhatIsDue() }
        let there = try run.listing.list(.log).merging(run.listing.list(.base)) { one, _ in one }
        run.state.erasing.packs = run.state.erasing.packs.filter { there[$0.key] != nil }
    }

    /// Returns whether a pack has bytes that orders name. Notes the files in which versions of it are.
    private func hasBytes(_ name: PackName, _ size: Int, _ erased: [VersionID: [Int]]) throws -> Bool {
        if run.state.attempts[name] != nil, let ids = try run.notes.ids(of: name), !ids.contains(where: { erased[$0] != nil }) {
            return false
        }
        let file: PackFile
        do { file = try run.fetching.whole(name, size > 0 ? size : PackListing.unknownSize) } catch is PackFault { return true }
        for entry in file.index.versions {
            guard let indexes = erased[entry.id] else { continue }
            try run.check()
            do {
                let payload = try file.payload(of: entry)
                if case .outside(let blob) = try payload.withUnsafeBytes(PackedVersion.form) {
                    // Which of its changes have bytes is not known without reading it.
                    run.state.erasing.parts.formUnion(blob.parts)
                    return true
                }
                if try PackedVersion.hasBytes(of: Set(indexes), in: PackedVersion.contents(entry.id, payload), payload) { return true }
            } catch is PackFault { return true }
        }
        return false
    }

    /// Returns whether the store has all of a pack, except for what orders name.
    private func canBeReplaced(_ name: PackName, _ size: Int) throws -> Bool {
        guard run.state.isKnown(name), run.state.waiting[name] == nil, run.state.bad[name] == nil else { return false }
        let ids: [VersionID]
        if let attempt = run.state.attempts[name] {
            guard attempt.outcome != .replaced, let held = try run.notes.ids(of: name) else { return false }
            ids = held
        } else {
            do {
                ids = try run.fetching.end(name, size > 0 ? size : PackListing.unknownSize).0.versions.map(\.id)
            } catch is PackFault { return false }
        }
        return try run.store.unknown(among: ids).isEmpty && !ids.contains { try run.store.orders.hasForgotten($0) }
    }

    /// Deletes the files of large values that orders name, unless another value has the same bytes, and of versions of replaced packs.
    private func cleanParts() throws {
        var digests: Set<PackID> = [], erased: Set<PackID> = []
        try run.store.orders.forEachErased { size, sha256 in
            guard size > PackFormat.smallestBlob, let digest = PackID(sha256) else { return }
            erased.insert(digest)
        }
        if !erased.isEmpty { erased.subtract(try held(among: erased)) }
        try run.store.orders.forEachErased { size, sha256 in
            guard let digest = PackID(sha256), erased.contains(digest) else { return }
            digests.formUnion(try run.sealing.blobDigests(sha256))
            // No pack names them any more.
            run.state.lose(digest)
        }
        if !digests.isEmpty || !run.state.erasing.parts.isEmpty {
            let names = try run.listing.list(.blob).keys.filter { digests.contains($0.digest) || run.state.erasing.parts.contains($0.id) }
            for start in stride(from: 0, to: names.count, by: 1_000) {
                try run.files.delete(names[start..<min(names.count, start + 1_000)].map(\.description), run.check)
            }
            for digest in digests { run.state.partials[digest] = nil }
        }
        run.state.erasing.parts = []
        run.state.erasing.mustLookForParts = false
    }

    /// Returns those of these values whose bytes the store has, under whatever id.
    private func held(among digests: Set<PackID>) throws -> Set<PackID> {
        let paced = run.control.paced(.listing, doing: run.what)
        var held: Set<PackID> = []
        for id in try run.store.versions(withMoreThan: UInt64(PackFormat.smallestBlob), paced.look) {
            let record = try PackRecord(id, of: run.store)
            try record.forEachChange { _, entry in
                try paced.step(0)
                guard entry.kind == .insert || entry.kind == .update, !entry.isHollow, entry.size > PackFormat.smallestBlob,
                    let digest = PackID(try record.digest(entry)), digests.contains(digest)
                else { return }
                held.insert(digest)
            }
        }
        return held
    }

    /// Says that bytes which orders name are still at the place; nil if they are not.
    var problem: ExchangeProblem? {
        // What this device has not read yet may be clean.
        let packs = run.state.erasing.packs
        guard packs.isEmpty ? isNeeded : packs.keys.contains(where: run.state.isKnown) else { return nil }
        let why =
            run.state.refusesDeletes
            ? "the place does not allow deleting. Delete there by other means, or grant this device the right"
            : "this device lacks a part of the packs that have them, or these could not be replaced now. A later exchange tries again"
        return ExchangeProblem(
            name: "pack1",
            error: StoreError(
                .erased, "\(run.files.description) still has bytes that an order to erase names: \(why).", path: "pack1"))
    }
}
