/// A stack for walks that are mostly shallow and may be deep: its first elements are on the thread's stack, so that nothing is allocated
/// for them.
struct ShortStack<Element: BitwiseCopyable> {
    private let near: UnsafeMutableBufferPointer<Element>
    private var count = 0
    private var far: [Element] = []

    /// Runs `body` with an empty stack, which is valid during the call.
    @inline(__always)
    static func run<R>(_ body: (inout ShortStack) throws -> R) rethrows -> R {
        try withUnsafeTemporaryAllocation(of: Element.self, capacity: 8) { near in
            var stack = ShortStack(near: near)
            return try body(&stack)
        }
    }
    private init(near: UnsafeMutableBufferPointer<Element>) { self.near = near }

    @inline(__always)
    mutating func push(_ element: Element) {
        if count < near.count { near.initializeElement(at: count, to: element) } else { far.append(element) }
        count += 1
    }
    /// Returns nil if it is empty.
    @inline(__always)
    mutating func pop() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return count < near.count ? near[count] : far.removeLast()
    }
}
