// What the cloud drives have in common on the way to their services.

extension HTTPSettings {
    /// Settings for a place of a cloud drive, and the account's name where there is one.
    /// - Parameters:
    ///   - tokens: where they are renewed, if they are.
    ///   - judge: what answers mean.
    func forCloud(
        _ place: CloudFolder, _ tokens: CloudTokens?, judge: @escaping @Sendable (HTTPResponse, HTTPRequest) -> HTTPVerdict
    ) -> HTTPSettings {
        var settings = self
        if let tokens { settings.renew = { refused, check in try tokens.credentials(refused: refused, check) } }
        settings.judge = judge
        let shared = tokens?.account.map { RequestPace.shared("\(place.endpoint.shown) \($0)", perSecond: place.rate) }
        settings.pace = shared ?? RequestPace(perSecond: place.rate)
        if let rate = place.uploadRate {
            let shared = tokens?.account.map { RequestPace.shared("uploads to \(place.endpoint.shown) \($0)", perSecond: rate) }
            settings.uploadPace = shared ?? RequestPace(perSecond: rate)
        }
        return settings
    }
}

extension HTTPClient {
    /// The JSON object of an answer.
    /// - Throws: `.transport` for what is none.
    func json(_ response: HTTPResponse, _ what: String, _ service: String) throws -> CloudAnswer {
        guard let answer = try CloudAnswer(response) else {
            throw StoreError(
                .transport,
                "\(what) failed: what answers is not \(service). Check the network, which may want somebody to sign in, and the endpoint."
            )
        }
        return answer
    }
}

/// A file or folder of a service that gives ids.
struct CloudEntry {
    var id: String
    var name: String
    var parents: [String]
    var size: Int?
    var isFolder: Bool
    /// When it was made, as the service writes it: texts in the order of times.
    var made: String
    /// What its bytes hash to, in the way of the service, where that is told.
    var digest: String?
    /// Where its bytes are for a while, without a token, where a listing tells that.
    var link: String?

    /// The oldest of several of one name is the one that all devices take.
    static func isOlder(_ a: CloudEntry, _ b: CloudEntry) -> Bool { (a.made, a.id) < (b.made, b.id) }
}
