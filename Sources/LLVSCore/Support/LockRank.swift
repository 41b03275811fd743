import CLLVSShims

/// The rank of a lock in the order of locks, which is the table in ARCHITECTURE.md ("Locks"). A thread that holds one may only take locks
/// of later ranks, and never two of one rank.
///
/// In debug builds, each thread lists the locks that it holds. A thread that takes one out of order traps at once, whether or not another
/// thread is in the way. Release builds record nothing.
@usableFromInline
package enum LockRank: UInt8, Sendable {
    /// Not in the order, and not checked: for tests, for the program's own storages and transports, and for the internals of other locks.
    case unordered
    /// Holds the records of a store where they are, against other processes as well (`RecordsHold`).
    case holding
    /// Ensures that only one thread at a time appends to a store or scans it.
    case commit
    /// Ensures that only one sync of a file storage runs at a time.
    case syncing
    /// Guards writing to a storage: its segments, its connection, its envelopes.
    case writing
    /// Guards a storage's state of its blobs.
    case blobs
    /// Guards writing to blocks of values.
    case blocks
    /// A reader-writer lock of the history, and of everything that is guarded with it.
    case history
    /// Guards maps, deltas and recorded changes in memory.
    case maps
    /// Guards which parts of a persisted map were checked.
    case persistedMap
    /// Guards a storage's other state. Held briefly.
    case storage
    /// Guards which descriptors of segments, or connections for reading, are open.
    case descriptors
    /// Guards a transport's knowledge of its folder.
    case transport
    /// Guards the receivers of the log.
    case receivers
    /// Guards small separate state. Nothing is called while such a lock is held.
    case leaf
}

#if DEBUG
/// The locks that the calling thread holds, in debug builds.
@usableFromInline
enum HeldLocks {
    /// Call this before waiting for a lock.
    @usableFromInline
    static func take(_ lock: UnsafeRawPointer, _ rank: LockRank) {
        guard rank != .unordered else { return }
        let broken = llvs_shim_lock_take(lock, rank.rawValue)
        guard broken >= 0 else { return }
        let held = LockRank(rawValue: UInt8(truncatingIfNeeded: broken)).map { "\($0)" } ?? "?"
        fatalError("The order of locks is broken: a lock of the rank \(rank) is taken while one of the rank \(held) is held.")
    }

    @usableFromInline
    static func leave(_ lock: UnsafeRawPointer, _ rank: LockRank) { if rank != .unordered { llvs_shim_lock_leave(lock) } }

    static func check(_ lock: UnsafeRawPointer, _ what: StaticString) {
        if llvs_shim_lock_is_held(lock) == 0 { fatalError("\(what) is used by a thread that does not hold its lock.") }
    }
}
#endif
