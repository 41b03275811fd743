/// A value with its own lock.
@usableFromInline
package final class Guarded<Content>: @unchecked Sendable {
    // Sendable: `lock` guards the value.
    @usableFromInline let lock: Lock
    @usableFromInline var value: Content
    /// Creates it with its lock, which has a rank in the order of locks.
    package init(_ value: Content, _ rank: LockRank = .leaf) { self.value = value; lock = Lock(rank) }
    /// Runs `body` with the lock held.
    @inlinable
    package func withLock<R>(_ body: (inout Content) throws -> R) rethrows -> R { try lock.withLock { try body(&value) } }
}
