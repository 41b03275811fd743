/// What a salvage wrote, and what is lost.
public struct SalvageReport: Sendable {
    /// Versions written as they were, under their own ids, with all their ancestry.
    public var versions: UInt64 = 0
    /// Versions written as they were that build on lost ones: they wait in the new store, and appear by themselves once an
    /// exchange has brought those.
    public var waiting: UInt64 = 0
    /// Versions made by the salvage, each from what could be read of a line of versions that cannot be in the new store as they were.
    public var made: [Made] = []
    /// What is not as it was written, and what is missing.
    public var damages: [StorageDamage] = []
    /// Whether all that was there is in the new store, as it was, and nobody can doubt that it is all.
    public var isWhole: Bool { waiting == 0 && made.isEmpty && damages.allSatisfy { $0.lost == .nothing } }

    /// A version made by the salvage. Its metadata has the entry `Salvage.metadataKey`.
    public struct Made: Hashable, Sendable {
        /// The newest version whose changes are in it.
        public var original: VersionID
        /// The one that was made.
        public var version: VersionID
        /// Whether its state is exactly that of `original`. If not, it has the newest values that could be read: what lost
        /// versions changed, and lost values, are as they were before or missing.
        public var isComplete: Bool
    }
    /// Of a salvage that has found nothing yet.
    public init() {}
}
