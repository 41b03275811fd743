import LLVSCore

// Checks of stores on the storage, and of its state after failures.
extension StorageConformance {
    // MARK: Stores

    private static func store(_ subject: Subject) throws -> Store {
        var options = Store.Options()
        options.storage = .custom(try subject.open(false))
        // Small, so that the store reads values again instead of caching them.
        options.memoryBudget = 1 << 20
        return try Store(path: "", options: options)
    }

    static func storeKeepsVersions(_ subject: Subject) throws {
        let store = try store(subject)
        let large = bytes(seed: 5, count: 3 << 20), id = try ValueID("large")
        var last = try store.makeVersion(basedOn: nil, changes: [.insert(id, data: large)]).id
        var ids = [last]
        for turn in 0..<200 {
            let changes: [Value.Change] = [
                .insert(try ValueID("n\(turn)"), data: bytes(seed: UInt64(turn), count: 100)),
                .update(try ValueID("same"), data: bytes(seed: UInt64(turn), count: 10)),
            ]
            last = try store.makeVersion(basedOn: last, changes: changes).id
            ids.append(last)
        }
        func look(_ store: Store, _ when: String) throws {
            for turn in stride(from: 0, to: 200, by: 23) {
                let found = try store.value(try ValueID("same"), at: ids[turn + 1])?.data
                try expect(found == bytes(seed: UInt64(turn), count: 10), "\(when), a value of version \(turn + 1) is not what was saved")
            }
            try expect(try store.value(id, at: last)?.data == large, "\(when), a value of 3 MiB is not what was saved")
            let report = try store.verifyRecords(OperationControl())
            try expect(report.damages.isEmpty, "\(when), verifying reports damage: \(report.damages.first?.message ?? "")")
            try expect(report.versions == 201, "\(when), \(report.versions) of 201 versions are found")
        }
        try look(store, "before closing")
        try store.close()
        guard subject.isPersistent else { return }
        let again = try self.store(subject)
        try expect(try again.heads().map(\.id) == [last], "after closing and opening, the newest version is not the head")
        try look(again, "after closing and opening")
        try again.close()
    }

    static func storesShare(_ subject: Subject) throws {
        try skip(unless: subject.isShared, "only one handle may be open")
        let stores = [try store(subject), try store(subject)]
        let failures = Parallel.run(threads: 2, times: 50) { thread, turn in
            let base = try stores[thread].mostRecentHead()?.id
            try stores[thread].makeVersion(basedOn: base, changes: [.insert(try ValueID("\(thread)/\(turn)"), data: [UInt8(turn)])])
        }
        try expect(failures.isEmpty, "making versions in two stores at once failed: \(failures.prefix(2))")
        for (i, store) in stores.enumerated() {
            try store.reloadHistory()
            let count = try store.statistics().versions
            // 101 if the histories start from the empty root, which counts too.
            try expect(count == 100 || count == 101, "store \(i + 1) sees \(count) of 100 versions that two stores made at once")
        }
        for store in stores { try store.close() }
    }

    // MARK: Failures

    private static func disturbed(_ subject: Subject) throws -> (Disturbance) throws -> Void {
        guard let disturb = subject.disturb else { throw Checks.Skip(reason: "the subject cannot make its place fail") }
        return disturb
    }
    private static func attempt(_ disturb: (Disturbance) throws -> Void, _ what: Disturbance) throws {
        do { try disturb(what) } catch let error as StoreError where error.code == .unsupported {
            throw Checks.Skip(reason: error.message)
        }
    }

    static func failedAppend(_ subject: Subject) throws {
        let disturb = try disturbed(subject)
        let storage = try subject.open(false)
        let first = bytes(seed: 1, count: 100), second = bytes(seed: 2, count: 100)
        try append(storage, [first])
        try storage.sync()
        try attempt(disturb, .fail)
        var refused: StoreError?
        do { try append(storage, [second]) } catch let error as StoreError { refused = error }
        try attempt(disturb, .mend)
        try? storage.close(discarding: false)
        guard subject.isPersistent else { return }
        let again = try subject.open(false)
        let found = Set(try scan(again))
        try expect(found.contains(first), "a record is missing after a later append failed")
        if let refused, refused.code != .unknownOutcome {
            try expect(!found.contains(second), "a record whose append failed exists")
        }
        try again.close(discarding: false)
    }

    static func failedSync(_ subject: Subject) throws {
        let disturb = try disturbed(subject)
        let storage = try subject.open(false)
        try append(storage, [bytes(seed: 1, count: 100)])
        try storage.sync()
        try attempt(disturb, .fail)
        var failed = false
        do {
            try append(storage, [bytes(seed: 2, count: 100)])
            try storage.sync()
        } catch is StoreError { failed = true }
        try attempt(disturb, .mend)
        try expect(failed, "a record was appended and synced without an error although the place failed")
        try? storage.close(discarding: false)
    }

    static func goingOn(_ subject: Subject) throws {
        let disturb = try disturbed(subject)
        let storage = try subject.open(false)
        let before = bytes(seed: 1, count: 100), after = bytes(seed: 3, count: 100)
        let place = try appendOne(storage, before)
        try storage.sync()
        try attempt(disturb, .fail)
        for turn in 0..<3 {
            _ = try? append(storage, [bytes(seed: UInt64(10 + turn), count: 50)])
            _ = try? storage.sync()
        }
        try attempt(disturb, .mend)
        let later = try appendOne(storage, after)
        try storage.sync()
        try expect(
            try read(storage, later) == after && read(storage, place) == before, "a record is not read back after a failure ended"
        )
        try storage.close(discarding: false)
        guard subject.isPersistent else { return }
        let again = try subject.open(false)
        let found = Set(try scan(again))
        try expect(found.isSuperset(of: [before, after]), "a record is not found again after a failure ended")
        try again.close(discarding: false)
    }

    static func powerCut(_ subject: Subject) throws {
        let disturb = try disturbed(subject)
        try skip(unless: subject.isPersistent, "it does not outlive its closing")
        let storage = try subject.open(false)
        let synced = (0..<5).map { bytes(seed: UInt64($0), count: 5000) },
            others = (0..<5).map { bytes(seed: UInt64(50 + $0), count: 5000) }
        for record in synced { try append(storage, [record]) }
        try storage.sync()
        for record in others { try append(storage, [record]) }
        try attempt(disturb, .powerCut)
        try? storage.close(discarding: false)
        let again = try subject.open(false)
        let found = Set(try scan(again))
        let lost = Set(synced).subtracting(found)
        try expect(lost.isEmpty, "\(lost.count) of 5 synced records are missing after a power cut")
        try expect(found.isSubset(of: synced + others), "after a power cut there are records that were not appended")
        try append(again, [bytes(seed: 99, count: 10)])
        try again.sync()
        try again.close(discarding: false)
    }
}
