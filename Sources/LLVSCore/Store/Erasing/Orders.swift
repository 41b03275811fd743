/// Which orders to erase count on this device: its own, and those of others that its policy allows (docs/format.md, "Erase orders"). The
/// policy and the orders are in the file `erasures`; what is known of them is part of what the store keeps for erasing.
package struct Orders {
    let store: Store

    private var storage: any Storage { store.storage }
    /// What this handle knows of orders, which is made if it is not there.
    var state: Guarded<OrderState> { store.parts.orders }
    /// The same, if it is there.
    private var stateIfMade: Guarded<OrderState>? { store.lock.withRead { store.erasureParts }?.orders }

    /// Returns what the file `erasures` says.
    func note() throws -> ErasureNote { ErasureNote(try storage.orders()) }

    /// Returns what the note says; nil if there is none.
    func known() throws -> KnownOrders? {
        // Handles learn of new orders when they look for new versions, as each exchange does first.
        let isMade = stateIfMade != nil
        guard storage.canErase, isMade || !store.hasNoOrders else { return nil }
        let stamp = storage.ordersStamp()
        if stamp == 0, !isMade { store.lock.withWrite { store.hasNoOrders = true } }
        guard stamp != 0 else { return nil }
        if let known = state.withLock({ $0.known }), known.stamp == stamp { return known }
        let known = KnownOrders(stamp, try note())
        state.withLock { state in
            if state.known?.names != known.names { state.complete = [] }
            state.known = known
            state.changes = nil
        }
        return known
    }

    /// Returns the changes that the orders name. An order that cannot be read is skipped.
    func named() throws -> NamedChanges {
        guard let known = try known() else { return NamedChanges() }
        if let changes = state.withLock({ $0.changes }) { return changes }
        let note = try note()
        var changes = NamedChanges()
        var names: [String] = [], all: [String] = []
        for line in note.lines {
            do {
                guard let order = try order(line) else { continue }
                let isForOthers = isForOthers(line, note.policy)
                let isErased = line.state == .open || line.state == .followed
                if isErased, isForOthers { names.append(line.order) }
                if isForOthers { all.append(line.order) }
                for (version, indexes) in order.what {
                    if isErased { changes.erased[version, default: []] += indexes }
                    if isErased, isForOthers { changes.erasedAtPlaces[version, default: []] += indexes }
                    if line.state != .followed { changes.withheld[version, default: []] += indexes }
                    if isForOthers || note.policy.mode == .nobody { changes.ordered[version, default: []] += indexes }
                }
            } catch let error as StoreError where error.code.isOfOne {
                Log.write(.warning, "An order to erase values of \(store.description) cannot be read: \(error)")
            }
        }
        changes.names = names
        func mark(_ names: [String]) -> [UInt8]? {
            names.isEmpty ? nil : Array(names.sorted().joined().utf8).withUnsafeBytes { SHA256.digest($0) }
        }
        (changes.mark, changes.markOfAll) = (mark(names), mark(all))
        state.withLock { state in if state.known?.stamp == known.stamp { state.changes = changes } }
        return changes
    }

    /// Changes the note. No other handle changes it meanwhile.
    func change(_ change: (inout ErasureNote) throws -> Void) throws {
        defer { forget() }
        try storage.changeOrders { copies in
            var note = ErasureNote(copies)
            let isQuiet = storage.ordersStamp() == 0 || store.areOrdersOurs(note)
            try change(&note)
            store.erasureState.withLock { $0.written = isQuiet ? note : nil }
            return note.bytes
        }
        store.lock.withWrite { store.hasNoOrders = false }
    }
    /// Forgets what was read of the note.
    func forget() { state.withLock { ($0.known, $0.changes, $0.complete) = (nil, nil, []) } }

    /// Returns the order of a line of the note; nil if it cannot be found.
    func order(_ line: ErasureNote.Line) throws -> EraseOrder? { try json(of: line).flatMap(EraseOrder.init) }
    /// Returns the bytes of the order of a line of the note; nil if they cannot be found.
    func json(of line: ErasureNote.Line) throws -> [UInt8]? {
        guard line.json.isEmpty else { return EraseOrder.name(of: line.json) == line.order ? line.json : nil }
        guard let place = store.recordPlaces(of: line.version).first else { return nil }
        let id = EraseOrder.id(named: line.order).bytes, unknown = MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0)
        let json = try id.withUnsafeBytes { id -> [UInt8]? in
            guard try store.records.findChange(place, id) != nil else { return nil }
            return try store.records.withBody(place, unknown, id: id, stored: line.version) { Array($0) }
        }
        guard let json, EraseOrder.name(of: json) == line.order else { return nil }
        return json
    }
    /// Returns whether the policy lets an order of the note count for others. An order of another device that counted here counted for
    /// others, also if the stewards that signed it were replaced since.
    private func isForOthers(_ line: ErasureNote.Line, _ policy: ForgettingPolicy) -> Bool {
        guard !line.json.isEmpty else { return false }
        guard policy.mode == .stewards else { return (try? policy.allows(line.json)) ?? false }
        if line.came != nil { return true }
        // Checking a signature takes a while.
        let known = state.withLock { $0.allowed.number == policy.number ? $0.allowed.orders[line.order] : nil }
        if let known { return known }
        guard let isAllowed = try? policy.allows(line.json) else { return false }
        state.withLock { state in
            if state.allowed.number != policy.number { state.allowed = (policy.number, [:]) }
            state.allowed.orders[line.order] = isAllowed
        }
        return isAllowed
    }
    /// Returns how many orders count here.
    package func counts() throws -> ErasureCounts { try known()?.counts ?? ErasureCounts() }
    /// Returns whether an order is to be followed.
    func hasOpen() throws -> Bool {
        if storage.ordersStamp() != 0, let known = try known() { return known.hasOpen }
        return try note().lines.contains { !$0.isFollowed }
    }
    /// Returns whether an order is not followed. Then the history is not written to the caches: its absence makes the next opening look.
    func hasOpenNow() -> Bool { storage.ordersStamp() != 0 && (try? hasOpen()) ?? true }

    /// The seconds since 1970, by this device's clock.
    var now: UInt64 { UInt64(min(max(store.environment.clock() + Clock.secondsFrom1970To2001, 0), 1e15)) }

    // MARK: Orders of others

    /// Notes that a version has values of forgetting: `read` reads them.
    func noteUnread(_ id: VersionID) {
        state.withLock { state in
            if state.unread.count < OrderState.mostUnread { state.unread.insert(id) } else { state.isUnreadIncomplete = true }
        }
    }

    /// Lets orders of others count that came since, and those whose delay is over, if the policy of this device says so. Then
    /// `hasNewsOfErasures` is true. An error is logged: the next look for new versions, or opening, tries again.
    /// - Returns: whether an order is to be followed that was not before.
    @discardableResult
    func read() -> Bool {
        guard stateIfMade != nil, storage.canErase, !storage.isReadOnly else { return false }
        let (unread, all) = state.withLock { state in
            defer { (state.unread, state.isUnreadIncomplete) = ([], false) }
            return (state.unread, state.isUnreadIncomplete)
        }
        do {
            var isNew = false
            if all { isNew = try readAll() } else if !unread.isEmpty { isNew = try read(unread) }
            if let due = state.withLock({ $0.known?.due }), due <= now { isNew = try endDelays() || isNew }
            return isNew
        } catch {
            state.withLock { state in
                state.unread.formUnion(unread)
                state.isUnreadIncomplete = state.isUnreadIncomplete || all
            }
            Log.write(.warning, "Orders to erase values of \(store.description) were not read: \(error)")
            return false
        }
    }
    /// Whether versions with values of forgetting were not read yet.
    var hasUnread: Bool { stateIfMade?.withLock { !$0.unread.isEmpty || $0.isUnreadIncomplete } ?? false }

    /// Follows orders that came with received versions. An error is logged: the next look for new versions tries again.
    /// - Parameter areNew: whether some were found before the versions were stored.
    func followNew(_ areNew: Bool) {
        guard read() || areNew else { return }
        do { _ = try store.lookForErasures(.none, isPatient: true) } catch {
            Log.write(.warning, "Erasing values of \(store.description), as other devices ordered, failed: \(error)")
        }
    }

    private func read(_ versions: Set<VersionID>) throws -> Bool {
        guard let known = try known(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        for version in versions {
            for place in store.recordPlaces(of: version) { try find(version, place, known, &found) }
        }
        return try count(found)
    }

    /// Reads the tables of all versions, also of those that an older library stored.
    func readAll() throws -> Bool {
        guard let known = try known(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        try store.forEachRecord(.none) { version, place in try find(version, place, known, &found) }
        return try count(found)
    }

    private func find(_ version: VersionID, _ place: RecordPlace, _ known: KnownOrders, _ found: inout [FoundOrder]) throws {
        do {
            try store.records.forEachChange(place) { entry, _ in
                guard entry.kind == .insert || entry.kind == .update, !entry.isHollow, entry.size <= EraseOrder.mostBytes,
                    let name = EraseOrder.name(ofID: entry.id), !known.names.contains(name)
                else { return }
                let json = try store.records.withValue(entry, in: place, of: version) { Array($0) }
                if let order = try FoundOrder(name, version, json, allowedBy: known.policy) { found.append(order) }
            }
        } catch let error as StoreError where error.code.isOfOne || error.code.isGone {
            Log.write(.info, "Version \(version) of \(store.description) may have an order to erase values, and cannot be read: \(error)")
        }
    }

    /// Lets the orders in versions that are received count, before the versions are stored.
    /// - Parameter isValid: whether the version at an index is what it claims to be.
    func read(_ received: [Store.ReceivedVersion], isValid: (Int) -> Bool) throws -> Bool {
        guard let known = try known(), known.policy.mode != .nobody else { return false }
        var found: [FoundOrder] = []
        for (i, item) in received.enumerated() where isValid(i) {
            for change in item.changes {
                guard let json = change.order, let name = change.id.bytes.withUnsafeBytes(EraseOrder.name(ofID:)),
                    !known.names.contains(name), let order = try? FoundOrder(name, item.version.id, json, allowedBy: known.policy)
                else { continue }
                found.append(order)
            }
        }
        return try count(found)
    }

    /// Whether orders of other devices may count here.
    package var mayBeOfOthers: Bool { get throws { try (known()?.policy.mode ?? .nobody) != .nobody } }
    /// Follows the orders in versions that are at a place, before they are received.
    package func follow(_ found: [Store.ReceivedVersion]) throws {
        if try read(found, isValid: { _ in true }) { followNew(true) }
    }

    /// Adds orders of others to the note.
    private func count(_ found: [FoundOrder]) throws -> Bool {
        guard !found.isEmpty else { return false }
        if found.contains(where: { $0.order.stewards != nil }) { return try replaceStewards(found) }
        let sizes = try found.map { try sizeNamed(by: $0.order) }
        let all = store.lock.withRead { store.dag.rows.reduce(UInt64(0)) { $1.state == .live ? $0 &+ $1.valueDataSize : $0 } }
        let now = self.now, day = now / 86_400
        var added = 0, isFull = false, isHeld = false, isOpen = false
        try change { note in
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
                "\(store.description) holds \(ErasureNote.most) orders to erase values, or 64 MiB of them, which is the most: others do "
                    + "not count.")
        }
        guard added > 0 else { return false }
        Log.write(
            .info,
            "\(added) orders of other devices to erase values of \(store.description) came"
                + "\(isHeld ? "; one names so much that it waits for a decision here" : "").")
        _ = try known()
        if isOpen { store.erasureState.withLock { $0.isNews = true } }
        return isOpen
    }

    /// Pins the stewards that an order names, if those of the policy signed it, and counts other orders by the new policy.
    private func replaceStewards(_ found: [FoundOrder]) throws -> Bool {
        let others = found.filter { $0.order.stewards == nil }
        let isOpen = try count(others)
        var isNew = false
        try change { note in
            for one in found where !note.lines.contains(where: { $0.order == one.name }) && note.hasRoom(for: [one.json]) {
                guard let stewards = one.order.stewards, note.policy.allowsReplacing(by: stewards) else { continue }
                note.replaceStewards(
                    by: stewards,
                    ErasureNote.Line(
                        order: one.name, version: one.version, state: .followed, json: one.json,
                        came: ErasureNote.Arrival(time: now, values: 0, bytes: 0)))
                isNew = true
            }
        }
        guard isNew else { return isOpen }
        Log.write(.info, "The stewards of \(store.description) were replaced, as those before them signed.")
        _ = try known()
        return try readAll() || isOpen
    }

    /// Returns how many values an order names, and the bytes that they have here.
    private func sizeNamed(by order: EraseOrder) throws -> (values: Int, bytes: UInt64) {
        var values = 0, bytes: UInt64 = 0
        for (version, indexes) in order.what {
            values += indexes.count
            guard let place = store.recordPlaces(of: version).first else { continue }
            let wanted = Set(indexes)
            var i = -1
            do {
                try store.records.forEachChange(place) { entry, _ in
                    i += 1
                    if wanted.contains(i), entry.kind == .insert || entry.kind == .update, !entry.isHollow { bytes &+= UInt64(entry.size) }
                }
            } catch let error as StoreError where error.code.isOfOne {}
        }
        return (values, bytes)
    }

    /// Opens announced orders whose delay is over.
    private func endDelays() throws -> Bool {
        let now = self.now
        var isOpen = false
        try change { note in
            for i in note.lines.indices where note.lines[i].state == .announced {
                if let came = note.lines[i].came, came.time &+ note.policy.delay > now { continue }
                note.lines[i].state = .open
                isOpen = true
            }
        }
        _ = try known()
        if isOpen { store.erasureState.withLock { $0.isNews = true } }
        return isOpen
    }

    // MARK: Orders stay in states

    /// Returns the changes of a save on a version with what keeps the orders that count here: it puts those back that the state lacks, and
    /// removes none. Nil: the changes are to be saved as they are.
    /// - Throws: `.invalidArgument` if the save replaces an order by something else.
    func keeping(on base: VersionID, _ changes: BorrowedChanges) throws -> (changes: BorrowedChanges, orders: [Value.Change])? {
        guard let state = stateIfMade else { return nil }
        let (known, isComplete) = state.withLock { ($0.known, $0.complete.contains(base)) }
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
        guard let ordinal = store.lock.withRead({ store.dag.ordinal(of: base) }) else { return nil }
        let prevailing = try store.maps.prevailing(at: ordinal)
        var lacking: Set<String> = []
        for name in known.names where !own.contains(name) {
            if try EraseOrder.id(named: name).bytes.withUnsafeBytes({ try prevailing.lookup($0) }) == nil { lacking.insert(name) }
        }
        if lacking.isEmpty { return (kept, []) }
        return (
            kept,
            try note().lines.compactMap { line in
                guard lacking.contains(line.order), EraseOrder.name(of: line.json) == line.order else { return nil }
                return .insert(EraseOrder.id(named: line.order), data: line.json)
            }
        )
    }
    /// Notes that the state at a version has all orders that are known.
    func noteComplete(_ id: VersionID) {
        stateIfMade?.withLock { state in
            guard state.known != nil else { return }
            if state.complete.count >= 64 { state.complete = [] }
            state.complete.insert(id)
        }
    }

    /// Returns whether an order that counts here prevailed at a version, and does not at one behind which it is.
    package func hasLost(_ now: Prevailing, since before: (UnsafeRawBufferPointer) throws -> MapEntry?) throws -> Bool {
        guard let known = stateIfMade?.withLock({ $0.known }) else { return false }
        return try known.names.contains { name in
            try EraseOrder.id(named: name).bytes.withUnsafeBytes { try now.lookup($0) == nil && before($0) != nil }
        }
    }
}

