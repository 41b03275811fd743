/// What the caches told when a store was opened, and whether they are true.
struct KnownCaches {
    /// Versions that they know, and rows of the history that came from them.
    var versions = 0, rows = 0
    /// A verification has found that they are not what the records say: no others are made of what they said.
    var areWrong = false
    /// Files that they name were put together or removed since: the next caches are shorter.
    var areOutdated = false
}

/// What a store has met that cannot be read.
struct Findings {
    private static let most = 10_000
    /// Records that a version could not be read from, and versions of one id that differ.
    private(set) var damages: [StorageDamage] = []
    /// Those noted so far, so that none is told twice.
    private var known: Set<StorageDamage> = []
    /// Versions of which a newer version of the library made the record.
    var newerVersions: Set<VersionID> = []

    mutating func note(_ damage: StorageDamage) {
        if damages.count < Findings.most, known.insert(damage).inserted { damages.append(damage) }
    }
}

/// What is known while records are read for the first time. Used under the commit lock.
final class Scanned: @unchecked Sendable {
    // Sendable: the commit lock is held.
    let digests = WholeDigests()
    /// While opening: where all records are, should a second reading be needed.
    var places: [RecordPlace] = []
}
