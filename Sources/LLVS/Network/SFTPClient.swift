import CNetwork

/// Transfers files to and from one SSH server, four at once, over connections that stay open between calls (libcurl's SFTP).
///
/// Runs on the thread that calls, one call at a time. Nothing that it throws or logs holds a credential.
final class SFTPClient: @unchecked Sendable {
    // Sendable: `lock` guards the counts, `gate` all else.
    /// One transfer, with the commands of libcurl around it.
    struct Request {
        /// Of the transfer; what is of HTTP alone has no meaning.
        var transfer: HTTPRequest
        /// Done after an upload: "rename "a" "b"". A star in front: whatever comes of it.
        var after: [String] = []
        /// Done in the place of a transfer; then the address is that of a directory.
        var commands: [String] = []
        /// Whether it may be made again where nobody knows if it was done.
        var repeats = true
        /// Whether the name of what is read says what is in it: then a line that breaks costs nothing that came.
        var isNamedByContent = false

        var what: String { transfer.what }
    }
    typealias Outcome = Result<HTTPResponse.Body, SFTPFailure>

    private let settings: HTTPSettings
    /// For messages.
    private let place: String
    private let gate = Gate("connection")
    private let lock = Lock(.leaf)
    private var counted = HTTPClient.Counts()
    /// A transfer counts as one, and each command.
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

    /// Lets go of all connections; they are made anew when they are needed.
    func close() { gate.runAlone { transfers.close() } }

    /// As `HTTPClient.user`.
    func user(_ check: (() throws -> Void)?) throws -> String? {
        guard let check else {
            // Nobody waits for requests to know that.
            let known = try gate.runUnlessBusy("A request to \(place)") { credentials ?? settings.credentials }
            return (known ?? settings.credentials).user
        }
        return try gate.run("A request to \(place)") {
            try settings.fill(&credentials, for: place, check)
            return credentials?.user
        }
    }

    /// What became of one.
    func perform(_ request: Request, _ check: () throws -> Void) throws -> Outcome {
        try perform([request], check).first ?? .failure(SFTPFailure(StoreError(.internal, "A request was not made.")))
    }

    /// What became of each, in order.
    /// - Parameter check: called every 50 ms at least, but while a server is silent at the end of a transfer, when libcurl waits;
    ///   what it throws ends all that is under way.
    /// - Throws: what `check` throws, `.unsupported` without a libcurl that has SFTP, and what asking for credentials throws.
    func perform(_ requests: [Request], _ check: () throws -> Void) throws -> [Outcome] {
        guard !requests.isEmpty else { return [] }
        return try gate.run("A request to \(place)") {
            try check()
            hasAskedAgain = false
            _ = try transfers.open { try NetworkLibraries.curlWithSFTP(for: place) }
            try settings.fill(&credentials, for: place, check)
            guard credentials?.user != nil, credentials?.token == nil else {
                throw StoreError(
                    .invalidArgument, "Reaching \(place) failed: it takes a user, and no token. Give the option user, and no token.")
            }
            var run = Run(requests)
            // libcurl has pointers to what the run holds, until it has let go of each transfer.
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

    /// A request on its way through tries.
    private struct Attempt {
        let index: Int
        let request: Request
        var tries = 0
        /// By `Clock.steady`.
        var notBefore = 0.0
        /// With which credentials it went.
        var credentials: HTTPCredentials?
        var transfer: HTTPTransfer?
        /// What earlier tries got of a file.
        var begun = Spool()
    }
    private struct Run {
        var waiting: [Attempt]
        var active: [UnsafeMutableRawPointer: Attempt] = [:]
        var outcomes: [Outcome?]
        init(_ requests: [Request]) {
            // The first is taken from the end.
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

    // MARK: What came of an attempt

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
            // It is shorter than what came of it: all of it is asked for.
            var whole = attempt
            whole.begun = Spool()
            return again(whole, &run, soon: true)
        }
        if isPassing, attempt.request.isNamedByContent, let came = transfer.beginning,
            came.size >= attempt.begun.size + HTTPTransfer.Begun.least, came.size < asked(attempt)
        {
            // A line that breaks again and again still ends: each time some of the file must have come.
            var next = attempt
            (next.begun, next.tries) = (came, 1)
            return again(next, &run)
        }
        if result == CURLE_LOGIN_DENIED, try renew(attempt, check) { return again(attempt, &run, soon: true) }
        let mayRepeat = attempt.request.repeats || failure.isOfConnecting
        if isPassing, mayRepeat, attempt.tries < failure.mostTries { return again(attempt, &run) }
        run.outcomes[attempt.index] = .failure(failure)
        guard failure.isOfPlace else { return }
        // Nobody is there: what was not begun ends likewise.
        for other in run.waiting { run.outcomes[other.index] = .failure(failure) }
        run.waiting = []
    }

    /// Bytes that are wanted.
    private func asked(_ attempt: Attempt) -> Int { attempt.request.transfer.range?.count ?? .max }

    private func again(_ attempt: Attempt, _ run: inout Run, soon: Bool = false) {
        let most = min(HTTPClient.longestBackOff, 0.25 * Double(1 << min(attempt.tries, 10)))
        var next = Attempt(index: attempt.index, request: attempt.request)
        next.begun = attempt.begun
        next.tries = soon ? max(0, attempt.tries - 1) : attempt.tries
        next.notBefore = soon ? 0 : Clock.steady() + Double.random(in: 0...most)
        run.waiting.append(next)
    }

    /// Whether there are other credentials than those that were refused.
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
