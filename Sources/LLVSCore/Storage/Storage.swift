/// Stores records.
///
/// A record is an opaque byte string that names one version (see `Format/`). A storage appends records in batches, lists them, and reads
/// bytes of one at its place. It knows nothing of versions, maps or merges. The set of its records is the truth of a store; everything
/// under `cache…` is derived and may vanish at any time.
///
/// Threads: `append`, `scan` and `close` are called by one thread at a time (the store holds its commit lock). `read`, `sync`, `verify`,
/// `readBlob` and the cache calls may come from any thread at any time, also beside those. `verify` calls the host's progress callback,
/// so it holds no lock then. Errors are `StoreError`s. After a failed append, the storage must be ready for another.
package protocol Storage: AnyObject, Sendable {
    /// The kind and the place of the storage, for messages: "the store at /x/notes.llvs".
    var description: String { get }
    /// Whether it was opened for reading only: then nothing is appended.
    var isReadOnly: Bool { get }
    /// The absolute path of the storage; empty if it has none.
    var path: String { get }
    /// The places where other processes may add records, each once. `scan` must read them. Empty if no other process can add records, or if
    /// that is unknown.
    var watchedPlaces: [WatchedDirectory] { get }
    /// Whether the calling thread is inside a callback of this storage to the host. The storage holds locks then, and a call of the store
    /// would wait for itself.
    var isCallingBack: Bool { get }

    /// Appends the records as one batch: after a crash all of them exist, or none. Returns their places, in order. If it throws, none of
    /// them is or ever becomes visible, except with `.unknownOutcome`.
    ///
    /// Appended bytes survive a killed process at once, and a power cut after `sync`.
    func append(_ records: [RecordPieces]) throws -> [RecordPlace]

    /// Appends the records if the orders to erase have this stamp (`ordersStamp`), so that every erasure by later orders finds the records.
    /// - Throws: `OrdersChanged` if they have another one, or if that cannot be ensured; then nothing is appended.
    func append(_ records: [RecordPieces], ifOrdersAre stamp: UInt64) throws -> [RecordPlace]

    /// Makes everything durable that was appended through this storage by the time of the call, and everything that other processes
    /// appended and `scan` has reported. Throws `.unknownOutcome` if that fails.
    func sync() throws

    /// Reports each record that was not reported or appended here before, whichever process appended it, and each damaged place found.
    /// The first call reports all. A record may be reported again (the store ignores repeats). A record that is still being written is
    /// left for a later call. If a record was complete once and only values of it are damaged, both the record and the damage are
    /// reported.
    ///
    /// The control is checked often, with a step for each record. If it, or `found`, throws, the scan ends with that error.
    func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws

    /// Returns how far `scan` has come, for `resume` in a later process: opaque bytes, to be stored as a cache. Nil if the storage cannot
    /// report that.
    func scanMark() -> [UInt8]?
    /// Continues from a mark, before the first scan, so that `scan` reports only later records. Returns this process's segment number for
    /// each segment in the earlier process's places. Returns nil, and does not continue, if not everything that the mark covers exists.
    func resume(_ mark: [UInt8]) -> [UInt32]?
    /// Forgets what `resume` did, before the first scan, so that `scan` reports everything.
    func forgetResumed()

    /// Compacts small files, if the storage has such and the trigger asks for it, and removes files that were compacted before. Places
    /// stay valid. May run beside all other calls, from any thread, and no call waits for it. If an error or a crash stops it at any
    /// point, nothing that can be read has changed.
    func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport
    /// Returns where the record is now, to be stored for later processes: the place itself, or the one that a compaction moved it to.
    func currentPlace(_ place: RecordPlace) -> RecordPlace

    /// Fills the buffer with the bytes of the record from `offset` on, unchecked: the parts of a record have checksums, which the caller
    /// compares. Throws `.damaged` if the record no longer reaches that far, `.io` and similar errors if the medium fails.
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws

    /// Returns the file that has the record, or a description of it, and the offset, for messages.
    func location(_ place: RecordPlace) -> (file: String, offset: UInt64)

    /// The block size in which the store caches what it has read.
    var blockShape: BlockShape { get }
    /// For `BlockShape.segments`: fills the buffer from byte `position` of a segment on, across records, and returns the number of bytes;
    /// 0 if the segment can no longer be read this way and its records must be read one by one. The caller checks the bytes.
    func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int

    /// Values larger than this many bytes are stored as blobs, outside the record; nil if the storage stores all values within records.
    var blobThreshold: Int? { get }
    /// Stores bytes outside any record and returns their name. They are not visible until a record that names them is appended. `sync`
    /// covers them.
    func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID
    /// Stores bytes outside any record, as the function above, with their SHA-256 beside them (`blobTells`).
    func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID
    /// Stores a blob in pieces.
    /// - Parameter size: its total bytes; nil if that is not known beforehand.
    func blobWriter(size: Int?) throws -> any BlobWriter
    /// Removes a blob that no record names, and none will. Errors are ignored.
    func removeBlob(_ id: BlobID)
    /// Replaces the bytes of a damaged or missing blob that records name. As durable as `storeBlob`.
    /// - Parameters:
    ///   - id: the blob.
    ///   - data: all of its bytes.
    ///   - digest: SHA-256 of the bytes.
    func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws
    /// Returns the first bytes of the SHA-256 that the blob records. They bind it to the change that names it, which has the whole
    /// digest. Nil if the blob has none, or cannot be read.
    func blobTells(_ id: BlobID) -> [UInt8]?
    /// Returns whether the blob is present, whatever its bytes.
    func hasBlob(_ id: BlobID) throws -> Bool
    /// Equal at two times if no blob came between them; nil if that is not known.
    var blobMark: BlobMark? { get }
    /// Fills the buffer with bytes of the blob from `offset` on, verified block by block.
    func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws

    /// Reads everything again, sealed or not, and reports each damaged place and each valid record. If the end of a file does not show
    /// whether it once had more, reports the loss `.unfinished`.
    func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws

    /// Reads everything again like `verify`, and also reports records that differ from what was written, wherever they can be found:
    /// `read` returns their bytes as they are. They may be reported several times.
    func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws

    /// Returns a small named blob beside the records: a cache, or the coordinator's state. Replaced atomically. Names are
    /// `[a-z0-9._-]{1,100}`. A storage that cannot store them has them in memory.
    func cacheGet(_ name: String) throws -> [UInt8]?
    /// Replaces the blob of a name.
    func cachePut(_ name: String, _ data: [UInt8]) throws
    /// Removes the blob of a name. It is not an error if there is none.
    func cacheDelete(_ name: String) throws
    /// Opens the note that a coordinator writes at each save. It is open only once at a time, if the storage can ensure that.
    /// - Throws: `.busy` if another coordinator has it open.
    func openNote(_ name: String) throws -> any StorageNote
    /// Returns where such a blob is, for messages.
    func cacheLocation(_ name: String) -> String
    /// Opens a large blob of which only parts are read: they are loaded on demand if possible. The caller checks whether the bytes are
    /// valid.
    func cacheOpen(_ name: String) throws -> OpenCache?
    /// Creates such a blob in pieces. If the name is nil, it cannot be opened again, and is gone with its bytes.
    func cacheWriter(_ name: String?) throws -> any CacheWriter

    /// Throws `.notFound` if the store was deleted, moved or replaced while it was open. The default implementation checks nothing.
    /// - Parameter doing: the action for the message: "Syncing".
    func checkPresence(_ doing: String) throws

    /// Whether `erase` is possible.
    var canErase: Bool { get }
    /// Opens the file by whose lock of the system handles agree who may replace records (`RecordsHold`). Nil if only this handle can.
    func openRecordsLock() throws -> OpenFile?
    /// Replaces records by other records of the same versions, and removes the old bytes from the medium, also those of blobs that only the
    /// old records name. Before that the new records are durable. Called under the commit lock, with an exclusive hold on the records. May
    /// be repeated.
    /// - Returns: where old bytes still are, and what has to happen so that they go; empty if they are gone.
    func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String]
    /// Returns whether a process that was killed left files that `erase` was removing. The next `erase` removes them.
    func hasErasedFiles() -> Bool
    /// Completes what `erase` left to do when no record moves any more.
    /// - Returns: as `erase`.
    func finishErasing() throws -> [String]
    /// Returns whether a record is not at its place any more because another handle erased values. It is found by the next scan.
    func isGone(_ place: RecordPlace) -> Bool
    /// Records that a record for which `isGone` was true was found at another place.
    func noteErased(_ place: RecordPlace)
    /// Tells the storage in which segments (`RecordPlace.segment`) records are read. If any other segment is gone, nothing is lost.
    func noteUsed(_ segments: Set<UInt32>)
    /// Makes the next scan report records that other handles replaced, if it would not do so anyway.
    func forgetScanned()
    /// Returns the names of the caches; empty if that is not known.
    func cacheNames() throws -> [String]
    /// Deletes a cache, and removes its bytes from the medium.
    func cacheErase(_ name: String) throws
    /// Returns whether there is a cache of that name. May be wrong if the cache is damaged.
    func hasCache(_ name: String) -> Bool
    /// Returns the orders to erase that count on this device, in each copy that the storage has: beside the records, and not as a cache.
    func orders() throws -> [[UInt8]]
    /// Replaces the orders by what `change` makes of them, so that they survive a power cut. No other handle changes them meanwhile.
    func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws
    /// Returns a number that differs once the orders were stored again, or touched; 0 if there are none.
    func ordersStamp() -> UInt64
    /// Gives the orders another stamp.
    func touchOrders()

    /// Returns how much the medium can still store; nil if that is not known.
    func room() -> StorageRoom?

    /// The damaged places that `scan` found so far.
    var damages: [StorageDamage] { get }
    /// Returns the bytes on the medium, caches included, and the number of syncs, for `Store.statistics`.
    /// - Parameter control: checked while files are listed, of which there may be many.
    /// - Throws: the errors of the control. Files that cannot be listed count as nothing.
    func statistics(_ control: PacedControl) throws -> StorageStatistics
    /// Returns the bytes of the caches on the medium, which `statistics` counts as well; 0 if that is not known.
    func cacheBytes(_ control: PacedControl) throws -> UInt64
    /// Returns the bytes that a record takes on the medium beside its own, if `statistics` does not count the bytes on the medium.
    func overhead(of place: RecordPlace) -> UInt64

    /// Flushes, seals and closes everything. Later calls throw `.closed`. With `discarding` (after a fork) nothing is written, locked or
    /// flushed; descriptors are only closed.
    func close(discarding: Bool) throws
}

