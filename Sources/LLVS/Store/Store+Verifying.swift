/// Reading everything again.
public struct VerifyReport: Sendable {
    /// Versions read and found whole.
    public var versions: UInt64 = 0
    /// Values whose bytes were read and found whole.
    public var values: UInt64 = 0
    /// Versions whose ancestry is not completely here.
    public var pending: UInt64 = 0
    /// What is not as it was written, with file and offset.
    public var damages: [StorageDamage] = []
    /// Whether nothing is damaged.
    public var isWhole: Bool { damages.isEmpty }
}

extension Store {
    /// Reads every record and every value, and reports what is damaged. Changes nothing. Others may read and commit meanwhile.
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
                var values: UInt64 = 0, unchecked = 0
                try forEachChange(record.place) { entry, header in
                    guard entry.kind == .insert || entry.kind == .update else { return }
                    let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
                    try withBody(record.place, located, id: entry.id, stored: header.id, anew: true) { bytes in
                        if let digest = entry.digest, !digest.elementsEqual(SHA256.digest(bytes)) {
                            throw damaged(record.place, "tells a digest that its value does not have", version: header.id, value: entry.id)
                        }
                        values += 1
                    }
                    unchecked += entry.size
                    guard unchecked >= OperationControl.bytesPerCheck else { return }
                    unchecked = 0
                    try control.check(.verifying, Int(report.versions), of: 0, doing: "Verifying")
                }
                // A record may be there twice: after a compaction, or the union of two copies.
                if seen.insert(header.id).inserted {
                    report.versions += 1
                    report.values += values
                }
                try control.check(.verifying, Int(report.versions), of: 0, doing: "Verifying")
            } catch let error as StoreError where error.code == .damaged || error.code == .io || error.code == .notFound {
                report.damages.append(StorageDamage(
                    file: storage.description, offset: record.place.offset, message: error.message,
                    version: error.versionID.flatMap { try? VersionID($0) }))
            }
        }, damage: { report.damages.append($0) })
        lock.withRead {
            report.pending = UInt64(pending.count)
            for damage in damages where !report.damages.contains(damage) { report.damages.append(damage) }
        }
        return report
    }
}
