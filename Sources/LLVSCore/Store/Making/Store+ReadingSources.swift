/// Makes versions with values that come in pieces.
extension Store {
    /// The content of a source: a blob, or bytes if it is too small for one or the storage has no blobs.
    package enum Pulled {
        case bytes([UInt8])
        case written(WrittenValue)

        package var size: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .written(let value): value.size
            }
        }
        /// Sets the value of a change. The result must be retained as long as the change.
        func set(_ change: inout BorrowedChange) {
            switch self {
            case .bytes(let bytes): change.data = bytes.withUnsafeBytes { $0 }
            case .written(let value): change.written = Unmanaged.passUnretained(value)
            }
        }
    }

    /// The same as `makeVersion`, with values that are read piece by piece in addition to the changes. Each is an update.
    ///
    /// A value that is larger than what the storage stores in records is written directly to its own file: only one piece is in memory.
    /// Smaller values are collected in memory.
    /// - Throws: the errors of a source, unchanged; `.tooLarge` if one has more bytes than a value may have, `.invalidArgument` if it
    ///   does not have as many bytes as it announced; otherwise like `makeVersion`. After an error, nothing of the version is stored.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await the form whose sources are a closure.")
    @discardableResult
    public func makeVersion(
        basedOn predecessor: VersionID?, changes: [Value.Change], reading sources: [ValueSource], metadata: Metadata = Metadata(),
        id: VersionID? = nil, timestamp: Double? = nil
    ) throws -> Version {
        try changes.withBorrowed {
            try makeVersion(basedOn: predecessor, borrowing: $0, reading: sources, metadata: metadata, id: id, timestamp: timestamp)
        }
    }

    /// Makes a version as the function above, with bytes that the caller owns.
    @discardableResult
    package func makeVersion(
        basedOn predecessor: VersionID?, borrowing changes: BorrowedChanges, reading sources: [ValueSource],
        metadata: Metadata = Metadata(), id: VersionID? = nil,
        timestamp: Double? = nil
    ) throws -> Version {
        guard !sources.isEmpty else {
            return try makeVersion(basedOn: predecessor, borrowing: changes, metadata: metadata, id: id, timestamp: timestamp)
        }
        try checkWritable("Making a version")
        // Report errors in the ids before anything is read.
        let ids = sources.map(\.id.bytes)
        let named = Array(changes) + ids.map { BorrowedChange(kind: .update, id: $0.withUnsafeBytes { $0 }) }
        return try withExtendedLifetime(ids) {
            _ = try ChangeOrder(checking: BorrowedChanges(named))
            if let predecessor, predecessor != EmptyRoot.id { _ = try requireOrdinal(predecessor, .unknownPredecessor, toBuildOn: true) }
            try VersionMaking(store: self).checkAllowed(BorrowedChanges(named), metadata, on: predecessor)
            var pulled: [Pulled] = []
            do {
                for source in sources { pulled.append(try pull(source)) }
                return try withExtendedLifetime(pulled) {
                    var list = named
                    for (i, value) in pulled.enumerated() { value.set(&list[changes.count + i]) }
                    let (version, isNew) = try VersionMaking(store: self).make(
                        basedOn: predecessor, borrowing: BorrowedChanges(list), metadata: metadata, id: id, timestamp: timestamp)
                    // The existing version has blobs of its own.
                    if !isNew { remove(pulled) }
                    return version
                }
            } catch {
                if (error as? StoreError)?.code != .unknownOutcome { remove(pulled) }
                throw error
            }
        }
    }

    func remove(_ pulled: [Pulled]) {
        for case .written(let value) in pulled { storage.removeBlob(value.blob) }
    }

    func pull(_ source: ValueSource) throws -> Pulled {
        let threshold = storage.blobThreshold ?? Int.max
        let limit = source.size ?? Limits.valueSize
        guard limit >= 0, limit <= Limits.valueSize else {
            throw StoreError(
                .tooLarge, "The value of \"\(source.id)\" is to have \(limit) bytes; at most \(Limits.valueSize) (1 GiB) are allowed.",
                valueID: source.id)
        }
        var bytes: [UInt8] = [], size = 0, digest = SHA256()
        var writer = try source.size.flatMap { $0 > threshold ? try storage.blobWriter(size: $0) : nil }
        // A larger announced size is not trusted: there may be no memory for it. Grow as the bytes arrive.
        if writer == nil, let size = source.size {
            try Memory.grow(&bytes, by: min(size, 16 << 20), "Reading the value of \"\(source.id)\"")
        }
        try withUnsafeTemporaryAllocation(byteCount: 256 << 10, alignment: 16) { buffer in
            while true {
                let got = try source.read(buffer)
                guard got >= 0, got <= buffer.count else {
                    throw StoreError(
                        .invalidArgument,
                        "Reading the value of \"\(source.id)\" returned \(UInt(bitPattern: got)) bytes "
                            + "for a buffer of \(buffer.count).",
                        valueID: source.id)
                }
                if got == 0 { return }
                size += got
                guard size <= limit else {
                    if source.size != nil { throw Store.wrongSize(source.id, limit, "more") }
                    throw StoreError(
                        .tooLarge,
                        "The value of \"\(source.id)\" has more than \(limit) bytes (1 GiB), the most that is allowed. "
                            + "Split it into several values.",
                        valueID: source.id)
                }
                let piece = UnsafeRawBufferPointer(rebasing: buffer[..<got])
                if writer == nil {
                    try Memory.grow(&bytes, by: got, "Reading the value of \"\(source.id)\"")
                    bytes.append(contentsOf: piece)
                    guard bytes.count > threshold else { continue }
                    let new = try storage.blobWriter(size: nil)
                    try bytes.withUnsafeBytes {
                        try new.append($0); digest.update($0)
                    }
                    bytes = []
                    writer = new
                } else {
                    try writer?.append(piece)
                    digest.update(piece)
                }
            }
        }
        if let told = source.size, told != size { throw Store.wrongSize(source.id, told, "\(size)") }
        guard let writer else { return .bytes(bytes) }
        let sum = digest.finish()
        return .written(WrittenValue(blob: try writer.finish(digest: sum), size: size, digest: sum))
    }

    private static func wrongSize(_ id: ValueID, _ told: Int, _ found: String) -> StoreError {
        StoreError(
            .invalidArgument, "The given size of the value \"\(id)\" is \(told) bytes, but it has \(found). Give its actual size, or none.",
            valueID: id)
    }
}
