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

    /// Returns the definition of the index at a version, and the version that declared it; nil if the program gave the definition.
    /// - Throws: the errors of the function without `async`.
    public func definition(at version: VersionID) async throws -> (definition: IndexDefinition, declaredAt: VersionID?) {
        try await onOwnThreadUnlessCancelled { try self.definition(at: version) }
    }

    /// Explains what the index holds of a value.
    /// - Parameters:
    ///   - id: the id of the value.
    ///   - version: the version; nil: the current one.
    /// - Throws: the errors of the function without `async`.
    public func explain(_ id: ValueID, at version: VersionID? = nil) async throws -> Explanation {
        try await onOwnThreadUnlessCancelled { try self.explain(id, at: version) }
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

    /// Opens the database of a projection, or creates it if there is none.
    /// - Parameters:
    ///   - store: the store to mirror.
    ///   - path: the path of the database.
    ///   - definition: the definition of its tables.
    ///   - options: the coordinator to follow, and how long to wait for other writers.
    /// - Throws: the errors of the function without `async`.
    public static func open(
        _ store: Store, path: String, _ definition: ProjectionDefinition, options: Options = Options()
    ) async throws -> Projection {
        try await onOwnThread { _ in try Projection(store, path: path, definition, options: options) }
    }

    /// Returns the version that the database mirrors; nil: none yet.
    /// - Throws: the errors of `version`.
    public func readVersion() async throws -> VersionID? { try await onOwnThreadUnlessCancelled { try self.version } }

    /// Closes the database, after the calls that run in it. Cancelling the task does not stop this.
    public func close() async { await onThreadOfItsOwn { self.close() } }

    /// Returns the parts that did not fit their columns, at most 1,000 at once.
    /// - Parameter after: the number of the last one of the page before; 0: from the first.
    /// - Throws: the errors of the function without `async`.
    public func problems(after: Int64 = 0) async throws -> [Problem] {
        try await onOwnThreadUnlessCancelled { try self.problems(after: after) }
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

extension StoreImporter {
    /// Adds the versions of another implementation's store directory to a store.
    /// - Parameters:
    ///   - directory: the directory, which is only read.
    ///   - store: the store that receives the versions.
    ///   - decode: decompresses values, on the thread that does the work.
    ///   - progress: receives the counts of versions listed and added.
    /// - Returns: the versions added, and the problems.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public static func importStore(
        at directory: String, into store: Store, decode: ForeignDecoder? = nil, progress: ProgressCallback? = nil
    ) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) {
            try StoreImporter.importStore(at: directory, into: store, decode: decode, control: $0)
        }
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
