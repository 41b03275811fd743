import CLLVSShims

/// Reading records: their headers, their changes, the bytes of a value. Whatever does not match its
/// checksum is `.damaged`, never handed out.
extension Store {
    func readBytes(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if place.segment == ProvisionalRecords.segment {
            guard provisional.read(place, at: offset, into: buffer) else {
                throw StoreError(.unknownVersion, "A version that a merge was making was given up meanwhile. Ask for versions that are in the history.")
            }
            return
        }
        try noting(place) { try storage.read(place, at: offset, into: buffer) }
    }

    /// As `readBytes`, but by way of the blocks in memory.
    func readBlocks(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if place.segment == ProvisionalRecords.segment { return try readBytes(place, at: offset, into: buffer) }
        if try noting(place, { try !blocks.read(place, at: offset, into: buffer) }) { follow(place.segment) }
    }

    /// Keeps in mind where the storage cannot give what was written.
    private func noting<R>(_ place: RecordPlace, _ read: () throws -> R) throws -> R {
        do { return try read() } catch let error as StoreError where error.code.isDamage {
            knownDamage.note(place)
            throw error
        }
    }

    /// - Parameter anew: from the storage, whatever is in memory.
    func reader(_ place: RecordPlace, anew: Bool = true) -> RecordReader {
        RecordReader(length: place.length) { [self] offset, buffer in
            if anew { try readBytes(place, at: offset, into: buffer) } else { try readBlocks(place, at: offset, into: buffer) }
        }
    }

    func readHeader(_ place: RecordPlace, prefix: UnsafeRawBufferPointer? = nil) throws -> RecordHeader {
        if let prefix, case .whole(let header) = RecordHeader.read(prefix, recordLength: place.length) { return header }
        var reader = reader(place)
        return try readHeader(&reader, place)
    }

    func readHeader(_ reader: inout RecordReader, _ place: RecordPlace) throws -> RecordHeader {
        try Memory.check()
        switch try reader.header() {
        case .whole(let header): return header
        case .needs: throw damaged(place, "is cut short")
        case .newer(let id, let what): throw newer(place, id, what)
        case .damaged(let why): throw damaged(place, why)
        }
    }

    private func newer(_ place: RecordPlace, _ id: VersionID?, _ what: String) -> StoreError {
        let (file, offset) = storage.location(place)
        return StoreError(
            .newerFormat,
            "The record of \(id.map { "version \($0)" } ?? "a version") at \(offset) of \(file) was made by a newer version of the library: it has \(what), which this one does not know (it knows format \(RecordHeader.format)). Use a newer version of the library.",
            versionID: id?.description)
    }

    func damaged(_ place: RecordPlace, _ why: String, version: VersionID? = nil, value: UnsafeRawBufferPointer? = nil) -> StoreError {
        knownDamage.note(place)
        let (file, offset) = storage.location(place)
        return StoreError(
            .damaged,
            "The record at \(offset) of \(file) \(why). A retrieve from whoever has the version\(version.map { " \($0)" } ?? "") repairs it; verify the store to see what else is damaged.",
            valueID: value.map { ValueID(unchecked: $0) }, versionID: version?.description)
    }

    func place(of ordinal: UInt32) -> RecordPlace { lock.withRead { dag.rows[Int(ordinal)].place } }

    /// Calls with each change that a record holds, in order of the ids.
    func forEachChange(_ place: RecordPlace, _ body: (RecordTable.Entry, RecordHeader) throws -> Void) throws {
        var reader = reader(place)
        let header = try readHeader(&reader, place)
        guard try reader.forEachChange(header, { try body($0, header) }) else {
            throw damaged(place, "has a damaged table of changes", version: header.id)
        }
    }

    typealias FoundChange = (kind: Value.Change.Kind, body: StoredBody, dependency: VersionID?)

