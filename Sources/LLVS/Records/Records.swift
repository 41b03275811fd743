/// Finds and reads what records hold: their headers, their changes, the bytes of values. Whatever does not match its
/// checksum is `.damaged`, never handed out.
///
/// It knows records by their places, and nothing of versions that are not in them. Callers hold no lock.
///
/// Safe from all threads: what it holds is, and nothing of it changes but `whenGone` and `findVersion`, which are set before the store is
/// used.
final class Records: @unchecked Sendable {
    // Sendable: `whenGone` and `findVersion` are set before the store is used; its parts have locks.
    let storage: any Storage
    /// What was read of the records lately; half of the memory budget.
    let blocks: StoreBlocks
    /// Records that are in memory only.
    let provisional = ProvisionalRecords()
    /// Met when reading or verifying what is here.
    let knownDamage = KnownDamage()
    /// Segments that are gone, whose records were looked for elsewhere.
    let followed = Guarded<Set<UInt32>>([])
    /// What was read of the tables of changes of records lately.
    let tables: Pool<ChangeTables>
    /// Values on which others stand.
    let bases: Bases
    /// The records of a version, of which one may be read instead of another: where the bases of differences lie. Set before the store is
    /// used. With no lock held.
    var findVersion: @Sendable (VersionID) -> [RecordPlace] = { _ in [] }
    /// Called when a segment is not what the storage reads by blocks any more: its records have moved. With no lock held.
    var whenGone: @Sendable (_ segment: UInt32) -> Void = { _ in }

    /// - Parameters:
    ///   - account: what memory there is.
    ///   - readers: the store's lock.
    init(_ storage: any Storage, _ account: MemoryAccount, readers: ReadWriteLock) {
        self.storage = storage
        blocks = StoreBlocks(storage, budget: account.blocks, readers: readers)
        let most = account.changeTables
        tables = Pool<ChangeTables>(most: 2) { ChangeTables(most: most) }
        bases = Bases(account)
    }

    // MARK: Bytes

    /// Fills the buffer with bytes of a record, from the storage.
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if place.segment == ProvisionalRecords.segment {
            guard provisional.read(place, at: offset, into: buffer) else {
                throw StoreError(
                    .unknownVersion, "A version that a merge was making was given up meanwhile. Ask for versions that are in the history.")
            }
            return
        }
        try noting(place) { try storage.read(place, at: offset, into: buffer) }
    }

    /// As `read`, but by way of the blocks in memory.
    func readBlocks(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        if place.segment == ProvisionalRecords.segment { return try read(place, at: offset, into: buffer) }
        if try noting(place, { try !blocks.read(place, at: offset, into: buffer) }) { whenGone(place.segment) }
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
            if anew { try read(place, at: offset, into: buffer) } else { try readBlocks(place, at: offset, into: buffer) }
        }
    }

    /// All of a record, from the storage.
    func bytes(of place: RecordPlace) throws -> [UInt8] {
        let size = Int(clamping: place.length)
        try Memory.expect(size, "Reading a record")
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            try read(place, at: 0, into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<size]))
            filled = size
        }
    }

    // MARK: Headers

    /// - Parameter prefix: what the record begins with, where that was read already.
    func header(_ place: RecordPlace, prefix: UnsafeRawBufferPointer? = nil) throws -> RecordHeader {
        if let prefix, case .whole(let header) = RecordHeader.read(prefix, recordLength: place.length) { return header }
        var reader = reader(place)
        return try header(&reader, place)
    }

    func header(_ reader: inout RecordReader, _ place: RecordPlace) throws -> RecordHeader {
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

    func damaged(_ place: RecordPlace, _ why: String, version: VersionID? = nil, value: UnsafeRawBufferPointer? = nil) -> StoreError {
        knownDamage.note(place)
        let (file, offset) = storage.location(place)
        return StoreError(
            .damaged,
            "The record at \(offset) of \(file) \(why). A retrieve from whoever has the version\(version.map { " \($0)" } ?? "") repairs "
                + "it; verify the store to see what else is damaged.",
            valueID: value.map { ValueID(unchecked: $0) }, versionID: version?.description)
    }
}
