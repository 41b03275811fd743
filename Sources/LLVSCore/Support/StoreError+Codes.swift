extension StoreError.Code: CustomStringConvertible {
    /// The name of the code, `notFound`; its number if this library knows none with it.
    public var description: String {
        switch self {
        case .invalidArgument: "invalidArgument"
        case .invalidValueID: "invalidValueID"
        case .invalidVersionID: "invalidVersionID"
        case .invalidUTF8: "invalidUTF8"
        case .tooLarge: "tooLarge"
        case .structSize: "structSize"
        case .duplicateID: "duplicateID"
        case .unknownVersion: "unknownVersion"
        case .unknownPredecessor: "unknownPredecessor"
        case .versionMismatch: "versionMismatch"
        case .invalidReference: "invalidReference"
        case .invalidMetadata: "invalidMetadata"
        case .unsupported: "unsupported"
        case .notFound: "notFound"
        case .notAStore: "notAStore"
        case .newerFormat: "newerFormat"
        case .readOnly: "readOnly"
        case .permission: "permission"
        case .noSpace: "noSpace"
        case .notADirectory: "notADirectory"
        case .io: "io"
        case .damaged: "damaged"
        case .unknownOutcome: "unknownOutcome"
        case .busy: "busy"
        case .tooManyFiles: "tooManyFiles"
        case .closed: "closed"
        case .forked: "forked"
        case .cancelled: "cancelled"
        case .user: "user"
        case .outOfMemory: "outOfMemory"
        case .`internal`: "internal"
        case .unresolvedConflict: "unresolvedConflict"
        case .noCommonAncestor: "noCommonAncestor"
        case .moved: "moved"
        case .transport: "transport"
        case .missingChanges: "missingChanges"
        case .missingPredecessor: "missingPredecessor"
        case .invalidJSON: "invalidJSON"
        case .invalidBase64: "invalidBase64"
        case .identifierMismatch: "identifierMismatch"
        case .contentMismatch: "contentMismatch"
        case .missingVersion: "missingVersion"
        case .snapshotDamaged: "snapshotDamaged"
        case .snapshotMissing: "snapshotMissing"
        case .storeNotEmpty: "storeNotEmpty"
        case .foreignSnapshot: "foreignSnapshot"
        case .foreignFile: "foreignFile"
        case .cutShort: "cutShort"
        case .unportableID: "unportableID"
        case .wrongKey: "wrongKey"
        case .keyMissing: "keyMissing"
        case .keysForked: "keysForked"
        case .rolledBack: "rolledBack"
        case .writerForked: "writerForked"
        case .withheld: "withheld"
        case .placeMoved: "placeMoved"
        case .clockAhead: "clockAhead"
        case .erased: "erased"
        case .forgotten: "forgotten"
        default: "code \(rawValue)"
        }
    }

    /// Matches errors by their code in patterns: `catch StoreError.notFound`.
    public static func ~= (code: Self, error: any Error) -> Bool { (error as? StoreError)?.code == code }
}

