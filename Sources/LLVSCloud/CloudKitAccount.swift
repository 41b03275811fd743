/// Authenticates requests to CloudKit: either as a server with a key, by signatures, or as a person with a token, which each response may
/// replace.
///
/// The credentials are saved as JSON: `key_id` and `private_key` (PEM, P-256), or `api_token` and `web_auth_token`; other members are
/// preserved.
final class CloudKitAccount: Sendable {
    typealias Check = () throws -> Void

    let place: CloudKitPlace
    private let client: HTTPClient
    private let keeper: any TokenKeeper
    /// Identifies the account, as far as known.
    var user: String { CloudAccount.user(keeper.path) }
    private let key: Guarded<Secret?>
    /// Nil until it was read.
    private let isOfServer = Guarded<Bool?>(nil)
    private let ranges = Guarded<Bool?>(nil)
    private let pace: RequestPace
    /// Set during a person's request.
    private let session: Guarded<Session?>
    private struct Session {
        let api: String
        var token: String
        /// All saved members.
        let members: [(name: String, json: [UInt8])]
        var query: String { "?ckAPIToken=\(PercentCoding.encode(api))&ckWebAuthToken=\(PercentCoding.encode(token))" }
    }

    init(_ place: CloudKitPlace, tokens keeper: any TokenKeeper, settings: HTTPSettings) {
        self.place = place
        let key = Guarded<Secret?>(nil)
        self.keeper = keeper
        self.key = key
        var settings = settings
        settings.signature = CloudKitSignature(key: key, name: keeper.name, path: keeper.path)
        let shared = keeper.path.map { RequestPace.shared("\(place.endpoint.shown) \($0)", perSecond: place.rate) }
        let pace = shared ?? RequestPace(perSecond: place.rate)
        self.pace = pace
        settings.pace = pace
        let session = Guarded<Session?>(nil)
        self.session = session
        // A repeated request uses the newest token, which may have come with a refusal.
        settings.readdress = { [origin = place.endpoint.origin] request in
            // Files are on other hosts, which must not get tokens.
            guard request.address.origin == origin else { return nil }
            return session.withLock { $0?.query }.map { query in
                var address = request.address
                address.query = query
                return address
            }
        }
        settings.hears = { response, _ in
            if let next = response.header("x-apple-cloudkit-web-auth-token"), CloudKitAccount.isPrintable(next),
                let now = session.withLock({ $0 }), next != now.token
            {
                try keeper.write(now.members, [("web_auth_token", next)])
                session.withLock { $0?.token = next }
            }
            guard !response.isSuccess, response.header("retry-after") == nil, let wait = try CloudAnswer(response)?["retryAfter"]?.seconds
            else { return [] }
            pace.pause(until: Clock.steady() + wait)
            return [("retry-after", String(Int(wait)))]
        }
        settings.renew = { refused, _ in
            guard refused == nil, let id = try CloudKitAccount.serverKey(keeper, place, key) else { return nil }
            return HTTPCredentials(user: id)
        }
        client = HTTPClient(settings, place: place.description)
    }
    func close() { client.close() }

    var counts: RemoteCounts {
        let counts = client.counts
        return RemoteCounts(requests: counts.requests, bytesUp: counts.bytesUp, bytesDown: counts.bytesDown)
    }
    /// Whether parts of assets can be read; nil until it was tried.
    var hasRanges: Bool? { ranges.withLock { $0 } }

