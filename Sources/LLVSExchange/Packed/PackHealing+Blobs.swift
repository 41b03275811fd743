/// Heals large values that were lost or damaged at the remote: docs/pack-format.md, section 10.
extension PackHealing {
    /// Finds parts of large values that are missing or have changed sizes, by a full listing.
    /// - Returns: whether some have been so for ten minutes.
    func lookForMissingBlobs() throws -> Bool {
        guard run.before.hasBlobs, !run.state.blobs.isEmpty else {
            run.state.missingBlobs = [:]
            return false
        }
        let parts = try listParts(), time = run.now
        var isLost = false, missing: [PackID: Int64] = [:]
        for (digest, blob) in run.state.blobs where !areWhole(blob.parts, parts) {
            let since = run.state.missingBlobs[digest] ?? time
            missing[digest] = since
            if time - since >= PackedSettings.pause { isLost = true }
        }
        run.state.missingBlobs = missing
        let named = Set(run.state.blobs.values.flatMap(\.parts)).union(run.state.partials.values.flatMap { $0.parts.map(\.id) })
        run.state.partSizes = run.state.partSizes.filter { named.contains($0.key) }
        run.state.damagedParts = run.state.damagedParts.filter { $0.value.told == 0 || time - $0.value.told < PackedSettings.attemptLife }
        return isLost
    }

    private func listParts() throws -> [PackID: Int] {
        Dictionary(try run.listing.list(.blob).map { ($0.key.id, $0.value) }) { one, other in max(one, other) }
    }

    /// Returns whether files with the right sizes are listed.
    private func areWhole(_ parts: [PackID], _ listed: [PackID: Int]) -> Bool {
        parts.allSatisfy { part in
            guard let size = listed[part] else { return false }
            return size == PackListing.unknownSize || run.state.partSizes[part].map { $0 == size } ?? true
        }
    }

    /// Returns problems for large values that have been missing for some time.
    func missingBlobs() -> [ExchangeProblem] {
        run.state.missingBlobs.filter { run.now - $0.value >= PackedSettings.pause }.keys.sorted().compactMap { digest in
            guard let blob = run.state.blobs[digest], let name = try? run.sealing.blobDigests(blob.sha256).first else { return nil }
            let text = "\(PackKind.blob.prefix)\(name)"
            var error = StoreError(
                .damaged,
                "Files of a large value in \(run.files.description) are missing, or have other sizes than they had: those that begin with "
                    + "\(text). It is sent again within an hour or two.")
            error.path = text
            return ExchangeProblem(name: text, error: error)
        }
    }

    /// Returns the problem for a damaged large value of a version that the store has.
    func loss(_ part: PackTaking.MissedPart, of id: VersionID) -> ExchangeProblem {
        let text = part.name.description
        var error = StoreError(
            .damaged,
            "The file \(text) in \(run.files.description), of a large value of the version \(id), is lost: \(part.fault.why). "
                + "The version is here, and the next send sends the value again.",
            versionID: id.description)
        error.path = text
        return ExchangeProblem(name: text, error: error)
    }

    /// Returns the fault of a part that was read. A pack that names a part was sent after the part, so a part that does not match is
    /// damaged.
    func cameOf(_ contents: RemoteContents, _ fault: PackFault) -> PackFault {
        switch contents {
        case .bytes, .large: fault.kind == .notThere ? PackFault.damaged(fault.why) : fault
        case .missing, .unreadable: fault
        }
    }

    /// Checks parts that other devices report as damaged. Any device may report any part, so only a few are checked at once, and a part
    /// that was found intact is not checked again soon.
    func lookAtClaims() throws {
        var left = PackedSettings.claimsRead
        let open = run.state.claims.filter(\.value.isOpen).sorted { ($0.value.found, $0.key) < ($1.value.found, $1.key) }
        for (part, claim) in open {
            let digest = claim.digest
            guard let blob = run.state.blobs[digest], let number = blob.parts.firstIndex(of: part) else {
                run.state.claims[part] = nil; continue
            }
            guard left > 0 else { continue }
            left -= 1
            run.state.claims[part] = PackedState.Claim(
                digest: digest, found: claim.found + 1, until: run.now + PackedSettings.claimPause(after: claim.found + 1), isOpen: false)
            for name in try run.sealing.blobDigests(blob.sha256) {
                let number = UInt32(truncatingIfNeeded: number)
                let name = PackName(kind: .blob, digest: name, first: number, last: number, id: part)
                let read = RemoteRead(name: name.description, limit: PackFormat.fileLimit(.blob))
                let contents = try run.files.read([read], run.check).first ?? .missing
                do {
                    _ = try PackFile(
                        name, run.fetching.bytes(contents, atMost: PackFormat.fileLimit(.blob)), stores: run.state.stores,
                        sealing: run.sealing)
                } catch let fault as PackFault {
                    let fault = cameOf(contents, fault)
                    guard fault.kind == .damaged else { continue }
                    run.state.claims[part] = nil
                    let ids = try versions(naming: [digest: blob])
                    guard !ids.isEmpty else { break }
                    run.state.lose(digest)
                    run.store.uncover(Array(ids), in: &run.there) {}
                    run.found.problems += ids.sorted().prefix(1).map { loss(PackTaking.MissedPart(name: name, fault: fault), of: $0) }
                }
                break
            }
        }
    }

