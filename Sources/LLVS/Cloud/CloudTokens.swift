/// OAuth 2.0 tokens of an account, in a file that several threads and processes share (docs/cloud-drives.md).
///
/// The file is JSON: `access_token`, `refresh_token`, `client_id`, `client_secret`, `token_uri`; other members stay as they are. Nothing
/// here reads a clock: a token is good until it is refused.
final class CloudTokens: Sendable {
    private struct Tokens {
        var access: String?, refresh: String?, client: String?, secret: String?, address: HTTPAddress?
        var members: [(name: String, json: [UInt8])] = []
    }
    private static let largest = 64 << 10
    /// Seconds that another may take to renew a token: longer than any answer of a service that is waited for.
    let patience: Double

    private let path: String
    private let service: String
    private let address: HTTPAddress
    private let client: HTTPClient

    /// - Parameters:
    ///   - path: of the file.
    ///   - settings: how the service is reached.
    ///   - patience: seconds to wait for another process.
    init(_ path: String, _ place: CloudFolder, settings: HTTPSettings, patience: Double = 300) {
        self.patience = patience
        self.path = System.resolved(path) ?? System.absolute(path)
        service = place.service.name
        address = place.tokenAddress
        var plain = HTTPSettings()
        plain.certificateAuthorities = settings.certificateAuthorities
        plain.proxy = settings.proxy
        plain.stall = settings.stall
        client = HTTPClient(plain, place: place.tokenAddress.shown)
    }
    func close() { client.close() }

    /// The account, as far as it can be told from others.
    var account: String { path }

