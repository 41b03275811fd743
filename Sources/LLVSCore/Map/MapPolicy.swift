/// Decides when ids are looked up one by one, when changes are stored as a delta to a map, and when a map is made. Holds every number on
/// which that depends.
///
/// It has no state and reads nothing. So it can be retuned, tested with `MapPolicyTests`, and measured (`Tests/C/costs.txt`,
/// `scripts/bench`).
package enum MapPolicy {
    // MARK: Numbers

    /// Up to this many ids are looked up through the history instead of a map. A map that takes at most this many changes is made instead
    /// of lookups.
    static let fewLookups = 16
    /// A version with more changes is no delta: its map is made when it is saved, or on demand.
    static let longestDelta = 256
    /// The map of a version with this many changes is made on demand, and written as a flat map.
    static let manyChanges = 4_096
    /// After this many reads or saves at one version, a map that takes more changes than `fewLookups` is considered.
    package static let manyUses = 64
    /// How many changes of a map cost as much as one lookup without the map: through the history; while saving, when each saved change is
    /// looked up; in the table of a large version, when the map is written from the record.
    static let changesPerLookup = 2, changesPerSave = 4, changesPerLargeLookup = 64
    /// The most versions at which a lookup through the history stops in vain before a map is made instead.
    static let mostStops = 4_096
    /// The most changes to replay between two anchors, while the budget lasts; also the most changes applied to a map at once.
    static let anchorSpacing = 1_024
    /// After this many changes the next chain of deltas is begun, with a map. A map of more changes costs less per change, since they share
    /// more of the paths, but the caller waits longer for it.
    static let longestChain = 4_096
    /// The most chains of deltas that can be extended, and the most runs of saves without a map that are counted.
    static let mostChains = 16
    /// If more versions and changes than this lie between two versions and their common ancestor, their maps are compared instead of the
    /// recorded changes. The second number applies if the maps would have to be made, which may take far more changes.
    package static let mostComparedWithMaps = 4_096, mostComparedWithoutMaps = 16_384
    /// If more versions and changes than this follow the base, the changes of the second side of a merge are found by comparing maps.
    static let mostOfSecondSide = 65_536
    /// The most changes of a version that are held in memory. The record of a larger version is read again.
    package static let longestKeptList = 1_024
    /// The index of the past holds each id of a version with at most this many changes. A larger version is listed as a whole, and each
    /// lookup searches its table. The second number is the most hashes held for versions with several changes.
    static let longestIndexed = 1_024, mostIndexed = 1 << 20
    /// The most versions of other branches to check in the index of the past; then the lookup is done without it.
    static let mostIndexTries = 256
    /// Fewer new versions are read from their records as fast as from a cache.
    static let fewNewVersions = 1_000

    // MARK: The index of the past

    /// Returns how many of the newest versions may be missing from it.
    static func mostUnindexed(versions: Int) -> Int { max(1_024, versions / 64) }

    // MARK: Looking up, or making a map

    /// Returns whether to reconsider at this count: at powers of two, so that deciding costs next to nothing.
    private static func isTurn(_ count: Int) -> Bool { count & (count - 1) == 0 }

    /// Returns the most changes for which a map is made at the `reads`th read at a version.
    static func changesWorthAMap(reads: Int) -> Int {
        reads >= manyUses && isTurn(reads) ? reads * changesPerLookup : fewLookups
    }

    /// Returns the same for a save on a version that is the last of `saves` versions saved in sequence without a map; nil: no map is made.
    static func changesWorthAMap(saves: Int) -> Int? {
        saves >= manyUses && isTurn(saves) ? saves * changesPerSave : nil
    }

    /// Returns the same for the `reads`th lookup in a large version; nil: no map is made.
    static func changesWorthAMap(largeReads reads: Int) -> Int? {
        isTurn(reads) ? reads * changesPerLargeLookup : nil
    }

    /// Returns whether a map of at most `limit` changes may come from the caches, which takes one check of all of it.
    static func mayBePersisted(limit: Int) -> Bool { limit > manyUses }

    /// Returns how far back the common ancestor of two versions may be for comparing recorded changes instead of maps.
    static func mostCompared(mapsAreHere: Bool) -> Int { mapsAreHere ? mostComparedWithMaps : mostComparedWithoutMaps }

    /// Returns whether the changes of the second side of a merge are read version by version.
    package static func looksAtEach(versions: Int, changes: Int) -> Bool { versions == 1 || versions + changes <= mostOfSecondSide }

    // MARK: Saving

    /// The treatment of a version's map when it is saved.
    enum Keeping { case delta, map, nothing }

    static func keeping(changes: Int) -> Keeping {
        changes > longestDelta ? (changes < manyChanges ? .map : .nothing) : .delta
    }

    /// Returns the bytes of a chain of deltas after which the next is begun.
    static func chainMemory(budget: Int) -> Int { max(32 << 10, min(1 << 20, budget / 64)) }

    // MARK: Making a map

    /// Returns for how many successive versions one flat map is written, from their records and the map before, instead of maps in memory;
    /// 0: none.
    /// - Parameters:
    ///   - changes: the number of changes of each following version. Versions count while they have many.
    ///   - values: the number of values in the map before.
    ///   - memory: the bytes that maps may take. Each change that is applied in memory takes some of them.
    static func versionsWrittenFlat(changes: some Sequence<Int>, onto values: Int, memory: Int) -> Int {
        var versions = 0, sum = 0
        for count in changes {
            guard count >= manyChanges, versions < mostMergedRecords else { break }
            versions += 1
            sum += count
        }
        return sum >= values / 8 || sum > memory / memoryPerChange ? versions : 0
    }
    /// The most records that are read at once while a map is written.
    private static let mostMergedRecords = 64
    /// The approximate bytes of a change while it is applied to a map in memory.
    static let memoryPerChange = 128

    // MARK: Many ids

    /// Returns how many changes of earlier versions may be read, for saving `changes` changes, to find out without a map which ids are new.
    static func mostLearned(toSave changes: Int) -> Int { changes < manyChanges ? 0 : 4 * changes }

    /// Returns how many possibly existing ids of a save are looked up one by one before a map is made.
    static func mostLookedFor(toSave changes: Int) -> Int { max(1_024, changes / 32) }

    /// Returns how many changes are applied at once along a chain of this many versions. After each such stretch a map is cached. Its
    /// memory is accounted for only afterwards, so it must fit the reserve.
    /// - Parameters:
    ///   - values: in the map before. If they are few, many changes share the leaves that they copy.
    ///   - reserve: bytes reserved for maps under construction.
    static func stretch(versions: Int, values: Int, reserve: Int) -> Int {
        let most = values > reserve / memoryPerValue ? reserve / memoryPerCopy : Int.max
        return max(anchorSpacing, min(most, versions / 32))
    }
    /// The approximate bytes of a value in a map in memory, and of the nodes copied by a change: a leaf and its ancestors.
    private static let memoryPerValue = 128, memoryPerCopy = 4_096

    /// Returns whether so much of a map is nodes in memory that it should be flattened. That costs in proportion to all values, so it is
    /// postponed until enough changes pay for it, unless that takes too much memory.
    /// - Parameters:
    ///   - overlay: changes since the flat map that it builds on.
    ///   - memory: bytes of its nodes.
    ///   - budget: the budget of the cache of maps.
    ///   - isRelisted: only entries are written, 16 bytes per value, which is much less work.
    static func isHeavy(overlay: Int, values: Int, memory: Int, budget: Int, isRelisted: Bool = false) -> Bool {
        guard memory > budget / 2 else { return false }
        return isRelisted ? overlay >= anchorSpacing : overlay >= max(anchorSpacing, values / 8) || memory > budget / 3 * 4
    }

    // MARK: Writing caches

    /// Returns whether to write the caches when a store closes.
    /// - Parameters:
    ///   - new: the number of versions that they lack.
    ///   - known: the number of versions that they have.
    ///   - isOutdated: whether files that they name are missing.
    static func cachesPay(new: Int, known: Int, isOutdated: Bool) -> Bool {
        new >= max(fewNewVersions, known / 16) || (isOutdated && new + known >= fewNewVersions)
    }

    /// Returns how many values may differ from the persisted map for writing a patch instead of a new map.
    static func mostPatched(values: Int) -> Int { values / 2 }
}
