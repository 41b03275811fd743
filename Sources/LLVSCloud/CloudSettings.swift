// Settings common to all cloud drives.

extension HTTPSettings {
    /// Returns the settings for a place of a cloud drive.
    /// - Parameters:
    ///   - tokens: renews tokens, if there are any.
    ///   - judge: classifies responses.
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
    /// Returns the JSON object of a response.
    /// - Throws: `.transport` for anything else.
    func json(_ response: HTTPResponse, _ what: String, _ service: String) throws -> CloudAnswer {
        guard let answer = try CloudAnswer(response) else {
            throw StoreError(
                .transport,
                "\(what) failed: the answer is not from \(service). Check the network, which may require a sign-in, and the endpoint."
            )
        }
        return answer
    }
}

/// A file or folder of a service that assigns ids.
struct CloudEntry {
    var id: String
    var name: String
    var parents: [String]
    var size: Int?
    var isFolder: Bool
    /// When it was created, in the service's text form, which sorts by time.
    var made: String
    /// The hash of its bytes, as the service computes it, if known.
    var digest: String?
    /// A temporary address of its bytes that needs no token, if a listing returned one.
    var link: String?

    /// Returns whether `a` is older. If several have one name, all devices use the oldest.
    static func isOlder(_ a: CloudEntry, _ b: CloudEntry) -> Bool { (a.made, a.id) < (b.made, b.id) }
}
