import CLLVSShims

/// Where a lock stands in the order of locks, which is the table in ARCHITECTURE.md ("Locks"): a thread that holds one takes only those
/// that come after it here, and never two of one rank.
///
/// In debug builds each thread keeps a list of the locks that it holds. Whoever takes one out of order is stopped there and then, whether
/// or not another thread is in the way. Release builds keep nothing.
public enum LockRank: UInt8, Sendable {
    /// Not in the order, and not checked: for tests, for storages and transports of the program's own, and for the insides of other locks.
    case unordered
    /// That one thread at a time appends to a store or scans it.
    case commit
    /// That one sync of a file storage runs at a time.
    case syncing
    /// Writing to a storage: its segments, its connection, its envelopes.
    case writing
    /// What a storage knows of its blobs.
    case blobs
    /// The writing of blocks of values.
    case blocks
    /// The history, and all that is guarded with it: for readers and writers.
    case history
    /// Maps, deltas and recorded changes in memory.
    case maps
    /// Which parts of a persisted map were checked.
    case persistedMap
    /// What a storage knows, for moments.
    case storage
    /// Which descriptors of segments, or connections of readers, are open.
    case descriptors
    /// What a transport knows of its folder.
    case transport
    /// Who hears the log.
    case receivers
    /// Small things of their own: nothing is called with one of them held.
    case leaf
}

#if DEBUG
/// The locks that the calling thread holds, in debug builds.
enum HeldLocks {
    /// To be called before a lock is waited for.
    static func take(_ lock: UnsafeRawPointer, _ rank: LockRank) {
        guard rank != .unordered else { return }
        let broken = llvs_shim_lock_take(lock, rank.rawValue)
        guard broken >= 0 else { return }
        let held = LockRank(rawValue: UInt8(truncatingIfNeeded: broken)).map { "\($0)" } ?? "?"
        fatalError("The order of locks is broken: a lock of the rank \(rank) is taken while one of the rank \(held) is held.")
    }

    static func leave(_ lock: UnsafeRawPointer, _ rank: LockRank) { if rank != .unordered { llvs_shim_lock_leave(lock) } }

    static func check(_ lock: UnsafeRawPointer, _ what: StaticString) {
        if llvs_shim_lock_is_held(lock) == 0 { fatalError("\(what) is used by a thread that does not hold its lock.") }
    }
}
#endif
