/// A line of versions that cannot be copied, from its newest version back to one that can. A new version is made of their changes; for each
/// value id the newest counts.
struct SalvageLine {
    private enum Change {
        /// The value is in a record of the damaged store.
        case value(RecordPlace, VersionID, size: Int, isDifference: Bool, body: RecordTable.Entry?)
        case removed
    }

    let source: Store
    let index: SalvageIndex
    private var original: SalvageIndex.Record?
    private var changes: [ValueID: Change] = [:]
    /// Ids whose newest bytes are lost: older bytes are not used for them.
    private var lost: Set<ValueID> = []
    /// The version on which the new one is based.
    private(set) var base: VersionID?
    private(set) var isComplete = true
    /// The lost version on which the line was based.
    private var lostBase: Lost?

    /// A lost version, and its substitute.
    private struct Lost {
        let version: VersionID
        /// The record of the version that builds on it.
        let place: RecordPlace
        let standsOn: VersionID?
    }

    init(source: Store, index: SalvageIndex) { self.source = source; self.index = index }

    /// The end of a line: a version that was copied, or the version made from another line.
    struct Ground {
        var version: VersionID?
        var isComplete = true
    }

    /// Follows first predecessors as far as there are records, or to a version that is ground.
    /// - Parameter file: returns the file of a record.
    mutating func follow(
        from id: VersionID, file: (RecordPlace) -> String, until ground: (VersionID) throws -> Ground?, _ control: PacedControl
    ) throws {
        var next: VersionID? = id, met: Set<VersionID> = [], last: RecordPlace?
        while let id = next {
            try control.step(0)
            if let ground = try ground(id) {
                base = ground.version
                isComplete = isComplete && ground.isComplete
                return
            }
            guard met.insert(id).inserted else { isComplete = false; return }
            guard let record = index.best(id) else {
                // The changes of a lost version are unknown, and so is its predecessor: most likely it was stored before it.
                isComplete = false
                guard let last else { return }
                base = index.lastKept(before: last, file: file)
                lostBase = Lost(version: id, place: last, standsOn: base)
                return
            }
            original = original ?? record
            try take(record, control)
            last = record.place
            next = record.header.predecessors.first
        }
    }

    /// Returns a report of the guessed base, if the records do not determine it.
    func guess(_ made: SalvageReport.Made, _ location: (RecordPlace) -> (String, UInt64)) -> StorageDamage? {
        guard let lostBase else { return nil }
        let (file, offset) = location(lostBase.place)
        let what =
            lostBase.standsOn.map {
                "it is based on version \($0), the last whole one before it in the same file, which most likely precedes it"
            } ?? "it is based on none, since no whole version is before it in the same file: merge it with the version it belongs to"
        return StorageDamage(
            file: file, offset: offset,
            message:
                "Version \(made.version) was made of version \(made.original) and those before it. "
                + "What these were based on (version \(lostBase.version)) is lost, so \(what).",
            version: made.original, lost: .nothing)
    }

    private mutating func take(_ record: SalvageIndex.Record, _ control: PacedControl) throws {
        if !record.isTableWhole { isComplete = false }
        // Reads the table as far as possible.
        _ = try Memory.unlessShort(control) {
            try source.records.forEachChange(record.place) { entry, header in
                try Memory.check()
                try control.step(0, bytes: entry.size)
                let id = ValueID(unchecked: entry.id)
                guard changes[id] == nil, !lost.contains(id) else { return }
                switch entry.kind {
                case .remove, .preserveRemoval: changes[id] = .removed
                case .insert, .update:
                    if try index.isKnownReadable(entry) || source.isReadable(entry, in: record.place, of: header.id) {
                        changes[id] = .value(
                            record.place, header.id, size: entry.size, isDifference: entry.isDifference, body: Self.withoutPointers(entry))
                    } else {
                        lose(id)
                    }
                case .preserve:
                    let stored = header.dependencies[entry.dependency]
                    let found = try index.all(stored).first { record in
                        try Memory.unlessShort {
                            try source.records.findChange(record.place, entry.id, anew: true).map {
                                $0.kind == .insert || $0.kind == .update
                            }
                        } == true
                            && Memory.unlessShort { try source.withStored(entry.id, in: record.place, of: stored) { _ in } } != nil
                    }
                    let size = try found.flatMap { try source.records.findChange($0.place, entry.id, anew: true)?.body.size }
                    if let found, let size {
                        changes[id] = .value(
                            found.place, stored, size: size, isDifference: found.header.hasDifferences, body: nil)
                    } else {
                        lose(id)
                    }
                }
            }
        }
    }

