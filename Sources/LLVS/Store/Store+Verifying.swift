/// Reading everything again.
public struct VerifyReport: Sendable {
    /// Versions read and found whole.
    public var versions: UInt64 = 0
    /// Values whose bytes were read and found whole.
    public var values: UInt64 = 0
    /// Versions whose ancestry is not completely here.
    public var pending: UInt64 = 0
    /// What is not as it was written: where, and what is lost with it.
    public var damages: [StorageDamage] = []
    /// Files that end in bytes that count as never written, or without saying that they are complete, and that no process of this
    /// machine is writing: somebody was killed, another machine is not done, or the file was cut short or damaged at its end.
    public var unfinished: [StorageDamage] = []
    /// Whether nothing is damaged.
    public var isWhole: Bool { damages.isEmpty }
    /// Whether nothing is damaged, and nothing can be missing either.
    public var isComplete: Bool { damages.isEmpty && unfinished.isEmpty && pending == 0 }
}

extension Store {
    /// Reads every record and every value, and reports what is damaged, and what is lost. Changes nothing. Others may read and commit meanwhile.
    /// - Parameter control: called with stage `.verifying`, after each version and at least once per MiB of values.
    /// - Complexity: reads the whole store.
    public func verify(_ control: OperationControl = OperationControl()) throws -> VerifyReport {
        try reloadHistory()
        var report = VerifyReport()
        var seen: Set<VersionID> = []
        // Without the commit lock: the progress callback may use the store.
        try storage.verify(control, found: { record in
            do {
                let header = try readHeader(record.place, prefix: record.prefix)
                let values = try verifyValues(record.place, &report, control)
                // A record may be there twice: after a compaction, or the union of two copies.
                if seen.insert(header.id).inserted {
                    report.versions += 1
                    report.values += values
                }
                try control.check(.verifying, Int(report.versions), of: 0, doing: "Verifying")
            } catch let error as StoreError where [.damaged, .io, .notFound, .newerFormat].contains(error.code) {
                report.add(error, at: record.place, in: storage, lost: .version)
            }
        }, damage: { if $0.lost == .unfinished { report.unfinished.append($0) } else { report.damages.append($0) } })
        lock.withRead {
            report.pending = UInt64(pending.count)
            let known = Set(report.damages)
            for damage in damages where !known.contains(damage) { report.damages.append(damage) }
        }
        return report
    }

    /// Reads the values of a record; those that are damaged are reported one by one. Answers how many are whole.
    private func verifyValues(_ place: RecordPlace, _ report: inout VerifyReport, _ control: OperationControl) throws -> UInt64 {
        var values: UInt64 = 0, unchecked = 0
        try forEachChange(place) { entry, header in
            guard entry.kind == .insert || entry.kind == .update else { return }
            do {
                try withValue(entry, in: place, of: header.id) { bytes in
                    if let digest = entry.digest, !digest.elementsEqual(SHA256.digest(bytes)) {
                        throw damaged(place, "tells a digest that its value does not have", version: header.id, value: entry.id)
                    }
                }
                values += 1
            } catch let error as StoreError where [.damaged, .io, .notFound].contains(error.code) {
                report.add(error, at: place, in: storage, version: header.id, value: ValueID(unchecked: entry.id), lost: .value)
            }
            unchecked += entry.size
            guard unchecked >= OperationControl.bytesPerCheck else { return }
            unchecked = 0
            try control.check(.verifying, Int(report.versions), of: 0, doing: "Verifying")
        }
        return values
    }
}

extension VerifyReport {
    fileprivate mutating func add(_ error: StoreError, at place: RecordPlace, in storage: any Storage, version: VersionID? = nil, value: ValueID? = nil, lost: Loss) {
        let (file, offset) = storage.location(place)
        damages.append(StorageDamage(file: file, offset: offset, message: error.message, version: version ?? error.versionID.flatMap { try? VersionID($0) }, value: value, lost: lost))
    }
}
