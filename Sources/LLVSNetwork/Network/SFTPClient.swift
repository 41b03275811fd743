import CNetwork

/// Transfers files to and from one SSH server, four at once, over connections that stay open between calls (libcurl's SFTP).
///
/// Runs on the calling thread, one call at a time. Its errors and log messages hold no credentials.
final class SFTPClient: @unchecked Sendable {
    // Sendable: `lock` guards the counts, `gate` all else.
    /// One transfer, with libcurl's commands around it.
    struct Request {
        /// The transfer. Fields for HTTP alone are ignored.
        var transfer: HTTPRequest
        /// The commands after an upload, such as `rename "a" "b"`. A command with a star in front may fail.
        var after: [String] = []
        /// The commands instead of a transfer; the address is then that of a directory.
        var commands: [String] = []
        /// Whether the request may be repeated if it is unknown whether it succeeded.
        var repeats = true
        /// Whether the file's name determines its content. If so, a broken transfer can be resumed.
        var isNamedByContent = false

        var what: String { transfer.what }
    }
    typealias Outcome = Result<HTTPResponse.Body, SFTPFailure>

    private let settings: HTTPSettings
    /// The name of the place in messages.
    private let place: String
    private let gate = Gate("connection")
    private let lock = Lock(.leaf)
    private var counted = HTTPClient.Counts()
    /// The requests and bytes so far. A transfer counts as one request, and so does each command.
    var counts: HTTPClient.Counts { lock.withLock { counted } }

    // Guarded by the gate.
    private let transfers: CurlTransfers
    private var credentials: HTTPCredentials?
    private var hasAskedAgain = false

    init(_ settings: HTTPSettings, place: String) {
        var settings = settings
        if settings.knownHosts == nil { settings.knownHosts = SFTPClient.ownKnownHosts }
        self.settings = settings
        self.place = place
        transfers = CurlTransfers(place, stall: settings.stall)
    }
    deinit { close() }

    /// The file that OpenSSH's programs use.
    private static var ownKnownHosts: String? { getenv("HOME").map { String(cString: $0) + "/.ssh/known_hosts" } }

    /// Closes all connections. They are opened again when needed.
    func close() { gate.runAlone { transfers.close() } }

    /// Returns the user name, as `HTTPClient.user`.
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

    /// Makes one request, and returns its result.
    func perform(_ request: Request, _ check: () throws -> Void) throws -> Outcome {
        try perform([request], check).first ?? .failure(SFTPFailure(StoreError(.internal, "A request was not made.")))
    }

    /// Makes several requests, and returns their results in order.
    /// - Parameter check: called every 50 ms at least, except while libcurl waits for a silent server at the end of a transfer. An error
    ///   that it throws ends all active requests.
    /// - Throws: errors of `check`, `.unsupported` without a libcurl that has SFTP, and errors from asking for credentials.
    func perform(_ requests: [Request], _ check: () throws -> Void) throws -> [Outcome] {
        guard !requests.isEmpty else { return [] }
        return try gate.run("A request to \(place)") {
            try check()
            hasAskedAgain = false
            _ = try transfers.open { try NetworkLibraries.curlWithSFTP(for: place) }
            try settings.fill(&credentials, for: place, check)
            guard credentials?.user != nil, credentials?.token == nil else {
                throw StoreError(
                    .invalidArgument, "Reaching \(place) failed: it accepts a user, and no token. Give the option user, and no token.")
            }
            var run = Run(requests)
            // libcurl has pointers into the run until each transfer is released.
            defer { withExtendedLifetime(run) { transfers.dropAll() } }
            while !run.isDone {
                try check()
                while transfers.hasRoom, let attempt = run.next() { try start(attempt, &run) }
                if !run.isDone { try step(&run, check) }
            }
            return run.outcomes.map { $0 ?? .failure(SFTPFailure(StoreError(.internal, "A request has no outcome."))) }
        }
    }

    // MARK: One call

    /// The state of a request across tries.
    private struct Attempt {
        let index: Int
        let request: Request
        var tries = 0
        /// The earliest time of the next try, by `Clock.steady`.
        var notBefore = 0.0
        /// The credentials that were sent.
        var credentials: HTTPCredentials?
        var transfer: HTTPTransfer?
        /// The part of a file that earlier tries received.
        var begun = Spool()
    }
    private struct Run {
        var waiting: [Attempt]
        var active: [UnsafeMutableRawPointer: Attempt] = [:]
        var outcomes: [Outcome?]
        init(_ requests: [Request]) {
            // Requests are taken from the end of the list.
            waiting = requests.enumerated().reversed().map { Attempt(index: $0, request: $1) }
            outcomes = requests.map { _ in nil }
        }
        var isDone: Bool { waiting.isEmpty && active.isEmpty }
        mutating func next() -> Attempt? {
            let now = Clock.steady()
            return waiting.lastIndex { $0.notBefore <= now }.map { waiting.remove(at: $0) }
        }
    }

    private func start(_ given: Attempt, _ run: inout Run) throws {
        var attempt = given
        let request = attempt.request
        let transfer = HTTPTransfer(request.transfer, to: request.transfer.address, goingOn: attempt.begun, status: 200)
        attempt.tries += 1
        attempt.transfer = transfer
        attempt.credentials = credentials
        let made = attempt
        let lines = [request.commands, request.after]
        switch try transfers.start(transfer, lines, { easy, call, curl in prepare(easy, made, transfer, call, curl) }) {
        case .running(let easy):
            run.active[easy] = attempt
            let commands = request.commands.count + request.after.count
            lock.withLock { counted.requests += request.commands.isEmpty ? 1 + commands : commands }
        case .ended(let end):
            run.outcomes[attempt.index] = .failure(SFTPFailure(end.result, end.said, request.what, knownHosts: settings.knownHosts))
        }
    }

