import LLVS
import LLVSAsync

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Objects that have their id in them: `save(ann)` instead of `save(ann, id: "1")`. The id of the value is the prefix and the text of the
/// object's id, so that must be unique and never change.
extension ModelCollection where Model: Identifiable, Model.ID: CustomStringConvertible {
    /// Saves an object under its own id.
    /// - Parameters:
    ///   - object: the object.
    ///   - metadata: metadata of the version.
    ///   - expected: the version that must be current; if another one is, nothing is stored.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    /// - Returns: the version; nil if nothing changed.
    /// - Throws: as `save(_:id:)`.
    @discardableResult
    public func save(
        _ object: Model, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) throws -> Version? {
        try save(object, id: object.id.description, metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Saves objects under their own ids, as one version. If two have one id, the last counts.
    @discardableResult
    public func save(
        _ objects: [Model], metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) throws -> Version? {
        let byID = Dictionary(objects.map { ($0.id.description, $0) }) { $1 }
        return try save(byID, metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Removes an object; returns nil if there is none with its id.
    @discardableResult
    public func remove(
        _ object: Model, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) throws -> Version? {
        try remove(object.id.description, metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Saves an object under its own id, on a thread of its own.
    /// - Throws: as `save(_:id:)`.
    @discardableResult
    public func save(
        _ object: Model, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) async throws -> Version? {
        try await save(object, id: object.id.description, metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Saves objects under their own ids, as one version, on a thread of its own. If two have one id, the last counts.
    @discardableResult
    public func save(
        _ objects: [Model], metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) async throws -> Version? {
        let byID = Dictionary(objects.map { ($0.id.description, $0) }) { $1 }
        return try await save(byID, metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Removes an object, on a thread of its own; returns nil if there is none with its id.
    @discardableResult
    public func remove(
        _ object: Model, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) async throws -> Version? {
        try await remove(object.id.description, metadata: metadata, expected: expected, group: group, description: description)
    }
}

/// Times and bytes of Foundation.
extension Version {
    /// When it was made, by the clock of the device that made it.
    public var date: Date { Date(timeIntervalSinceReferenceDate: timestamp) }
}

extension Value {
    /// Its bytes.
    public var contents: Data { Data(data) }
}

extension Value.Change {
    /// Inserts a value.
    public static func insert(_ id: ValueID, data: Data) -> Value.Change { .insert(id, data: Array(data)) }
    /// Sets a value.
    public static func update(_ id: ValueID, data: Data) -> Value.Change { .update(id, data: Array(data)) }
}

extension Store {
    /// Returns the version that was current at a time; nil if there was none.
    /// - Parameters:
    ///   - date: the time.
    ///   - head: only this version and its ancestors; nil: all.
    ///   - control: cancels the call.
    /// - Throws: as `version(at:head:control:)` for seconds.
    public func version(at date: Date, head: VersionID? = nil, control: OperationControl = OperationControl()) throws -> Version? {
        try version(at: date.timeIntervalSinceReferenceDate, head: head, control: control)
    }
    /// Returns the version that was current at a time, on a thread of its own; nil if there was none.
    /// - Throws: as `version(at:head:progress:)` for seconds.
    public func version(at date: Date, head: VersionID? = nil, progress: ProgressCallback? = nil) async throws -> Version? {
        try await version(at: date.timeIntervalSinceReferenceDate, head: head, progress: progress)
    }
}

extension Syncer.Status {
    /// The time of the next round; nil if only an event leads to one.
    public var nextRoundDate: Date? { nextRound.map { Date(timeIntervalSinceReferenceDate: $0) } }
    /// When a round last ended without any failure; nil: never.
    public var lastSuccessDate: Date? { lastSuccess.map { Date(timeIntervalSinceReferenceDate: $0) } }
}

extension Syncer.Place {
    /// When sending there last succeeded; nil: never.
    public var lastSendDate: Date? { lastSend.map(Date.init(timeIntervalSinceReferenceDate:)) }
    /// When receiving from there last succeeded; nil: never.
    public var lastRetrieveDate: Date? { lastRetrieve.map(Date.init(timeIntervalSinceReferenceDate:)) }
    /// When an exchange with it last succeeded; nil: never.
    public var lastSuccessDate: Date? { lastSuccess.map(Date.init(timeIntervalSinceReferenceDate:)) }
    /// When it is retried by the clock; nil if nothing failed, or if only a person can help.
    public var retryDate: Date? { retryAt.map(Date.init(timeIntervalSinceReferenceDate:)) }
}

extension RemoteStatus.Writer {
    /// When this device last saw a new pack of it; nil for this device.
    public var lastSeenDate: Date? { lastSeen.map(Date.init(timeIntervalSinceReferenceDate:)) }
}

extension SnapshotManifest {
    /// When it was written, by the clock of the device that wrote it.
    public var creationDate: Date { Date(timeIntervalSinceReferenceDate: createdAt) }
}
