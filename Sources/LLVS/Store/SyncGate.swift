/// Lets commits that wait at once share one sync (group commit).
///
/// Threads that commit one version after another come back soon after a sync has let them go. Whoever is to sync next
/// waits for them, for a part of what a sync takes at most: otherwise half of them would always find a sync running that
/// does not cover them, and wait for one and a half. Who commits alone waits for nobody.
final class SyncGate: @unchecked Sendable {
    private let lock = Lock()
    private let done = Condition()
    private let arrived = Condition()
    private var appended: UInt64 = 0
    private var synced: UInt64 = 0
    private var syncing = false
    /// What syncs failed for, as long as anybody has a ticket: behind the first number, up to the second. A later sync that
    /// succeeds says nothing of bytes that an earlier one failed to write.
    private var failures: [(after: UInt64, upTo: UInt64, error: any Error)] = []
    private var outstanding = 0
    /// How many the last sync let go, and how many had come meanwhile: so many may be there for the next.
    private var expected = 0
    /// Of the last sync.
    private var seconds = 0.0
    private static let longestWait = 0.002
    /// Where those who were waited for did not come, the next ones are not waited for, more and more of them.
    private var disappointments = 0
    private var turnsToSkip = 0

    var isSyncing: Bool { lock.withLock { syncing } }

    /// Takes a number for something that was just appended; each is waited for once.
    func ticket() -> UInt64 { lock.withLock { appended += 1; outstanding += 1; return appended } }

    /// Returns when all up to `ticket` is durable; throws when the sync that was to cover it failed.
    func wait(for ticket: UInt64, sync: () throws -> Void) throws {
        lock.lock()
        defer {
            outstanding -= 1
            if outstanding == 0 { failures = [] }
            lock.unlock()
        }
        arrived.broadcast()
        while true {
            if let failure = failures.first(where: { ticket > $0.after && ticket <= $0.upTo }) { throw failure.error }
            if synced >= ticket { return }
            if syncing { done.wait(lock); continue }
            syncing = true
            awaitOthers()
            let upTo = appended, before = synced
            lock.unlock()
            let start = Clock.steady()
            let result = Result { try sync() }
            let end = Clock.steady()
            lock.lock()
            syncing = false
            seconds = end - start
            expected = Int(clamping: upTo - before) + Int(clamping: appended - upTo)
            switch result {
            case .success: synced = max(synced, upTo)
            case .failure(let error): failures.append((synced, upTo, error)); synced = max(synced, upTo)
            }
            done.broadcast()
        }
    }

    /// The lock is held, but for the waiting.
    private func awaitOthers() {
        let target = synced + UInt64(clamping: expected)
        guard appended < target else { return }
        if turnsToSkip > 0 { turnsToSkip -= 1; return }
        let end = Clock.steady() + min(seconds / 2, SyncGate.longestWait)
        while appended < target, arrived.wait(lock, until: end) {}
        disappointments = appended < target ? min(64, 2 * disappointments + 1) : 0
        turnsToSkip = disappointments
    }
}
