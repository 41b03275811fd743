import CLLVSShims

/// Finds records that another handle replaced because it erased values.
///
/// Calls read without a lock. If one finds a record damaged or gone, and there are orders, it holds the records where they are
/// (`RecordsHold`), finds their places, and reads again. Then what is damaged is damaged.
extension Store {
    /// Reads records at their new places from now on.
    /// - Parameter checksums: those of the headers that are not the same as before.
    func move(_ places: [RecordPlace: RecordPlace], _ checksums: [VersionID: UInt32]) {
        let state = erasureState
        lock.withWrite {
            dag.moveRecords(places, checksums)
            // Readers on other threads may have the old places, and a version that is not published yet gets its new place then.
            state.withLock { $0.note(places) }
            pending.move(places)
            maps.keyHistory = nil
            caches.areOutdated = true
        }
    }
    /// Returns where the record at a place is now. The caller holds the lock.
    func currentPlace(_ place: RecordPlace) -> RecordPlace { erasureParts?.state.withLock { $0.newPlace(of: place) } ?? place }

    /// Calls `read`. If it meets a record that another handle replaced, calls it again, while none can.
    /// - Parameter again: called before the second call.
    func withRecordsThatMove<R>(again: () -> Void = {}, _ read: () throws -> R) throws -> R {
        // Within a hold, no record moves.
        guard !RecordsHold.isHeld(storage) else { return try read() }
        do { return try read() } catch let error as StoreError
            where (error.code.isDamage || error.code.isGone) && storage.ordersStamp() != 0 && !isCurrent
        {} catch is RecordMoved {}
        return try RecordsHold.sharing(storage) {
            storage.forgetScanned()
            again()
            return try read()
        }
    }

    /// Runs `body` while no record moves, after finding those that moved.
    func whileRecordsStay<R>(_ body: () throws -> R) throws -> R {
        guard !RecordsHold.isHeld(storage) else { return try body() }
        var added: [VersionID] = []
        defer { if !added.isEmpty { observers.tell(added) } }
        return try RecordsHold.sharing(storage) {
            if !isCurrent { added = try findMovedRecords(.none) }
            return try body()
        }
    }

    /// Reads all records again. Precondition: none moves.
    func findMovedRecords(_ control: PacedControl) throws -> [VersionID] {
        let stamp = storage.ordersStamp()
        storage.forgetScanned()
        let (added, _) = try settleErasures { try scanAgain(control) }
        noteCurrent(stamp)
        return added
    }
    /// Reads records in segments that were compacted at their new places from now on. An erasure does not know the old ones.
    func followCompactions() {
        var moved: [RecordPlace: RecordPlace] = [:]
        for place in lock.withRead({ dag.rows.map(\.place) + pending.records.values.map(\.place) }) {
            let now = storage.currentPlace(place)
            if now != place { moved[place] = now }
        }
        if !moved.isEmpty { move(moved, [:]) }
    }
    /// Notes that all records are known where they are, with this stamp of the orders.
    func noteCurrent(_ stamp: UInt64) { erasureState.withLock { $0.current = stamp } }
    /// Returns whether no other handle has changed the orders since all records were found. It may have moved some all the same, if it has
    /// followed an order of this handle and did not complete that.
    func areOrdersOurs(_ now: ErasureNote) -> Bool { isCurrent || erasureState.withLock { $0.written } == now }
    /// Whether no record has moved since all were found.
    private var isCurrent: Bool { erasureState.withLock { $0.current } == storage.ordersStamp() }

    func readAgain(_ place: RecordPlace, after error: StoreError, _ body: (RecordPlace) throws -> Void) throws {
        guard storage.canErase, lock.withRead({ erasureParts }) != nil || storage.ordersStamp() != 0 else { throw error }
        let isHeld = RecordsHold.isHeld(storage)
        if isHeld, case let now = lock.withRead({ currentPlace(place) }), now != place { return try body(now) }
        // A thread that scans holds the commit lock, so it cannot wait. It reads the record later, or scans again.
        if isScanning {
            guard !error.code.isGone, !isCurrent, !isHeld || scanned.isReporting else { throw error }
            throw RecordMoved(error: error)
        }
        if isHeld { throw error }
        try whileRecordsStay { try body(lock.withRead { currentPlace(place) }) }
    }
    private var isScanning: Bool { lock.withRead { commits.unpublished.scanner } == llvs_shim_thread_number() }

