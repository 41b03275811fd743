/// The versions that this device leaves to another to copy to the single files of a bridged remote: docs/pack-format.md, section 11.
final class BridgedVersions: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private var left: Set<VersionID> = []

    init() {}

    /// Sets the versions that the next send leaves to other devices.
    func leave(_ ids: Set<VersionID>) { lock.withLock { left = ids } }

    /// Returns the versions to send now.
    /// - Parameter missing: the versions that the single files lack, predecessors first.
    func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID] {
        let held = lock.withLock { () -> Set<VersionID> in
            left.formIntersection(missing)
            return left
        }
        return try BridgedVersions.toSend(of: missing, without: held, store)
    }

    /// Returns which of these ids, given to `leave` before, the last send found present.
    func areThere(of ids: Set<VersionID>) -> Set<VersionID> { lock.withLock { ids.subtracting(left) } }

    /// Returns the versions to send. Includes versions on which other ones to send build, so that these need not wait.
    /// - Parameter missing: predecessors first.
    static func toSend(of missing: [VersionID], without held: Set<VersionID>, _ store: Store) throws -> [VersionID] {
        guard !held.isEmpty else { return missing }
        // The empty root is sent with the versions built on it.
        var held = held.union([EmptyRoot.id]), kept: [VersionID] = []
        for id in missing.reversed() where !held.contains(id) {
            kept.append(id)
            for before in try store.version(id)?.predecessors ?? [] { held.remove(before) }
        }
        return kept.reversed()
    }
}