    /// A token to ask with: that of the file, or a new one where that one was refused.
    func credentials(refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials {
        let tokens = try read()
        if let access = tokens.access, refused == nil || refused?.token != access { return HTTPCredentials(token: access) }
        return HTTPCredentials(token: try withLock(check) { try renewed(refused: refused?.token, check) })
    }

    /// One at a time, of all processes. What was refused may be renewed by another by now.
    private func renewed(refused: String?, _ check: () throws -> Void) throws -> String {
        var tokens = try read()
        // Somebody may write the file without the lock: it is read once more before anybody has to sign in.
        for isLast in [false, true] {
            if let access = tokens.access, access != refused { return access }
            guard let refresh = tokens.refresh else { throw mustSignIn("it has expired, and there is no refresh_token beside it") }
            let answer = try ask(tokens, refresh, check)
            if let answer {
                tokens.access = answer.access
                tokens.refresh = answer.refresh ?? refresh
                try write(tokens)
                return answer.access
            }
            if isLast { break }
            let again = try read()
            guard again.refresh != refresh || again.access != tokens.access else { break }
            tokens = again
        }
        throw mustSignIn("the service takes its refresh_token no more: the consent was taken back, or the token was used elsewhere")
    }

    /// Nil when the service does not take the refresh token.
    private func ask(_ tokens: Tokens, _ refresh: String, _ check: () throws -> Void) throws -> (access: String, refresh: String?)? {
        let what = "Renewing the token for \(service)"
        var form = [("grant_type", "refresh_token"), ("refresh_token", refresh)]
        if let client = tokens.client { form.append(("client_id", client)) }
        if let secret = tokens.secret { form.append(("client_secret", secret)) }
        var request = HTTPRequest(method: .post, address: tokens.address ?? address, doing: what + " at")
        request.headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        request.body = .bytes(Array(form.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&").utf8))
        // An answer that was lost took the old token with it where tokens serve once: to ask again can only help.
        request.repeats = true
        let response = try client.perform(request, check), answer = try CloudAnswer(response)
        if response.isSuccess {
            guard let access = answer?["access_token"]?.string, !access.isEmpty else {
                throw StoreError(
                    .transport, "\(what) failed: \(request.address.shown) answers without one. Check the address, and the network.")
            }
            let next = answer?["refresh_token"]?.string
            for text in [access, next ?? ""] where text.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) {
                throw StoreError(.transport, "\(what) failed: what \(request.address.shown) gives is none. Check the address.")
            }
            return (access, next)
        }
        switch answer?["error"]?.string {
        case "invalid_grant": return nil
        case "invalid_client", "unauthorized_client":
            throw StoreError(
                .permission, "\(what) failed: the service refuses the app's client_id or client_secret. Give the right ones in \(path).",
                path: path)
        default: throw HTTPFailure.error(response, request.what)
        }
    }

    private func mustSignIn(_ why: String) -> StoreError {
        StoreError(.permission, "The token for \(service) in \(path) serves no more: \(why). Sign in again.", path: path)
    }

    // MARK: The file

    private func read() throws -> Tokens {
        guard let bytes = try FolderFiles.read(DirectoryEntry(path), limit: CloudTokens.largest) else {
            throw StoreError(.notFound, "The file of tokens \(path) is not there. Sign in, or check the path.", path: path)
        }
        guard let found = try CloudAnswer(bytes), found.isObject else { throw unusable("is no JSON object") }
        var tokens = Tokens(
            access: found["access_token"]?.string, refresh: found["refresh_token"]?.string, client: found["client_id"]?.string,
            secret: found["client_secret"]?.string)
        let all = [tokens.access, tokens.refresh, tokens.client, tokens.secret].compactMap { $0 }
        guard !all.contains(where: { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } }) else { throw unusable("holds a control character") }
        guard tokens.access != nil || tokens.refresh != nil else { throw unusable("holds neither an access_token nor a refresh_token") }
        if let text = found["token_uri"]?.string {
            do throws(HTTPAddress.Refusal) { tokens.address = try HTTPAddress(text) } catch {
                throw unusable("has a token_uri that is none: \(error.why)")
            }
            guard tokens.address?.keepsSecrets ?? false else { throw unusable("has a token_uri that is not encrypted (https)") }
        }
        tokens.members = found.members
        return tokens
    }

    private func unusable(_ why: String) -> StoreError {
        StoreError(.invalidArgument, "The file of tokens \(path) cannot be used: it \(why). Sign in again, or mend it.", path: path)
    }

    /// All of it or nothing, on disk before it returns, for nobody else to read.
    private func write(_ tokens: Tokens) throws {
        var members = tokens.members
        for (name, text) in [("access_token", tokens.access), ("refresh_token", tokens.refresh)] {
            guard let text else { continue }
            let json = JSONString.encode(text)
            if let at = members.firstIndex(where: { $0.name == name }) { members[at].json = json } else { members.append((name, json)) }
        }
        let inner = members.map { JSONString.encode($0.name) + Array(": ".utf8) + $0.json }.joined(separator: Array(",\n  ".utf8))
        let bytes = Array("{\n  ".utf8) + inner + Array("\n}\n".utf8)
        let place = DirectoryEntry(path)
        try posix("Keeping the new token in", path) { () throws(Errno) in
            let part = place.folder.place("\(place.name).\(try RandomName.random().hex).part")
            do throws(Errno) {
                let file = try OpenFile(part, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
                try bytes.borrowed { (bytes) throws(Errno) in try FileSystem().write(file.descriptor, bytes, at: 0) }
                try System.fsync(file.descriptor)
                try part.rename(to: place)
            } catch {
                try? part.unlink()
                throw error
            }
            // Some file systems sync no directories.
            if let folder = try? place.folder.readable() { try? System.fsync(folder.descriptor) }
        }
    }

    /// A file beside the tokens, which is locked and stays: it is empty.
    private func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
        let place = DirectoryEntry(path + ".lock")
        let file = try posix("Opening", place.path) { () throws(Errno) in try OpenFile(place, O_RDWR | O_CREAT, mode: 0o600) }
        let begun = Clock.steady()
        while true {
            do throws(Errno) { try System.lockExclusively(file.descriptor); break } catch {
                // A file system without locks keeps nobody out.
                guard error.code == EWOULDBLOCK || error.code == EAGAIN else { break }
            }
            try check()
            guard Clock.steady() - begun < patience else {
                throw StoreError(
                    .busy, "Another process has held the lock \(place.path) for \(Int(patience)) seconds. End it, and try again.",
                    path: place.path)
            }
            usleep(20_000)
        }
        defer { try? System.unlock(file.descriptor) }
        return try body()
    }
}
