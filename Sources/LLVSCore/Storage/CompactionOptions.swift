/// When a storage compacts the many small files that many handles wrote.
public enum Compaction: UInt32, Sendable {
    /// Compacts if it pays, and on request. Does neither in a directory that a folder-syncing program carries.
    case automatic = 0
    /// Compacts on request only. Does not in a directory that a folder-syncing program carries.
    case onRequest = 1
    /// If it pays, and on request, wherever the store is.
    case always = 2
}

/// The event on which a storage checks whether there is something to compact.
package enum CompactionTrigger: Hashable, Sendable {
    /// The store was opened, which should be fast. Usually everything is compacted at close, except in processes that are killed.
    case opened
    /// The store is about to be closed.
    case closing
    /// A caller requested it.
    case request
}

/// The result of a compaction.
public struct CompactionReport: Hashable, Sendable {
    /// The files whose records were merged into others. They still exist until the grace period ends.
    public var folded: UInt64 = 0
    /// The files that were written.
    public var made: UInt64 = 0
    /// The files that had been compacted long enough ago and were deleted.
    public var deleted: UInt64 = 0
    /// The bytes of the written files.
    public var bytesWritten: UInt64 = 0
    /// The bytes of the deleted files.
    public var bytesDeleted: UInt64 = 0
    /// The path of the file that marks the store's folder as synced, because of which nothing was done.
    public var syncMarker: String?
    /// Creates the report of a compaction that did nothing.
    public init() {}
}