    /// What a record holds about one value id; nil when it does not name it. O(log changes): a few bytes for each step, and
    /// one page of the table, unless that was read just before.
    /// - Parameter anew: from the storage, whatever is in memory.
    func findChange(_ place: RecordPlace, _ id: UnsafeRawBufferPointer, anew: Bool = false) throws -> FoundChange? {
        func found(_ entry: RecordTable.Entry?, _ header: RecordHeader) -> FoundChange? {
            entry.map { ($0.kind, StoredBody($0), $0.kind == .preserve ? header.dependencies[$0.dependency] : nil) }
        }
        // A provisional record is gone some time.
        if !anew, place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.find(place, id, in: self, found) } } catch let error as StoreError where error.code == .damaged {}
        }
        let table = try ChangeTable(place, anew: true, in: self)
        return try found(table.find(id, in: self), table.header)
    }

    /// Whether a record names an id that begins so. O(log changes), as `findChange`.
    func hasChange(_ place: RecordPlace, ofPrefix prefix: UnsafeRawBufferPointer) throws -> Bool {
        func look(_ table: ChangeTable) throws -> Bool {
            try table.findFirst(notBelow: prefix, in: self).map { $0.id.starts(with: prefix) } ?? false
        }
        if place.segment != ProvisionalRecords.segment {
            do { return try tables.with { try $0.use(place, in: self, look) } } catch let error as StoreError where error.code == .damaged {}
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

    /// Calls with the bytes of a value that version `stored` recorded.
    /// - Parameter anew: from the storage, whatever is in memory.
    func withBody<R>(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        guard entry.bodyOffset != 0, entry.size != MapEntry.unknownSize else {
            guard let found = try findChange(place, id, anew: anew), found.kind == .insert || found.kind == .update else {
                throw damaged(place, "does not hold a value that another version says it does", version: stored, value: id)
            }
            if let blob = found.body.blob { return try withBlob(blob, found.body, place, id: id, stored: stored, body) }
            let located = MapEntry(version: entry.version, size: UInt32(found.body.size), bodyOffset: UInt64(found.body.bodyOffset))
            return try withBody(place, located, id: id, stored: stored, anew: anew, body)
        }
        let size = Int(entry.size)
        let available = entry.bodyOffset < place.length ? place.length - entry.bodyOffset : 0
        let wanted = min(UInt64(RecordTable.bodyHeaderSize + size), available)
        guard wanted >= UInt64(RecordTable.bodyHeaderSize) else {
            if !anew, let moved = moved(entry, place, id) { return try withBody(place, moved, id: id, stored: stored, anew: true, body) }
            throw damaged(place, "is cut short", version: stored, value: id)
        }
        return try withScratch(Int(wanted)) { buffer in
            do {
                if anew { try readBytes(place, at: entry.bodyOffset, into: buffer) } else { try readBlocks(place, at: entry.bodyOffset, into: buffer) }
            } catch var error as StoreError where error.code.isDamage {
                error.valueID = ValueID(unchecked: id)
                error.versionID = stored.description
                throw error
            }
            var found = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: stored)
            if found == nil, !anew {
                // What is in memory may have been read before it was written, or is damaged itself.
                blocks.forget(place, from: entry.bodyOffset, count: buffer.count)
                try readBytes(place, at: entry.bodyOffset, into: buffer)
                found = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: stored)
            }
            guard let bytes = found else {
                if !anew, let moved = moved(entry, place, id) { return try withBody(place, moved, id: id, stored: stored, anew: true, body) }
                throw damaged(place, "has a damaged value", version: stored, value: id)
            }
            if bytes.count == size { return try body(bytes) }
            return try withScratch(size) { out in
                guard let to = out.baseAddress, let from = bytes.baseAddress, llvs_shim_inflate(from, bytes.count, to, size) == 1 else {
                    throw damaged(place, "has a value that does not inflate", version: stored, value: id)
                }
                return try body(UnsafeRawBufferPointer(out))
            }
        }
    }

    /// Where the record itself says that the bytes are, when that is not where an entry says: another record of the version
    /// may be read since the map was made.
    func moved(_ entry: MapEntry, _ place: RecordPlace, _ id: UnsafeRawBufferPointer) -> MapEntry? {
        guard let found = try? findChange(place, id, anew: true), let moved = MapEntry(version: entry.version, found) else { return nil }
        return moved.bodyOffset != entry.bodyOffset || moved.size != entry.size ? moved : nil
    }

    /// Calls with the body of a large value that is within its record.
    func withLargeBody<R>(_ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, _ body: (LargeBody) throws -> R) throws -> R {
        do { return try body(LargeBody(self, place, entry, id: id, stored: stored)) } catch let error as StoreError where error.code == .damaged {
            guard let moved = moved(entry, place, id), moved.bodyOffset != 0, moved.size == entry.size else { throw error }
            return try body(LargeBody(self, place, moved, id: id, stored: stored))
        }
    }

    /// An entry whose size or place the map does not tell, with its size, and its place where it is within the record.
    func located(_ entry: MapEntry, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored: VersionID) throws -> MapEntry {
        guard let found = try findChange(place, id), let located = MapEntry(version: entry.version, found) else {
            throw damaged(place, "does not hold a value that another version says it does", version: stored, value: id)
        }
        return located
    }

    /// To be asked before there is memory for as much as a record claims: the blob must have it, and must be the one that the
    /// change names.
    func check(_ blob: BlobID, _ body: StoredBody, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored: VersionID) throws {
        try readBlob(blob, at: body.size, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), id: id, stored: stored)
        guard let digest = body.digest, let told = storage.blobTells(blob), !digest.starts(with: told) else { return }
        throw damaged(place, "names a file for a value in which another value is", version: stored, value: id)
    }

    /// Fills the buffer from byte `offset` of the value on; an error says whose value it is.
    func readBlob(_ blob: BlobID, at offset: Int, into buffer: UnsafeMutableRawBufferPointer, id: UnsafeRawBufferPointer, stored: VersionID) throws {
        do { try storage.readBlob(blob, at: UInt64(offset), into: buffer) } catch var error as StoreError where error.code.isDamage {
            knownDamage.note(stored)
            error.valueID = ValueID(unchecked: id)
            error.versionID = stored.description
            throw error
        }
    }

    private func withBlob<R>(
        _ blob: BlobID, _ stored: StoredBody, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored version: VersionID, _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        try check(blob, stored, place, id: id, stored: version)
        return try withScratch(stored.size) { buffer in
            try readBlob(blob, at: 0, into: buffer, id: id, stored: version)
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }
}

extension MapEntry {
    /// Where the bytes are that a version stored; nil when it stored none. Those of blobs are nowhere within the record.
    init?(version: UInt32, _ found: Store.FoundChange) {
        guard found.kind == .insert || found.kind == .update else { return nil }
        self.init(version: version, size: UInt32(truncatingIfNeeded: found.body.size), bodyOffset: UInt64(truncatingIfNeeded: found.body.bodyOffset))
    }
}