extension Storage {
    /// The same as `scan(_:_:)`, without a control.
    package func scan(_ found: (ScannedRecord) throws -> Void) throws { try scan(.none, found) }
    package var path: String { "" }
    package var watchedPlaces: [WatchedDirectory] { [] }
    package var isCallingBack: Bool { false }
    package func scanMark() -> [UInt8]? { nil }
    package func checkPresence(_ doing: String) throws {}
    package func cacheBytes(_ control: PacedControl) throws -> UInt64 { 0 }
    package func overhead(of place: RecordPlace) -> UInt64 { 0 }
    package func room() -> StorageRoom? { nil }
    package var canErase: Bool { false }
    package func openRecordsLock() throws -> OpenFile? { nil }
    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] { [] }
    package func hasErasedFiles() -> Bool { false }
    package func isGone(_ place: RecordPlace) -> Bool { false }
    package func noteErased(_ place: RecordPlace) {}
    package func noteUsed(_ segments: Set<UInt32>) {}
    package func forgetScanned() {}
    package func cacheNames() throws -> [String] { [] }
    package func cacheErase(_ name: String) throws { try cacheDelete(name) }
    package func hasCache(_ name: String) -> Bool { ((try? cacheGet(name)) ?? nil) != nil }
    package func orders() throws -> [[UInt8]] { [] }
    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws {}
    package func ordersStamp() -> UInt64 { 0 }
    package func touchOrders() {}
    package func append(_ records: [RecordPieces], ifOrdersAre stamp: UInt64) throws -> [RecordPlace] {
        guard ordersStamp() == stamp else { throw OrdersChanged() }
        return try append(records)
    }
    package func finishErasing() throws -> [String] { [] }
    package func resume(_ mark: [UInt8]) -> [UInt32]? { nil }
    package func forgetResumed() {}
    package func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport { CompactionReport() }
    package func currentPlace(_ place: RecordPlace) -> RecordPlace { place }
    package func blobWriter(size: Int?) throws -> any BlobWriter { throw StorageRange.noBlobs(description) }
    package func removeBlob(_ id: BlobID) {}
    package func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID { try storeBlob(data) }
    package func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws {
        throw StorageRange.noBlobs(description)
    }
    package func blobTells(_ id: BlobID) -> [UInt8]? { nil }
    package func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { (description, place.offset) }
    package func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try verify(control, found: { try found($0.place) }, damage: damage)
    }
    package var blockShape: BlockShape { .none }
    package func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int { 0 }
    package func openNote(_ name: String) throws -> any StorageNote { CachedNote(self, name) }
    package func cacheLocation(_ name: String) -> String { "the cache \(name) of \(description)" }
    package func cacheOpen(_ name: String) throws -> OpenCache? {
        try cacheGet(name).map { $0.withUnsafeBytes { OpenCache(copying: $0) } }
    }
    package func cacheWriter(_ name: String?) throws -> any CacheWriter {
        guard let name else { return MemoryCacheWriter() }
        return MemoryCacheWriter { [self] in try cachePut(name, $0) }
    }
}

