/// Putting together what many handles wrote in many small files.
extension Store {
    /// Puts together small files of the store into large ones, and removes those that were put together long enough ago
    /// (`Options.compactionGrace`), so that opening costs by what is in the store and not by how often it was opened.
    /// Happens by itself when a store is closed and it pays, unless the options say otherwise; storages other than the
    /// file storage have nothing to do.
    ///
    /// Readers and other processes go on meanwhile. An error, a cancellation or a crash loses nothing; call it again.
    /// - Returns: what was done. With `syncMarker`, nothing was, because a folder-syncing program carries the store:
    ///   open it with `Compaction.always` to do it all the same.
    /// - Throws: `.readOnly`, `.closed`, `.cancelled`, `.noSpace`, `.io`; `.busy` from within the progress callback of a compaction.
    /// - Complexity: reads and writes what is in small files.
    @discardableResult
    public func compact(_ control: OperationControl = OperationControl()) throws -> CompactionReport {
        try checkWritable("Compacting")
        // What others added is known then, and its places lead to where it goes.
        try reloadHistory(control)
        return try compact(.request, control)
    }

    private func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        let began = Log.begin(.info)
        let report = try Log.holding { try storage.compact(trigger, control) }
        let why = report.syncMarker.map { "; nothing is done there, since \($0) tells of a folder sync" } ?? ""
        Log.write(
            report.made > 0 || report.deleted > 0 ? .info : .debug,
            "Compacted \(description): \(report.folded) files put together into \(report.made) (\(report.bytesWritten) bytes), "
                + "\(report.deleted) deleted (\(report.bytesDeleted) bytes)\(why)\(Log.duration(since: began)).")
        if report.made > 0 || report.deleted > 0 { lock.withWrite { caches.areOutdated = true } }
        return report
    }

    /// A segment is gone: its records are looked for in the segment that they were put into, from now on, where they can be
    /// kept in memory by blocks again. Once for each segment.
    func follow(_ segment: UInt32) {
        guard records.followed.withLock({ $0.insert(segment).inserted }) else { return }
        lock.withWrite { dag.moveRecords(of: segment, storage.currentPlace) }
    }

    /// As `compact`, when it pays. It is a matter of speed only: a failure is logged.
    func compactIfItPays(_ trigger: CompactionTrigger, _ control: OperationControl = OperationControl()) {
        guard !storage.isReadOnly else { return }
        do { _ = try compact(trigger, control) } catch {
            Log.write(.info, "Compacting \(description) was left for later: \(error)")
        }
    }
}
