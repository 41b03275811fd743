/// An error of the store: a code for programs, a message for people.
///
/// The message says what was being done to what, and what the user can do. Codes round-trip through the C ABI: their raw values are those
/// of `llvs_status` and never change.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of the error, for programs; the raw value is the `llvs_status`.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }

        // Arguments.
        /// An invalid argument: an unknown constant, a time that is not finite, a text that is not a URL.
        public static let invalidArgument = Code(rawValue: -1)
        /// A value id is empty or longer than 4,096 bytes.
        public static let invalidValueID = Code(rawValue: -2)
        /// A version id is not 1 to 128 of `[A-Za-z0-9_-]`. For versions made here also: the id differs from a known one only by case, or
        /// has the form of a content-derived id without being this version's.
        public static let invalidVersionID = Code(rawValue: -3)
        /// A text is not valid UTF-8.
        public static let invalidUTF8 = Code(rawValue: -4)
        /// A size beyond the limits: a value of more than 1 GiB, a file of more than 4 GiB.
        public static let tooLarge = Code(rawValue: -5)
        /// For the C API: a `struct_size` is too small, or unknown bytes are not zero. Swift programs do not get it.
        public static let structSize = Code(rawValue: -6)
        /// A value id occurs twice in one call.
        public static let duplicateID = Code(rawValue: -7)
        /// The version is not in the store.
        public static let unknownVersion = Code(rawValue: -8)
        /// The predecessor of a new version is not in the store.
        public static let unknownPredecessor = Code(rawValue: -9)
        /// Another version with this id exists already.
        public static let versionMismatch = Code(rawValue: -10)
        /// A preserve names bytes that no ancestor stored.
        public static let invalidReference = Code(rawValue: -11)
        /// A metadata key is empty, too long or not UTF-8; the branch is not a JSON string, or longer than 1 KiB; or the metadata exceeds
        /// 16 MiB in total.
        public static let invalidMetadata = Code(rawValue: -12)
        /// Not possible here: an unknown URL scheme, or observing a transport that does not support it.
        public static let unsupported = Code(rawValue: -13)
        // The place of the store.
        /// The file or directory does not exist. For an open store: its directory was deleted, moved, or replaced by another.
        public static let notFound = Code(rawValue: -20)
        /// The path does not name a store.
        public static let notAStore = Code(rawValue: -21)
        /// The store was written by a newer version of the library; update this one.
        public static let newerFormat = Code(rawValue: -22)
        /// The store was opened for reading only.
        public static let readOnly = Code(rawValue: -23)
        /// The system does not permit it.
        public static let permission = Code(rawValue: -24)
        /// The disk or a quota is full.
        public static let noSpace = Code(rawValue: -25)
        /// A file is where a directory should be.
        public static let notADirectory = Code(rawValue: -26)
        /// The medium failed.
        public static let io = Code(rawValue: -27)
        /// Bytes differ from what was written.
        public static let damaged = Code(rawValue: -28)
        /// A sync failed after the write: the version (`StoreError.versionID`) may or may not exist after a power cut. Making it again
        /// under its id is harmless.
        public static let unknownOutcome = Code(rawValue: -29)
        /// Another process or handle is using the object, or the call comes from within a callback of the same exchange or coordinator.
        public static let busy = Code(rawValue: -30)
        /// The process or the system has too many open files: close some, or raise the limit (`ulimit -n`). Nothing was changed.
        public static let tooManyFiles = Code(rawValue: -31)
        // The life of handles.
        /// The store, exchange or coordinator is closed.
        public static let closed = Code(rawValue: -40)
        /// The handle was created before a fork, and this is the child process: open the store again in it.
        public static let forked = Code(rawValue: -41)
        /// A `CancelToken` was set, or a progress callback returned false. Versions that were added completely remain.
        public static let cancelled = Code(rawValue: -42)
        /// A callback of the host failed through the C API: see `StoreError.userCode`.
        public static let user = Code(rawValue: -43)
        /// There is not enough memory for the call. The store continues to work.
        public static let outOfMemory = Code(rawValue: -44)
        /// A defect of this library.
        public static let `internal` = Code(rawValue: -45)
        // Merging.
        /// An arbiter left a conflicting fork without a change.
        public static let unresolvedConflict = Code(rawValue: -50)
        /// The versions have no common ancestor, and `MergeRelation.related` was requested.
        public static let noCommonAncestor = Code(rawValue: -51)
        // Saving.
        /// The current version is not the one that a save expected. Nothing was stored.
        public static let moved = Code(rawValue: -52)
        // Exchanges and snapshots.
        /// The other side cannot be reached, or does not answer correctly.
        public static let transport = Code(rawValue: -60)
        /// A version file has no changes file beside it: it has not arrived yet, or was removed.
        public static let missingChanges = Code(rawValue: -61)
        /// A predecessor of a version is neither in the store nor at the other side.
        public static let missingPredecessor = Code(rawValue: -62)
        /// A file is not JSON, or its content is invalid for its kind. A truncated file is `cutShort`.
        public static let invalidJSON = Code(rawValue: -63)
        /// The bytes of a value in a changes file are not Base64.
        public static let invalidBase64 = Code(rawValue: -64)
        /// The identifier in a version file differs from the file's name.
        public static let identifierMismatch = Code(rawValue: -65)
        /// The contents of a version do not match its content id. Nothing of it was stored. The genuine version with that id will be
        /// accepted.
        public static let contentMismatch = Code(rawValue: -74)
        /// A changes file without its version file.
        public static let missingVersion = Code(rawValue: -66)
        /// A snapshot cannot be read completely: parts are missing, or do not match its manifest.
        public static let snapshotDamaged = Code(rawValue: -67)
        /// There is no snapshot at that place.
        public static let snapshotMissing = Code(rawValue: -68)
        /// A snapshot can be restored only into a store that is empty or holds one version.
        public static let storeNotEmpty = Code(rawValue: -69)
        /// The snapshot is in another implementation's format.
        public static let foreignSnapshot = Code(rawValue: -70)
        /// A file that is not from this library.
        public static let foreignFile = Code(rawValue: -71)
        /// A file is empty or truncated: it is still in transit, or was cut off.
        public static let cutShort = Code(rawValue: -72)
        /// Another implementation cannot store this value id. The version was sent all the same.
        public static let unportableID = Code(rawValue: -73)
        // Encryption.
        /// The passphrase or identity is not one for which the data was encrypted. Nothing was changed.
        public static let wrongKey = Code(rawValue: -75)
        /// The keys of an encrypted place are missing, or have not arrived yet.
        public static let keyMissing = Code(rawValue: -76)
        /// Keys were renewed twice, by two devices that did not know of each other, or were forged. Review them, and then join them.
        public static let keysForked = Code(rawValue: -77)
        // A remote in packs: problems of an exchange that continues.
        /// The place shows less than before: it was reset to an older state, or emptied and filled again.
        public static let rolledBack = Code(rawValue: -78)
        /// One device has two continuing sequences of packs: its store was copied, or the place shows two states.
        public static let writerForked = Code(rawValue: -79)
        /// The place does not show what another device saw there more than an hour ago.
        public static let withheld = Code(rawValue: -80)
        /// A device announced that the place continues elsewhere (`StoreError.path`).
        public static let placeMoved = Code(rawValue: -81)
        // Received versions: problems of an exchange that continues.
        /// The clock of a device is far ahead. Its versions were accepted all the same.
        public static let clockAhead = Code(rawValue: -82)

        // Values whose bytes are gone by intent. This is no damage.
        /// An order of this device erased the bytes of the value (``Store/erase(_:control:)``).
        public static let erased = Code(rawValue: -83)
        /// The store has the size and the digest of the value, and not its bytes.
        public static let forgotten = Code(rawValue: -84)
    }

    /// The code, for programs.
    public var code: Code
    /// The message for people: what failed on which object, and what they can do. Control characters in names are escaped, so it can be
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
    package var isDamage: Bool { [.damaged, .io, .notFound].contains(self) }

    /// Whether the bytes of a value are gone by intent.
    package var isGone: Bool { self == .forgotten || self == .erased }

    /// Whether a reading error concerns one record or file, and not the call or the process: a verification reports it and continues.
    package var isOfOne: Bool {
        isDamage || [.newerFormat, .permission, .notAStore, .notADirectory, .invalidArgument, .tooLarge].contains(self)
    }
}

extension StoreError {
    /// For errors that are known to be of this library.
    package static func of(_ error: any Error) -> StoreError {
        error as? StoreError ?? StoreError(.internal, "An unexpected error: \(error).")
    }
}
