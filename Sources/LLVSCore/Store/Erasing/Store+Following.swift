import CLLVSShims

/// Follows orders to erase values, which this handle or another one made.
extension Store {
    /// Follows the orders of this device that are not followed yet. Called when the store was opened, too.
    /// - Returns: what they wait for.
    /// - Parameter isPatient: whether to wait for another handle that compacts or erases.
    func followOrders(_ control: PacedControl, isPatient: Bool = true) throws -> [String] {
        let thread = llvs_shim_thread_number()
        erasureState.withLock { $0.follower = thread }
        defer { erasureState.withLock { $0.follower = nil } }
        let open = try orders.note().lines.filter { !$0.isFollowed }
        guard !open.isEmpty else { return [] }
        var targets: [VersionID: [Int]] = [:]
        for line in open {
            for (version, changes) in try orders.order(line)?.what ?? [:] { targets[version, default: []] += changes }
        }
        guard let hold = try RecordsHold.exclusive(storage, tries: isPatient ? RecordsHold.patientTries : 1) else {
            erasureState.withLock { $0.isWaiting = true }
            return ["Another handle is compacting \(description), reading while values are erased, or erasing values."]
        }
        let waiting = try replaceRecords(hold, overwrites: true, control) { try ErasurePlan(targets, in: self, control) }
        if waiting.isEmpty {
            let followed = Set(open.map(\.order))
            // Other handles may have added orders meanwhile.
            try orders.change { note in
                for i in note.lines.indices where followed.contains(note.lines[i].order) && !note.lines[i].isFollowed {
                    note.lines[i].isFollowed = true
                }
            }
        }
        erasureState.withLock { $0.isWaiting = !waiting.isEmpty }
        _ = try settleErasures { try scanAgain(control) }
        Log.write(.info, "Erased values of \(description)\(waiting.isEmpty ? "" : "; \(waiting.joined(separator: "; "))").")
        return waiting
    }

    /// Replaces records while no other handle does. The thread is the follower.
    /// - Parameters:
    ///   - hold: an exclusive one, which is ended.
    ///   - overwrites: whether old bytes are overwritten.
    ///   - planning: returns the changes that become hollow. The plan includes what other handles stored until now. Values that are stored
    ///     later are no differences from those.
    /// - Returns: where old bytes still are.
    func replaceRecords(
        _ hold: RecordsHold, overwrites: Bool, _ control: PacedControl, planning: () throws -> ErasurePlan
    ) throws -> [String] {
        var added: [VersionID] = [], waiting: [String] = []
        do {
            defer { hold.end() }
            try HostCalls.run(hold) {
                let isQuiet = try areOrdersOurs(orders.note())
                // From now on, what others know of where records are may be old.
                storage.touchOrders()
                func replace() throws {
                    let plan = try planning()
                    removeCachesOfValues(storage)
                    followCompactions()
                    try withCommitLock {
                        noteScanner(llvs_shim_thread_number())
                        defer { noteScanner(nil) }
                        let erasure = PlannedErasure(self, plan, overwrites: overwrites) { [self] in try move($0, plan) }
                        waiting = try storage.erase(erasure, control)
                    }
                }
                // All records are read again only if another handle may have moved some.
                added = try isQuiet ? scanAgain(control) : findMovedRecords(control)
                do { try replace() } catch let error as StoreError where isQuiet && error.code.isDamage {
                    added += try findMovedRecords(control)
                    try replace()
                }
                noteCurrent(storage.ordersStamp())
            }
        }
        if !added.isEmpty { observers.tell(added) }
        waiting += try storage.finishErasing()
        dropCopies()
        removeCachesOfValues(storage)
        return waiting
    }

    /// Follows orders that are not followed yet, if there are any. An error is logged: the next opening tries again.
    func followIfOrdered() {
        guard storage.canErase, !storage.isReadOnly else { return }
        do {
            guard try orders.hasOpen() else { return }
            _ = try erasing.run("Erasing values of \(description)") { try followOrders(.none) }
        } catch { Log.write(.warning, "Erasing values of \(description), as was ordered before, failed: \(error)") }
    }

