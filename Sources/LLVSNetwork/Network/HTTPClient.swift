import CNetwork

/// Makes requests to one server, four at once, over connections that stay open between calls.
///
/// Runs on the calling thread, one call at a time. Follows redirects, retries, and restricts credentials to their server
/// (docs/remote-files.md). Its errors and log messages hold no credentials.
package final class HTTPClient: @unchecked Sendable {
    // Sendable: `lock` guards the counts, `gate` all else.
    /// The result of a request.
    package typealias Outcome = Result<HTTPResponse, StoreError>

    /// The requests and the bytes of their bodies since the client was created.
    package struct Counts: Sendable { package var requests = 0, bytesUp = 0, bytesDown = 0 }

    static let mostRedirects = 5
    /// The longest wait that a server may ask for, and the longest backoff between tries, in seconds.
    static let longestWait = 60.0, longestBackOff = 8.0

    let settings: HTTPSettings
    /// The name of the place in messages.
    let place: String
    private let gate = Gate("connection")
    private let lock = Lock(.leaf)
    private var counted = Counts()
    package var counts: Counts { lock.withLock { counted } }

    // Guarded by the gate.
    private let transfers: CurlTransfers
    var credentials: HTTPCredentials?
    var scheme = LLVS_CURL_BASIC
    /// How many times refused credentials were replaced since the last accepted answer. A host is asked once; a source that renews them
    /// itself, a few times in each call.
    var renewals = 0
    static let mostRenewals = 3
    /// The earliest time of the next request, by `Clock.steady`.
    var notBefore = 0.0
    /// How far the service's clock is ahead of this machine's, in seconds. It is only known if the service refused a signature for that.
    var clockDifference: Int64 = 0
    /// The time for signatures by the service's clock, in seconds since 1970.
    var signingTime: Int64 { Int64(Clock.now() + Clock.secondsFrom1970To2001) &+ clockDifference }

    package init(_ settings: HTTPSettings, place: String) {
        self.settings = settings; self.place = place
        transfers = CurlTransfers(place, most: settings.transfersAtOnce, stall: settings.stall)
    }
    deinit { close() }

    /// Closes all connections. They are opened again when needed.
    package func close() { gate.runAlone { transfers.close() } }

    /// Returns the user name, as far as it is known. Unless `check` is nil, asks the provider of the credentials for them first.
    func user(_ check: (() throws -> Void)?) throws -> String? {
        guard let check else {
            // This must not wait for running requests.
            let known = try gate.runUnlessBusy("A request to \(place)") { credentials ?? settings.credentials }
            return (known ?? settings.credentials).user
        }
        return try gate.run("A request to \(place)") {
            try settings.fill(&credentials, for: place, check)
            return credentials?.user
        }
    }

    /// Returns the answer to one request.
    package func perform(_ request: HTTPRequest, _ check: () throws -> Void) throws -> HTTPResponse {
        guard let outcome = try perform([request], check).first else { throw StoreError(.internal, "A request was not made.") }
        return try outcome.get()
    }

    /// Makes several requests. Returns their results in order. An answer counts as a result whatever its status.
    /// - Parameter check: called every 50 ms at least; an error that it throws ends all active requests.
    /// - Throws: errors of `check`, `.unsupported` without libcurl, and errors from asking for credentials.
    package func perform(_ requests: [HTTPRequest], _ check: () throws -> Void) throws -> [Outcome] {
        guard !requests.isEmpty else { return [] }
        return try gate.run("A request to \(place)") {
            try check()
            if settings.renew != nil { renewals = 0 }
            _ = try transfers.open { try NetworkLibraries.curl(for: place) }
            try settings.fill(&credentials, for: place, check)
            var run = Run(requests)
            // libcurl has pointers into the run until each transfer is released.
            defer { withExtendedLifetime(run) { transfers.dropAll() } }
            while !run.isDone {
                try check()
                try start(&run)
                if !run.isDone { try step(&run, check) }
            }
            return run.outcomes
        }
    }

    /// Waits for the backoff before another try of a request.
    package func pause(_ tries: Int, _ check: () throws -> Void) throws {
        let until = Clock.steady() + Double.random(in: 0...min(HTTPClient.longestBackOff, 0.25 * Double(1 << min(max(0, tries), 10))))
        while Clock.steady() < until {
            try check()
            usleep(UInt32(CurlTransfers.stepMilliseconds) * 400)
        }
    }

    // MARK: One call

    /// The state of a request across tries and redirects.
    struct Attempt {
        let index: Int
        let request: HTTPRequest
        var address: HTTPAddress
        var tries = 0, redirects = 0
        /// The earliest time of the next try, by `Clock.steady`.
        var notBefore = 0.0
        /// The credentials that were sent.
        var credentials: HTTPCredentials?, scheme = LLVS_CURL_NONE
        var transfer: HTTPTransfer?
        /// The time in its signature, in seconds since 1970; nil if it is not signed.
        var signedAt: Int64?
        /// Whether the signature of the request was refused, and the request was signed again.
        var isSignedAnew = false
        /// The part of a file that earlier tries received.
        var begun: HTTPTransfer.Begun?
        /// The most bytes of the file that any try received.
        var furthest = 0

        /// Returns the next attempt, which continues after the received part. A connection that keeps breaking still ends the request,
        /// unless each try receives more of the file.
        func resuming(_ transfer: HTTPTransfer) -> Attempt {
            var next = self
            if !transfer.isUnanswered { next.begun = transfer.begun }
            if let now = next.begun?.spool.size, now >= furthest + HTTPTransfer.Begun.least { (next.tries, next.furthest) = (1, now) }
            return next
        }
    }
    struct Run {
        var waiting: [Attempt]
        var active: [UnsafeMutableRawPointer: Attempt] = [:]
        private var found: [Outcome?]
        init(_ requests: [HTTPRequest]) {
            // Requests are taken from the end of the list.
            waiting = requests.enumerated().reversed().map { Attempt(index: $0, request: $1, address: $1.address) }
            found = requests.map { _ in nil }
        }
        var isDone: Bool { waiting.isEmpty && active.isEmpty }
        var outcomes: [Outcome] { found.map { $0 ?? .failure(StoreError(.internal, "A request has no outcome.")) } }
        mutating func settle(_ attempt: Attempt, _ outcome: Outcome) { found[attempt.index] = outcome }
        /// Ends all requests that have not begun with the same error: the server is unreachable or asked for a pause.
        mutating func giveUp(_ error: StoreError) {
            for attempt in waiting { settle(attempt, .failure(error)) }
            waiting = []
        }
        func hasNext(_ now: Double, _ mayUpload: Bool) -> Bool { index(now, mayUpload) != nil }
        mutating func next(_ now: Double, _ mayUpload: Bool) -> Attempt? { index(now, mayUpload).map { waiting.remove(at: $0) } }
        private func index(_ now: Double, _ mayUpload: Bool) -> Int? {
            waiting.lastIndex { $0.notBefore <= now && (mayUpload || !$0.request.isUpload) }
        }
    }

    private func start(_ run: inout Run) throws {
        let now = Clock.steady(), notBefore = max(self.notBefore, settings.pace?.notBefore ?? self.notBefore)
        guard notBefore <= now else {
            guard notBefore - now <= HTTPClient.longestWait else {
                var error = StoreError(
                    .busy,
                    "Reaching \(place) failed: the server asks for no requests for \(Int(notBefore - now)) more seconds "
                        + "(Retry-After). Exchange again after that.")
                error.retryAfter = notBefore - now
                run.giveUp(error)
                return
            }
            return
        }
        while transfers.hasRoom {
            let mayUpload = settings.uploadPace?.has(now) ?? true
            guard run.hasNext(now, mayUpload), settings.pace?.take(now) ?? true, let attempt = run.next(now, mayUpload) else { return }
            if attempt.request.isUpload { _ = settings.uploadPace?.take(now) }
            try start(attempt, &run)
        }
    }

    private func start(_ given: Attempt, _ run: inout Run) throws {
        var attempt = given
        if attempt.redirects == 0, let address = settings.readdress?(attempt.request) { attempt.address = address }
        let transfer = HTTPTransfer(attempt.request, to: attempt.address, begun: attempt.begun)
        attempt.tries += 1
        attempt.transfer = transfer
        // Credentials are not sent to a server other than the one for which they were given.
        let isThere = attempt.address.origin == attempt.request.address.origin && attempt.address.keepsSecrets
        let isOurs = isThere && !attempt.request.isAnonymous
        attempt.credentials = isOurs ? credentials : nil
        var headers = attempt.request.headers
        if let destination = attempt.request.destination?.following(attempt.request.address, to: attempt.address) {
            headers.append(("Destination", destination.text))
        }
        if let signature = settings.signature {
            if let credentials = attempt.credentials, credentials.user != nil {
                let now = signingTime
                attempt.signedAt = now
                headers += try signature.headers(for: attempt.request, to: attempt.address, credentials, now: now)
            }
        } else if let credentials = attempt.credentials {
            attempt.scheme = credentials.token != nil ? LLVS_CURL_BEARER : credentials.user != nil ? scheme : LLVS_CURL_NONE
        }
        if let begun = attempt.begun { headers.append(("If-Range", begun.tag)) }
        // Compressed answers are not supported. Waiting for "100 Continue" costs a second if a server does not know it.
        headers += [("Accept-Encoding", "identity"), ("Expect", "")]
        let lines = headers.map { name, value in value.isEmpty ? "\(name):" : "\(name): \(value)" }
        let made = attempt
        switch try transfers.start(transfer, [lines], { easy, call, curl in prepare(easy, made, transfer, call, curl) }) {
        case .running(let easy):
            run.active[easy] = attempt
            lock.withLock { counted.requests += 1 }
        case .ended(let end): run.settle(attempt, .failure(HTTPFailure.error(end.result, end.said, attempt.request.what)))
        }
    }

    private func prepare(
        _ easy: UnsafeMutableRawPointer, _ attempt: Attempt, _ transfer: HTTPTransfer, _ call: CurlTransfers.Call, _ curl: Curl
    ) -> CURLcode {
        var request = llvs_curl_request()
        request.body_size = Int64(attempt.request.body.size ?? -1)
        request.scheme = attempt.scheme
        request.is_head = attempt.request.method == .head ? 1 : 0
        request.stall = Int32(clamping: settings.stall)
        request.connect = Int32(clamping: min(15, settings.stall))
        request.context = Unmanaged.passUnretained(transfer).toOpaque()
        request.read = HTTPCallbacks.read
        request.write = HTTPCallbacks.write
        request.header = HTTPCallbacks.header
        request.seek = HTTPCallbacks.seek
        request.problem = call.words
        request.headers = call.lists.first ?? nil
        let there = attempt.begun?.spool.size ?? 0
        let range =
            attempt.request.range.map { "\($0.lowerBound + there)-\(max($0.lowerBound + there, $0.upperBound - 1))" }
            ?? (there > 0 ? "\(there)-" : nil)
        let who = attempt.scheme == LLVS_CURL_NONE ? nil : attempt.credentials, password = who?.user == nil ? nil : who?.password ?? ""
        let texts = [
            attempt.request.method.rawValue, attempt.address.text, who?.user, password, who?.token,
            settings.certificateAuthorities, settings.proxy, range, settings.hostsWithoutProxy(attempt.address),
        ]
        return CurlTransfers.withTexts(texts) { texts in
            request.method = texts[0]
            request.url = texts[1]
            request.user = texts[2]
            request.password = texts[3]
            request.token = texts[4]
            request.ca_file = texts[5]
            request.proxy = texts[6]
            request.range = texts[7]
            request.no_proxy = texts[8]
            return llvs_curl_prepare(curl, easy, &request)
        }
    }

    private func step(_ run: inout Run, _ check: () throws -> Void) throws {
        try transfers.step { easy, end in
            guard let attempt = run.active.removeValue(forKey: easy), let transfer = attempt.transfer else { return }
            lock.withLock {
                counted.bytesUp += transfer.sent; counted.bytesDown += transfer.received
            }
            try finish(attempt, transfer, end, &run, check)
        }
    }
}
