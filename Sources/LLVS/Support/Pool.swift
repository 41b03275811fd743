/// Reusable scratch objects: taken for the length of a call, never shared.
final class Pool<Element>: @unchecked Sendable {
    private let lock = Lock()
    private var free: [Element] = []
    private let make: () -> Element
    private let isWorthKeeping: (Element) -> Bool
    init(keeping isWorthKeeping: @escaping (Element) -> Bool = { _ in true }, _ make: @escaping () -> Element) {
        self.make = make
        self.isWorthKeeping = isWorthKeeping
    }

    func with<R>(_ body: (inout Element) throws -> R) rethrows -> R {
        var element = lock.withLock { free.popLast() } ?? make()
        defer { if isWorthKeeping(element) { lock.withLock { if free.count < 16 { free.append(element) } } } }
        return try body(&element)
    }
}

/// Ids of versions that are being made under a given id, so that two threads do not make one twice.
final class InFlight: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var ids: Set<VersionID> = []
    /// Versions whose sync failed: made again, they get the same timestamp and must be the same version.
    private var unconfirmed: [VersionID: Unconfirmed] = [:]
    typealias Unconfirmed = (timestamp: Double, digest: [UInt8])

    /// Waits until nobody else makes the version, and keeps others waiting until `end`.
    func begin(_ id: VersionID) {
        lock.lock()
        while ids.contains(id) { changed.wait(lock) }
        ids.insert(id)
        lock.unlock()
    }
    func end(_ id: VersionID) {
        lock.lock()
        ids.remove(id)
        changed.broadcast()
        lock.unlock()
    }
    func unconfirmed(_ id: VersionID) -> Unconfirmed? { lock.withLock { unconfirmed.isEmpty ? nil : unconfirmed[id] } }
    func setUnconfirmed(_ id: VersionID, _ timestamp: Double, _ digest: [UInt8]) { lock.withLock { unconfirmed[id] = (timestamp, digest) } }
    func confirm(_ id: VersionID) { lock.withLock { if !unconfirmed.isEmpty { unconfirmed[id] = nil } } }
}
