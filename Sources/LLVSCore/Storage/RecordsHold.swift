import CLLVSShims

/// Holds the records of a store where they are: while a thread has a shared hold, no handle of any process replaces records
/// (`Storage.erase`). A handle that does so has an exclusive hold. Compaction has one as well, since it must not run beside an erasure.
///
/// Between processes it is the lock of the system (`flock`) on `Storage.openRecordsLock`, which ends with its process. Without such a file
/// it holds within this process alone. On a file system without locks it holds nothing.
///
/// A thread takes its first hold before any other lock (`LockRank.holding`). Holds within a hold take nothing.
final class RecordsHold: HostCallMark, @unchecked Sendable {
    // Sendable: used by the thread that made it.
    private struct Holder: Hashable { var thread: UInt32, store: String }
    /// The holds of all threads.
    private static let holders = Guarded<[Holder: Int]>([:])
    /// The shared holds of stores without a file to lock; -1 for an exclusive one.
    private static let local = Guarded<[String: Int]>([:])
    /// How often a shared hold is tried, with `pause` between: an erasure may overwrite gigabytes.
    private static let sharedTries = 60_000
    /// How often an exclusive hold is tried: other erasures and compactions last for seconds at most.
    static let patientTries = 5_000
    private static let pause: UInt32 = 1_000

    private let holder: Holder
    private let isExclusive: Bool
    private var file: OpenFile?
    private var isLocal = false
    private var isEnded = false

    private static func name(_ storage: any Storage) -> String {
        storage.path.isEmpty ? "\(UInt(bitPattern: ObjectIdentifier(storage)))" : storage.path
    }
    /// Returns whether the calling thread has a hold on the records.
    static func isHeld(_ storage: any Storage) -> Bool {
        holders.withLock { $0.isEmpty ? false : $0[Holder(thread: llvs_shim_thread_number(), store: name(storage))] != nil }
    }

    /// Waits for the hold. After `tries`, an exclusive one fails, and a shared one is made without the lock.
    /// - Returns: nil if others have a hold, or this thread has one already.
    /// - Throws: errors of the control of this thread's call (`Waiting`).
    static func exclusive(_ storage: any Storage, tries: Int) throws -> RecordsHold? {
        guard !isHeld(storage) else { return nil }
        return try make(storage, isExclusive: true, tries)
    }
    /// Runs `body` with a shared hold.
    static func sharing<R>(_ storage: any Storage, _ body: () throws -> R) throws -> R {
        guard !isHeld(storage) else { return try body() }
        let hold = try make(storage, isExclusive: false, sharedTries) ?? RecordsHold(storage, isExclusive: false)
        defer { hold.end() }
        return try HostCalls.run(hold, body)
    }

    private static func make(_ storage: any Storage, isExclusive: Bool, _ tries: Int) throws -> RecordsHold? {
        let hold = RecordsHold(storage, isExclusive: isExclusive)
        do {
            // If the file cannot be opened, as on a medium without it, there is nothing to wait for.
            let file = try? storage.openRecordsLock()
            for left in (0..<max(1, tries)).reversed() {
                if try hold.take(file) { return hold }
                if left > 0 {
                    try Waiting.look()
                    usleep(pause)
                }
            }
        } catch {
            hold.end()
            throw error
        }
        hold.end()
        return nil
    }

    private init(_ storage: any Storage, isExclusive: Bool) {
        holder = Holder(thread: llvs_shim_thread_number(), store: RecordsHold.name(storage))
        self.isExclusive = isExclusive
        #if DEBUG
        HeldLocks.take(Unmanaged.passUnretained(self).toOpaque(), .holding)
        #endif
        RecordsHold.holders.withLock { $0[holder, default: 0] += 1 }
    }

    private func take(_ file: OpenFile?) throws -> Bool {
        guard let file else {
            isLocal = RecordsHold.local.withLock { all in
                let count = all[holder.store] ?? 0
                guard isExclusive ? count == 0 : count >= 0 else { return false }
                all[holder.store] = isExclusive ? -1 : count + 1
                return true
            }
            return isLocal
        }
        do throws(Errno) {
            if isExclusive { try System.lockExclusively(file.descriptor) } else { try System.lockShared(file.descriptor) }
            self.file = file
            return true
        } catch { return error.code != EWOULDBLOCK }
    }

    /// Ends the hold. Ending it again does nothing.
    func end() {
        guard !isEnded else { return }
        isEnded = true
        RecordsHold.holders.withLock { all in
            let left = (all[holder] ?? 1) - 1
            all[holder] = left > 0 ? left : nil
        }
        if isLocal {
            RecordsHold.local.withLock { all in
                let left = isExclusive ? 0 : (all[holder.store] ?? 1) - 1
                all[holder.store] = left > 0 ? left : nil
            }
        }
        // A child that the host forks meanwhile shares the open file, so closing it alone would not release the lock.
        if let file, file.isOurs { try? System.unlock(file.descriptor) }
        file = nil
        #if DEBUG
        HeldLocks.leave(Unmanaged.passUnretained(self).toOpaque(), .holding)
        #endif
    }
    func hostLeft() { end() }
}
