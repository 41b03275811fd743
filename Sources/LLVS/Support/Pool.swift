/// Reusable scratch objects: taken for the length of a call, never shared.
final class Pool<Element>: @unchecked Sendable {
    private let lock = Lock()
    private var free: [Element] = []
    private let make: () -> Element
    init(_ make: @escaping () -> Element) { self.make = make }

    func with<R>(_ body: (inout Element) throws -> R) rethrows -> R {
        var element = lock.withLock { free.popLast() } ?? make()
        defer { lock.withLock { if free.count < 16 { free.append(element) } } }
        return try body(&element)
    }
}