/// Stores one blob in pieces. If it is released unfinished, nothing is stored.
package protocol BlobWriter: AnyObject {
    /// Appends bytes, which are borrowed for the call.
    func append(_ bytes: UnsafeRawBufferPointer) throws
    /// Finishes the blob and returns its name. Its state is the same as after `Storage.storeBlob`. Throws if the number of bytes is not
    /// the announced size.
    /// - Parameter digest: SHA-256 of the bytes.
    func finish(digest: [UInt8]) throws -> BlobID
    /// Removes what was written. Has no effect once it is finished.
    func cancel()
}

/// How a storage's bytes are divided into the blocks that are cached.
package enum BlockShape: Sendable {
    /// Records are not cached: reading one costs no more than a lookup.
    case none
    /// Segments are runs of bytes with records at their `offset`: blocks of this many bytes, a power of two.
    case segments(Int)
    /// Records are apart from each other: blocks of this many bytes of each record, a power of two, at most 64 KiB.
    case records(Int)
}

/// Where one record is in its storage. Valid for that storage only, and only while it is open.
package struct RecordPlace: Hashable, Sendable {
    /// A number of the storage for the file that has the record.
    package var segment: UInt32
    /// Where it begins, in bytes; or a number by which the storage finds it.
    package var offset: UInt64
    /// The length of the record in bytes.
    package var length: UInt64
    /// Creates a place from the parts of one that the storage returned before.
    package init(segment: UInt32, offset: UInt64, length: UInt64) {
        self.segment = segment; self.offset = offset; self.length = length
    }
}

