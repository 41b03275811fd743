/// The other side of an exchange: a place that holds version files and changes files by version id, in the interchange format.
///
/// A transport moves bytes. It does not look inside them, does not merge, and does not order: the `Exchange` does. Calls come from one
/// thread at a time. Errors are failures of the transport itself (`.transport`, `.permission`, `.noSpace`, `.io`, `.user`, `.cancelled`): a
/// missing or damaged file is not one.
public protocol ExchangeTransport: AnyObject, Sendable {
    /// For messages: "the folder /x/shared".
    var description: String { get }

    /// Lists what the other side has, with one request, or a few if the service pages.
    func list(_ control: OperationControl) throws -> ExchangeListing
    /// Lists for a send, which may come right after a retrieve: a listing a few seconds old is enough. The default lists again.
    func listToSend(_ control: OperationControl) throws -> ExchangeListing
    /// Returns the version file of each name, in order. May stop early, after at least one, once it has `ExchangeLimits.batchSize` bytes:
    /// the exchange requests the rest in further calls.
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile]
    /// Returns the changes file of each name, in order. May stop early like `fetchVersions`.
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile]
    /// Publishes the files, in order, the changes of a version before the version; each whole or not at all. Replaces existing files. All
    /// names are version ids.
    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws
    /// Returns those of the names, all of them listed, whose version file or changes file is known to be missing, empty, cut short or
    /// unreadable: `Exchange.send` rewrites them. A transport that would have to fetch the files to find that out returns none, which is
    /// the default.
    func unusable(among names: [String], _ control: OperationControl) throws -> [String]

    /// Whether `unusable` has met a version file of the old form: then `Exchange.send` passes it all names, once. False by default, and if
    /// the transport does not know.
    var holdsOldForm: Bool { get }

    /// Returns the files that `unusable` found whole, in a state that it had not met before, since the last call. They may hold another
    /// version, so `Exchange.send` reads them. None by default, and if the transport does not know.
    func takeChanged() -> [ChangedFiles]

    /// Returns the listed files whose sizes are new or have changed since the last call, with the listed sizes. `Exchange.send` reads those
    /// that are too short to be whole. None by default, and if listings have no sizes.
    func takeListed() -> [ChangedFiles]

    /// Returns a file of the snapshot area ("manifest.json", "chunk-000", or "<format>/manifest.json"); nil if it is missing.
    func readSnapshotFile(_ name: String) throws -> [UInt8]?
    /// Replaces the file as a whole.
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws
    /// Removes the file. A missing file is no error.
    func deleteSnapshotFile(_ name: String) throws
    /// Returns all names, in any order; those in a sub-folder as "<format>/<name>".
    func snapshotFileNames() throws -> [String]

    /// The state that the transport needs in a later process; the coordinator saves it. Opaque.
    var restorationState: [UInt8] { get set }

    /// Calls back, on a thread of its own, whenever the other side may have gained versions, until the observation is cancelled. Returns
    /// nil if the transport cannot report changes.
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)?
    /// Whether `observe` also reports what this transport itself sent.
    var hearsItself: Bool { get }
    /// Whether the other side has two files for each version, which another implementation may read; determined without a request. If so,
    /// the store refuses to save what makes that implementation fail (`Exchange.Options.hasNoOtherReaders`). False by default.
    /// - Parameter store: the store of the exchange.
    func isReadByOthers(_ store: Store) -> Bool
    /// Releases the transport's resources. Later calls may throw `.closed`.
    func close()
}

extension ExchangeTransport {
    public func listToSend(_ control: OperationControl) throws -> ExchangeListing { try list(control) }
    public var hearsItself: Bool { false }
    public func isReadByOthers(_ store: Store) -> Bool { false }
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] { [] }
    public var holdsOldForm: Bool { false }
    public func takeChanged() -> [ChangedFiles] { [] }
    public func takeListed() -> [ChangedFiles] { [] }
    /// Returns the names of the snapshot area. A transport that may have many of them checks `control` on the way.
    package func snapshotFileNames(_ control: PacedControl) throws -> [String] {
        if let self = self as? any PacedTransport { return try self.snapshotFileNames(control) }
        return try snapshotFileNames()
    }
}

/// A transport that lists its snapshot area in steps.
package protocol PacedTransport: ExchangeTransport {
    /// Returns the names, and checks `control` on the way, since there may be many.
    func snapshotFileNames(_ control: PacedControl) throws -> [String]
}

/// The two files of one version, new or rewritten.
public struct ChangedFiles: Sendable {
    /// A version id.
    public var name: String
    /// Bytes in each; -1 if unknown.
    public var versionSize: Int, changesSize: Int
    /// The files of a version id, with their sizes.
    public init(name: String, versionSize: Int, changesSize: Int) {
        self.name = name
        self.versionSize = versionSize
        self.changesSize = changesSize
    }
}

