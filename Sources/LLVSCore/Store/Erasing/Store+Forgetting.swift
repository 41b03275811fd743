/// Whose orders count on this device, and what it does with them: docs/forgetting.md, "Who may erase".
extension Store {
    /// Returns the policy of this device as JSON, without its secrets.
    public func forgetting() throws -> [UInt8] {
        try checkOpen()
        return try orders.note().policy.json
    }

    /// Sets whose orders to erase count on this device, and what it keeps, from now on and at later openings. Orders that are in the store
    /// already and count by the new policy are followed. Orders that counted before still count. What is not kept is forgotten by `forget`,
    /// and when the store is compacted.
    /// - Parameters:
    ///   - policy: JSON with `erase` or `keep`, or both. What is left out stays as it is.
    ///     `{"erase":{"mode":"members","delay":3600}}`: The mode is "nobody" (the default: the orders of this device count),
    ///     "members" (orders that are signed with a secret), "stewards" (orders that `need` of the `keys` signed: public keys of Ed25519 in
    ///     hexadecimal) or "anyone" (all orders). The delay is the seconds from the first sight of an order of another device until it is
    ///     followed.
    ///     `{"keep":{"days":30,"daily":90}}`: see docs/forgetting.md, "Keeping by a policy". `{"keep":null}` keeps everything.
    ///   - secrets: for "members": what all devices share, 16 to 4,096 bytes each that nobody can guess, at most 16. Orders of this device
    ///     are signed with the first, those of others checked with all. A key made of each is stored beside the records.
    /// - Throws: `.invalidArgument`, `.tooLarge` and `.unsupported` for a policy that is not valid or not known, `.unsupported` if the
    ///   storage cannot erase, `.readOnly`, `.busy` if another handle changes the orders for seconds, errors of the storage.
    /// - Complexity: O(versions + their changes).
    public func setForgetting(_ policy: [UInt8], secrets: [[UInt8]] = []) throws {
        try checkWritable("Setting a policy of forgetting")
        guard storage.canErase else {
            throw StoreError(
                .unsupported,
                "\(description) cannot erase values: its storage does not replace records. "
                    + "Copy the store to one in files or in SQLite, and set the policy there.")
        }
        let given = try ForgettingPolicy(json: policy)
        if given.mode == .stewards { _ = try Ed25519(for: "orders to erase in \(description)") }
        try reloadHistory()
        try orders.change { note in note.policy = try note.policy.replaced(by: given, secrets: secrets) }
        _ = try orders.known()
        RetentionNotes(self).noteSeen()
        _ = try orders.readAll()
        try followOrdersNow()
    }

    /// Follows or keeps what an order of another device names: `store.decideErasure(order.id, to: .keep)`. An order that was followed
    /// cannot be kept, since its bytes are gone.
    /// - Throws: `.notFound` if no such order counts here, `.invalidArgument` if it is to be kept and was followed already, `.readOnly`,
    ///   `.busy`, errors of the storage.
    public func decideErasure(_ id: ValueID, to decision: ErasureDecision) throws {
        try checkWritable("Deciding about an order to erase values")
        try orders.change { note in
            guard let i = note.lines.firstIndex(where: { EraseOrder.id(named: $0.order) == id }) else {
                throw StoreError(
                    .notFound, "No order to erase values that counts in \(description) has the id \(id). Look at the orders of the store.",
                    valueID: id)
            }
            if note.lines[i].state == .followed, decision == .follow { return }
            guard note.lines[i].state != .followed else {
                throw StoreError(
                    .invalidArgument, "The order \(id) was followed already, so its bytes are gone: only a backup has them.", valueID: id)
            }
            note.lines[i].state = decision == .keep ? .kept : .open
            // What was decided does not count for the orders of the day.
            if let came = note.lines[i].came { note.lines[i].came = ErasureNote.Arrival(time: came.time, values: 0, bytes: 0) }
        }
        _ = try orders.known()
        if decision == .follow { try followOrdersNow() }
    }

    /// Follows all orders that are to be followed.
    private func followOrdersNow() throws {
        orders.read()
        guard try orders.known()?.hasOpen ?? false else { return }
        _ = try lookForErasures(.none, isPatient: true)
    }

