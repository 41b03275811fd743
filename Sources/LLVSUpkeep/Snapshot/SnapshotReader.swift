/// The versions of a snapshot, one after another, predecessors first.
protocol SnapshotVersions {
    /// Returns the next version; nil after the last, if the snapshot had all that the manifest promises.
    /// - Parameter keepingData: whether to return the bytes of a version's values; otherwise they are empty.
    /// - Throws: `.snapshotDamaged`, `.cancelled`, errors of reading.
    mutating func next(keepingData: (VersionID) -> Bool) throws -> Store.ReceivedVersion?
    var versionsRead: UInt64 { get }
    /// Returns the error for damage of the snapshot.
    func damaged(_ what: String) -> StoreError
}

/// Reads the versions of a snapshot in order, and verifies each chunk when it is read. Holds at most one chunk and one version; no size in
/// the stream is trusted before that many bytes were read.
struct SnapshotReader: SnapshotVersions {
    private let manifest: SnapshotManifest
    private let source: String
    private let read: (_ index: Int) throws -> [UInt8]?
    private let isVerified: Bool
    private let control: OperationControl
    private var payload: [UInt8] = []
    private var position = 0
    private var nextChunk = 0
    private var totalSize: UInt64 = 0
    private(set) var versionsRead: UInt64 = 0

    /// - Parameter source: the place of the snapshot, for messages.
    /// - Parameter isVerified: the whole snapshot was read before, so its sizes, which the digests cover, can be trusted.
    /// - Parameter read: returns a chunk by its index; nil if there is none.
    init(
        _ manifest: SnapshotManifest, from source: String, isVerified: Bool = false, _ control: OperationControl,
        read: @escaping (_ index: Int) throws -> [UInt8]?
    ) {
        self.manifest = manifest; self.source = source; self.isVerified = isVerified; self.control = control; self.read = read
    }

    /// Returns the next version; nil after the last, if the snapshot had all that the manifest promises.
    /// - Parameter keepingData: whether to return the bytes of a version's values; otherwise they are empty.
    /// - Throws: `.snapshotDamaged`, `.cancelled`, errors of reading.
    mutating func next(keepingData: (VersionID) -> Bool) throws -> Store.ReceivedVersion? {
        guard try !isAtEnd() else {
            guard versionsRead == manifest.versionCount, totalSize == manifest.totalSize else {
                throw damaged(
                    "it holds \(versionsRead) versions in \(totalSize) bytes, and its manifest says \(manifest.versionCount) in "
                        + "\(manifest.totalSize)"
                )
            }
            return nil
        }
        let file = try bytes(Int(exactly: try integer(UInt64.self)), atMost: SnapshotLimits.versionFileSize)
        let version = try self.version(file)
        let count = Int(try integer(UInt32.self))
        guard count <= Limits.changesPerVersion else { throw damaged("the version \(version.id) has too many changes") }
        var changes: [Value.Change] = [], hollow: [Int: WrittenValue] = [:]
        let keeps = keepingData(version.id)
        let paced = control.within(.reading, nextChunk, of: Int(clamping: manifest.chunkCount)).paced(
            .reading, doing: "Restoring the snapshot in \(source)")
        for _ in 0..<count {
            try paced.step()
            let change = try self.change(keeps) { hollow[changes.count] = $0 }
            if let last = changes.last, !(last.id < change.id) {
                throw damaged("the changes of the version \(version.id) are not in order")
            }
            changes.append(change)
        }
        versionsRead += 1
        var received = Store.ReceivedVersion(version: version, changes: changes)
        received.written = hollow
        return received
    }

    func damaged(_ what: String) -> StoreError { SnapshotReader.damaged(what, source) }
    static func damaged(_ what: String, _ source: String) -> StoreError {
        StoreError(
            .snapshotDamaged,
            "The snapshot in \(source) is damaged: \(what). Nothing of it was added. Let a store that has all versions write a new one.",
            path: source)
    }

    private func version(_ file: [UInt8]) throws -> Version {
        do { return try InterchangeDecoder.versionOfAnyName(.bytes(file), file: "A version") } catch {
            throw damaged(StoreError.of(error).message)
        }
    }

