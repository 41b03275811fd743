/// The other side of an exchange: a place that holds version files and changes files by version id, in
/// the interchange format.
///
/// A transport moves bytes. It does not look inside them, does not merge, and does not order: the
/// `Exchange` does. Calls come from one thread at a time. Errors are failures of the transport itself
/// (`.transport`, `.permission`, `.noSpace`, `.io`, `.user`, `.cancelled`): a missing or damaged file is not one.
public protocol ExchangeTransport: AnyObject, Sendable {
    /// For messages: "the folder /x/shared".
    var description: String { get }

    /// What the other side has. One request, or a few where the service pages.
    func list(_ control: OperationControl) throws -> ExchangeListing
    /// The same for a send, which may come right after a retrieve: what was listed a few seconds ago will do. By default it is listed anew.
    func listToSend(_ control: OperationControl) throws -> ExchangeListing
    /// The version file of each name, in order. May stop early, after at least one, once it has
    /// `ExchangeLimits.batchSize` bytes: the exchange asks again for the rest.
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile]
    /// The changes file of each name, in order. May stop early like `fetchVersions`.
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile]
    /// Publishes the files, in order, the changes of a version before the version; each whole or not at all.
    /// Existing files are replaced. All names are version ids.
    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws
    /// Those of the names, all of them listed, whose version file or changes file is known to be missing,
    /// empty, cut short or unreadable: `Exchange.send` writes them anew. A transport that cannot tell
    /// without fetching returns none, as the default does.
    func unusable(among names: [String], _ control: OperationControl) throws -> [String]

    /// Whether `unusable` has met a version file of the form that we wrote before: then `Exchange.send` asks it about all, once.
    /// False where nobody can tell, as by default.
    var holdsOldForm: Bool { get }

    /// Those which `unusable` found whole, in a state that it had not met before, since this was last asked: what they hold may be
    /// another's, so that `Exchange.send` reads them. None where nobody can tell, as by default.
    func takeChanged() -> [ChangedFiles]

    /// The listed files whose sizes are new, or others than before, since this was last asked, with the sizes that the listing told.
    /// `Exchange.send` reads those that are shorter than they can be. None where listings tell no sizes, as by default.
    func takeListed() -> [ChangedFiles]

    /// Named files of the snapshot area ("manifest.json", "chunk-000", or "<format>/manifest.json"); nil where there is none.
    func readSnapshotFile(_ name: String) throws -> [UInt8]?
    /// Replaces the file, as a whole.
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws
    /// No error when there is none.
    func deleteSnapshotFile(_ name: String) throws
    /// All of them, in any order, those of a sub-folder as "<format>/<name>".
    func snapshotFileNames() throws -> [String]
    /// The same; `control` is looked at on the way, where there may be many. By default it is not.
    func snapshotFileNames(_ control: PacedControl) throws -> [String]

    /// What the transport wants to find again in a later process; kept by the coordinator. Opaque.
    var restorationState: [UInt8] { get set }

    /// Calls back, on a thread of its own, whenever the other side may have gained versions, until the
    /// observation is cancelled. Nil when the transport cannot tell.
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)?
    /// Whether `observe` also tells of what this transport itself sent.
    var hearsItself: Bool { get }
    /// Whether the other side has two files for each version, which another implementation may read, as far as is known without asking
    /// it: then nothing is saved at which that fails (`Exchange.Options.hasNoOtherReaders`). False by default.
    /// - Parameter store: of the exchange.
    func isReadByOthers(_ store: Store) -> Bool
    /// Lets go of what the transport holds. Later calls may throw `.closed`.
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
    public func snapshotFileNames(_ control: PacedControl) throws -> [String] { try snapshotFileNames() }
}

/// The two files of one version, new or written anew.
public struct ChangedFiles: Sendable {
    /// A version id.
    public var name: String
    /// Bytes in each; -1 where that is not known.
    public var versionSize: Int, changesSize: Int
    /// The files of a version id, and how many bytes are in each.
    public init(name: String, versionSize: Int, changesSize: Int) {
        self.name = name
        self.versionSize = versionSize
        self.changesSize = changesSize
    }
}

