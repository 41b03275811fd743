/// Lets commits that wait at once share one sync (group commit).
final class SyncGate: @unchecked Sendable {
    private let lock = Lock()
    private let done = Condition()
    private var appended: UInt64 = 0
    private var synced: UInt64 = 0
    private var syncing = false
    /// What syncs failed for, as long as anybody has a ticket: behind the first number, up to the second. A later sync that
    /// succeeds says nothing of bytes that an earlier one failed to write.
    private var failures: [(after: UInt64, upTo: UInt64, error: any Error)] = []
    private var outstanding = 0

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
        while true {
            if let failure = failures.first(where: { ticket > $0.after && ticket <= $0.upTo }) { throw failure.error }
            if synced >= ticket { return }
            if syncing { done.wait(lock); continue }
            syncing = true
            let upTo = appended
            lock.unlock()
            let result = Result { try sync() }
            lock.lock()
            syncing = false
            switch result {
            case .success: synced = max(synced, upTo)
            case .failure(let error): failures.append((synced, upTo, error)); synced = max(synced, upTo)
            }
            done.broadcast()
        }
    }
}
