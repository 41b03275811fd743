/// SHA-256 over the contents of a version: the source of its content id, and the proof that two records of one id are the same version. The
/// layout is in docs/format.md, "Ids of versions" and "Two records of one version".
///
///     content id = SHA-256("llvs content 1" 00 · predecessors · timestamp (8) · metadata · changes), as a UUID of version 8
///     identity   = SHA-256("llvs version 1" 00 · id · predecessors · timestamp (8) · metadata · changes)
///     merges before = SHA-256("llvs merge 1" 00 · predecessors · metadata · changes), as a UUID of version 8
///
///     id           = length u16 · ASCII text
///     predecessors = count u8 · id ...
///     metadata     = count u32 · (key length u32 · key · value length u32 · value) ..., sorted by key bytes
///     changes      = count u32 · change ..., sorted by value id bytes
///     change       = kind u8 (2 set, 3 remove, 4 preserve, 5 preserveRemoval) · value id length u16 · value id
///                    · for set: size u64 · SHA-256 of the bytes (32) · for preserve: id of the storing version
///
/// Integers are little-endian. Insert and update are both "set": the label follows from the predecessor. Nothing is allocated.
package struct IdentityHasher {
    private var hash = SHA256()

    /// What is hashed. Each kind begins with its own text, so that no two kinds have equal inputs.
    package enum Kind {
        case content, identity, oldMerge
        fileprivate var tag: StaticString {
            switch self {
            case .content: "llvs content 1\0"
            case .identity: "llvs version 1\0"
            case .oldMerge: "llvs merge 1\0"
            }
        }
    }

    package init(_ kind: Kind) {
        let tag = kind.tag
        hash.update(UnsafeRawBufferPointer(start: tag.utf8Start, count: tag.utf8CodeUnitCount))
    }
    private mutating func add<T: FixedWidthInteger>(_ integer: T) { withUnsafeBytes(of: integer.littleEndian) { hash.update($0) } }

    mutating func add(_ id: VersionID) {
        id.withASCII { text in
            add(UInt16(truncatingIfNeeded: text.count))
            hash.update(text)
        }
    }
    mutating func add(predecessors: [VersionID]) {
        add(UInt8(truncatingIfNeeded: predecessors.count))
        for predecessor in predecessors { add(predecessor) }
    }
    mutating func add(timestamp: Double) { add(timestamp.bitPattern) }
    mutating func add(_ metadata: Metadata) {
        add(UInt32(truncatingIfNeeded: metadata.entries.count))
        for entry in metadata.entries {
            add(UInt32(truncatingIfNeeded: entry.key.count))
            hash.update(entry.key)
            add(UInt32(truncatingIfNeeded: entry.value.count))
            hash.update(entry.value)
        }
    }
    /// Adds all of a version before its changes, and the number of the changes.
    package mutating func add(_ version: Version, changeCount: Int) {
        add(version.id)
        add(predecessors: version.predecessors)
        add(timestamp: version.timestamp)
        add(version.metadata)
        add(changeCount: changeCount)
    }
    mutating func add(changeCount: Int) { add(UInt32(truncatingIfNeeded: changeCount)) }

    /// Adds an insert or update of a value whose SHA-256 is `digest`.
    package mutating func add(setting id: UnsafeRawBufferPointer, size: Int, digest: UnsafeRawBufferPointer) {
        add(.update, id)
        add(UInt64(truncatingIfNeeded: size))
        hash.update(digest)
    }
    /// A change of another kind.
    package mutating func add(_ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer, stored: VersionID?) {
        add(kind, id)
        if kind == .preserve, let stored { add(stored) }
    }
    @inline(__always)
    private mutating func add(_ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer) {
        let head = UInt32(kind.rawValue) | UInt32(UInt16(truncatingIfNeeded: id.count)) << 8
        withUnsafeBytes(of: head.littleEndian) { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<3])) }
        hash.update(id)
    }

    package mutating func finish() -> [UInt8] { hash.finish() }
    /// An upper-case UUID of version 8 (RFC 9562) from the first 16 bytes.
    mutating func finishID() -> VersionID {
        let digest = hash.finishWords()
        let high = UInt64(bigEndian: digest.0), low = UInt64(bigEndian: digest.1)
        return VersionID(high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x8000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }
}

extension IdentityHasher {
    /// Adds all changes, in order. Appends to `digests` those of the values that have theirs in the record, one after another.
    mutating func add(_ changes: RecordChanges, digests: inout [UInt8]) {
        add(changeCount: changes.count)
        changes.forEachRun(of: RecordTable.changesPerPage, withData: true) { first, run in
            for i in run.indices {
                let change = run[i]
                guard change.hasData else {
                    add(change.kind, change.id, stored: change.kind == .preserve ? changes.storedVersion(at: first + i) : nil)
                    continue
                }
                if let written = change.written {
                    written._withUnsafeGuaranteedRef { value in
                        value.digest.withUnsafeBytes { add(setting: change.id, size: value.size, digest: $0) }
                    }
                    continue
                }
                let digest = SHA256.words(change.data)
                withUnsafeBytes(of: digest) { bytes in
                    add(setting: change.id, size: change.data.count, digest: bytes)
                    if change.data.count > RecordTable.digestThreshold { digests.append(contentsOf: bytes) }
                }
            }
        }
    }
}
