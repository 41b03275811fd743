/// A place on a network that holds named files (docs/remote-files.md).
///
/// Names are paths below the place; callers check their components (`RemoteName`). A file exists as a whole or not at all. One thread at a
/// time makes calls. They call `check` every 50 ms at least; an error of it ends the call. Other errors are failures of the place as a
/// whole: a problem of one file is the result for that file.
package protocol RemoteFiles: AnyObject, Sendable {
    typealias Check = () throws -> Void

    /// The name in messages: "the WebDAV folder https://host/path/".
    var description: String { get }
    /// Returns the description with the usual spelling of the address, by which stores remember the place.
    var usualDescription: @Sendable () -> String { get }
    /// The abilities of the service, as far as they are known.
    var capabilities: RemoteCapabilities { get }
    /// The requests and bytes since it was opened.
    var counts: RemoteCounts { get }
    /// Returns the user, if one address may lead each user to another place; nil if it is one place for all. Requests credentials from the
    /// host if they are needed, unless `check` is nil.
    func account(_ check: Check?) throws -> String?

    /// Returns the files of a directory; nil if there is no such directory.
    /// - Parameter withTimes: whether to return `RemoteEntry.age`.
    func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]?
    /// Reads files, or parts of them.
    func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents]
    /// Creates or replaces files, each whole or not at all, in any order.
    func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished]
    /// Removes files. A missing file is no error.
    func delete(_ names: [String], _ check: Check) throws
    /// Returns the changes since a token; nil if the service has no such feed, or no longer has that position. The caller then lists.
    func changes(since token: [UInt8], _ check: Check) throws -> RemoteChanges?
    /// Prepares the first upload: creates the directory for uploads, and removes files that uploads left a day ago or longer.
    func prepareUploads(_ check: Check) throws
    /// Returns whether the place accepts files other than the refused one; false if that cannot be determined.
    func takesAnother(_ check: Check) throws -> Bool
    /// Calls back, on a thread of its own, after files may have appeared in one of these directories, until the observation is cancelled.
    /// Returns nil if the place reports no news. A missing directory is observed once it exists.
    func observe(_ directories: [String], _ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)?
    /// Closes connections.
    func close()
}

