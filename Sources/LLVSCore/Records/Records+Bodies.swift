/// Reads the bytes of values, in records and in blobs.
extension Records {
    /// Calls with the bytes of a value that version `stored` recorded.
    /// - Parameters:
    ///   - anew: whether to read from the storage, not from caches.
    ///   - target: memory of the value's size. If the value is a difference, it is made there, and the bytes are those of the target.
    package func withBody<R>(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool = false,
        into target: UnsafeMutableRawBufferPointer? = nil, _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        var result: R?
        try readBodyWhereItIs(place, entry, id: id, stored: stored, anew: anew, into: target) { result = try body($0) }
        guard let result else { throw StoreError(.internal, "A value was read without a result.") }
        return result
    }

    /// Reads at the place of the record, or, if damage is found there and the record has moved since, at the new one.
    private func readBodyWhereItIs(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool,
        into target: UnsafeMutableRawBufferPointer?, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        var isCalled = false
        // A local function for both calls would allocate memory in each read.
        do {
            try readBody(place, entry, id: id, stored: stored, anew: anew, into: target) {
                isCalled = true
                try body($0)
            }
        } catch let error as StoreError
            where !isCalled && (error.code.isDamage || error.code.isGone && error.versionID != stored.description)
        {
            // If the base was erased while the value was saved, another record has the value whole.
            let unknown = MapEntry(version: entry.version, size: MapEntry.unknownSize, bodyOffset: 0)
            try again(place, after: error) { now in
                try readBody(now, now == place ? entry : unknown, id: id, stored: stored, anew: true, into: target, body)
            }
        }
    }

    /// Does the work of `withBody`. It is neither generic nor specialized for each closure that is passed, so that the library contains its
    /// code only once: `dynamic` prevents that.
    private dynamic func readBody(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool,
        into target: UnsafeMutableRawBufferPointer?, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard entry.bodyOffset != 0, entry.size != MapEntry.unknownSize else {
            guard let found = try findChange(place, id, anew: anew), found.kind == .insert || found.kind == .update else {
                throw damaged(place, "lacks a value that another version names", version: stored, value: id)
            }
            if found.body.isHollow { throw forgotten(id, stored) }
            if let blob = found.body.blob { return try withBlob(blob, found.body, place, id: id, stored: stored, body) }
            let located = MapEntry(version: entry.version, size: UInt32(found.body.size), bodyOffset: UInt64(found.body.bodyOffset))
            return try readBody(place, located, id: id, stored: stored, anew: anew, into: target, body)
        }
        let size = Int(entry.size)
        let isFound = try readStored(place, at: entry.bodyOffset, size: size, id: id, stored: stored, anew: anew) { form in
            switch form {
            case .whole(let bytes): return try body(bytes)
            case .deflated(let bytes):
                return try withScratch(size) { out in
                    guard Inflated.fill(out.baseAddress, size: size, from: bytes) else {
                        throw damaged(place, "has a value that does not inflate", version: stored, value: id)
                    }
                    return try body(UnsafeRawBufferPointer(out))
                }
            case .difference(let bytes):
                return try DifferenceWay(self, id: id, size: size, anew: anew).withValue(bytes, of: stored, in: place, into: target, body)
            }
        }
        if isFound { return }
        if !anew, let moved = moved(entry, place, id) {
            return try readBody(place, moved, id: id, stored: stored, anew: true, into: target, body)
        }
        throw damaged(place, "has a damaged value", version: stored, value: id)
    }

    /// The stored bytes of a value, which match their checksum.
    package enum StoredForm {
        case whole(UnsafeRawBufferPointer)
        case deflated(UnsafeRawBufferPointer)
        /// A difference, which `ValueDifference` reads.
        case difference(UnsafeRawBufferPointer)
    }

    /// How many bytes of a body the first read asks for. Deflated values and differences are often smaller; larger bodies need a second
    /// read.
    private static let firstRead = 4 << 10

    /// Calls with the stored bytes of the body at an offset of a record. Returns nil if there is no body of that value, or it is damaged.
    /// - Parameters:
    ///   - size: the size of the value.
    ///   - anew: whether to read from the storage, not from caches.
    ///   - isScattered: as in `StoreBlocks.read`.
    package func withStored<R>(
        _ place: RecordPlace, at offset: UInt64, size: Int, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool,
        isScattered: Bool = false, _ body: (StoredForm) throws -> R
    ) throws -> R? {
        var result: R?
        _ = try readStored(place, at: offset, size: size, id: id, stored: stored, anew: anew, isScattered: isScattered) {
            result = try body($0)
        }
        return result
    }