    /// - Parameter packs: the listed packs, with the versions in their indexes.
    /// - Returns: the versions of the store for which no pack names existing large values.
    func loseBlobs(_ packs: [PackName: (size: Int, ids: [VersionID])]) throws -> Set<VersionID> {
        guard !run.state.blobs.isEmpty else { return [] }
        let parts = try listParts()
        let lost = run.state.blobs.filter { !areWhole($0.value.parts, parts) }
        guard !lost.isEmpty else { return [] }
        let gone = Set(lost.values.flatMap(\.parts))
        for digest in lost.keys { run.state.lose(digest) }
        var versions = try versions(naming: lost)
        // Another device may have sent them again.
        for (name, pack) in packs.sorted(by: { $0.key.id < $1.key.id }) where pack.ids.contains(where: versions.contains) {
            do {
                let file = try run.fetching.whole(name, pack.size)
                for entry in file.index.versions where versions.contains(entry.id) {
                    let named = try references(of: entry, in: file)
                    let areThere = named.allSatisfy { areWhole($0.parts, parts) && gone.isDisjoint(with: $0.parts) }
                    guard !named.isEmpty, areThere else { continue }
                    versions.remove(entry.id)
                    for blob in named where run.state.blobs.count < PackFormat.blobsLimit { run.state.know(blob, hasOlderKeys: false) }
                }
            } catch is PackFault { continue }
        }
        return versions
    }

    /// Returns the large values that a version names. For a version that is itself stored as a large value, returns that value.
    private func references(of entry: PackIndex.VersionEntry, in file: PackFile) throws -> [BlobReference] {
        let payload = try file.payload(of: entry)
        if case .outside(let blob) = try payload.withUnsafeBytes(PackedVersion.form) { return [blob] }
        return Array(try PackedVersion.contents(entry.id, payload).blobs.values)
    }

    /// Returns the versions of the store that name one of some large values. If no version does, returns those that may themselves be
    /// stored as large values.
    private func versions(naming blobs: [PackID: BlobReference]) throws -> Set<VersionID> {
        var found: Set<VersionID> = [], outside: Set<VersionID> = [], values: Set<PackID> = []
        let sizes = Set(blobs.values.map(\.size)), paced = run.control.paced(.listing, doing: run.what)
        for id in try run.store.missing(from: run.store.coverage(behind: []), paced.look) {
            guard let version = try run.store.version(id), version.valueDataSize > UInt64(PackFormat.smallestBlob) else { continue }
            let record = try PackRecord(id, of: run.store)
            var size = record.fixedSize
            try record.forEachChange { _, entry in
                try paced.step(0)
                let isValue = entry.kind == .insert || entry.kind == .update
                size += PackRecord.size(entry, isBlob: isValue && entry.size > PackFormat.smallestBlob)
                guard isValue, !entry.isHollow, sizes.contains(UInt64(entry.size)), let digest = PackID(try record.digest(entry)) else {
                    return
                }
                guard blobs[digest] != nil else { return }
                values.insert(digest)
                found.insert(id)
            }
            if size > PackFormat.recordLimit - 1_024 { outside.insert(id) }
        }
        return values.count == blobs.count ? found : found.union(outside)
    }
}

extension PackServices.Notice {
    init(damaged part: PackID, of digest: PackID) { self.init(kind: Self.damagedPart, payload: digest.bytes + part.bytes) }
    /// The large value and the part.
    var damagedPart: (digest: PackID, part: PackID)? {
        let size = PackID.size
        guard payload.count == 2 * size, let digest = PackID(payload[..<size]), let part = PackID(payload[size...]) else { return nil }
        return (digest, part)
    }
}