    /// Returns an entry that may outlive the table: its digest was compared already.
    private static func withoutPointers(_ entry: RecordTable.Entry) -> RecordTable.Entry {
        var kept = entry
        kept.id = UnsafeRawBufferPointer(start: nil, count: 0)
        kept.digest = nil
        return kept
    }

    /// Returns the bytes of a value; nil if they cannot be read. With `body` the table of the record is not needed, of which a part may be
    /// damaged.
    private func bytes(_ id: ValueID, in place: RecordPlace, of version: VersionID, _ body: RecordTable.Entry?) throws -> [UInt8]? {
        try Memory.unlessShort {
            try id.bytes.withUnsafeBytes { key in
                guard var entry = body else {
                    return try source.withStored(key, in: place, of: version) { try Memory.copy($0, "Salvaging a value") }
                }
                entry.id = key
                return try source.records.withValue(entry, in: place, of: version) { try Memory.copy($0, "Salvaging a value") }
            }
        }
    }

    private mutating func lose(_ id: ValueID) {
        lost.insert(id)
        isComplete = false
    }

    /// Makes the version, or several in sequence if its values are too many for one. Nil if there is no data.
    /// Leaves out values for which the account has nothing left.
    mutating func write(to target: Store, _ account: SalvageAccount, _ control: OperationControl) throws -> SalvageReport.Made? {
        guard let original, !changes.isEmpty else { return nil }
        let ids = try Array(changes.keys).sorted(by: <) { try control.check(.adding, 0, of: 0, doing: "Salvaging \(source.description)") }
        var batch: [Value.Change] = [], size = 0, last = base, made: VersionID?
        func flush(isLast: Bool) throws {
            let version = try target.makeVersion(
                basedOn: last, changes: batch, metadata: metadata(of: original, isComplete: isComplete && isLast))
            last = version.id
            made = version.id
            batch = []
            size = 0
        }
        for id in ids {
            try control.check(.adding, 0, of: 0, doing: "Salvaging \(source.description)")
            switch changes[id] {
            case .value(let place, let version, let valueSize, let isDifference, let body):
                guard account.admits(valueSize, isDifference: isDifference) else {
                    isComplete = false
                    continue
                }
                guard let data = try bytes(id, in: place, of: version, body) else {
                    isComplete = false
                    continue
                }
                size += data.count + id.bytes.count
                batch.append(.update(id, data: data))
            case .removed: batch.append(.remove(id))
            case nil: break
            }
            if size >= Salvage.batchSize || batch.count >= Limits.changesPerVersion { try flush(isLast: id == ids.last) }
        }
        if !batch.isEmpty { try flush(isLast: true) }
        return made.map { SalvageReport.Made(original: original.header.id, version: $0, isComplete: isComplete) }
    }

    /// Returns the original's metadata, which may name its branch, with the mark of a salvage.
    private func metadata(of original: SalvageIndex.Record, isComplete: Bool) -> Metadata {
        var metadata = original.header.metadata
        // Versions from elsewhere may have metadata that a version made here may not.
        metadata[[]] = nil
        if metadata.entries.count >= Limits.metadataKeys {
            var branch = Metadata()
            branch.branch = metadata.branch
            metadata = branch
        }
        if metadata.branch == nil { metadata.branch = nil }
        metadata[Salvage.metadataKey] = Array("{\"version\":\"\(original.header.id)\",\"complete\":\(isComplete)}".utf8)
        return metadata
    }
}

extension Store {
    /// Calls `body` with the bytes that a record stores under a value id.
    /// - Throws: `.damaged` if it stores none, or if they are damaged.
    func withStored<R>(
        _ id: UnsafeRawBufferPointer, in place: RecordPlace, of version: VersionID, _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        try records.withBody(
            place, MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0), id: id, stored: version, anew: true, body)
    }
}