    /// Reads records at their new places from now on.
    private func move(_ places: [RecordPlace: RecordPlace], _ plan: ErasurePlan) throws {
        var checksums: [VersionID: UInt32] = [:]
        for version in plan.versions.keys {
            guard let place = recordPlaces(of: version).first, let new = places[place] else { continue }
            checksums[version] = try records.header(new).checksum
        }
        move(places, checksums)
        dropCopies()
    }
    // MARK: Orders of other handles

    /// Follows erasures of other handles in this handle, after a record with orders was found. If an order waits, perhaps for a segment of
    /// this handle, it is followed here.
    /// - Parameter isPatient: whether to wait for another handle that is following it.
    func lookForErasures(_ control: PacedControl, isPatient: Bool = false) throws -> [VersionID] {
        let thread = llvs_shim_thread_number()
        guard erasureState.withLock({ $0.follower != thread }), !RecordsHold.isHeld(storage) else { return [] }
        erasureState.withLock { $0.isNews = false }
        let (added, isOpen) = try settleErasures { try scanAgain(control) }
        guard isOpen else { return added }
        erasureState.withLock { $0.isNews = true }
        guard !storage.isReadOnly, storage.canErase else { return added }
        if isPatient {
            _ = try erasing.run("Erasing values of \(description)") { try followOrders(control) }
        } else {
            _ = try erasing.runUnlessBusy("Erasing values of \(description)") { try followOrders(control, isPatient: false) }
        }
        let isStillOpen = try orders.hasOpen()
        erasureState.withLock { $0.isNews = isStillOpen }
        return added
    }

    /// Notes whether all orders were followed before the storage was scanned, and nothing in memory is older than that scan.
    /// - Parameter isOpening: whether nothing is in memory yet.
    /// - Returns: what the scan returned, and whether an order was open.
    func settleErasures<R>(isOpening: Bool = false, _ scan: () throws -> R) throws -> (R, isOpen: Bool) {
        let stamp = storage.canErase ? storage.ordersStamp() : 0
        let isOpen = try stamp != 0 && orders.hasOpen()
        let result = try scan()
        if stamp != 0 || lock.withRead({ erasureParts }) != nil {
            if !isOpening { dropCopies() }
            erasureState.withLock { $0.settled = isOpen ? nil : stamp }
        }
        return (result, isOpen)
    }
    /// The stamp of the orders when all of them were followed, and this handle had nothing older in memory. Nil while an order is not
    /// followed: then values that are saved are no differences, since their bases may be about to lose their bytes.
    var settledErasures: UInt64? {
        guard let parts = lock.withRead({ erasureParts }) else { return 0 }
        return parts.state.withLock { $0.settled }
    }
    /// Returns whether orders were made or followed since they were settled.
    func areErasuresNew(since settled: UInt64) -> Bool { storage.ordersStamp() != settled }

    /// Tells the storage which segments have records that are read.
    func noteUsedSegments() {
        let used = lock.withRead {
            Set(dag.rows.map(\.place.segment) + pending.records.values.map(\.place.segment))
        }
        storage.noteUsed(used)
    }

    /// Releases the memory that holds values, and where they were.
    func dropCopies() {
        lock.withWrite {
            maps.keyHistory = nil
            maps.persisted = nil
            validSchemas.forget()
        }
        maps.changeLists.removeAll()
        maps.giveWay()
        records.blocks.removeAll()
        records.tables.removeAll()
        differencing.forget()
        // Trees of indexes, too.
        GivingWay.forgetAll()
        erasureState.withLock { $0.known = nil }
        orders.forget()
    }

    /// Removes the caches that can hold bytes of values, or where they were.
    private func removeCachesOfValues(_ storage: any Storage) {
        let prefixes = ["history", "index-", "live-part", "map-"]
        for name in (try? storage.cacheNames()) ?? [] where prefixes.contains(where: name.hasPrefix) || name.hasSuffix("-upload") {
            do { try storage.cacheErase(name) } catch { Log.write(.info, "The cache \(name) was not removed: \(error)") }
        }
        lock.withWrite { caches.versions = 0 }
    }
}