extension RemoteFiles {
    package func observe(_ directories: [String], _ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    package var usualDescription: @Sendable () -> String { { [description] in description } }
    package func account(_ check: Check?) throws -> String? { nil }
    package func changes(since token: [UInt8], _ check: Check) throws -> RemoteChanges? { nil }
    package func prepareUploads(_ check: Check) throws {}
    package func takesAnother(_ check: Check) throws -> Bool { false }

    /// Lists the directory of a file, to check whether the place answers.
    package func look(_ file: String?, _ check: Check) throws {
        _ = try list(RemoteName.split(file ?? "").directory, withTimes: false, check)
    }

    /// Deletes files that interrupted uploads left. Best effort: files that cannot be deleted stay.
    package func removeLeftovers(_ names: [String], _ check: Check) throws {
        do { try delete(names, check) } catch let error as StoreError where error.code != .cancelled {}
    }
}

/// The abilities in which services differ.
package struct RemoteCapabilities: Sendable {
    /// The number of requests that publish one file.
    package var requestsToPublish: Int
    /// Whether exactly one of several devices that create one file at once gets success.
    package var isExclusive: Bool
    /// Whether parts of files can be read. Nil until it was tried.
    package var hasRanges: Bool?
    /// Whether it reports changes without a listing.
    package var hasFeed: Bool
    /// The most bytes of a file; nil: more than any pack has.
    package var largestFile: Int?
    /// Whether checking for one file needs no request.
    package var isNear: Bool
    /// Uploads of more bytes can be resumed, also by another process, and appear as a whole or not at all; nil: none can.
    package var sessionsAbove: Int?
    /// Whether listings have digests of most files.
    package var tellsDigests = false

    package init(
        requestsToPublish: Int, isExclusive: Bool, hasRanges: Bool? = nil, hasFeed: Bool, largestFile: Int? = nil, isNear: Bool = false
    ) {
        self.requestsToPublish = requestsToPublish; self.isExclusive = isExclusive; self.hasRanges = hasRanges; self.hasFeed = hasFeed
        self.largestFile = largestFile; self.isNear = isNear
    }
}

/// Requests and bytes.
package struct RemoteCounts: Sendable {
    package var requests: Int, bytesUp: Int, bytesDown: Int

    package init(requests: Int = 0, bytesUp: Int = 0, bytesDown: Int = 0) {
        self.requests = requests; self.bytesUp = bytesUp; self.bytesDown = bytesDown
    }
}

/// One name in a listing.
package struct RemoteEntry: Sendable {
    /// The last component of the path, unchanged.
    package var name: String
    package var isDirectory: Bool
    /// The size in bytes, if the service reports it.
    package var size: Int?
    /// Seconds since it was changed, by the service's clock.
    package var age: Int64?
    /// The digest of the contents, if the service reports it.
    package var digest: RemoteDigest?

    package init(name: String, isDirectory: Bool, size: Int? = nil, age: Int64? = nil) {
        self.name = name; self.isDirectory = isDirectory; self.size = size; self.age = age
    }
}

/// A digest of a file's contents that a service reports: MD5, SHA-1 or SHA-256, by its length.
package struct RemoteDigest: Equatable, Sendable {
    private let text: String

    /// Nil for any other text: S3 reports something else for an object in parts, for example.
    package init?(hex text: String) {
        guard [32, 40, 64].contains(text.utf8.count), text.allSatisfy(\.isHexDigit) else { return nil }
        self.text = text.lowercased()
    }

    /// Returns whether it is the digest of these bytes; nil if that cannot be computed, since MD5 needs libcrypto. A different digest may
    /// be of something else, for example of the encrypted object that the service stores.
    func isRight(of data: [UInt8]) -> Bool? {
        let digest: [UInt8]?
        switch text.utf8.count {
        case 32: digest = (try? Crypto(for: "the digest of a file"))?.md5(data)
        case 40:
            var hash = SHA1()
            data.withUnsafeBytes { hash.update($0) }
            digest = hash.finish()
        default: digest = data.withUnsafeBytes { SHA256.digest($0) }
        }
        return digest.map { Hex.text(of: $0) == text }
    }
}

/// A file, or a part of one, to read.
package struct RemoteRead: Sendable {
    package var name: String
    /// Nil: the whole file.
    package var range: Range<Int>?
    /// The most bytes.
    package var limit: Int

    package init(name: String, range: Range<Int>? = nil, limit: Int) { self.name = name; self.range = range; self.limit = limit }
}

/// The result of reading one file.
package enum RemoteContents: Sendable {
    case missing
    /// `isWhole`: the whole file, even if a range was requested.
    case bytes([UInt8], isWhole: Bool)
    /// More than 1 MiB.
    case large(any PieceReader)
    case unreadable(StoreError)

    /// Returns the SHA-256 of the contents; nil if there are none.
    package func sha256(_ check: () throws -> Void) throws -> [UInt8]? {
        var hash = SHA256()
        switch self {
        case .bytes(let bytes, _): bytes.withUnsafeBytes { hash.update($0) }
        case .large(let reader):
            var piece = [UInt8](repeating: 0, count: 256 << 10)
            while true {
                try check()
                let got = try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
                guard got > 0 else { break }
                piece.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<got])) }
            }
        case .missing, .unreadable: return nil
        }
        return Array(hash.finish())
    }
}

/// A file to publish.
package struct RemoteUpload: Sendable {
    package var name: String
    package var data: OutgoingFile
    /// Whether to replace a file of that name.
    package var replaces: Bool
    /// Whether its name holds a digest of its bytes, so that a reader recognizes a file that is cut short.
    package var isNamedByContent = false
    /// The session by which another process can resume the upload.
    package var session: RemoteSession?

    package init(name: String, data: OutgoingFile, replaces: Bool) { self.name = name; self.data = data; self.replaces = replaces }
}

/// The session of an unfinished upload: a secret of the service, by which it is resumed.
package struct RemoteSession: Sendable {
    /// The session of an earlier process, or call.
    package var kept: String?
    /// Stores a session before the first byte is sent.
    package var keep: @Sendable (String) -> Void

    /// Returns whether a session is still usable after an error: the connection broke, or the caller must wait. After any other error the
    /// upload starts over, since a refused session stays refused.
    package static func outlives(_ error: StoreError) -> Bool {
        [.cancelled, .busy].contains(error.code) || (error.code == .transport && error.httpStatus == 0)
    }
}

/// The result of publishing one file.
package enum RemotePublished: Sendable {
    case published
    /// A file of that name exists, and stays.
    case exists
    /// Something else has the name, or the place does not accept it.
    case refused(StoreError)
}

/// The changes in a feed.
package struct RemoteChanges: Sendable {
    package var added: [String], removed: [String]
    package var token: [UInt8]
}

/// Names that every service can hold.
package enum RemoteName {
    /// Returns the directory of a file, empty for the place itself, and its last component.
    package static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }

    /// Letters, digits, `.`, `_` and `-`, no dot in front; up to 128 bytes.
    package static func isComponent(_ name: some StringProtocol) -> Bool {
        let bytes = name.utf8
        guard let first = bytes.first, first != UInt8(ascii: "."), bytes.count <= 128 else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
            default: false
            }
        }
    }
}

extension PlaceSpelling {
    convenience init(_ files: any RemoteFiles) { self.init(files.description, usual: files.usualDescription) }
}
