/// Reads records: their headers, their changes and the bytes of values. Bytes that do not match their checksum are never returned; reading
/// them throws `.damaged`.
///
/// It finds records by their locations (`RecordPlace`), and does not use the history. Callers hold no lock.
///
/// Safe from all threads, since its parts are. Its closures are set before the store is used, and do not change afterwards.
package final class Records: @unchecked Sendable {
    // Sendable: the closures are set before the store is used; its parts have locks.
    let storage: any Storage
    /// The blocks of records that were read lately. They take half of the memory budget.
    let blocks: StoreBlocks
    /// The records that are only in memory.
    package let provisional = ProvisionalRecords()
    /// The damage that was found when reading or verifying.
    package let knownDamage = KnownDamage()
    /// The segments whose files are gone, and whose records were searched in other segments.
    let followed = Guarded<Set<UInt32>>([])
    /// The change tables that were read lately.
    let tables: Pool<ChangeTables>
    /// The cached bases of differences.
    package let bases: Bases
    /// Returns the locations of the records of a version, any of which may be read. Used to find the bases of differences. Set before the
    /// store is used. Called without locks.
    package var findVersion: @Sendable (VersionID) -> [RecordPlace] = { _ in [] }
    /// Called if the storage no longer reads a segment by blocks, because its records have moved. Called without locks.
    var whenGone: @Sendable (_ segment: UInt32) -> Void = { _ in }

    /// Knows which values were erased. Called without locks. Set before the store is used.
    weak var erasures: (any KnownErasures)?
    /// Returns whether an order that counts here names a value.
    func isErased(_ id: ValueID, _ version: VersionID) -> Bool { erasures?.isErased(id, version) ?? false }

    /// - Parameters:
    ///   - account: the memory budgets.
    ///   - readers: the lock of the store.
    init(_ storage: any Storage, _ account: MemoryAccount, readers: ReadWriteLock) {
        self.storage = storage
        blocks = StoreBlocks(storage, budget: account.blocks, readers: readers)
        let most = account.changeTables
        tables = Pool<ChangeTables>(most: 2) { ChangeTables(most: most) }
        bases = Bases(account)
    }

    // MARK: Bytes

    /// Fills the buffer with bytes of a record, from the storage.
    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if place.segment == ProvisionalRecords.segment {
            guard provisional.read(place, at: offset, into: buffer) else {
                throw StoreError(
                    .unknownVersion, "A version that a merge was making was discarded meanwhile. Read versions that are in the history.")
            }
            return
        }
        try noting(place) { try storage.read(place, at: offset, into: buffer) }
    }

    /// Fills the buffer with bytes of a record, through the cached blocks.
    /// - Parameter isScattered: as in `StoreBlocks.read`.
    func readBlocks(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, isScattered: Bool = false) throws {
        if place.segment == ProvisionalRecords.segment { return try read(place, at: offset, into: buffer) }
        if try noting(place, { try !blocks.read(place, at: offset, into: buffer, isScattered: isScattered) }) { whenGone(place.segment) }
    }

    /// Records the location as damaged if reading it finds damage.
    private func noting<R>(_ place: RecordPlace, _ read: () throws -> R) throws -> R {
        do { return try read() } catch let error as StoreError where error.code.isDamage {
            knownDamage.note(place)
            throw error
        }
    }

    /// Returns a reader for a record.
    /// - Parameter anew: whether to read from the storage, not from caches.
    package func reader(_ place: RecordPlace, anew: Bool = true) -> RecordReader {
        RecordReader(length: place.length) { [self] offset, buffer in
            if anew { try read(place, at: offset, into: buffer) } else { try readBlocks(place, at: offset, into: buffer) }
        }
    }

    /// Returns all bytes of a record, from the storage.
    package func bytes(of place: RecordPlace) throws -> [UInt8] {
        let size = Int(clamping: place.length)
        try Memory.expect(size, "Reading a record")
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            try read(place, at: 0, into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<size]))
            filled = size
        }
    }

    // MARK: Headers

    /// Returns the header of a record.
    /// - Parameter prefix: the first bytes of the record, if they were read already.
    package func header(_ place: RecordPlace, prefix: UnsafeRawBufferPointer? = nil) throws -> RecordHeader {
        if let prefix, case .whole(let header) = RecordHeader.read(prefix, recordLength: place.length) { return header }
        var found: RecordHeader?
        try lookingAgain(place) { place in
            var reader = reader(place)
            found = try header(&reader, place)
        }
        guard let found else { throw damaged(place, "has no header") }
        return found
    }

    /// Calls with a place. If damage is found there, calls again with the record's place, while no other handle can move it.
    /// - Parameter isDone: whether the error came after the record was read, so that there is no second call.
    func lookingAgain(_ place: RecordPlace, isDone: () -> Bool = { false }, _ body: (RecordPlace) throws -> Void) throws {
        do { return try body(place) } catch let error as StoreError where error.code.isDamage && !isDone() {
            try again(place, after: error, body)
        }
    }

    /// Calls with the place of a record, after reading it at `place` failed, if another handle may have replaced it there. None can
    /// meanwhile.
    /// - Throws: `error` if it cannot have done so; `RecordMoved` if this thread scans the storage.
    package func again(_ place: RecordPlace, after error: StoreError, _ body: (RecordPlace) throws -> Void) throws {
        guard place.segment != ProvisionalRecords.segment, let erasures else { throw error }
        try erasures.readAgain(place, after: error) {
            if $0 != place { knownDamage.forget(place) }
            try body($0)
        }
    }

    package func header(_ reader: inout RecordReader, _ place: RecordPlace) throws -> RecordHeader {
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
            "The record of \(id.map { "version \($0)" } ?? "a version") at \(offset) of \(file) was made by a newer version of the "
                + "library: it has \(what), which this one does not know (it knows format \(RecordHeader.format)). "
                + "Use a newer version of the library.",
            versionID: id?.description)
    }

    /// Returns the error for a value whose bytes are gone by intent: its change is hollow. It is no damage.
    package func forgotten(_ id: UnsafeRawBufferPointer, _ version: VersionID) -> StoreError {
        let id = ValueID(unchecked: id)
        return isErased(id, version) ? Records.erased(id, version) : Records.forgotten(id, version)
    }
    package static func erased(_ value: ValueID, _ version: VersionID) -> StoreError {
        StoreError(
            .erased,
            "The bytes of the value of \"\(value)\" that version \(version) stored were erased on this device. They do not come back; "
                + "save a new value.",
            valueID: value, versionID: version.description)
    }
    package static func forgotten(_ value: ValueID, _ version: VersionID) -> StoreError {
        StoreError(
            .forgotten,
            "The bytes of the value of \"\(value)\" that version \(version) stored are not in this store any more; only their size and "
                + "digest are. Save a new value, or read it from a store that has the bytes.",
            valueID: value, versionID: version.description)
    }

    package func damaged(_ place: RecordPlace, _ why: String, version: VersionID? = nil, value: UnsafeRawBufferPointer? = nil) -> StoreError
    {
        knownDamage.note(place)
        let (file, offset) = storage.location(place)
        return StoreError(
            .damaged,
            "The record at \(offset) of \(file) \(why). A retrieve from a store with the version\(version.map { " \($0)" } ?? "") repairs "
                + "it; verify the store to see what else is damaged.",
            valueID: value.map { ValueID(unchecked: $0) }, versionID: version?.description)
    }
}
