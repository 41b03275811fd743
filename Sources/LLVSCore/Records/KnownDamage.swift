/// The damaged versions of a store that were found. A retrieve fetches them again. Safe from all threads.
package final class KnownDamage: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private var places: Set<RecordPlace> = []
    private var versions: Set<VersionID> = []
    /// Versions that were rewritten and whose sync failed.
    private var unsynced: Set<VersionID> = []
    private static let limit = 10_000

    package var isEmpty: Bool { lock.withLock { places.isEmpty && versions.isEmpty && unsynced.isEmpty } }

    /// Records damage in a record, or in a value that it names.
    func note(_ place: RecordPlace) { lock.withLock { if places.count < KnownDamage.limit { places.insert(place) } } }
    func note(_ version: VersionID) { lock.withLock { if versions.count < KnownDamage.limit { versions.insert(version) } } }

    func forget(_ place: RecordPlace) { _ = lock.withLock { places.remove(place) } }

    func noteUnsynced(_ version: VersionID) { _ = lock.withLock { unsynced.insert(version) } }
    func isUnsynced(_ version: VersionID) -> Bool { lock.withLock { unsynced.contains(version) } }

    func concerns(_ version: VersionID, at place: RecordPlace) -> Bool {
        lock.withLock { versions.contains(version) || places.contains(place) || unsynced.contains(version) }
    }

    /// Forgets the damage: the record is valid, or another record is read instead.
    func forget(_ version: VersionID, at place: RecordPlace) {
        lock.withLock {
            versions.remove(version)
            unsynced.remove(version)
            places.remove(place)
        }
    }
}
