/// The region that requests to a bucket are signed for: the one of the address, until the service names the bucket's own.
final class S3Region: RequestSignature, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private var name: String
    /// Changes so far. A service that names regions in turn is not followed for ever.
    private var changes = 0
    private static let mostChanges = 8

    init(_ name: String) { self.name = name }

    /// - Returns: whether a request that was refused is to be signed anew: also if another request learned of the region before.
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
