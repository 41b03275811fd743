/// The newest valid rules behind versions that stored rules which are not valid, as far as somebody has looked: each merge asks for them,
/// and there may be any number of such versions behind one another.
final class ValidSchemas: Sendable {
    private static let most = 1 << 16
    private let known = Guarded<[UInt32: MapEntry?]>([:])

    /// What was found behind a version, which may be nothing; nil when nobody has looked.
    func behind(_ version: UInt32) -> MapEntry?? { known.withLock { $0[version] } }

    /// All of these come to the same.
    func keep(_ versions: [UInt32], _ found: MapEntry?) {
        known.withLock { known in
            if known.count + versions.count > Self.most { known = [:] }
            for version in versions.prefix(Self.most) { known[version] = .some(found) }
        }
    }

    /// Versions have left the history.
    func forget() { known.withLock { $0 = [:] } }
}
