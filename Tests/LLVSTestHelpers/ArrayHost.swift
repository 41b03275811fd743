import LLVSCore

/// A storage as a host might implement it: an array and a dictionary, with faults.
package final class ArrayHost: @unchecked Sendable {
    // Sendable: `lock` guards all that calls of a store change.
    package var records: [[UInt8]] = []
    package var caches: [String: [UInt8]] = [:]
    package var calls = 0
    package var page = Int.max
    package var keepsCaches = true
    package var failure: (any Error)?
    /// The error of reading the record with that number, from an offset on.
    package var unreadable: (record: Int, from: UInt64, error: StoreError)?
    package var closes = 0, releases = 0
    /// A store makes one call at a time, but two stores may use one storage.
    package let lock = Lock()

    package init() {}

    package var functions: CallbackStorage.Functions {
        var functions = CallbackStorage.Functions(
            append: { [self] batch in
                lock.lock()
                defer { lock.unlock() }
                if let failure { throw failure }
                let first = records.count
                records += batch.map { Array($0) }
                return (first..<records.count).map { UInt64($0) * 3 + 7 }
            },
            list: { [self] mark in
                lock.lock()
                defer { lock.unlock() }
                let from = Int(mark), to = min(records.count, from.addingReportingOverflow(page).overflow ? Int.max : from + page)
                return (
                    (from..<to).map { CallbackStorage.Listed(place: UInt64($0) * 3 + 7, size: UInt64(records[$0].count)) }, UInt64(to)
                )
            },
            read: { [self] place, offset, buffer in
                lock.lock()
                defer { lock.unlock() }
                guard place >= 7, (place - 7) % 3 == 0, Int((place - 7) / 3) < records.count else { return 0 }
                if let unreadable, unreadable.record == Int((place - 7) / 3), offset &+ UInt64(buffer.count) > unreadable.from {
                    throw unreadable.error
                }
                let record = records[Int((place - 7) / 3)]
                let part = record.dropFirst(Int(offset)).prefix(buffer.count)
                buffer.copyBytes(from: part)
                return part.count
            },
            close: { [self] in closes += 1 })
        if keepsCaches {
            functions.cacheGet = { [self] name in lock.withLock { caches[name] } }
            functions.cachePut = { [self] name, data in lock.withLock { caches[name] = Array(data) } }
            functions.cacheDelete = { [self] name in lock.withLock { caches[name] = nil } }
        }
        functions.release = { [self] in releases += 1 }
        return functions
    }
}
