/// Ids of versions that are being made under a given id, so that two threads do not make the same version.
package final class InFlight: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var ids: Set<VersionID> = []
    /// Whether the store no longer makes versions.
    private var isOver = false

    /// Waits until no other thread makes the version, and blocks others until `end`.
    package func begin(_ id: VersionID) {
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
    /// Ends the making of a version, whether it was stored or not. A second call is harmless: a thread that begins then finds it stored.
    package func end(_ id: VersionID) {
        lock.lock()
        ids.remove(id)
        changed.broadcast()
        lock.unlock()
    }
}
