/// Which versions this device leaves to another to bring to the single files of a bridged remote: docs/pack-format.md, section 11.
final class BridgedVersions: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private var left: Set<VersionID> = []

    init() {}

    /// What the next send leaves to others.
    func leave(_ ids: Set<VersionID>) { lock.withLock { left = ids } }

    /// Those that are to be sent now.
    /// - Parameter missing: those that are not there, predecessors first.
    func toSend(of missing: [VersionID], _ store: Store) throws -> [VersionID] {
        let held = lock.withLock { () -> Set<VersionID> in
            left.formIntersection(missing)
            return left
        }
        return try BridgedVersions.toSend(of: missing, without: held, store)
    }

    /// Those that the last send would have left to others, had they not been there.
    func areThere(of ids: Set<VersionID>) -> Set<VersionID> { lock.withLock { ids.subtracting(left) } }

    /// What others build on goes along, so that nobody waits for it.
    /// - Parameter missing: predecessors first.
    static func toSend(of missing: [VersionID], without held: Set<VersionID>, _ store: Store) throws -> [VersionID] {
        guard !held.isEmpty else { return missing }
        // The empty root comes with what is built on it.
        var held = held.union([EmptyRoot.id]), kept: [VersionID] = []
        for id in missing.reversed() where !held.contains(id) {
            kept.append(id)
            for before in try store.version(id)?.predecessors ?? [] { held.remove(before) }
        }
        return kept.reversed()
    }
}
