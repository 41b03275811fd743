/// Records of versions that exist in memory only, until the batch that they belong to is stored.
///
/// Their places have `segment`; the offset is a number of this table. Safe from all threads.
final class ProvisionalRecords: @unchecked Sendable {
    static let segment = UInt32.max
    private let lock = Lock()
    private var records: [UInt64: [UInt8]] = [:]
    private var next: UInt64 = 1

    func add(_ record: [UInt8]) -> RecordPlace {
        lock.withLock {
            defer { next += 1 }
            records[next] = record
            return RecordPlace(segment: ProvisionalRecords.segment, offset: next, length: UInt64(record.count))
        }
    }
    func remove(_ place: RecordPlace) { lock.withLock { _ = records.removeValue(forKey: place.offset) } }

    /// Copies bytes of a record; false when they are not there.
    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        lock.withLock {
            guard let record = records[place.offset], let start = Int(exactly: offset), start <= record.count, buffer.count <= record.count - start else { return false }
            record.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + buffer.count])) }
            return true
        }
    }
}

/// Those who want to know of added versions.
final class VersionObservers: @unchecked Sendable {
    private final class Observation: ExchangeObservation, @unchecked Sendable {
        let call: @Sendable ([VersionID]) -> Void
        weak var observers: VersionObservers?
        init(_ call: @escaping @Sendable ([VersionID]) -> Void, _ observers: VersionObservers) { self.call = call; self.observers = observers }
        func cancel() { observers?.remove(self) }
    }
    private let lock = Lock()
    private var observations: [Observation] = []

    func add(_ call: @escaping @Sendable ([VersionID]) -> Void) -> any ExchangeObservation {
        let observation = Observation(call, self)
        lock.withLock { observations.append(observation) }
        return observation
    }
    private func remove(_ observation: Observation) { lock.withLock { observations.removeAll { $0 === observation } } }
    var isEmpty: Bool { lock.withLock { observations.isEmpty } }
    func tell(_ ids: [VersionID]) {
        let current = lock.withLock { observations }
        for observation in current { observation.call(ids) }
    }
}