    /// Returns the id of a server's key, and stores the key for signing; nil if there is none.
    private static func serverKey(_ keeper: any TokenKeeper, _ place: CloudKitPlace, _ key: Guarded<Secret?>) throws -> String? {
        let found = try keeper.read()
        guard let id = found["key_id"]?.string else { return nil }
        guard let pem = found["private_key"]?.string, isPrintable(id) else {
            throw keeper.unusable("holds a key_id, and no private_key in PEM beside it")
        }
        guard place.database == "public" else {
            throw keeper.unusable("holds the key of a server, which opens only the public database")
        }
        let secret = try Secret(pem)
        key.withLock { $0 = secret }
        return id
    }
    private func isServer() throws -> Bool {
        if let known = isOfServer.withLock({ $0 }) { return known }
        let found = try CloudKitAccount.serverKey(keeper, place, key) != nil
        isOfServer.withLock { $0 = found }
        return found
    }
    private static func isPrintable(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 8_192 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    // MARK: Requests

    /// Returns the JSON of a response; nil if the zone, or the type of the records, does not exist.
    /// - Parameter doing: for messages: "Listing log/".
    func ask(_ what: String, _ json: CloudJSON, _ doing: String, _ check: Check) throws -> CloudAnswer? {
        var request = HTTPRequest(method: .post, address: place.address(what), doing: "\(doing) in \(place.description) by")
        request.sink = .kept(limit: CloudAnswer.largest)
        request.body = .bytes(json.bytes)
        request.headers = [("Content-Type", "application/json")]
        request.repeats = true
        let response = try perform(request, check)
        guard let answer = try CloudAnswer(response) else {
            guard response.isSuccess else { throw HTTPFailure.error(response, request.what) }
            throw StoreError(
                .transport,
                "\(request.what) failed: the answer is not CloudKit's. Check the network, which may require a sign-in, and the "
                    + "endpoint."
            )
        }
        if answer["serverErrorCode"] != nil || !response.isSuccess {
            guard let error = failure(answer, request.what, response) else { return nil }
            throw error
        }
        return answer
    }

    private func perform(_ request: HTTPRequest, _ check: Check) throws -> HTTPResponse {
        if try isServer() { return try client.perform(request, check) }
        // A token may be valid for one request only, so requests are made one at a time, across all processes.
        return try keeper.withLock(check) {
            let found = try keeper.read()
            guard let api = found["api_token"]?.string, let token = found["web_auth_token"]?.string, CloudKitAccount.isPrintable(api),
                CloudKitAccount.isPrintable(token)
            else { throw keeper.unusable("holds neither key_id and private_key nor api_token and web_auth_token") }
            var request = request
            request.isAnonymous = true
            session.withLock { $0 = Session(api: api, token: token, members: found.members) }
            defer { session.withLock { $0 = nil } }
            return try client.perform(request, check)
        }
    }

    /// Sends the bytes of an asset. Returns the value that refers to it in a record.
    func upload(_ body: HTTPRequest.Body, to url: String?, _ doing: String, _ check: Check) throws -> CloudJSON {
        guard let url, let address = try? HTTPAddress(url), address.keepsSecrets else {
            throw unusable(doing, "holds no place for an asset")
        }
        var request = HTTPRequest(method: .post, address: address, doing: "\(doing) in \(place.description) at")
        // The address itself is a secret, and is valid for one request.
        (request.isAnonymous, request.isSecret) = (true, true)
        request.body = body
        request.headers = [("Content-Type", "application/octet-stream")]
        let response = try client.perform(request, check)
        guard response.isSuccess else { throw HTTPFailure.error(response, "\(doing) in \(place.description)") }
        guard let file = try CloudAnswer(response)?["singleFile"], let receipt = file["receipt"]?.string else {
            throw unusable(doing, "does not describe the asset")
        }
        let texts = ["fileChecksum", "wrappingKey", "referenceChecksum"].compactMap { name in
            file[name]?.string.map { (name, CloudJSON.text($0)) }
        }
        return .object(texts + [("receipt", .text(receipt)), ("size", .number(body.size ?? 0))])
    }

    /// Reads assets at their addresses.
    func download(_ assets: [(url: String, range: Range<Int>?, limit: Int)], _ doing: String, _ check: Check) throws -> [RemoteContents] {
        let requests = try assets.map { asset in
            // The address contains a placeholder in braces for a file name.
            let url = asset.url.utf8.filter { !"${}".utf8.contains($0) }
            guard let address = try? HTTPAddress(String(decoding: url, as: UTF8.self)), address.keepsSecrets else {
                throw unusable(doing, "holds no asset")
            }
            var request = HTTPRequest(method: .get, address: address, doing: "\(doing) in \(place.description) at")
            (request.isAnonymous, request.isSecret) = (true, true)
            request.sink = .kept(limit: asset.limit)
            request.range = asset.range
            return request
        }
        return try zip(requests, client.perform(requests, check)).map { request, outcome in
            try RemoteContents(request, outcome, error: { HTTPFailure.error($0, $1) }) { isObeyed in ranges.withLock { $0 = isObeyed } }
        }
    }

    // MARK: Errors

    /// Returns the error of a request, or of one of its records; nil if the zone, the record or its type does not exist.
    func failure(_ answer: CloudAnswer, _ what: String, _ response: HTTPResponse? = nil) -> StoreError? {
        let code = answer["serverErrorCode"]?.string ?? ""
        var error: StoreError
        switch code {
        case "NOT_FOUND", "ZONE_NOT_FOUND", "UNKNOWN_ITEM": return nil
        case "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", "NOT_AUTHENTICATED", "SIGN_IN_FAILED":
            // The service returns the address for signing in.
            let page = answer["redirectURL"]?.string.flatMap { CloudKitAccount.isPrintable($0) ? try? HTTPAddress($0) : nil }
            let place = page.map { $0.origin.scheme == "https" && $0.text.utf8.count <= 2_048 ? " at \($0.text)" : "" } ?? ""
            error =
                StoreError(
                    .permission,
                    "\(what) failed: CloudKit refuses the login. Sign in again\(place), which writes web_auth_token into \(keeper.name); "
                        + "with the key of a server, check the key.", path: keeper.path
                ).needingUser
        case "ACCESS_DENIED":
            error = StoreError(.permission, "\(what) failed: the account or key may not do this. Check the roles of the container.")
        case "QUOTA_EXCEEDED":
            error = StoreError(.noSpace, "\(what) failed: the account is full. Make room in it, and exchange again.")
        case "LIMIT_EXCEEDED":
            error = StoreError(.tooLarge, "\(what) failed: CloudKit accepts nothing of that size.")
        case "THROTTLED":
            error = StoreError(.busy, "\(what) failed: there were too many requests. Exchange again later.")
        case "TRY_AGAIN_LATER", "ZONE_BUSY", "INTERNAL_ERROR", "CONFLICT", "ATOMIC_ERROR":
            error = StoreError(.transport, "\(what) failed: CloudKit cannot do it just now (\(code)). Exchange again later.")
        case "":
            error = response.map { HTTPFailure.error($0, what) } ?? unusable(what, "reports a failure without a code")
        default:
            let shown = PercentCoding.encode(String(code.prefix(64)))
            error = StoreError(.transport, "\(what) failed: CloudKit answers with \(shown). Check the container and its schema.")
        }
        error.httpStatus = Int32(clamping: response?.status ?? 0)
        if let seconds = answer["retryAfter"]?.seconds {
            error.retryAfter = seconds
            // Pause even if only one record has `retryAfter`.
            pace.pause(until: Clock.steady() + seconds)
        }
        return error
    }

    /// Returns whether the failure of a record concerns only that one. Failures of all are: authentication, rate limits, lack of space,
    /// missing zone.
    func isOfRecord(_ record: CloudAnswer) -> Bool {
        guard record["retryAfter"] == nil, let code = record["serverErrorCode"]?.string, !code.isEmpty else { return false }
        return ![
            "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", "NOT_AUTHENTICATED", "SIGN_IN_FAILED", "QUOTA_EXCEEDED", "THROTTLED",
            "TRY_AGAIN_LATER", "ZONE_BUSY", "ZONE_NOT_FOUND",
        ].contains(code)
    }

    /// The error for an invalid response.
    func unusable(_ what: String, _ why: String) -> StoreError {
        StoreError(.transport, "\(what) failed: the answer \(why). Try again later, and check the endpoint.")
    }
}

/// Signs requests with a server's key: date, digest of the body, and path, by ECDSA.
private struct CloudKitSignature: RequestSignature {
    let key: Guarded<Secret?>
    let name: String
    let path: String?

