/// The report of reading everything again.
public struct VerifyReport: Sendable {
    /// Versions that were read and are valid.
    public var versions: UInt64 = 0
    /// Values whose bytes were read and are valid.
    public var values: UInt64 = 0
    /// Values whose bytes are gone by intent: their versions have only size and digest. They are no damage, and not among `values`.
    public var forgotten: UInt64 = 0
    /// Versions whose ancestry is incomplete.
    public var pending: UInt64 = 0
    /// Versions that the id of a head vouches for: there is a path from the head to the version on which all ids are derived from the
    /// versions' content, so none of them can have been replaced since the head was made.
    public var vouched: UInt64 = 0
    /// All other versions. A caller or another implementation gave their id, or an id on each path to them, or their content is damaged.
    public var unvouched: UInt64 = 0
    /// The places whose bytes differ from what was written, and what is lost with them.
    public var damages: [StorageDamage] = []
    /// Files that end in bytes that count as never written, or without a mark that they are complete, and that no process of this machine
    /// is writing. A process was killed, another machine has not finished, or the file was truncated or damaged at its end.
    public var unfinished: [StorageDamage] = []
    /// Whether nothing is damaged.
    public var isWhole: Bool { damages.isEmpty }
    /// Whether nothing is damaged, and nothing can be missing either.
    public var isComplete: Bool { damages.isEmpty && unfinished.isEmpty && pending == 0 }
}

extension Store {
    /// Reads every record and every value, and compares the caches of the history and of maps with them.
    package func verifyRecords(_ control: OperationControl) throws -> VerifyReport {
        try RecordVerification(store: self).verifyRecords(control)
    }
}

/// Verifies the records of a store.
struct RecordVerification {
    let store: Store

    func verifyRecords(_ control: OperationControl) throws -> VerifyReport {
        try store.reloadHistory(control: control)
        store.noteUsedSegments()
        var verification = Verification(caches: Store.CacheVerification(rows: store.lock.withRead { store.caches.rows }))
        // Without the commit lock, since the progress callback may use the store.
        try store.storage.verify(control, found: { try verify($0, &verification, control) }, damage: { verification.met.append($0) })
        try settle(&verification, control)
        try store.countVouched(verification.whole, &verification.report, control.paced(.verifying, doing: "Verifying").look)
        return verification.report
    }

    /// The results of a verification so far.
    private struct Verification {
        var report = VerifyReport()
        /// A record may exist twice: after a compaction, a repair, or merging two copies.
        var seen: Set<VersionID> = []
        /// The versions with a completely valid record.
        var whole: Set<VersionID> = []
        /// The damages that the storage reported.
        var met: [StorageDamage] = []
        var caches: Store.CacheVerification
        var ancestry = KnownAncestry()
        /// The large values that were read and are valid: records may name each any number of times.
        var blobs: Set<CheckedBlob> = []
    }
    private struct CheckedBlob: Hashable { let blob: BlobID, size: Int, digest: [UInt8] }

    private func verify(_ record: ScannedRecord, _ verification: inout Verification, _ control: OperationControl) throws {
        do {
            let header = try store.records.header(record.place, prefix: record.prefix)
            store.lock.withRead { verification.caches.met(header, in: store.dag) }
            let before = verification.report.damages.count
            let forgotten = verification.report.forgotten
            let values = try verifyValues(record.place, &verification.report, &verification.ancestry, &verification.blobs, control)
            if !verification.report.damages[before...].contains(where: { $0.lost != .nothing }) { verification.whole.insert(header.id) }
            // If a version has several records, some with hollow changes, the one that the store reads counts.
            let isRead = store.lock.withRead {
                store.dag.ordinal(of: header.id).map { store.dag.rows[Int($0)].place == record.place } ?? true
            }
            if !isRead { verification.report.forgotten = forgotten }
            if isRead || !header.hasHollow, verification.seen.insert(header.id).inserted {
                verification.report.versions += 1
                verification.report.values += values
            }
            try control.check(.verifying, Int(verification.report.versions), of: 0, doing: "Verifying")
        } catch let error as StoreError where error.code.isOfOne {
            verification.report.add(error, at: record.place, in: store.storage, lost: .version)
        }
    }