extension Store {
    package var orders: Orders { Orders(store: self) }
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
    /// Whether values were forgotten by a policy.
    let hasThinned: Bool
    let counts: ErasureCounts

    init(_ stamp: UInt64, _ note: ErasureNote) {
        self.stamp = stamp
        policy = note.policy
        hasThinned = note.hasThinned
        names = Set(note.lines.map(\.order))
        hasOpen = note.lines.contains { !$0.isFollowed }
        var counts = ErasureCounts()
        for line in note.lines {
            switch line.state {
            case .open: counts.waiting += 1
            case .followed: counts.followed += 1
            case .announced: counts.announced += 1
            case .held: counts.held += 1
            case .kept: break
            }
        }
        self.counts = counts
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
    /// These orders, in the order of the note.
    var names: [String] = []
    /// The SHA-256 of the names of all orders that count for others, also of those that are not followed here: their bytes are not sent.
    var markOfAll: [UInt8]?
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
    /// Whether a policy, by its number, lets orders count for others.
    var allowed: (number: UInt64, orders: [String: Bool]) = (0, [:])
}

/// An order of another device that the policy of this one allows.
struct FoundOrder {
    let name: String, version: VersionID, json: [UInt8], order: EraseOrder

    /// Nil if it is none.
    init?(_ name: String, _ version: VersionID, _ json: [UInt8], allowedBy policy: ForgettingPolicy) throws {
        // In the note it is part of a line.
        guard !json.contains(where: { $0 < 0x20 }), EraseOrder.name(of: json) == name, let order = EraseOrder(json),
            order.stewards.map(policy.allowsReplacing(by:)) ?? true, try policy.allows(json)
        else { return nil }
        self.name = name; self.version = version; self.json = json; self.order = order
    }
}

extension EraseOrder {
    /// Returns whether a value id is that of an order, which a merge keeps.
    package static func isNamed(by id: UnsafeRawBufferPointer) -> Bool { id.first == UInt8(ascii: "_") && id.starts(with: prefix) }

    /// Returns the name in the id of an order.
    static func name(in id: ValueID) -> String { String(decoding: id.bytes.dropFirst(prefix.count), as: UTF8.self) }

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
