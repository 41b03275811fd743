/// The changes of versions in sequence since a map in memory: deltas.
///
/// A version with few changes gets no map when it is stored: copying the paths to them costs more than storing them, and most versions are
/// never read. A chain looks up ids at each of its versions, in their changes and in the map with which it begins. It also returns the
/// changes from which a map of a version is made. It only grows, so results stay valid. Guarded by the lock of its `DeltaChains`.
///
///     position        0   1   2   3        number of changes before
///     base map · v1: a, b · v2: a · v3: c
final class DeltaChain {
    private struct Change {
        var keyStart: UInt32
        var keyCount: UInt16
        var isThere: Bool
        /// The previous change with the same hash; `none` if there is none.
        var previous: UInt32
        var hash: UInt32
        var entry: MapEntry
    }
    private static let none = UInt32.max

    let base: MapCache.Slot
    private let baseOrdinal: UInt32
    private var ordinals: [UInt32] = []
    /// The number of changes up to each of `ordinals`.
    private var ends: [UInt32] = []
    private var keys = RecordBuffer()
    private var changes: [Change] = []
    /// The last change for each hash. (Open addressing would have to compare keys, as the search in the lists of changes does anyway.)
    private var table: [UInt32] = []
    /// The newest map made from the chain, and its position.
    private var made: (position: Int, slot: MapCache.Slot)?

    init(_ base: MapCache.Slot, of ordinal: UInt32) { self.base = base; baseOrdinal = ordinal }

    /// The last version of the chain.
    var tip: UInt32 { ordinals.last ?? baseOrdinal }
    var position: Int { changes.count }
    /// The approximate bytes of memory.
    var memory: Int { keys.capacity + changes.capacity * MemoryLayout<Change>.stride + 4 * (table.count + 2 * ordinals.capacity) }

    /// The bytes of its maps that were not shared with the map of the next chain when the next chain was begun.
    private(set) var memoryOfMaps = 0
    func weighMaps(beside other: MapNode?) {
        memoryOfMaps = (base.root?.memory(beside: other) ?? 0) + (made?.slot.root?.memory(beside: base.root) ?? 0)
    }

    /// Returns the number of changes up to a version; nil if it is not in the chain.
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

    /// Appends a version. `ordinal` must be higher than all in the chain.
    /// - Throws: `.outOfMemory`. Then some of the changes were appended, but not the version, so they are not found.
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

    /// Returns the last change of a key before `position`; nil if there is none.
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

    /// Returns the nearest map at or before `position`, and the changes since then.
    func changes(before position: Int) -> (from: Int, slot: MapCache.Slot, changes: KeyArena) {
        var from = 0, slot = base
        if let made, made.position <= position { (from, slot) = made }
        var arena = KeyArena()
        for change in changes[from..<position] { arena.append(key(of: change), change.isThere ? change.entry : nil) }
        return (from, slot, arena)
    }

    /// Returns the number of changes since the nearest map at or before `position`.
    func changeCount(before position: Int) -> Int { position - (made.map { $0.position <= position ? $0.position : 0 } ?? 0) }

    /// Stores a map from which those of later positions can be made.
    func keep(_ slot: MapCache.Slot, at position: Int) {
        guard made.map({ $0.position < position }) ?? true else { return }
        made = (position, slot)
    }
}

/// The chains that were extended most recently. Safe from all threads.
package final class DeltaChains: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.maps)
    /// The most recently extended chain is the last.
    private var chains: [DeltaChain] = []
    private let account: MemoryAccount
    /// A chain of this many bytes or more is not extended further.
    private let mostMemory: Int

    init(_ account: MemoryAccount) {
        self.account = account
        mostMemory = MapPolicy.chainMemory(budget: account.total)
    }

    /// The bytes of all chains, and of the maps at their beginnings except the map of the most recently extended chain. `lock` is held.
    private var memory: (deltas: Int, maps: Int) {
        chains.reduce((0, 0)) { ($0.0 + $1.memory, $0.1 + ($1 === chains.last ? 0 : $1.memoryOfMaps)) }
    }

    /// Bytes of all chains, and of the maps that they begin with.
    var memoryInUse: Int { lock.withLock { memory.deltas + memory.maps } }

    /// A lookup at one version of a chain. Its results stay valid.
    package struct View {
        fileprivate let chains: DeltaChains
        fileprivate let chain: DeltaChain
        fileprivate let position: Int

        /// Returns the entry that prevails for a key; nil if there is none.
        func lookup(_ key: UnsafeRawBufferPointer) -> MapEntry? {
            if let change = chains.lock.withLock({ chain.find(key, before: position) }) { return change.entry }
            return chain.base.root?.lookup(key)
        }

        /// The number of changes from which the map would be made.
        var changes: Int { chains.lock.withLock { chain.changeCount(before: position) } }

        /// Returns the map, the map that it was made from, and the number of changes applied to that.
        func map() throws -> (root: MapNode?, from: (slot: MapCache.Slot, changes: Int)) {
            let (_, slot, changes) = chains.lock.withLock { chain.changes(before: position) }
            return (try changes.withChanges(isSorted: false) { try MapNode.applying($0, to: slot.root) }, (slot, changes.count))
        }

        /// Stores the map, so that those of later versions can be made from it.
        func keep(_ slot: MapCache.Slot) { chains.lock.withLock { chain.keep(slot, at: position) } }
    }

    /// Removes all chains. Maps are rebuilt from the records on demand.
    func removeAll() {
        let gone = lock.withLock { () -> [DeltaChain] in
            defer { chains = []; account.note(deltas: 0) }
            return chains
        }
        withExtendedLifetime(gone) {}
    }

    /// Returns a lookup at a version that is in a chain.
    func view(_ ordinal: UInt32) -> View? { lock.withLock { find(ordinal) } }

    /// Returns the same if the chain may be extended.
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

    /// Begins a chain with the map of a version.
    func begin(_ slot: MapCache.Slot, of ordinal: UInt32) -> View {
        lock.withLock {
            let chain = DeltaChain(slot, of: ordinal)
            // Each chain is measured once, since measuring takes time in proportion to the changes of its maps.
            chains.last?.weighMaps(beside: slot.root)
            // Each chain keeps its first map alive. One full chain is retained, for versions just before.
            if let full = chains.firstIndex(where: { !isOpen($0) }), chains[(full + 1)...].contains(where: { !isOpen($0) }) {
                chains.remove(at: full)
            } else if chains.count >= MapPolicy.mostChains {
                chains.removeFirst()
            }
            chains.append(chain)
            // Leave room for the new chain to grow to its limit.
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

    /// Extends a view by a version, unless another version has extended it.
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
