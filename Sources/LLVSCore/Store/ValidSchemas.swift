/// Caches the newest valid rules before versions that stored invalid rules: each merge asks for them, and there may be any number of such
/// versions in a row.
package final class ValidSchemas: Sendable {
    private static let most = 1 << 16
    private let known = Guarded<[UInt32: MapEntry?]>([:])

    /// Returns the result of the search before a version, which may be "none"; nil if it is unknown.
    package func behind(_ version: UInt32) -> MapEntry?? { known.withLock { $0[version] } }

    /// Records that all of these versions have the same result.
    package func keep(_ versions: [UInt32], _ found: MapEntry?) {
        known.withLock { known in
            if known.count + versions.count > Self.most { known = [:] }
            for version in versions.prefix(Self.most) { known[version] = .some(found) }
        }
    }

    /// Forgets everything, after versions have left the history.
    func forget() { known.withLock { $0 = [:] } }
}