// Codes as patterns and arguments: `StoreError.notFound`.
extension StoreError {
    /// See ``Code/invalidArgument``.
    public static var invalidArgument: Code { .invalidArgument }
    /// See ``Code/invalidValueID``.
    public static var invalidValueID: Code { .invalidValueID }
    /// See ``Code/invalidVersionID``.
    public static var invalidVersionID: Code { .invalidVersionID }
    /// See ``Code/invalidUTF8``.
    public static var invalidUTF8: Code { .invalidUTF8 }
    /// See ``Code/tooLarge``.
    public static var tooLarge: Code { .tooLarge }
    /// See ``Code/structSize``.
    public static var structSize: Code { .structSize }
    /// See ``Code/duplicateID``.
    public static var duplicateID: Code { .duplicateID }
    /// See ``Code/unknownVersion``.
    public static var unknownVersion: Code { .unknownVersion }
    /// See ``Code/unknownPredecessor``.
    public static var unknownPredecessor: Code { .unknownPredecessor }
    /// See ``Code/versionMismatch``.
    public static var versionMismatch: Code { .versionMismatch }
    /// See ``Code/invalidReference``.
    public static var invalidReference: Code { .invalidReference }
    /// See ``Code/invalidMetadata``.
    public static var invalidMetadata: Code { .invalidMetadata }
    /// See ``Code/unsupported``.
    public static var unsupported: Code { .unsupported }
    /// See ``Code/notFound``.
    public static var notFound: Code { .notFound }
    /// See ``Code/notAStore``.
    public static var notAStore: Code { .notAStore }
    /// See ``Code/newerFormat``.
    public static var newerFormat: Code { .newerFormat }
    /// See ``Code/readOnly``.
    public static var readOnly: Code { .readOnly }
    /// See ``Code/permission``.
    public static var permission: Code { .permission }
    /// See ``Code/noSpace``.
    public static var noSpace: Code { .noSpace }
    /// See ``Code/notADirectory``.
    public static var notADirectory: Code { .notADirectory }
    /// See ``Code/io``.
    public static var io: Code { .io }
    /// See ``Code/damaged``.
    public static var damaged: Code { .damaged }
    /// See ``Code/unknownOutcome``.
    public static var unknownOutcome: Code { .unknownOutcome }
    /// See ``Code/busy``.
    public static var busy: Code { .busy }
    /// See ``Code/tooManyFiles``.
    public static var tooManyFiles: Code { .tooManyFiles }
    /// See ``Code/closed``.
    public static var closed: Code { .closed }
    /// See ``Code/forked``.
    public static var forked: Code { .forked }
    /// See ``Code/cancelled``.
    public static var cancelled: Code { .cancelled }
    /// See ``Code/user``.
    public static var user: Code { .user }
    /// See ``Code/outOfMemory``.
    public static var outOfMemory: Code { .outOfMemory }
    /// See ``Code/internal``.
    public static var `internal`: Code { .`internal` }
    /// See ``Code/unresolvedConflict``.
    public static var unresolvedConflict: Code { .unresolvedConflict }
    /// See ``Code/noCommonAncestor``.
    public static var noCommonAncestor: Code { .noCommonAncestor }
    /// See ``Code/moved``.
    public static var moved: Code { .moved }
    /// See ``Code/transport``.
    public static var transport: Code { .transport }
    /// See ``Code/missingChanges``.
    public static var missingChanges: Code { .missingChanges }
    /// See ``Code/missingPredecessor``.
    public static var missingPredecessor: Code { .missingPredecessor }
    /// See ``Code/invalidJSON``.
    public static var invalidJSON: Code { .invalidJSON }
    /// See ``Code/invalidBase64``.
    public static var invalidBase64: Code { .invalidBase64 }
    /// See ``Code/identifierMismatch``.
    public static var identifierMismatch: Code { .identifierMismatch }
    /// See ``Code/contentMismatch``.
    public static var contentMismatch: Code { .contentMismatch }
    /// See ``Code/missingVersion``.
    public static var missingVersion: Code { .missingVersion }
    /// See ``Code/snapshotDamaged``.
    public static var snapshotDamaged: Code { .snapshotDamaged }
    /// See ``Code/snapshotMissing``.
    public static var snapshotMissing: Code { .snapshotMissing }
    /// See ``Code/storeNotEmpty``.
    public static var storeNotEmpty: Code { .storeNotEmpty }
    /// See ``Code/foreignSnapshot``.
    public static var foreignSnapshot: Code { .foreignSnapshot }
    /// See ``Code/foreignFile``.
    public static var foreignFile: Code { .foreignFile }
    /// See ``Code/cutShort``.
    public static var cutShort: Code { .cutShort }
    /// See ``Code/unportableID``.
    public static var unportableID: Code { .unportableID }
    /// See ``Code/wrongKey``.
    public static var wrongKey: Code { .wrongKey }
    /// See ``Code/keyMissing``.
    public static var keyMissing: Code { .keyMissing }
    /// See ``Code/keysForked``.
    public static var keysForked: Code { .keysForked }
    /// See ``Code/rolledBack``.
    public static var rolledBack: Code { .rolledBack }
    /// See ``Code/writerForked``.
    public static var writerForked: Code { .writerForked }
    /// See ``Code/withheld``.
    public static var withheld: Code { .withheld }
    /// See ``Code/placeMoved``.
    public static var placeMoved: Code { .placeMoved }
    /// See ``Code/clockAhead``.
    public static var clockAhead: Code { .clockAhead }
    /// See ``Code/erased``.
    public static var erased: Code { .erased }
    /// See ``Code/forgotten``.
    public static var forgotten: Code { .forgotten }
}