    // MARK: Reading

    /// Returns whether an order that counts on this device names a value.
    func isErased(_ id: ValueID, _ version: VersionID) -> Bool {
        for attempt in 0..<2 {
            let known = attempt == 0 ? erasureState.withLock { $0.known } : nil
            let values = known ?? (try? readErased()) ?? [:]
            if known == nil { erasureState.withLock { $0.known = values } }
            if values[version]?.contains(id) == true { return true }
            if known == nil { return false }
        }
        return false
    }

    private func readErased() throws -> [VersionID: Set<ValueID>] {
        var values: [VersionID: Set<ValueID>] = [:]
        for line in try orders.note().lines {
            for (version, indexes) in try orders.order(line)?.what ?? [:] {
                guard let place = recordPlaces(of: version).first else { continue }
                let wanted = Set(indexes)
                var i = -1
                try records.forEachChange(place) { entry, _ in
                    i += 1
                    if wanted.contains(i) { values[version, default: []].insert(ValueID(unchecked: entry.id)) }
                }
            }
        }
        return values
    }
}

/// A scan read a record that another handle, which erases values, was moving. The next scan finds it at its new place.
struct RecordMoved: Error {
    /// What was read at the old place.
    let error: StoreError
}

/// Knows which values were erased, and where their records are.
protocol KnownErasures: AnyObject, Sendable {
    /// Calls with the place of a record, after an attempt to read it at `place` failed, while no other handle can replace it.
    /// - Throws: `error` if it cannot have moved; `RecordMoved` if this thread scans the storage.
    func readAgain(_ place: RecordPlace, after error: StoreError, _ body: (RecordPlace) throws -> Void) throws
    /// Returns whether an order that counts on this device names a value.
    func isErased(_ id: ValueID, _ version: VersionID) -> Bool
}
extension Store: KnownErasures {}

/// What erasing needs. Safe from all threads.
final class ErasureParts: Sendable {
    /// Allows one thread at a time to erase values.
    let erasing = Gate("store")
    let state = Guarded(ErasureState())
    let orders = Guarded(OrderState())
}
extension Store {
    var parts: ErasureParts {
        if let parts = lock.withRead({ erasureParts }) { return parts }
        let made = ErasureParts()
        return lock.withWrite {
            if let parts = erasureParts { return parts }
            erasureParts = made
            return made
        }
    }
    var erasureState: Guarded<ErasureState> { parts.state }
    /// Whether a record with orders was found, which another handle may be following.
    var hasNewsOfErasures: Bool { lock.withRead({ erasureParts })?.state.withLock { $0.isNews } ?? false }
    var erasing: Gate { parts.erasing }
    /// The number of the thread that holds the commit lock and reads records.
    func noteScanner(_ thread: UInt32?) { lock.withWrite { commits.unpublished.scanner = thread } }
}

/// What a handle knows of erasures.
struct ErasureState {
    /// Whether an order of this device waits for something.
    var isWaiting = false
    /// Whether a record with orders was found, which another handle may be following.
    var isNews = false
    /// Where records were moved, for threads that still have their old places.
    private var places: [RecordPlace: RecordPlace] = [:]
    private static let mostPlaces = 1 << 18
    mutating func note(_ moved: [RecordPlace: RecordPlace]) {
        // Those of the last move are kept, however many they are.
        if places.count + moved.count > ErasureState.mostPlaces { places = [:] }
        // In SQLite a record can come back to a place.
        for new in moved.values { places[new] = nil }
        places.merge(moved) { $1 }
    }
    func newPlace(of place: RecordPlace) -> RecordPlace? {
        var new = places[place]
        // Records move again with later erasures.
        while let now = new, let next = places[now] { new = next }
        return new
    }
    /// The number of the thread that follows orders.
    var follower: UInt32?
    /// `Store.settledErasures`.
    var settled: UInt64? = 0
    /// The orders as this handle has stored them, if no record had moved before.
    var written: ErasureNote?
    /// The stamp of the orders when all records were found where they are. Nil: not known.
    var current: UInt64?
    /// The values that orders name, by the versions that stored them. Nil: not read yet.
    var known: [VersionID: Set<ValueID>]?
}
