import CLLVSShims

/// Divides a store's memory budget. Each cache that lives between calls and grows with the contents of the store, except the history
/// itself, has a share, and the shares add up to the budget. The table "Caches and indexes" in ARCHITECTURE.md describes each, and names
/// small caches with bounds of their own.
///
/// The maps get the rest: deltas, known ids, the trees of indexes, the index of the past and the persisted map report how much they use,
/// and maps make room.
package final class MemoryAccount: Sendable {
    /// The budget.
    let total: Int
    /// The share of blocks of values.
    let blocks: Int
    /// The share of recorded changes. Finding them takes an eighth of it in addition.
    let changeLists: Int
    /// The share of each of the two collections of tables of changes.
    let changeTables: Int
    /// The share of temporary memory: of calls, of buffers for the next save, and of the allocator.
    let reserve: Int
    /// The shares of all delta chains, and of the maps that they hold outside the cache.
    let deltas: Int, mapsOfDeltas: Int
    /// The shares of known ids during large loads, and of the trees of all indexes.
    package let knownIDs: Int, indexes: Int
    /// The part of the index of the past, and of the tables beside it, that is taken from the share of the maps. Memory beyond it grows
    /// with the history and counts as a part of that.
    let keyHistory: Int
    /// The most for bases of differences. What they use is subtracted from the share of the maps.
    let bases: Int
    /// The used parts of the last five.
    private let taken = AtomicCount(), takenForIDs = AtomicCount(), takenByIndexes = AtomicCount(), takenByKeyHistory = AtomicCount()
    /// The used part for bases of differences.
    private let takenByBases = AtomicCount()
    /// The size of the persisted map if it is in memory: `mostOfOneMap` at most.
    private let takenByPersisted = AtomicCount()

    init(total: Int) {
        self.total = total
        blocks = total / 2
        changeLists = min(8 << 20, total / 8)
        changeTables = min(1 << 20, total / 64)
        reserve = total / 16
        deltas = total / 16
        mapsOfDeltas = total / 16
        knownIDs = total / 4
        indexes = total / 8
        keyHistory = total / 16
        bases = total / 16
        mostMaps = max(1 << 20, total - blocks - changeLists - changeLists / 8 - 2 * changeTables - reserve)
    }

    /// Creates an account for maps alone.
    init(maps: Int) {
        total = maps
        (blocks, changeLists, changeTables, reserve, deltas, mapsOfDeltas) = (0, 0, 0, 0, maps / 16, maps / 16)
        (knownIDs, indexes, keyHistory, bases) = (0, 0, 0, 0)
        mostMaps = max(1 << 20, maps)
    }

    /// The share of maps if nothing else uses it.
    let mostMaps: Int
    /// The present share of maps.
    var maps: Int {
        let others =
            taken.value + takenForIDs.value + takenByIndexes.value + takenByKeyHistory.value + takenByPersisted.value + takenByBases.value
        return max(1 << 20, mostMaps - others)
    }
    /// Records the size of the chains of deltas, with their maps.
    func note(deltas: Int) { taken.value = deltas }
    /// Records the size of the trees of indexes.
    package func note(indexes: Int) { takenByIndexes.value = indexes }
    /// Records the size of the index of the past and of the tables beside it.
    func note(keyHistory: Int) { takenByKeyHistory.value = min(keyHistory, self.keyHistory) }
    /// Records the size of bases of differences.
    func note(bases: Int) { takenByBases.value = bases }
    /// Records the size of the persisted map.
    func note(persistedMap: Int) { takenByPersisted.value = persistedMap }
    /// Records the size of known ids.
    func note(knownIDs: Int) { takenForIDs.value = knownIDs }

    /// The largest persisted map that is read into memory; larger ones are mapped.
    var mostOfOneMap: Int { mostMaps / 3 }
}

/// A number that any thread may read and write atomically.
final class AtomicCount: @unchecked Sendable {
    // Sendable: it is read and written atomically.
    private let word: UnsafeMutablePointer<UInt64>
    init() { word = .allocate(capacity: 1); word.initialize(to: 0) }
    deinit { word.deallocate() }
    var value: Int {
        get { Int(truncatingIfNeeded: llvs_shim_load_word(word)) }
        set { llvs_shim_store_word(word, UInt64(truncatingIfNeeded: newValue)) }
    }
}
