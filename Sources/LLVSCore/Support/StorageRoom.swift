/// How much a medium can still store.
package struct StorageRoom: Sendable, Equatable {
    /// The bytes that records may still use.
    package var free: UInt64
    /// The bytes of the whole medium.
    package var size: UInt64
    /// Both in bytes.
    package init(free: UInt64, size: UInt64) { self.free = free; self.size = size }

    /// The bytes that receiving leaves free, so that local saves still succeed: a sixteenth of a small medium, and at most 1 MiB.
    package var reserve: UInt64 { min(1 << 20, size / 16) }
}
