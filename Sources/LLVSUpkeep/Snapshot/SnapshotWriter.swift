import CLLVSShims

/// Writes versions as a stream, split into chunks (docs/snapshot.md). Holds at most one chunk.
///
///     chunk:   id (36) | encoding (1: 0 stored, 1 deflated) | size of the payload (4) | payload
///     stream:  the payloads, one after another: an entry per version, predecessors first
///     entry:   size (8) | version file | number of changes (4) | changes by id
///     change:  kind (1) | size (4) | id | insert, update: size (8) | bytes; preserve: size (1) | version id
///              without bytes: kind + 128 | size (4) | id | size (8) of the value | SHA-256 (32)
///
/// All integers are little-endian.
struct SnapshotWriter {
    private let id: [UInt8]
    private let put: (_ index: Int, _ chunk: [UInt8]) throws -> Void
    private var payload: [UInt8] = []
    private(set) var digests: [String] = []
    private(set) var totalSize: UInt64 = 0
    /// Whether a value came without bytes.
    private(set) var hasHollow = false

    /// - Parameter put: called with each chunk, in order.
    init(id: String, put: @escaping (_ index: Int, _ chunk: [UInt8]) throws -> Void) {
        self.id = Array(id.utf8)
        self.put = put
    }

    /// Begins the entry of a version. `changeCount` calls of `append` follow, in byte order of the ids.
    mutating func begin(_ version: Version, changeCount: Int) throws {
        let file = InterchangeEncoder.version(version)
        guard file.count <= SnapshotLimits.versionFileSize else {
            throw StoreError(
                .tooLarge,
                "The version \(version.id) takes \(file.count) bytes without its values, and a snapshot can hold "
                    + "\(SnapshotLimits.versionFileSize). Let new replicas retrieve the versions instead.",
                versionID: version.id.description)
        }
        try integer(UInt64(file.count))
        try bytes(file)
        try integer(UInt32(truncatingIfNeeded: changeCount))
    }

    mutating func append(_ change: BorrowedChange) throws {
        let hollow = change.hollow
        hasHollow = hasHollow || hollow != nil
        try integer(change.kind.rawValue | (hollow == nil ? 0 : SnapshotLimits.hollow))
        try integer(UInt32(truncatingIfNeeded: change.id.count))
        try append(change.id)
        if let hollow {
            try integer(UInt64(hollow.size))
            return try bytes(hollow.digest)
        }
        switch change.kind {
        case .insert, .update:
            try integer(UInt64(change.data.count))
            try append(change.data)
        case .preserve:
            let version = change.storedVersion?.withASCII { Array($0) } ?? []
            try integer(UInt8(truncatingIfNeeded: version.count))
            try bytes(version)
        case .remove, .preserveRemoval: break
        }
    }

    mutating func finish() throws {
        if !payload.isEmpty || digests.isEmpty { try flush() }
    }

    private mutating func integer<T: FixedWidthInteger>(_ value: T) throws {
        try withUnsafeBytes(of: value.littleEndian) { try append($0) }
    }
    private mutating func bytes(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try append($0) } }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        var start = 0
        while start < bytes.count {
            if payload.count == SnapshotLimits.payloadSize { try flush() }
            let end = min(bytes.count, start + SnapshotLimits.payloadSize - payload.count)
            try Memory.grow(&payload, by: end - start, "Writing a snapshot")
            payload.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            start = end
        }
    }

    private mutating func flush() throws {
        guard digests.count < SnapshotLimits.chunkCount else {
            throw StoreError(
                .tooLarge,
                "The store is too large for a snapshot, which has at most \(SnapshotLimits.chunkCount) chunks. "
                    + "Let new replicas retrieve the versions instead."
            )
        }
        try Memory.expect(2 * payload.count + SnapshotLimits.headerSize, "Writing a chunk of a snapshot")
        let deflated = [UInt8](unsafeUninitializedCapacity: payload.count) { buffer, count in
            count = payload.withUnsafeBytes { source in
                guard let from = source.baseAddress, let to = buffer.baseAddress, llvs_shim_may_deflate(from, source.count) == 1 else {
                    return 0
                }
                return llvs_shim_deflate(from, source.count, to, source.count - 1)
            }
        }
        var chunk = id
        chunk.reserveCapacity(SnapshotLimits.headerSize + payload.count)
        chunk.append(deflated.isEmpty ? 0 : 1)
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: payload.count).littleEndian) { chunk.append(contentsOf: $0) }
        chunk.append(contentsOf: deflated.isEmpty ? payload : deflated)
        payload.removeAll(keepingCapacity: true)
        try put(digests.count, chunk)
        digests.append(SnapshotChunk.digest(chunk))
        totalSize += UInt64(chunk.count)
    }
}

/// A chunk file.
enum SnapshotChunk {
    /// SHA-256 in lower-case hexadecimal.
    static func digest(_ chunk: [UInt8]) -> String { Hex.text(of: chunk.withUnsafeBytes { SHA256.digest($0) }) }

    /// Returns the payload of a chunk whose digest was verified; nil if it is malformed or of another snapshot.
    static func payload(_ chunk: [UInt8], of snapshot: String) -> [UInt8]? {
        chunk.withUnsafeBytes { bytes in
            guard bytes.count >= SnapshotLimits.headerSize, bytes[..<SnapshotLimits.idSize].elementsEqual(snapshot.utf8) else { return nil }
            let size = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: SnapshotLimits.idSize + 1, as: UInt32.self)))
            let body = UnsafeRawBufferPointer(rebasing: bytes[SnapshotLimits.headerSize...])
            guard size <= SnapshotLimits.payloadSize else { return nil }
            switch bytes[SnapshotLimits.idSize] {
            case 0: return body.count == size ? Array(body) : nil
            case 1: return Inflated.bytes(size, from: body)
            default: return nil
            }
        }
    }
}
