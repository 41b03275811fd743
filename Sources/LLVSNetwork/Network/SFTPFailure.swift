import CNetwork

/// A failed transfer over SFTP, with an error that says what the user can do.
struct SFTPFailure: Error {
    /// libcurl's result.
    let result: CURLcode
    /// libcurl's message, which has the server's.
    let said: String
    let error: StoreError

    /// - Parameter knownHosts: the file with the keys of hosts.
    init(_ result: CURLcode, _ said: String, _ what: String, knownHosts: String?) {
        self.result = result
        self.said = said
        error = SFTPFailure.error(result, said, what, knownHosts)
    }

    /// An error of this side.
    init(_ error: StoreError) { result = CURLE_WRITE_ERROR; said = ""; self.error = error }

    private static func error(_ result: CURLcode, _ said: String, _ what: String, _ knownHosts: String?) -> StoreError {
        switch result {
        case CURLE_LOGIN_DENIED:
            return StoreError(
                .permission,
                "\(what) failed: the server refuses the user and the key or password. Give the right ones (options user, key_file, "
                    + "password), or start an ssh-agent that has the key. An RSA key needs libssh2 1.11; Ed25519 works with all."
            ).needingUser
        case CURLE_PEER_FAILED_VERIFICATION:
            return StoreError(
                .transport,
                "\(what) failed: the server's host key is not the one that \(knownHosts ?? "the file known_hosts") has, or there is none "
                    + "for it. Ask the server's operator for its key, or compare what ssh-keyscan shows, and write it there."
            )
        case CURLE_REMOTE_ACCESS_DENIED:
            return StoreError(
                .permission, "\(what) failed: \(said). The user may not do this there: ask the server's operator for that right.")
        case CURLE_REMOTE_FILE_NOT_FOUND: return StoreError(.notFound, "\(what) failed: \(said). Check the address.")
        case CURLE_REMOTE_DISK_FULL:
            return StoreError(.noSpace, "\(what) failed: \(said). Make room on the server, or raise the quota, and exchange again.")
        case CURLE_FAILED_INIT, CURLE_SSH:
            return StoreError(
                .transport, "\(what) failed: \(said). Check that an SSH server with SFTP listens there, and try again.")
        case CURLE_QUOTE_ERROR where said.contains(text: "ermission denied"):
            return StoreError(
                .permission, "\(what) failed: \(said). The user may not do this there: ask the server's operator for that right.")
        default: return HTTPFailure.error(result, said, what)
        }
    }

    /// Whether a retry may succeed.
    var isPassing: Bool { HTTPFailure.isPassing(result) || [CURLE_SSH, CURLE_FAILED_INIT].contains(result) }
    /// Whether nothing had been sent yet.
    var isOfConnecting: Bool { [CURLE_COULDNT_CONNECT, CURLE_FAILED_INIT].contains(result) }
    /// The most tries. A directory, for example, also ends with CURLE_SSH.
    var mostTries: Int { [CURLE_SSH, CURLE_FAILED_INIT].contains(result) ? 3 : HTTPFailure.mostTries(result) }
    /// Whether the server was not reached at all, so that other requests need not be tried.
    var isOfPlace: Bool {
        [
            CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_LOGIN_DENIED,
            CURLE_FAILED_INIT, CURLE_OPERATION_TIMEDOUT,
        ].contains(result)
    }
}
