/// Where records rest.
///
/// A storage keeps records: opaque byte strings, each naming one version (see `Format/`). It appends
/// them in batches, lists those it has, and reads bytes of one at its place. It knows nothing of
/// versions, maps or merges. The truth of a store is the set of its records; what is kept under
/// `cache…` is derived and may vanish at any time.
///
/// Threads: `append`, `scan` and `close` are called by one thread at a time (the store holds its
/// commit lock). `read`, `sync`, `verify`, `readBlob` and the cache calls may come from any thread at any time,
/// also beside those; `verify` calls the host's progress callback, so it holds no lock while it does. Errors are `StoreError`s; after a
/// failed append the storage must be ready for
/// another.
public protocol Storage: AnyObject, Sendable {
    /// What the storage is and where, for messages: "the store at /x/notes.llvs".
    var description: String { get }
    /// Whether it was opened for reading only: nothing is appended then.
    var isReadOnly: Bool { get }
    /// Where it is: an absolute path; empty when it has none.
    var path: String { get }
    /// Where others may add records, each once: what is written there is to be looked at by `scan`. None when nobody can, or nobody can
    /// tell.
    var watchedPlaces: [WatchedDirectory] { get }
    /// Whether the calling thread is inside a callback by which this storage asks the host: it holds locks then, and
    /// whoever came back into the store would wait for itself.
    var isCallingBack: Bool { get }

    /// Appends the records as one batch: after a crash all of them are there, or none. Returns their
    /// places, in order. When it throws, none of them is or ever becomes visible, except with
    /// `.unknownOutcome`.
    ///
    /// Appended bytes survive a killed process at once, and a power cut after `sync`.
    func append(_ records: [RecordPieces]) throws -> [RecordPlace]

    /// Makes durable everything appended through this storage, and everything that others appended
    /// and `scan` has reported, by the time of the call. Throws `.unknownOutcome` when that fails.
    func sync() throws

    /// Reports each record that was not reported or appended here before, whoever appended it, and each
    /// damaged place met on the way. The first call reports all. A record may be reported again (the
    /// store drops repeats). A record still being written is left for a later call. One that was whole once and of which only
    /// values are damaged is reported as both.
    ///
    /// The control is asked often, with a step for each record. When it, or `found`, throws, the scan ends with that.
    func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws

    /// How far `scan` has come, for `resume` in a later process: opaque bytes, to be kept as a cache. Nil when the
    /// storage cannot tell.
    func scanMark() -> [UInt8]?
    /// Before the first scan: takes up where the mark was made, so that `scan` reports what came later only. Answers
    /// this process's segment number for each that places had then; nil, and nothing is taken up, when not all that
    /// the mark stands for is there.
    func resume(_ mark: [UInt8]) -> [UInt32]?
    /// Before the first scan: forgets what `resume` took up, so that `scan` reports everything.
    func forgetResumed()

    /// Puts together what lies in many small files, where the storage has such and the trigger says so, and removes
    /// what was put together before. Places stay good. May run beside all other calls, from any thread; nobody waits
    /// for it. Stopped at any point, by an error or a crash, it has changed nothing that can be read.
    func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport
    /// Where the record is by now, for what is written down for later processes: the place itself, or that to which
    /// a compaction brought it.
    func currentPlace(_ place: RecordPlace) -> RecordPlace

    /// Fills the buffer with the bytes of the record from `offset` on, as they are: the parts of a record have checksums of their
    /// own, and whoever asks looks at these. Throws `.damaged` when the record does not reach that far any more, `.io` and friends
    /// when the medium fails.
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws

    /// The file, or what stands for it, that the record is in, and where, for messages.
    func location(_ place: RecordPlace) -> (file: String, offset: UInt64)

    /// In which pieces the store keeps what it has read in memory, so as not to ask for it again.
    var blockShape: BlockShape { get }
    /// For `BlockShape.segments`: fills the buffer from byte `position` of a segment on, across records, and answers how
    /// many bytes were there; 0 when the segment cannot be read this way any more and its records must be asked for one
    /// by one. What is read is to be checked by whoever asks.
    func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int

    /// Values larger than this many bytes are kept as blobs, outside the record; nil when the storage
    /// keeps all within records.
    var blobThreshold: Int? { get }
    /// Stores the bytes outside any record and returns their name. Not visible to anybody until a
    /// record that names them is appended; `sync` covers them.
    func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID
    /// The same; the blob says that this is the SHA-256 of its bytes (`blobTells`).
    func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID
    /// Stores a blob that comes in pieces.
    /// - Parameter size: its bytes in all; nil when they are not known beforehand.
    func blobWriter(size: Int?) throws -> any BlobWriter
    /// Removes a blob that no record names, and none will. What fails is left as it is.
    func removeBlob(_ id: BlobID)
    /// Puts the bytes of a blob that records name, and that is damaged or gone, in its place. As durable as `storeBlob`.
    /// - Parameters:
    ///   - id: the blob.
    ///   - data: all of its bytes.
    ///   - digest: SHA-256 of the bytes.
    func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws
    /// How the SHA-256 of a blob's bytes begins, as it says itself: what binds it to the change that names it, which has all of the digest.
    /// Nil when it does not say, or cannot be read.
    func blobTells(_ id: BlobID) -> [UInt8]?
    /// Whether the blob is there, whatever its bytes are.
    func hasBlob(_ id: BlobID) throws -> Bool
    /// Equal in two looks when no blob came between them; nil when that is not known.
    var blobMark: BlobMark? { get }
    /// Fills the buffer with bytes of the blob from `offset` on, verified block by block.
    func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws

