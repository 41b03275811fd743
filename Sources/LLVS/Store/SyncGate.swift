/// Lets commits that wait at once share one sync (group commit).
final class SyncGate: @unchecked Sendable {
    private let lock = Lock()
    private let done = Condition()
    private var appended: UInt64 = 0
    private var synced: UInt64 = 0
    private var syncing = false
    /// The last failure, and up to which append it reaches.
    private var failure: (upTo: UInt64, error: any Error)?

    /// Takes a number for something that was just appended.
    func ticket() -> UInt64 { lock.withLock { appended += 1; return appended } }

    /// Returns when all up to `ticket` is durable; throws when the sync that was to cover it failed.
    func wait(for ticket: UInt64, sync: () throws -> Void) throws {
        lock.lock()
        while true {
            if let failure, ticket <= failure.upTo, ticket > synced { lock.unlock(); throw failure.error }
            if synced >= ticket { lock.unlock(); return }
            if syncing { done.wait(lock); continue }
            syncing = true
            let upTo = appended
            lock.unlock()
            let result = Result { try sync() }
            lock.lock()
            syncing = false
            switch result {
            case .success: synced = max(synced, upTo)
            case .failure(let error): failure = (upTo, error)
            }
            done.broadcast()
        }
    }
}