    /// - Parameter isHollow: called with the value if it has no bytes.
    private mutating func change(_ keepingData: Bool, _ isHollow: (WrittenValue) -> Void) throws -> Value.Change {
        let number = try integer(UInt8.self), kind = Value.Change.Kind(rawValue: number & ~SnapshotLimits.hollow)
        let hasBytes = number & SnapshotLimits.hollow == 0
        let id = try bytes(Int(try integer(UInt32.self)), atMost: Limits.valueIDSize)
        do { try id.withUnsafeBytes(ValueID.check) } catch { throw damaged(StoreError.of(error).message) }
        let valueID = ValueID(unchecked: id)
        guard hasBytes || kind == .insert || kind == .update else { throw damaged("it holds a change of an unknown kind") }
        switch kind {
        case .insert, .update:
            guard hasBytes else {
                let size = Int(exactly: try integer(UInt64.self))
                guard let size, size <= Limits.valueSize else { throw damaged("it names a size that no store can hold") }
                guard manifest.format == SnapshotLimits.hollowFormat else { throw damaged("it holds a change of an unknown kind") }
                isHollow(WrittenValue(hollow: size, digest: try bytes(32, atMost: 32)))
                return kind == .insert ? .insert(valueID, data: []) : .update(valueID, data: [])
            }
            let size = Int(exactly: try integer(UInt64.self)), data = keepingData ? try bytes(size, atMost: Limits.valueSize) : []
            if !keepingData { try skip(size, atMost: Limits.valueSize) }
            return kind == .insert ? .insert(valueID, data: data) : .update(valueID, data: data)
        case .remove: return .remove(valueID)
        case .preserveRemoval: return .preserveRemoval(valueID)
        case .preserve:
            let text = try bytes(Int(try integer(UInt8.self)), atMost: Limits.versionIDSize)
            guard let version = text.withUnsafeBytes({ VersionID(validating: $0) }) else {
                throw damaged("it names a version by an invalid id")
            }
            return .preserve(Value.Reference(id: valueID, version: version))
        case nil: throw damaged("it holds a change of an unknown kind")
        }
    }

    // MARK: Bytes across chunks

    private mutating func isAtEnd() throws -> Bool {
        while position == payload.count {
            guard UInt64(nextChunk) < manifest.chunkCount else { return true }
            try loadChunk()
        }
        return false
    }

    private mutating func loadChunk() throws {
        try control.check(.reading, nextChunk, of: Int(clamping: manifest.chunkCount), doing: "Restoring the snapshot in \(source)")
        let name = SnapshotLimits.chunkName(nextChunk)
        guard let chunk = try read(nextChunk) else { throw damaged("\(name) is missing") }
        guard manifest.chunkDigests.indices.contains(nextChunk), SnapshotChunk.digest(chunk) == manifest.chunkDigests[nextChunk] else {
            throw damaged("\(name) does not match its manifest; it may belong to another snapshot, or be half-written")
        }
        try Memory.expect(SnapshotLimits.payloadSize, "Reading a chunk of a snapshot")
        guard let payload = SnapshotChunk.payload(chunk, of: manifest.snapshotID) else {
            throw damaged("\(name) does not have the form of a chunk of this snapshot")
        }
        self.payload = payload
        position = 0
        nextChunk += 1
        totalSize += UInt64(chunk.count)
    }

    private mutating func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        let bytes = try bytes(MemoryLayout<T>.size, atMost: 8)
        return bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(as: T.self)) }
    }

    private mutating func bytes(_ count: Int?, atMost limit: Int) throws -> [UInt8] {
        var out: [UInt8] = []
        if isVerified, let count { try Memory.grow(&out, by: max(0, min(count, limit)), "Restoring a snapshot") }
        try take(count, atMost: limit) { piece in
            try Memory.grow(&out, by: piece.count, towards: count ?? 0, "Restoring a snapshot")
            out.append(contentsOf: piece)
        }
        return out
    }
    private mutating func skip(_ count: Int?, atMost limit: Int) throws { try take(count, atMost: limit) { _ in } }

    private mutating func take(_ count: Int?, atMost limit: Int, _ use: (ArraySlice<UInt8>) throws -> Void) throws {
        guard let count, count <= limit else { throw damaged("it names a size that no store can hold") }
        var left = count
        while left > 0 {
            guard try !isAtEnd() else { throw damaged("it ends too early") }
            let piece = min(left, payload.count - position)
            try use(payload[position..<(position + piece)])
            position += piece
            left -= piece
        }
    }
}
