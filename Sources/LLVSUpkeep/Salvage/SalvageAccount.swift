/// Limits what a salvage writes, in proportion to what the damaged store has: docs/defences.md, "One account for each source". A record can
/// name a large value under any number of ids, and each copy takes space of its own in the new store.
final class SalvageAccount {
    private let account: SourceAccount
    private var blobs: Set<BlobID> = []
    /// The large values that were copied, by their old files and their digests: later names of one share its copy.
    var copies: [CopiedBlob: WrittenValue] = [:]
    /// A large value, by its file and by what a change says of it.
    struct CopiedBlob: Hashable {
        let blob: BlobID, size: Int, digest: [UInt8]
        /// Nil if the change names no large value.
        init?(_ entry: RecordTable.Entry) {
            guard let blob = entry.blob, let digest = entry.digest else { return nil }
            (self.blob, size, self.digest) = (blob, entry.size, Array(digest))
        }
    }
    /// The bytes of the damaged store, and those that were written.
    private var came: UInt64 = 0, written: UInt64 = 0
    /// The number of values that were left out, and their bytes.
    private var values = 0, left: UInt64 = 0
    /// The most bytes of values that one version may hold in memory at once, besides its record. A version with more is made again, in
    /// parts.
    static let mostInMemory: UInt64 = 1 << 30

    init(_ account: SourceAccount = SourceAccount()) { self.account = account }

    /// Counts the bytes of a record of the damaged store.
    func came(_ record: SalvageIndex.Record) { came(record.place.length) }
    /// Counts the bytes of a large value, once.
    func came(_ blob: BlobID, _ size: Int) { if blobs.insert(blob).inserted { came(UInt64(max(0, size))) } }
    private func came(_ bytes: UInt64) {
        came = SourceAccount.sum(came, bytes)
        account.came(Int(clamping: bytes))
    }

    /// Returns whether a record may be rewritten, and counts it.
    /// - Parameter hasBlobs: whether the new store has files for large values, of which each is copied once.
    func admits(_ record: SalvageIndex.Record, hasBlobs: Bool) -> Bool {
        let inBlobs = hasBlobs ? 0 : record.inBlobs
        let inMemory = SourceAccount.sum(SourceAccount.sum(record.differences, record.inRecord), inBlobs)
        guard inMemory <= SourceAccount.sum(SalvageAccount.mostInMemory, record.place.length) else { return false }
        guard account.spend(SourceAccount.sum(inBlobs, record.inRecord)) else { return false }
        guard record.differences == 0 || account.spend(differences: record.differences) else { return false }
        written = SourceAccount.sum(written, inMemory)
        return true
    }

    /// Returns whether a value may be written, and counts it, or that it was left out.
    func admits(_ size: Int, isDifference: Bool) -> Bool {
        let bytes = UInt64(max(0, size))
        guard isDifference ? account.spend(differences: bytes) : account.spend(bytes) else {
            values += 1
            left = SourceAccount.sum(left, bytes)
            return false
        }
        written = SourceAccount.sum(written, bytes)
        return true
    }

    /// Returns the single report of everything that was left out; nil if nothing was.
    /// - Parameter source: the damaged store in messages.
    func report(_ source: String) -> StorageDamage? {
        guard values > 0 else { return nil }
        return StorageDamage(
            file: source, offset: 0,
            message:
                "\(values) values of \(source) were not brought over, since they take far more than the store has: \(written) bytes were "
                + "written, these would take \(left) more, and \(came) are there. The store may have been made to fill a disk. Keep "
                + "it, and read from it what is needed.",
            lost: .value)
    }
}