/// What the other side of an exchange has.
public struct ExchangeListing: Sendable {
    /// Those with a version file, in any order.
    public var versions: [VersionID]
    /// Those with a changes file but no version file, where the transport can tell cheaply.
    public var changesOnly: [VersionID]
    /// Those of `versions` without a changes file, where the transport can tell cheaply: `Exchange.send` writes them anew.
    public var versionsOnly: [VersionID] = []
    /// Names that are no version ids, but for those that syncing programs leave behind; `ExchangeLimits.foreignCount` at most. An exchange
    /// ignores them.
    public private(set) var foreign: [Foreign]
    /// How many more there are.
    public private(set) var furtherForeign = 0
    /// Whether foreign names are problems: in what nobody but the other implementation writes to.
    var reportsForeign = false
    /// Equal in two listings of one transport when no name came or went between them. Nil when that is not known.
    public var mark: UInt64?

    /// A file among those of versions that is none.
    public struct Foreign: Hashable, Sendable {
        /// Where it is.
        public enum Folder: String, Sendable {
            /// Among the version files.
            case versions
            /// Among the changes files.
            case changes
        }
        /// Its name.
        public var name: String
        /// Where it is.
        public var folder: Folder
        /// A file of this name in that folder.
        public init(name: String, folder: Folder) { self.name = name; self.folder = folder }
    }

    /// Sorts out names of version files and of changes files without a version file.
    public init(versions: [String], changesOnly: [String] = []) {
        self.versions = []; self.changesOnly = []; foreign = []
        for name in versions {
            if let id = VersionID(validating: name) { self.versions.append(id) } else { addForeign(name, .versions) }
        }
        for name in changesOnly {
            if let id = VersionID(validating: name) { self.changesOnly.append(id) } else { addForeign(name, .changes) }
        }
    }

    /// Tells apart versions without a changes file, and changes files without a version.
    /// - Parameter withChanges: all that have a changes file.
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

    /// Keeps a name in mind, or how many there are.
    mutating func addForeign(_ name: String, _ folder: Foreign.Folder) {
        if StrayNames.isExpected(name) { return }
        if foreign.count < ExchangeLimits.foreignCount { foreign.append(Foreign(name: name, folder: folder)) } else { furtherForeign += 1 }
    }
}

/// What came of fetching one file.
public enum FetchedFile: Sendable {
    /// There is no such file.
    case missing
    /// All of its bytes.
    case data([UInt8])
    /// There, and large: read when its turn comes, once at most, before anything else is asked of the transport.
    case pieces(any PieceReader)
    /// There, but it cannot be read (a directory, no permission, too large). Becomes a problem of this one version.
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
    /// With a changes file that may come in pieces.
    public init(name: String, version: [UInt8], changes: OutgoingFile) {
        self.name = name; self.version = version; self.changes = changes
    }
    /// With a changes file that is in memory as a whole.
    public init(name: String, version: [UInt8], changes: [UInt8]) {
        self.init(name: name, version: version, changes: OutgoingFile(changes))
    }
}

/// Sizes that exchanges keep to.
public enum ExchangeLimits {
    /// About how many bytes of files travel at once: 5 MB. A larger file travels alone.
    public static let batchSize = 5_000_000
    /// A file of more bytes than this is read and written in pieces by those who can: 1 MiB.
    public static let wholeFileSize = 1 << 20
    /// At so many broken files a retrieve looks again at most while no name came or went, in turn.
    public static let brokenCount = 10_000
    /// The same over a network, whether or not a name came or went; and for versions that wait for others.
    static let retryCount = 32
    /// Files that are asked for at once where each is a request.
    static let requestsAtOnce = 32
    /// How many versions travel at once at most.
    public static let batchCount = 1_000
    /// How many names that are no version ids are told of one by one.
    public static let foreignCount = 1_000
    /// How many problems of a retrieve are told of one by one.
    public static let problemCount = 10_000
    /// How many versions that are here and there `Exchange.send` looks at for unusable files: as many of the newest, and
    /// as many of the others, in turn.
    static let verifiedCount = 500
    /// Bytes in one file: 4 GiB. A larger one is refused unread, and not written.
    public static let fileSize = InterchangeDecoder.largestFile
}
