import CNetwork

/// Decides what follows an attempt: a result, a retry, another address, or other credentials.
extension HTTPClient {
    func finish(
        _ attempt: Attempt, _ transfer: HTTPTransfer, _ end: CurlTransfers.End, _ run: inout Run, _ check: () throws -> Void
    ) throws {
        let what = attempt.request.what, result = end.result
        if let failure = transfer.failure {
            guard let error = failure as? StoreError, [.tooLarge, .transport].contains(error.code) else { throw failure }
            return run.settle(attempt, .failure(error))
        }
        guard result == CURLE_OK || transfer.isCutOff else {
            let error = HTTPFailure.error(end, what)
            let isRepeatable = attempt.request.repeats ?? attempt.request.method.isRepeatable
            let mayRepeat = isRepeatable && attempt.tries < HTTPFailure.mostTries(result)
            let next = attempt.resuming(transfer)
            if HTTPFailure.isPassing(end), mayRepeat || (isRepeatable && next.tries < attempt.tries) { return again(next, nil, &run) }
            run.settle(attempt, .failure(error))
            if HTTPFailure.isOfPlace(result) { run.giveUp(error) }
            return
        }
        if let hears = settings.hears { transfer.add(try hears(transfer.response, attempt.request)) }
        let response = transfer.response
        if attempt.begun != nil, response.status == 416 || (response.status == 206 && !transfer.isResumed) {
            // The file is shorter now, or a different one: request all of it.
            var whole = attempt
            whole.begun = nil
            return again(whole, nil, &run, soon: true)
        }
        if (300...399).contains(response.status), response.status != 304, let location = response.header("location") {
            return follow(attempt, location, &run)
        }
        let verdict = settings.judge?(response, attempt.request) ?? .plain
        if mustSignAnew(attempt, response, verdict) {
            var next = attempt
            next.isSignedAnew = true
            return again(next, nil, &run, soon: true)
        }
        let isRefused = if case .refused = verdict { true } else { response.status == 401 }
        if isRefused, try renew(attempt, response, check) { return again(attempt, nil, &run, soon: true) }
        if !isRefused { renewals = 0 }
        if attempt.tries < HTTPFailure.mostTries, isPassing(response, attempt.request, verdict) {
            var isOfAll = response.status == 429
            if case .tooMany = verdict { isOfAll = true }
            return again(attempt, response.retryAfter, &run, isOfAll: isOfAll)
        }
        if !response.isSuccess, let retryAfter = response.retryAfter { leaveAlone(until: Clock.steady() + retryAfter) }
        try transfer.finish()
        run.settle(attempt, .success(transfer.response))
    }

    /// The seconds by which two clocks may differ. Services allow at least 5 minutes.
    private static let clockTolerance: Int64 = 240

    /// Returns whether the service refuses the signature of a request, and not the account. If the clocks differ, later signatures use
    /// the service's time, so a device with a wrong clock can continue. An answer without a body, to HEAD, does not say why it refuses.
    private func mustSignAnew(_ attempt: Attempt, _ response: HTTPResponse, _ verdict: HTTPVerdict) -> Bool {
        guard let signedAt = attempt.signedAt, !attempt.isSignedAnew else { return false }
        if case .signedForAnother = verdict { return true }
        var isOfTime = false
        if case .signedAtWrongTime = verdict { isOfTime = true }
        guard isOfTime || [401, 403].contains(response.status), let date = response.date else { return false }
        let (difference, overflow) = date.subtractingReportingOverflow(signedAt)
        guard !overflow, isOfTime || difference.magnitude > HTTPClient.clockTolerance.magnitude else { return false }
        clockDifference = date - Int64(Clock.now() + Clock.secondsFrom1970To2001)
        return true
    }

