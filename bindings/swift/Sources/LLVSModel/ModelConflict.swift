import LLVS
import LLVSAsync

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A conflict in an object, with the sides as values of Swift: `ModelCollection.openConflicts` and `Conflict` have the sides as JSON.
public struct ModelConflict<Model: StorableModel>: Sendable {
    /// The id of the object, without the prefix.
    public let id: String
    /// The conflict, for `ModelCollection.resolve(_:with:)`.
    public let conflict: Conflict

    init(_ conflict: Conflict) {
        self.conflict = conflict
        id = conflict.id.plain(Model.self)
    }

    /// The names on the way from the object to the place; indexes and keys of elements are left out.
    public var path: [String] {
        guard case .array(let steps)? = JSONText.parsed(Data("[".utf8 + conflict.record.path + "]".utf8)) else { return [] }
        return steps.compactMap { if case .string(let name) = $0 { name } else { nil } }
    }

    /// Returns whether the conflict is about a member, or a part of it.
    public func concerns(_ member: PartialKeyPath<Model>) -> Bool {
        guard let pointer = Model.pointer(member) else { return false }
        let names = pointer.split(separator: "/").map(String.init)
        return path.map(JSONText.patternSegment).starts(with: names)
    }

    /// A side of a conflict.
    public enum Side: Sendable, Hashable {
        /// What both sides began with.
        case base
        /// The side with the more recent change.
        case newer
        /// The other side.
        case older
        /// What the merge chose.
        case result
    }

    /// Returns the value of a side at the place of the conflict, as JSON; nil if the side has none.
    public func json(_ side: Side) -> JSONValue? { bytes(side).flatMap { JSONText.parsed(Data("[".utf8 + $0 + "]".utf8)) } }

    /// Returns the value that a side has at the place of the conflict: `conflict.value(.older, of: \.name)`.
    /// - Parameters:
    ///   - side: the side.
    ///   - member: the member that the conflict is about.
    /// - Returns: nil if the side has none, or if the conflict is about another place, or about a part of the member.
    /// - Throws: `DecodingError` if it is not a value of the member's type.
    public func value<Value: Decodable>(_ side: Side, of member: KeyPath<Model, Value>) throws -> Value? {
        guard let pointer = Model.pointer(member), "/" + path.map(JSONText.patternSegment).joined(separator: "/") == pointer,
            let bytes = bytes(side)
        else { return nil }
        return try ModelCoding.decoder().decode([Value].self, from: Data("[".utf8 + bytes + "]".utf8)).first
    }

    /// Returns the object as it is, with what a side has at the place of the conflict: for a preview of the choice.
    /// - Parameters:
    ///   - side: the side.
    ///   - collection: the collection that has the object.
    /// - Returns: nil if the object would be removed.
    /// - Throws: `.moved` if the place has other contents by now; `ModelDecodingError`; the errors of the storage.
    public func object(with side: Store.Choice, in collection: ModelCollection<Model>) throws -> Model? {
        let store = collection.coordinator.store, version = collection.coordinator.currentVersion
        let changes = try store.resolve(conflict, with: side, at: version)
        guard let change = changes.first(where: { $0.id == conflict.id }) else { return try collection.at(version)[id] }
        let bytes: [UInt8]
        switch change {
        case .insert(_, let data), .update(_, let data): bytes = data
        default: return nil
        }
        return try ModelCoding.read(Model.self, bytes, conflict.id, version, collection.rules.forReading(at: version, in: store))
    }

    /// Returns the whole object on a side, if the conflict is about the whole object: one side removed it, and the other changed it.
    /// - Returns: nil if that side has no object, and if the conflict is about a member (`value(_:of:)`).
    /// - Throws: the error of decoding it.
    public func object(_ side: Side) throws -> Model? {
        guard path.isEmpty, let bytes = bytes(side) else { return nil }
        return try ModelCoding.decoder().decode(Model.self, from: Data(bytes))
    }

    private func bytes(_ side: Side) -> [UInt8]? {
        switch side {
        case .base: conflict.record.base
        case .newer: conflict.record.newer
        case .older: conflict.record.older
        case .result: conflict.record.result
        }
    }
}

extension ModelCollection {
    /// Returns the open conflicts of its values with the sides as values of Swift, in the order of the ids.
    ///
    ///     for conflict in try people.conflicts() where conflict.concerns(\.name) {
    ///         print(try conflict.value(.newer, of: \.name) ?? "", "or", try conflict.value(.older, of: \.name) ?? "")
    ///         try people.resolve(conflict, with: .older)
    ///     }
    /// - Throws: as `openConflicts`.
    public func conflicts(control: OperationControl = OperationControl()) throws -> [ModelConflict<Model>] {
        try openConflicts(control: control).flatMap { $0.conflicts.map { ModelConflict($0) } }
    }

    /// Returns the open conflicts of its values with the sides as values of Swift, on a thread of its own.
    /// - Throws: the errors of the function without `async`; `CancellationError`.
    public func conflicts(progress: ProgressCallback? = nil) async throws -> [ModelConflict<Model>] {
        try await onOwnThread(progress: progress) { try self.conflicts(control: $0) }
    }

    /// Closes an open conflict by a save: the choice becomes current.
    /// - Throws: as `resolve` for a `Conflict`.
    @discardableResult
    public func resolve(_ conflict: ModelConflict<Model>, with choice: Store.Choice, metadata: Metadata = Metadata()) throws -> Version? {
        try resolve(conflict.conflict, with: choice, metadata: metadata)
    }

    /// Closes an open conflict by a save, on a thread of its own.
    /// - Throws: as `resolve` for a `Conflict`.
    @discardableResult
    public func resolve(
        _ conflict: ModelConflict<Model>, with choice: Store.Choice, metadata: Metadata = Metadata()
    ) async throws -> Version? {
        try await resolve(conflict.conflict, with: choice, metadata: metadata)
    }
}
