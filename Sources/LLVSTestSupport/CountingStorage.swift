import LLVSCore

/// Forwards all calls to another storage, counts what is read, and lets a test change it.
package final class CountingStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let base: any Storage
    private let lock = Lock()
    private var counted = 0
    private var countedBytes = 0
    private var meddling: ((UnsafeMutableRawBufferPointer) -> Void)?
    private var meddlingRecords: ((UInt64, UnsafeMutableRawBufferPointer) -> Void)?

    package init(_ base: any Storage) { self.base = base }

    /// Reads of records and of segments so far.
    package var reads: Int { lock.withLock { counted } }
    /// Bytes of records and blobs that were read so far.
    package var bytesRead: Int { lock.withLock { countedBytes } }
    /// Sets a closure that is called from now on with the result of each read of a record, and its position in the record.
    package func meddleWithRecords(_ meddle: ((UInt64, UnsafeMutableRawBufferPointer) -> Void)?) {
        lock.withLock { meddlingRecords = meddle }
    }
    /// Sets a closure that is called once, with the result of the next read of a segment.
    package func meddleOnce(_ meddle: @escaping (UnsafeMutableRawBufferPointer) -> Void) { lock.withLock { meddling = meddle } }

    package var description: String { base.description }
    package var isReadOnly: Bool { base.isReadOnly }
    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try base.append(records) }
    package func sync() throws { try base.sync() }
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws { try base.scan(control, found) }
    package func scanMark() -> [UInt8]? { base.scanMark() }
    package func resume(_ mark: [UInt8]) -> [UInt32]? { base.resume(mark) }
    package func forgetResumed() { base.forgetResumed() }
    package func compact(_ trigger: CompactionTrigger, _ control: OperationControl) throws -> CompactionReport {
        try base.compact(trigger, control)
    }
    package func currentPlace(_ place: RecordPlace) -> RecordPlace { base.currentPlace(place) }
    package var canErase: Bool { base.canErase }
    package func openRecordsLock() throws -> OpenFile? { try base.openRecordsLock() }
    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] { try base.erase(erasure, control) }
    package func isGone(_ place: RecordPlace) -> Bool { base.isGone(place) }
    package func noteErased(_ place: RecordPlace) { base.noteErased(place) }
    package func noteUsed(_ segments: Set<UInt32>) { base.noteUsed(segments) }
    package func forgetScanned() { base.forgetScanned() }
    package func cacheNames() throws -> [String] { try base.cacheNames() }
    package func cacheErase(_ name: String) throws { try base.cacheErase(name) }
    package func hasCache(_ name: String) -> Bool { base.hasCache(name) }
    package func orders() throws -> [[UInt8]] { try base.orders() }
    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws { try base.changeOrders(change) }
    package func ordersStamp() -> UInt64 { base.ordersStamp() }
    package func hasErasedFiles() -> Bool { base.hasErasedFiles() }
    package func touchOrders() { base.touchOrders() }
    package func finishErasing() throws -> [String] { try base.finishErasing() }
    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        let meddle = lock.withLock { () -> ((UInt64, UnsafeMutableRawBufferPointer) -> Void)? in
            counted += 1
            countedBytes += buffer.count
            return meddlingRecords
        }
        try base.read(place, at: offset, into: buffer)
        meddle?(offset, buffer)
    }
    package var blockShape: BlockShape { base.blockShape }
    package func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let meddle = lock.withLock { () -> ((UnsafeMutableRawBufferPointer) -> Void)? in
            counted += 1
            defer { meddling = nil }
            return meddling
        }
        let count = try base.readSegment(segment, at: position, into: buffer)
        meddle?(buffer)
        return count
    }
    package var blobThreshold: Int? { base.blobThreshold }
    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try base.storeBlob(data) }
    package func hasBlob(_ id: BlobID) throws -> Bool { try base.hasBlob(id) }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        lock.withLock { countedBytes += buffer.count }
        try base.readBlob(id, at: offset, into: buffer)
    }
    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try base.verify(control, found: found, damage: damage)
    }
    package func cacheGet(_ name: String) throws -> [UInt8]? { try base.cacheGet(name) }
    package func cachePut(_ name: String, _ data: [UInt8]) throws { try base.cachePut(name, data) }
    package func cacheDelete(_ name: String) throws { try base.cacheDelete(name) }
    package func cacheOpen(_ name: String) throws -> OpenCache? { try base.cacheOpen(name) }
    package func cacheWriter(_ name: String?) throws -> any CacheWriter { try base.cacheWriter(name) }
    package var damages: [StorageDamage] { base.damages }
    package func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    package func cacheBytes(_ control: PacedControl) throws -> UInt64 { try base.cacheBytes(control) }
    package func overhead(of place: RecordPlace) -> UInt64 { base.overhead(of: place) }
    package func close(discarding: Bool) throws { try base.close(discarding: discarding) }
}
