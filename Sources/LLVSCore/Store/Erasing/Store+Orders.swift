/// Which orders to erase count on this device: its own, and those of others that its policy allows (docs/format.md, "Erase orders").
extension Store {
    /// Returns what the note says; nil if there is none.
    func knownOrders() throws -> KnownOrders? {
        // Handles learn of new orders when they look for new versions, as each exchange does first.
        let parts = lock.withRead { erasureParts }
        guard storage.canErase, parts != nil || !hasNoOrders else { return nil }
        let stamp = storage.ordersStamp()
        if stamp == 0, parts == nil { lock.withWrite { hasNoOrders = true } }
        guard stamp != 0 else { return nil }
        if let known = orderState.withLock({ $0.known }), known.stamp == stamp { return known }
        let known = KnownOrders(stamp, ErasureNote(try storage.orders()))
        orderState.withLock { state in
            if state.known?.names != known.names { state.complete = [] }
            state.known = known
            state.changes = nil
        }
        return known
    }

    /// Returns the changes that the orders name. An order that cannot be read is skipped.
    func namedChanges() throws -> NamedChanges {
        guard let known = try knownOrders() else { return NamedChanges() }
        if let changes = orderState.withLock({ $0.changes }) { return changes }
        let note = ErasureNote(try storage.orders())
        var changes = NamedChanges()
        var names: [String] = []
        for line in note.lines {
            do {
                guard let order = try order(line) else { continue }
                let isForOthers = !line.json.isEmpty && note.policy.allows(line.json)
                let isErased = line.state == .open || line.state == .followed
                if isErased, isForOthers { names.append(line.order) }
                for (version, indexes) in order.what {
                    if isErased { changes.erased[version, default: []] += indexes }
                    if isErased, isForOthers { changes.erasedAtPlaces[version, default: []] += indexes }
                    if line.state != .followed { changes.withheld[version, default: []] += indexes }
                    if isForOthers || note.policy.mode == .nobody { changes.ordered[version, default: []] += indexes }
                }
            } catch let error as StoreError where error.code.isOfOne {
                Log.write(.warning, "An order to erase values of \(description) cannot be read: \(error)")
            }
        }
        if !names.isEmpty { changes.mark = Array(names.sorted().joined().utf8).withUnsafeBytes { SHA256.digest($0) } }
        orderState.withLock { state in if state.known?.stamp == known.stamp { state.changes = changes } }
        return changes
    }

    /// Changes the note. No other handle changes it meanwhile.
    func changeNote(_ change: (inout ErasureNote) throws -> Void) throws {
        defer { forgetKnownOrders() }
        try storage.changeOrders { copies in
            var note = ErasureNote(copies)
            let isQuiet = storage.ordersStamp() == 0 || areOrdersOurs(note)
            try change(&note)
            erasureState.withLock { $0.written = isQuiet ? note : nil }
            return note.bytes
        }
        lock.withWrite { hasNoOrders = false }
    }
    func forgetKnownOrders() { orderState.withLock { ($0.known, $0.changes, $0.complete) = (nil, nil, []) } }

    /// The seconds since 1970, by this device's clock.
    private var secondsNow: UInt64 { UInt64(min(max(environment.clock() + Clock.secondsFrom1970To2001, 0), 1e15)) }

    // MARK: Orders of others

    /// Notes that a version has values of forgetting: `takeOrders` reads them.
    func noteForgetValues(_ id: VersionID) {
        orderState.withLock { state in
            if state.unread.count < OrderState.mostUnread { state.unread.insert(id) } else { state.isUnreadIncomplete = true }
        }
    }

    /// Lets orders of others count that came since, and those whose delay is over, if the policy of this device says so. Then
    /// `hasNewsOfErasures` is true. An error is logged: the next look for new versions, or opening, tries again.
    /// - Returns: whether an order is to be followed that was not before.
    @discardableResult
    func takeOrders() -> Bool {
        guard lock.withRead({ erasureParts }) != nil, storage.canErase, !storage.isReadOnly else { return false }
        let (unread, all) = orderState.withLock { state in
            defer { (state.unread, state.isUnreadIncomplete) = ([], false) }
            return (state.unread, state.isUnreadIncomplete)
        }
        do {
            var isNew = false
            if all { isNew = try takeAllOrders() } else if !unread.isEmpty { isNew = try takeOrders(in: unread) }
            if let due = orderState.withLock({ $0.known?.due }), due <= secondsNow { isNew = try endDelays() || isNew }
            return isNew
        } catch {
            orderState.withLock { state in
                state.unread.formUnion(unread)
                state.isUnreadIncomplete = state.isUnreadIncomplete || all
            }
            Log.write(.warning, "Orders to erase values of \(description) were not read: \(error)")
            return false
        }
    }
    /// Whether versions with values of forgetting were not read yet.
    var hasUnreadOrders: Bool {
        lock.withRead({ erasureParts })?.orders.withLock { !$0.unread.isEmpty || $0.isUnreadIncomplete } ?? false
    }

