import CNetwork

/// Makes requests to one server, four at once, over connections that stay open between calls.
///
/// Runs on the thread that calls, one call at a time. Follows redirects, retries, and knows where credentials may go
/// (docs/remote-files.md). Nothing that it throws or logs holds a credential.
final class HTTPClient: @unchecked Sendable {
    // Sendable: `lock` guards the counts, `gate` all else.
    /// What becomes of a request.
    typealias Outcome = Result<HTTPResponse, StoreError>

    /// How much was asked and moved, since it was made.
    struct Counts: Sendable { var requests = 0, bytesUp = 0, bytesDown = 0 }

    static let transfersAtOnce = 4
    static let mostRedirects = 5
    /// Seconds that are waited because a server says so, and between tries.
    static let longestWait = 60.0, longestBackOff = 8.0
    private static let stepMilliseconds: Int32 = 50

    let settings: HTTPSettings
    /// For messages.
    let place: String
    private let gate = Gate("connection")
    private let lock = Lock(.leaf)
    private var counted = Counts()
    var counts: Counts { lock.withLock { counted } }

    // Guarded by the gate.
    private var curl: Curl?
    private var multi: UnsafeMutableRawPointer?
    private var idle: [UnsafeMutableRawPointer] = []
    var credentials: HTTPCredentials?
    var scheme = LLVS_CURL_BASIC
    /// How often others were asked for in the place of refused credentials, while nothing was answered well: a host once, who renews them
    /// itself a few times in each call.
    var renewals = 0
    static let mostRenewals = 3
    /// By `Clock.steady`: nothing is asked before.
    var notBefore = 0.0

    init(_ settings: HTTPSettings, place: String) { self.settings = settings; self.place = place }
    deinit { close() }

    /// Lets go of all connections; they are made anew when they are needed.
    func close() {
        gate.runAlone {
            guard let curl else { return }
            for easy in idle { llvs_curl_close(curl, easy) }
            idle = []
            if let multi { llvs_curl_close_multi(curl, multi) }
            multi = nil
        }
    }

    /// The answer to one request.
    func perform(_ request: HTTPRequest, _ check: () throws -> Void) throws -> HTTPResponse {
        guard let outcome = try perform([request], check).first else { throw StoreError(.internal, "A request was not made.") }
        return try outcome.get()
    }

    /// What became of each, in order. An answer of any status is one.
    /// - Parameter check: called every 50 ms at least; what it throws ends all that is under way.
    /// - Throws: what `check` throws, `.unsupported` without libcurl, and what asking for credentials throws.
    func perform(_ requests: [HTTPRequest], _ check: () throws -> Void) throws -> [Outcome] {
        guard !requests.isEmpty else { return [] }
        return try gate.run("A request to \(place)") {
            try check()
            if settings.renew != nil { renewals = 0 }
            let curl = try library()
            if credentials == nil { credentials = try settings.credentials(for: place, refused: nil, check) ?? settings.credentials }
            var run = Run(requests)
            defer { for (easy, attempt) in run.active { drop(easy, attempt, curl) } }
            while !run.isDone {
                try check()
                try start(&run, curl)
                try step(&run, curl, check)
            }
            return run.outcomes
        }
    }

    /// Waits as before another try of a request.
    func pause(_ tries: Int, _ check: () throws -> Void) throws {
        let until = Clock.steady() + Double.random(in: 0...min(HTTPClient.longestBackOff, 0.25 * Double(1 << min(max(0, tries), 10))))
        while Clock.steady() < until {
            try check()
            usleep(UInt32(HTTPClient.stepMilliseconds) * 400)
        }
    }

    private func library() throws -> Curl {
        System.fillStandard()
        let curl = try self.curl ?? NetworkLibraries.curl(for: place)
        self.curl = curl
        if multi == nil {
            guard let made = curl.pointee.multi_init() else { throw HTTPClient.short(place) }
            llvs_curl_prepare_multi(curl, made, Int32(HTTPClient.transfersAtOnce))
            multi = made
        }
        return curl
    }

