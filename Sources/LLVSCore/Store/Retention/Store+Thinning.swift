import CLLVSShims

extension Store {
    /// Forgets the values that the policy of this device does not keep (`setForgetting`): no file of the store has their bytes any more,
    /// unless `waiting` in the report says so. Ids of versions and values, sizes and digests stay. Reading a forgotten value throws
    /// `.forgotten`. No version is made, and other devices are not affected.
    ///
    /// This also happens when the store is compacted, and once a day when it is closed.
    /// - Parameters:
    ///   - query: whether to report only.
    ///   - control: checked with the stage `.reading`, and `.writing` from the time when records are written.
    /// - Throws: `.invalidArgument` if the policy says nothing of what is kept, or if one is given and it is no dry run; `.unsupported` if
    ///   the storage cannot replace records; `.damaged` if a record is damaged; `.readOnly`, `.busy` if another handle compacts or erases
    ///   for seconds, `.tooLarge` if there are more than 1,024 heads, `.cancelled`, errors of the storage.
    /// - Complexity: O(versions + their changes); then it writes the files that have the bytes, in SQLite the whole database.
    @discardableResult
    public func forget(_ query: ForgetQuery = ForgetQuery(), control: OperationControl = OperationControl()) throws -> ForgetReport {
        if query.isDryRun { try checkOpen() } else { try checkWritable("Forgetting values") }
        return try Thinning(self).forget(query, control)
    }
}

/// Forgets values by the policy of the device.
struct Thinning {
    let store: Store
    init(_ store: Store) { self.store = store }

    func forget(_ query: ForgetQuery, _ control: OperationControl) throws -> ForgetReport {
        guard store.storage.canErase else {
            throw StoreError(
                .unsupported,
                "\(store.description) cannot forget values: its storage does not replace records. "
                    + "Copy the store to one in files or in SQLite.")
        }
        guard query.policy == nil || query.isDryRun else {
            throw StoreError(.invalidArgument, "A policy is given for more than a dry run. Set it as the policy of the store.")
        }
        try store.reloadHistory(control: control)
        let given = try query.policy.map { try ForgettingPolicy(json: $0).keep } ?? RetentionNotes(store).keep
        guard let policy = given else {
            throw StoreError(
                .invalidArgument,
                "The policy of \(store.description) does not say what to keep. Set one, such as {\"keep\":{\"days\":30,\"daily\":90}}.")
        }
        let paced = control.paced(.reading, doing: "Finding what \(store.description) can forget")
        if query.isDryRun { return try report(Retention(store, policy, isEstimate: query.policy != nil).outcome(paced), paced) }
        RetentionNotes(store).noteSeen()
        return try store.erasing.run("Forgetting values of \(store.description)") {
            try run(policy, paced, isForced: true)
        }
    }

    /// Forgets values when the store is compacted, if that frees an eighth of the bytes of its values, and more than the values take that
    /// are then stored whole. An error is logged.
    /// - Parameter isDue: whether it is wanted now. Otherwise it is done once a day.
    func forgetIfItPays(isDue: Bool) {
        guard store.storage.canErase, !store.storage.isReadOnly else { return }
        do {
            let notes = RetentionNotes(store)
            guard let policy = try notes.keep else { return }
            notes.noteSeen()
            if !isDue, case let last = try notes.load().thinned, last <= notes.now, notes.now - last < RetentionNote.pause { return }
            _ = try store.erasing.runUnlessBusy("Forgetting values of \(store.description)") {
                try run(policy, .none, isForced: false)
            }
        } catch { Log.write(.info, "Forgetting values of \(store.description) was postponed: \(error)") }
    }

    private func report(_ outcome: Retention.Outcome, _ control: PacedControl) throws -> ForgetReport {
        var report = ForgetReport()
        report.values = outcome.values
        report.versions = UInt64(outcome.targets.count)
        report.bytes = outcome.bytes
        report.rewritten = UInt64(try ErasurePlan(outcome.targets, in: store, control).wholeCount)
        report.rows = zip(ForgetReport.Rule.allCases, outcome.only).map { ForgetReport.Row(rule: $0, values: $1.values, bytes: $1.bytes) }
        return report
    }

    /// - Parameter isForced: whether to do it in any case, and to wait for other handles.
    private func run(_ policy: KeepPolicy, _ control: PacedControl, isForced: Bool) throws -> ForgetReport {
        var outcome = try Retention(store, policy, isEstimate: false).outcome(control)
        let hasLeftovers = store.storage.hasErasedFiles()
        var isWorthwhile = !outcome.targets.isEmpty || hasLeftovers
        if isWorthwhile, !isForced, !hasLeftovers {
            isWorthwhile =
                try outcome.stored >= outcome.all / 8 && outcome.stored > ErasurePlan(outcome.targets, in: store, control).wholeBytes
        }
        guard isWorthwhile else {
            noteThinned()
            return try report(outcome, control)
        }
        var report = ForgetReport()
        let thread = llvs_shim_thread_number()
        store.erasureState.withLock { $0.follower = thread }
        defer { store.erasureState.withLock { $0.follower = nil } }
        // From now on places are told that values may be missing here.
        if try store.orders.known()?.hasThinned != true { try store.orders.change { $0.hasThinned = true } }
        guard let hold = try RecordsHold.exclusive(store.storage, tries: isForced ? RecordsHold.patientTries : 1) else {
            throw StoreError(
                .busy, "Forgetting values of \(store.description) failed: another handle compacts it, or erases values. Try again.")
        }
        let waiting = try store.replaceRecords(hold, overwrites: false, control) {
            // What other handles stored until now is kept by the same rules.
            outcome = try Retention(store, policy, isEstimate: false).outcome(control)
            var plan = try ErasurePlan(outcome.targets, in: store, control)
            plan.blobDigests.formUnion(outcome.hollowDigests)
            report = try self.report(outcome, control)
            return plan
        }
        report.waiting = waiting
        _ = try store.settleErasures { try store.scanAgain(control) }
        noteThinned()
        Log.write(.info, "Forgot \(report.values) values of \(store.description) (\(report.bytes) bytes).")
        return report
    }

    private func noteThinned() {
        let notes = RetentionNotes(store)
        do {
            var note = try notes.load()
            note.thinned = notes.now
            try store.storage.cachePut(RetentionNote.name, note.bytes)
        } catch { Log.write(.info, "That values of \(store.description) were forgotten was not noted: \(error)") }
    }
}