/// A listing of the other side of an exchange.
public struct ExchangeListing: Sendable {
    /// The versions with a version file, in any order.
    public var versions: [VersionID]
    /// The versions with a changes file but no version file, if the transport can determine them cheaply.
    public var changesOnly: [VersionID]
    /// The versions in `versions` that have no changes file, if the transport can determine them cheaply. `Exchange.send` rewrites them.
    public var versionsOnly: [VersionID] = []
    /// Names that are no version ids, except those that syncing programs leave behind; at most `ExchangeLimits.foreignCount`. An exchange
    /// ignores them.
    public private(set) var foreign: [Foreign]
    /// The number of foreign names beyond those.
    public private(set) var furtherForeign = 0
    /// Whether foreign names are problems: in a place to which only the other implementation writes.
    package var reportsForeign = false
    /// Equal in two listings of one transport if no name came or went between them. Nil if that is unknown.
    public var mark: UInt64?

    /// A file in a folder of versions or changes whose name is no version id.
    public struct Foreign: Hashable, Sendable {
        /// The folder that it is in.
        public enum Folder: String, Sendable {
            /// Among the version files.
            case versions
            /// Among the changes files.
            case changes
        }
        /// Its name.
        public var name: String
        /// The folder that it is in.
        public var folder: Folder
        /// A file of this name in that folder.
        public init(name: String, folder: Folder) { self.name = name; self.folder = folder }
    }

    /// Sorts the names of version files, and of changes files without a version file, into versions and foreign names.
    public init(versions: [String], changesOnly: [String] = []) {
        self.versions = []; self.changesOnly = []; foreign = []
        for name in versions {
            if let id = VersionID(validating: name) { self.versions.append(id) } else { addForeign(name, .versions) }
        }
        for name in changesOnly {
            if let id = VersionID(validating: name) { self.changesOnly.append(id) } else { addForeign(name, .changes) }
        }
    }

    /// Sets `versionsOnly` and `changesOnly`.
    /// - Parameter withChanges: all versions with a changes file.
    mutating func setApart(_ withChanges: [VersionID], _ control: PacedControl) throws {
        func those(of ids: [VersionID], notIn others: [VersionID]) throws -> [VersionID] {
            var known = Set<VersionID>(minimumCapacity: others.count)
            for id in others { try control.step(0); known.insert(id) }
            return try ids.filter {
                try control.step(0); return !known.contains($0)
            }
        }
        versionsOnly = try those(of: versions, notIn: withChanges)
        if versions.count - versionsOnly.count != withChanges.count { changesOnly = try those(of: withChanges, notIn: versions) }
    }

    /// Adds a foreign name, or counts it if there are many.
    mutating func addForeign(_ name: String, _ folder: Foreign.Folder) {
        if StrayNames.isExpected(name) { return }
        if foreign.count < ExchangeLimits.foreignCount { foreign.append(Foreign(name: name, folder: folder)) } else { furtherForeign += 1 }
    }
}

/// The result of fetching one file.
public enum FetchedFile: Sendable {
    /// There is no such file.
    case missing
    /// All of its bytes.
    case data([UInt8])
    /// The file exists and is large. The exchange reads it when its turn comes, at most once, before it calls the transport again.
    case pieces(any PieceReader)
    /// The file exists but cannot be read (a directory, no permission, too large). Becomes a problem of this one version.
    case unreadable(StoreError)
}

/// The two files of one version.
public struct ExchangeFiles: Sendable {
    /// The version's id.
    public var name: String
    /// The version file.
    public var version: [UInt8]
    /// The changes file.
    public var changes: OutgoingFile
    /// The files of a version, with a changes file that may come in pieces.
    public init(name: String, version: [UInt8], changes: OutgoingFile) {
        self.name = name; self.version = version; self.changes = changes
    }
    /// The files of a version, with a changes file that is whole in memory.
    public init(name: String, version: [UInt8], changes: [UInt8]) {
        self.init(name: name, version: version, changes: OutgoingFile(changes))
    }
}

/// The limits of exchanges.
public enum ExchangeLimits {
    /// About how many bytes of files travel in one batch: 5 MB. A larger file travels alone.
    public static let batchSize = 5_000_000
    /// The size above which a file is read and written in pieces, if the transport can: 1 MiB.
    public static let wholeFileSize = 1 << 20
    /// The most broken files that a retrieve retries, in turn, while no name came or went.
    public static let brokenCount = 10_000
    /// The most broken files that a retrieve retries over a network, whether or not a name came or went, and the most versions that wait
    /// for others and are tried again.
    static let retryCount = 32
    /// The most files requested at once if each is a request.
    static let requestsAtOnce = 32
    /// The most versions in one batch.
    public static let batchCount = 1_000
    /// The most foreign names that a listing holds; the rest are counted.
    public static let foreignCount = 1_000
    /// The most problems that a retrieve reports; the rest are counted.
    public static let problemCount = 10_000
    /// `Exchange.send` checks this many of the newest versions on both sides for unusable files, and this many of the other versions, in
    /// turn.
    static let verifiedCount = 500
    /// The most bytes in one file: 4 GiB. A larger one is refused unread, and is not written.
    public static let fileSize = InterchangeDecoder.largestFile
}
