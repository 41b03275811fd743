/// Ids of versions that are being made under a given id, so that two threads do not make one twice.
final class InFlight: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
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
    /// Once it is stored, or will not be; a second time it changes nothing that matters: who begins then finds it stored.
    func end(_ id: VersionID) {
        lock.lock()
        ids.remove(id)
        changed.broadcast()
        lock.unlock()
    }
}
