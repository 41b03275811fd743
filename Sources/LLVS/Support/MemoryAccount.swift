import CLLVSShims

/// Who may take how much of a store's memory budget. What is kept between calls and grows with what a store holds, beside the history
/// itself, has a share here, and the shares add up to the budget. The table "Caches and indexes" in ARCHITECTURE.md says what is in each,
/// and names the small things with a bound of their own.
///
/// The share of the maps is what the others leave: deltas, known ids, the trees of indexes, the index of the past and the persisted map
/// tell how much they take, and maps make room.
final class MemoryAccount: Sendable {
    /// The budget.
    let total: Int
    /// For blocks of values.
    let blocks: Int
    /// For what versions recorded; an eighth of that besides for telling where it lies.
    let changeLists: Int
    /// For each of the two collections of tables of changes.
    let changeTables: Int
    /// What is made meanwhile, the buffers that are kept for the next save, and what the allocator holds back.
    let reserve: Int
    /// For all chains of deltas, and for the maps that they keep beside those of the cache.
    let deltas: Int, mapsOfDeltas: Int
    /// For knowing which ids there are while much is loaded, and for the trees of all indexes.
    let knownIDs: Int, indexes: Int
    /// Of what the index of the past and the tables beside it take, so much comes out of the share of the maps. What is above that grows
    /// with the history and counts as a part of it.
    let keyHistory: Int
    /// For values on which others stand as differences, at most: out of the share of the maps, as far as it is taken.
    let bases: Int
    /// Of the last five, what is taken.
    private let taken = AtomicCount(), takenForIDs = AtomicCount(), takenByIndexes = AtomicCount(), takenByKeyHistory = AtomicCount()
    /// What bases of differences take.
    private let takenByBases = AtomicCount()
    /// And what the persisted map takes, where it is read into memory: `mostOfOneMap` at most.
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

    /// For maps alone.
    init(maps: Int) {
        total = maps
        (blocks, changeLists, changeTables, reserve, deltas, mapsOfDeltas) = (0, 0, 0, 0, maps / 16, maps / 16)
        (knownIDs, indexes, keyHistory, bases) = (0, 0, 0, 0)
        mostMaps = max(1 << 20, maps)
    }

    /// For maps, while there is nothing of what makes them give way.
    let mostMaps: Int
    /// For maps, as of now.
    var maps: Int {
        let others =
            taken.value + takenForIDs.value + takenByIndexes.value + takenByKeyHistory.value + takenByPersisted.value + takenByBases.value
        return max(1 << 20, mostMaps - others)
    }
    /// Chains of deltas take so much now, with their maps.
    func note(deltas: Int) { taken.value = deltas }
    /// Trees of indexes take so much now.
    func note(indexes: Int) { takenByIndexes.value = indexes }
    /// The index of the past and the tables of the history beside it take so much now.
    func note(keyHistory: Int) { takenByKeyHistory.value = min(keyHistory, self.keyHistory) }
    /// Bases of differences take so much now.
    func note(bases: Int) { takenByBases.value = bases }
    /// The persisted map takes so much now.
    func note(persistedMap: Int) { takenByPersisted.value = persistedMap }
    /// Known ids take so much now.
    func note(knownIDs: Int) { takenForIDs.value = knownIDs }

    /// A persisted map of more bytes than this is not read into memory, but mapped.
    var mostOfOneMap: Int { mostMaps / 3 }
}

/// A number that any thread may read and write.
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
