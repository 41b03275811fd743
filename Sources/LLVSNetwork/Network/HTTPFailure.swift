import CNetwork

/// Makes errors, which say what to do, from failures of requests to a server.
package enum HTTPFailure {
    /// Returns the error for a status of failure that the caller does not handle.
    package static func error(_ response: HTTPResponse, _ what: String) -> StoreError {
        var error = plainError(response, what)
        error.retryAfter = response.retryAfter
        error.httpStatus = Int32(clamping: response.status)
        return error
    }

    private static func plainError(_ response: HTTPResponse, _ what: String) -> StoreError {
        let answered = "\(what) failed: the server answers \(response.status)\(name(response.status))."
        switch response.status {
        case 401:
            return StoreError(
                .permission,
                "\(answered) It refuses the user and password, or the token, or requires some. "
                    + "Give the right ones (options user and password, token, or credentials)."
            ).needingUser
        case 402:
            return StoreError(.permission, "\(answered) It requires a payment: check the account there, and exchange again.").needingUser
        case 403:
            return StoreError(
                .permission,
                "\(answered) The user may not do this there: ask the server's operator for that right, or use another address.")
        case 407:
            return StoreError(.permission, "\(answered) The proxy requires a user and a password: give them in the proxy's address.")
                .needingUser
        case 404, 410: return StoreError(.notFound, "\(answered) Check the address.")
        case 413: return StoreError(.tooLarge, "\(answered) The file is larger than the server accepts: ask its operator for more.")
        case 423: return StoreError(.busy, "\(answered) Another program has locked the file. Try again later.")
        case 429: return StoreError(.busy, "\(answered) It receives too many requests. Exchange again later.")
        case 451: return StoreError(.permission, "\(answered) It may not transfer that for legal reasons: ask the server's operator.")
        case 507: return StoreError(.noSpace, "\(answered) Make room on the server, or raise the quota, and exchange again.")
        case 300...399: return StoreError(.transport, "\(answered) It redirects without giving an address. Check the address.")
        case 500...599: return StoreError(.transport, "\(answered) Try again later; if that does not help, ask the server's operator.")
        default: return StoreError(.transport, "\(answered) Check that the address is that of the service which its scheme names.")
        }
    }

    private static func name(_ status: Int) -> String {
        let names = [
            400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
            407: "Proxy Authentication Required",
            409: "Conflict", 412: "Precondition Failed", 413: "Content Too Large", 423: "Locked", 429: "Too Many Requests",
            451: "Unavailable For Legal Reasons",
            500: "Internal Server Error",
            501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 507: "Insufficient Storage",
        ]
        return names[status].map { " (\($0))" } ?? ""
    }

    /// Returns the error for a transfer that ended without an answer, or in the middle of one.
    /// - Parameter said: libcurl's own words.
    static func error(_ result: CURLcode, _ said: String, _ what: String) -> StoreError {
        let advice: String
        switch result {
        case CURLE_COULDNT_RESOLVE_HOST: advice = "Check the name of the host, and the connection to the network."
        case CURLE_COULDNT_RESOLVE_PROXY: advice = "Check the proxy's address."
        case CURLE_COULDNT_CONNECT: advice = "Check the address and that the server runs; a firewall may be in the way."
        case CURLE_OPERATION_TIMEDOUT: advice = "The server or the network is too slow, or gone. Try again later, or give a longer timeout."
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM:
            advice =
                "The server's certificate is not one that this machine trusts for that name. Check the address; "
                + "for an authority of your own give its certificates (ca_file)."
        case CURLE_SSL_CONNECT_ERROR: advice = "The server speaks no TLS there, or none that is recent enough (1.2)."
        case CURLE_OUT_OF_MEMORY where (try? Memory.expect(HTTPFailure.plenty, what)) == nil:
            return StoreError(.outOfMemory, "\(what) failed: libcurl has no memory. Free some, and try again.")
        // libcurl before 8.6 calls it a lack of memory as well.
        case CURLE_OUT_OF_MEMORY, HTTPFailure.lineTooLong:
            return StoreError(
                .transport,
                "\(what) failed: the server answers with a header whose line has no end, or is longer than libcurl accepts (about 100 KB). "
                    + "Check that it is the right address.")
        default: advice = "Try again; what was exchanged remains."
        }
        return StoreError(.transport, "\(what) failed: \(withoutSecrets(said)). \(advice)")
    }

    /// Removes secrets from a message of libcurl, which quotes an invalid address of a proxy with its password.
    private static func withoutSecrets(_ said: String) -> String {
        guard said.contains(text: "roxy"), said.utf8.contains(UInt8(ascii: "@")) else { return said }
        return "the address of the proxy (option proxy, or https_proxy and http_proxy of the environment) is not valid"
    }

    /// Returns the error for the end of a transfer, also if a proxy did not connect to the server.
    static func error(_ end: CurlTransfers.End, _ what: String) -> StoreError {
        guard isOfProxy(end) else { return error(end.result, end.said, what) }
        let status = end.connectStatus, answered = "\(what) failed: the proxy answers \(status)\(name(status))."
        switch status {
        case 407:
            return StoreError(.permission, "\(answered) It requires a user and a password: give them in the proxy's address.").needingUser
        case 401, 403:
            return StoreError(
                .permission, "\(answered) It does not connect to that server: ask the network's operator, or give another proxy.")
        case 429: return StoreError(.busy, "\(answered) It receives too many requests. Exchange again later.")
        default: return StoreError(.transport, "\(answered) Check the addresses of the server and of the proxy, and try again later.")
        }
    }
    private static func isOfProxy(_ end: CurlTransfers.End) -> Bool {
        end.result != CURLE_OK && end.connectStatus != 0 && !(200...299).contains(end.connectStatus)
    }
    /// Whether another try may end better.
    static func isPassing(_ end: CurlTransfers.End) -> Bool {
        if end.isOfSlowServer { return false }
        return isOfProxy(end) ? isPassing(end.connectStatus, .get) : isPassing(end.result)
    }

    /// CURLE_TOO_LARGE, which older headers do not name.
    private static let lineTooLong = CURLcode(100)
    /// More bytes than libcurl requests at once.
    private static let plenty = 4 << 20

    package static let mostTries = 5
    /// Returns the most attempts after such a failure. The caller waits meanwhile.
    static func mostTries(_ result: CURLcode) -> Int {
        if result == CURLE_OPERATION_TIMEDOUT { return 2 }
        return [CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR].contains(result) ? 3 : mostTries
    }

    /// Whether another try may end better.
    static func isPassing(_ result: CURLcode) -> Bool {
        [
            CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
            CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_SSL_CONNECT_ERROR, CURLE_WEIRD_SERVER_REPLY, CURLE_UPLOAD_FAILED, CURLE_SEND_FAIL_REWIND,
        ].contains(result)
    }
    /// Returns whether the server was unreachable, so that other requests need not be tried.
    static func isOfPlace(_ result: CURLcode) -> Bool {
        ![CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2_STREAM].contains(result)
    }

    /// Returns whether a retry may succeed after a status.
    static func isPassing(_ status: Int, _ method: HTTPRequest.Method) -> Bool {
        switch status {
        case 408, 425, 429, 502, 503, 504: true
        // Some servers answer this for a missing directory.
        case 500: method.isReading
        default: false
        }
    }
}
