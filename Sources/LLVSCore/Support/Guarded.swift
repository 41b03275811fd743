/// A value with its own lock.
@_documentation(visibility: internal)
public final class Guarded<Content>: @unchecked Sendable {
    // Sendable: `lock` guards the value.
    private let lock: Lock
    private var value: Content
    /// Creates it with its lock, which has a rank in the order of locks.
    public init(_ value: Content, _ rank: LockRank = .leaf) { self.value = value; lock = Lock(rank) }
    /// Runs `body` with the lock held.
    public func withLock<R>(_ body: (inout Content) throws -> R) rethrows -> R { try lock.withLock { try body(&value) } }
}
