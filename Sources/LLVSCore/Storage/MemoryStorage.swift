/// A storage in memory, for tests and scratch stores. Its records are gone when it is closed.
///
/// Everything is O(1) besides copying the bytes; `scan` is O(records not reported before). Safe from any thread.
package final class MemoryStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    package let description: String
    package let isReadOnly = false
    package let blobThreshold: Int? = nil
    package let damages: [StorageDamage] = []

    private let lock = ReadWriteLock(.storage)
    private var records: [[UInt8]] = []
    private var reported = 0
    private var cache: [String: [UInt8]] = [:]
    private var ordersToErase: [UInt8]?
    /// How often they changed.
    private var ordersChanges: UInt64 = 0
    private var bytes: UInt64 = 0
    private var closed = false

    /// - Parameter name: the name of the store in messages.
    package init(name: String = "the store in memory") { description = name }

    package func append(_ batch: [RecordPieces]) throws -> [RecordPlace] {
        try lock.withWrite {
            try checkOpen()
            guard batch.count < Int(UInt32.max) - records.count else {
                throw StoreError(
                    .tooLarge, "Adding \(batch.count) records to \(description) failed: it holds at most 2^32. Use a storage on disk.")
            }
            let new = try batch.map { try $0.bytes() }
            let first = records.count
            records += new
            // `scan` must not report this handle's own records. There is no other writer, so all records count as reported.
            reported = records.count
            return new.indices.map { i in
                bytes &+= UInt64(new[i].count)
                return RecordPlace(segment: UInt32(truncatingIfNeeded: first + i), offset: 0, length: UInt64(new[i].count))
            }
        }
    }

    package func sync() throws { try lock.withRead { try checkOpen() } }

    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        let (from, all) = try lock.withRead {
            try checkOpen(); return (reported, records)
        }
        for index in from..<max(from, all.count) {
            try control.step()
            try report(all, index, found)
        }
        lock.withWrite { reported = max(reported, all.count) }
    }

    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        let all = try lock.withRead {
            try checkOpen(); return records
        }
        for index in all.indices {
            try control.check(.verifying, index, of: all.count, doing: "Verifying \(description)")
            try report(all, index, found)
        }
    }

    private func report(_ all: [[UInt8]], _ index: Int, _ found: (ScannedRecord) throws -> Void) throws {
        let place = RecordPlace(segment: UInt32(truncatingIfNeeded: index), offset: 0, length: UInt64(all[index].count))
        try all[index].withUnsafeBytes { try found(ScannedRecord(place: place, prefix: $0)) }
    }

    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try lock.withRead {
            try checkOpen()
            guard Int(place.segment) < records.count else { throw StorageRange.unknownPlace(description) }
            let record = records[Int(place.segment)]
            let start = try StorageRange.check(offset, buffer.count, within: UInt64(record.count), of: description)
            record.withUnsafeBytes { bytes in
                if buffer.count > 0, let to = buffer.baseAddress, let from = bytes.baseAddress {
                    memcpy(to, from + Int(start), buffer.count)
                }
            }
        }
    }

    package var canErase: Bool { true }
    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] {
        let all = try lock.withRead {
            try checkOpen(); return records
        }
        var moved: [RecordPlace: RecordPlace] = [:]
        for index in all.indices {
            let place = RecordPlace(segment: UInt32(truncatingIfNeeded: index), offset: 0, length: UInt64(all[index].count))
            guard try all[index].withUnsafeBytes({ try erasure.concerns(ScannedRecord(place: place, prefix: $0)) }),
                let new = try erasure.rewritten(place, isLast: true)
            else { continue }
            lock.withWrite { records[index] = new.bytes }
            moved[place] = RecordPlace(segment: place.segment, offset: 0, length: UInt64(new.bytes.count))
        }
        try erasure.moved(moved)
        return []
    }
    package func cacheNames() throws -> [String] { lock.withRead { Array(cache.keys) } }
    package func orders() -> [[UInt8]] { lock.withRead { ordersToErase.map { [$0] } ?? [] } }
    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) rethrows {
        let bytes = try change(orders())
        lock.withWrite {
            ordersToErase = bytes
            ordersChanges += 1
        }
    }
    package func ordersStamp() -> UInt64 { lock.withRead { ordersToErase == nil ? 0 : ordersChanges } }
    package func touchOrders() { lock.withWrite { ordersChanges += 1 } }

    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw StorageRange.noBlobs(description) }
    package func hasBlob(_ id: BlobID) -> Bool { false }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        throw StorageRange.noBlobs(description)
    }

    package func cacheGet(_ name: String) throws -> [UInt8]? {
        try CacheName.check(name)
        return try lock.withRead {
            try checkOpen(); return cache[name]
        }
    }
    package func cachePut(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        try lock.withWrite {
            try checkOpen(); cache[name] = data
        }
    }
    package func cacheDelete(_ name: String) throws {
        try CacheName.check(name)
        try lock.withWrite {
            try checkOpen(); cache[name] = nil
        }
    }

    package func statistics(_ control: PacedControl) throws -> StorageStatistics {
        lock.withRead {
            var statistics = StorageStatistics()
            statistics.bytes = bytes &+ cache.values.reduce(0) { $0 &+ UInt64($1.count) }
            statistics.bytesWritten = bytes
            return statistics
        }
    }

    package func cacheBytes(_ control: PacedControl) throws -> UInt64 {
        lock.withRead { cache.values.reduce(0) { $0 &+ UInt64($1.count) } }
    }

    package func close(discarding: Bool) throws {
        // After a fork, a thread of the parent may have held the lock, which is then never released here.
        if discarding { return }
        lock.withWrite {
            closed = true; records = []; cache = [:]
        }
    }

    private func checkOpen() throws { if closed { throw StorageRange.closed(description) } }
}