    /// Reads everything again, sealed or not, and reports each damaged place and each whole record; also, with the loss
    /// `.unfinished`, where bytes end of which nobody can tell whether more was there.
    func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws

    /// Reads everything again, as `verify`, but also reports records that are not as they were written, wherever they can
    /// still be told from what is around them: `read` gives their bytes as they are. They may be reported several times.
    func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws

    /// Small named blobs beside the records: caches and the coordinator's state. Replaced atomically.
    /// Names are `[a-z0-9._-]{1,100}`. A storage that cannot keep them keeps them in memory.
    func cacheGet(_ name: String) throws -> [UInt8]?
    /// Puts a blob under the name, in the place of what was there.
    func cachePut(_ name: String, _ data: [UInt8]) throws
    /// Removes the blob of that name; it is no error when there is none.
    func cacheDelete(_ name: String) throws
    /// Opens what a coordinator writes at each save. Once at a time, where that can be had.
    /// - Throws: `.busy` when another has it open.
    func openNote(_ name: String) throws -> any StorageNote
    /// Where such a blob is, for messages.
    func cacheLocation(_ name: String) -> String
    /// As `cacheGet`, for large blobs that are looked at in some places: read as they are asked for where that is possible. Whether
    /// the bytes are those that were put there is for the caller to check.
    func cacheOpen(_ name: String) throws -> OpenCache?
    /// Makes such a blob piece by piece. With nil for a name nobody can ask for it: it is gone with its bytes.
    func cacheWriter(_ name: String?) throws -> any CacheWriter

    /// Throws `.notFound` if the store was deleted, moved or replaced while it was open. By default nothing is looked at.
    /// - Parameter doing: for the message: "Syncing".
    func checkPresence(_ doing: String) throws

    /// How much the medium can still take; nil if it does not tell.
    func room() -> StorageRoom?

    /// Damaged places met by `scan` so far.
    var damages: [StorageDamage] { get }
    /// Bytes on the medium, caches included, and syncs done, for `Store.statistics`.
    /// - Parameter control: looked at while files are listed, of which there may be any number.
    /// - Throws: what the control throws. What cannot be listed counts as nothing.
    func statistics(_ control: PacedControl) throws -> StorageStatistics

    /// Flushes, seals and lets go of everything. Later calls throw `.closed`. With `discarding` (after a
    /// fork) nothing is written, locked or flushed; descriptors are closed only.
    func close(discarding: Bool) throws
}

extension Storage {
    /// As `scan(_:_:)`, without a control.
    public func scan(_ found: (ScannedRecord) throws -> Void) throws { try scan(.none, found) }
    public var path: String { "" }
    public var watchedPlaces: [WatchedDirectory] { [] }
    public var isCallingBack: Bool { false }
    public func scanMark() -> [UInt8]? { nil }
    public func checkPresence(_ doing: String) throws {}
    public func room() -> StorageRoom? { nil }
    public func resume(_ mark: [UInt8]) -> [UInt32]? { nil }
    public func forgetResumed() {}
    public func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport { CompactionReport() }
    public func currentPlace(_ place: RecordPlace) -> RecordPlace { place }
    public func blobWriter(size: Int?) throws -> any BlobWriter { throw StorageRange.noBlobs(description) }
    public func removeBlob(_ id: BlobID) {}
    public func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID { try storeBlob(data) }
    public func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws {
        throw StorageRange.noBlobs(description)
    }
    public func blobTells(_ id: BlobID) -> [UInt8]? { nil }
    public func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { (description, place.offset) }
    public func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try verify(control, found: { try found($0.place) }, damage: damage)
    }
    public var blockShape: BlockShape { .none }
    public func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int { 0 }
    public func openNote(_ name: String) throws -> any StorageNote { CachedNote(self, name) }
    public func cacheLocation(_ name: String) -> String { "the cache \(name) of \(description)" }
    public func cacheOpen(_ name: String) throws -> OpenCache? {
        try cacheGet(name).map { $0.withUnsafeBytes { OpenCache(copying: $0) } }
    }
    public func cacheWriter(_ name: String?) throws -> any CacheWriter {
        guard let name else { return MemoryCacheWriter() }
        return MemoryCacheWriter { [self] in try cachePut(name, $0) }
    }
}

