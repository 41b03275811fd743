import CLLVSShims

/// The maps that are in memory, by the ordinal of their version, within a budget.
///
/// What was asked for since it was last looked at stays; of the rest the oldest goes first. Maps that were costly
/// to make (many changes since the nearest other) are anchors and are kept apart, so that reading the past never
/// replays much.
///
/// Safe from all threads. `root(of:)` takes no lock and counts no reference: it is for those who read under the
/// store's lock, and what the cache lets go of is released when those who read at that time have left. Nothing but
/// `root(of:)` and `slot(_:)` may be called under that lock.
final class MapCache: @unchecked Sendable {
    // Sendable: `lock` guards the writing; readers read atomically, under the lock of the history.
    struct Slot {
        var root: MapNode?
        /// Changes to replay from the nearest anchor behind.
        var replay = 0
        /// Changes since the flat map that it builds on, or since there was nothing.
        var overlay = 0
        /// Which version it is of; nil when it is not kept.
        var ordinal: UInt32?
        /// The flat map that it builds on.
        var flat: FlatMap?
    }
    /// The least that a map costs, beside what it does not share with others.
    private static let leastCost = 512
    /// As how much memory a flat map counts that takes little but room on the disk: for each value, and at most. One that is in memory
    /// counts as what it takes there.
    private static let flatCostPerValue = 72, mostFlatCost = 2 << 20

    /// A map as readers find it: they look at `ordinal` and `slot` alone, which never change.
    private final class Kept {
        let ordinal: UInt32
        let slot: Slot
        /// What it does not share with `basis`, or all of it. What is let go of leaves what it shared to those made from it: they
        /// are weighed anew.
        var cost: Int
        var basis: Kept?
        /// Those whose basis this is, and perhaps others.
        var dependents: [UInt32] = []
        var isRecent = true
        var isAnchor = false
        /// Asked for since it was last looked at, of `slot(_:)`.
        var wasAskedFor = false
        /// Where it is in the table; nil when there was no room.
        var shown: Int?
        init(_ ordinal: UInt32, _ slot: Slot, cost: Int, basis: Kept?) {
            self.ordinal = ordinal
            self.slot = slot
            self.cost = cost
            self.basis = basis
        }

        /// `isDependent` tells which still are.
        func addDependent(_ ordinal: UInt32, _ isDependent: (UInt32, Kept) -> Bool) {
            if dependents.count >= 64, dependents.count & (dependents.count - 1) == 0 { dependents.removeAll { !isDependent($0, self) } }
            dependents.append(ordinal)
        }
    }

    /// The store's: what is let go of waits for its readers.
    private let readers: ReadWriteLock
    private let lock = Lock(.maps)
    /// All that is kept.
    private var kept: [UInt32: Kept] = [:]
    /// In the order in which they came, from `firstRecent` on; nil before, since what is in an array is in memory.
    private var recent: [Kept?] = []
    private var firstRecent = 0
    private var recentCost = 0
    private var anchors: [Kept] = []
    private var anchorCost = 0
    private let account: MemoryAccount
    private var budget: Int { account.maps }

    /// Where readers look: `ways` words for each hash, each 0 or a `Kept`. One that finds no room is found by `slot` alone.
    private let table: UnsafeMutablePointer<UInt64>
    /// For each word of the table, 1 when readers asked for it since it was last looked at.
    private let used: UnsafeMutablePointer<UInt32>
    private let mask: Int
    private static let ways = 8
    /// A word has some bits of the ordinal above the pointer, which tell most others apart without looking at them.
    private static let pointerBits: UInt64 = 48

    init(_ account: MemoryAccount, readers: ReadWriteLock) {
        self.account = account
        self.readers = readers
        var size = 64
        while size < min(account.mostMaps / 2_048, 1 << 16) { size *= 2 }
        mask = size - 1
        table = .allocate(capacity: size)
        table.initialize(repeating: 0, count: size)
        used = .allocate(capacity: size)
        used.initialize(repeating: 0, count: size)
    }
    deinit {
        // One after the other: a long chain of them would be released as deep as it is long.
        for one in kept.values { one.basis = nil }
        table.deallocate()
        used.deallocate()
    }

    /// Maps that are kept, and bytes that they count as, for tests.
    var count: Int { lock.withLock { kept.count } }
    var memoryInUse: Int { lock.withLock { kept.values.reduce(0) { $0 + $1.cost } } }

    // MARK: Reading

