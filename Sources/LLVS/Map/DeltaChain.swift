/// What the versions of one chain changed since a map that is in memory, one version after another: deltas.
///
/// A version of few changes gets no map while it is stored: copying the paths to them costs more than storing them, and
/// most versions are never read. A chain answers what prevails at each of its versions, from their changes and the map
/// that it begins with, and hands the changes to whoever makes a map of one. It only ever grows, so what was found once
/// stays true. Guarded by the lock of the `DeltaChains` that it belongs to.
///
///     position        0   1   2   3        number of changes before
///     base map · v1: a, b · v2: a · v3: c
final class DeltaChain {
    private struct Change {
        var keyStart: UInt32
        var keyCount: UInt16
        var isThere: Bool
        /// The one before under the same hash; `none` when there is none.
        var previous: UInt32
        var hash: UInt32
        var entry: MapEntry
    }
    private static let none = UInt32.max

    let base: MapCache.Slot
    private let baseOrdinal: UInt32
    private var ordinals: [UInt32] = []
    /// How many changes there are up to each of `ordinals`.
    private var ends: [UInt32] = []
    private var keys = RecordBuffer()
    private var changes: [Change] = []
    /// The last change under each hash; open addressing would have to compare keys, chains of changes do it anyway.
    private var table: [UInt32] = []
    /// The map made last, and at which position.
    private var made: (position: Int, slot: MapCache.Slot)?

    init(_ base: MapCache.Slot, of ordinal: UInt32) { self.base = base; baseOrdinal = ordinal }

    /// The version that it is at.
    var tip: UInt32 { ordinals.last ?? baseOrdinal }
    var position: Int { changes.count }
    /// Bytes of memory, about.
    var memory: Int { keys.capacity + changes.capacity * MemoryLayout<Change>.stride + 4 * (table.count + 2 * ordinals.capacity) }

    /// Bytes of its maps that the map of a chain begun after it does not share, as of then.
    private(set) var memoryOfMaps = 0
    func weighMaps(beside other: MapNode?) {
        memoryOfMaps = (base.root?.memory(beside: other) ?? 0) + (made?.slot.root?.memory(beside: base.root) ?? 0)
    }

    /// How many changes lead to a version; nil when it is not in the chain.
    func position(of ordinal: UInt32) -> Int? {
        if ordinal == tip { return changes.count }
        if ordinal == baseOrdinal { return 0 }
        var low = 0, high = ordinals.count
        while low < high {
            let middle = (low + high) >> 1
            if ordinals[middle] < ordinal { low = middle + 1 } else { high = middle }
        }
        return low < ordinals.count && ordinals[low] == ordinal ? Int(ends[low]) : nil
    }

    /// Goes on by a version. `ordinal` is above all that are here.
    /// - Throws: `.outOfMemory`; then some of the changes are here, but the version is not, and nobody finds them.
    func append(_ ordinal: UInt32, _ more: [MapChange]) throws {
        for change in more {
            try keys.reserve(change.key.count)
            if changes.count >= table.count { grow() }
            let hash = Bytes.crc32c(change.key)
            let slot = Int(hash) & (table.count - 1)
            changes.append(
                Change(
                    keyStart: UInt32(truncatingIfNeeded: keys.count), keyCount: UInt16(truncatingIfNeeded: change.key.count),
                    isThere: change.entry != nil,
                    previous: table[slot], hash: hash, entry: change.entry ?? MapEntry(version: 0, size: 0, bodyOffset: 0)))
            keys.raw(change.key)
            table[slot] = UInt32(truncatingIfNeeded: changes.count - 1)
        }
        ordinals.append(ordinal)
        ends.append(UInt32(truncatingIfNeeded: changes.count))
    }

    private func grow() {
        table = Array(repeating: DeltaChain.none, count: max(16, 2 * table.count))
        for i in changes.indices {
            let slot = Int(changes[i].hash) & (table.count - 1)
            changes[i].previous = table[slot]
            table[slot] = UInt32(truncatingIfNeeded: i)
        }
    }

    /// What the last change of a key before `position` made of it; nil when none was of that key.
    func find(_ key: UnsafeRawBufferPointer, before position: Int) -> MapChange? {
        guard !table.isEmpty else { return nil }
        let hash = Bytes.crc32c(key)
        var at = table[Int(hash) & (table.count - 1)]
        while at != DeltaChain.none {
            let change = changes[Int(at)]
            if Int(at) < position, change.hash == hash, Bytes.equal(self.key(of: change), key) {
                return MapChange(key: key, entry: change.isThere ? change.entry : nil)
            }
            at = change.previous
        }
        return nil
    }

    private func key(of change: Change) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: keys.bytes[Int(change.keyStart)..<Int(change.keyStart) + Int(change.keyCount)])
    }

    /// The nearest map at or before `position`, and the changes from there on.
    func changes(before position: Int) -> (from: Int, slot: MapCache.Slot, changes: KeyArena) {
        var from = 0, slot = base
        if let made, made.position <= position { (from, slot) = made }
        var arena = KeyArena()
        for change in changes[from..<position] { arena.append(key(of: change), change.isThere ? change.entry : nil) }
        return (from, slot, arena)
    }

    /// How many changes there are since the nearest map at or before `position`.
    func changeCount(before position: Int) -> Int { position - (made.map { $0.position <= position ? $0.position : 0 } ?? 0) }

    /// Keeps a map for those of later positions to be made from.
    func keep(_ slot: MapCache.Slot, at position: Int) {
        guard made.map({ $0.position < position }) ?? true else { return }
        made = (position, slot)
    }
}

