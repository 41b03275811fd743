/// Reusable scratch objects: each is used by one call at a time, never shared.
package final class Pool<Element>: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private var free: [Element] = []
    private let make: () -> Element
    private let isWorthKeeping: (Element) -> Bool
    private let most: Int
    /// - Parameter most: how many are retained for later.
    init(most: Int = 16, keeping isWorthKeeping: @escaping (Element) -> Bool = { _ in true }, _ make: @escaping () -> Element) {
        self.most = most
        self.make = make
        self.isWorthKeeping = isWorthKeeping
    }

    /// Releases those that no call uses.
    func removeAll() { lock.withLock { free = [] } }

    package func with<R>(_ body: (inout Element) throws -> R) rethrows -> R {
        var element = lock.withLock { free.popLast() } ?? make()
        defer { if isWorthKeeping(element) { lock.withLock { if free.count < most { free.append(element) } } } }
        return try body(&element)
    }
}
