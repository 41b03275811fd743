/// Counts and sizes of the whole store.
extension Store {
    /// Counts and sizes at one moment.
    public struct Statistics: Sendable {
        /// Versions in the history.
        public var versions: UInt64
        /// Versions without successors.
        public var heads: UInt64
        /// Versions whose ancestry is incomplete.
        public var pending: UInt64
        /// Damaged places met so far.
        public var damaged: UInt64
        /// The counts of the storage.
        public var storage: StorageStatistics
        /// Bytes that the history takes in memory.
        public var historyMemory: UInt64
        /// Values that this handle stored as differences.
        public var differences: UInt64
        /// Bytes that it stored for them.
        public var differenceBytes: UInt64
        /// Bytes that these values have.
        public var differenceValueBytes: UInt64
    }

    /// Returns counts and sizes. O(1), except that the storage examines its files.
    /// - Parameter control: checked with stage `.listing`.
    /// - Throws: `.cancelled`, the errors of the progress callback, and `.closed`.
    public func statistics(control: OperationControl = OperationControl()) throws -> Statistics {
        try checkOpen()
        let paced = control.paced(.listing, doing: "Counting the contents of \(description)")
        try paced.look()
        // The storage examines its files without the lock, so that no thread waits for the history meanwhile.
        let counted = try storage.statistics(paced), damaged = storage.damages.count
        let differences = differencing.counts
        return try lock.withRead {
            try checkOpenLocked()
            return Statistics(
                versions: UInt64(dag.liveCount), heads: UInt64(dag.headOrdinals.count), pending: UInt64(pending.count),
                damaged: UInt64(findings.damages.count + damaged), storage: counted, historyMemory: UInt64(dag.memorySize),
                differences: differences.count, differenceBytes: differences.stored, differenceValueBytes: differences.whole)
        }
    }
}
