import CLLVSShims

/// Erases the bytes of values permanently, on this device: docs/forgetting.md.
extension Store {
    /// Erases values: afterwards no file of the store, and no cache in it, has their bytes. Their ids, sizes and digests stay, so that the
    /// history can be verified. Reading them throws `.erased`. Where an erased value prevails at a head, a new version removes or replaces
    /// it. Values that are saved afterwards are not affected.
    ///
    /// The order to erase them is saved as a value first. If the process or the power fails after that, the next opening follows it. An
    /// order counts on this device alone. What the report names as waiting is followed when the store is opened or closed next.
    ///
    /// Exchanges do not erase: places, other devices and backups that have the bytes keep them.
    /// - Parameters:
    ///   - query: which values.
    ///   - control: checked with the stage `.writing`, until the order is saved.
    /// - Throws: `.unsupported` if the storage cannot replace records, `.invalidArgument` for ids under `__llvs_forget/` and an empty
    ///   query, `.unknownVersion`, `.readOnly`, `.damaged` if a value to erase has no recorded digest and cannot be read, `.tooLarge` if
    ///   there are 65,536 orders, or 64 MiB of them, `.busy` if another handle changes the orders for seconds, `.cancelled`, errors of
    ///   making versions and of the storage.
    /// - Complexity: O(versions + their changes). It reads the values as well if it searches by bytes. In SQLite it writes the whole
    ///   database.
    @discardableResult
    public func erase(_ query: ErasureQuery, control: OperationControl = OperationControl()) throws -> ErasureReport {
        if query.isDryRun { try checkOpen() } else { try checkWritable("Erasing values") }
        guard storage.canErase else {
            throw StoreError(
                .unsupported,
                "\(description) cannot erase values: its storage does not replace records. "
                    + "Copy the store to one in files or in SQLite, and erase there.")
        }
        guard !query.ids.isEmpty || !query.containing.isEmpty else {
            throw StoreError(.invalidArgument, "An erasure names no value. Give ids, or bytes that the values contain.")
        }
        guard query.why.utf8.count <= ErasureQuery.mostWhy else {
            throw StoreError(.tooLarge, "The text of an order has more than \(ErasureQuery.mostWhy) bytes. Give a shorter one.")
        }
        if !query.signer.isEmpty { try orders.check(signer: query.signer) }
        for id in query.ids {
            try id.bytes.withUnsafeBytes { try ValueID.check($0) }
            guard !id.bytes.starts(with: EraseOrder.reserved) else {
                throw StoreError(.invalidArgument, "Values under __llvs_forget/ cannot be erased. Give other ids.", valueID: id)
            }
        }
        try reloadHistory(control: control)
        return try erasing.run("Erasing values of \(description)") {
            let thread = llvs_shim_thread_number()
            erasureState.withLock { $0.follower = thread }
            defer { erasureState.withLock { $0.follower = nil } }
            return try eraseNow(query, control)
        }
    }

    private func eraseNow(_ query: ErasureQuery, _ control: OperationControl) throws -> ErasureReport {
        let paced = control.paced(.writing, doing: "Erasing values of \(description)")
        var report = ErasureReport()
        // If something cannot be erased, the call fails before anything is ordered.
        let found = try findChanges(query, &report, paced)
        report.rewritten = UInt64(try ErasurePlan(found, in: self, paced).wholeCount)
        if query.isDryRun {
            if !found.isEmpty { report.places = try orders.reach().places(of: nil, made: []) }
            return report
        }
        guard !found.isEmpty else {
            report.waiting = try followOrders(paced)
            return report
        }
        let policy = try orders.note().policy
        let jsons = try EraseOrder.divide(made: EraseOrder.text(ofTime: Clock.now()), what: found, why: Array(query.why.utf8)).map {
            query.signer.isEmpty ? policy.signed($0.json) : try policy.stewards.signing($0.json, also: [], with: query.signer)
        }
        try save(jsons, found, replacement: query.replacement, &report)
        report.waiting = try followOrders(.none)
        let names = Set(report.orders), made = try orders.note().lines.first { names.contains(EraseOrder.id(named: $0.order)) }
        report.places = try orders.reach().places(of: made, made: EraseOrder.text(ofTime: Clock.now()))
        return report
    }

    // MARK: Ordering

    /// Saves the order, and removes or replaces the values that prevail at heads. The note comes first: an order that it names and that
    /// was not saved has no effect.
    /// - Parameter came: when the orders came from another device; nil: they were made here.
    func save(
        _ jsons: [[UInt8]], _ found: [VersionID: [Int]], replacement: [UInt8]?, came: ErasureNote.Arrival? = nil,
        _ report: inout ErasureReport
    ) throws {
        let note = try orders.note()
        guard note.hasRoom(for: jsons) else {
            throw StoreError(
                .tooLarge,
                "\(description) has \(note.lines.count) orders to erase values, and holds at most \(ErasureNote.most), of 64 MiB in all. "
                    + "Erase more values at once.")
        }
        let heads = lock.withRead { dag.headOrdinals.sorted { dag.isNewer($0, $1) } }
        var isFirst = true
        let erased = try erasedValues(found)
        for head in heads {
            var changes: [Value.Change] = []
            for (id, versions) in erased {
                guard let entry = try id.bytes.withUnsafeBytes({ try maps.entry($0, at: head) }), versions.contains(entry.version)
                else { continue }
                changes.append(replacement.map { .update(id, data: $0) } ?? .remove(id))
            }
            if isFirst { changes += jsons.map { .insert(EraseOrder.id(of: $0), data: $0) } }
            guard !changes.isEmpty else { continue }
            let id = lock.withRead { dag.id(head) }
            var metadata = Metadata()
            metadata.branch = try records.header(place(of: head)).metadata.branch
            let made = try makeVersion(basedOn: id, changes: changes, metadata: metadata)
            report.made.append(made.id)
            guard isFirst else { continue }
            isFirst = false
            report.orders = jsons.map(EraseOrder.id(of:))
            // If the power fails between the two, the version is there, and its orders do not count.
            try storage.sync()
            // Without it, the next opening reads the records, and finds those with orders.
            try storage.cacheErase(Store.historyName)
            try orders.change { note in
                for json in jsons {
                    let name = EraseOrder.name(of: json)
                    note.lines.removeAll { $0.order == name }
                    note.lines.append(ErasureNote.Line(order: name, version: made.id, state: .open, json: json, came: came))
                }
            }
        }
    }

    /// Returns the ordinals of the versions that stored the values, by their ids.
    private func erasedValues(_ found: [VersionID: [Int]]) throws -> [ValueID: Set<UInt32>] {
        var values: [ValueID: Set<UInt32>] = [:]
        for (version, indexes) in found {
            guard let ordinal = lock.withRead({ dag.ordinal(of: version) }) else { continue }
            let wanted = Set(indexes)
            var i = -1
            try records.forEachChange(place(of: ordinal)) { entry, _ in
                i += 1
                if wanted.contains(i) { values[ValueID(unchecked: entry.id), default: []].insert(ordinal) }
            }
        }
        return values
    }
}
