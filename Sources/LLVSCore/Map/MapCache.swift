import CLLVSShims

/// The maps in memory, by the ordinal of their version, within a budget.
///
/// Evicts the oldest maps that were not used since the last pass. Maps that were costly to make (many changes since the nearest other) are
/// anchors with a budget of their own, so that reading the past never replays much.
///
/// Safe from all threads. `root(of:)` takes no lock and counts no reference: it is for readers that hold the store's lock, and evicted maps
/// are released after the readers of that time have left. Only `root(of:)` and `slot(_:)` may be called under that lock.
package final class MapCache: @unchecked Sendable {
    // Sendable: `lock` guards writes; readers read atomically, under the lock of the history.
    package struct Slot {
        package var root: MapNode?
        /// The number of changes from the nearest earlier anchor to this map.
        var replay = 0
        /// The number of changes since the flat map that it builds on, or since the empty map.
        var overlay = 0
        /// The version whose map it is; nil if it is not cached.
        var ordinal: UInt32?
        /// The flat map that it builds on.
        var flat: FlatMap?
    }
    /// The minimal cost of a map, besides the memory that it does not share.
    private static let leastCost = 512
    /// The cost of a flat map on disk, which takes little memory: per value, and at most. A flat map in memory costs its bytes.
    private static let flatCostPerValue = 72, mostFlatCost = 2 << 20

    /// A cached map. Readers use only `ordinal` and `slot`, which are immutable.
    private final class Kept {
        let ordinal: UInt32
        let slot: Slot
        /// The bytes not shared with `basis`, or all if there is none. When a basis is evicted, the shared bytes are added to its
        /// dependents' cost.
        var cost: Int
        var basis: Kept?
        /// The maps with this basis; may contain others.
        var dependents: [UInt32] = []
        var isRecent = true
        var isAnchor = false
        /// Whether `slot(_:)` returned it since the last pass.
        var wasAskedFor = false
        /// The index of the map in the table; nil if there was no room.
        var shown: Int?
        init(_ ordinal: UInt32, _ slot: Slot, cost: Int, basis: Kept?) {
            self.ordinal = ordinal
            self.slot = slot
            self.cost = cost
            self.basis = basis
        }

        /// `isDependent` returns whether an entry still has this basis.
        func addDependent(_ ordinal: UInt32, _ isDependent: (UInt32, Kept) -> Bool) {
            if dependents.count >= 64, dependents.count & (dependents.count - 1) == 0 { dependents.removeAll { !isDependent($0, self) } }
            dependents.append(ordinal)
        }
    }

    /// The store's lock. Evicted maps wait for its readers.
    private let readers: ReadWriteLock
    private let lock = Lock(.maps)
    /// All cached maps.
    private var kept: [UInt32: Kept] = [:]
    /// Recent maps in order of arrival, from `firstRecent` on; nil before, so that the array does not retain them.
    private var recent: [Kept?] = []
    private var firstRecent = 0
    private var recentCost = 0
    private var anchors: [Kept] = []
    private var anchorCost = 0
    private let account: MemoryAccount
    private var budget: Int { account.maps }

    /// The readers' table: `ways` words for each hash, each 0 or a `Kept`. A map without room there is found only by `slot`.
    private let table: UnsafeMutablePointer<UInt64>
    /// For each word of the table, 1 if a reader used it since the last pass.
    private let used: UnsafeMutablePointer<UInt32>
    private let mask: Int
    private static let ways = 8
    /// Above the pointer, a word has some bits of the ordinal. They rule out most other ordinals without a read through the pointer.
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
        // Breaks the chains: releasing a long one would recurse as deep as it is long.
        for one in kept.values { one.basis = nil }
        table.deallocate()
        used.deallocate()
    }

    /// The number of cached maps, and their cost in bytes, for tests.
    var count: Int { lock.withLock { kept.count } }
    var memoryInUse: Int { lock.withLock { kept.values.reduce(0) { $0 + $1.cost } } }

    // MARK: Reading

    /// Returns a version's map. The caller holds the store's lock for reading, and uses the map only while it does. `found` reports whether
    /// it is in memory; `root` is nil if it is empty.
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

    /// Returns the map of a version if it is in memory.
    func slot(_ ordinal: UInt32) -> Slot? {
        lock.lock()
        defer { lock.unlock() }
        guard let kept = kept[ordinal] else { return nil }
        kept.wasAskedFor = true
        return kept.slot
    }

    // MARK: Changing

    /// Caches a map that was made by applying `changes` changes to another. Returns the cached map.
    @discardableResult
    package func store(_ ordinal: UInt32, _ root: MapNode?, changes: Int, on behind: Slot) -> Slot {
        let memory = root?.memory(beside: behind.root) ?? 0
        let slot = Slot(
            root: root, replay: behind.replay + changes, overlay: behind.overlay + changes, ordinal: ordinal, flat: behind.flat)
        return store(ordinal, slot, cost: memory, basis: behind.ordinal)
    }

    /// Caches a flat map, which takes little memory but was costly to make. Returns the cached map.
    /// - Parameter persisted: its nodes are those of the persisted map, whose memory is accounted for separately.
    @discardableResult
    func store(_ ordinal: UInt32, flat root: MapNode?, persisted: Bool = false) -> Slot {
        let flat = root?.someFlat, cost = min((root?.count ?? 0) * MapCache.flatCostPerValue, MapCache.mostFlatCost)
        let size = flat.map { persisted ? $0.ownSize : $0.size } ?? 0
        return store(
            ordinal, Slot(root: root, replay: MapPolicy.anchorSpacing, ordinal: ordinal, flat: flat),
            cost: max(cost, size + (root?.memory ?? 0)), basis: nil)
    }

    /// - Parameter basis: the version whose map the cost excludes.
    private func store(_ ordinal: UInt32, _ made: Slot, cost: Int, basis: UInt32?) -> Slot {
        var slot = made
        letGo { gone in
            if let known = kept[ordinal] {
                // Two threads made it at once: the maps are equal.
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

    /// Evicts the oldest maps that were not used since the last pass, several at a time, but never the newest.
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

    /// Returns whether it was used since the last call, and clears that.
    private func takeUse(_ one: Kept) -> Bool {
        var wasUsed = one.wasAskedFor
        one.wasAskedFor = false
        if let at = one.shown, llvs_shim_load_relaxed(used + at) != 0 {
            llvs_shim_store_relaxed(used + at, 0)
            wasUsed = true
        }
        return wasUsed
    }

    /// If the cache is over budget, evicts every second anchor, so that the rest stays evenly spread over the past.
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

    /// Removes a map that is neither recent nor an anchor.
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

    /// Returns whether so much of a map is nodes in memory that it should be flattened.
    func isHeavy(_ slot: Slot) -> Bool {
        slot.root.map {
            MapPolicy.isHeavy(
                overlay: slot.overlay, values: $0.count, memory: $0.memory, budget: account.maps, isRelisted: slot.flat?.count == $0.count)
        } ?? false
    }

    /// Removes all maps. They are rebuilt from the records on demand.
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

    /// Removes the map of a version whose commit failed.
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

    /// Runs `body` under the lock. Maps that it hides and adds to `gone` are released after their readers have left.
    private func letGo(_ body: (inout [Kept]) -> Void) {
        var gone: [Kept] = []
        lock.lock()
        body(&gone)
        lock.unlock()
        withExtendedLifetime(gone) { if !gone.isEmpty { readers.waitForReaders() } }
    }

    // MARK: The readers' table

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
