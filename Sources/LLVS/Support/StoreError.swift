/// An error of the store: a code for programs, a message for people.
///
/// The message says what was being done to what, and what the user can do. Codes round-trip through the C ABI: their raw values are those
/// of `llvs_status` and never change.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What went wrong, for programs; the raw value is the `llvs_status`.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }

        // What the caller handed in.
        /// An argument that cannot be: an unknown constant, a time that is not finite, a URL that is none.
        public static let invalidArgument = Code(rawValue: -1)
        /// A value id is empty or longer than 4,096 bytes.
        public static let invalidValueID = Code(rawValue: -2)
        /// A version id is not 1 to 128 of `[A-Za-z0-9_-]`; when made here, also one that differs from a known one by case only, and one
        /// that has the form of those that are computed from what versions hold and is not this one's.
        public static let invalidVersionID = Code(rawValue: -3)
        /// A text is not valid UTF-8.
        public static let invalidUTF8 = Code(rawValue: -4)
        /// A size beyond the limits: a value of more than 1 GiB, a file of more than 4 GiB.
        public static let tooLarge = Code(rawValue: -5)
        /// Of the C API: a `struct_size` too small, or unknown bytes that are not zero. Swift programs do not meet it.
        public static let structSize = Code(rawValue: -6)
        /// One value id twice in one call.
        public static let duplicateID = Code(rawValue: -7)
        /// No such version in the store.
        public static let unknownVersion = Code(rawValue: -8)
        /// The predecessor of a new version is not in the store.
        public static let unknownPredecessor = Code(rawValue: -9)
        /// Another version with this id is there already.
        public static let versionMismatch = Code(rawValue: -10)
        /// A preserve names what no ancestor stored.
        public static let invalidReference = Code(rawValue: -11)
        /// A metadata key is empty, too long or not UTF-8, the branch is no JSON string or longer than 1 KiB, or all
        /// together is over 16 MiB.
        public static let invalidMetadata = Code(rawValue: -12)
        /// Not possible here: a scheme of URLs that is not built in, an observation of a transport that cannot tell.
        public static let unsupported = Code(rawValue: -13)
        // Where the store rests.
        /// No such file or directory; or that of an open store is gone: deleted, moved, or replaced by another.
        public static let notFound = Code(rawValue: -20)
        /// Something else is there than a store.
        public static let notAStore = Code(rawValue: -21)
        /// The store was written by a newer version of the library; update this one.
        public static let newerFormat = Code(rawValue: -22)
        /// The store was opened for reading only.
        public static let readOnly = Code(rawValue: -23)
        /// The system does not let us.
        public static let permission = Code(rawValue: -24)
        /// The disk or a quota is full.
        public static let noSpace = Code(rawValue: -25)
        /// A file is where a directory should be.
        public static let notADirectory = Code(rawValue: -26)
        /// The medium failed.
        public static let io = Code(rawValue: -27)
        /// Bytes are not what was written.
        public static let damaged = Code(rawValue: -28)
        /// A sync failed after the write: the version (`StoreError.versionID`) may or may not be there after a power cut. Making it
        /// again under its id is harmless.
        public static let unknownOutcome = Code(rawValue: -29)
        /// Another process or handle holds it, or the call comes from within a callback of the same exchange or coordinator.
        public static let busy = Code(rawValue: -30)
        /// The process or the system has too many open files: close some, or raise the limit (`ulimit -n`). Nothing was changed.
        public static let tooManyFiles = Code(rawValue: -31)
        // The life of handles.
        /// The store, exchange or coordinator was closed before.
        public static let closed = Code(rawValue: -40)
        /// The handle was made before a fork, and this is the child: open the store anew there.
        public static let forked = Code(rawValue: -41)
        /// A `CancelToken` was set, or a progress callback answered false. What had been added whole is kept.
        public static let cancelled = Code(rawValue: -42)
        /// A callback of the host failed through the C API: see `StoreError.userCode`.
        public static let user = Code(rawValue: -43)
        /// There is not enough memory for what was asked; the store goes on working.
        public static let outOfMemory = Code(rawValue: -44)
        /// A defect of this library.
        public static let `internal` = Code(rawValue: -45)
        // Merging.
        /// An arbiter left a conflicting fork without a change.
        public static let unresolvedConflict = Code(rawValue: -50)
        /// The versions share no ancestor, and `MergeRelation.related` was asked for.
        public static let noCommonAncestor = Code(rawValue: -51)
        // Saving.
        /// Another version is current than the one that a save expected; nothing was stored.
        public static let moved = Code(rawValue: -52)
        // Exchanges and snapshots.
        /// The other side cannot be reached or does not answer as it should.
        public static let transport = Code(rawValue: -60)
        /// A version file has no changes file beside it, yet or any more.
        public static let missingChanges = Code(rawValue: -61)
        /// A version builds on one that is neither here nor there.
        public static let missingPredecessor = Code(rawValue: -62)
        /// A file is no JSON, or says something else than a file of its kind. One that merely ends too early is `cutShort`.
        public static let invalidJSON = Code(rawValue: -63)
        /// The bytes of a value in a changes file are not Base64.
        public static let invalidBase64 = Code(rawValue: -64)
        /// The identifier in a version file is not the name of the file.
        public static let identifierMismatch = Code(rawValue: -65)
        /// A version is not what its id says. Nothing of it was taken; the genuine version of that id is, when it comes.
        public static let contentMismatch = Code(rawValue: -74)
        /// A changes file without its version file.
        public static let missingVersion = Code(rawValue: -66)
        /// A snapshot cannot be read as a whole: parts are missing, or are not what its manifest says.
        public static let snapshotDamaged = Code(rawValue: -67)
        /// There is no snapshot in that place.
        public static let snapshotMissing = Code(rawValue: -68)
        /// A snapshot can be restored only into a store that is empty or holds one version.
        public static let storeNotEmpty = Code(rawValue: -69)
        /// The snapshot is in another implementation's format.
        public static let foreignSnapshot = Code(rawValue: -70)
        /// A file that is none of ours.
        public static let foreignFile = Code(rawValue: -71)
        /// A file is empty or ends too early: it is still on its way, or was cut short.
        public static let cutShort = Code(rawValue: -72)
        /// A value id that another implementation cannot hold; the version was sent all the same.
        public static let unportableID = Code(rawValue: -73)
        // Encryption.
        /// A passphrase or identity is another one than that for which something was encrypted. Nothing was changed.
        public static let wrongKey = Code(rawValue: -75)
        /// The keys of what is encrypted are not there, or not yet.
        public static let keyMissing = Code(rawValue: -76)
        /// Keys were renewed twice, by two that did not know of each other, or somebody forged them: they are to be joined, or looked at.
        public static let keysForked = Code(rawValue: -77)
        // Of a remote in packs; problems of an exchange, which goes on.
        /// The place shows less than it did: it was set back to an older state, or emptied and filled anew.
        public static let rolledBack = Code(rawValue: -78)
        /// Two rows of packs of one device go on beside each other: its store was copied, or the place shows two states.
        public static let writerForked = Code(rawValue: -79)
        /// The place does not show what another device has seen there more than an hour ago.
        public static let withheld = Code(rawValue: -80)
        /// A device says that the place goes on elsewhere (`StoreError.path`).
        public static let placeMoved = Code(rawValue: -81)
        // Of what came in: a problem of an exchange, which goes on.
        /// The clock of a device is far ahead; its versions were taken all the same.
        public static let clockAhead = Code(rawValue: -82)
    }

    /// The code, for programs.
    public var code: Code
    /// The message, for people: what was being done to what, and what they can do. Control characters in names are escaped, so it can be
    /// logged as it is.
    public var message: String { didSet { message = PrintableText.escaping(message) } }
    /// The bytes of the value id concerned, if there is one.
    package var valueIDBytes: [UInt8]?
    /// The version id concerned, if there is one. It is a text, since it may be invalid.
    public var versionID: String?
    /// The file or directory concerned, if there is one.
    public var path: String?
    /// The system's error number (`errno`) if a system call failed; else 0.
    public var systemCode: Int32 = 0
    /// The seconds for which a server asked to be left alone.
    package var retryAfter: Double?
    /// A circumstance of an exchange's error beside its code, for the status of a syncer. `oneFile`: it is about one file and stops
    /// nothing else. `needsUser`: only a person can resolve it, by a password, a consent or a payment.
    package enum Circumstance: Equatable, Sendable { case remoteReset, alreadyRunning, oneFile, needsUser }
    package var circumstance: Circumstance?
    /// The same error, marked as one that only a person can resolve.
    package var needingUser: StoreError {
        var error = self
        error.circumstance = .needsUser
        return error
    }
    /// The HTTP status of a server's answer, if there was one; else 0.
    public var httpStatus: Int32 = 0
    /// Whether a service reports its own failure in an answer, whatever the status.
    package var isFailureOfService = false
    /// For `.user`: the token that a callback of the host returned, unchanged.
    public var userCode: Int64 = 0

    /// Creates an error with a message in plain sentences. Control characters in it are escaped.
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
    /// Whether a reading error means that the bytes are gone or changed.
    var isDamage: Bool { [.damaged, .io, .notFound].contains(self) }

    /// Whether a reading error concerns one record or file, and not the call or the process: a verification reports it and continues.
    var isOfOne: Bool {
        isDamage || [.newerFormat, .permission, .notAStore, .notADirectory, .invalidArgument, .tooLarge].contains(self)
    }
}
