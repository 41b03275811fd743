/// Compacts the many small files that many handles wrote.
extension Store {
    /// Compacts small files of the store into large ones, and removes those that were compacted long enough ago
    /// (`Options.compactionGrace`). So the time to open the store depends on its content, and not on how often it was opened. If it pays,
    /// this also happens when a store is closed, unless the options say otherwise. Storages other than the file storage have nothing to
    /// do.
    ///
    /// Readers and other processes continue meanwhile. After an error, a cancellation or a crash nothing is lost: call it again.
    /// - Returns: what was done. If `syncMarker` is set, nothing was done, because a folder-syncing program carries the store: to compact
    ///   it all the same, open it with `Compaction.always`.
    /// - Throws: `.readOnly`, `.closed`, `.cancelled`, `.noSpace`, `.io`; `.busy` within the progress callback of a compaction.
    /// - Complexity: reads and writes the content of small files.
    @discardableResult
    public func compact(control: OperationControl = OperationControl()) throws -> CompactionReport {
        try checkWritable("Compacting")
        // After this, additions of other processes are known, and their places lead to the compacted segment.
        try reloadHistory(control: control)
        Thinning(self).forgetIfItPays(isDue: true)
        return try compact(.request, control)
    }

    private func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        let began = Log.begin(.info)
        let report = try Log.holding { try storage.compact(trigger, control) }
        let why = report.syncMarker.map { "; nothing is done there, since \($0) shows that a program syncs the folder" } ?? ""
        Log.write(
            report.made > 0 || report.deleted > 0 ? .info : .debug,
            "Compacted \(description): \(report.folded) files compacted into \(report.made) (\(report.bytesWritten) bytes), "
                + "\(report.deleted) deleted (\(report.bytesDeleted) bytes)\(why)\(Log.duration(since: began)).")
        if report.made > 0 || report.deleted > 0 { lock.withWrite { caches.areOutdated = true } }
        return report
    }

    /// Follows a removed segment: from now on its records are read from the segment that they were compacted into, where their blocks can
    /// be cached again. Done once for each segment.
    func follow(_ segment: UInt32) {
        guard records.followed.withLock({ $0.insert(segment).inserted }) else { return }
        lock.withWrite { dag.moveRecords(of: segment, storage.currentPlace) }
    }

    /// The same as `compact`, if it pays. Since it only affects speed, an error is just logged.
    func compactIfItPays(_ trigger: CompactionTrigger, _ control: OperationControl = OperationControl()) {
        guard !storage.isReadOnly else { return }
        do { _ = try compact(trigger, control) } catch {
            Log.write(.info, "Compacting \(description) was postponed: \(error)")
        }
    }
}
