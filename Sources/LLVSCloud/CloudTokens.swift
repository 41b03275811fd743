/// OAuth 2.0 tokens of an account, shared by several threads and processes (docs/cloud-drives.md).
///
/// Saved as JSON: `access_token`, `refresh_token`, `client_id`, `client_secret`, `token_uri`; other members are preserved. No clock is
/// used: a token is valid until it is refused.
final class CloudTokens: Sendable {
    private struct Tokens {
        var access: String?, refresh: String?, client: String?, secret: String?, address: HTTPAddress?
        var members: [(name: String, json: [UInt8])] = []
    }
    private let keeper: any TokenKeeper
    private let place: CloudFolder
    private var service: String { place.service.name }
    private let client: HTTPClient
    /// The address for renewal in the tokens last read.
    private let origin = Guarded<(isRead: Bool, address: HTTPAddress?)>((false, nil))

    /// - Parameters:
    ///   - keeper: stores the tokens.
    ///   - settings: the settings for connections.
    init(_ keeper: any TokenKeeper, _ place: CloudFolder, settings: HTTPSettings) {
        self.keeper = keeper
        self.place = place
        var plain = HTTPSettings()
        plain.certificateAuthorities = settings.certificateAuthorities
        plain.proxy = settings.proxy
        plain.stall = settings.stall
        client = HTTPClient(plain, place: place.tokenAddress.shown)
    }
    func close() { client.close() }

    /// Identifies the account, as far as known.
    var account: String? { keeper.path }

    /// The place; in the account's region, if only the tokens name that. Read only during calls, since it may ask the host for the tokens.
    var home: CloudFolder {
        guard place.leavesRegion else { return place }
        // If they cannot be read, the request that needs them reports that.
        if !origin.withLock({ $0.isRead }) { _ = try? read() }
        return place.inRegion(ofTokensAt: origin.withLock { $0.address })
    }

    /// Returns a token: the stored one, or a renewed one if that was refused.
    func credentials(refused: HTTPCredentials?, _ check: () throws -> Void) throws -> HTTPCredentials {
        let tokens = try read()
        if let access = tokens.access, refused == nil || refused?.token != access { return HTTPCredentials(token: access) }
        return HTTPCredentials(token: try keeper.withLock(check) { try renewed(refused: refused?.token, check) })
    }

    /// Renews a token. One thread of all processes at a time; another may have renewed the refused token meanwhile.
    private func renewed(refused: String?, _ check: () throws -> Void) throws -> String {
        var tokens = try read()
        // Another program may have written without the lock, so the tokens are read again before the user must sign in.
        for isLast in [false, true] {
            if let access = tokens.access, access != refused { return access }
            guard let refresh = tokens.refresh else { throw mustSignIn("it has expired, and there is no refresh_token beside it") }
            let answer = try ask(tokens, refresh, check)
            if let answer {
                try keeper.write(tokens.members, [("access_token", answer.access), ("refresh_token", answer.refresh ?? refresh)])
                return answer.access
            }
            if isLast { break }
            let again = try read()
            guard again.refresh != refresh || again.access != tokens.access else { break }
            tokens = again
        }
        throw mustSignIn("the service accepts its refresh_token no more: the consent was withdrawn, or the token was used elsewhere")
    }

    /// Requests new tokens. Nil if the service refuses the refresh token.
    private func ask(_ tokens: Tokens, _ refresh: String, _ check: () throws -> Void) throws -> (access: String, refresh: String?)? {
        let what = "Renewing the token for \(service)"
        var form = [("grant_type", "refresh_token"), ("refresh_token", refresh)]
        if let client = tokens.client { form.append(("client_id", client)) }
        if let secret = tokens.secret { form.append(("client_secret", secret)) }
        var request = HTTPRequest(method: .post, address: tokens.address ?? place.tokenAddress, doing: what + " at")
        request.headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        request.body = .bytes(Array(form.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&").utf8))
        // If a response was lost, a token that is valid once may be used up: repeating can only help.
        request.repeats = true
        let response = try client.perform(request, check), answer = try CloudAnswer(response)
        if response.isSuccess {
            guard let access = answer?["access_token"]?.string, !access.isEmpty else {
                throw StoreError(
                    .transport, "\(what) failed: \(request.address.shown) responds without a token. Check the address, and the network.")
            }
            let next = answer?["refresh_token"]?.string
            for text in [access, next ?? ""] where text.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) {
                throw StoreError(.transport, "\(what) failed: the response of \(request.address.shown) is not a token. Check the address.")
            }
            return (access, next)
        }
        switch answer?["error"]?.string {
        case "invalid_grant": return nil
        case "invalid_client", "unauthorized_client":
            throw StoreError(
                .permission,
                "\(what) failed: the service refuses the app's client_id or client_secret. Give the right ones in "
                    + "\(keeper.name).", path: keeper.path
            ).needingUser
        default: throw HTTPFailure.error(response, request.what)
        }
    }

    private func mustSignIn(_ why: String) -> StoreError {
        let regions = place.service.regions.isEmpty ? "" : " If that does not help, check the region: accounts in Europe need region=eu."
        return StoreError(
            .permission, "The token for \(service) in \(keeper.name) is invalid: \(why). Sign in again.\(regions)", path: keeper.path
        ).needingUser
    }

    // MARK: Saved tokens

    private func read() throws -> Tokens {
        let found = try keeper.read()
        var tokens = Tokens(
            access: found["access_token"]?.string, refresh: found["refresh_token"]?.string, client: found["client_id"]?.string,
            secret: found["client_secret"]?.string)
        let all = [tokens.access, tokens.refresh, tokens.client, tokens.secret].compactMap { $0 }
        guard !all.contains(where: { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } }) else {
            throw keeper.unusable("holds a control character")
        }
        guard tokens.access != nil || tokens.refresh != nil else {
            throw keeper.unusable("holds neither an access_token nor a refresh_token")
        }
        if let text = found["token_uri"]?.string {
            do throws(HTTPAddress.Refusal) { tokens.address = try HTTPAddress(text) } catch {
                throw keeper.unusable("has a token_uri that is not valid: \(error.why)")
            }
            guard tokens.address?.keepsSecrets ?? false else { throw keeper.unusable("has a token_uri that is not encrypted (https)") }
        }
        tokens.members = found.members
        let address = tokens.address
        origin.withLock { $0 = (true, address) }
        return tokens
    }
}
