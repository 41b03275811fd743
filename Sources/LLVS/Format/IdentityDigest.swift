/// SHA-256 over what a version means: what makes two records of one id the same version, and what names a merge.
///
///     identity = SHA-256("llvs version 1" 00 · id · predecessors · timestamp (8) · metadata · changes)
///     merge id = SHA-256("llvs merge 1" 00 · predecessors · metadata · changes), as a UUID of version 8
///
///     id           = length u16 · ASCII text
///     predecessors = count u8 · id ...
///     metadata     = count u32 · (key length u32 · key · value length u32 · value) ..., sorted by key bytes
///     changes      = count u32 · change ..., sorted by value id bytes
///     change       = kind u8 (2 set, 3 remove, 4 preserve, 5 preserveRemoval) · value id length u16 · value id
///                    · for set: size u64 · SHA-256 of the bytes (32) · for preserve: id of the storing version
///
/// Integers are little-endian. Insert and update are both "set": the label follows from the predecessor.
struct IdentityHasher {
    private var hash = SHA256()
    private var buffer = ByteWriter()

    init(_ tag: String) {
        buffer.raw(Array(tag.utf8))
        buffer.integer(UInt8(0))
    }
    mutating func add(_ id: VersionID) {
        id.withASCII { text in
            buffer.integer(UInt16(truncatingIfNeeded: text.count))
            buffer.raw(text)
        }
    }
    mutating func add(predecessors: [VersionID]) {
        buffer.integer(UInt8(truncatingIfNeeded: predecessors.count))
        for predecessor in predecessors { add(predecessor) }
    }
    mutating func add(timestamp: Double) { buffer.integer(timestamp.bitPattern) }
    mutating func add(_ metadata: Metadata) {
        buffer.integer(UInt32(truncatingIfNeeded: metadata.entries.count))
        for entry in metadata.entries {
            buffer.integer(UInt32(truncatingIfNeeded: entry.key.count))
            buffer.raw(entry.key)
            buffer.integer(UInt32(truncatingIfNeeded: entry.value.count))
            buffer.raw(entry.value)
        }
    }
    mutating func add(changeCount: Int) { buffer.integer(UInt32(truncatingIfNeeded: changeCount)) }
    mutating func add(_ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer, size: Int, digest: @autoclosure () throws -> [UInt8], stored: VersionID?) rethrows {
        buffer.integer(kind == .insert ? Value.Change.Kind.update.rawValue : kind.rawValue)
        buffer.integer(UInt16(truncatingIfNeeded: id.count))
        buffer.raw(id)
        if kind == .insert || kind == .update {
            buffer.integer(UInt64(size))
            buffer.raw(try digest())
        } else if let stored {
            add(stored)
        }
        if buffer.bytes.count > 1 << 16 { flush() }
    }
    private mutating func flush() {
        hash.update(buffer.bytes)
        buffer.bytes.removeAll(keepingCapacity: true)
    }
    mutating func finish() -> [UInt8] {
        flush()
        return hash.finish()
    }
}

extension VersionID {
    /// An upper-case UUID of version 8 (RFC 9562) from the first 16 bytes of a digest.
    init(uuid8From digest: [UInt8]) {
        var high: UInt64 = 0, low: UInt64 = 0
        for b in digest.prefix(8) { high = high << 8 | UInt64(b) }
        for b in digest.dropFirst(8).prefix(8) { low = low << 8 | UInt64(b) }
        self.init(high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x8000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }
}

extension Store {
    func identityDigest(_ version: Version, _ changes: some Collection<RecordChange>) -> [UInt8] {
        var hasher = IdentityHasher("llvs version 1")
        hasher.add(version.id)
        hasher.add(predecessors: version.predecessors)
        hasher.add(timestamp: version.timestamp)
        hasher.add(version.metadata)
        hasher.add(changeCount: changes.count)
        for change in changes {
            hasher.add(change.kind, change.id, size: change.size, digest: change.digest, stored: change.storedVersion)
        }
        return hasher.finish()
    }

    func identityDigest(of id: VersionID) throws -> [UInt8] {
        try identityDigest(ofRecordAt: place(of: requireOrdinal(id)))
    }

    func identityDigest(ofRecordAt place: RecordPlace) throws -> [UInt8] {
        let header = try readHeader(place)
        var hasher = IdentityHasher("llvs version 1")
        hasher.add(header.id)
        hasher.add(predecessors: header.predecessors)
        hasher.add(timestamp: header.timestamp)
        hasher.add(header.metadata)
        hasher.add(changeCount: header.changeCount)
        try forEachChange(place) { entry, header in
            let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
            try hasher.add(
                entry.kind, entry.id, size: entry.size,
                digest: entry.digest.map { Array($0) } ?? withBody(place, located, id: entry.id, stored: header.id) { SHA256.digest($0) },
                stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil)
        }
        return hasher.finish()
    }
}