    /// A version's map for one who holds the store's lock for reading, for as long as that: `found` tells whether it is
    /// here, and `root` is nil when it is empty.
    @inline(__always)
    func root(of ordinal: UInt32) -> (found: Bool, root: Unmanaged<MapNode>?) {
        let bucket = bucket(ordinal)
        for at in bucket..<bucket + MapCache.ways {
            let word = llvs_shim_load_word(table + at)
            guard word >> MapCache.pointerBits == MapCache.tag(ordinal),
                let pointer = UnsafeRawPointer(bitPattern: UInt(word & (1 << MapCache.pointerBits - 1)))
            else { continue }
            let found: (Bool, Unmanaged<MapNode>?) = Unmanaged<Kept>.fromOpaque(pointer)._withUnsafeGuaranteedRef { kept in
                guard kept.ordinal == ordinal else { return (false, nil) }
                return (true, kept.slot.root.map { Unmanaged.passUnretained($0) })
            }
            guard found.0 else { continue }
            if llvs_shim_load_relaxed(used + at) == 0 { llvs_shim_store_relaxed(used + at, 1) }
            return found
        }
        return (false, nil)
    }

    /// The map of a version, when it is here.
    func slot(_ ordinal: UInt32) -> Slot? {
        lock.lock()
        defer { lock.unlock() }
        guard let kept = kept[ordinal] else { return nil }
        kept.wasAskedFor = true
        return kept.slot
    }

    // MARK: Changing

    /// Keeps a map that was made by applying `changes` changes to another; answers what is kept.
    @discardableResult
    func store(_ ordinal: UInt32, _ root: MapNode?, changes: Int, on behind: Slot) -> Slot {
        let memory = root?.memory(beside: behind.root) ?? 0
        let slot = Slot(
            root: root, replay: behind.replay + changes, overlay: behind.overlay + changes, ordinal: ordinal, flat: behind.flat)
        return store(ordinal, slot, cost: memory, basis: behind.ordinal)
    }

    /// Keeps a flat map, which takes little memory of its own but was much to make; answers what is kept.
    /// - Parameter persisted: its nodes are those of the persisted map, which counts for itself.
    @discardableResult
    func store(_ ordinal: UInt32, flat root: MapNode?, persisted: Bool = false) -> Slot {
        let flat = root?.someFlat, cost = min((root?.count ?? 0) * MapCache.flatCostPerValue, MapCache.mostFlatCost)
        let size = flat.map { persisted ? $0.ownSize : $0.size } ?? 0
        return store(
            ordinal, Slot(root: root, replay: MapPolicy.anchorSpacing, ordinal: ordinal, flat: flat),
            cost: max(cost, size + (root?.memory ?? 0)), basis: nil)
    }

    /// - Parameter basis: what the cost is beside.
    private func store(_ ordinal: UInt32, _ made: Slot, cost: Int, basis: UInt32?) -> Slot {
        var slot = made
        letGo { gone in
            if let known = kept[ordinal] {
                // Made twice at once: they are equal.
                slot = known.slot
                if !known.isRecent { addRecent(known) }
                return trimRecent(&gone)
            }
            let isAnchor = slot.replay >= MapPolicy.anchorSpacing
            if isAnchor { slot.replay = 0 }
            let behind = basis.flatMap { kept[$0] }, isAlone = basis != nil && behind == nil
            let new = Kept(ordinal, slot, cost: MapCache.leastCost + (isAlone ? slot.root?.memory ?? 0 : cost), basis: behind)
            behind?.addDependent(ordinal) { kept[$0]?.basis === $1 }
            kept[ordinal] = new
            show(new)
            if isAnchor {
                new.isAnchor = true
                anchors.append(new)
                anchorCost += new.cost
                trimAnchors(&gone)
            }
            addRecent(new)
            trimRecent(&gone)
        }
        return slot
    }

    private func addRecent(_ one: Kept) {
        one.isRecent = true
        recent.append(one)
        recentCost += one.cost
    }

    /// Lets go of the oldest that were not asked for since they were last looked at, some at a time, but never of the newest.
    private func trimRecent(_ gone: inout [Kept]) {
        guard recentCost > budget / 2 else { return }
        var chances = recent.count - firstRecent
        while recentCost > budget / 2 - budget / 16, recent.count - firstRecent > 1 {
            let next = recent[firstRecent]
            recent[firstRecent] = nil
            firstRecent += 1
            guard let oldest = next else { continue }
            if chances > 0, takeUse(oldest) {
                chances -= 1
                recent.append(oldest)
                continue
            }
            oldest.isRecent = false
            recentCost -= oldest.cost
            forget(oldest, &gone)
        }
        if firstRecent > 1_024, firstRecent * 2 > recent.count {
            recent.removeFirst(firstRecent)
            firstRecent = 0
        }
    }

