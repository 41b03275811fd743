/// How much a medium can still store.
public struct StorageRoom: Sendable, Equatable {
    /// The bytes that records may still use.
    public var free: UInt64
    /// The bytes of the whole medium.
    public var size: UInt64
    /// Both in bytes.
    public init(free: UInt64, size: UInt64) { self.free = free; self.size = size }

    /// The bytes that receiving leaves free, so that local saves still succeed: a sixteenth of a small medium, and at most 1 MiB.
    public var reserve: UInt64 { min(1 << 20, size / 16) }
}
