/// The result of a salvage: what it wrote, and what is lost.
public struct SalvageReport: Sendable {
    /// Versions copied under their own ids, with all their ancestry.
    public var versions: UInt64 = 0
    /// Copied versions that build on lost ones: they are pending in the new store, and appear once an exchange has brought those.
    public var waiting: UInt64 = 0
    /// New versions, each made from the readable changes of a line of versions that could not be copied.
    public var made: [Made] = []
    /// The damaged and the missing data.
    public var damages: [StorageDamage] = []
    /// Whether the new store certainly has all data of the damaged one, unchanged.
    public var isWhole: Bool { waiting == 0 && made.isEmpty && damages.allSatisfy { $0.lost == .nothing } }

    /// A version made by the salvage. Its metadata has the entry `Salvage.metadataKey`.
    public struct Made: Hashable, Sendable {
        /// The newest version whose changes it contains.
        public var original: VersionID
        /// The id of the new version.
        public var version: VersionID
        /// Whether its state is exactly that of `original`. If not, it has the newest values that could be read: values that were lost, or
        /// that lost versions changed, have older bytes or are missing.
        public var isComplete: Bool
    }
    /// An empty report.
    public init() {}
}