    /// Reads the values of a record, and reports each damaged one. Returns the number of valid ones.
    private func verifyValues(
        _ place: RecordPlace, _ report: inout VerifyReport, _ ancestry: inout KnownAncestry, _ blobs: inout Set<CheckedBlob>,
        _ control: OperationControl
    ) throws -> UInt64 {
        var values: UInt64 = 0, unchecked = 0, sum: UInt64 = 0, strangers: Set<VersionID>?
        let version = try store.records.header(place).version
        var check = try ContentCheck(version, changeCount: store.records.header(place).changeCount)
        try store.records.forEachChange(place) { entry, header in
            if entry.kind == .preserve {
                let none =
                    try strangers ?? self.strangers(among: header, &ancestry, control.within(.verifying, Int(report.versions), of: 0))
                strangers = none
                try verifyPreserve(entry, header, place, strangers: none, &report)
            }
            guard entry.kind == .insert || entry.kind == .update else {
                check?.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil)
                return
            }
            sum &+= UInt64(entry.size)
            if entry.isHollow, let digest = entry.digest {
                check?.add(setting: entry.id, size: entry.size, digest: digest)
                report.forgotten += 1
                return
            }
            let checked = entry.blob.flatMap { blob in
                entry.digest.map { CheckedBlob(blob: blob, size: entry.size, digest: Array($0)) }
            }
            if let checked, blobs.contains(checked) {
                checked.digest.withUnsafeBytes { check?.add(setting: entry.id, size: entry.size, digest: $0) }
                values += 1
                return
            }
            do {
                try store.records.withValue(entry, in: place, of: header.id) { bytes in
                    guard check != nil || entry.digest != nil else { return }
                    let words = SHA256.words(bytes)
                    try withUnsafeBytes(of: words) { found in
                        if let digest = entry.digest, !digest.elementsEqual(found) {
                            throw store.records.damaged(
                                place, "has a digest that its value does not have", version: header.id, value: entry.id)
                        }
                        check?.add(setting: entry.id, size: entry.size, digest: found)
                    }
                }
                values += 1
                if let checked { blobs.insert(checked) }
            } catch let error as StoreError where error.code.isGone {
                // The base of a difference has no bytes.
                if let digest = entry.digest { check?.add(setting: entry.id, size: entry.size, digest: digest) } else { check = nil }
                report.forgotten += 1
            } catch let error as StoreError where error.code.isOfOne {
                report.add(
                    error, at: place, in: store.storage, version: header.id, value: ValueID(unchecked: entry.id),
                    blob: entry.blob == nil ? nil : error.path, lost: .value)
                // Without all values, the digest cannot be computed.
                check = nil
            }
            unchecked += entry.size
            guard unchecked >= OperationControl.bytesPerCheck else { return }
            unchecked = 0
            try control.check(.verifying, Int(report.versions), of: 0, doing: "Verifying")
        }
        let (file, offset) = store.storage.location(place), id = version.id
        if version.valueDataSize != sum {
            report.damages.append(
                StorageDamage(
                    file: file, offset: offset,
                    message:
                        "Version \(id) records that it stored \(version.valueDataSize) bytes of values, and stored \(sum). "
                        + "All of it can be read; the writer of the record made a mistake.",
                    version: id, lost: .nothing))
        }
        if let found = check?.finish(), id.text != nil || store.settled(found, version) == .none {
            report.damages.append(
                StorageDamage(
                    file: file, offset: offset,
                    message:
                        "The record of version \(id) does not match the id: "
                        + "another version was written under it, or it was changed. The genuine version is not in the store.",
                    version: id, lost: .version))
        }
        return values
    }

    /// Returns the versions that a record's preserves name and that are present, but none of its ancestors.
    private func strangers(among header: RecordHeader, _ ancestry: inout KnownAncestry, _ control: OperationControl) throws -> Set<
        VersionID
    > {
        let paced = control.paced(.verifying, doing: "Verifying")
        let (predecessors, named) = store.lock.withRead {
            (header.predecessors.compactMap { store.dag.ordinal(of: $0) }, header.dependencies.map { ($0, store.dag.ordinal(of: $0)) })
        }
        guard predecessors.count == header.predecessors.count else { return [] }
        var strangers: Set<VersionID> = []
        for case (let id, let ordinal?) in named {
            try paced.step(0)
            if try !ancestry.contains(ordinal, behind: predecessors, in: store, paced.look) { strangers.insert(id) }
        }
        return strangers
    }

    /// Reports a preserve that names a present version which stored no bytes under that id, or which is not an ancestor.
    private func verifyPreserve(
        _ entry: RecordTable.Entry, _ header: RecordHeader, _ place: RecordPlace, strangers: Set<VersionID>, _ report: inout VerifyReport
    ) throws {
        let stored = header.dependencies[entry.dependency]
        guard let other = store.lock.withRead({ store.dag.ordinal(of: stored).map { store.dag.rows[Int($0)].place } }) else { return }
        do {
            let found = try store.records.findChange(other, entry.id)
            if found?.kind == .insert || found?.kind == .update {
                guard strangers.contains(stored) else { return }
                let value = ValueID(unchecked: entry.id), (file, offset) = store.storage.location(place)
                report.damages.append(
                    StorageDamage(
                        file: file, offset: offset,
                        message:
                            "Version \(header.id) preserves \"\(value)\" of version \(stored), which is not among its ancestors. "
                            + "It can be read here, but "
                            + "other devices refuse the version: its writer made a mistake. Make a new version with its values.",
                        version: header.id, value: value, lost: .nothing))
                return
            }
        } catch let error as StoreError where error.code.isOfOne { return } // That record is reported itself.
        let value = ValueID(unchecked: entry.id), (file, offset) = store.storage.location(place)
        report.damages.append(
            StorageDamage(
                file: file, offset: offset,
                message:
                    "Version \(header.id) preserves \"\(value)\" of version \(stored), which stored no such value: reading it fails. "
                    + "The writer of the record made a mistake; store the value again.",
                version: header.id, value: value, lost: .value))
    }

    /// Combines what the storage reported of its files, what the records showed of their values, and what was known before.
    private func settle(_ verification: inout Verification, _ control: OperationControl) throws {
        var report = verification.report
        let paced = control.paced(.verifying, doing: "Verifying")
        try nameVersions(in: &verification.met, paced.look)
        // The damages of values by file, and the records whose values were all reported.
        var values: [String: [Int]] = [:], known = 0, told: Set<RecordPlace> = []
        for damage in verification.met {
            try paced.step(0)
            if damage.lost == .unfinished { report.unfinished.append(damage); continue }
            while known < report.damages.count {
                if report.damages[known].value != nil { values[report.damages[known].file, default: []].append(known) }
                known += 1
                Work.damages.count()
            }
            // A blob: the record that names it has determined the value.
            if damage.version == nil, let named = values[damage.file], let first = named.first {
                if damage.offset > 0, report.damages[first].offset == 0 {
                    for i in named { report.damages[i].offset = damage.offset; Work.damages.count() }
                }
                continue
            }
            if damage.lost == .version || damage.lost == .value {
                if let place = damage.place, told.contains(place) { continue }
                if try addValues(of: damage, to: &report, control) {
                    if let place = damage.place { told.insert(place) }
                    continue
                }
            }
            report.damages.append(damage)
        }
        let spots = Set(report.damages.map { Spot(file: $0.file, offset: $0.offset) })
        store.lock.withRead {
            report.pending = UInt64(store.pending.count)
            report.damages += store.findings.damages.filter { !spots.contains(Spot(file: $0.file, offset: $0.offset)) }
        }
        for i in report.damages.indices {
            try paced.step(0)
            tellIfWaiting(&report.damages[i])
        }
        for i in report.damages.indices {
            try paced.step(0)
            guard report.damages[i].lost != .nothing, let version = report.damages[i].version else { continue }
            if verification.whole.contains(version) {
                report.damages[i].isRepaired()
            } else if report.damages[i].causedBy == nil {
                store.records.knownDamage.note(version)
            }
        }
        // A record that cannot be identified may be of any version.
        let isTold = report.unfinished.isEmpty && !report.damages.contains { $0.lost == .version && $0.version == nil }
        try CacheChecking(store: store).settleCaches(
            verification.caches, explained: isTold ? Set(report.damages.compactMap(\.version)) : nil, &report, paced)
        verification.report = report
    }

    /// Returns the versions whose records the history places at damaged places.
    private func nameVersions(in damages: inout [StorageDamage], _ look: () throws -> Void) rethrows {
        let places = Set(damages.compactMap { $0.version == nil ? $0.place : nil })
        guard !places.isEmpty else { return }
        var found: [RecordPlace: VersionID] = [:]
        try store.forEachLive(look) { ordinal, dag in
            let place = dag.rows[Int(ordinal)].place
            if places.contains(place) { found[place] = dag.id(ordinal) }
        }
        for i in damages.indices where damages[i].version == nil { damages[i].version = damages[i].place.flatMap { found[$0] } }
    }

    /// A version waits as long as the file of one of its values is missing.
    private func tellIfWaiting(_ damage: inout StorageDamage) {
        guard damage.lost == .value, let version = damage.version, store.lock.withRead({ store.pending.records[version] != nil }) else {
            return
        }
        damage.lost = .version
        damage.message += " Until then version \(version) and all its descendants wait."
    }

    private struct Spot: Hashable {
        var file: String
        var offset: UInt64
    }

    /// Handles damage of a record whose version is still present, and has lost values. Returns false if that is not the case.
    private func addValues(of damage: StorageDamage, to report: inout VerifyReport, _ control: OperationControl) throws -> Bool {
        guard let version = damage.version,
            let place = store.lock.withRead({ store.dag.ordinal(of: version).map { store.dag.rows[Int($0)].place } })
        else {
            return false
        }
        // The version may be read from another record.
        let (file, offset) = store.storage.location(place)
        guard file == damage.file, damage.place.map({ $0 == place }) ?? (offset == damage.offset) else { return false }
        let before = report.damages.count
        do {
            var ancestry = KnownAncestry(), blobs: Set<CheckedBlob> = []
            let values = try verifyValues(place, &report, &ancestry, &blobs, control)
            if report.damages.count == before {
                // All of its parts are valid. Only the checksum over them is damaged.
                var harmless = damage
                harmless.lost = .nothing
                harmless.message += " Nothing is lost: all of the version can be read, and matches its checksums."
                report.damages.append(harmless)
            }
            report.versions += 1
            report.values += values
            return true
        } catch let error as StoreError where error.code.isOfOne {
            // Not even the record's table is valid.
            report.damages.removeLast(report.damages.count - before)
            return false
        }
    }
}

extension VerifyReport {
    /// - Parameter blob: the value's file, if it has its own.
    fileprivate mutating func add(
        _ error: StoreError, at place: RecordPlace, in storage: any Storage, version: VersionID? = nil, value: ValueID? = nil,
        blob: String? = nil, lost: Loss
    ) {
        let (file, offset) = blob.map { ($0, 0) } ?? storage.location(place)
        let named = error.versionID.flatMap { try? VersionID($0) }
        var damage = StorageDamage(
            file: file, offset: offset, message: error.message, version: version ?? named, value: value, lost: lost)
        if value != nil, let named, named != version { damage.causedBy = named }
        damages.append(damage)
    }
}

extension StorageDamage {
    /// Marks the damage as harmless: the version has another, valid record.
    mutating func isRepaired() {
        lost = .nothing
        message += " Nothing is lost: another record of the version is whole, and is the one that is read."
    }
}
