import CLLVSShims

/// Signatures of stewards: docs/forgetting.md, "Stewards".
extension Store {
    /// Returns the public key of a steward: 32 bytes, as a policy has it in hexadecimal.
    /// - Parameter seed: the private key: the seed of Ed25519, 32 bytes.
    /// - Throws: `.invalidArgument`, `.unsupported` if there is no libcrypto.
    public static func stewardKey(of seed: [UInt8]) throws -> [UInt8] { try Ed25519(for: "orders to erase").publicKey(of: seed) }

    /// Signs an order to erase, or one that replaces the stewards, as a further steward. The order is saved again with the signatures of
    /// all that signed the same before. If enough signed it, it counts from now on, here and where it comes.
    /// - Parameters:
    ///   - id: the id of an order of `erasures`.
    ///   - signer: the private key of the steward: the seed of Ed25519, 32 bytes.
    /// - Returns: the id of the order with the signature, which is another one.
    /// - Throws: `.notFound` if there is no such order, `.invalidArgument` if the policy of this device has no such steward, `.unsupported`
    ///   if there is no libcrypto, `.tooLarge`, `.readOnly`, `.busy`, errors of making versions and of the storage.
    @discardableResult
    public func signErasure(_ id: ValueID, signer: [UInt8]) throws -> ValueID {
        try checkWritable("Signing an order to erase values")
        try orders.check(signer: signer)
        try reloadHistory()
        let all = try allOrders()
        guard let json = all[id] else {
            throw StoreError(
                .notFound, "No order to erase values in \(description) has the id \(id). Look at the orders of the store.", valueID: id)
        }
        let body = EraseOrder.signatures(json)?.rest ?? json
        let same = all.values.filter { (EraseOrder.signatures($0)?.rest ?? $0) == body }
        return try save(signed: orders.note().policy.stewards.signing(json, also: same, with: signer), known: all)
    }

    /// Orders that other stewards sign from now on. If enough stewards of now sign that (`signErasure`), the policies of all devices that
    /// have the stewards of now change, as the order comes to them. Make one such order at a time.
    /// - Parameters:
    ///   - policy: JSON: `{"erase":{"mode":"stewards","keys":[…],"need":2}}`. Its delay is not used: each device keeps its own.
    ///   - signer: the private key of a steward of now: the seed of Ed25519, 32 bytes.
    /// - Returns: the id of the order.
    /// - Throws: as `signErasure` and `setForgetting`.
    @discardableResult
    public func changeStewards(_ policy: [UInt8], signer: [UInt8]) throws -> ValueID {
        try checkWritable("Replacing stewards")
        try orders.check(signer: signer)
        let now = try orders.note().policy.stewards
        var new = try ForgettingPolicy(json: policy).stewards
        guard !new.keys.isEmpty else {
            throw StoreError(.invalidArgument, "The new policy has no stewards. Give one of the mode \"stewards\".")
        }
        new.step = now.step &+ 1
        var order = EraseOrder(made: EraseOrder.text(ofTime: Clock.now()), what: [:], why: [])
        order.stewards = new
        try reloadHistory()
        return try save(signed: now.signing(order.json, also: [], with: signer), known: [:])
    }

    /// Saves an order, and follows it if enough stewards signed it.
    private func save(signed json: [UInt8], known: [ValueID: [UInt8]]) throws -> ValueID {
        let id = EraseOrder.id(of: json)
        if known[id] != nil { return id }
        let policy = try orders.note().policy, order = EraseOrder(json)
        if let order, order.stewards == nil, try policy.allows(json) {
            try erasing.run("Erasing values of \(description)") {
                let thread = llvs_shim_thread_number()
                erasureState.withLock { $0.follower = thread }
                defer { erasureState.withLock { $0.follower = nil } }
                var report = ErasureReport()
                let came = ErasureNote.Arrival(time: orders.now, values: 0, bytes: 0)
                try save([json], order.what, replacement: nil, came: came, &report)
                _ = try followOrders(.none)
            }
            return id
        }
        guard let head = try mostRecentHead()?.id else { return id }
        try makeVersion(basedOn: head, changes: [.insert(id, data: json)])
        orders.read()
        return id
    }

    /// Returns the bytes of the orders that count here, and of those at heads, by their ids.
    private func allOrders() throws -> [ValueID: [UInt8]] {
        var found: [ValueID: [UInt8]] = [:]
        let note = try orders.note()
        for line in note.lines { found[EraseOrder.id(named: line.order)] = try orders.json(of: line) }
        for (id, version) in try ordersAtHeads() where found[id] == nil {
            let line = ErasureNote.Line(order: EraseOrder.name(in: id), version: version, isFollowed: false, json: [])
            found[id] = try? orders.json(of: line)
        }
        return found
    }
}

extension Orders {
    /// Checks that a private key is that of a steward of this device's policy.
    /// - Throws: `.invalidArgument`, `.unsupported`.
    func check(signer: [UInt8]) throws {
        let policy = try note().policy
        guard policy.mode == .stewards else {
            throw StoreError(
                .invalidArgument, "The policy of \(store.description) has no stewards, so nobody signs. Set one of the mode \"stewards\".")
        }
        guard try policy.stewards.keys.contains(Store.stewardKey(of: signer)) else {
            throw StoreError(
                .invalidArgument,
                "The policy of \(store.description) has no steward with this key. Give that of one, or change the stewards.")
        }
    }
}