    func headers(for request: HTTPRequest, to address: HTTPAddress, _ credentials: HTTPCredentials, now: Int64) throws -> [(
        name: String, value: String
    )] {
        guard let secret = key.withLock({ $0 }), let id = credentials.user else { return [] }
        var digest = SHA256()
        if case .bytes(let bytes) = request.body { digest.update(bytes) }
        let date = CloudKitSignature.date(now), body = String(decoding: Base64.encode(digest.finish()), as: UTF8.self)
        let text = Array("\(date):\(body):\(address.path)".utf8)
        guard let signature = try Crypto(for: "Signing for CloudKit").sign(text, with: secret) else {
            throw StoreError(
                .invalidArgument, "The private_key in \(name) is not a private key of P-256 in PEM without a passphrase. Correct it.",
                path: path)
        }
        return [
            ("X-Apple-CloudKit-Request-KeyID", id), ("X-Apple-CloudKit-Request-ISO8601Date", date),
            ("X-Apple-CloudKit-Request-SignatureV1", String(decoding: Base64.encode(signature), as: UTF8.self)),
        ]
    }

    /// "2013-05-24T00:00:00Z"
    private static func date(_ now: Int64) -> String {
        var text: [UInt8] = []
        for (i, byte) in AWSSignature.time(now).utf8.enumerated() {
            if i == 4 || i == 6 { text.append(UInt8(ascii: "-")) }
            if i == 11 || i == 13 { text.append(UInt8(ascii: ":")) }
            text.append(byte)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
