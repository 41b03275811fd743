import LLVS

/// Records and caches in memory that outlive the stores on them. Restarting a store costs nothing, and several stores may use one disk.
final class SimulatedDisk: @unchecked Sendable {
    fileprivate let lock = Lock()
    fileprivate var records: [[UInt8]] = []
    fileprivate var blobs: [[UInt8]] = []
    fileprivate var cache: [String: [UInt8]] = [:]

    func forgetCaches() { lock.withLock { cache = [:] } }
    /// For `Defect.storage`.
    func loseLastRecord() { lock.withLock { _ = records.popLast() } }
}

/// A store's handle of a `SimulatedDisk`.
final class SimulatedStorage: Storage, @unchecked Sendable {
    let description = "the simulated store"
    let isReadOnly = false
    let damages: [StorageDamage] = []
    let blobThreshold: Int?
    let blockShape: BlockShape
    private let disk: SimulatedDisk
    private var reported = 0
    /// The numbers of records that this handle appended; they are not reported.
    private var own: Set<Int> = []

    init(_ disk: SimulatedDisk, blobThreshold: Int?, blockShape: BlockShape) {
        self.disk = disk; self.blobThreshold = blobThreshold; self.blockShape = blockShape
    }

    func append(_ batch: [RecordPieces]) throws -> [RecordPlace] {
        let new = try batch.map { try $0.bytes() }
        return disk.lock.withLock {
            new.map { bytes in
                own.insert(disk.records.count)
                disk.records.append(bytes)
                return RecordPlace(segment: UInt32(disk.records.count - 1), offset: 0, length: UInt64(bytes.count))
            }
        }
    }
    func sync() throws {}

    func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        let all = disk.lock.withLock { disk.records }
        while reported < all.count {
            if !own.contains(reported) { try report(all[reported], reported, found) }
            reported += 1
        }
    }
    private func report(_ record: [UInt8], _ number: Int, _ found: (ScannedRecord) throws -> Void) throws {
        try record.withUnsafeBytes {
            try found(ScannedRecord(place: RecordPlace(segment: UInt32(number), offset: 0, length: UInt64($0.count)), prefix: $0))
        }
    }
    func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        for (i, record) in disk.lock.withLock({ disk.records }).enumerated() { try report(record, i, found) }
    }

    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try SimulatedStorage.copy(disk.lock.withLock { disk.records[Int(place.segment)] }, offset, buffer)
    }
    private static func copy(_ bytes: [UInt8], _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws {
        guard offset <= UInt64(bytes.count), buffer.count <= bytes.count - Int(offset) else {
            throw StoreError(.damaged, "A record ends too early.")
        }
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + buffer.count])) }
    }

    func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID {
        disk.lock.withLock {
            disk.blobs.append(Array(data))
            return BlobID(high: 1, low: UInt64(disk.blobs.count - 1))
        }
    }
    func blobWriter(size: Int?) throws -> any BlobWriter { Writer(self) }
    private final class Writer: BlobWriter {
        private let storage: SimulatedStorage
        private var bytes: [UInt8] = []
        init(_ storage: SimulatedStorage) { self.storage = storage }
        func append(_ more: UnsafeRawBufferPointer) { bytes += more }
        func finish(digest: [UInt8]) throws -> BlobID { try bytes.withUnsafeBytes(storage.storeBlob) }
        func cancel() {}
    }
    func hasBlob(_ id: BlobID) -> Bool { disk.lock.withLock { id.high == 1 && id.low < UInt64(disk.blobs.count) } }
    func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard hasBlob(id) else { throw StoreError(.damaged, "A blob is missing.") }
        try SimulatedStorage.copy(disk.lock.withLock { disk.blobs[Int(id.low)] }, offset, buffer)
    }

    func cacheGet(_ name: String) throws -> [UInt8]? { disk.lock.withLock { disk.cache[name] } }
    func cachePut(_ name: String, _ data: [UInt8]) throws { disk.lock.withLock { disk.cache[name] = data } }
    func cacheDelete(_ name: String) throws { disk.lock.withLock { disk.cache[name] = nil } }
    func statistics(_ control: PacedControl) throws -> StorageStatistics { StorageStatistics() }
    func close(discarding: Bool) throws {}
}
