/// Records of versions that exist only in memory until their batch is stored.
///
/// Their places have `segment`; the offset is a number of this table. Safe from all threads.
package final class ProvisionalRecords: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    static let segment = UInt32.max
    private let lock = Lock(.leaf)
    private var records: [UInt64: [UInt8]] = [:]
    private var next: UInt64 = 1

    package func add(_ record: [UInt8]) -> RecordPlace {
        lock.withLock {
            defer { next += 1 }
            records[next] = record
            return RecordPlace(segment: ProvisionalRecords.segment, offset: next, length: UInt64(record.count))
        }
    }
    package func remove(_ place: RecordPlace) { lock.withLock { _ = records.removeValue(forKey: place.offset) } }

    /// Copies bytes of a record. Returns false if they do not exist.
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        lock.withLock {
            guard let record = records[place.offset], let start = Int(exactly: offset), start <= record.count,
                buffer.count <= record.count - start
            else { return false }
            record.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + buffer.count])) }
            return true
        }
    }
}
