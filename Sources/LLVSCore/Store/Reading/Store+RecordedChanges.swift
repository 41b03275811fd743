/// Reads what a version recorded, one change at a time.
extension Store {
    /// Calls with each change that a version recorded, in byte order of the ids. Borrowed bytes are valid during the call. Only one value
    /// is in memory at a time.
    /// - Parameter withHollow: whether to call with changes without bytes as well, which have their size and digest. Changes whose bytes
    ///   are sent to no device count as such. If not, changes without bytes throw.
    /// - Throws: the errors of `body`, `.unknownVersion`, `.damaged`, `.forgotten`, `.erased`.
    package func forEachChange(madeIn id: VersionID, withHollow: Bool = false, _ body: (BorrowedChange) throws -> Void) throws {
        let place = place(of: try requireOrdinal(id)), withheld = withHollow ? try orders.withheld(of: id) : []
        var i = -1
        try records.forEachChange(place) { entry, header in
            i += 1
            switch entry.kind {
            case .insert, .update:
                if withHollow, let value = try withoutBytes(entry, isWithheld: withheld.contains(i), in: place, of: id) {
                    return try withExtendedLifetime(value) { try body(BorrowedChange(kind: entry.kind, id: entry.id, hollow: value)) }
                }
                let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
                try records.withBody(place, located, id: entry.id, stored: header.id) {
                    try body(BorrowedChange(kind: entry.kind, id: entry.id, data: $0))
                }
            case .preserve: try body(BorrowedChange(kind: .preserve, id: entry.id, storedVersion: header.dependencies[entry.dependency]))
            case .remove, .preserveRemoval: try body(BorrowedChange(kind: entry.kind, id: entry.id))
            }
        }
    }

    /// Calls with each change that a version recorded, with the sizes of values instead of their bytes. A change without bytes has the size
    /// 0, and its own size and digest.
    package func forEachChangeSize(madeIn id: VersionID, _ body: (BorrowedChange, _ size: Int) throws -> Void) throws {
        let place = place(of: try requireOrdinal(id)), withheld = try orders.withheld(of: id)
        var i = -1
        try records.forEachChange(place) { entry, header in
            i += 1
            if let value = try withoutBytes(entry, isWithheld: withheld.contains(i), in: place, of: id) {
                return try withExtendedLifetime(value) { try body(BorrowedChange(kind: entry.kind, id: entry.id, hollow: value), 0) }
            }
            let stored = entry.kind == .preserve ? header.dependencies[entry.dependency] : nil
            try body(
                BorrowedChange(kind: entry.kind, id: entry.id, storedVersion: stored),
                entry.kind == .insert || entry.kind == .update ? entry.size : 0)
        }
    }

    /// Returns the value of a change that is sent without bytes; nil for other changes.
    private func withoutBytes(_ entry: RecordTable.Entry, isWithheld: Bool, in place: RecordPlace, of id: VersionID) throws
        -> WrittenValue?
    {
        if entry.isHollow { return WrittenValue(hollow: entry) }
        guard isWithheld, entry.kind == .insert || entry.kind == .update, !entry.id.starts(with: EraseOrder.reserved) else { return nil }
        let digest = try entry.digest.map { Array($0) } ?? records.withValue(entry, in: place, of: id) { SHA256.digest($0) }
        return WrittenValue(hollow: entry.size, digest: digest)
    }

    /// Returns how many values a version stored that are sent without bytes, since the store has none, or sends them to nobody.
    package func hollowCount(of id: VersionID) throws -> Int {
        let place = place(of: try requireOrdinal(id)), withheld = try orders.withheld(of: id)
        if withheld.isEmpty { return try records.hollowCount(place) }
        var i = -1, count = 0
        try records.forEachChange(place) { entry, _ in
            i += 1
            guard entry.kind == .insert || entry.kind == .update else { return }
            if entry.isHollow || (withheld.contains(i) && !entry.id.starts(with: EraseOrder.reserved)) { count += 1 }
        }
        return count
    }

    package func changeCount(of id: VersionID) throws -> Int {
        let ordinal = try requireOrdinal(id)
        return lock.withRead { Int(dag.rows[Int(ordinal)].changeCount) }
    }
}

extension Value.Change {
    /// Creates a change with bytes of its own. A value without bytes has none.
    package init?(copying change: BorrowedChange) {
        let key = ValueID(unchecked: change.id)
        switch change.kind {
        case .insert: self = .insert(key, data: Array(change.data))
        case .update: self = .update(key, data: Array(change.data))
        case .remove: self = .remove(key)
        case .preserve:
            guard let stored = change.storedVersion else { return nil }
            self = .preserve(Value.Reference(id: key, version: stored))
        case .preserveRemoval: self = .preserveRemoval(key)
        }
    }
}

extension WrittenValue {
    /// Creates the value of a change without bytes; nil for other changes.
    package convenience init?(hollow entry: RecordTable.Entry) {
        guard entry.isHollow, let digest = entry.digest else { return nil }
        self.init(hollow: entry.size, digest: Array(digest))
    }
}

extension BorrowedChange {
    /// Creates a change without bytes. `value` must outlive it.
    fileprivate init(kind: Value.Change.Kind, id: UnsafeRawBufferPointer, hollow value: WrittenValue) {
        self.init(kind: kind, id: id)
        written = Unmanaged.passUnretained(value)
    }
    /// The size and the digest of a value without bytes; nil if there are bytes.
    package var hollow: (size: Int, digest: [UInt8])? {
        written.flatMap { $0._withUnsafeGuaranteedRef { $0.isHollow ? ($0.size, $0.digest) : nil } }
    }
}
