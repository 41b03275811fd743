/// Lets concurrent commits share one sync (group commit).
///
/// Threads that commit one version after another return soon after a sync has released them. The next thread to sync waits for them, at
/// most for a part of a sync's duration. Otherwise, half of them would always find a running sync that does not cover them, and wait for
/// one and a half syncs. A thread that commits alone does not wait.
final class GroupCommit: HostCallMark, @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private let done = Condition()
    private var appended: UInt64 = 0
    private var synced: UInt64 = 0
    private var syncing = false
    /// The ticket of the thread that waits for others before the next sync; 0 if none does.
    private var waiting: UInt64 = 0
    /// The errors of syncs, while there are tickets: for tickets after the first number, up to the second. A later sync that succeeds
    /// proves nothing about bytes that an earlier one failed to write.
    private var failures: [(after: UInt64, upTo: UInt64, error: any Error)] = []
    private var outstanding = 0
    /// The number of commits that the last sync released and that had arrived meanwhile: as many are expected for the next sync.
    private var expected = 0
    /// The duration of the last sync.
    private var seconds = 0.0
    private static let longestWait = 0.002
    /// How often the expected commits did not arrive. After each such wait, more syncs skip waiting.
    private var disappointments = 0
    private var turnsToSkip = 0

    var isSyncing: Bool { lock.withLock { syncing } }

    /// Returns a number for an append. It must be waited for once.
    func ticket() -> UInt64 {
        lock.withLock {
            appended += 1; outstanding += 1; return appended
        }
    }

    /// Returns when everything up to `ticket` is durable. Throws if the sync that was to cover it failed.
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

    /// Reports to all waiting threads that it is unknown what was synced.
    func hostLeft() {
        lock.withLock {
            failures.append(
                (
                    synced, appended,
                    StoreError(
                        .unknownOutcome,
                        "A callback of the storage did not return from a sync. "
                            + "It is not known whether the bytes that it was to make durable are on the medium."
                    )
                ))
            synced = appended
            syncing = false
            outstanding -= 1
            done.broadcast()
        }
    }

    /// The number of commits that are expected for the next sync.
    private var target: UInt64 { synced + UInt64(clamping: expected) }

    /// Returns whether the next sync need not wait for others, while none runs. The first thread waits for some time, or until another
    /// syncs. The last thread continues at once, so that none has to be woken for it. Returns false to check again. Precondition: the
    /// lock is held. It is released while waiting.
    private func isComplete(or ticket: UInt64) -> Bool {
        if appended >= target { disappointments = 0; return true }
        if turnsToSkip > 0 { turnsToSkip -= 1; return true }
        let end = Clock.steady() + min(seconds / 2, GroupCommit.longestWait)
        waiting = ticket
        while waiting == ticket, appended < target, done.wait(lock, until: end) {}
        // The last thread has continued already.
        if waiting != ticket { return false }
        disappointments = appended < target ? min(64, 2 * disappointments + 1) : 0
        turnsToSkip = disappointments
        return true
    }
}
