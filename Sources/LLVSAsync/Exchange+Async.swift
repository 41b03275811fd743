import LLVS

/// Calls of an exchange that wait, as async functions on threads of their own.
extension Exchange {
    /// Fetches the versions that are not here, and adds them.
    /// - Parameters:
    ///   - verifyKnown: fetches and compares what is here already, too.
    ///   - progress: told of the versions listed, received and added.
    /// - Returns: the versions added, and the problems met.
    /// - Throws: what the function without `async` throws. Cancelled, what was added whole stays.
    @discardableResult
    public func retrieve(verifyKnown: Bool = false, progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.retrieve($0, verifyKnown: verifyKnown) }
    }

    /// Sends the versions that are not there.
    /// - Parameter progress: told of the versions listed, verified and sent.
    /// - Returns: the versions sent, and the problems met.
    /// - Throws: what the function without `async` throws. Cancelled, what was sent whole stays there.
    @discardableResult
    public func send(progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.send($0) }
    }

    /// An element whenever the other side has gained versions that are not here, or may have: time to retrieve. What this store sent
    /// itself is not told.
    /// - Returns: a sequence that ends when the exchange is closed or let go of.
    /// - Throws: `.unsupported` when the transport cannot tell, so that one has to retrieve from time to time; `.closed`.
    public func news() throws -> Observations<Void> {
        try Observations(ending: ended, together: { _, _ in }) { put in
            guard let observation = try observe({ put(()) }) else {
                throw StoreError(
                    .unsupported, "\(transport.description) cannot tell when it gains versions; retrieve from time to time.")
            }
            return [observation]
        }
    }
}

/// Snapshots, as async functions on threads of their own.
extension Snapshots {
    /// Puts a snapshot of all versions, in place of an older one of ours.
    /// - Parameter progress: told of the versions written.
    /// - Returns: what the snapshot says of itself.
    /// - Throws: what the function without `async` throws. Cancelled, there is no snapshot there.
    @discardableResult
    public func put(progress: ProgressCallback? = nil) async throws -> SnapshotManifest {
        try await onOwnThread(progress: progress) { try self.put($0) }
    }

    /// Adds all versions of the snapshot to a store that is empty, holds one version, or a part of this snapshot.
    /// - Parameter progress: told of the chunks read, and of the versions verified and added.
    /// - Returns: what was added, and what was not.
    /// - Throws: what the function without `async` throws.
    @discardableResult
    public func restore(progress: ProgressCallback? = nil) async throws -> RestoredSnapshot {
        try await onOwnThread(progress: progress) { try self.restore($0) }
    }

    /// Writes a snapshot of a store to a directory.
    /// - Parameters:
    ///   - store: what is written.
    ///   - directory: a path; its last component is made when it is missing.
    ///   - progress: told of the versions written.
    /// - Returns: what the snapshot says of itself.
    /// - Throws: what `put` throws.
    @discardableResult
    public static func write(_ store: Store, to directory: String, progress: ProgressCallback? = nil) async throws -> SnapshotManifest {
        try await onOwnThread(progress: progress) { try Snapshots.write(store, to: directory, $0) }
    }

    /// Restores a snapshot from a directory.
    /// - Parameters:
    ///   - store: what it is restored into.
    ///   - directory: where `write`, or an exchange through that folder, left it.
    ///   - decode: for what is compressed in a snapshot of another implementation.
    ///   - progress: told of the chunks read, and of the versions verified and added.
    /// - Returns: what was added, and what was not.
    /// - Throws: what `restore` throws.
    @discardableResult
    public static func restore(
        _ store: Store, from directory: String, decode: ForeignDecoder? = nil, progress: ProgressCallback? = nil
    ) async throws -> RestoredSnapshot {
        try await onOwnThread(progress: progress) { try Snapshots.restore(store, from: directory, decode: decode, $0) }
    }
}