    private func prepare(
        _ easy: UnsafeMutableRawPointer, _ attempt: Attempt, _ transfer: HTTPTransfer, _ call: CurlTransfers.Call, _ curl: Curl
    ) -> CURLcode {
        let asked = attempt.request.transfer
        var request = llvs_curl_request(), sftp = llvs_curl_sftp()
        request.body_size = Int64(asked.body.size ?? -1)
        request.stall = Int32(clamping: settings.stall)
        request.connect = Int32(clamping: min(15, settings.stall))
        request.context = Unmanaged.passUnretained(transfer).toOpaque()
        request.read = HTTPCallbacks.read
        request.write = HTTPCallbacks.write
        request.seek = HTTPCallbacks.seek
        request.problem = call.words
        sftp.before = call.lists.first ?? nil
        sftp.after = call.lists.last ?? nil
        sftp.is_commands = attempt.request.commands.isEmpty ? 0 : 1
        let there = attempt.begun.size
        let range =
            asked.range.map { "\($0.lowerBound + there)-\(max($0.lowerBound + there, $0.upperBound - 1))" }
            ?? (there > 0 ? "\(there)-" : nil)
        let texts = [
            asked.address.text, attempt.credentials?.user, attempt.credentials?.password, settings.proxy, range,
            settings.knownHosts, settings.keyFile, settings.hostsWithoutProxy(asked.address),
        ]
        return CurlTransfers.withTexts(texts) { texts in
            request.url = texts[0]
            request.user = texts[1]
            request.password = texts[2]
            request.proxy = texts[3]
            request.range = texts[4]
            sftp.known_hosts = texts[5]
            sftp.key_file = texts[6]
            request.no_proxy = texts[7]
            return llvs_curl_prepare_sftp(curl, easy, &request, &sftp)
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

    // MARK: Results of attempts

    private func finish(
        _ attempt: Attempt, _ transfer: HTTPTransfer, _ end: CurlTransfers.End, _ run: inout Run, _ check: () throws -> Void
    ) throws {
        let result = end.result, said = end.said
        if let failure = transfer.failure {
            guard let error = failure as? StoreError, [.tooLarge, .transport].contains(error.code) else { throw failure }
            run.outcomes[attempt.index] = .failure(SFTPFailure(error))
            return
        }
        guard result != CURLE_OK else {
            try transfer.finish()
            run.outcomes[attempt.index] = .success(transfer.response.body)
            return
        }
        let failure = SFTPFailure(result, said, attempt.request.what, knownHosts: settings.knownHosts)
        let isPassing = failure.isPassing && !end.isOfSlowServer
        if result == CURLE_BAD_DOWNLOAD_RESUME, attempt.begun.size > 0 {
            // The file is shorter than the received part, so all of it is requested again.
            var whole = attempt
            whole.begun = Spool()
            return again(whole, &run, soon: true)
        }
        if isPassing, attempt.request.isNamedByContent, let came = transfer.beginning,
            came.size >= attempt.begun.size + HTTPTransfer.Begun.least, came.size < asked(attempt)
        {
            // A connection that keeps breaking still ends the request, unless each try receives more of the file.
            var next = attempt
            (next.begun, next.tries) = (came, 1)
            return again(next, &run)
        }
        if result == CURLE_LOGIN_DENIED, try renew(attempt, check) { return again(attempt, &run, soon: true) }
        let mayRepeat = attempt.request.repeats || failure.isOfConnecting
        if isPassing, mayRepeat, attempt.tries < failure.mostTries { return again(attempt, &run) }
        run.outcomes[attempt.index] = .failure(failure)
        guard failure.isOfPlace else { return }
        // The server is unreachable, so requests that have not begun end with the same error.
        for other in run.waiting { run.outcomes[other.index] = .failure(failure) }
        run.waiting = []
    }

    /// The number of requested bytes.
    private func asked(_ attempt: Attempt) -> Int { attempt.request.transfer.range?.count ?? .max }

    private func again(_ attempt: Attempt, _ run: inout Run, soon: Bool = false) {
        let most = min(HTTPClient.longestBackOff, 0.25 * Double(1 << min(attempt.tries, 10)))
        var next = Attempt(index: attempt.index, request: attempt.request)
        next.begun = attempt.begun
        next.tries = soon ? max(0, attempt.tries - 1) : attempt.tries
        next.notBefore = soon ? 0 : Clock.steady() + Double.random(in: 0...most)
        run.waiting.append(next)
    }

    /// Returns whether there are credentials other than the refused ones.
    private func renew(_ attempt: Attempt, _ check: () throws -> Void) throws -> Bool {
        if attempt.credentials != credentials { return true }
        guard settings.askForCredentials != nil, !hasAskedAgain else { return false }
        hasAskedAgain = true
        let refused = attempt.credentials ?? HTTPCredentials()
        guard let fresh = try settings.credentials(for: place, refused: refused, check), fresh != credentials, fresh.user != nil else {
            return false
        }
        credentials = fresh
        return true
    }
}
