/// Objects in a bucket of an S3-compatible service, under a prefix. A PUT is atomic, so no file needs a temporary name.
package final class S3Files: RemoteFiles, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    let place: S3Location
    let client: HTTPClient
    private let lock = Lock(.leaf)
    private var expat: Expat?
    private var hasRanges: Bool?
    /// Whether the service knows `If-None-Match: *`; OpenStack's does not.
    private var isExclusive = true
    private var knowsMany = true
    /// Whether the service deletes many objects with one request.
    var deletesMany: Bool {
        get { lock.withLock { knowsMany } }
        set { lock.withLock { knowsMany = newValue } }
    }

    package var description: String { S3Files.description(place, place.endpoint) }
    package var usualDescription: @Sendable () -> String { { [place] in S3Files.description(place, place.endpoint.usual) } }
    private static func description(_ place: S3Location, _ endpoint: HTTPAddress) -> String {
        "the bucket \(place.bucket)\(place.prefix.isEmpty ? "" : " under \(place.prefix)") at \(endpoint.shown)"
    }
    package var capabilities: RemoteCapabilities {
        var found = lock.withLock {
            RemoteCapabilities(requestsToPublish: 1, isExclusive: isExclusive, hasRanges: hasRanges, hasFeed: false)
        }
        found.tellsDigests = true
        found.sessionsAbove = S3Files.wholeSize
        return found
    }
    package var counts: RemoteCounts {
        let counts = client.counts
        return RemoteCounts(requests: counts.requests, bytesUp: counts.bytesUp, bytesDown: counts.bytesDown)
    }

    package init(_ place: S3Location, settings: HTTPSettings) {
        self.place = place
        var settings = settings
        let region = S3Region(place.region)
        settings.signature = region
        // Read again after a refusal: keys of a session expire, and the program that writes them has written new ones.
        if settings.credentials.isEmpty, settings.askForCredentials == nil { settings.renew = { _, _ in S3Location.credentials() } }
        settings.judge = { response, _ in
            guard case .bytes(let body) = response.body, !response.isSuccess else { return .plain }
            if let named = S3Files.region(response), region.change(to: named) { return .signedForAnother }
            guard let code = S3Files.code(body) else { return .plain }
            if S3Files.isOfTime(code) { return .signedAtWrongTime }
            return S3Files.isSlowDown(code) ? .tooMany : S3Files.isRefusal(code) ? .refused : .plain
        }
        client = HTTPClient(settings.sharingPace(with: place.endpoint), place: place.endpoint.shown)
    }
    package func close() { client.close() }

    // MARK: Listing

    private static let mostPages = 2_000

    func library() throws -> Expat {
        let found = try expat ?? NetworkLibraries.expat(for: place.endpoint.shown)
        expat = found
        return found
    }

    package func list(_ directory: String, withTimes: Bool, _ check: Check) throws -> [RemoteEntry]? {
        let expat = try library()
        let prefix = place.prefix + (directory.isEmpty ? "" : directory + "/")
        var entries: [RemoteEntry] = [], token: String?, pages = 0
        repeat {
            var query = [("delimiter", "/"), ("encoding-type", "url"), ("list-type", "2"), ("prefix", prefix)]
            if let token { query.append(("continuation-token", token)) }
            var request = HTTPRequest(method: .get, address: place.bucketAddress(query), doing: "Listing")
            let what = "The list of \(directory)/ in \(description)"
            request.sink = .read { try S3Listing(what, expat: expat) }
            let response = try client.perform(request, check)
            guard response.isSuccess else { throw S3Files.error(response, "Listing \(directory)/ in \(description)") }
            guard case .read(let reader) = response.body, let page = reader as? S3Listing else {
                throw StoreError(.internal, "The body of a response was not received.")
            }
            try page.finish()
            for (key, size, digest) in page.found {
                guard key.utf8.starts(with: prefix.utf8) else {
                    throw StoreError(
                        .transport,
                        "\(what) cannot be read: it has objects that were not requested. Check that the address is that of an S3 service.")
                }
                var name = Array(key.utf8.dropFirst(prefix.utf8.count))
                if size == nil, name.last == UInt8(ascii: "/") { name.removeLast() }
                guard !name.isEmpty else { continue }
                try Memory.grow(&entries, what)
                var entry = RemoteEntry(name: String(decoding: name, as: UTF8.self), isDirectory: size == nil, size: size)
                entry.digest = digest
                entries.append(entry)
            }
            pages += 1
            guard page.next == nil || (pages < S3Files.mostPages && page.next != token) else {
                throw StoreError(.transport, "\(what) cannot be read: it does not end. Check that the address is that of an S3 service.")
            }
            token = page.next
        } while token != nil
        return entries
    }

    // MARK: Reading

    package func read(_ files: [RemoteRead], _ check: Check) throws -> [RemoteContents] {
        let requests = files.map { file in
            var request = HTTPRequest(method: .get, address: place.address(file.name), doing: "Reading")
            request.sink = .kept(limit: file.limit)
            request.range = file.range
            return request
        }
        return try client.read(
            requests, nothingAt: place.address("tmp/nothing"), error: S3Files.error,
            hasRanges: { isObeyed in
                lock.withLock { hasRanges = isObeyed }
            }, check)
    }

    // MARK: Publishing

    package func publish(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var large: [Int: RemotePublished] = [:]
        for i in files.indices where files[i].data.size > S3Files.wholeSize { large[i] = try putLarge(files[i], check) }
        let small = files.indices.filter { large[$0] == nil }
        for (i, outcome) in zip(small, try putWhole(small.map { files[$0] }, check)) { large[i] = outcome }
        return files.indices.map { large[$0] ?? .exists }
    }

    private func putWhole(_ files: [RemoteUpload], _ check: Check) throws -> [RemotePublished] {
        var outcomes = try put(files, isExclusive: lock.withLock { isExclusive }, check)
        let again = outcomes.indices.filter { outcomes[$0] == nil }
        if !again.isEmpty {
            for (i, outcome) in zip(again, try put(again.map { files[$0] }, isExclusive: false, check)) { outcomes[i] = outcome }
            // The service accepted the files without the header.
            lock.withLock { isExclusive = false }
        }
        return outcomes.map { $0 ?? .exists }
    }

    /// Puts files. The result is nil for files that the service cannot create exclusively.
    private func put(_ files: [RemoteUpload], isExclusive: Bool, _ check: Check) throws -> [RemotePublished?] {
        let there = try isExclusive ? files.map { _ in false } : areThere(files, check)
        let left = files.indices.filter { !there[$0] }
        let requests = try left.map { i in
            var request = HTTPRequest(method: .put, address: place.address(files[i].name), doing: "Writing")
            request.body = try HTTPRequest.Body(files[i].data, check)
            request.headers = [("Content-Type", "application/octet-stream")]
            if isExclusive, !files[i].replaces { request.headers.append(("If-None-Match", "*")) }
            return request
        }
        var published: [RemotePublished?] = there.map { $0 ? .exists : nil }
        for ((i, request), outcome) in zip(zip(left, requests), try client.perform(requests, check)) {
            let response = try outcome.get()
            switch response.status {
            case 200, 201, 204: published[i] = .published
            // 409: another request is creating it.
            case 412, 409: published[i] = .exists
            case _ where isExclusive && !files[i].replaces && S3Files.mayBeOfHeader(response): published[i] = nil
            default: throw S3Files.error(response, request.what)
            }
        }
        return published
    }

    private func areThere(_ files: [RemoteUpload], _ check: Check) throws -> [Bool] {
        let asked = files.indices.filter { !files[$0].replaces }
        var there = files.map { _ in false }
        let requests = asked.map { HTTPRequest(method: .head, address: place.address(files[$0].name), doing: "Examining") }
        for (i, outcome) in zip(asked, try client.perform(requests, check)) { there[i] = try outcome.get().isSuccess }
        return there
    }

    package func takesAnother(_ check: Check) throws -> Bool {
        let address = place.address("tmp/another")
        var request = HTTPRequest(method: .put, address: address, doing: "Writing")
        request.body = .bytes([0])
        let response = try client.perform(request, check)
        if response.isSuccess { _ = try? client.perform(HTTPRequest(method: .delete, address: address, doing: "Deleting"), check) }
        return response.isSuccess
    }

    /// Returns the error for an answer. The body names the reason of a 403 or 404.
    static func error(_ response: HTTPResponse, _ what: String) -> StoreError {
        guard case .bytes(let body) = response.body else { return HTTPFailure.error(response, what) }
        let code = S3Files.code(body)
        func says(_ one: String) -> Bool { code == one }
        if isNoBucket(response) { return StoreError(.notFound, "\(what) failed: there is no such bucket. Check its name, or create it.") }
        if let code, S3Files.isOfTime(code) {
            return StoreError(
                .transport,
                "\(what) failed: requests are signed with the time, and the service's time differs, even after it was used. "
                    + "Check the clocks of this machine and of the service. It is tried again later.")
        }
        if let named = region(response), code.map(isOfRegion) ?? [301, 400].contains(response.status) {
            var error = StoreError(
                .transport, "\(what) failed: the bucket is in the region \(named). Give it in the address (region=\(named)).")
            error.httpStatus = Int32(clamping: response.status)
            return error
        }
        if let code, S3Files.isRefusal(code) {
            return StoreError(
                .permission,
                "\(what) failed: the service refuses the keys. Give the right ones (options user and password: "
                    + "the key's id and the secret key)."
            ).needingUser
        }
        var error = HTTPFailure.error(response, what)
        if let code, isSlowDown(code) {
            error.code = .busy
            error.message = "\(what) failed: the service receives too many requests (\(code)). Exchange again later."
        }
        return error
    }

    /// Returns whether the service asks for fewer requests, in Amazon's words or those of other services.
    static func isSlowDown(_ code: String) -> Bool {
        ["SlowDown", "SlowDownRead", "SlowDownWrite", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests"]
            .contains(code)
    }

    /// Returns whether the time of the signature differs too much from the service's.
    static func isOfTime(_ code: String) -> Bool { ["RequestTimeTooSkewed", "RequestExpired"].contains(code) }

    /// Returns whether the bucket is in another region than that of the signature or of the address.
    private static func isOfRegion(_ code: String) -> Bool {
        ["AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException"].contains(code)
    }
    /// Returns the region of the bucket in an answer.
    static func region(_ response: HTTPResponse) -> String? {
        var named = response.header("x-amz-bucket-region")
        if named == nil, case .bytes(let body) = response.body, let code = code(body), isOfRegion(code) {
            named = text(of: "Region", in: body)
        }
        return named.flatMap { RemoteName.isComponent($0) ? $0 : nil }
    }

    /// Returns whether an upload may have been refused because of its header If-None-Match.
    private static func mayBeOfHeader(_ response: HTTPResponse) -> Bool {
        guard [400, 501].contains(response.status) else { return false }
        guard case .bytes(let body) = response.body, let code = code(body) else { return true }
        return !isRefusal(code) && !isOfTime(code) && !isOfRegion(code) && code != "NoSuchBucket"
    }

    /// Returns whether the keys are wrong or have expired.
    static func isRefusal(_ code: String) -> Bool {
        ["SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"].contains(code)
    }

    /// Returns the code in the body of an error.
    static func code(_ body: [UInt8]) -> String? { text(of: "Code", in: body) }

    /// Returns the text of the first element of a name: up to 64 letters without spaces.
    private static func text(of element: String, in body: [UInt8]) -> String? {
        let tag = Array("\(element)>".utf8)
        guard let part = body.prefix(4_096).split(separator: UInt8(ascii: "<")).first(where: { $0.starts(with: tag) }) else { return nil }
        let text = part.dropFirst(tag.count)
        return text.count <= 64 && text.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? String(decoding: text, as: UTF8.self) : nil
    }

    static func isNoBucket(_ response: HTTPResponse) -> Bool {
        guard case .bytes(let body) = response.body else { return false }
        return code(body) == "NoSuchBucket"
    }
}
