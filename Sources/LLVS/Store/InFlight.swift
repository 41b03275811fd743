/// Ids of versions that are being made under a given id, so that two threads do not make one twice.
final class InFlight: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var ids: Set<VersionID> = []
    /// Of a store in which nothing is made any more.
    private var isOver = false

    /// Waits until nobody else makes the version, and keeps others waiting until `end`.
    func begin(_ id: VersionID) {
        lock.lock()
        while ids.contains(id) && !isOver { changed.wait(lock) }
        ids.insert(id)
        lock.unlock()
    }
    func letGo() {
        lock.withLock {
            isOver = true
            changed.broadcast()
        }
    }
    func end(_ id: VersionID) {
        lock.lock()
        ids.remove(id)
        changed.broadcast()
        lock.unlock()
    }
}

/// Commits whose records may lie in the storage without being in the history: while there are any, the history
/// cannot be written down as what the storage holds. Guarded by the store's lock.
struct UnpublishedCommits {
    typealias Unconfirmed = (timestamp: Double, digest: [UInt8])
    /// Being stored.
    var running = 0
    /// The outcome of some commit is not known.
    var hasLost = false
    /// Versions whose append or sync failed without saying whether they are stored: made again, they get the same timestamp and must be the
    /// same version.
    private var unconfirmed: [VersionID: Unconfirmed] = [:]

    var isNone: Bool { running == 0 && !hasLost }
    func unconfirmed(_ id: VersionID) -> Unconfirmed? { unconfirmed.isEmpty ? nil : unconfirmed[id] }
    mutating func lose(_ id: VersionID, _ what: Unconfirmed) { hasLost = true; unconfirmed[id] = what }
    mutating func confirm(_ id: VersionID) { if !unconfirmed.isEmpty { unconfirmed[id] = nil } }
}
