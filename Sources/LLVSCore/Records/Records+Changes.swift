/// Reads changes in records.
extension Records {
    /// Calls with each change of a record, in order of the ids. If another handle replaces the record meanwhile, the rest of the changes
    /// come from its new place, with the header there. Dynamic, as `readBody`.
    package dynamic func forEachChange(_ place: RecordPlace, _ body: (RecordTable.Entry, RecordHeader) throws -> Void) throws {
        var called = 0, isOfCaller = false
        func read(_ place: RecordPlace) throws {
            var reader = reader(place), count = 0
            let header = try self.header(&reader, place)
            let isWhole = try reader.forEachChange(header) {
                count += 1
                guard count > called else { return }
                called = count
                do { try body($0, header) } catch {
                    isOfCaller = true
                    throw error
                }
            }
            guard isWhole else { throw damaged(place, "has a damaged table of changes", version: header.id) }
        }
        try lookingAgain(place, isDone: { isOfCaller }, read)
    }

    package typealias FoundChange = (kind: Value.Change.Kind, body: StoredBody, dependency: VersionID?)

    /// Returns the record's change for an id; nil if it has none. O(log changes): a few bytes for each step, and one page of the table,
    /// unless that was the last one read.
    /// - Parameter anew: whether to read from the storage, bypassing the cache.
    package func findChange(_ place: RecordPlace, _ id: UnsafeRawBufferPointer, anew: Bool = false) throws -> FoundChange? {
        // A provisional record ceases to exist, so its table is not cached.
        if !anew, place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.find(place, id, in: self, Records.found) } } catch let error as StoreError
                where error.code == .damaged
            {}
        }
        var found: FoundChange?
        try lookingAgain(place) { found = try findChange(in: ChangeTable($0, anew: true, in: self), id) }
        return found
    }

    /// Does the same in a table that the caller holds.
    func findChange(in table: ChangeTable, _ id: UnsafeRawBufferPointer) throws -> FoundChange? {
        try Records.found(table.find(id, in: self), table.header)
    }

    private static func found(_ entry: RecordTable.Entry?, _ header: RecordHeader) -> FoundChange? {
        entry.map { ($0.kind, StoredBody($0), $0.kind == .preserve ? header.dependencies[$0.dependency] : nil) }
    }

    /// Returns whether a record has a change of an id with a prefix. O(log changes), like `findChange`.
    func hasChange(_ place: RecordPlace, ofPrefix prefix: UnsafeRawBufferPointer) throws -> Bool {
        var found = false
        func look(_ table: ChangeTable) throws -> Bool {
            try table.findFirst(notBelow: prefix, in: self).map { $0.id.starts(with: prefix) } ?? false
        }
        if place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.use(place, in: self, look) } } catch let error as StoreError where error.code == .damaged {
            }
        }
        try lookingAgain(place) { found = try look(ChangeTable($0, anew: true, in: self)) }
        return found
    }

    /// Where a value's bytes are in a record, and what is known of them.
    package struct StoredBody {
        package var size: Int
        var bodyOffset: Int
        var blob: BlobID?
        package var digest: [UInt8]?
        /// Whether the record has the size and the digest, and no bytes.
        package var isHollow: Bool
        init(_ entry: RecordTable.Entry) {
            size = entry.size
            bodyOffset = entry.bodyOffset
            blob = entry.blob
            isHollow = entry.isHollow
            digest = entry.digest.map { Array($0) }
        }
    }
}

extension MapEntry {
    /// Where the bytes are that a version stored; nil if it stored none. Blobs and hollow changes have no bytes within the record.
    init?(version: UInt32, _ found: Records.FoundChange) {
        guard found.kind == .insert || found.kind == .update else { return nil }
        self.init(
            version: version, size: UInt32(truncatingIfNeeded: found.body.size),
            bodyOffset: UInt64(truncatingIfNeeded: found.body.bodyOffset))
    }
}
