/// Reads what a version recorded, one change at a time.
extension Store {
    /// Calls with each change that a version recorded, in byte order of the ids. Borrowed bytes are valid during the call. Only one value
    /// is in memory at a time.
    /// - Throws: the errors of `body`, `.unknownVersion`, `.damaged`.
    package func forEachChange(madeIn id: VersionID, _ body: (BorrowedChange) throws -> Void) throws {
        let place = place(of: try requireOrdinal(id))
        try records.forEachChange(place) { entry, header in
            switch entry.kind {
            case .insert, .update:
                let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
                try records.withBody(place, located, id: entry.id, stored: header.id) {
                    try body(BorrowedChange(kind: entry.kind, id: entry.id, data: $0))
                }
            case .preserve: try body(BorrowedChange(kind: .preserve, id: entry.id, storedVersion: header.dependencies[entry.dependency]))
            case .remove, .preserveRemoval: try body(BorrowedChange(kind: entry.kind, id: entry.id))
            }
        }
    }

    /// Calls with each change that a version recorded, with the sizes of values instead of their bytes.
    package func forEachChangeSize(madeIn id: VersionID, _ body: (BorrowedChange, _ size: Int) throws -> Void) throws {
        try records.forEachChange(place(of: try requireOrdinal(id))) { entry, header in
            let stored = entry.kind == .preserve ? header.dependencies[entry.dependency] : nil
            try body(
                BorrowedChange(kind: entry.kind, id: entry.id, storedVersion: stored),
                entry.kind == .insert || entry.kind == .update ? entry.size : 0)
        }
    }

    package func changeCount(of id: VersionID) throws -> Int {
        let ordinal = try requireOrdinal(id)
        return lock.withRead { Int(dag.rows[Int(ordinal)].changeCount) }
    }
}
