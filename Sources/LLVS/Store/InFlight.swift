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

/// Commits whose records may lie in the storage without being in the history: while there are any, the history
/// cannot be written down as what the storage holds.
final class UnpublishedCommits: @unchecked Sendable {
    private let lock = Lock()
    private var running = 0
    private var lost = false
    func begin() { lock.withLock { running += 1 } }
    func end() { lock.withLock { running -= 1 } }
    /// The outcome of a commit is not known.
    func noteLost() { lock.withLock { lost = true } }
    var isNone: Bool { lock.withLock { running == 0 && !lost } }
}