    /// Follows orders that came with received versions. An error is logged: the next look for new versions tries again.
    /// - Parameter areNew: whether some were found before the versions were stored.
    func followNewOrders(_ areNew: Bool) {
        guard takeOrders() || areNew else { return }
        do { _ = try lookForErasures(.none, isPatient: true) } catch {
            Log.write(.warning, "Erasing values of \(description), as other devices ordered, failed: \(error)")
        }
    }

    private func takeOrders(in versions: Set<VersionID>) throws -> Bool {
        guard let known = try knownOrders(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        for version in versions {
            for place in recordPlaces(of: version) { try findOrders(version, place, known, &found) }
        }
        return try count(found)
    }

    /// Reads the tables of all versions, also of those that an older library stored.
    func takeAllOrders() throws -> Bool {
        guard let known = try knownOrders(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        try forEachRecord(.none) { version, place in try findOrders(version, place, known, &found) }
        return try count(found)
    }

    private func findOrders(_ version: VersionID, _ place: RecordPlace, _ known: KnownOrders, _ found: inout [FoundOrder]) throws {
        do {
            try records.forEachChange(place) { entry, _ in
                guard entry.kind == .insert || entry.kind == .update, !entry.isHollow, entry.size <= EraseOrder.mostBytes,
                    let name = EraseOrder.name(ofID: entry.id), !known.names.contains(name)
                else { return }
                let json = try records.withValue(entry, in: place, of: version) { Array($0) }
                if let order = FoundOrder(name, version, json, allowedBy: known.policy) { found.append(order) }
            }
        } catch let error as StoreError where error.code.isOfOne || error.code.isGone {
            Log.write(.info, "Version \(version) of \(description) may have an order to erase values, and cannot be read: \(error)")
        }
    }

    /// Lets the orders in versions that are received count, before the versions are stored.
    /// - Parameter isValid: whether the version at an index is what it claims to be.
    func takeOrders(in received: [ReceivedVersion], isValid: (Int) -> Bool) throws -> Bool {
        guard let known = try knownOrders(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        for (i, item) in received.enumerated() where isValid(i) {
            for change in item.changes {
                guard let json = change.order, let name = change.id.bytes.withUnsafeBytes(EraseOrder.name(ofID:)),
                    !known.names.contains(name), let order = FoundOrder(name, item.version.id, json, allowedBy: known.policy)
                else { continue }
                found.append(order)
            }
        }
        return try count(found)
    }

    /// Whether orders of other devices may count here.
    package var followsOthers: Bool { get throws { try (knownOrders()?.policy.mode ?? .nobody) != .nobody } }
    /// Follows the orders in versions that are at a place, before they are received.
    package func followOrders(in found: [ReceivedVersion]) throws {
        if try takeOrders(in: found, isValid: { _ in true }) { followNewOrders(true) }
    }

    /// Adds orders of others to the note.
    private func count(_ found: [FoundOrder]) throws -> Bool {
        guard !found.isEmpty else { return false }
        let sizes = try found.map { try sizeNamed(by: $0.order) }
        let all = lock.withRead { dag.rows.reduce(UInt64(0)) { $1.state == .live ? $0 &+ $1.valueDataSize : $0 } }
        let now = secondsNow, day = now / 86_400
        var added = 0, isFull = false, isHeld = false, isOpen = false
        try changeNote { note in
            var names = Set(note.lines.map(\.order))
            var values: UInt64 = 0, bytes: UInt64 = 0
            for came in note.lines.compactMap(\.came) where came.time / 86_400 == day {
                values &+= came.values
                bytes &+= came.bytes
            }
            for (one, size) in zip(found, sizes) where !names.contains(one.name) {
                guard note.hasRoom(for: [one.json]) else { isFull = true; break }
                names.insert(one.name)
                values &+= UInt64(size.values)
                bytes &+= size.bytes
                let isMuch = values > ErasureBrake.values || bytes > max(ErasureBrake.bytes, all / ErasureBrake.share)
                isHeld = isHeld || isMuch
                isOpen = isOpen || (!isMuch && note.policy.delay == 0)
                let state: ErasureNote.State = isMuch ? .held : note.policy.delay > 0 ? .announced : .open
                note.lines.append(
                    ErasureNote.Line(
                        order: one.name, version: one.version, state: state, json: one.json,
                        came: ErasureNote.Arrival(time: now, values: UInt64(size.values), bytes: size.bytes)))
                added += 1
            }
        }
        if isFull {
            Log.write(
                .warning,
                "\(description) holds \(ErasureNote.most) orders to erase values, or 64 MiB of them, which is the most: others do not "
                    + "count.")
        }
        guard added > 0 else { return false }
        Log.write(
            .info,
            "\(added) orders of other devices to erase values of \(description) came"
                + "\(isHeld ? "; one names so much that it waits for a decision here" : "").")
        _ = try knownOrders()
        if isOpen { erasureState.withLock { $0.isNews = true } }
        return isOpen
    }

    /// Returns how many values an order names, and the bytes that they have here.
    private func sizeNamed(by order: EraseOrder) throws -> (values: Int, bytes: UInt64) {
        var values = 0, bytes: UInt64 = 0
        for (version, indexes) in order.what {
            values += indexes.count
            guard let place = recordPlaces(of: version).first else { continue }
            let wanted = Set(indexes)
            var i = -1
            do {
                try records.forEachChange(place) { entry, _ in
                    i += 1
                    if wanted.contains(i), entry.kind == .insert || entry.kind == .update, !entry.isHollow { bytes &+= UInt64(entry.size) }
                }
            } catch let error as StoreError where error.code.isOfOne {}
        }
        return (values, bytes)
    }

    /// Opens announced orders whose delay is over.
    private func endDelays() throws -> Bool {
        let now = secondsNow
        var isOpen = false
        try changeNote { note in
            for i in note.lines.indices where note.lines[i].state == .announced {
                if let came = note.lines[i].came, came.time &+ note.policy.delay > now { continue }
                note.lines[i].state = .open
                isOpen = true
            }
        }
        _ = try knownOrders()
        if isOpen { erasureState.withLock { $0.isNews = true } }
        return isOpen
    }

    // MARK: Orders stay in states

    /// Returns the changes of a save on a version with what keeps the orders that count here: it puts those back that the state lacks, and
    /// removes none. Nil: the changes are to be saved as they are.
    /// - Throws: `.invalidArgument` if the save replaces an order by something else.
    func keepingOrders(on base: VersionID, _ changes: BorrowedChanges) throws -> (changes: BorrowedChanges, orders: [Value.Change])? {
        guard let parts = lock.withRead({ erasureParts }) else { return nil }
        let (known, isComplete) = parts.orders.withLock { ($0.known, $0.complete.contains(base)) }
        guard let known, !known.names.isEmpty else { return nil }
        var own: Set<String> = [], dropped: Set<Int> = []
        for (i, change) in changes.enumerated() {
            guard let name = EraseOrder.name(ofID: change.id), known.names.contains(name) else { continue }
            guard change.hasData else { dropped.insert(i); continue }
            guard change.written == nil, EraseOrder.name(of: Array(change.data)) == name else {
                throw StoreError(
                    .invalidArgument, "An order to erase values counts here, and cannot be replaced. Leave it as it is.",
                    valueID: ValueID(unchecked: change.id))
            }
            own.insert(name)
        }
        let kept = dropped.isEmpty ? changes : BorrowedChanges(changes.indices.filter { !dropped.contains($0) }.map { changes[$0] })
        if isComplete { return (kept, []) }
        guard let ordinal = lock.withRead({ dag.ordinal(of: base) }) else { return nil }
        let prevailing = try maps.prevailing(at: ordinal)
        var lacking: Set<String> = []
        for name in known.names where !own.contains(name) {
            if try EraseOrder.id(named: name).bytes.withUnsafeBytes({ try prevailing.lookup($0) }) == nil { lacking.insert(name) }
        }
        if lacking.isEmpty { return (kept, []) }
        return (
            kept,
            try ErasureNote(storage.orders()).lines.compactMap { line in
                guard lacking.contains(line.order), EraseOrder.name(of: line.json) == line.order else { return nil }
                return .insert(EraseOrder.id(named: line.order), data: line.json)
            }
        )
    }
    /// Notes that the state at a version has all orders that are known.
    func noteComplete(_ id: VersionID) {
        lock.withRead({ erasureParts })?.orders.withLock { state in
            guard state.known != nil else { return }
            if state.complete.count >= 64 { state.complete = [] }
            state.complete.insert(id)
        }
    }

    /// Returns whether an order that counts here prevailed at a version, and does not at one behind which it is.
    package func hasLostOrder(_ now: Prevailing, since before: (UnsafeRawBufferPointer) throws -> MapEntry?) throws -> Bool {
        guard let known = lock.withRead({ erasureParts })?.orders.withLock({ $0.known }) else { return false }
        return try known.names.contains { name in
            try EraseOrder.id(named: name).bytes.withUnsafeBytes { try now.lookup($0) == nil && before($0) != nil }
        }
    }

    var orderState: Guarded<OrderState> { parts.orders }
}

/// Orders of others wait for a decision if those of one day name more than this.
enum ErasureBrake {
    static let values: UInt64 = 1_000
    /// Fewer bytes than this are never too many, nor is a smaller part of the values of the store.
    static let bytes: UInt64 = 16 << 20, share: UInt64 = 10
}

/// What the note with the orders says, without the changes that they name.
struct KnownOrders {
    let stamp: UInt64
    let policy: ForgettingPolicy
    let names: Set<String>
    /// Whether an order is to be followed.
    let hasOpen: Bool
    /// When the next delay is over, in seconds since 1970.
    let due: UInt64?

    init(_ stamp: UInt64, _ note: ErasureNote) {
        self.stamp = stamp
        policy = note.policy
        names = Set(note.lines.map(\.order))
        hasOpen = note.lines.contains { !$0.isFollowed }
        due = note.lines.filter { $0.state == .announced }.map { ($0.came?.time ?? 0) &+ note.policy.delay }.min()
    }
}

/// The indexes of the changes that orders name, by version.
struct NamedChanges {
    /// Their bytes are erased here.
    var erased: [VersionID: [Int]] = [:]
    /// Their bytes may be here, and are sent to nobody.
    var withheld: [VersionID: [Int]] = [:]
    /// Their bytes are erased here and at places, and the SHA-256 of the names of these orders; nil if there are none.
    var erasedAtPlaces: [VersionID: [Int]] = [:], mark: [UInt8]?
    /// Orders that others follow, too, name them.
    var ordered: [VersionID: [Int]] = [:]
}

/// What a handle knows of orders.
struct OrderState {
    /// The versions with values of forgetting that were not read yet.
    var unread: Set<VersionID> = []
    static let mostUnread = 65_536
    /// Whether there are more of these versions.
    var isUnreadIncomplete = false
    var known: KnownOrders?
    /// Nil: not read yet.
    var changes: NamedChanges?
    /// Versions whose states have all orders.
    var complete: Set<VersionID> = []
}

/// An order of another device that the policy of this one allows.
struct FoundOrder {
    let name: String, version: VersionID, json: [UInt8], order: EraseOrder

    /// Nil if it is none.
    init?(_ name: String, _ version: VersionID, _ json: [UInt8], allowedBy policy: ForgettingPolicy) {
        // In the note it is part of a line.
        guard !json.contains(where: { $0 < 0x20 }), EraseOrder.name(of: json) == name, let order = EraseOrder(json), policy.allows(json)
        else { return nil }
        self.name = name; self.version = version; self.json = json; self.order = order
    }
}

extension EraseOrder {
    /// Returns whether a value id is that of an order, which a merge keeps.
    package static func isNamed(by id: UnsafeRawBufferPointer) -> Bool { id.first == UInt8(ascii: "_") && id.starts(with: prefix) }

    /// Returns the name of the order that a value id names; nil if it names none.
    static func name(ofID id: UnsafeRawBufferPointer) -> String? {
        guard id.count == prefix.count + 26, isNamed(by: id) else { return nil }
        return String(decoding: id.dropFirst(prefix.count), as: UTF8.self)
    }
}

extension Value.Change {
    /// The bytes that are saved under the id of an order; nil for all other changes.
    fileprivate var order: [UInt8]? {
        switch self {
        case .insert(let id, let data), .update(let id, let data):
            data.count <= EraseOrder.mostBytes && id.bytes.withUnsafeBytes(EraseOrder.isNamed(by:)) ? data : nil
        case .remove, .preserve, .preserveRemoval: nil
        }
    }
}
