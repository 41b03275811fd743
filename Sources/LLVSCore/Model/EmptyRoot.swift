/// The empty root: one fixed version, the same everywhere, so that devices that start apart share an ancestor. Virtual until the first save
/// on top of it. Its id and timestamp are part of the format.
public enum EmptyRoot {
    /// `00000000-0000-8000-8000-000000000000`.
    public static let id = VersionID(high: 0x0000_0000_0000_8000, low: 0x8000_0000_0000_0000)
    /// No predecessors, metadata or changes; timestamp 0.
    public static let version = Version(id: id, predecessors: [], timestamp: 0, valueDataSize: 0, metadata: Metadata())
}