/// The chains that versions were added to last. Safe from all threads.
final class DeltaChains: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.maps)
    /// The one gone on with last is the last.
    private var chains: [DeltaChain] = []
    private let account: MemoryAccount
    /// Bytes of one chain after which the next is begun.
    private let mostMemory: Int

    init(_ account: MemoryAccount) {
        self.account = account
        mostMemory = MapPolicy.chainMemory(budget: account.total)
    }

    /// Bytes of all chains, and of the maps that they begin with, but for those of the one gone on with last; `lock` is held.
    private var memory: (deltas: Int, maps: Int) {
        chains.reduce((0, 0)) { ($0.0 + $1.memory, $0.1 + ($1 === chains.last ? 0 : $1.memoryOfMaps)) }
    }

    /// Bytes of all chains, and of the maps that they begin with.
    var memoryInUse: Int { lock.withLock { memory.deltas + memory.maps } }

    /// What prevails at one version of a chain: what it answers stays true.
    struct View {
        fileprivate let chains: DeltaChains
        fileprivate let chain: DeltaChain
        fileprivate let position: Int

        /// What prevails for a key; nil when nothing does.
        func lookup(_ key: UnsafeRawBufferPointer) -> MapEntry? {
            if let change = chains.lock.withLock({ chain.find(key, before: position) }) { return change.entry }
            return chain.base.root?.lookup(key)
        }

        /// How many changes the map would be made of.
        var changes: Int { chains.lock.withLock { chain.changeCount(before: position) } }

        /// The map, and what it was made of: a map that was there, and so many changes.
        func map() throws -> (root: MapNode?, from: (slot: MapCache.Slot, changes: Int)) {
            let (_, slot, changes) = chains.lock.withLock { chain.changes(before: position) }
            return (try changes.withChanges(isSorted: false) { try MapNode.applying($0, to: slot.root) }, (slot, changes.count))
        }

        /// Keeps the map, for those of later versions to be made from.
        func keep(_ slot: MapCache.Slot) { chains.lock.withLock { chain.keep(slot, at: position) } }
    }

    /// Forgets all: maps are made again from the records when they are asked for.
    func removeAll() {
        let gone = lock.withLock { () -> [DeltaChain] in
            defer { chains = []; account.note(deltas: 0) }
            return chains
        }
        withExtendedLifetime(gone) {}
    }

    /// A version that is in a chain.
    func view(_ ordinal: UInt32) -> View? { lock.withLock { find(ordinal) } }

    /// The same, if the chain may be gone on with.
    func openView(_ ordinal: UInt32) -> View? {
        lock.withLock {
            guard let view = find(ordinal), isOpen(view.chain) else { return nil }
            return view
        }
    }
    private func isOpen(_ chain: DeltaChain) -> Bool { chain.position < MapPolicy.longestChain && chain.memory < mostMemory }

    private func find(_ ordinal: UInt32) -> View? {
        var i = chains.count - 1
        while i >= 0 {
            if let position = chains[i].position(of: ordinal) { return View(chains: self, chain: chains[i], position: position) }
            i -= 1
        }
        return nil
    }

    /// A new chain, which begins with the map of a version.
    func begin(_ slot: MapCache.Slot, of ordinal: UInt32) -> View {
        lock.withLock {
            let chain = DeltaChain(slot, of: ordinal)
            // Weighed once each: it takes as long as their maps have changes.
            chains.last?.weighMaps(beside: slot.root)
            // Each keeps the map alive that it begins with. Of those that are full one stays, for what was just before.
            if let full = chains.firstIndex(where: { !isOpen($0) }), chains[(full + 1)...].contains(where: { !isOpen($0) }) {
                chains.remove(at: full)
            } else if chains.count >= MapPolicy.mostChains {
                chains.removeFirst()
            }
            chains.append(chain)
            // The new one may come to take as much as one may.
            while chains.count > 1 {
                let memory = memory
                guard memory.maps > account.mapsOfDeltas || memory.deltas + mostMemory > account.deltas else { break }
                chains.removeFirst()
            }
            let memory = memory
            account.note(deltas: memory.deltas + memory.maps + mostMemory)
            return View(chains: self, chain: chain, position: 0)
        }
    }

    /// Goes on from a view by a version, unless another has done so.
    func append(_ ordinal: UInt32, _ changes: [MapChange], to view: View) {
        lock.withLock {
            guard view.chain.position == view.position, ordinal > view.chain.tip, let i = chains.lastIndex(where: { $0 === view.chain })
            else {
                return
            }
            do { try view.chain.append(ordinal, changes) } catch { chains.remove(at: i); return }
            if i < chains.count - 1 { chains.append(chains.remove(at: i)) }
        }
    }
}