/// A record that `scan` reports.
package struct ScannedRecord {
    /// Where it is.
    package var place: RecordPlace
    /// The first bytes of the record: all of it if it is at most 64 KiB, else at least 64 KiB. Valid only during the call.
    package var prefix: UnsafeRawBufferPointer
    /// Whether values of it are damaged. The part that describes the version is valid (`RecordReader.tellsVersion`).
    package var isDamaged: Bool
    /// Creates the report of one record. The storage owns the prefix.
    package init(place: RecordPlace, prefix: UnsafeRawBufferPointer, isDamaged: Bool = false) {
        self.place = place; self.prefix = prefix; self.isDamaged = isDamaged
    }
    /// The least number of bytes in `prefix`, unless the record is shorter.
    package static let prefixSize = 64 << 10
}

/// The loss that a damage causes.
public enum Loss: UInt32, Sendable {
    /// Nothing: the content is known without it, or was rebuilt.
    case nothing = 0
    /// One version, or several. All of their successors wait until it is present again.
    case version = 1
    /// Bytes of a value. The version is present, and its other values can be read.
    case value = 2
    /// A file ends in bytes that count as never written, or without a mark that it is complete: its writer is still writing, or was
    /// killed, or the file was truncated. The file does not show whether anything is lost.
    case unfinished = 3
}

/// A place whose bytes differ from what was written.
public struct StorageDamage: Hashable, Sendable {
    /// The file, or a description of it.
    public var file: String
    /// The offset in the file, in bytes.
    public var offset: UInt64
    /// What is wrong with it, and what the user can do. Control characters in names are escaped, so it can be logged as it is.
    public var message: String { didSet { message = PrintableText.escaping(message) } }
    /// The version concerned, if it is known.
    public var version: VersionID?
    /// The value concerned, if the damage is in a known value.
    public var value: ValueID?
    /// The loss that the damage causes.
    public var lost: Loss
    /// The version that causes the loss, if the value is a difference and its own bytes are whole. That version stored the base of the
    /// difference. The base is damaged, and is reported by a place of its own. Repairing that version makes this value readable again.
    public var causedBy: VersionID?
    /// The place of the record concerned, if the storage does not know its version.
    var place: RecordPlace?
    /// Creates a damaged place. By default, a version counts as lost.
    public init(file: String, offset: UInt64, message: String, version: VersionID? = nil, value: ValueID? = nil, lost: Loss = .version) {
        self.file = file; self.offset = offset; self.message = PrintableText.escaping(message); self.version = version; self.value = value;
        self.lost = lost
    }
}

/// The counters of a storage, for `Store.statistics`.
public struct StorageStatistics: Hashable, Sendable {
    /// Bytes on the medium, caches included.
    public var bytes: UInt64 = 0
    /// Bytes written by this handle.
    public var bytesWritten: UInt64 = 0
    /// Syncs done by this handle.
    public var syncs: UInt64 = 0
    /// Files with records.
    public var segments: UInt64 = 0
    /// Creates counters of zero.
    public init() {}
}

/// What a power cut can take after a commit has returned. A killed process loses nothing with either.
public enum Durability: UInt32, Sendable {
    /// No acknowledged version is lost.
    case full = 1
    /// The newest versions may be missing. The rest is complete.
    case normal = 2
}

/// Changes when blobs may have arrived: see `Storage.blobMark`.
package struct BlobMark: Equatable, Sendable {
    let inode: UInt64, modified: Int64, changed: Int64
    init(inode: UInt64 = 0, modified: Int64 = 0, changed: Int64 = 0) {
        self.inode = inode; self.modified = modified; self.changed = changed
    }
    /// The mark of a storage that never has blobs.
    static let unchanging = BlobMark()
}

extension Storage {
    package var blobMark: BlobMark? { blobThreshold == nil ? .unchanging : nil }
}

/// Orders to erase values were made or followed since records were prepared, which may be differences from erased values.
package struct OrdersChanged: Error {}
