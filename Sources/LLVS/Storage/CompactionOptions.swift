/// When a storage puts together what many handles wrote in many small files.
public enum Compaction: UInt32, Sendable {
    /// When it pays, and on request; neither in a directory that a folder-syncing program carries.
    case automatic = 0
    /// On request only, and not in a directory that a folder-syncing program carries.
    case onRequest = 1
    /// When it pays, and on request, wherever the store is.
    case always = 2
}

/// What makes a storage look whether there is something to put together.
public enum CompactionTrigger: Hashable, Sendable {
    /// It was opened, which should be fast. Usually all is done at close, but there are processes that are never closed,
    /// only killed.
    case opened
    /// It is about to be closed.
    case closing
    /// Somebody asked for it.
    case request
}

/// What a compaction did.
public struct CompactionReport: Hashable, Sendable {
    /// Files whose records were put into others. They are still there, for the time of grace.
    public var folded: UInt64 = 0
    /// Files that were made of them.
    public var made: UInt64 = 0
    /// Files that had been folded long enough ago, and are gone now.
    public var deleted: UInt64 = 0
    /// Bytes of the files made.
    public var bytesWritten: UInt64 = 0
    /// Bytes of the files deleted.
    public var bytesDeleted: UInt64 = 0
    /// What says that the store is in a synced folder, for which nothing was done: a path.
    public var syncMarker: String?
    /// Nothing was done.
    public init() {}
}
