import LLVS

/// Blocking calls of an exchange, as async functions on threads of their own.
extension Exchange {
    /// Opens the place of a URL as the other side of a store.
    /// - Parameters:
    ///   - store: the store.
    ///   - url: as for the initialiser.
    ///   - options: what the URL cannot contain, and how to exchange.
    /// - Throws: the errors of the initialiser.
    public static func open(store: Store, url: String, options: URLOptions = URLOptions()) async throws -> Exchange {
        try await onOwnThread { _ in try Exchange(store: store, url: url, options: options) }
    }

    /// Fetches the versions that the store lacks, and adds them.
    /// - Parameters:
    ///   - verifyKnown: also fetches the versions that the store has, and compares them.
    ///   - progress: receives the counts of versions listed, received and added.
    /// - Returns: the versions added, and the problems.
    /// - Throws: the errors of the function without `async`. After a cancellation, versions that were added stay.
    @discardableResult
    public func retrieve(verifyKnown: Bool = false, progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.retrieve(control: $0, verifyKnown: verifyKnown) }
    }

    /// Sends the versions that the other side lacks.
    /// - Parameter progress: receives the counts of versions listed, verified and sent.
    /// - Returns: the versions sent, and the problems.
    /// - Throws: the errors of the function without `async`. After a cancellation, versions that were sent stay at the other side.
    @discardableResult
    public func send(progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.send(control: $0) }
    }

    /// Lists the members of an encrypted place.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func members(progress: ProgressCallback? = nil) async throws -> [RemoteMember] {
        try await onOwnThread(progress: progress) { try self.members(control: $0) }
    }

    /// Admits a member to an encrypted place.
    /// - Parameters:
    ///   - recipient: its public key.
    ///   - name: a name for people.
    ///   - kind: a device or a person.
    ///   - progress: receives the count of files written.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func addMember(
        _ recipient: String, name: String = "", kind: RemoteMember.Kind = .device, progress: ProgressCallback? = nil
    ) async throws {
        try await onOwnThread(progress: progress) { try self.addMember(recipient, name: name, kind: kind, control: $0) }
    }

    /// Excludes a member from an encrypted place, which gets new keys.
    /// - Parameters:
    ///   - recipient: its public key.
    ///   - progress: receives the count of files written.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func removeMember(_ recipient: String, progress: ProgressCallback? = nil) async throws {
        try await onOwnThread(progress: progress) { try self.removeMember(recipient, control: $0) }
    }

    /// Accepts the keys that another member made for the place.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func joinKeys(progress: ProgressCallback? = nil) async throws {
        try await onOwnThread(progress: progress) { try self.joinKeys(control: $0) }
    }

    /// Encrypts the files of the place again with the newest keys.
    /// - Parameters:
    ///   - renewing: whether new keys are made first.
    ///   - progress: receives the count of files written.
    /// - Returns: the number of files written.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func rekey(renewing: Bool = false, progress: ProgressCallback? = nil) async throws -> Int {
        try await onOwnThread(progress: progress) { try self.rekey(renewing: renewing, control: $0) }
    }

    /// Changes the passphrase of an encrypted place.
    /// - Parameters:
    ///   - new: the new passphrase.
    ///   - hasLeaked: whether the former one may be known to others; then the place gets new keys as well.
    ///   - progress: receives the count of files written.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func changePassphrase(to new: String, hasLeaked: Bool = false, progress: ProgressCallback? = nil) async throws {
        try await onOwnThread(progress: progress) { try self.changePassphrase(to: new, hasLeaked: hasLeaked, control: $0) }
    }

    /// Returns the pairing of an encrypted place, for direct connections of its members.
    /// - Parameters:
    ///   - isReadAnew: whether to read the keys of the place first.
    ///   - progress: receives the count of files read.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func pairing(isReadAnew: Bool = true, progress: ProgressCallback? = nil) async throws -> [UInt8] {
        try await onOwnThread(progress: progress) { try self.pairing(isReadAnew: isReadAnew, control: $0) }
    }

    /// Returns what is known about a place in packs; nil: nothing.
    /// - Throws: the errors of the function without `async`.
    public func remoteStatus() async throws -> RemoteStatus? { try await onOwnThreadUnlessCancelled { try self.remoteStatus() } }

    /// Ends the part of this device at the place.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func retire(progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.retire(control: $0) }
    }

    /// Lets all devices write values to the place as differences. This cannot be undone.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func enableDifferences(progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.enableDifferences(control: $0) }
    }

    /// Announces at the place that it continues at another address.
    /// - Parameters:
    ///   - address: the new address.
    ///   - progress: receives the count of files written.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func announceMove(to address: String, progress: ProgressCallback? = nil) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { try self.announceMove(to: address, control: $0) }
    }

    /// Closes the exchange, after the calls that run in it. Cancelling the task does not stop this.
    public func close() async { await onThreadOfItsOwn { self.close() } }

    /// Delivers an element whenever the other side may have gained versions that the store lacks. Retrieve them then. Versions that this
    /// store sent itself cause no element.
    /// - Returns: a sequence that ends when the exchange is closed or released.
    /// - Throws: `.unsupported` if the transport cannot report changes (then retrieve from time to time); `.closed`.
    public func news() throws -> EventSequence<Void> {
        try EventSequence(ending: ended, together: { _, _ in }) { put in
            guard let observation = try observe({ put(()) }) else {
                throw StoreError(
                    .unsupported, "\(transport.description) cannot report new versions. Retrieve from time to time.")
            }
            return [observation]
        }
    }
}

extension FolderTransport {
    /// Opens a folder as a place, and creates it if it is missing.
    /// - Parameters:
    ///   - path: the folder.
    ///   - options: how to open it.
    /// - Throws: the errors of the initialiser.
    public static func open(path: String, options: Options = Options()) async throws -> FolderTransport {
        try await onOwnThread { _ in try FolderTransport(path: path, options: options) }
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
        try await onOwnThread(progress: progress) { try self.put(control: $0) }
    }

    /// Returns the manifest of the snapshot; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func manifest() async throws -> SnapshotManifest? { try await onOwnThreadUnlessCancelled { try self.manifest() } }

    /// Adds all versions of the snapshot to a store that is empty, holds one version, or a part of this snapshot.
    /// - Parameter progress: receives the counts of chunks read, and of versions verified and added.
    /// - Returns: what was added, and what was not.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func restore(progress: ProgressCallback? = nil) async throws -> RestoredSnapshot {
        try await onOwnThread(progress: progress) { try self.restore(control: $0) }
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
        try await onOwnThread(progress: progress) { try Snapshots.write(store, to: directory, control: $0) }
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
        try await onOwnThread(progress: progress) { try Snapshots.restore(store, from: directory, decode: decode, control: $0) }
    }
}
