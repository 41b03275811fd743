/// Changes in records.
extension Records {
    /// Calls with each change that a record holds, in order of the ids.
    func forEachChange(_ place: RecordPlace, _ body: (RecordTable.Entry, RecordHeader) throws -> Void) throws {
        var reader = reader(place)
        let header = try self.header(&reader, place)
        guard try reader.forEachChange(header, { try body($0, header) }) else {
            throw damaged(place, "has a damaged table of changes", version: header.id)
        }
    }

    typealias FoundChange = (kind: Value.Change.Kind, body: StoredBody, dependency: VersionID?)

    /// What a record holds about one value id; nil when it does not name it. O(log changes): a few bytes for each step, and
    /// one page of the table, unless that was read just before.
    /// - Parameter anew: from the storage, whatever is in memory.
    func findChange(_ place: RecordPlace, _ id: UnsafeRawBufferPointer, anew: Bool = false) throws -> FoundChange? {
        // A provisional record is gone some time.
        if !anew, place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.find(place, id, in: self, Records.found) } } catch let error as StoreError
                where error.code == .damaged
            {}
        }
        return try findChange(in: ChangeTable(place, anew: true, in: self), id)
    }

    /// The same in a table that the caller keeps.
    func findChange(in table: ChangeTable, _ id: UnsafeRawBufferPointer) throws -> FoundChange? {
        try Records.found(table.find(id, in: self), table.header)
    }

    private static func found(_ entry: RecordTable.Entry?, _ header: RecordHeader) -> FoundChange? {
        entry.map { ($0.kind, StoredBody($0), $0.kind == .preserve ? header.dependencies[$0.dependency] : nil) }
    }

    /// Whether a record names an id that begins so. O(log changes), as `findChange`.
    func hasChange(_ place: RecordPlace, ofPrefix prefix: UnsafeRawBufferPointer) throws -> Bool {
        func look(_ table: ChangeTable) throws -> Bool {
            try table.findFirst(notBelow: prefix, in: self).map { $0.id.starts(with: prefix) } ?? false
        }
        if place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.use(place, in: self, look) } } catch let error as StoreError where error.code == .damaged {
            }
        }
        return try look(ChangeTable(place, anew: true, in: self))
    }

    /// Where the bytes of a value are in a record, and what is known of them.
    struct StoredBody {
        var size: Int
        var bodyOffset: Int
        var blob: BlobID?
        var digest: [UInt8]?
        init(_ entry: RecordTable.Entry) {
            size = entry.size
            bodyOffset = entry.bodyOffset
            blob = entry.blob
            digest = entry.digest.map { Array($0) }
        }
    }
}

extension MapEntry {
    /// Where the bytes are that a version stored; nil when it stored none. Those of blobs are nowhere within the record.
    init?(version: UInt32, _ found: Records.FoundChange) {
        guard found.kind == .insert || found.kind == .update else { return nil }
        self.init(
            version: version, size: UInt32(truncatingIfNeeded: found.body.size),
            bodyOffset: UInt64(truncatingIfNeeded: found.body.bodyOffset))
    }
}
