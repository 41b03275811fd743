/// An account at a service, as one opened exchange reaches it: the common parts of all cloud drives.
final class CloudAccount: Sendable {
    typealias Check = () throws -> Void
    typealias Failure = @Sendable (_ response: HTTPResponse, _ what: String) -> StoreError

    let place: CloudFolder
    let client: HTTPClient
    /// Whether a missing place is an error instead of being created.
    let mustExist: Bool
    private let tokens: CloudTokens?
    private let failure: Failure
    private let ranges = Guarded<Bool?>(nil)

    /// - Parameters:
    ///   - tokens: provides tokens instead of the credentials in the settings.
    ///   - judge: classifies responses whose status is ambiguous.
    ///   - failure: returns the error for a response.
    init(
        _ place: CloudFolder, tokens keeper: (any TokenKeeper)?, settings: HTTPSettings, mustExist: Bool,
        judge: @escaping @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict, failure: @escaping Failure
    ) {
        self.place = place
        self.mustExist = mustExist
        self.failure = failure
        let tokens = keeper.map { CloudTokens($0, place, settings: settings) }
        self.tokens = tokens
        client = HTTPClient(settings.forCloud(place, tokens, judge: judge), place: place.description)
    }
    func close() {
        client.close()
        tokens?.close()
    }

    /// Identifies the account, as far as known.
    var name: String? { tokens?.account }
    /// Identifies the account for saved state, also after the folder of the tokens is moved.
    var user: String { CloudAccount.user(name) }
    static func user(_ file: String?) -> String { (file ?? "").split(separator: "/").suffix(2).joined(separator: "/") }
    /// Whether parts of files can be read; nil until it was tried.
    var hasRanges: Bool? { ranges.withLock { $0 } }
    var counts: RemoteCounts {
        let counts = client.counts
        return RemoteCounts(requests: counts.requests, bytesUp: counts.bytesUp, bytesDown: counts.bytesDown)
    }

    /// The place with the endpoint of the account's region, to which requests go.
    var home: CloudFolder { tokens?.home ?? place }

    // MARK: Requests

    /// - Parameter doing: for messages: "Reading a".
    func request(_ method: HTTPRequest.Method, _ address: HTTPAddress, _ doing: String) -> HTTPRequest {
        var request = HTTPRequest(method: method, address: address, doing: "\(doing) in \(place.description) by")
        request.sink = .kept(limit: CloudAnswer.largest)
        return request
    }

    /// Returns a request that sends JSON and may be repeated.
    func request(_ method: HTTPRequest.Method, _ address: HTTPAddress, _ doing: String, _ json: CloudJSON) -> HTTPRequest {
        var request = request(method, address, doing)
        request.body = .bytes(json.bytes)
        request.headers = [("Content-Type", "application/json")]
        request.repeats = true
        return request
    }

    /// Returns the JSON of a successful response; nil for a 404.
    func ask(_ request: HTTPRequest, _ check: Check) throws -> CloudAnswer? {
        let response = try client.perform(request, check)
        if response.status == 404 { return nil }
        guard response.isSuccess else { throw failure(response, request.what) }
        return try json(response, request.what)
    }

    /// - Throws: `.transport` for a response that is no JSON object.
    func json(_ response: HTTPResponse, _ what: String) throws -> CloudAnswer {
        try client.json(response, what, place.service.name)
    }

    /// Returns the bytes of a file from the outcome of its request.
    func contents(_ request: HTTPRequest, _ outcome: HTTPClient.Outcome) throws -> RemoteContents {
        try RemoteContents(request, outcome, error: failure) { isObeyed in ranges.withLock { $0 = isObeyed } }
    }

    /// Returns the outcomes of publishing files.
    /// - Throws: `.notFound` if one has no outcome, since its folder was gone each time.
    func published(_ outcomes: [RemotePublished?]) throws -> [RemotePublished] {
        try outcomes.map { outcome in
            guard let outcome else {
                throw StoreError(.notFound, "Writing to \(place.description) failed: its folders are removed all the time. Exchange again.")
            }
            return outcome
        }
    }

    /// Returns a random separator for the parts of a request body, which no part contains.
    func boundary() throws -> String {
        "llvs-\(try posix("Naming a part for", place.description) { () throws(Errno) in try RandomName.random().hex })"
    }

    // MARK: Errors

    func missing() -> StoreError {
        StoreError(.notFound, "There is no such place: \(place.description). Check the address, and which account the token is of.")
    }
    func noFolder(_ name: String) -> StoreError {
        StoreError(
            .foreignFile, "Making the folder \(name) in \(place.description) failed: a file has that name. Move it away.", path: name)
    }
    /// The error for an invalid list or response.
    func unusable(_ what: String, _ why: String) -> StoreError {
        answered("\(what) failed: the answer \(why). Try again later, and check the endpoint.")
    }
    /// The error for a file that is not stored as it was sent.
    func otherBytes(_ what: String) -> StoreError {
        answered("\(what) failed: the service stores other bytes than were sent. Try again.")
    }
    func changesAllTheTime(_ what: String) -> StoreError {
        StoreError(.transport, "\(what) in \(place.description) failed: its folders change all the time. Exchange again.")
    }
    /// The error for a session that had to be restarted too often.
    func lostUpload(_ what: String) -> StoreError {
        answered("\(what) failed: the service loses the upload again and again. Exchange again later.")
    }
    /// The error for an invalid successful response. The status distinguishes it from a broken connection (`RemoteSession.outlives`).
    private func answered(_ message: String) -> StoreError {
        var error = StoreError(.transport, message)
        error.httpStatus = 200
        return error
    }
    /// The error if names that differ only in case are not allowed.
    func taken(_ name: String, by other: String) -> StoreError {
        StoreError(.foreignFile, "there is \(other), and names that differ in case only are one there", path: name)
    }

    /// Returns the error of a response.
    /// - Parameter kind: the service's reason; nil: determined by the status.
    static func failure(_ response: HTTPResponse, _ what: String, _ kind: Kind?) -> StoreError {
        guard let kind = kind ?? (response.status == 401 ? Kind.signIn : nil) else { return HTTPFailure.error(response, what) }
        var error: StoreError =
            switch kind {
            case .full: StoreError(.noSpace, "\(what) failed: the account is full. Make room in it, and exchange again.")
            case .signIn:
                StoreError(
                    .permission,
                    "\(what) failed: the service refuses the token, or requires one. Sign in (token_file, tokens, token or credentials)."
                ).needingUser
            case .tooMany:
                StoreError(
                    .busy, "\(what) failed: the service has had too many requests of this account or app. Exchange again later.")
            case .mayNot(let advice): StoreError(.permission, "\(what) failed: \(advice)")
            case .tooLarge: StoreError(.tooLarge, "\(what) failed: the account accepts no file of that size.")
            case .passing: StoreError(.transport, "\(what) failed: the service cannot do it just now. Exchange again later.")
            }
        error.retryAfter = response.retryAfter
        error.httpStatus = Int32(clamping: response.status)
        return error
    }
    enum Kind {
        case full, signIn, tooMany, tooLarge, passing
        case mayNot(String)
    }
}
