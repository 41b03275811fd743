/// A value with its own lock.
final class Guarded<Content>: @unchecked Sendable {
    // Sendable: `lock` guards the value.
    private let lock: Lock
    private var value: Content
    init(_ value: Content, _ rank: LockRank = .leaf) { self.value = value; lock = Lock(rank) }
    func withLock<R>(_ body: (inout Content) throws -> R) rethrows -> R { try lock.withLock { try body(&value) } }
}
