import CLLVSShims

/// A reader-writer lock whose readers do not share memory: each thread counts itself in and out in its own stripe, so that reading costs
/// the same on one core and on many. A writer checks all stripes.
///
/// Writers have priority: new readers wait while a writer waits. Not recursive: a nested reader may deadlock with a waiting writer. It is
/// made for sections of microseconds with a million reads for each write. A section must not block.
@usableFromInline
package final class ReadWriteLock: @unchecked Sendable {
    // Sendable: it is a lock.
    /// Two cache lines each, since processors fetch them in pairs.
    @usableFromInline static let stripeSize = 128
    @usableFromInline static let stripeCount = 16
    /// Rounds that a thread spins before it sleeps: sections are short.
    private static let spins = 200

    /// The number of readers by stripe, in the first four bytes of each.
    @usableFromInline let stripes: UnsafeMutableRawPointer
    /// 1 while a writer waits or writes.
    @usableFromInline let writing: UnsafeMutablePointer<UInt32>
    /// Held by the writer.
    @usableFromInline let writers = Lock()
    /// Guards nothing; threads sleep on it.
    private let sleeping = Lock()
    private let readersLeft = Condition()
    private let writerLeft = Condition()

    #if DEBUG
    @usableFromInline let rank: LockRank
    #endif

    /// Creates an unlocked lock, of about 2 KiB.
    package init(_ rank: LockRank = .unordered) {
        #if DEBUG
        self.rank = rank
        #endif
        let size = ReadWriteLock.stripeSize * (ReadWriteLock.stripeCount + 1)
        stripes = .allocate(byteCount: size, alignment: ReadWriteLock.stripeSize)
        stripes.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        writing = (stripes + ReadWriteLock.stripeSize * ReadWriteLock.stripeCount).assumingMemoryBound(to: UInt32.self)
    }
    deinit { stripes.deallocate() }

    /// Runs `body` beside other readers, and never beside a writer.
    @inlinable @inline(__always) package func withRead<R>(_ body: () throws -> R) rethrows -> R {
        #if DEBUG
        HeldLocks.take(stripes, rank)
        defer { HeldLocks.leave(stripes, rank) }
        #endif
        let stripe = enter()
        defer { leave(stripe) }
        return try body()
    }

    /// Runs `body` alone, once all readers have left.
    @inlinable @inline(__always) package func withWrite<R>(_ body: () throws -> R) rethrows -> R {
        #if DEBUG
        HeldLocks.take(stripes, rank)
        defer { HeldLocks.leave(stripes, rank) }
        #endif
        writers.lock()
        holdReaders()
        defer { releaseReaders(); writers.unlock() }
        return try body()
    }

    /// Traps in debug builds if the thread neither reads nor writes.
    @inline(__always) func assertHeld(_ what: StaticString) {
        #if DEBUG
        if rank != .unordered { HeldLocks.check(stripes, what) }
        #endif
    }

    /// Waits for a grace period, as in RCU: returns once every reader has left that was reading when it was called. Objects that were
    /// hidden from readers before are no longer in use then. Must not be called within a section.
    func waitForReaders() { withWrite {} }

    /// Whether a writer waits or writes, so that new readers wait.
    var isWanted: Bool { llvs_shim_load_ordered(writing) != 0 }

    // MARK: Readers

    @inlinable @inline(__always)
    func stripe(_ number: Int) -> UnsafeMutablePointer<UInt32> {
        (stripes + (number & (ReadWriteLock.stripeCount - 1)) * ReadWriteLock.stripeSize).assumingMemoryBound(to: UInt32.self)
    }

    @inlinable @inline(__always)
    func enter() -> UnsafeMutablePointer<UInt32> {
        let stripe = stripe(Int(llvs_shim_thread_number()))
        // Ordered with the writer's accesses: either it sees this reader counted, or this reader sees it writing.
        llvs_shim_add_ordered(stripe, 1)
        if llvs_shim_load_ordered(writing) != 0 { enterSlowly(stripe) }
        return stripe
    }

    @inlinable @inline(__always)
    func leave(_ stripe: UnsafeMutablePointer<UInt32>) {
        llvs_shim_add_ordered(stripe, .max)
        if llvs_shim_load_ordered(writing) != 0 { wakeWriter() }
    }

    @usableFromInline @inline(never)
    func enterSlowly(_ stripe: UnsafeMutablePointer<UInt32>) {
        repeat {
            leave(stripe)
            var left = ReadWriteLock.spins
            while left > 0, llvs_shim_load_ordered(writing) != 0 {
                llvs_shim_pause()
                left -= 1
            }
            if left == 0 {
                sleeping.withLock {
                    while llvs_shim_load_ordered(writing) != 0 { writerLeft.wait(sleeping) }
                }
            }
            llvs_shim_add_ordered(stripe, 1)
        } while llvs_shim_load_ordered(writing) != 0
    }

    @usableFromInline @inline(never)
    func wakeWriter() { sleeping.withLock { readersLeft.broadcast() } }

    // MARK: Writers

    @usableFromInline
    func holdReaders() {
        llvs_shim_store_ordered(writing, 1)
        for number in 0..<ReadWriteLock.stripeCount {
            let stripe = stripe(number)
            var left = ReadWriteLock.spins
            while llvs_shim_load_ordered(stripe) != 0 {
                if left > 0 {
                    llvs_shim_pause()
                    left -= 1
                } else {
                    sleeping.withLock {
                        while llvs_shim_load_ordered(stripe) != 0 { readersLeft.wait(sleeping) }
                    }
                }
            }
        }
    }

    @usableFromInline
    func releaseReaders() {
        llvs_shim_store_ordered(writing, 0)
        // A reader that checked before that and is about to sleep holds this lock until it does.
        sleeping.withLock { writerLeft.broadcast() }
    }
}
