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
    /// Timestamps of versions whose sync failed: made again, they get the same one and are the same version.
    private var unconfirmed: [VersionID: Double] = [:]

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
    func unconfirmedTimestamp(_ id: VersionID) -> Double? { lock.withLock { unconfirmed.isEmpty ? nil : unconfirmed[id] } }
    func setUnconfirmed(_ id: VersionID, _ timestamp: Double?) { lock.withLock { unconfirmed[id] = timestamp } }
}
