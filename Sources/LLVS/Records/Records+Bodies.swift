/// The bytes of values, in records and in files of their own.
extension Records {
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
                if anew {
                    try read(place, at: entry.bodyOffset, into: buffer)
                } else {
                    try readBlocks(place, at: entry.bodyOffset, into: buffer)
                }
            } catch var error as StoreError where error.code.isDamage {
                error.valueID = ValueID(unchecked: id)
                error.versionID = stored.description
                throw error
            }
            var found = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: stored)
            if found == nil, !anew {
                // What is in memory may have been read before it was written, or is damaged itself.
                blocks.forget(place, from: entry.bodyOffset, count: buffer.count)
                try read(place, at: entry.bodyOffset, into: buffer)
                found = RecordTable.body(UnsafeRawBufferPointer(buffer), size: size, id: id, version: stored)
            }
            guard let bytes = found else {
                if !anew, let moved = moved(entry, place, id) {
                    return try withBody(place, moved, id: id, stored: stored, anew: true, body)
                }
                throw damaged(place, "has a damaged value", version: stored, value: id)
            }
            if bytes.count == size { return try body(bytes) }
            return try withScratch(size) { out in
                guard Inflated.fill(out.baseAddress, size: size, from: bytes) else {
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
    func withLargeBody<R>(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, _ body: (LargeBody) throws -> R
    ) throws -> R {
        do { return try body(LargeBody(self, place, entry, id: id, stored: stored)) } catch let error as StoreError
            where error.code == .damaged
        {
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
    func readBlob(_ blob: BlobID, at offset: Int, into buffer: UnsafeMutableRawBufferPointer, id: UnsafeRawBufferPointer, stored: VersionID)
        throws
    {
        do { try storage.readBlob(blob, at: UInt64(offset), into: buffer) } catch var error as StoreError where error.code.isDamage {
            knownDamage.note(stored)
            error.valueID = ValueID(unchecked: id)
            error.versionID = stored.description
            throw error
        }
    }

    private func withBlob<R>(
        _ blob: BlobID, _ stored: StoredBody, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored version: VersionID,
        _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        try check(blob, stored, place, id: id, stored: version)
        return try withScratch(stored.size) { buffer in
            try readBlob(blob, at: 0, into: buffer, id: id, stored: version)
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }

    /// Calls with the bytes of a change.
    /// - Throws: `.damaged` when they are not what was written; what reading throws.
    func withValue<R>(
        _ entry: RecordTable.Entry, in place: RecordPlace, of version: VersionID, _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
        return try withBody(place, located, id: entry.id, stored: version, anew: true, body)
    }
}
