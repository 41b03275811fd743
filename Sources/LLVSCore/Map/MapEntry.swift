/// The entry of a value id: the version that stored the bytes, and where in its record they are.
package struct MapEntry: BitwiseCopyable {
    /// The ordinal of the storing version in this process's history.
    package var version: UInt32
    /// Bytes of the value; `unknownSize` if not known.
    package var size: UInt32
    /// Offset of the body from the start of the storing version's record; 0 if it must be looked up in the record's table (preserved
    /// entries, blobs). It stays valid when the record moves.
    package var bodyOffset: UInt64
    package init(version: UInt32, size: UInt32, bodyOffset: UInt64) {
        self.version = version; self.size = size; self.bodyOffset = bodyOffset
    }

    package static let unknownSize = UInt32.max

    /// Returns whether both refer to the same bytes: entries of one key do if the same version stored them.
    @inline(__always)
    package func isSameReference(as other: MapEntry) -> Bool { version == other.version }

    /// Returns whether a store with this many versions could have made this entry. Called for entries read from a file.
    @inline(__always)
    func isPossible(versionLimit: Int) -> Bool {
        version < versionLimit && (size <= UInt32(Limits.valueSize) || size == MapEntry.unknownSize)
    }
}

/// One change to a map: sets the entry of a key, or removes it. The key is borrowed.
package struct MapChange {
    package var key: UnsafeRawBufferPointer
    package var entry: MapEntry?
    package init(key: UnsafeRawBufferPointer, entry: MapEntry? = nil) { self.key = key; self.entry = entry }
}

/// Returns whether both were stored by the same version, or both are absent.
package func isSame(_ a: MapEntry?, _ b: MapEntry?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (let a?, let b?): a.isSameReference(as: b)
    default: false
    }
}
