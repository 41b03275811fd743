import LLVS
import LLVSAsync

/// Blocking calls of models, as async functions on threads of their own. In async functions the compiler asks for these.
extension StoreCoordinator {
    /// Returns the objects of a model, by id without the prefix. Adds the model's rules for merging to those of the store.
    /// - Throws: the errors of the function without `async`.
    public func collection<Model: StorableModel>(_ model: Model.Type) async throws -> ModelCollection<Model> {
        try await onOwnThread { _ in try self.collection(model) }
    }
}

extension ModelCollection {
    /// Returns the object with an id; nil if there is none.
    /// - Throws: `ModelDecodingError` if it cannot be read, and the errors of the storage.
    public func object(_ id: String) async throws -> Model? { try await onOwnThreadUnlessCancelled { try self[id] } }

    /// Returns whether there is a value with an id, readable or not.
    /// - Throws: the errors of the function without `async`.
    public func contains(_ id: String) async throws -> Bool { try await onOwnThreadUnlessCancelled { try self.contains(id) } }

    /// The number of values, readable or not.
    /// - Throws: the errors of the function without `async`.
    public func count() async throws -> Int { try await onOwnThreadUnlessCancelled { try self.count() } }

    /// Returns all ids and objects, in the order of the ids.
    /// - Throws: the errors of the function without `async`.
    public func all() async throws -> [(id: String, object: Model)] { try await onOwnThreadUnlessCancelled { try self.all() } }

    /// Returns all objects that can be read, and the errors of the others.
    /// - Throws: the errors of the function without `async`.
    public func readAll() async throws -> ModelsAtVersion<Model>.Reading { try await onOwnThreadUnlessCancelled { try self.readAll() } }

    /// The ids, in order.
    /// - Throws: the errors of the function without `async`.
    public func ids() async throws -> [String] { try await onOwnThreadUnlessCancelled { try self.ids() } }

    /// Returns why values cannot be read; empty if all can.
    /// - Throws: the errors of the function without `async`.
    public func problems() async throws -> [ModelDecodingError] { try await onOwnThreadUnlessCancelled { try self.problems() } }

    /// Returns what differs between two versions, in the order of the ids.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func changes(
        from earlier: VersionID, to later: VersionID, progress: ProgressCallback? = nil
    ) async throws -> [ModelChange<Model>] {
        try await onOwnThread(progress: progress) { try self.changes(from: earlier, to: later, control: $0) }
    }

    /// Saves an object as a version of its own. Cannot be cancelled, since the version may already be stored.
    /// - Parameters:
    ///   - object: the object.
    ///   - id: its id without the prefix.
    ///   - metadata: metadata of the version.
    ///   - expected: the version that must be current.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    /// - Returns: the version; nil if nothing changed.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func save(
        _ object: Model, id: String, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil,
        description: String? = nil
    ) async throws -> Version? {
        try await save([id: object], metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Saves some objects and removes others, as one version. As above.
    @discardableResult
    public func save(
        _ objects: [String: Model], removing: [String] = [], metadata: Metadata = Metadata(), expected: VersionID? = nil,
        group: String? = nil, description: String? = nil
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.save(objects, removing: removing, metadata: metadata, expected: expected, group: group, description: description)
        }
    }

    /// Removes an object; returns nil if there is none.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func remove(
        _ id: String, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.remove(id, metadata: metadata, expected: expected, group: group, description: description)
        }
    }

    /// Removes all objects, as one version; returns nil if there are none.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func removeAll(metadata: Metadata = Metadata(), group: String? = nil, description: String? = nil) async throws -> Version? {
        try await onOwnThread { _ in try self.removeAll(metadata: metadata, group: group, description: description) }
    }

    /// Passes an object to the closure, on the thread that does the work, and saves what the closure changed.
    /// - Parameters:
    ///   - id: the id without the prefix.
    ///   - initial: the object to begin with if there is none.
    ///   - version: the version at which the object is read; by default the current one.
    ///   - metadata: metadata of the version.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    ///   - change: changes the object.
    /// - Returns: the version; nil if nothing was changed.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func edit(
        _ id: String, default initial: Model? = nil, at version: VersionID? = nil, metadata: Metadata = Metadata(), group: String? = nil,
        description: String? = nil, _ change: @escaping @Sendable (inout Model) throws -> Void
    ) async throws -> Version? {
        try await onOwnThread { _ in
            try self.edit(id, default: initial, at: version, metadata: metadata, group: group, description: description, change)
        }
    }

    /// Returns the history of one object, newest first, with the object at each version.
    /// - Parameters:
    ///   - id: the id without the prefix.
    ///   - limit: the most versions.
    ///   - progress: receives the count of versions read.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func history(_ id: String, limit: Int = .max, progress: ProgressCallback? = nil) async throws -> [PastObject<Model>] {
        try await onOwnThread(progress: progress) { try self.history(id, limit: limit, control: $0) }
    }

    /// Returns the open conflicts of its values, by id, in the order of the ids.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func openConflicts(progress: ProgressCallback? = nil) async throws -> [(id: String, conflicts: [Conflict])] {
        try await onOwnThread(progress: progress) { try self.openConflicts(control: $0) }
    }

    /// Returns the open conflicts of one object.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func openConflicts(of id: String, progress: ProgressCallback? = nil) async throws -> [Conflict] {
        try await onOwnThread(progress: progress) { try self.openConflicts(of: id, control: $0) }
    }

    /// Closes an open conflict by a save: the choice becomes current.
    /// - Throws: the errors of the function without `async`.
    @discardableResult
    public func resolve(_ conflict: Conflict, with choice: Store.Choice, metadata: Metadata = Metadata()) async throws -> Version? {
        try await onOwnThread { _ in try self.resolve(conflict, with: choice, metadata: metadata) }
    }
}

