import LLVS

/// Blocking calls of a syncer and of what finds values, as async functions on threads of their own.
extension Syncer {
    /// Runs a round as if the user asked for it, whatever the conditions, and waits for its end.
    /// - Parameters:
    ///   - seconds: the time after which the round is cancelled; it keeps what it completed. Nil for no limit.
    ///   - progress: receives the progress of the round.
    /// - Returns: whether everything was done; false if the deadline came first, or if a place or the merge failed, as the status says.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func run(within seconds: Double? = nil, progress: ProgressCallback? = nil) async throws -> Bool {
        try await onOwnThread(progress: progress) { try self.run(within: seconds, control: $0) }
    }

    /// Stops the syncer, and returns after its last event. Cancelling the task does not stop this.
    public func stop() async { await onThreadOfItsOwn { self.stop() } }
}

extension ValueIndex {
    /// Finds values by their contents.
    /// - Parameters:
    ///   - question: what to find.
    ///   - version: the version; nil: the current one.
    ///   - progress: receives the count of values read while the index is built.
    /// - Returns: a page of what was found.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func find(_ question: IndexQuestion, at version: VersionID? = nil, progress: ProgressCallback? = nil) async throws -> IndexPage {
        try await onOwnThread(progress: progress) { try self.find(question, at: version, control: $0) }
    }
}

extension Projection {
    /// Brings the database up to date.
    /// - Parameters:
    ///   - version: the version that it mirrors afterwards; nil: the current one.
    ///   - progress: receives the count of values written.
    /// - Returns: the number of rows that changed.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func update(to version: VersionID? = nil, progress: ProgressCallback? = nil) async throws -> UInt64 {
        try await onOwnThread(progress: progress) { try self.update(to: version, control: $0) }
    }
}

extension PeerListener {
    /// Waits for a connection of another device.
    /// - Parameter seconds: how long to wait.
    /// - Returns: the connection; nil if none came in that time.
    /// - Throws: the errors of the function without `async`.
    public func accept(within seconds: Double) async throws -> PeerLink? {
        try await onOwnThread { _ in try self.accept(within: seconds) }
    }
}

extension Salvage {
    /// Copies what is whole in a damaged store into a new one.
    /// - Parameters:
    ///   - path: the damaged store, which is not changed.
    ///   - options: how to open it.
    ///   - target: where the new store is made.
    ///   - progress: receives the count of versions copied.
    /// - Returns: what was copied, and what was lost.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public static func run(
        _ path: String, into target: String, options: Store.Options = Store.Options(), progress: ProgressCallback? = nil
    ) async throws -> SalvageReport {
        try await onOwnThread(progress: progress) { try Salvage.run(path, options, into: target, options, control: $0) }
    }
}

/// Limits as durations.
extension Syncer {
    /// Runs a round as if the user asked for it, and waits for its end, for a limited time.
    /// - Parameters:
    ///   - limit: the time after which the round is cancelled; it keeps what it completed.
    ///   - progress: receives the progress of the round.
    /// - Returns: whether everything was done; false if the limit came first, or if a place or the merge failed, as the status says.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func run(within limit: Duration, progress: ProgressCallback? = nil) async throws -> Bool {
        try await run(within: limit / .seconds(1), progress: progress)
    }
}

extension PeerListener {
    /// Waits for a connection of another device.
    /// - Parameter limit: how long to wait.
    /// - Returns: the connection; nil if none came in that time.
    /// - Throws: the errors of the function without `async`.
    public func accept(within limit: Duration) async throws -> PeerLink? { try await accept(within: limit / .seconds(1)) }
}
