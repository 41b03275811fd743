/// Reading many values at once: first what prevails, from the map, then the bytes, in the order in which they lie.
extension Store {
    /// Rows that are looked up and read together.
    static let batchRows = 1_024

    /// The values that prevail at a version, in byte order of their ids: those in the range, behind `after` and before `before`, at
    /// most `limit`, the last of them being the one with which their bytes reach `byteLimit`.
    /// - Parameters:
    ///   - version: whose state is read.
    ///   - range: only ids in it.
    ///   - after: only ids behind this one.
    ///   - before: only ids before this one.
    ///   - limit: how many at most.
    ///   - byteLimit: bytes of values, with which the batch ends.
    ///   - isBackwards: from the last one down.
    ///   - withData: false: ids and versions only.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    /// - Throws: `.unknownVersion`, `.damaged`, `.outOfMemory`, and what the storage throws.
    /// - Complexity: O(log values + those returned).
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

    /// The values that prevail under ids at a version, in the order in which they were asked for.
    /// - Parameters:
    ///   - version: whose state is read.
    ///   - isSeparated: whether a NUL follows the bytes of each value.
    ///   - ids: hands each id to its argument.
    /// - Throws: `.invalidValueID`, `.invalidUTF8`, `.unknownVersion`, `.damaged`, `.outOfMemory`, what the storage throws, and
    ///   what `ids` throws.
    /// - Complexity: O(count · log values + bytes).
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

    /// The bytes that versions stored under ids, in the order in which they were asked for.
    /// - Throws: `.unknownVersion`, and as for ids at a version.
    /// - Complexity: O(count · log changes + bytes).
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

    /// What changes set, in their order: a row for each, with no value where nothing is inserted or updated; no more than up
    /// to the one with which the bytes reach `byteLimit`.
    /// - Throws: `.damaged`, `.outOfMemory`, and what the storage throws.
    /// - Complexity: O(changes + bytes), and as for references where it is not known where the bytes are.
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

    // MARK: As values of Swift's

    /// Several at once, in order; nil where none prevails.
    public func values(_ ids: [ValueID], at version: VersionID) throws -> [Value?] {
        let batch = try batch(at: version) { sink in
            for id in ids { try id.bytes.withUnsafeBytes(sink) }
        }
        return try zip(ids, 0..<batch.count).map { try batch.value($1, id: $0) }
    }

    /// The references that prevail at a version, in byte order of their ids: at most `limit`, from the start of
    /// the range or behind `after`. O(log values + those returned).
    public func references(at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int) throws -> [Value.Reference] {
        let batch = try batch(at: version, in: range, after: after, limit: limit, withData: false)
        return try (0..<batch.count).compactMap { try batch.value($0, id: ValueID(unchecked: batch.id($0)))?.reference }
    }

    /// As `references`, with the bytes.
    public func values(at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int) throws -> [Value] {
        let batch = try batch(at: version, in: range, after: after, limit: limit)
        return try (0..<batch.count).compactMap { try batch.value($0, id: ValueID(unchecked: batch.id($0))) }
    }

    /// Calls with the bounds of what is asked for; no upper one when it is open.
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
    /// A row as a value of Swift's; nil when there is none.
    func value(_ row: Int, id: ValueID) throws -> Value? {
        guard rows[row].version != nil else { return nil }
        return Value(id: id, data: Array(data[rows[row].data]), storedVersion: try VersionID(ascii: storedVersion(row)))
    }
}
