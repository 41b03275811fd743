/// The other side of an exchange: a place that holds version files and changes files by version id, in
/// the interchange format.
///
/// A transport moves bytes. It does not look inside them, does not merge, and does not order: the
/// `Exchange` does. Calls come from one thread at a time. Errors are failures of the transport itself
/// (`.transport`, `.permission`, `.noSpace`, `.io`, `.user`, `.cancelled`): a missing or damaged file is not one.
public protocol ExchangeTransport: AnyObject, Sendable {
    /// For messages: "the folder /x/shared".
    var description: String { get }

    /// The names of all version files on the other side, in any order; foreign names may be among them
    /// (the exchange drops what cannot be a version id).
    func versionNames(_ control: OperationControl) throws -> [String]
    /// The version file of each name, in order; nil where there is none.
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [[UInt8]?]
    /// The changes file of each name, in order; nil where there is none.
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [[UInt8]?]
    /// Publishes the files, in order, the changes of a version before the version; each whole or not at all.
    /// Existing files are replaced.
    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws

    /// Named files of the snapshot area ("manifest.json", "chunk-000", or "<format>/manifest.json"); nil where there is none.
    func readSnapshotFile(_ name: String) throws -> [UInt8]?
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws
    func deleteSnapshotFile(_ name: String) throws
    func snapshotFileNames() throws -> [String]

    /// What the transport wants to find again in a later process; kept by the coordinator. Opaque.
    var restorationState: [UInt8] { get set }

    /// Calls back (on a thread of its own) whenever the other side may have gained versions, until the
    /// observation is cancelled. Nil when the transport cannot tell.
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> ExchangeObservation?
    func close()
}

public struct ExchangeFiles: Sendable {
    public var name: String
    public var version: [UInt8]
    public var changes: [UInt8]
    public init(name: String, version: [UInt8], changes: [UInt8]) {
        self.name = name; self.version = version; self.changes = changes
    }
}

/// A running observation. `cancel` waits for a running callback (except from within one); none comes after.
public protocol ExchangeObservation: AnyObject, Sendable {
    func cancel()
}