    /// Does the work of `withStored`. It is dynamic, as `readBody`.
    /// - Returns: whether the body was called.
    private dynamic func readStored(
        _ place: RecordPlace, at offset: UInt64, size: Int, id: UnsafeRawBufferPointer, stored: VersionID, anew: Bool,
        isScattered: Bool = false, _ body: (StoredForm) throws -> Void
    ) throws -> Bool {
        let header = RecordTable.bodyHeaderSize, available = offset < place.length ? Int(clamping: place.length - offset) : 0
        guard available >= header else { return false }
        func form(_ bytes: UnsafeRawBufferPointer) -> StoredForm? {
            if let whole = RecordTable.body(bytes, size: size, id: id, version: stored) {
                return whole.count == size ? .whole(whole) : .deflated(whole)
            }
            return RecordTable.difference(bytes, size: size, id: id, version: stored).map { .difference($0) }
        }
        func read(_ from: UInt64, into buffer: UnsafeMutableRawBufferPointer, anew: Bool) throws {
            do {
                if anew { return try self.read(place, at: from, into: buffer) }
                try readBlocks(place, at: from, into: buffer, isScattered: isScattered)
            } catch var error as StoreError where error.code.isDamage {
                error.valueID = ValueID(unchecked: id)
                error.versionID = stored.description
                throw error
            }
        }
        /// Returns the size of the body with this header; nil if the size is invalid or exceeds the record.
        func total(_ head: UnsafeRawBufferPointer) -> Int? {
            let field = UInt32(littleEndian: head.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            guard let (count, isDifference) = RecordTable.storedSize(ofField: field),
                count <= (isDifference ? ValueDifference.largestStored(of: size) : size), count <= available - header
            else { return nil }
            return header + count
        }
        func call(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
            guard let form = form(bytes) else { return false }
            try body(form)
            return true
        }
        func look(anew: Bool) throws -> Bool {
            try withScratch(min(header + size, available, Records.firstRead)) { head in
                try read(offset, into: head, anew: anew)
                let first = UnsafeRawBufferPointer(head)
                guard let total = total(first) else { return false }
                if total <= head.count { return try call(first) }
                return try withScratch(total) { all in
                    all.copyMemory(from: first)
                    try read(offset + UInt64(head.count), into: UnsafeMutableRawBufferPointer(rebasing: all[head.count...]), anew: anew)
                    return try call(UnsafeRawBufferPointer(all))
                }
            }
        }
        if try look(anew: anew) { return true }
        if anew { return false }
        // Read again from the storage: the cached bytes may have been read before the record was written, or may be damaged.
        blocks.forget(place, from: offset, count: min(header + ValueDifference.largestStored(of: size), available))
        return try look(anew: true)
    }

    /// Returns an entry with the size and offset that the table of the record has; nil if they are the same as in the given entry, or the
    /// table cannot be read. They differ if another record of the version is read since the map was made.
    func moved(_ entry: MapEntry, _ place: RecordPlace, _ id: UnsafeRawBufferPointer) -> MapEntry? {
        guard let found = try? findChange(place, id, anew: true), let moved = MapEntry(version: entry.version, found) else { return nil }
        return moved.bodyOffset != entry.bodyOffset || moved.size != entry.size ? moved : nil
    }

    /// Calls with the body of a large value that is in its record.
    func withLargeBody<R>(
        _ place: RecordPlace, _ entry: MapEntry, id: UnsafeRawBufferPointer, stored: VersionID, _ body: (LargeBody) throws -> R
    ) throws -> R {
        do { return try body(LargeBody(self, place, entry, id: id, stored: stored)) } catch let error as StoreError
            where error.code == .damaged
        {
            var result: R?
            func read(_ place: RecordPlace) throws {
                guard let moved = moved(entry, place, id), moved.bodyOffset != 0, moved.size == entry.size else { throw error }
                result = try body(LargeBody(self, place, moved, id: id, stored: stored))
            }
            do { try read(place) } catch let error as StoreError where error.code == .damaged {
                try again(place, after: error) { place in
                    guard let found = try findChange(place, id, anew: true) else { throw error }
                    if found.body.isHollow { throw forgotten(id, stored) }
                    guard let now = MapEntry(version: entry.version, found), now.bodyOffset != 0, now.size == entry.size
                    else { throw error }
                    result = try body(LargeBody(self, place, now, id: id, stored: stored))
                }
            }
            guard let result else { throw error }
            return result
        }
    }

    /// Completes an entry for which the map has no size or offset. Returns it with the size, and with the offset if the body is in the
    /// record.
    func located(_ entry: MapEntry, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored: VersionID) throws -> MapEntry {
        try locatedOrHollow(entry, place, id: id, stored: stored).0
    }

    /// Does the same as `located`, and returns whether the value has no bytes.
    func locatedOrHollow(_ entry: MapEntry, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored: VersionID) throws -> (MapEntry, Bool)
    {
        guard let found = try findChange(place, id), let located = MapEntry(version: entry.version, found) else {
            throw damaged(place, "lacks a value that another version names", version: stored, value: id)
        }
        return (located, found.body.isHollow)
    }

    /// Checks that a blob has the size that the record claims, and is the one that the change names. Callers do this before they reserve
    /// memory for the value.
    func check(_ blob: BlobID, _ body: StoredBody, _ place: RecordPlace, id: UnsafeRawBufferPointer, stored: VersionID) throws {
        try readBlob(blob, at: body.size, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), id: id, stored: stored)
        guard let digest = body.digest, let told = storage.blobTells(blob), !digest.starts(with: told) else { return }
        throw damaged(place, "names a file that holds another value", version: stored, value: id)
    }

    /// Fills the buffer with bytes of the value from `offset`. Errors name the value and its version.
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

    /// Calls with the bytes of the value of a change, read from the storage.
    /// - Throws: `.damaged` if they are not the bytes that were written; errors of reading; errors of the body.
    package func withValue<R>(
        _ entry: RecordTable.Entry, in place: RecordPlace, of version: VersionID, _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
        return try withBody(place, located, id: entry.id, stored: version, anew: true, body)
    }
}