    private static func short(_ place: String) -> StoreError {
        StoreError(.outOfMemory, "Reaching \(place) failed: libcurl has no memory. Free some, and try again.")
    }

    // MARK: One call

    /// A request on its way through tries and redirects.
    struct Attempt {
        let index: Int
        let request: HTTPRequest
        var address: HTTPAddress
        var tries = 0, redirects = 0
        /// By `Clock.steady`.
        var notBefore = 0.0
        /// With which credentials it went.
        var credentials: HTTPCredentials?, scheme = LLVS_CURL_NONE
        var transfer: HTTPTransfer?
        /// For what libcurl says.
        var words: UnsafeMutablePointer<CChar>?
        var headers: UnsafeMutablePointer<curl_slist>?
    }
    struct Run {
        var waiting: [Attempt]
        var active: [UnsafeMutableRawPointer: Attempt] = [:]
        private var found: [Outcome?]
        init(_ requests: [HTTPRequest]) {
            // The first is taken from the end.
            waiting = requests.enumerated().reversed().map { Attempt(index: $0, request: $1, address: $1.address) }
            found = requests.map { _ in nil }
        }
        var isDone: Bool { waiting.isEmpty && active.isEmpty }
        var outcomes: [Outcome] { found.map { $0 ?? .failure(StoreError(.internal, "A request has no outcome.")) } }
        mutating func settle(_ attempt: Attempt, _ outcome: Outcome) { found[attempt.index] = outcome }
        /// Nobody is there: what was not begun ends likewise.
        mutating func giveUp(_ error: StoreError) {
            for attempt in waiting { settle(attempt, .failure(error)) }
            waiting = []
        }
        func hasNext(_ now: Double) -> Bool { waiting.contains { $0.notBefore <= now } }
        mutating func next(_ now: Double) -> Attempt? {
            waiting.lastIndex { $0.notBefore <= now }.map { waiting.remove(at: $0) }
        }
    }

    private func start(_ run: inout Run, _ curl: Curl) throws {
        let now = Clock.steady(), notBefore = max(self.notBefore, settings.pace?.notBefore ?? self.notBefore)
        guard notBefore <= now else {
            guard notBefore - now <= HTTPClient.longestWait else {
                run.giveUp(
                    StoreError(
                        .busy,
                        "Reaching \(place) failed: the server wants to be left alone for \(Int(notBefore - now)) more seconds "
                            + "(Retry-After). Exchange again after that."
                    ))
                return
            }
            return
        }
        while run.active.count < HTTPClient.transfersAtOnce, run.hasNext(now), settings.pace?.take(now) ?? true,
              let attempt = run.next(now)
        {
            try start(attempt, &run, curl)
        }
    }

    private func start(_ given: Attempt, _ run: inout Run, _ curl: Curl) throws {
        var attempt = given
        guard let multi, let easy = idle.popLast() ?? curl.pointee.easy_init() else { throw HTTPClient.short(place) }
        let transfer = HTTPTransfer(attempt.request, to: attempt.address)
        attempt.tries += 1
        attempt.transfer = transfer
        // To another server than the one that they were given for they do not go.
        let isThere = attempt.address.origin == attempt.request.address.origin && attempt.address.keepsSecrets
        let isOurs = isThere && !attempt.request.isAnonymous
        attempt.credentials = isOurs ? credentials : nil
        var headers = attempt.request.headers
        if let signature = settings.signature {
            if let credentials = attempt.credentials, credentials.user != nil {
                let now = Int64(Clock.now() + Clock.secondsFrom1970To2001)
                headers += try signature.headers(for: attempt.request, to: attempt.address, credentials, now: now)
            }
        } else if let credentials = attempt.credentials {
            attempt.scheme = credentials.token != nil ? LLVS_CURL_BEARER : credentials.user != nil ? scheme : LLVS_CURL_NONE
        }
        let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        attempt.words = words
        // Waiting for "100 Continue" costs a second where a server does not know it.
        for (name, value) in headers + [("Expect", "")] {
            let line = value.isEmpty ? "\(name):" : "\(name): \(value)"
            attempt.headers = curl.pointee.slist_append(attempt.headers, line) ?? attempt.headers
        }
        let result = prepare(easy, attempt, transfer, curl)
        guard result == CURLE_OK, curl.pointee.multi_add_handle(multi, easy) == CURLM_OK else {
            let said = curl.pointee.easy_strerror(result).map { String(cString: $0) } ?? ""
            free(attempt, curl)
            llvs_curl_close(curl, easy)
            run.settle(attempt, .failure(HTTPFailure.error(result, said, attempt.request.what)))
            return
        }
        run.active[easy] = attempt
        lock.withLock { counted.requests += 1 }
    }

