import LLVS

/// Forwards all calls to another storage, counts what is read, and lets a test change it.
public final class CountingStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let base: any Storage
    private let lock = Lock()
    private var counted = 0
    private var countedBytes = 0
    private var meddling: ((UnsafeMutableRawBufferPointer) -> Void)?
    private var meddlingRecords: ((UInt64, UnsafeMutableRawBufferPointer) -> Void)?

    public init(_ base: any Storage) { self.base = base }

    /// Reads of records and of segments so far.
    public var reads: Int { lock.withLock { counted } }
    /// Bytes of records and blobs that were read so far.
    public var bytesRead: Int { lock.withLock { countedBytes } }
    /// Sets a closure that is called from now on with the result of each read of a record, and its position in the record.
    public func meddleWithRecords(_ meddle: ((UInt64, UnsafeMutableRawBufferPointer) -> Void)?) {
        lock.withLock { meddlingRecords = meddle }
    }
    /// Sets a closure that is called once, with the result of the next read of a segment.
    public func meddleOnce(_ meddle: @escaping (UnsafeMutableRawBufferPointer) -> Void) { lock.withLock { meddling = meddle } }

    public var description: String { base.description }
    public var isReadOnly: Bool { base.isReadOnly }
    public func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try base.append(records) }
    public func sync() throws { try base.sync() }
    public func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws { try base.scan(control, found) }
    public func scanMark() -> [UInt8]? { base.scanMark() }
    public func resume(_ mark: [UInt8]) -> [UInt32]? { base.resume(mark) }
    public func forgetResumed() { base.forgetResumed() }
    public func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        try base.compact(trigger, control)
    }
    public func currentPlace(_ place: RecordPlace) -> RecordPlace { base.currentPlace(place) }
    public func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        let meddle = lock.withLock { () -> ((UInt64, UnsafeMutableRawBufferPointer) -> Void)? in
            counted += 1
            countedBytes += buffer.count
            return meddlingRecords
        }
        try base.read(place, at: offset, into: buffer)
        meddle?(offset, buffer)
    }
    public var blockShape: BlockShape { base.blockShape }
    public func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let meddle = lock.withLock { () -> ((UnsafeMutableRawBufferPointer) -> Void)? in
            counted += 1
            defer { meddling = nil }
            return meddling
        }
        let count = try base.readSegment(segment, at: position, into: buffer)
        meddle?(buffer)
        return count
    }
    public var blobThreshold: Int? { base.blobThreshold }
    public func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try base.storeBlob(data) }
    public func hasBlob(_ id: BlobID) throws -> Bool { try base.hasBlob(id) }
    public func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        lock.withLock { countedBytes += buffer.count }
        try base.readBlob(id, at: offset, into: buffer)
    }
    public func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try base.verify(control, found: found, damage: damage)
    }
    public func cacheGet(_ name: String) throws -> [UInt8]? { try base.cacheGet(name) }
    public func cachePut(_ name: String, _ data: [UInt8]) throws { try base.cachePut(name, data) }
    public func cacheDelete(_ name: String) throws { try base.cacheDelete(name) }
    public func cacheOpen(_ name: String) throws -> OpenCache? { try base.cacheOpen(name) }
    public func cacheWriter(_ name: String?) throws -> any CacheWriter { try base.cacheWriter(name) }
    public var damages: [StorageDamage] { base.damages }
    public func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    public func cacheBytes(_ control: PacedControl) throws -> UInt64 { try base.cacheBytes(control) }
    public func overhead(of place: RecordPlace) -> UInt64 { base.overhead(of: place) }
    public func close(discarding: Bool) throws { try base.close(discarding: discarding) }
}
