/// A value under a lock of its own.
final class Guarded<Content>: @unchecked Sendable {
    private let lock = Lock()
    private var value: Content
    init(_ value: Content) { self.value = value }
    func withLock<R>(_ body: (inout Content) throws -> R) rethrows -> R { try lock.withLock { try body(&value) } }
}
