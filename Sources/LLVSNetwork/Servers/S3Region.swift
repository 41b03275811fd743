/// The region for the signatures of requests to a bucket: that of the address, until the service reports the bucket's own.
final class S3Region: RequestSignature, @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private var name: String
    /// The number of changes. If a service reports regions in turn, this is not repeated forever.
    private var changes = 0
    private static let mostChanges = 8

    init(_ name: String) { self.name = name }

    /// - Returns: whether to sign and send a refused request again, also if another request learned the region before.
    func change(to named: String) -> Bool {
        lock.withLock {
            guard named != name else { return changes > 0 }
            guard changes < S3Region.mostChanges else { return false }
            changes += 1
            name = named
            return true
        }
    }

    func headers(for request: HTTPRequest, to address: HTTPAddress, _ credentials: HTTPCredentials, now: Int64) throws -> [(
        name: String, value: String
    )] {
        try AWSSignature(region: lock.withLock { name }).headers(for: request, to: address, credentials, now: now)
    }
}