    private func isPassing(_ response: HTTPResponse, _ request: HTTPRequest, _ verdict: HTTPVerdict) -> Bool {
        switch verdict {
        // The request was not carried out.
        case .tooMany: true
        case .plain where request.finalStatuses.contains(response.status): false
        case .passing: request.repeats ?? request.method.isRepeatable
        case .plain, .refused, .signedForAnother, .signedAtWrongTime:
            HTTPFailure.isPassing(response.status, request.method) && (request.repeats ?? true || response.status == 429)
        }
    }

    /// - Parameter isOfAll: whether to pause all requests of the account, and not only this one.
    private func again(_ attempt: Attempt, _ retryAfter: Double?, _ run: inout Run, soon: Bool = false, isOfAll: Bool = false) {
        var next = attempt
        next.transfer = nil
        let now = Clock.steady()
        if let retryAfter { leaveAlone(until: now + retryAfter) }
        let most = min(HTTPClient.longestBackOff, 0.25 * Double(1 << min(attempt.tries, 10)))
        next.notBefore = soon ? now : now + Double.random(in: 0...most)
        if isOfAll { settings.pace?.pause(until: next.notBefore) }
        if soon { next.tries = max(0, next.tries - 1) }
        run.waiting.append(next)
    }

    /// Pauses all requests of the account until a time, in this client and others.
    private func leaveAlone(until time: Double) {
        let time = min(time, Clock.steady() + RequestPace.longestPause)
        notBefore = max(notBefore, time)
        settings.pace?.pause(until: time)
    }

    private func follow(_ attempt: Attempt, _ location: String, _ run: inout Run) {
        let request = attempt.request
        func refuse(_ why: String) {
            run.settle(attempt, .failure(StoreError(.transport, "\(request.what) failed: \(why). Check the address.")))
        }
        var next = attempt
        next.redirects += 1
        guard next.redirects <= HTTPClient.mostRedirects else {
            return refuse("the server redirects more than \(HTTPClient.mostRedirects) times")
        }
        let address: HTTPAddress
        do throws(HTTPAddress.Refusal) { address = try attempt.address.resolving(location) } catch {
            return refuse("the server redirects to an invalid address: \(error.why)")
        }
        if address.origin != attempt.address.origin {
            // The target may be a secret of that server: show only the server's name.
            guard request.method.isReading else {
                return refuse("the server redirects to \(address.shownServer), another server, to which nothing is written")
            }
            guard attempt.address.origin.scheme != "https" || address.origin.scheme == "https" else {
                return refuse("the server redirects to \(address.shownServer), which is not encrypted")
            }
        }
        next.address = address
        next.begun = nil
        again(next, nil, &run, soon: true)
    }

    /// Returns whether a refused request should be retried: the server requires another scheme, or there are new credentials.
    private func renew(_ attempt: Attempt, _ response: HTTPResponse, _ check: () throws -> Void) throws -> Bool {
        let isOurs = !attempt.request.isAnonymous && attempt.address.origin == attempt.request.address.origin
        let mayAsk = settings.askForCredentials != nil || settings.renew != nil
        guard isOurs, attempt.scheme != LLVS_CURL_NONE || mayAsk else { return false }
        // Another attempt has renewed them meanwhile.
        if attempt.credentials != credentials || (attempt.scheme == LLVS_CURL_BASIC && scheme == LLVS_CURL_DIGEST) { return true }
        let wanted = response.headers.filter { $0.name == "www-authenticate" }.map { $0.value.lowercased() }
        func wants(_ scheme: String) -> Bool { wanted.contains { $0.utf8.starts(with: scheme.utf8) } }
        if attempt.scheme == LLVS_CURL_BASIC, wants("digest"), !wants("basic") {
            scheme = LLVS_CURL_DIGEST
            return true
        }
        guard mayAsk, renewals < (settings.renew != nil ? HTTPClient.mostRenewals : 1) else { return false }
        renewals += 1
        let refused = attempt.credentials ?? HTTPCredentials()
        guard let fresh = try settings.credentials(for: place, refused: refused, check), fresh != credentials, !fresh.isEmpty else {
            return false
        }
        credentials = fresh
        return true
    }
}
