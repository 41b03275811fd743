/// Lets commits that wait at once share one sync (group commit).
///
/// Threads that commit one version after another come back soon after a sync has let them go. Whoever is to sync next
/// waits for them, for a part of what a sync takes at most: otherwise half of them would always find a sync running that
/// does not cover them, and wait for one and a half. Who commits alone waits for nobody.
final class GroupCommit: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private let done = Condition()
    private var appended: UInt64 = 0
    private var synced: UInt64 = 0
    private var syncing = false
    /// The ticket of who waits for others to come before the next sync; 0: nobody does.
    private var waiting: UInt64 = 0
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
    func ticket() -> UInt64 {
        lock.withLock {
            appended += 1; outstanding += 1; return appended
        }
    }

    /// Returns when all up to `ticket` is durable; throws when the sync that was to cover it failed.
    func wait(for ticket: UInt64, sync: () throws -> Void) throws {
        lock.lock()
        defer {
            outstanding -= 1
            if outstanding == 0 { failures = [] }
            lock.unlock()
        }
        while true {
            if let failure = failures.first(where: { ticket > $0.after && ticket <= $0.upTo }) { throw failure.error }
            if synced >= ticket { return }
            if syncing || (waiting > 0 && appended < target) { done.wait(lock); continue }
            guard isComplete(or: ticket) else { continue }
            waiting = 0
            syncing = true
            let upTo = appended, before = synced
            lock.unlock()
            let start = Clock.steady()
            let result = Result { try HostCalls.run(self, sync) }
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

    /// Nobody knows what was synced: those who wait for it are told so.
    override func hostLeft() {
        lock.withLock {
            failures.append(
                (
                    synced, appended,
                    StoreError(
                        .unknownOutcome,
                        "A sync was left by a callback of the storage that did not return. "
                            + "Whether what it was to make durable is on the medium is not known."
                    )
                ))
            synced = appended
            syncing = false
            outstanding -= 1
            done.broadcast()
        }
    }

    /// So many may be there for the next sync.
    private var target: UInt64 { synced + UInt64(clamping: expected) }

    /// Whether the next sync need not wait for anybody any more, while none runs. The first who comes waits for some time, or
    /// until somebody else syncs; who comes last goes ahead at once, so that nobody has to be woken for it. The lock is
    /// held, but for the waiting. False: look again.
    private func isComplete(or ticket: UInt64) -> Bool {
        if appended >= target { disappointments = 0; return true }
        if turnsToSkip > 0 { turnsToSkip -= 1; return true }
        let end = Clock.steady() + min(seconds / 2, GroupCommit.longestWait)
        waiting = ticket
        while waiting == ticket, appended < target, done.wait(lock, until: end) {}
        // Who came last has gone ahead.
        if waiting != ticket { return false }
        disappointments = appended < target ? min(64, 2 * disappointments + 1) : 0
        turnsToSkip = disappointments
        return true
    }
}
