/// The limits of `semantics`: what a store can hold. All external data is checked against them before memory is reserved for it.
public enum Limits {
    /// Bytes in a value id.
    public static let valueIDSize = 4_096
    /// Characters in a version id.
    public static let versionIDSize = 128
    /// Bytes in a value: 1 GiB.
    public static let valueSize = 1 << 30
    /// Changes in one version.
    public static let changesPerVersion = 1 << 24
    /// Bytes of one version's metadata, keys and values together: 16 MiB.
    public static let metadataSize = 16 << 20
    /// Bytes in the branch name of a version that is made here: 1 KiB.
    public static let branchNameSize = 1_024
    /// Keys in the metadata of a version that is made here or received.
    public static let metadataKeys = 1 << 16
    /// Bytes in a metadata key.
    public static let metadataKeySize = 4_096
}
