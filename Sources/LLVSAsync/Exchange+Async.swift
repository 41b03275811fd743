import LLVS

/// Blocking calls of an exchange, as async functions on threads of their own.
extension Exchange {
    /// Fetches the versions that the store lacks, and adds them.
    /// - Parameters:
    ///   - verifyKnown: also fetches the versions that the store has, and compares them.
    ///   - progress: receives the counts of versions listed, received and added.
    /// - Returns: the versions added, and the problems.
    /// - Throws: the errors of the function without `async`. After a cancellation, versions that were added stay.
    @discardableResult
    public func retrieve(verifyKnown: Bool = false, progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.retrieve($0, verifyKnown: verifyKnown) }
    }

    /// Sends the versions that the other side lacks.
    /// - Parameter progress: receives the counts of versions listed, verified and sent.
    /// - Returns: the versions sent, and the problems.
    /// - Throws: the errors of the function without `async`. After a cancellation, versions that were sent stay at the other side.
    @discardableResult
    public func send(progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.send($0) }
    }

    /// Delivers an element whenever the other side may have gained versions that the store lacks. Retrieve them then. Versions that this
    /// store sent itself cause no element.
    /// - Returns: a sequence that ends when the exchange is closed or released.
    /// - Throws: `.unsupported` if the transport cannot report changes (then retrieve from time to time); `.closed`.
    public func news() throws -> Observations<Void> {
        try Observations(ending: ended, together: { _, _ in }) { put in
            guard let observation = try observe({ put(()) }) else {
                throw StoreError(
                    .unsupported, "\(transport.description) cannot report new versions. Retrieve from time to time.")
            }
            return [observation]
        }
    }
}

/// Snapshots, as async functions on threads of their own.
extension Snapshots {
    /// Writes a snapshot of all versions, replacing an older one of this library.
    /// - Parameter progress: receives the count of versions written.
    /// - Returns: the manifest of the snapshot.
    /// - Throws: the errors of the function without `async`. After a cancellation there is no snapshot.
    @discardableResult
    public func put(progress: ProgressCallback? = nil) async throws -> SnapshotManifest {
        try await onOwnThread(progress: progress) { try self.put($0) }
    }

    /// Adds all versions of the snapshot to a store that is empty, holds one version, or a part of this snapshot.
    /// - Parameter progress: receives the counts of chunks read, and of versions verified and added.
    /// - Returns: what was added, and what was not.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func restore(progress: ProgressCallback? = nil) async throws -> RestoredSnapshot {
        try await onOwnThread(progress: progress) { try self.restore($0) }
    }

    /// Writes a snapshot of a store to a directory.
    /// - Parameters:
    ///   - store: the store to write.
    ///   - directory: a path; its last component is created if it is missing.
    ///   - progress: receives the count of versions written.
    /// - Returns: the manifest of the snapshot.
    /// - Throws: the errors of `put`.
    @discardableResult
    public static func write(_ store: Store, to directory: String, progress: ProgressCallback? = nil) async throws -> SnapshotManifest {
        try await onOwnThread(progress: progress) { try Snapshots.write(store, to: directory, $0) }
    }

    /// Restores a snapshot from a directory.
    /// - Parameters:
    ///   - store: the store to restore into.
    ///   - directory: the directory of `write`, or of an exchange through that folder.
    ///   - decode: decompresses values in a snapshot of another implementation.
    ///   - progress: receives the counts of chunks read, and of versions verified and added.
    /// - Returns: what was added, and what was not.
    /// - Throws: the errors of `restore`.
    @discardableResult
    public static func restore(
        _ store: Store, from directory: String, decode: ForeignDecoder? = nil, progress: ProgressCallback? = nil
    ) async throws -> RestoredSnapshot {
        try await onOwnThread(progress: progress) { try Snapshots.restore(store, from: directory, decode: decode, $0) }
    }
}
