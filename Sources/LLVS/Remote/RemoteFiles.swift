/// A place, reached over a network, that holds named files (docs/remote-files.md).
///
/// Names are paths below the place; their components are checked by whoever makes them (`RemoteName`). A file is there as a whole or not at
/// all. Calls come from one thread at a time; `check` is called every 50 ms at least, and what it throws ends the call. Errors are failures
/// of the place as a whole: what is wrong with one file is its answer.
package protocol RemoteFiles: AnyObject, Sendable {
    typealias Check = () throws -> Void

    /// For messages: "the WebDAV folder https://host/path/".
    var description: String { get }
    /// Gives the same of the usual spelling of its address, by which stores remember the place.
    var usualDescription: @Sendable () -> String { get }
    /// What the service can do, as far as is known.
    var capabilities: RemoteCapabilities { get }
    /// What was asked and moved since it was opened.
    var counts: RemoteCounts { get }
    /// Who asks, where one address may lead each user to another place; nil where it is one place for all. Whoever gives credentials is
    /// asked for them, unless `check` is nil.
    func account(_ check: Check?) throws -> String?

    /// The files of a directory; nil when it is not there.
    /// - Parameter withTimes: whether `RemoteEntry.age` is wanted.
    func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]?
    /// Reads files, or parts of them.
    func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents]
    /// Makes files, each whole or not at all, in any order.
    func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished]
    /// Removes files; no error for those that are not there.
    func delete(_ names: [String], _ check: Check) throws
    /// What came and went since a token; nil where the service has no such feed, or has forgotten: then it is listed.
    func changes(since token: [UInt8], _ check: Check) throws -> RemoteChanges?
    /// Before the first upload: makes room for uploads, and removes what interrupted ones left a day ago or longer.
    func prepareUploads(_ check: Check) throws
    /// Whether it takes another file than one that it refused; false where nobody can tell.
    func takesAnother(_ check: Check) throws -> Bool
    /// Calls back, on a thread of its own, after files may have come into one of some directories, whoever put them there, until the
    /// observation is cancelled; nil where nobody can tell. A directory that is not there is observed once it is.
    func observe(_ directories: [String], _ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)?
    /// Lets go of connections.
    func close()
}

extension RemoteFiles {
    package func observe(_ directories: [String], _ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    package var usualDescription: @Sendable () -> String { { [description] in description } }
    package func account(_ check: Check?) throws -> String? { nil }
    package func changes(since token: [UInt8], _ check: Check) throws -> RemoteChanges? { nil }
    package func prepareUploads(_ check: Check) throws {}
    package func takesAnother(_ check: Check) throws -> Bool { false }

    /// Lists where a file lies: whether the place answers.
    func look(_ file: String?, _ check: Check) throws { _ = try list(RemoteName.split(file ?? "").directory, withTimes: false, check) }

    /// Deletes what interrupted uploads left. Nobody waits for that: what cannot be deleted stays.
    func removeLeftovers(_ names: [String], _ check: Check) throws {
        do { try delete(names, check) } catch let error as StoreError where error.code != .cancelled {}
    }
}

/// What services differ in.
package struct RemoteCapabilities: Sendable {
    /// Requests for publishing one file.
    package var requestsToPublish: Int
    /// Of several that make one file at once, one is told that it did.
    package var isExclusive: Bool
    /// Parts of files can be read. Nil until it was tried.
    package var hasRanges: Bool?
    /// It tells what changed, without a listing.
    package var hasFeed: Bool
    /// Bytes of a file at most; nil: more than any pack has.
    package var largestFile: Int?
    /// Looking for one file is no request to anybody.
    package var isNear: Bool
    /// Uploads of more bytes go on where they were cut, also in another process, and are there as a whole or not at all; nil: none do.
    package var sessionsAbove: Int?
    /// Listings tell digests of what the files hold, mostly.
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
    /// Its last component, as it is there.
    package var name: String
    package var isDirectory: Bool
    /// Bytes, where the service tells.
    package var size: Int?
    /// Seconds since it was changed, by the service's clock.
    package var age: Int64?
    /// What the service says of its bytes.
    var digest: RemoteDigest?

    package init(name: String, isDirectory: Bool, size: Int? = nil, age: Int64? = nil) {
        self.name = name; self.isDirectory = isDirectory; self.size = size; self.age = age
    }
}

/// A digest of what a file holds, as a service tells it: MD5, SHA-1 or SHA-256, by its length.
struct RemoteDigest: Equatable, Sendable {
    private let text: String

    /// Nil for what is none of them: of an object in parts S3 tells something else, for one.
    init?(hex text: String) {
        guard [32, 40, 64].contains(text.utf8.count), text.allSatisfy(\.isHexDigit) else { return nil }
        self.text = text.lowercased()
    }

    /// Whether it is that of the given bytes; nil where that cannot be told, since MD5 is libcrypto's. What is not right may be a digest of
    /// something else: of what the service keeps encrypted, say.
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
        return digest.map { AWSSignature.hex($0) == text }
    }
}

/// What is to be read.
package struct RemoteRead: Sendable {
    package var name: String
    /// All of it where there is none.
    package var range: Range<Int>?
    /// Bytes at most.
    package var limit: Int

    package init(name: String, range: Range<Int>? = nil, limit: Int) { self.name = name; self.range = range; self.limit = limit }
}

/// What came of reading.
package enum RemoteContents: Sendable {
    case missing
    /// `isWhole`: all of the file, also where a range was wanted.
    case bytes([UInt8], isWhole: Bool)
    /// More than 1 MiB.
    case large(any PieceReader)
    case unreadable(StoreError)

    /// The SHA-256 of all of it; nil where there is nothing to read.
    func sha256(_ check: () throws -> Void) throws -> [UInt8]? {
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

/// What is to be made.
package struct RemoteUpload: Sendable {
    package var name: String
    package var data: OutgoingFile
    /// Whether a file of that name is replaced.
    package var replaces: Bool
    /// Whether its name holds a digest of its bytes, so that a reader recognizes a file that is cut short.
    package var isNamedByContent = false
    /// What another process needs to go on with it.
    package var session: RemoteSession?

    package init(name: String, data: OutgoingFile, replaces: Bool) { self.name = name; self.data = data; self.replaces = replaces }
}

/// What a service gave for an upload that is under way: a secret, by which it goes on.
package struct RemoteSession: Sendable {
    /// Of an earlier process, or call.
    package var kept: String?
    /// Writes it down before the first of the bytes goes.
    package var keep: @Sendable (String) -> Void

    /// Whether the line broke, or somebody has to wait. Else the file is sent anew: a session that is refused once stays so.
    static func outlives(_ error: StoreError) -> Bool {
        [.cancelled, .busy].contains(error.code) || (error.code == .transport && error.httpStatus == 0)
    }
}

/// What came of making it.
package enum RemotePublished: Sendable {
    case published
    /// There is a file of that name already, which stays.
    case exists
    /// Something else is in its place, or the name cannot be had there.
    case refused(StoreError)
}

/// What a feed tells.
package struct RemoteChanges: Sendable {
    package var added: [String], removed: [String]
    package var token: [UInt8]
}

/// Names that every service can hold.
package enum RemoteName {
    /// The directory that a file lies in, empty for the place itself, and its last component.
    static func split(_ path: String) -> (directory: String, name: String) {
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
