import LLVS

/// Reading, as async functions on threads of their own.
extension Store {
    /// Returns the value of an id at a version; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func value(_ id: ValueID, at version: VersionID) async throws -> Value? {
        try await onOwnThreadUnlessCancelled { try self.value(id, at: version) }
    }

    /// Returns the value that a reference names; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func value(_ reference: Value.Reference) async throws -> Value? {
        try await onOwnThreadUnlessCancelled { try self.value(reference) }
    }

    /// Returns the values of ids at a version, in that order; nil for those without one.
    /// - Throws: the errors of the function without `async`.
    public func values(_ ids: [ValueID], at version: VersionID) async throws -> [Value?] {
        try await onOwnThreadUnlessCancelled { try self.values(ids, at: version) }
    }

    /// Returns a page of values at a version, in byte order of their ids. `allValues` reads page after page.
    /// - Parameters:
    ///   - version: the version.
    ///   - range: only ids in it.
    ///   - after: only ids after this one.
    ///   - limit: the most values.
    /// - Throws: the errors of the function without `async`.
    public func values(at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int) async throws -> [Value] {
        try await onOwnThreadUnlessCancelled { try self.values(at: version, in: range, after: after, limit: limit) }
    }

    /// Returns the changes that a version recorded, with the bytes.
    /// - Throws: the errors of the function without `async`.
    public func changes(madeIn id: VersionID) async throws -> [Value.Change] {
        try await onOwnThreadUnlessCancelled { try self.changes(madeIn: id) }
    }

    /// Returns what a version recorded, in byte order of the ids, without the bytes.
    /// - Parameters:
    ///   - id: the version.
    ///   - range: only ids in it.
    ///   - progress: receives the count of changes read.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func recordedChanges(
        madeIn id: VersionID, in range: IDRange = .all, progress: ProgressCallback? = nil
    ) async throws -> [ChangeSummary] {
        try await onOwnThread(progress: progress) { try self.recordedChanges(madeIn: id, in: range, control: $0) }
    }

    /// Returns the orders of erasure that count on this device.
    /// - Throws: the errors of the function without `async`.
    public func erasures() async throws -> [Erasure] { try await onOwnThreadUnlessCancelled { try self.erasures() } }

    /// Returns how the values at one version differ from those at another, in byte order of the ids.
    /// - Parameters:
    ///   - a: the version before.
    ///   - b: the version after.
    ///   - range: only ids in it.
    ///   - progress: receives the count of ids compared.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func differences(
        from a: VersionID, to b: VersionID, in range: IDRange = .all, progress: ProgressCallback? = nil
    ) async throws -> [ChangeSummary] {
        try await onOwnThread(progress: progress) { try self.differences(from: a, to: b, in: range, control: $0) }
    }

    /// Returns the versions that recorded a change of a value, newest first.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func versions(of id: ValueID, progress: ProgressCallback? = nil) async throws -> [Version] {
        try await onOwnThread(progress: progress) { try self.versions(of: id, control: $0) }
    }

    /// Returns the version that was current at a time; nil if there was none.
    /// - Parameters:
    ///   - time: seconds since 2001-01-01 UTC.
    ///   - head: only this version and its ancestors; nil: all.
    ///   - progress: receives the count of versions read.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func version(at time: Double, head: VersionID? = nil, progress: ProgressCallback? = nil) async throws -> Version? {
        try await onOwnThread(progress: progress) { try self.version(at: time, head: head, control: $0) }
    }

    /// Reads what other handles and processes added.
    /// - Returns: the number of versions found.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    @discardableResult
    public func reloadHistory(progress: ProgressCallback? = nil) async throws -> Int {
        try await onOwnThread(progress: progress) { try self.reloadHistory(control: $0) }
    }

    /// Returns counts of the store.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func statistics(progress: ProgressCallback? = nil) async throws -> Statistics {
        try await onOwnThread(progress: progress) { try self.statistics(control: $0) }
    }

    /// Returns a version by its id; nil if it does not exist.
    /// - Throws: the errors of the function without `async`.
    public func version(_ id: VersionID) async throws -> Version? { try await onOwnThreadUnlessCancelled { try self.version(id) } }

    /// Returns the reference that prevails at a version, without reading the bytes; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func reference(_ id: ValueID, at version: VersionID) async throws -> Value.Reference? {
        try await onOwnThreadUnlessCancelled { try self.reference(id, at: version) }
    }

    /// Returns the references that prevail at a version, in byte order of their ids.
    /// - Parameters:
    ///   - version: the version.
    ///   - range: only ids in it.
    ///   - after: only ids after this one.
    ///   - limit: the most references.
    /// - Throws: the errors of the function without `async`.
    public func references(
        at version: VersionID, in range: IDRange = .all, after: ValueID? = nil, limit: Int
    ) async throws -> [Value.Reference] {
        try await onOwnThreadUnlessCancelled { try self.references(at: version, in: range, after: after, limit: limit) }
    }

    /// Returns how many values prevail at a version, in a range of ids.
    /// - Throws: the errors of the function without `async`.
    public func count(at version: VersionID, in range: IDRange = .all) async throws -> Int {
        try await onOwnThreadUnlessCancelled { try self.count(at: version, in: range) }
    }

    /// Returns the rules of the store at a version.
    /// - Parameters:
    ///   - version: the version at which they are read.
    ///   - given: rules to add to them. Nothing is stored.
    /// - Throws: the errors of the function without `async`.
    public func schema(at version: VersionID, adding given: [UInt8]? = nil) async throws -> Schema {
        try await onOwnThreadUnlessCancelled { try self.schema(at: version, adding: given) }
    }

    /// Opens the value that prevails at a version, for reading in parts; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func openValue(_ id: ValueID, at version: VersionID) async throws -> ValueReader? {
        try await onOwnThreadUnlessCancelled { try self.openValue(id, at: version) }
    }

    /// Opens the bytes that a version stored under an id, for reading in parts; nil if it stored none.
    /// - Throws: the errors of the function without `async`.
    public func openValue(_ reference: Value.Reference) async throws -> ValueReader? {
        try await onOwnThreadUnlessCancelled { try self.openValue(reference) }
    }

    // MARK: Conflicts and edits of the past

    /// Returns the conflicts that a merge of two versions would have.
    /// - Parameters:
    ///   - a: one version.
    ///   - b: the other.
    ///   - query: the rules, and which values.
    ///   - progress: receives the count of ids compared.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func conflicts(
        between a: VersionID, and b: VersionID, _ query: ConflictQuery = ConflictQuery(), progress: ProgressCallback? = nil
    ) async throws -> Conflicts {
        try await onOwnThread(progress: progress) { try self.conflicts(between: a, and: b, query, control: $0) }
    }

    /// Returns the conflicts that a merge version decided.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func explain(
        _ version: VersionID, _ query: ConflictQuery = ConflictQuery(), progress: ProgressCallback? = nil
    ) async throws -> Conflicts {
        try await onOwnThread(progress: progress) { try self.explain(version, query, control: $0) }
    }

    /// Returns the conflicts that nobody has resolved yet, at a version.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func openConflicts(
        at version: VersionID, _ query: ConflictQuery = ConflictQuery(), progress: ProgressCallback? = nil
    ) async throws -> [Conflict] {
        try await onOwnThread(progress: progress) { try self.openConflicts(at: version, query, control: $0) }
    }

    /// Returns the changes that resolve a conflict at a version. Save them on that version.
    /// - Throws: the errors of the function without `async`.
    public func resolve(_ conflict: Conflict, with choice: Choice, at version: VersionID) async throws -> [Value.Change] {
        try await onOwnThreadUnlessCancelled { try self.resolve(conflict, with: choice, at: version) }
    }

    /// Makes a version that undoes another one, and keeps what came after it.
    /// - Parameters:
    ///   - version: the version to undo.
    ///   - head: the version to make it on.
    ///   - parent: for a merge: the side that remains.
    ///   - metadata: metadata of the new version.
    ///   - progress: receives the count of ids compared.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    @discardableResult
    public func revert(
        _ version: VersionID, at head: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Reverted {
        try await onOwnThread(progress: progress) {
            try self.revert(version, at: head, parent: parent, metadata: metadata, control: $0)
        }
    }

    /// Makes a version on a head that repeats the changes of another one.
    /// - Parameters:
    ///   - version: the version to repeat.
    ///   - head: the version to make it on.
    ///   - parent: for a merge: the side whose changes are not repeated.
    ///   - metadata: metadata of the new version.
    ///   - progress: receives the count of ids compared.
    /// - Throws: the errors of the function without `async`; `CancellationError`, and then nothing is stored.
    @discardableResult
    public func cherryPick(
        _ version: VersionID, onto head: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(),
        progress: ProgressCallback? = nil
    ) async throws -> Reverted {
        try await onOwnThread(progress: progress) {
            try self.cherryPick(version, onto: head, parent: parent, metadata: metadata, control: $0)
        }
    }

    /// Closes the store, after the calls that run in it. Cancelling the task does not stop this.
    /// - Throws: the errors of the function without `async`.
    public func close() async throws { try await onOwnThread { _ in try self.close() } }
}

extension ValueReader {
    /// Returns bytes of the value.
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - count: the most bytes to return.
    /// - Throws: the errors of the function without `async`.
    public func read(at offset: Int, count: Int) async throws -> [UInt8] {
        try await onOwnThreadUnlessCancelled { try self.read(at: offset, count: count) }
    }

    /// The bytes of the value from its beginning, in pieces of at most 1 MiB.
    ///
    ///     for try await piece in reader.pieces { try await connection.send(piece) }
    public var pieces: PagedSequence<[UInt8]> {
        PagedSequence { _ in
            var offset = 0
            return { control in
                try control.check(.reading, offset, of: self.size, doing: "Reading the value of \"\(self.id)\"")
                let piece = try self.read(at: offset, count: 1 << 20)
                offset += piece.count
                return piece.isEmpty ? [] : [piece]
            }
        }
    }
}
