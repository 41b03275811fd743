import LLVS

/// A storage in memory with hooks for tests: records of other handles appear, syncs fail.
public final class HookedStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    public let description = "the store under test"
    public let isReadOnly = false
    public let blobThreshold: Int? = nil
    public let damages: [StorageDamage] = []
    private let base = MemoryStorage()
    private let lock = Lock()
    private var foreign: [[UInt8]] = []
    private var reported = 0
    /// Called before a sync, without locks; throwing fails it.
    nonisolated(unsafe) public var beforeSync: () throws -> Void = {}
    nonisolated(unsafe) public var beforeAppend: () throws -> Void = {}
    /// Returns whether a large value exists.
    nonisolated(unsafe) public var isThere: (BlobID) -> Bool = { _ in false }
    /// Told of by a verification.
    nonisolated(unsafe) public var foundWhenVerifying: [StorageDamage] = []
    private static let segment: UInt32 = 1 << 30

    public init(records: [[UInt8]] = []) { foreign = records }

    /// Adds a record, as another handle would.
    public func inject(_ record: [UInt8]) { lock.withLock { foreign.append(record) } }

    public func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try beforeAppend(); return try base.append(records) }
    public func sync() throws { try beforeSync() }
    public func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        let (from, all) = lock.withLock { (reported, foreign) }
        for i in from..<all.count {
            try control.step()
            try report(all, i, found)
        }
        lock.withLock { reported = all.count }
    }
    private func report(_ all: [[UInt8]], _ i: Int, _ found: (ScannedRecord) throws -> Void) throws {
        try all[i].withUnsafeBytes {
            try found(
                ScannedRecord(place: RecordPlace(segment: HookedStorage.segment, offset: UInt64(i), length: UInt64($0.count)), prefix: $0))
        }
    }
    public func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard place.segment == HookedStorage.segment else { return try base.read(place, at: offset, into: buffer) }
        let record = lock.withLock { foreign[Int(place.offset)] }
        guard let start = Int(exactly: offset), start <= record.count, buffer.count <= record.count - start else {
            throw StoreError(.damaged, "A record under test ends too early.")
        }
        record.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + buffer.count])) }
    }
    public func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try base.storeBlob(data) }
    public func hasBlob(_ id: BlobID) -> Bool { isThere(id) }
    public func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try base.readBlob(id, at: offset, into: buffer)
    }
    public func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try base.verify(control, found: found, damage: damage)
        for one in foundWhenVerifying { try damage(one) }
        let all = lock.withLock { foreign }
        for i in all.indices { try report(all, i, found) }
    }
    public func cacheGet(_ name: String) throws -> [UInt8]? { try base.cacheGet(name) }
    public func cachePut(_ name: String, _ data: [UInt8]) throws { try base.cachePut(name, data) }
    public func cacheDelete(_ name: String) throws { try base.cacheDelete(name) }
    public func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    public func cacheBytes(_ control: PacedControl) throws -> UInt64 { try base.cacheBytes(control) }
    public func overhead(of place: RecordPlace) -> UInt64 { base.overhead(of: place) }
    public func close(discarding: Bool) throws { try base.close(discarding: discarding) }
}
