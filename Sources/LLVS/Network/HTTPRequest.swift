/// One request to a server, which may be made several times until it is answered.
struct HTTPRequest {
    enum Method: String {
        case get = "GET", head = "HEAD", put = "PUT", delete = "DELETE", propfind = "PROPFIND", makeCollection = "MKCOL", move = "MOVE"
        case post = "POST", patch = "PATCH"
        /// Nothing is changed by it.
        var isReading: Bool { [.get, .head, .propfind].contains(self) }
        /// Made twice it does what it does once.
        var isRepeatable: Bool { self != .move && self != .post }
    }
    /// What goes to the server.
    enum Body {
        case none
        case bytes([UInt8])
        /// From a byte of it on.
        case file(TemporaryFile, from: Int = 0, size: Int)

        /// A part of it.
        func part(from start: Int, size: Int) -> Body {
            switch self {
            case .none: .none
            case .bytes(let bytes): .bytes(Array(bytes.dropFirst(start).prefix(size)))
            case .file(let file, let first, _): .file(file, from: first + start, size: size)
            }
        }

        /// Bytes; nil when there is no body.
        var size: Int? {
            switch self {
            case .none: nil
            case .bytes(let bytes): bytes.count
            case .file(_, _, let size): size
            }
        }
    }
    /// Where a resource is moved to (RFC 4918, section 10.3).
    struct Destination {
        enum Form {
            /// The whole address.
            case address
            /// The path alone, without scheme and host: it fits whatever a proxy makes of the address on the way.
            case path
            /// The whole address with `http:`, as a server hears it behind a proxy that ends TLS.
            case plainAddress
        }
        var address: HTTPAddress
        var form = Form.address

        var text: String {
            switch form {
            case .address: address.text
            case .path: address.path
            case .plainAddress: "http://\(address.authority)\(address.path)"
            }
        }

        /// Where it is if `source`, a resource beside it, has moved to `target`: what changed in front of the source's path changes here.
        func following(_ source: HTTPAddress, to target: HTTPAddress) -> Destination {
            guard source.origin == target.origin else { return self }
            let before = Array(source.path.utf8), after = Array(target.path.utf8), own = Array(address.path.utf8)
            let common = zip(before.reversed(), after.reversed()).prefix { $0 == $1 }.count
            let old = before.dropLast(common)
            guard own.starts(with: old) else { return self }
            var moved = self
            moved.address.path = String(decoding: after.dropLast(common) + own.dropFirst(old.count), as: UTF8.self)
            return moved
        }
    }
    /// What becomes of the answer's body.
    enum Sink {
        /// It is kept, up to so many bytes; more than 1 MiB in a file.
        case kept(limit: Int)
        /// It goes to what the closure makes, each time that the request is made.
        case read(() throws -> any HTTPBodyReader)
    }

    var method: Method
    var address: HTTPAddress
    /// Beside those that HTTP itself needs. No line ends in them.
    var headers: [(name: String, value: String)] = []
    /// Where MOVE moves to: the header Destination.
    var destination: Destination?
    var body = Body.none
    var sink = Sink.kept(limit: 64 << 10)
    /// Of the file; what a server answers with 206.
    var range: Range<Int>?
    /// Whether it may be made again where nobody knows if it was done; nil: as its method says.
    var repeats: Bool?
    /// Statuses that are the answer, although others ask again after them.
    var finalStatuses: Set<Int> = []
    /// Credentials do not go along.
    var isAnonymous = false
    /// Who knows its address needs no other secret: no message holds more of it than the server's name.
    var isSecret = false
    /// The service may need minutes for it, and sends a space now and then until it is done.
    var isLong = false
    /// The service counts it among uploads as well.
    var isUpload = false
    /// For messages: "Reading".
    var doing: String

    /// For messages: "Reading https://host/path".
    var what: String { "\(doing) \(isSecret ? address.shownServer : address.shown)" }
}

/// Takes the body of an answer while it comes.
protocol HTTPBodyReader: AnyObject {
    /// - Throws: an error that ends the request without a retry.
    func take(_ bytes: UnsafeRawBufferPointer) throws
}

/// What a server answered.
struct HTTPResponse {
    /// What was kept of the body.
    enum Body {
        case bytes([UInt8])
        case file(TemporaryFile, size: Int)
        /// It went to a reader.
        case read(any HTTPBodyReader)
    }
    var status: Int
    /// Names in lower case, in the order in which they came.
    var headers: [(name: String, value: String)]
    var body: Body

    var isSuccess: Bool { (200...299).contains(status) }
    /// The first of that name, which is given in lower case.
    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    /// Why the body is not the file that was asked for: the server, or a proxy in front of it, compressed it, or answers with a page. In
    /// the middle of a sentence; nil: nothing tells that it is not.
    var replacement: String? {
        let encodings = (header("content-encoding") ?? "").lowercased().split { $0 == "," || $0 == " " }
        // Amazon's own name for bodies that were sent in signed pieces: they are stored without it.
        if let one = encodings.first(where: { $0 != "identity" && $0 != "aws-chunked" }) {
            return "the server compresses its answer (\(one.prefix(32))), which nobody asked for. Let whoever runs it, or the proxy in "
                + "front of it, switch that off for this place"
        }
        let type = (header("content-type") ?? "").lowercased()
        guard type.hasPrefix("text/html") || type.hasPrefix("application/xhtml"), case .bytes(let bytes) = body else { return nil }
        // A server may call any file a page. None of ours begins like one.
        guard bytes.first(where: { $0 > 0x20 && ![0xEF, 0xBB, 0xBF].contains($0) }) == UInt8(ascii: "<") else { return nil }
        return "the server answers with a page in place of the file. Sign in to the network, and check the address"
    }
    /// How many bytes the file has, in the answer to HEAD.
    var length: Int? { header("content-length").flatMap { Int($0) } }
    /// When the server says that it is, in seconds since 1970.
    var date: Int64? { header("date").flatMap(HTTPDate.seconds) }
    /// How many seconds the server wants to be left alone. It says so in seconds, or as a time by its own clock, which may not be ours.
    var retryAfter: Double? {
        guard let text = header("retry-after") else { return nil }
        if let seconds = Int64(text) { return seconds >= 0 ? Double(min(seconds, 1 << 31)) : nil }
        let now = date.map(Double.init) ?? (Clock.now() + Clock.secondsFrom1970To2001)
        return HTTPDate.seconds(text).map { max(0, Double($0) - now) }
    }
}

