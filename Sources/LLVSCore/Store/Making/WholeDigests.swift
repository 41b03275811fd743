/// Caches the digests of records with the same id during a scan. Any number of records may have the same id, and each is compared with
/// the prevailing one, so each digest is computed once.
///
/// Used under the commit lock.
final class WholeDigests: @unchecked Sendable {
    // Sendable: the commit lock is held.
    /// The inner value is nil if the record is damaged.
    private var known: [RecordPlace: [UInt8]?] = [:]
    private static let limit = 4_096

    func of(_ place: RecordPlace, _ compute: (RecordPlace) throws -> [UInt8]?) throws -> [UInt8]? {
        if let known = known[place] { return known }
        let digest = try compute(place)
        // The prevailing record is looked up each time, so its digest soon returns to the cache.
        if known.count >= WholeDigests.limit { known = [:] }
        known[place] = .some(digest)
        return digest
    }

    func forget() { known = [:] }
}
