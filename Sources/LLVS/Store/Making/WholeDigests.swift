/// The digests of the records that claim one id, each computed once for as long as a scan lasts: any number of records may claim
/// one, and each is compared with the one that prevails so far.
///
/// Used under the commit lock.
final class WholeDigests: @unchecked Sendable {
    // Sendable: the commit lock is held.
    /// Nil within: the record is damaged.
    private var known: [RecordPlace: [UInt8]?] = [:]
    private static let limit = 4_096

    func of(_ place: RecordPlace, _ compute: (RecordPlace) throws -> [UInt8]?) throws -> [UInt8]? {
        if let known = known[place] { return known }
        let digest = try compute(place)
        // The one that prevails is asked for each time: it comes back at once.
        if known.count >= WholeDigests.limit { known = [:] }
        known[place] = .some(digest)
        return digest
    }

    func forget() { known = [:] }
}