    private func prepare(_ easy: UnsafeMutableRawPointer, _ attempt: Attempt, _ transfer: HTTPTransfer, _ curl: Curl) -> CURLcode {
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
        request.problem = attempt.words
        request.headers = attempt.headers
        let range = attempt.request.range.map { "\($0.lowerBound)-\(max($0.lowerBound, $0.upperBound - 1))" }
        let who = attempt.scheme == LLVS_CURL_NONE ? nil : attempt.credentials, password = who?.user == nil ? nil : who?.password ?? ""
        let texts = [attempt.request.method.rawValue, attempt.address.text, who?.user, password, who?.token,
                     settings.certificateAuthorities, settings.proxy, range]
        return HTTPClient.withTexts(texts) { texts in
            request.method = texts[0]
            request.url = texts[1]
            request.user = texts[2]
            request.password = texts[3]
            request.token = texts[4]
            request.ca_file = texts[5]
            request.proxy = texts[6]
            request.range = texts[7]
            return llvs_curl_prepare(curl, easy, &request)
        }
    }

    /// Texts as C has them, for the length of a call.
    static func withTexts<R>(_ texts: [String?], _ body: ([UnsafePointer<CChar>?]) -> R) -> R {
        let copies = texts.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { releaseText(copy) } }
        return body(copies.map { $0.map { UnsafePointer($0) } })
    }

    private func step(_ run: inout Run, _ curl: Curl, _ check: () throws -> Void) throws {
        guard let multi else { throw HTTPClient.short(place) }
        guard !run.active.isEmpty else {
            // All wait for their next try.
            if !run.isDone { usleep(UInt32(HTTPClient.stepMilliseconds) * 400) }
            return
        }
        // libcurl opens connections here, some of which stay open: what the host prints is not to go into a request.
        System.fillStandard()
        var running: Int32 = 0
        let stepped = llvs_curl_step(curl, multi, HTTPClient.stepMilliseconds, &running)
        guard stepped == CURLM_OK else {
            throw StoreError(.transport, "Reaching \(place) failed: libcurl gives up (CURLM \(stepped.rawValue)). Try again.")
        }
        var result = CURLE_OK
        while let easy = llvs_curl_next(curl, multi, &result) {
            guard let attempt = run.active.removeValue(forKey: easy), let transfer = attempt.transfer else { continue }
            llvs_curl_remove(curl, multi, easy)
            defer { idle.append(easy) }
            let said = attempt.words.map { String(cString: $0) } ?? ""
            let words = said.isEmpty ? curl.pointee.easy_strerror(result).map { String(cString: $0) } ?? "" : said
            free(attempt, curl)
            lock.withLock { counted.bytesUp += transfer.sent; counted.bytesDown += transfer.received }
            try finish(attempt, transfer, result, words, &run, check)
        }
    }

    private func free(_ attempt: Attempt, _ curl: Curl) {
        attempt.words?.deallocate()
        curl.pointee.slist_free_all(attempt.headers)
    }

    /// What is under way when a call ends is not finished.
    private func drop(_ easy: UnsafeMutableRawPointer, _ attempt: Attempt, _ curl: Curl) {
        if let multi { llvs_curl_remove(curl, multi, easy) }
        llvs_curl_close(curl, easy)
        free(attempt, curl)
    }
}

/// The C library's, which a method hides by its name.
private func releaseText(_ text: UnsafeMutablePointer<CChar>?) { free(text) }