    /// Returns the orders that count on this device, in the order in which they came, and then those at heads that do not count here.
    /// - Throws: errors of reading them.
    public func erasures() throws -> [Erasure] {
        try checkOpen()
        let orders = orders, note = try orders.note(), reach = try orders.reach()
        var found = try note.lines.compactMap { line -> Erasure? in
            guard let json = try orders.json(of: line), let order = EraseOrder(json) else { return nil }
            var one = Erasure(order, EraseOrder.id(named: line.order), line.version, Erasure.State(line.state), line.came, note.policy)
            one.count(json, note.policy)
            one.places = reach.places(of: line, made: order.made)
            return one
        }
        // An order with fewer signatures of stewards than one that counts says the same.
        func body(_ json: [UInt8]) -> [UInt8] { (EraseOrder.signatures(json)?.rest ?? json).withUnsafeBytes { SHA256.digest($0) } }
        let isSigned = note.policy.mode == .stewards, names = Set(note.lines.map { EraseOrder.id(named: $0.order) })
        let bodies = isSigned ? Set(note.lines.map { body($0.json) }) : []
        for (id, stored) in try ordersAtHeads() where !names.contains(id) && found.count < ErasureNote.most {
            let line = ErasureNote.Line(order: EraseOrder.name(in: id), version: stored, isFollowed: false, json: [])
            let json = try? orders.json(of: line), order = json.flatMap(EraseOrder.init)
            if isSigned, let json, bodies.contains(body(json)) { continue }
            var one = Erasure(order ?? EraseOrder(made: [], what: [:], why: []), id, stored, .notValid, .none, note.policy)
            if let json { one.count(json, note.policy) }
            if one.signatures > 0 { one.state = .unsigned }
            found.append(one)
        }
        return found
    }

    /// Returns the orders that prevail at heads, with the versions that stored them, those at the newest head first.
    func ordersAtHeads() throws -> [(id: ValueID, version: VersionID)] {
        var found: [(ValueID, VersionID)] = [], known: Set<ValueID> = []
        for head in lock.withRead({ dag.headOrdinals.sorted { dag.isNewer($0, $1) } }) {
            for (id, ordinal) in try ordersPrevailing(at: head) where known.insert(id).inserted { found.append((id, versionID(ordinal))) }
        }
        return found
    }

    private func ordersPrevailing(at head: UInt32) throws -> [(ValueID, UInt32)] {
        guard let root = try maps.map(head) else { return [] }
        var found: [(ValueID, UInt32)] = []
        withBounds(.prefix(EraseOrder.prefix)) { low, high in
            _ = root.forEach(from: low, to: high) { key, entry in
                if EraseOrder.name(ofID: key) != nil { found.append((ValueID(unchecked: key), entry.version)) }
                return found.count < ErasureNote.most
            }
        }
        return found
    }
}

extension Erasure {
    /// Counts the signatures of stewards.
    fileprivate mutating func count(_ json: [UInt8], _ policy: ForgettingPolicy) {
        guard policy.mode == .stewards else { return }
        (signatures, needed) = (UInt32((try? policy.stewards.signers(of: json).count) ?? 0), UInt32(policy.stewards.need))
    }
    fileprivate init(
        _ order: EraseOrder, _ id: ValueID, _ version: VersionID, _ state: State, _ came: ErasureNote.Arrival?, _ policy: ForgettingPolicy
    ) {
        self.init(
            id: id, version: version, made: String(decoding: order.made, as: UTF8.self), why: String(decoding: order.why, as: UTF8.self),
            values: order.what.values.reduce(0) { $0 + UInt64($1.count) }, state: state, isOfOther: came != nil || state == .notValid,
            due: state == .announced ? Double((came?.time ?? 0) &+ policy.delay) - Clock.secondsFrom1970To2001 : 0)
    }
}
extension Erasure.State {
    fileprivate init(_ state: ErasureNote.State) {
        switch state {
        case .open: self = .waiting
        case .followed: self = .followed
        case .announced: self = .announced
        case .held: self = .held
        case .kept: self = .kept
        }
    }
}
