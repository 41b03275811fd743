import LLVS

/// An object as it was at a version that changed it.
public struct PastObject<Model: StorableModel>: Sendable {
    /// The version that changed it.
    public let version: Version
    /// The kind of change; a merge records `.preserve` and `.preserveRemoval`.
    public let kind: Value.Change.Kind
    /// The object at the version; nil if it was removed, or cannot be read.
    public let object: Model?
    /// The reason why it cannot be read; nil if it can, or was removed.
    public let problem: ModelDecodingError?
}

extension ModelCollection {
    /// Returns the history of one object: every version in which it changed, newest first, with the object at that version.
    ///
    /// Includes all versions of the store, also those on branches and those not merged yet.
    /// - Parameters:
    ///   - id: the id without the prefix.
    ///   - limit: the maximum number of versions.
    ///   - control: cancels the call.
    /// - Throws: `.cancelled`, and what the storage throws.
    /// - Complexity: proportional to the number of versions returned.
    public func history(
        _ id: String, limit: Int = .max, control: OperationControl = OperationControl()
    ) throws -> [PastObject<Model>] {
        let valueID = try valueID(id), store = coordinator.store
        let walk = try store.walk(HistoryQuery(value: valueID), control: control)
        var found: [PastObject<Model>] = []
        while found.count < limit {
            let page = try walk.next(min(64, limit - found.count), control: control)
            if page.isEmpty { break }
            for step in page {
                guard let version = try store.version(step.version), let kind = step.kind else { continue }
                var object: Model?, problem: ModelDecodingError?
                do {
                    object = try store.value(valueID, at: step.version).map { try at(step.version).object($0) }
                } catch let error as ModelDecodingError { problem = error }
                found.append(PastObject(version: version, kind: kind, object: object, problem: problem))
            }
        }
        return found
    }

    /// Returns the open conflicts of its values, by id, in the order of the ids. `resolve` closes them. As `Store.openConflicts`.
    public func openConflicts(control: OperationControl = OperationControl()) throws -> [(id: String, conflicts: [Conflict])] {
        let prefix = Array(Model.idPrefix.utf8)
        let found = try coordinator.store.openConflicts(at: coordinator.currentVersion, Store.ConflictQuery(), control: control)
        let byID = Dictionary(grouping: found.filter { $0.id.bytes.starts(with: prefix) }, by: \.id)
        return byID.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }.map { ($0.key.plain(Model.self), $0.value) }
    }

    /// Returns the open conflicts of one object.
    public func openConflicts(of id: String, control: OperationControl = OperationControl()) throws -> [Conflict] {
        let query = Store.ConflictQuery(only: try valueID(id))
        return try coordinator.store.openConflicts(at: coordinator.currentVersion, query, control: control)
    }

    /// Closes an open conflict by a save: the choice becomes current.
    /// - Throws: `.moved` if the place has other contents by now, `.invalidArgument` as `Store.resolve`, and what `StoreCoordinator.save`
    ///   throws.
    @discardableResult
    public func resolve(_ conflict: Conflict, with choice: Store.Choice, metadata: Metadata = Metadata()) throws -> Version? {
        while true {
            let base = coordinator.currentVersion
            let changes = try coordinator.store.resolve(conflict, with: choice, at: base)
            // If another call saved or merged meanwhile, retry at the new version.
            do {
                return try coordinator.save(changes, metadata: metadata, expected: base)
            } catch let error as StoreError where error.code == .moved { continue }
        }
    }
}
