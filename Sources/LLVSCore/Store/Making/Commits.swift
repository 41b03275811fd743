/// Stores versions: one append after another, one sync for concurrent commits, and the state of unfinished commits.
package final class Commits: @unchecked Sendable {
    // Sendable: the store's lock guards `unpublished`; its parts have locks.
    let durability: Durability
    /// Held while the storage appends or scans.
    let lock: CommitLock
    /// Commits that wait for the disk.
    let group = GroupCommit()
    /// Ids of versions that are being made.
    package let inFlight = InFlight()
    /// Guarded by the store's lock.
    var unpublished = UnpublishedCommits()
    package let encoders: Pool<RecordEncoder>

    /// - Parameter encoderMemory: bytes of all encoders that are retained for the next save.
    init(_ durability: Durability, encoderMemory: Int) {
        self.durability = durability
        let most = 16
        encoders = Pool(most: most, keeping: { $0.memory <= max(64 << 10, encoderMemory / most) }) { RecordEncoder() }
        lock = CommitLock { [inFlight] in inFlight.letGo() }
    }
}

/// Held while the storage appends or scans.
final class CommitLock: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards `isLeft`, which only ever becomes true.
    private let lock = Lock(.commit)
    /// Whether a callback of the host's storage never returned: the state in memory is incomplete then.
    private(set) var isLeft = false
    private let whenLeft: @Sendable () -> Void
    init(whenLeft: @escaping @Sendable () -> Void) { self.whenLeft = whenLeft }

    func run<R>(_ body: () throws -> R) rethrows -> R {
        lock.lock()
        defer { lock.unlock() }
        return try HostCalls.run(self, body)
    }
    func hostLeft() {
        isLeft = true
        lock.unlock()
        whenLeft()
    }
}

/// Commits whose records may be in the storage without being in the history. While there are any, the history cannot be written to the
/// cache as the storage's content. Guarded by the store's lock.
struct UnpublishedCommits {
    typealias Unconfirmed = (time: GivenTime, digest: [UInt8])
    /// The number of running commits.
    var running = 0
    /// The number of the thread that holds the commit lock and reads records.
    var scanner: UInt32?
    /// Whether the outcome of a commit is unknown.
    var hasUncertain = false
    /// Versions whose append or sync failed without telling whether they are stored. If they are made again, they must be the same
    /// version, so they get the same timestamp.
    private var unconfirmed: [VersionID: Unconfirmed] = [:]

    var isNone: Bool { running == 0 && !hasUncertain }
    func unconfirmed(_ id: VersionID) -> Unconfirmed? { unconfirmed.isEmpty ? nil : unconfirmed[id] }
    mutating func markUncertain(_ id: VersionID, _ what: Unconfirmed) { hasUncertain = true; unconfirmed[id] = what }
    mutating func confirm(_ id: VersionID) { if !unconfirmed.isEmpty { unconfirmed[id] = nil } }
}
