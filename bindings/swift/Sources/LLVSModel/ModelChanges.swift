import LLVS
import LLVSAsync

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How an object at one version differs from that at another: `ModelCollection.changes`.
public struct ModelChange<Model: StorableModel>: Sendable {
    /// What happened to the object.
    public enum Kind: Sendable, Hashable {
        /// It exists now, and did not before.
        case added
        /// It exists at both versions, and differs.
        case changed
        /// It no longer exists.
        case removed
    }
    /// What happened to the object.
    public let kind: Kind
    /// The id, without the prefix.
    public let id: String
    /// The object before; nil if it was added, or could not be read.
    public let before: Model?
    /// The object now; nil if it was removed, or cannot be read.
    public let object: Model?
    /// Why it cannot be read now; nil if it can, or was removed.
    public let problem: ModelDecodingError?
    /// The version that saved or removed it, with its time and metadata. After a merge inside the value it is the merge.
    public let version: Version?

    /// The device that made the version, if its coordinator has a name for it (`StoreCoordinator.Options.device`).
    public var device: String? {
        guard let name = version?.metadata[Metadata.deviceKey] else { return nil }
        return try? ModelCoding.decoder().decode(String.self, from: Data(name))
    }
}

extension ModelCollection {
    /// Returns how the objects at one version differ from those at another, in the order of the ids.
    /// - Parameters:
    ///   - earlier: the version before.
    ///   - later: the version after.
    ///   - control: cancels the call.
    /// - Throws: `.unknownVersion`, `.cancelled`, and what the storage throws. Objects that cannot be read are not an error.
    public func changes(
        from earlier: VersionID, to later: VersionID, control: OperationControl = OperationControl()
    ) throws -> [ModelChange<Model>] {
        let store = coordinator.store, before = at(earlier), after = at(later)
        let found = try store.differences(from: earlier, to: later, in: .prefix(Array(Model.idPrefix.utf8)), control: control)
        return try found.map { change in
            let id = change.id.plain(Model.self)
            var old: Model?, new: Model?, problem: ModelDecodingError?
            let isThere = try store.reference(change.id, at: earlier) != nil
            do { old = try before[id] } catch is ModelDecodingError {}
            do { new = try after[id] } catch let error as ModelDecodingError { problem = error }
            let kind: ModelChange<Model>.Kind = change.reference == nil ? .removed : isThere ? .changed : .added
            return ModelChange(
                kind: kind, id: id, before: old, object: new, problem: problem,
                version: try change.reference.map { try store.version($0.version) } ?? removal(of: change.id, at: later, control))
        }
    }

    /// Returns the newest version that removed a value.
    private func removal(of id: ValueID, at version: VersionID, _ control: OperationControl) throws -> Version? {
        let walk = try coordinator.store.walk(HistoryQuery(from: [version], value: id), control: control)
        while let step = try walk.next(1, control: control).first {
            if step.kind == .remove { return try coordinator.store.version(step.version) }
        }
        return nil
    }

    /// Delivers the changes of objects from now on: one list for each move of the current version that changed some, by a save of this
    /// program or by a merge of what others saved.
    ///
    ///     for try await changes in people.changes {
    ///         for change in changes { print(change.kind, change.id, change.device ?? "?") }
    ///     }
    ///
    /// If the current version moves several times while no task waits, their changes are one list. The sequence ends when the coordinator
    /// is closed.
    public var changes: ModelChanges<Model> {
        // Observed before the version is read, so that nothing is missed between the two.
        let moves = coordinator.moves()
        return ModelChanges(collection: self, moves: moves, start: coordinator.currentVersion)
    }
}

/// Changes of objects, as they come: `ModelCollection.changes`. Each element goes to one of the tasks that iterate.
public struct ModelChanges<Model: StorableModel>: AsyncSequence, Sendable {
    fileprivate let collection: ModelCollection<Model>
    fileprivate let moves: EventSequence<VersionID>
    let start: VersionID

    /// Returns an iterator over the changes since the sequence was made.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(collection: collection, moves: moves.makeAsyncIterator(), last: start)
    }

    /// Waits for one list of changes after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let collection: ModelCollection<Model>
        fileprivate var moves: EventSequence<VersionID>.AsyncIterator
        fileprivate var last: VersionID

        /// Returns the changes since the last call, in the order of the ids, or waits for some; nil at the end.
        /// - Throws: the errors of the storage; `CancellationError`.
        public mutating func next() async throws -> [ModelChange<Model>]? {
            while let version = await moves.next() {
                let (collection, before) = (collection, last)
                let found = try await onOwnThread { try collection.changes(from: before, to: version, control: $0) }
                last = version
                if !found.isEmpty { return found }
            }
            return nil
        }
    }
}
