/// How much a medium can take.
public struct StorageRoom: Sendable, Equatable {
    /// Bytes that records may still have.
    public var free: UInt64
    /// Bytes of the whole medium.
    public var size: UInt64
    /// Both in bytes.
    public init(free: UInt64, size: UInt64) { self.free = free; self.size = size }

    /// Bytes that receiving leaves free, so that what is written here can still be saved: a sixteenth of a small medium, and at most 1 MiB.
    public var reserve: UInt64 { min(1 << 20, size / 16) }
}
