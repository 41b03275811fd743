import LLVSCore

/// The requirements on every storage, for any medium: exactly those on which the store relies.
///
/// Runs without a test framework, so that storages implemented elsewhere can be checked. Each check has a place of its own and returns a
/// result; no behaviour of a storage makes it trap.
package enum StorageConformance: ConformanceSuite {
    /// One place for a storage, empty at first.
    package struct Subject {
        /// Opens a handle on it.
        package var open: (_ readOnly: Bool) throws -> any Storage
        /// Whether records stored by one handle are seen by a handle opened after it was closed.
        package var isPersistent: Bool
        /// Whether several handles may be open at once, and see each other's records.
        package var isShared: Bool
        /// Whether it can be opened read-only.
        package var opensReadOnly: Bool
        /// Whether it reports records in the order of appending, each once. That is more than is required.
        package var isOrderly: Bool
        /// Makes the medium of the place fail, work again, or lose power; nil if that is impossible.
        package var disturb: ((Disturbance) throws -> Void)?
        package init(
            isPersistent: Bool = true, isShared: Bool = true, opensReadOnly: Bool = true, isOrderly: Bool = true,
            disturb: ((Disturbance) throws -> Void)? = nil, open: @escaping (_ readOnly: Bool) throws -> any Storage
        ) {
            self.open = open; self.isPersistent = isPersistent; self.isShared = isShared; self.opensReadOnly = opensReadOnly
            self.isOrderly = isOrderly; self.disturb = disturb
        }
    }

    package static let checks: [Check<Subject>] = [
        Check("a new storage is empty", emptiness),
        Check("records are read back", roundTrip),
        Check("each record of a batch has a place of its own", places),
        Check("what was appended need not be scanned", ownRecordsAreNotScanned),
        Check("ranges of a record are read", ranges),
        Check("ranges that do not exist are refused", rangeErrors),
        Check("empty and unusual records are kept", oddRecords),
        Check("a record of many pieces is kept", manyPieces),
        Check("a batch of many records is kept", largeBatch),
        Check("a record of several MiB is kept", largeRecord),
        Check("10,000 small records are kept", manyRecords),
        Check("records are found again after closing", reopening),
        Check("two handles see each other's records", sharing),
        Check("two handles that append at once lose nothing", appendingAtOnce),
        Check("large values are kept as blobs", blobs),
        Check("caches are kept, replaced and deleted", caches),
        Check("names of caches are checked", cacheNames),
        Check("a read-only handle changes nothing", readOnly),
        Check("verify reports every record and no damage", verifying),
        Check("reading continues while others append", concurrency),
        Check("a closed storage refuses everything", closing),
        Check("a store on it keeps its versions", storeKeepsVersions),
        Check("two stores on it share their versions", storesShare),
        Check("an append that fails leaves nothing", failedAppend),
        Check("a failed sync is an error", failedSync),
        Check("a storage continues after a failure", goingOn),
        Check("what was synced survives a power cut", powerCut),
    ]
}
