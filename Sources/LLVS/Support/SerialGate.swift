/// Lets one thread at a time through. One that comes back from within, by way of a callback of the host, is told
/// so with `.busy`, where a mutex would leave it waiting for itself.
final class SerialGate: HostCallMark, @unchecked Sendable {
    private let lock = OwnedLock()

    /// - Parameter what: for the message: "Saving".
    func run<R>(_ what: String, _ body: () throws -> R) throws -> R {
        try take(what)
        defer { leave() }
        return try HostCalls.run(self, body)
    }

    /// As `run`, without a closure: until `leave` with what this returns. Under the conditions of `HostCalls.enter`.
    @inline(__always)
    func enter(_ what: String) throws -> HostCalls.Entered {
        try take(what)
        return HostCalls.enter(self)
    }
    @inline(__always)
    func leave(_ entered: HostCalls.Entered) {
        HostCalls.leave(entered)
        leave()
    }

    private func take(_ what: String) throws {
        guard lock.lock() else {
            throw StoreError(
                .busy,
                "\(what) is not possible from within a callback of the same coordinator's running call. Do it after that has returned.")
        }
    }

    /// Runs `body`, which calls no code of the host, once nobody is within; for who is within on this thread already, at once.
    func runAlone(_ body: () -> Void) {
        let isOutside = lock.lock()
        body()
        if isOutside { leave() }
    }

    private func leave() { lock.unlock() }
    override func hostLeft() { leave() }
}
