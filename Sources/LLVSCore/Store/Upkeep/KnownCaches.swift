/// The contents of the caches when a store was opened, and whether they are right.
package struct KnownCaches {
    /// The number of their versions, and of the rows of the history that came from them.
    package var versions = 0, rows = 0
    /// Whether a verification found that they differ from the records. Then no new caches are derived from them.
    var areWrong = false
    /// Whether files that they name were compacted or removed since. Then new caches are shorter.
    var areOutdated = false
}

/// The damage that a store has found.
struct Findings {
    private static let most = 10_000
    /// Records from which a version could not be read, and differing versions with the same id.
    private(set) var damages: [StorageDamage] = []
    /// The damages noted so far, so that none is reported twice.
    private var known: Set<StorageDamage> = []
    /// Versions whose record was made by a newer version of the library.
    var newerVersions: Set<VersionID> = []

    mutating func note(_ damage: StorageDamage) {
        if damages.count < Findings.most, known.insert(damage).inserted { damages.append(damage) }
    }
}

/// The state while records are read for the first time. Used under the commit lock.
final class Scanned: @unchecked Sendable {
    // Sendable: the commit lock is held.
    let digests = WholeDigests()
    /// While opening: the places of all records, in case they must be read again.
    var places: [RecordPlace] = []
    /// Whether records may still be reported, so that one which cannot be read may be found at another place.
    var isReporting = false
}