    /// Whether it was asked for since this was last called.
    private func takeUse(_ one: Kept) -> Bool {
        var wasUsed = one.wasAskedFor
        one.wasAskedFor = false
        if let at = one.shown, llvs_shim_load_relaxed(used + at) != 0 {
            llvs_shim_store_relaxed(used + at, 0)
            wasUsed = true
        }
        return wasUsed
    }

    /// Over the budget, every other anchor goes: what remains is evenly spread over the past.
    private func trimAnchors(_ gone: inout [Kept]) {
        guard anchorCost > budget / 2, anchors.count > 1 else { return }
        var left: [Kept] = []
        for (i, anchor) in anchors.enumerated() {
            if (i % 2 == 0 && anchors.count > 2) || i == anchors.count - 1 { left.append(anchor); continue }
            anchor.isAnchor = false
            anchorCost -= anchor.cost
            forget(anchor, &gone)
        }
        anchors = left
    }

    /// Takes away what is neither recent nor an anchor.
    private func forget(_ one: Kept, _ gone: inout [Kept]) {
        guard !one.isRecent, !one.isAnchor, kept[one.ordinal] === one else { return }
        kept[one.ordinal] = nil
        hide(one)
        gone.append(one)
        for ordinal in one.dependents {
            guard let dependent = kept[ordinal], dependent.basis === one else { continue }
            let cost = MapCache.leastCost + (dependent.slot.root?.memory(beside: one.basis?.slot.root) ?? 0)
            if dependent.isRecent { recentCost += cost - dependent.cost }
            if dependent.isAnchor { anchorCost += cost - dependent.cost }
            dependent.cost = cost
            dependent.basis = one.basis
            one.basis?.addDependent(ordinal) { kept[$0]?.basis === $1 }
        }
        one.basis = nil
        one.dependents = []
    }

    /// Whether so much of a map is nodes in memory that it had better be a flat one.
    func isHeavy(_ slot: Slot) -> Bool {
        slot.root.map {
            MapPolicy.isHeavy(
                overlay: slot.overlay, values: $0.count, memory: $0.memory, budget: account.maps, isRelisted: slot.flat?.count == $0.count)
        } ?? false
    }

    /// Forgets all: they are made again from the records when they are asked for.
    func removeAll() {
        letGo { gone in
            gone = Array(kept.values)
            for one in gone {
                hide(one)
                one.basis = nil
            }
            kept = [:]
            recent = []
            firstRecent = 0
            recentCost = 0
            anchors = []
            anchorCost = 0
        }
    }

    /// Forgets a version whose commit failed.
    func drop(_ ordinal: UInt32) {
        letGo { gone in
            guard let one = kept[ordinal] else { return }
            if one.isRecent {
                one.isRecent = false
                recentCost -= one.cost
                if let i = recent[firstRecent...].lastIndex(where: { $0 === one }) { recent.remove(at: i) }
            }
            if one.isAnchor {
                one.isAnchor = false
                anchorCost -= one.cost
                anchors.removeAll { $0 === one }
            }
            forget(one, &gone)
        }
    }

    /// Runs `body` under the lock; what it has hidden and puts into `gone` is released when nobody reads it any more.
    private func letGo(_ body: (inout [Kept]) -> Void) {
        var gone: [Kept] = []
        lock.lock()
        body(&gone)
        lock.unlock()
        withExtendedLifetime(gone) { if !gone.isEmpty { readers.waitForReaders() } }
    }

    // MARK: What readers see

    @inline(__always)
    private func bucket(_ ordinal: UInt32) -> Int {
        Int(truncatingIfNeeded: UInt64(ordinal) &* 0x9E37_79B9_7F4A_7C15 >> 32) & mask & ~(MapCache.ways - 1)
    }

    @inline(__always)
    private static func tag(_ ordinal: UInt32) -> UInt64 { UInt64(ordinal & 0xFFFF) }

    private func show(_ one: Kept) {
        let bucket = bucket(one.ordinal), pointer = UInt64(UInt(bitPattern: Unmanaged.passUnretained(one).toOpaque()))
        guard pointer >> MapCache.pointerBits == 0 else { return }
        for at in bucket..<bucket + MapCache.ways where llvs_shim_load_word(table + at) == 0 {
            llvs_shim_store_relaxed(used + at, 0)
            llvs_shim_store_word(table + at, pointer | MapCache.tag(one.ordinal) << MapCache.pointerBits)
            one.shown = at
            return
        }
    }

    private func hide(_ one: Kept) {
        guard let at = one.shown else { return }
        one.shown = nil
        llvs_shim_store_word(table + at, 0)
    }
}
