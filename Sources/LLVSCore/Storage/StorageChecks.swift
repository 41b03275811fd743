/// Checks and errors that all storages share.
package enum StorageRange {
    /// Returns `offset` if `count` bytes from there on are within `length`.
    /// - Throws: `.damaged`, since the engine requests what the record's own bytes promise.
    @inline(__always)
    static func check(_ offset: UInt64, _ count: Int, within length: UInt64, of store: String) throws -> UInt64 {
        guard count >= 0, offset <= length, UInt64(count) <= length - offset else {
            throw StoreError(
                .damaged,
                "Reading \(count) bytes at \(offset) of a record of \(length) bytes in \(store) failed: "
                    + "the record does not reach that far. Verify the store."
            )
        }
        return offset
    }
    static func unknownPlace(_ store: String) -> StoreError {
        StoreError(.invalidArgument, "Reading a record of \(store) failed: its place is not from this storage.")
    }
    static func noBlobs(_ store: String) -> StoreError {
        StoreError(.unsupported, "\(store) stores all values within its records; it has no blobs.")
    }
    static func closed(_ store: String) -> StoreError {
        StoreError(.closed, "\(store) was closed. Open it again to continue.")
    }
    static func readOnly(_ store: String) -> StoreError {
        StoreError(.readOnly, "Writing to \(store) failed: it was opened read-only. Open it for writing.")
    }
}

/// The names of caches: `[a-z0-9._-]{1,100}`, which are valid file names on all systems.
package enum CacheName {
    /// The suffix of names for the owner only, even in a store that a group shares.
    package static let secret = "-session"
    static func check(_ name: String) throws {
        let bytes = name.utf8
        let allowed = bytes.allSatisfy { b in
            (b >= 0x61 && b <= 0x7A) || (b >= 0x30 && b <= 0x39) || b == 0x2E || b == 0x5F || b == 0x2D
        }
        guard allowed, bytes.count >= 1, bytes.count <= 100 else {
            throw StoreError(
                .invalidArgument, "\"\(name)\" cannot be the name of a cache: those are 1 to 100 of a-z, 0-9, dot, underscore and hyphen.")
        }
    }
}

/// Returns the version of a record from its first bytes; nil if it cannot. Used for damage reports only, so it must not trust the bytes.
package typealias RecordInspector = @Sendable (UnsafeRawBufferPointer) -> VersionID?
