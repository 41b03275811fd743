/// One request to a server, which may be made several times until it is answered.
struct HTTPRequest {
    enum Method: String {
        case get = "GET", head = "HEAD", put = "PUT", delete = "DELETE", propfind = "PROPFIND", makeCollection = "MKCOL", move = "MOVE"
        /// Nothing is changed by it.
        var isReading: Bool { [.get, .head, .propfind].contains(self) }
        /// Made twice it does what it does once.
        var isRepeatable: Bool { self != .move }
    }
    /// What goes to the server.
    enum Body {
        case none
        case bytes([UInt8])
        case file(TemporaryFile, size: Int)

        /// Bytes; nil when there is no body.
        var size: Int? {
            switch self {
            case .none: nil
            case .bytes(let bytes): bytes.count
            case .file(_, let size): size
            }
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
    var body = Body.none
    var sink = Sink.kept(limit: 64 << 10)
    /// Of the file; what a server answers with 206.
    var range: Range<Int>?
    /// For messages: "Reading".
    var doing: String

    /// For messages: "Reading https://host/path".
    var what: String { "\(doing) \(address.shown)" }
}

/// Takes the body of an answer while it comes.
protocol HTTPBodyReader: AnyObject {
    /// - Throws: what ends the request, which is not made again.
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
    /// How many bytes the file has, in the answer to HEAD.
    var length: Int? { header("content-length").flatMap { Int($0) } }
    /// When the server says that it is, in seconds since 1970.
    var date: Int64? { header("date").flatMap(HTTPDate.seconds) }
}

/// Who asks, as it was told by the host. For services whose requests are signed: a key's id, the secret key, and a session's token.
package struct HTTPCredentials: Sendable, Equatable {
    package var user: String?
    package var password: String?
    package var token: String?
    package init(user: String? = nil, password: String? = nil, token: String? = nil) {
        self.user = user; self.password = password; self.token = token
    }
    package var isEmpty: Bool { user == nil && password == nil && token == nil }
}

/// How a server is reached, beside its address.
package struct HTTPSettings: Sendable {
    package var credentials = HTTPCredentials()
    /// Asked before the first request, and once more when what it gave was refused (`again`). On the thread of the exchange's call.
    package var askForCredentials: (@Sendable (_ address: String, _ again: Bool) throws -> HTTPCredentials)?
    /// A file of certificates in PEM, in the place of the system's.
    package var certificateAuthorities: String?
    package var proxy: String?
    /// How requests are signed, where credentials do not travel themselves.
    var signature: AWSSignature?
    /// Seconds without a byte after which a transfer is given up.
    package var stall = 30
    package init() {}
}
