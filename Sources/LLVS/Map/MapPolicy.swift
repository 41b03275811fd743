/// When ids are looked up one by one, when changes are kept as a delta to a map, and when a map is made: every number that decides it,
/// and the decisions.
///
/// Nothing here has a state or reads anything, so that it is retuned here, held against `MapPolicyTests`, and measured
/// (`Tests/C/costs.txt`, `scripts/bench`).
enum MapPolicy {
    // MARK: Numbers

    /// So few ids are looked up through the history rather than in a map; and a map is made of so few changes rather than looking up.
    static let fewLookups = 16
    /// With more changes than this a version is no delta: its map is made when it is saved, or when somebody asks for it.
    static let longestDelta = 256
    /// A version of so many changes gets its map when somebody asks for it, and that is written as a flat map.
    static let manyChanges = 4_096
    /// So many reads or saves at one version before a map is thought of that takes more changes than `fewLookups`.
    static let manyUses = 64
    /// Changes of a map that cost as much as one use without it: a lookup through the history; the same while saving, where each saved
    /// change is looked up; one in the table of a large version, of which the map is written from the record.
    static let changesPerLookup = 2, changesPerSave = 4, changesPerLargeLookup = 64
    /// Versions that a lookup through the history stops at in vain before a map is made instead.
    static let mostStops = 4_096
    /// So many changes are replayed at most between two anchors, while the budget lasts; and put into a map at once.
    static let anchorSpacing = 1_024
    /// After so many changes the next chain of deltas is begun, with a map: making one of the more changes the less each of them costs,
    /// since they share more of the paths to them, but the longer it takes whoever asks for it.
    static let longestChain = 4_096
    /// More chains of deltas than these are not gone on with at once; nor more runs of saves without a map counted.
    static let mostChains = 16
    /// With more versions and changes than this since two versions met, their maps are compared; and the same where these would
    /// have to be made, which may take far more changes.
    static let mostComparedWithMaps = 4_096, mostComparedWithoutMaps = 16_384
    /// With more versions and changes than this since the base, maps are asked for what the second side of a merge did.
    static let mostOfSecondSide = 65_536
    /// The changes of a version are kept in memory when there are at most so many; of more its record is read again.
    static let longestKeptList = 1_024
    /// The index of the past holds each id of a version with at most so many changes; of one with more it holds that version, into whose
    /// table each question looks. And so many hashes of ids are kept for it at most, of versions with several.
    static let longestIndexed = 1_024, mostIndexed = 1 << 20
    /// So many versions of other branches are looked at in the index of the past before a question is answered without it.
    static let mostIndexTries = 256
    /// Fewer new versions than this are read from their records as fast as from a cache.
    static let fewNewVersions = 1_000

    // MARK: The index of the past

    /// How many of the newest versions need not be in it.
    static func mostUnindexed(versions: Int) -> Int { max(1_024, versions / 64) }

    // MARK: Looking up, or making a map

    /// Whether a count has come to where it is looked at anew: at powers of two, so that deciding costs next to nothing.
    private static func isTurn(_ count: Int) -> Bool { count & (count - 1) == 0 }

    /// Of how many changes at most a map is made for the read at a version that is the `reads`th.
    static func changesWorthAMap(reads: Int) -> Int {
        reads >= manyUses && isTurn(reads) ? reads * changesPerLookup : fewLookups
    }

    /// The same for a save on a version, which is the last of `saves` that were saved one upon the other without a map; nil: of none.
    static func changesWorthAMap(saves: Int) -> Int? {
        saves >= manyUses && isTurn(saves) ? saves * changesPerSave : nil
    }

    /// The same for the `reads`th lookup in a large version; nil: of none.
    static func changesWorthAMap(largeReads reads: Int) -> Int? {
        isTurn(reads) ? reads * changesPerLargeLookup : nil
    }

    /// Whether a map of at most `limit` changes may be one that lies in the caches, which takes a look over all of it, once.
    static func mayBePersisted(limit: Int) -> Bool { limit > manyUses }

    /// How far back two versions may have met for their recorded changes to be compared rather than their maps.
    static func mostCompared(mapsAreHere: Bool) -> Int { mapsAreHere ? mostComparedWithMaps : mostComparedWithoutMaps }

