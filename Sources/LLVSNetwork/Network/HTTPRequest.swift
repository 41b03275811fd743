/// One request to a server. The client may repeat it until it is answered.
package struct HTTPRequest {
    package enum Method: String {
        case get = "GET", head = "HEAD", put = "PUT", delete = "DELETE", propfind = "PROPFIND", makeCollection = "MKCOL", move = "MOVE"
        case post = "POST", patch = "PATCH"
        /// Whether it changes nothing.
        var isReading: Bool { [.get, .head, .propfind].contains(self) }
        /// Whether it is idempotent.
        package var isRepeatable: Bool { self != .move && self != .post }
    }
    /// The body of the request.
    package enum Body {
        case none
        case bytes([UInt8])
        /// A part of a file, from an offset on.
        case file(TemporaryFile, from: Int = 0, size: Int)

        /// Returns a part of the body.
        func part(from start: Int, size: Int) -> Body {
            switch self {
            case .none: .none
            case .bytes(let bytes): .bytes(Array(bytes.dropFirst(start).prefix(size)))
            case .file(let file, let first, _): .file(file, from: first + start, size: size)
            }
        }

        /// The size in bytes; nil if there is no body.
        package var size: Int? {
            switch self {
            case .none: nil
            case .bytes(let bytes): bytes.count
            case .file(_, _, let size): size
            }
        }
    }
    /// The target of a MOVE (RFC 4918, section 10.3).
    package struct Destination {
        enum Form {
            /// The whole address.
            case address
            /// The path alone, without scheme and host: valid even if a proxy changes these.
            case path
            /// The whole address with `http:`, which a server sees behind a proxy that ends TLS.
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

        /// Returns the destination after a redirect of `source`, a resource beside it, to `target`: the prefix of the path changes alike.
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
    /// The destination of the response's body.
    package enum Sink {
        /// Keeps it, up to this many bytes; more than 1 MiB in a file.
        case kept(limit: Int)
        /// Passes it to a new reader from this closure, for each attempt.
        case read(() throws -> any HTTPBodyReader)
    }

    package var method: Method
    package var address: HTTPAddress
    /// The headers besides those that HTTP itself needs. They contain no line ends.
    package var headers: [(name: String, value: String)] = []
    /// The target of a MOVE: the header Destination.
    var destination: Destination?
    package var body = Body.none
    package var sink = Sink.kept(limit: 64 << 10)
    /// The requested range of the file; a server answers it with 206.
    package var range: Range<Int>?
    /// Whether it may be repeated if its outcome is unknown; nil: as for its method.
    package var repeats: Bool?
    /// Statuses that are final for this request, although others are retried after them.
    var finalStatuses: Set<Int> = []
    /// Whether it is sent without credentials.
    package var isAnonymous = false
    /// Whether its address is a secret that grants access: messages only contain the server's name.
    package var isSecret = false
    /// Whether the service may need minutes, and meanwhile sends spaces.
    var isLong = false
    /// Whether the service counts it as an upload, too.
    package var isUpload = false
    /// For messages: "Reading".
    package var doing: String
    package init(
        method: Method, address: HTTPAddress, headers: [(name: String, value: String)] = [], destination: Destination? = nil,
        body: Body = Body.none, sink: Sink = Sink.kept(limit: 64 << 10), range: Range<Int>? = nil, repeats: Bool? = nil,
        finalStatuses: Set<Int> = [], isAnonymous: Bool = false, isSecret: Bool = false, isLong: Bool = false, isUpload: Bool = false,
        doing: String
    ) {
        self.method = method; self.address = address; self.headers = headers; self.destination = destination; self.body = body
        self.sink = sink; self.range = range; self.repeats = repeats; self.finalStatuses = finalStatuses; self.isAnonymous = isAnonymous
        self.isSecret = isSecret; self.isLong = isLong; self.isUpload = isUpload; self.doing = doing
    }

    /// For messages: "Reading https://host/path".
    package var what: String { "\(doing) \(isSecret ? address.shownServer : address.shown)" }
}

/// Receives the body of an answer as it arrives.
package protocol HTTPBodyReader: AnyObject {
    /// - Throws: an error that ends the request without a retry.
    func take(_ bytes: UnsafeRawBufferPointer) throws
}

/// An answer of a server.
package struct HTTPResponse {
    /// The body, or the kept part of it.
    package enum Body {
        case bytes([UInt8])
        case file(TemporaryFile, size: Int)
        /// A reader received it.
        case read(any HTTPBodyReader)
    }
    package var status: Int
    /// The headers in the order received, with names in lower case.
    var headers: [(name: String, value: String)]
    package var body: Body

    package var isSuccess: Bool { (200...299).contains(status) }
    /// Returns the first header of this name, which is in lower case.
    package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    /// Why the body is not the requested file: the server, or a proxy in front of it, compressed it, or answers with a page. The text
    /// continues a sentence. Nil if there is no sign of that.
    var replacement: String? {
        let encodings = (header("content-encoding") ?? "").lowercased().split { $0 == "," || $0 == " " }
        // Amazon's own name for bodies that were sent in signed pieces: they are stored without it.
        if let one = encodings.first(where: { $0 != "identity" && $0 != "aws-chunked" }) {
            return "the server compresses its answer (\(one.prefix(32))), which was not requested. Let its operator, or that of the "
                + "proxy in front of it, switch that off for this place"
        }
        let type = (header("content-type") ?? "").lowercased()
        guard type.hasPrefix("text/html") || type.hasPrefix("application/xhtml"), case .bytes(let bytes) = body else { return nil }
        // A server may declare any file to be a page. No file of this library begins like one.
        guard bytes.first(where: { $0 > 0x20 && ![0xEF, 0xBB, 0xBF].contains($0) }) == UInt8(ascii: "<") else { return nil }
        return "the server answers with a page in place of the file. Sign in to the network, and check the address"
    }
    /// The size of the file, in the answer to HEAD.
    var length: Int? { header("content-length").flatMap { Int($0) } }
    /// The server's time, in seconds since 1970.
    var date: Int64? { header("date").flatMap(HTTPDate.seconds) }
    /// The seconds that the server asks to wait. It gives seconds, or a time by its own clock, which may differ from ours.
    package var retryAfter: Double? {
        guard let text = header("retry-after") else { return nil }
        if let seconds = Int64(text) { return seconds >= 0 ? Double(min(seconds, 1 << 31)) : nil }
        let now = date.map(Double.init) ?? (Clock.now() + Clock.secondsFrom1970To2001)
        return HTTPDate.seconds(text).map { max(0, Double($0) - now) }
    }
}

/// The meaning of an answer, for services that express it differently from HTTP.
package enum HTTPVerdict {
    /// That of its status.
    case plain
    /// The credentials are refused.
    case refused
    /// The region for which the request was signed is another one. Signed again, it may be accepted.
    case signedForAnother
    /// The time in the signature differs too much from the service's.
    case signedAtWrongTime
    /// A retry may succeed.
    case passing
    /// Too many requests were made: the whole account pauses for a while.
    case tooMany
}

package typealias HTTPCredentials = Exchange.Credentials

/// The settings for requests to a server, besides its address.
package struct HTTPSettings: Sendable {
    package var credentials = HTTPCredentials()
    /// Called before the first request, and once more if its credentials were refused (`again`). On the thread of the exchange's call.
    package var askForCredentials: (@Sendable (_ address: String, _ again: Bool) throws -> HTTPCredentials)?
    /// A file of certificates in PEM, instead of the system's.
    package var certificateAuthorities: String?
    /// The URL of the proxy; nil: that of the environment.
    package var proxy: String?
    /// For SFTP: the files with the user's private key, and with the keys of hosts that are trusted.
    package var keyFile: String?, knownHosts: String?
    /// How requests are signed, if credentials are not sent themselves.
    package var signature: (any RequestSignature)?
    /// Replaces all other sources of credentials: returns some, or others than the refused ones. The second parameter is the call's check.
    package var renew: (@Sendable (_ refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials?)?
    /// Interprets answers whose status does not say what they mean.
    package var judge: (@Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict)?
    /// Returns the address of a request at each attempt; nil: its own address.
    package var readdress: (@Sendable (HTTPRequest) -> HTTPAddress?)?
    /// Called with each answer, also before retries. Returns headers that count as part of the answer.
    package var hears: (@Sendable (HTTPResponse, HTTPRequest) throws -> [(name: String, value: String)])?
    /// The rates of requests of the account, and of uploads among them.
    package var pace: RequestPace?
    package var uploadPace: RequestPace?
    var transfersAtOnce = CurlTransfers.atOnce
    /// Seconds without a byte after which a transfer ends.
    package var stall = 30
    package init() {}
    package init(_ options: Exchange.URLOptions) {
        credentials = options.credentials
        askForCredentials = options.askForCredentials
        certificateAuthorities = options.certificateAuthorities
        proxy = options.proxy
        keyFile = options.keyFile
        knownHosts = options.knownHosts
        stall = options.stall
    }

    /// Returns credentials from the host's callback or from `renew`.
    func credentials(for place: String, refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials? {
        if let renew { return try renew(refused, check) }
        let again = refused != nil
        guard let found = try askForCredentials?(place, again) else { return nil }
        try found.check("The callback for credentials")
        return found
    }

    /// Ensures that there are credentials before the first request.
    func fill(_ credentials: inout HTTPCredentials?, for place: String, _ check: () throws -> Void) throws {
        if credentials == nil { credentials = try self.credentials(for: place, refused: nil, check) ?? self.credentials }
    }

    /// This machine is reached without the proxy of the environment, to which credentials would go in clear; nil: as the environment says.
    func hostsWithoutProxy(_ address: HTTPAddress) -> String? { proxy == nil && address.isLoopback ? "*" : nil }
}
