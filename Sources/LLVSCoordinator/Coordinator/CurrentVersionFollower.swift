/// Runs work for each new current version of a coordinator, on a thread of its own.
final class CurrentVersionFollower: Sendable {
    /// Seconds without a change before it begins, so that a burst of saves counts as one change, and the longest wait.
    private static let pause = 0.02, longestPause = 0.5
    /// The backoff in seconds before failed work is tried again: at first, and at most.
    private static let retry = 0.5, longestRetry = 60.0

    private let token: CancelToken
    private let thread: ObservationThread
    private let observations: Guarded<[any ExchangeObservation]>

    /// - Parameters:
    ///   - coordinator: the coordinator whose current version is followed.
    ///   - what: the beginning of a log message, such as "A projection was not brought up to date".
    ///   - failed: called with each error, and with nil after each success.
    ///   - work: returns false once it is no longer needed.
    init(
        _ coordinator: StoreCoordinator, ifNot what: String, failed: @escaping @Sendable (StoreError?) -> Void = { _ in },
        _ work: @escaping @Sendable (OperationControl) throws -> Bool
    ) throws {
        let token = CancelToken()
        let thread = try ObservationThread(
            body: { state in
                var failures = 0
                while CurrentVersionFollower.wait(state, after: failures) {
                    guard !token.isCancelled else { return }
                    do {
                        guard try work(OperationControl(token: token)) else { return }
                        failed(nil)
                        failures = 0
                    } catch {
                        let failure = StoreError.of(error)
                        if token.isCancelled { return }
                        if failures == 0 { Log.write(.warning, "\(what): \(failure.message)") }
                        failed(failure)
                        failures += 1
                    }
                }
            }, wake: {})
        self.token = token
        self.thread = thread
        observations = Guarded([
            coordinator.observe { _ in thread.signal() },
            coordinator.ended.add { token.cancel() },
        ])
        thread.signal()
    }

    deinit { end() }

    /// Cancels the running work, and waits until it has ended.
    func end() {
        let told = observations.withLock { told in
            defer { told = [] }
            return told
        }
        for observation in told { observation.cancel() }
        token.cancel()
        thread.cancel()
    }

    /// Waits for a change or for the next retry, and then until changes pause. Returns false if the follower has ended.
    private static func wait(_ state: ObservationThread.State, after failures: Int) -> Bool {
        if state.isInChild { return false }
        return state.lock.withLock {
            let until = failures == 0 ? nil : Clock.steady() + min(longestRetry, retry * Double(1 << min(failures - 1, 10)))
            while !state.isSignalled, !state.isCancelled, until.map({ Clock.steady() < $0 }) ?? true {
                if let until { _ = state.changed.wait(state.lock, until: until) } else { state.changed.wait(state.lock) }
            }
            let last = Clock.steady() + longestPause
            while state.isSignalled, !state.isCancelled, Clock.steady() < last {
                state.isSignalled = false
                _ = state.changed.wait(state.lock, until: min(last, Clock.steady() + pause))
            }
            state.isSignalled = false
            return !state.isCancelled
        }
    }
}
