/// An error of the store: a code for programs, a message for people.
///
/// The message says what was being done to what, and what can be done about it. Codes round-trip
/// through the C ABI: their raw values are those of `llvs_status` and are pinned for ever.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What went wrong, for programs; the raw value is the `llvs_status`.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }

        // What the caller handed in.
        public static let invalidArgument = Code(rawValue: -1)
        public static let invalidValueID = Code(rawValue: -2)
        public static let invalidVersionID = Code(rawValue: -3)
        public static let invalidUTF8 = Code(rawValue: -4)
        public static let tooLarge = Code(rawValue: -5)
        public static let structSize = Code(rawValue: -6)
        public static let duplicateID = Code(rawValue: -7)
        public static let unknownVersion = Code(rawValue: -8)
        public static let unknownPredecessor = Code(rawValue: -9)
        public static let versionMismatch = Code(rawValue: -10)
        public static let invalidReference = Code(rawValue: -11)
        public static let invalidMetadata = Code(rawValue: -12)
        public static let unsupported = Code(rawValue: -13)
        // Where the store rests.
        public static let notFound = Code(rawValue: -20)
        public static let notAStore = Code(rawValue: -21)
        public static let newerFormat = Code(rawValue: -22)
        public static let readOnly = Code(rawValue: -23)
        public static let permission = Code(rawValue: -24)
        public static let noSpace = Code(rawValue: -25)
        public static let notADirectory = Code(rawValue: -26)
        public static let io = Code(rawValue: -27)
        public static let damaged = Code(rawValue: -28)
        public static let unknownOutcome = Code(rawValue: -29)
        public static let busy = Code(rawValue: -30)
        public static let tooManyFiles = Code(rawValue: -31)
        // The life of handles.
        public static let closed = Code(rawValue: -40)
        public static let forked = Code(rawValue: -41)
        public static let cancelled = Code(rawValue: -42)
        public static let user = Code(rawValue: -43)
        public static let outOfMemory = Code(rawValue: -44)
        public static let `internal` = Code(rawValue: -45)
        // Merging.
        public static let unresolvedConflict = Code(rawValue: -50)
        public static let noCommonAncestor = Code(rawValue: -51)
        // Saving.
        public static let moved = Code(rawValue: -52)
        // Exchanges and snapshots.
        public static let transport = Code(rawValue: -60)
        public static let missingChanges = Code(rawValue: -61)
        public static let missingPredecessor = Code(rawValue: -62)
        public static let invalidJSON = Code(rawValue: -63)
        public static let invalidBase64 = Code(rawValue: -64)
        public static let identifierMismatch = Code(rawValue: -65)
        public static let contentMismatch = Code(rawValue: -74)
        public static let missingVersion = Code(rawValue: -66)
        public static let snapshotDamaged = Code(rawValue: -67)
        public static let snapshotMissing = Code(rawValue: -68)
        public static let storeNotEmpty = Code(rawValue: -69)
        public static let foreignSnapshot = Code(rawValue: -70)
        public static let foreignFile = Code(rawValue: -71)
        public static let cutShort = Code(rawValue: -72)
        public static let unportableID = Code(rawValue: -73)
    }

    /// For programs.
    public var code: Code
    /// For people: what was being done to what, and what can be done. Control characters in names are written out: it can be logged as it is.
    public var message: String { didSet { message = PrintableText.escaping(message) } }
    /// The bytes of the value id concerned, where there is one.
    package var valueIDBytes: [UInt8]?
    /// The version id concerned, where there is one; as text, since it may be an unacceptable one.
    public var versionID: String?
    /// The file or directory concerned, where there is one.
    public var path: String?
    /// The system's own number (`errno`) for why a call of it failed, where one did; else 0.
    public var systemCode: Int32 = 0
    /// For `.user`: the token that a callback of the host gave, handed back unchanged.
    public var userCode: Int64 = 0

    public init(_ code: Code, _ message: String, versionID: String? = nil, path: String? = nil, systemCode: Int32 = 0) {
        self.code = code
        self.message = PrintableText.escaping(message)
        self.versionID = versionID
        self.path = path
        self.systemCode = systemCode
    }

    public var description: String { message }
}

extension StoreError.Code {
    /// Whether a failure to read tells that the bytes are not there any more, or not what they were.
    var isDamage: Bool { [.damaged, .io, .notFound].contains(self) }

    /// Whether a failure to read is of one record or file, and not of the call or of the process: a verification tells of it and goes on.
    var isOfOne: Bool {
        isDamage || [.newerFormat, .permission, .notAStore, .notADirectory, .invalidArgument, .tooLarge].contains(self)
    }
}
