import LLVSCore

/// A storage in memory with hooks for tests: records of other handles appear, syncs fail.
package final class HookedStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    package let description = "the store under test"
    package let isReadOnly = false
    package let blobThreshold: Int? = nil
    package let damages: [StorageDamage] = []
    private let base = MemoryStorage()
    private let lock = Lock()
    private var foreign: [[UInt8]] = []
    private var reported = 0
    /// Called before a sync, without locks; throwing fails it.
    nonisolated(unsafe) package var beforeSync: () throws -> Void = {}
    nonisolated(unsafe) package var beforeAppend: () throws -> Void = {}
    /// Returns whether a large value exists.
    nonisolated(unsafe) package var isThere: (BlobID) -> Bool = { _ in false }
    /// Told of by a verification.
    nonisolated(unsafe) package var foundWhenVerifying: [StorageDamage] = []
    private static let segment: UInt32 = 1 << 30

    package init(records: [[UInt8]] = []) { foreign = records }

    /// Adds a record, as another handle would.
    package func inject(_ record: [UInt8]) { lock.withLock { foreign.append(record) } }

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try beforeAppend(); return try base.append(records) }
    package func sync() throws { try beforeSync() }
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
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
    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard place.segment == HookedStorage.segment else { return try base.read(place, at: offset, into: buffer) }
        let record = lock.withLock { foreign[Int(place.offset)] }
        guard let start = Int(exactly: offset), start <= record.count, buffer.count <= record.count - start else {
            throw StoreError(.damaged, "A record under test ends too early.")
        }
        record.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + buffer.count])) }
    }
    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try base.storeBlob(data) }
    package func hasBlob(_ id: BlobID) -> Bool { isThere(id) }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try base.readBlob(id, at: offset, into: buffer)
    }
    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        try base.verify(control, found: found, damage: damage)
        for one in foundWhenVerifying { try damage(one) }
        let all = lock.withLock { foreign }
        for i in all.indices { try report(all, i, found) }
    }
    package func cacheGet(_ name: String) throws -> [UInt8]? { try base.cacheGet(name) }
    package func cachePut(_ name: String, _ data: [UInt8]) throws { try base.cachePut(name, data) }
    package func cacheDelete(_ name: String) throws { try base.cacheDelete(name) }
    package func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    package func cacheBytes(_ control: PacedControl) throws -> UInt64 { try base.cacheBytes(control) }
    package func overhead(of place: RecordPlace) -> UInt64 { base.overhead(of: place) }
    package func close(discarding: Bool) throws { try base.close(discarding: discarding) }
}