/// Who asks a server. For services whose requests are signed: a key's id, the secret key, and a session's token.
public struct HTTPCredentials: Sendable, Equatable {
    /// Who asks; in S3 the access key.
    public var user: String?
    /// The password of the user; in S3 the secret key.
    public var password: String?
    /// A bearer token, in place of a user; in S3 the token of a session, beside the keys.
    public var token: String?
    /// Nobody, unless something is given.
    public init(user: String? = nil, password: String? = nil, token: String? = nil) {
        self.user = user; self.password = password; self.token = token
    }
    package var isEmpty: Bool { user == nil && password == nil && token == nil }

    /// - Parameter who: gave them, for the message: "The callback for credentials".
    /// - Throws: `.invalidArgument` for what would end the line of a request. No message holds what was given.
    func check(_ who: String) throws {
        for (name, text) in [("user", user), ("password", password), ("token", token)] { try HTTPSettings.check(text, name, who) }
    }
}

/// What an answer means, where a service says it in another way than HTTP does.
enum HTTPVerdict {
    /// What its status says.
    case plain
    /// The credentials are refused.
    case refused
    /// What the request was signed for has changed: the region. Signed anew it may be taken.
    case signedForAnother
    /// The time that the request was signed with is not the service's.
    case signedAtWrongTime
    /// Asked again it may end better.
    case passing
    /// There are too many requests: none of the account is made for a while.
    case tooMany
}

/// How a server is reached, beside its address.
package struct HTTPSettings: Sendable {
    package var credentials = HTTPCredentials()
    /// Asked before the first request, and once more when what it gave was refused (`again`). On the thread of the exchange's call.
    package var askForCredentials: (@Sendable (_ address: String, _ again: Bool) throws -> HTTPCredentials)?
    /// A file of certificates in PEM, in the place of the system's.
    package var certificateAuthorities: String?
    /// Its URL; nil: as the environment says.
    package var proxy: String?
    /// For SFTP: the files with the user's private key, and with the keys of hosts that are trusted.
    package var keyFile: String?, knownHosts: String?
    /// How requests are signed, where credentials do not travel themselves.
    var signature: (any RequestSignature)?
    /// In the place of all other credentials: gives some, or others than those that were refused. Its second parameter is the call's check.
    var renew: (@Sendable (_ refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials?)?
    /// Of answers that are not what their status says.
    var judge: (@Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict)?
    /// Where a request goes when it is begun, each time anew; nil: where it says.
    var readdress: (@Sendable (HTTPRequest) -> HTTPAddress?)?
    /// Hears of each answer, also of those behind which the request is made again, and gives headers that count as part of it.
    var hears: (@Sendable (HTTPResponse, HTTPRequest) throws -> [(name: String, value: String)])?
    /// How many requests the account may make, and how many uploads among them.
    var pace: RequestPace?
    var uploadPace: RequestPace?
    var transfersAtOnce = CurlTransfers.atOnce
    /// Seconds without a byte after which a transfer is given up.
    package var stall = 30
    package init() {}

    /// What it would ask with, from whoever is asked.
    func credentials(for place: String, refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials? {
        if let renew { return try renew(refused, check) }
        let again = refused != nil
        guard let found = try askForCredentials?(place, again) else { return nil }
        try found.check("The callback for credentials")
        return found
    }

    /// Sees that there are credentials to ask with, the first time.
    func fill(_ credentials: inout HTTPCredentials?, for place: String, _ check: () throws -> Void) throws {
        if credentials == nil { credentials = try self.credentials(for: place, refused: nil, check) ?? self.credentials }
    }

    /// This machine is reached without the proxy of the environment, to which credentials would go in clear; nil: as the environment says.
    func hostsWithoutProxy(_ address: HTTPAddress) -> String? { proxy == nil && address.isLoopback ? "*" : nil }

    /// - Throws: `.invalidArgument` for credentials that are given twice, and for what would end the line of a request.
    func check() throws {
        guard credentials.isEmpty || askForCredentials == nil else {
            throw StoreError(
                .invalidArgument, "Both credentials (user, password or token) and a callback for them are given. Give one of them.")
        }
        let who = "Who opened the exchange"
        try credentials.check(who)
        let files = [("ca_file", certificateAuthorities), ("key_file", keyFile), ("known_hosts", knownHosts)]
        for (name, text) in files + [("proxy", proxy)] { try HTTPSettings.check(text, name, who) }
    }

    fileprivate static func check(_ text: String?, _ name: String, _ who: String) throws {
        guard let text, text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return }
        throw StoreError(
            .invalidArgument, "\(who) gave a \(name) that holds a control character. Give it without line ends.")
    }
}