/// Stores one blob piece by piece. One that is let go unfinished leaves nothing.
public protocol BlobWriter: AnyObject {
    /// Adds what comes next; the bytes are borrowed for the call.
    func append(_ bytes: UnsafeRawBufferPointer) throws
    /// The name of the blob, which is now as `Storage.storeBlob` leaves it. Throws when the bytes are not as many as was said.
    /// - Parameter digest: SHA-256 of the bytes.
    func finish(digest: [UInt8]) throws -> BlobID
    /// Removes what was written. Nothing happens once it is finished.
    func cancel()
}

/// How a storage's bytes are cut into the blocks that are kept in memory.
public enum BlockShape: Sendable {
    /// They are not: reading them costs no more than looking for them.
    case none
    /// Segments are runs of bytes in which records lie at their `offset`: blocks of this many bytes, a power of two.
    case segments(Int)
    /// Records are apart from each other: blocks of this many bytes of each, a power of two; at most 64 KiB.
    case records(Int)
}

/// Where one record lies in its storage. Means something to that storage only, and only while it is open.
public struct RecordPlace: Hashable, Sendable {
    /// A number of the storage's for the file that it is in.
    public var segment: UInt32
    /// Where it begins, in bytes; or a number by which the storage finds it again.
    public var offset: UInt64
    /// Bytes of the record.
    public var length: UInt64
    /// A place that the storage gave before.
    public init(segment: UInt32, offset: UInt64, length: UInt64) {
        self.segment = segment; self.offset = offset; self.length = length
    }
}

/// A record met by `scan`.
public struct ScannedRecord {
    /// Where it lies.
    public var place: RecordPlace
    /// The first bytes of the record: all of it when it is at most 64 KiB, else at least 64 KiB.
    /// Valid during the call only.
    public var prefix: UnsafeRawBufferPointer
    /// It is not what was appended, but what tells the version is (`RecordReader.tellsVersion`): values of it are damaged.
    public var isDamaged: Bool
    /// What a scan tells of one record; the prefix stays the storage's.
    public init(place: RecordPlace, prefix: UnsafeRawBufferPointer, isDamaged: Bool = false) {
        self.place = place; self.prefix = prefix; self.isDamaged = isDamaged
    }
    /// How much of a record `prefix` holds at least.
    public static let prefixSize = 64 << 10
}

/// What a damage costs.
public enum Loss: UInt32, Sendable {
    /// Nothing: what was there is known without it, or made again.
    case nothing = 0
    /// A version, or several; all that build on it wait until it is here again.
    case version = 1
    /// Bytes of a value; the version is there, and its other values can be read.
    case value = 2
    /// A file ends in bytes that count as never written, or without saying that it is complete: its writer writes still, or was
    /// killed, or the file was cut short. Whether anything is lost cannot be told from the file.
    case unfinished = 3
}

/// A place whose bytes are not what was written.
public struct StorageDamage: Hashable, Sendable {
    /// The file, or what stands for it.
    public var file: String
    /// Where in the file, in bytes.
    public var offset: UInt64
    /// What is wrong with it, and what can be done. Control characters in names are written out: it can be logged as it is.
    public var message: String { didSet { message = PrintableText.escaping(message) } }
    /// The version concerned, where it can be told.
    public var version: VersionID?
    /// The value concerned, where it is one, and can be told.
    public var value: ValueID?
    /// What is lost.
    public var lost: Loss
    /// The record concerned, where a storage knows its place and not whose it is.
    var place: RecordPlace?
    /// A damaged place; without further words a version is taken for lost.
    public init(file: String, offset: UInt64, message: String, version: VersionID? = nil, value: ValueID? = nil, lost: Loss = .version) {
        self.file = file; self.offset = offset; self.message = PrintableText.escaping(message); self.version = version; self.value = value;
        self.lost = lost
    }
}

/// What a storage counts, for `Store.statistics`.
public struct StorageStatistics: Hashable, Sendable {
    /// Bytes on the medium, caches included.
    public var bytes: UInt64 = 0
    /// Bytes written by this handle.
    public var bytesWritten: UInt64 = 0
    /// Syncs done by this handle.
    public var syncs: UInt64 = 0
    /// Files of records.
    public var segments: UInt64 = 0
    /// Nothing counted yet.
    public init() {}
}

/// When a commit returns, what a power cut can take. A killed process takes nothing at either.
public enum Durability: UInt32, Sendable {
    /// Nothing acknowledged is lost.
    case full = 1
    /// The newest versions may be missing; the rest is whole.
    case normal = 2
}

/// Tells whether blobs may have come: see `Storage.blobMark`.
public struct BlobMark: Equatable, Sendable {
    let inode: UInt64, modified: Int64, changed: Int64
    init(inode: UInt64 = 0, modified: Int64 = 0, changed: Int64 = 0) {
        self.inode = inode; self.modified = modified; self.changed = changed
    }
    /// Of a storage that never has any.
    static let unchanging = BlobMark()
}

extension Storage {
    public var blobMark: BlobMark? { blobThreshold == nil ? .unchanging : nil }
}