extension ModelSelection {
    /// Returns the ids, without the prefix.
    /// - Throws: the errors of the function without `async`.
    public func ids() async throws -> [String] { try await onOwnThreadUnlessCancelled { try self.ids() } }

    /// Returns ids and objects.
    /// - Throws: the errors of the function without `async`.
    public func all() async throws -> [(id: String, object: Model)] { try await onOwnThreadUnlessCancelled { try self.all() } }

    /// Returns the first object; nil if there is none.
    /// - Throws: the errors of the function without `async`.
    public func first() async throws -> (id: String, object: Model)? { try await onOwnThreadUnlessCancelled { try self.first() } }

    /// Returns the number of objects.
    /// - Throws: the errors of the function without `async`.
    public func count() async throws -> Int { try await onOwnThreadUnlessCancelled { try self.count() } }
}

extension ModelsAtVersion {
    /// Returns the object with an id; nil if there is none.
    /// - Throws: `ModelDecodingError` if it cannot be read, and errors of the storage.
    public func object(_ id: String) async throws -> Model? { try await onOwnThreadUnlessCancelled { try self[id] } }

    /// Returns whether there is a value with an id, readable or not.
    /// - Throws: the errors of the function without `async`.
    public func contains(_ id: String) async throws -> Bool { try await onOwnThreadUnlessCancelled { try self.contains(id) } }

    /// Returns the number of values, readable or not.
    /// - Throws: the errors of the function without `async`.
    public func count() async throws -> Int { try await onOwnThreadUnlessCancelled { try self.count() } }

    /// Returns the ids, without the prefix.
    /// - Throws: the errors of the function without `async`.
    public func ids() async throws -> [String] { try await onOwnThreadUnlessCancelled { try self.ids() } }

    /// Returns ids and objects.
    /// - Throws: `ModelDecodingError` at the first that cannot be read.
    public func all() async throws -> [(id: String, object: Model)] { try await onOwnThreadUnlessCancelled { try self.all() } }

    /// Returns the objects that can be read, and why the others cannot.
    /// - Throws: the errors of the function without `async`.
    public func readAll() async throws -> Reading { try await onOwnThreadUnlessCancelled { try self.readAll() } }

    /// Returns why values cannot be read; empty if all can.
    /// - Throws: the errors of the function without `async`.
    public func problems() async throws -> [ModelDecodingError] { try await onOwnThreadUnlessCancelled { try self.problems() } }
}

extension ModelConflict {
    /// Returns the object as it would be if this side were chosen.
    /// - Throws: the errors of the function without `async`.
    public func object(with side: Store.Choice, in collection: ModelCollection<Model>) async throws -> Model? {
        try await onOwnThreadUnlessCancelled { try self.object(with: side, in: collection) }
    }
}
