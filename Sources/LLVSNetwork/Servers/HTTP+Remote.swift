// The parts that services over HTTP have in common.

extension HTTPSettings {
    /// The requests of an account per second if the service's limit is not known, and those at once: a minute's, which no exchange in
    /// packs reaches.
    private static let perSecond = 20.0, atOnce = 1_200.0

    /// The same settings with a rate limit that all exchanges of this process share for that server and account.
    func sharingPace(with address: HTTPAddress) -> HTTPSettings {
        var settings = self
        let origin = address.origin
        let parts = [origin.scheme, origin.host, "\(origin.port)", credentials.user ?? "", credentials.token ?? ""]
        settings.pace = RequestPace.shared(
            parts.joined(separator: "\n"), perSecond: address.isLoopback ? nil : HTTPSettings.perSecond, depth: HTTPSettings.atOnce)
        // Cloudflare's R2 slows down clients with more transfers at once.
        if origin.host.hasSuffix(".r2.cloudflarestorage.com") { settings.transfersAtOnce = 2 }
        return settings
    }
}

extension HTTPRequest.Body {
    /// A large file is written to disk first, so that it can be sent again.
    package init(_ data: OutgoingFile, _ check: () throws -> Void) throws {
        guard data.size > ExchangeLimits.wholeFileSize else { self = .bytes(try data.bytes()); return }
        let file = try TemporaryFile()
        var at = 0, checked = 0
        try data.forEachPiece { piece in
            if at - checked >= OperationControl.bytesPerCheck { try check(); checked = at }
            try file.write(piece, at: at)
            at += piece.count
        }
        self = .file(file, size: at)
    }
}

extension RemoteContents {
    /// The result of a GET.
    /// - Parameter hasRanges: called with whether a requested range was respected.
    /// - Throws: errors that are not about this one file.
    package init(
        _ request: HTTPRequest, _ outcome: HTTPClient.Outcome, error: (HTTPResponse, String) -> StoreError, hasRanges: (Bool) -> Void
    )
        throws
    {
        let response: HTTPResponse
        do throws(StoreError) { response = try outcome.get() } catch let failure {
            guard failure.code == .tooLarge else { throw failure }
            self = .unreadable(failure)
            return
        }
        switch response.status {
        case 200, 206:
            if let replacement = response.replacement {
                self = .unreadable(StoreError(.transport, "\(request.what) failed: \(replacement)."))
                return
            }
            let isWhole = response.status == 200
            if request.range != nil { hasRanges(!isWhole) }
            switch response.body {
            case .bytes(let bytes): self = .bytes(bytes, isWhole: isWhole)
            case .file(let file, let size): self = .large(TemporaryFileReader(file, size: size))
            case .read: throw StoreError(.internal, "The body of a response was not received.")
            }
        case 404, 410: self = .missing
        // The range is after the end.
        case 416: self = .bytes([], isWhole: false)
        case 403, 423:
            let failure = error(response, request.what)
            // "Too many requests" concerns the server as a whole. A locked file (423) concerns this file alone.
            guard response.status == 423 || failure.code != .busy else { throw failure }
            self = .unreadable(failure)
        default: throw error(response, request.what)
        }
    }
}

extension HTTPClient {
    /// Reads files. A lasting failure of the server with one file is a problem of that file. But if the server also fails for a name that
    /// does not exist, it is down.
    func read(
        _ requests: [HTTPRequest], nothingAt address: HTTPAddress, error: (HTTPResponse, String) -> StoreError, hasRanges: (Bool) -> Void,
        _ check: () throws -> Void
    ) throws -> [RemoteContents] {
        var trouble = ServiceTrouble()
        let contents = try zip(requests, perform(requests, check)).map { request, outcome in
            try trouble.reading { try RemoteContents(request, outcome, error: error, hasRanges: hasRanges) }
        }
        try trouble.end(reading: contents) {
            let request = HTTPRequest(method: .get, address: address, doing: "Reading"), response = try perform(request, check)
            if (500...599).contains(response.status) { throw error(response, request.what) }
        }
        return contents
    }
}
