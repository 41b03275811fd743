/// Reads many values at once: first the entries from the map, then the bytes in storage order.
extension Store {
    /// Rows that are looked up and read together.
    package static let batchRows = 1_024

    /// Returns the values that prevail at a version, in byte order of their ids: those in the range, after `after` and before `before`,
    /// at most `limit`. The last one is that with which their bytes reach `byteLimit`.
    /// - Parameters:
    ///   - version: the version whose state is read.
    ///   - range: only ids in it.
    ///   - after: only ids after this one.
    ///   - before: only ids before this one.
    ///   - limit: the most values.
    ///   - byteLimit: the bytes of values at which the batch ends.
    ///   - isBackwards: whether to go from the last id down.
    ///   - withData: false for ids and versions only.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    /// - Throws: `.unknownVersion`, `.damaged`, `.outOfMemory`, and other errors of the storage.
    /// - Complexity: O(log values + those returned).
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await values(at:in:after:limit:).")
    public func batch(
        at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, before: ValueID? = nil, isBackwards: Bool = false,
        limit: Int, byteLimit: Int = .max, withData: Bool = true, isSeparated: Bool = true
    ) throws -> ValueBatch {
        let batch = ValueBatch(hasData: withData, isSeparated: isSeparated)
        let root = try maps.map(requireOrdinal(version))
        var filling = BatchFilling(self, batch, byteLimit: byteLimit)
        var after = after?.bytes, before = before?.bytes
        while let root, batch.count < limit {
            let first = batch.count, most = min(limit - first, Store.batchRows)
            var failure: (any Error)?
            func add(_ key: UnsafeRawBufferPointer, _ entry: MapEntry) -> Bool {
                do { try filling.append(key, entry) } catch { failure = error; return false }
                return batch.count - first < most && filling.isBelowLimit
            }
            let isAll = withBounds(range, after: after, before: before) { low, high in
                isBackwards ? root.forEachBackwards(from: low, to: high, add) : root.forEach(from: low, to: high, add)
            }
            if let failure { throw failure }
            guard try filling.fill(), !isAll, batch.count - first == most else { break }
            let last = Array(batch.id(batch.count - 1))
            if isBackwards { before = last } else { after = last }
        }
        try batch.finish()
        return batch
    }

    /// Returns the values that prevail for ids at a version, in the order of the ids.
    /// - Parameters:
    ///   - version: the version whose state is read.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    ///   - ids: calls its argument with each id.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, `.outOfMemory`, other errors of the storage, and those
    ///   of `ids`.
    /// - Complexity: O(count · log values + bytes).
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await values(at:in:after:limit:).")
    public func batch(
        at version: VersionID, isSeparated: Bool = true, ids: (_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws -> ValueBatch {
        let batch = ValueBatch(isSeparated: isSeparated)
        let root = try maps.map(requireOrdinal(version))
        var filling = BatchFilling(self, batch)
        func fill() throws {
            filling.lookUp(in: root)
            _ = try filling.fill()
        }
        try ids { id in
            try ValueID.check(id)
            try filling.append(id)
            if batch.count % Store.batchRows == 0 { try fill() }
        }
        try fill()
        try batch.finish()
        return batch
    }

    /// Returns the bytes that versions stored under ids, in the order of the references.
    /// - Throws: `.unknownVersion`, and the errors of reading ids at a version.
    /// - Complexity: O(count · log changes + bytes).
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await values(at:in:after:limit:).")
    public func batch(_ references: some Collection<Value.Reference>) throws -> ValueBatch {
        let batch = ValueBatch()
        var filling = BatchFilling(self, batch)
        for reference in references {
            let ordinal = try requireOrdinal(reference.version)
            try reference.id.bytes.withUnsafeBytes { id in
                try filling.append(id, maps.stored(id, in: ordinal))
            }
            if batch.count % Store.batchRows == 0 { _ = try filling.fill() }
        }
        _ = try filling.fill()
        try batch.finish()
        return batch
    }

    /// Returns the values of changes, in their order: a row for each, which has no value unless the change inserts or updates. Ends with
    /// the row whose bytes reach `byteLimit`.
    /// - Throws: `.damaged`, `.outOfMemory`, and other errors of the storage.
    /// - Complexity: O(changes + bytes), and as for references if the place of the bytes is not known.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await values(at:in:after:limit:).")
    public func batch(_ changes: some Collection<ChangeSummary>, byteLimit: Int = .max) throws -> ValueBatch {
        let batch = ValueBatch()
        var filling = BatchFilling(self, batch, byteLimit: byteLimit)
        for change in changes {
            let entry = change.kind == .insert || change.kind == .update ? change.entry : nil
            try change.id.bytes.withUnsafeBytes { try filling.append($0, entry) }
            if batch.count % Store.batchRows == 0 || !filling.isBelowLimit, try !filling.fill() { break }
        }
        _ = try filling.fill()
        try batch.finish()
        return batch
    }

    // MARK: As Swift values

    /// Returns several values in order; nil for those that are absent.
    public func values(_ ids: [ValueID], at version: VersionID) throws -> [Value?] {
        let batch = try batch(at: version) { sink in
            for id in ids { try id.bytes.withUnsafeBytes(sink) }
        }
        return try zip(ids, 0..<batch.count).map { try batch.value($1, id: $0) }
    }

    /// Returns the references that prevail at a version, in byte order of their ids: at most `limit`, from the start of the range or
    /// after `after`. O(log values + those returned).
    public func references(at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int) throws -> [Value.Reference] {
        let batch = try batch(at: version, in: range, after: after, limit: limit, withData: false)
        return try (0..<batch.count).compactMap { try batch.value($0, id: ValueID(unchecked: batch.id($0)))?.reference }
    }

    /// The same as `references`, with the bytes.
    public func values(at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int) throws -> [Value] {
        let batch = try batch(at: version, in: range, after: after, limit: limit)
        return try (0..<batch.count).compactMap { try batch.value($0, id: ValueID(unchecked: batch.id($0))) }
    }

    /// Calls with the bounds of a query; the upper one is nil if it is open.
    func withBounds<R>(
        _ range: IDRange, after: [UInt8]? = nil, before: [UInt8]? = nil,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) throws -> R
    ) rethrows -> R {
        var (low, high) = range.bounds
        if let after, Bytes.compare(after, low) >= 0 { low = after + [0] }
        if let before, high.map({ Bytes.compare(before, $0) < 0 }) ?? true { high = before }
        return try low.withUnsafeBytes { low in
            guard let high else { return try body(low, nil) }
            return try high.withUnsafeBytes { try body(low, $0) }
        }
    }
}

extension ValueBatch {
    /// Returns a row as a Swift value; nil if it has none.
    /// - Throws: `.forgotten` or `.erased` if its bytes are gone.
    func value(_ row: Int, id: ValueID) throws -> Value? {
        guard rows[row].version != nil else { return nil }
        if rows[row].isForgotten {
            let version = try VersionID(ascii: storedVersion(row))
            throw rows[row].isErased ? Records.erased(id, version) : Records.forgotten(id, version)
        }
        return Value(id: id, data: Array(data[rows[row].data]), storedVersion: try VersionID(ascii: storedVersion(row)))
    }
}