    /// Whether what the second side of a merge recorded is looked at version by version.
    static func looksAtEach(versions: Int, changes: Int) -> Bool { versions == 1 || versions + changes <= mostOfSecondSide }

    // MARK: Keeping what was saved

    /// What becomes of the map of a version while it is saved.
    enum Keeping { case delta, map, nothing }

    static func keeping(changes: Int) -> Keeping {
        changes > longestDelta ? (changes < manyChanges ? .map : .nothing) : .delta
    }

    /// Bytes that a chain of deltas may take before the next is begun.
    static func chainMemory(budget: Int) -> Int { max(32 << 10, min(1 << 20, budget / 64)) }

    // MARK: Making a map

    /// Of how many versions one upon the other the map is written as a flat map, from their records and the map before them, rather than
    /// made in memory; 0: of none.
    /// - Parameters:
    ///   - changes: of each version that is to come, of which those are counted that have many.
    ///   - values: of the map before.
    ///   - memory: bytes that maps may take; what is put into one in memory takes some of them for each change.
    static func versionsWrittenFlat(changes: some Sequence<Int>, onto values: Int, memory: Int) -> Int {
        var versions = 0, sum = 0
        for count in changes {
            guard count >= manyChanges, versions < mostMergedRecords else { break }
            versions += 1
            sum += count
        }
        return sum >= values / 8 || sum > memory / memoryPerChange ? versions : 0
    }
    /// Records that are read at once while a map is written.
    private static let mostMergedRecords = 64
    /// Bytes that a change takes, about, while it is put into a map in memory.
    static let memoryPerChange = 128

    // MARK: Many ids

    /// Changes of a version that are learned of, for each change that is saved on it, to know which ids are new without a map.
    static func mostLearned(toSave changes: Int) -> Int { changes < manyChanges ? 0 : 4 * changes }

    /// Ids of a save that may be there already and are looked for one by one before a map is made.
    static func mostLookedFor(toSave changes: Int) -> Int { max(1_024, changes / 32) }

    /// How many changes go into a map at once on a way of so many versions; behind each such stretch there is a map to start from. What it
    /// takes is counted only when it is made, so that it has to go into what is set aside for that.
    /// - Parameters:
    ///   - values: of the map before. Of few, many changes share the leaves that they copy.
    ///   - reserve: bytes for what is made meanwhile.
    static func stretch(versions: Int, values: Int, reserve: Int) -> Int {
        let most = values > reserve / memoryPerValue ? reserve / memoryPerCopy : Int.max
        return max(anchorSpacing, min(most, versions / 32))
    }
    /// Bytes that a value takes in a map in memory, about; and that a change copies, which is a leaf and the nodes above it.
    private static let memoryPerValue = 128, memoryPerCopy = 4_096

    /// Whether so much of a map is nodes in memory that it had better be a flat one. Writing one costs by all values, so as many
    /// changes come first as will pay for it, unless that would be too much memory.
    /// - Parameters:
    ///   - overlay: changes since the flat map that it builds on.
    ///   - memory: bytes of its nodes.
    ///   - budget: of the cache of maps.
    ///   - isRelisted: entries alone are written, 16 bytes of each value, which is much less work.
    static func isHeavy(overlay: Int, values: Int, memory: Int, budget: Int, isRelisted: Bool = false) -> Bool {
        guard memory > budget / 2 else { return false }
        return isRelisted ? overlay >= anchorSpacing : overlay >= max(anchorSpacing, values / 8) || memory > budget / 3 * 4
    }

    // MARK: Writing caches

    /// Whether the caches are written when a store closes.
    /// - Parameters:
    ///   - new: versions that they do not know.
    ///   - known: those that they know.
    ///   - isOutdated: files that they name are gone.
    static func cachesPay(new: Int, known: Int, isOutdated: Bool) -> Bool {
        new >= max(fewNewVersions, known / 16) || (isOutdated && new + known >= fewNewVersions)
    }

    /// Values that may differ from the persisted map for the difference to be written beside it, rather than the map anew.
    static func mostPatched(values: Int) -> Int { values / 2 }
}
